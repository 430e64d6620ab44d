"""Games a policy plays alone: moves drawn as a plain loop draws them, ends, and games that depend on nothing else."""

import numpy as np
import pytest

from engine.go.rules import RULE_SETS
from engine.rollout.random import next_unit, seed_state
from engine.selfplay.policy_games import FREE_MOVES, LEAST_SHARE, GamePool, has_ended, move_limit
from engine.selfplay.variety import Komi, Variety

SIZE = 5
PASS_INDEX = SIZE * SIZE


def variety(*temperatures):
    rules, komi = ((RULE_SETS["chinese"], 1.0),), ((Komi(), 1.0),)
    return Variety(rules, komi, tuple((one, 1.0) for one in temperatures or (1.0,)))


def new_pool(slots, seed=1, *temperatures):
    pool = GamePool(SIZE, slots, variety(*temperatures), seed)
    for slot in range(slots):
        pool.start_game(slot, slot)
    return pool


def drawn(probabilities, temperature, ply, unit):
    """The move that a pool must draw, a plain loop."""
    least = LEAST_SHARE * max(probabilities) if ply >= FREE_MOVES else 0.0
    weights = [(p / max(probabilities)) ** (1 / temperature) if p > 0 and p >= least else 0.0 for p in probabilities]
    left = unit * sum(weights)
    for index, weight in enumerate(weights):
        left -= weight
        if weight and left < 0:
            return index
    return max(index for index, weight in enumerate(weights) if weight)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_moves_are_drawn_as_a_plain_loop_draws_them(temperature):
    rng, pool = np.random.default_rng(3), new_pool(4, 7, temperature)
    states = [seed_state(7, number) for number in range(4)]
    for ply in range(FREE_MOVES + 6):
        probabilities = rng.dirichlet(np.full(PASS_INDEX + 1, 0.1), 4)
        probabilities[:, PASS_INDEX] = 0.0
        expected = [drawn(row.tolist(), temperature, ply, next_unit(states[i])) for i, row in enumerate(probabilities)]
        chosen, ended = pool.play(pool.taken, probabilities)
        assert chosen.tolist() == expected
        assert not ended.any()
    assert pool.lengths.tolist() == [FREE_MOVES + 6] * 4


def test_improbable_moves_are_left_out_after_the_opening():
    pool, probabilities = new_pool(1), np.zeros((1, PASS_INDEX + 1))
    probabilities[0, :PASS_INDEX] = 0.001
    probabilities[0, 3] = 0.976
    moves = [int(pool.play(pool.taken, probabilities)[0][0]) for _ in range(40)]
    assert set(moves[FREE_MOVES:]) == {3}


def test_two_passes_end_a_game_and_so_does_the_limit():
    pool, passing, playing = new_pool(2), np.zeros((2, PASS_INDEX + 1)), np.zeros((2, PASS_INDEX + 1))
    passing[:, PASS_INDEX], playing[:, 0] = 1.0, 1.0
    assert pool.play(pool.taken, passing)[1].tolist() == [False, False]
    assert pool.play(np.array([0]), passing[:1])[1].tolist() == [True]
    assert pool.taken.tolist() == [1] and pool.free.tolist() == [0]
    for _ in range(move_limit(SIZE) - 2):
        assert not pool.play(np.array([1]), playing[:1])[1].any()
    assert pool.play(np.array([1]), playing[:1])[1].tolist() == [True]
    assert has_ended(np.array([3, PASS_INDEX, PASS_INDEX]), SIZE) and not has_ended(np.array([PASS_INDEX, 3]), SIZE)
    assert has_ended(np.zeros(move_limit(SIZE)), SIZE)


def test_a_game_is_a_function_of_its_number_and_goes_on_where_it_was():
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.ones(PASS_INDEX + 1), 30)
    probabilities[:, PASS_INDEX] = 0.0
    whole, company = new_pool(1, 5), new_pool(3, 5)
    moves = [int(whole.play(np.array([0]), probabilities[n : n + 1])[0][0]) for n in range(30)]
    for n in range(30):
        assert int(company.play(np.arange(3), np.tile(probabilities[n], (3, 1)))[0][0]) == moves[n]
    resumed = GamePool(SIZE, 2, variety(), 5)
    resumed.start_game(1, 0, moves[:12])
    assert [int(resumed.play(np.array([1]), probabilities[n : n + 1])[0][0]) for n in range(12, 30)] == moves[12:]
    np.testing.assert_array_equal(resumed.games.moves[resumed.games.offsets[1] :][:30], moves)
