"""Games of policies side by side: each as its slow twin plays it, whatever shares its table."""

from contextlib import ExitStack

import numpy as np
import pytest

from engine.go.geometry import WHITE
from engine.go.position import apply_rules, new_position
from engine.go.random import seed_state
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.records.games import COUNTED, LIMIT, RESIGNED
from engine.selfplay.many_games import Group, Setups
from engine.selfplay.table import NEVER, Conduct, fill_state
from tests.selfplay.twin import SlowGame

SEED = 7


def set_up(numbers, size=5, rules="tromp-taylor", two=False, switch=None, quits=1, temperature=0.5):
    """Games in which colours alternate with the number, if there are two networks."""
    position = new_position(size)
    apply_rules(position, RULE_SETS[rules], 1.5)
    count = len(numbers)
    players = np.zeros((count, 2, 2), np.int64)
    if two:
        players[:] = np.stack([numbers % 2, 1 - numbers % 2], axis=1)[:, None]
    if switch is not None:
        players[:, 1] = 1
    return Setups(
        rules=np.repeat(position.rules[None], count, axis=0),
        temperatures=np.full(count, temperature),
        players=players,
        switches=numbers % 7 * switch if switch is not None else np.full(count, NEVER),
        quits=np.full(count, quits),
    )


@pytest.fixture
def group():
    """Groups of one or two networks of hashed outputs."""
    with ExitStack() as stack:

        def make(setups, conduct, n_networks=1, seats=4, size=5):
            servers = [stack.enter_context(InferenceServer(network, threads=1)) for network in networks(n_networks)]
            return Group(servers, size, seats, conduct, SEED, setups)

        yield make


def networks(count):
    return [HashNetwork(name, seed=seed) for name, seed in (("alphago-48", 1), ("keima-1", 2))][:count]


def by_number(batches):
    """Each finished game's moves, ending, result, margin, resigner and random ply, by number."""
    found = {}
    for batch in batches:
        games = batch.games
        for k, number in enumerate(games.number.tolist()):
            moves = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
            facts = (int(games.ending[k]), int(games.result[k]), float(games.margin[k]), int(batch.resigner[k]))
            assert number not in found
            found[number] = (moves, *facts)
    return found


def set_up_two(numbers):
    return set_up(numbers, two=True)


def set_up_switch(numbers):
    return set_up(numbers, switch=2)


def set_up_superko(numbers):
    return set_up(numbers, rules="new-zealand", temperature=1.0)


def set_up_played_out(numbers):
    return set_up(numbers, quits=0)


@pytest.mark.parametrize(
    ("setups", "conduct", "n_networks"),
    [
        (set_up, Conduct(limit=60), 1),
        (set_up, Conduct(limit=75, is_pass_last=True), 1),
        (set_up_two, Conduct(limit=75, is_pass_last=True), 2),
        (set_up_switch, Conduct(limit=75, is_pass_last=True), 2),
        (set_up_superko, Conduct(limit=75, is_pass_last=True, free_moves=6, least_share=0.05), 1),
        (set_up, Conduct(limit=75, is_pass_last=True, resign_below=-0.2, resign_count=2), 1),
        (set_up_played_out, Conduct(limit=75, is_pass_last=True, resign_below=-0.2, resign_count=2), 1),
    ],
)
def test_games_are_those_of_the_slow_twin(group, setups, conduct, n_networks):
    count = 6
    found = by_number(group(setups, conduct, n_networks).play(iter(range(count))))
    all_setups = setups(np.arange(count))
    assert sorted(found) == list(range(count))
    for number in range(count):
        slow = SlowGame(networks(n_networks), 5, number, SEED, conduct, all_setups, number)
        resigned = slow.play()
        moves, ending, result, margin, resigner = found[number]
        assert moves == slow.moves
        assert resigner == slow.resigner
        if resigned:
            assert (ending, result) == (RESIGNED, 1 if resigned == WHITE else -1) and np.isnan(margin)
        else:
            assert ending == (COUNTED if moves[-2:] == [25, 25] else LIMIT)
            lead = slow.lead_black()
            assert (result, margin) == (np.sign(lead), abs(lead))


def test_the_cases_above_meet_every_ending(group):
    resigning = Conduct(limit=75, is_pass_last=True, resign_below=-0.2, resign_count=2)
    endings = {one[1] for one in by_number(group(set_up, resigning).play(iter(range(30)))).values()}
    endings |= {one[1] for one in by_number(group(set_up, Conduct(limit=30)).play(iter(range(30)))).values()}
    assert endings == {COUNTED, RESIGNED, LIMIT}


def test_a_game_does_not_depend_on_its_company(group):
    conduct = Conduct(limit=75, is_pass_last=True)
    alone = by_number(group(set_up_two, conduct, 2, seats=1).play(iter(range(12))))
    together = by_number(group(set_up_two, conduct, 2, seats=7).play(iter(range(11, -1, -1))))
    assert alone == together


def test_a_group_plays_anew_what_is_asked_of_it(group):
    both = group(set_up, Conduct(limit=20))
    assert by_number(both.play(iter([3, 4]))) == by_number(both.play(iter([4, 3])))
    assert list(both.play(iter(()))) == []


def test_the_random_move_is_where_it_is_due_and_others_play_on(group):
    """Moves up to the switch are the first network's, whatever comes later."""
    conduct = Conduct(limit=75, is_pass_last=True)
    switched = by_number(group(set_up_switch, conduct, 2).play(iter(range(7))))
    plain = by_number(group(set_up, conduct, 1).play(iter(range(7))))
    for number in range(7):
        ply = number * 2
        assert switched[number][0][:ply] == plain[number][0][:ply]
        assert switched[number][0][ply] != 25


def test_states_in_kernels_are_those_of_seeds():
    state = np.zeros(4, np.uint64)
    for seed, stream in ((0, 0), (7, 3), (1 << 40, 1 << 50)):
        fill_state(state, seed, stream)
        assert state.tolist() == seed_state(seed, stream).tolist()
