"""Games whose evaluations become labels: those of bulk play, whichever share a table, wherever they are taken up."""

import numpy as np
import pytest

from engine.go.rules import RULE_SETS
from engine.selfplay.game_distribution import GameDistribution, Komi
from engine.selfplay.games import GameBatch, Player
from engine.selfplay.labelled_games import FREE_MOVES, LEAST_SHARE, LabelledGames
from engine.selfplay.plan import BulkOptions, move_limit, setups_of

SIZE, SEED = 5, 3
DISTRIBUTION = GameDistribution(((RULE_SETS["tromp-taylor"], 1.0),), ((Komi(0.5, 5.5), 1.0),), ((1.0, 1.0), (0.5, 1.0)))


@pytest.fixture(scope="module")
def bulk(server):
    """The moves of some games, by number, as games in bulk."""
    options = BulkOptions(
        DISTRIBUTION, size=SIZE, passes="free", free_moves=FREE_MOVES, least_share=LEAST_SHARE, seed=SEED
    )
    batch = GameBatch([Player(server, options.config())], SIZE, 4, lambda numbers: setups_of(options, numbers))
    found = {}
    for games in (finished.games for finished in batch.play(iter(range(12)))):
        for k, number in enumerate(games.number.tolist()):
            found[number] = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
    return found


def has_ended(moves):
    """Whether a game of these moves is over: by two passes, or by its length."""
    return moves[-2:] == 2 * [SIZE * SIZE] or len(moves) >= move_limit(SIZE, 0)


def to_the_end(games, begun):
    """Play some games and all that follow them to 12; moves by number."""
    found, left = {number: list(moves) for number, moves in begun}, [n for n in range(12) if n not in dict(begun)]
    while begun or left or games.free < 3:
        taken = (begun + [(number, []) for number in left])[: games.free]
        begun, left = begun[len(taken) :], [n for n in left if n not in dict(taken)]
        games.begin(taken)
        step = games.step()
        for number, ply, move, is_over in zip(step.numbers, step.plies, step.moves, step.ended, strict=True):
            assert len(found.setdefault(int(number), [])) == ply
            found[int(number)].append(int(move))
            assert is_over == has_ended(found[int(number)])
        assert not step.outputs["policy"].min() < 0
        np.testing.assert_allclose(step.outputs["policy"].sum(axis=1), 1.0, atol=1e-6)
    return found


@pytest.mark.parametrize("moves_known", [0, 7])
def test_they_are_the_games_of_bulk_play_wherever_they_are_taken_up(server, bulk, moves_known):
    begun = [(number, bulk[number][:moves_known]) for number in (5, 0, 7)] if moves_known else []
    assert to_the_end(LabelledGames(server, SIZE, 3, DISTRIBUTION, SEED), begun) == bulk
