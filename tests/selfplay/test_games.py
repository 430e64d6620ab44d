"""Games of policies side by side: each as its slow twin plays it, whatever shares its table."""

from contextlib import ExitStack

import numpy as np
import pytest

from engine.go.geometry import WHITE
from engine.go.position import apply_rules, new_position
from engine.go.random import seed_state
from engine.go.rules import RULE_SETS
from engine.go.seki import new_count_memory
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.records.games import COUNTED, LIMIT, RESIGNED, Games
from engine.records.replay import recorded
from engine.selfplay.games import GameBatch, Player, Setups
from engine.selfplay.plan import BulkOptions, setups_of
from engine.selfplay.table import (
    NEVER,
    GameConfig,
    begin_games,
    count_games,
    fill_state,
    new_boards,
    new_table,
)
from tests.selfplay.runs import distribution
from tests.selfplay.twin import SlowGame

SEED = 7
SIZE, ROOM = 7, 60
PASS_INDEX = SIZE * SIZE
WALLS = [SIZE * row + column for row in range(SIZE) for column in (2, 4)]
"""Black and White in turn: two columns, with two columns of territory behind each and one between them"""


def set_up(numbers, size=5, rules="tromp-taylor", switch=None, may_resign=1, temperature=0.5):
    """Games in which colours alternate with the number, if there are two networks."""
    position = new_position(size)
    apply_rules(position, RULE_SETS[rules], 1.5)
    setups = Setups(np.repeat(position.rules[None], len(numbers), axis=0), may_resign, temperature)
    if switch is None:
        return setups
    players = np.zeros((len(numbers), 2, 2), np.int64)
    players[:, 1] = 1
    return setups._replace(players=players, switches=numbers % 7 * switch)


@pytest.fixture
def batch():
    """Batches of games of one or two networks of hashed outputs."""
    with ExitStack() as stack:

        def make(setups, config, n_networks=1, slots=4, size=5):
            servers = [stack.enter_context(InferenceServer(network, threads=1)) for network in networks(n_networks)]
            return GameBatch([Player(server, config) for server in servers], size, slots, setups)

        yield make


def networks(count):
    return [HashNetwork(name, seed=seed) for name, seed in (("alphago-48", 1), ("keima-1", 2))][:count]


def by_number(batches):
    """Each finished game's moves, ending, result, margin, resigner and random ply, by number."""
    found = {}
    for finished in batches:
        games = finished.games
        for k, number in enumerate(games.number.tolist()):
            moves = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
            facts = (int(games.ending[k]), int(games.result[k]), float(games.margin[k]), int(finished.resigner[k]))
            assert number not in found
            found[number] = (moves, *facts)
    return found


def set_up_switch(numbers):
    return set_up(numbers, switch=2)


def set_up_superko(numbers):
    return set_up(numbers, rules="new-zealand", temperature=1.0)


def set_up_played_out(numbers):
    return set_up(numbers, may_resign=0)


@pytest.mark.parametrize(
    ("setups", "config", "n_networks"),
    [
        (set_up, GameConfig(60, SEED), 1),
        (set_up, GameConfig(75, SEED, sensible_moves=NEVER), 1),
        (set_up, GameConfig(75, SEED, sensible_moves=NEVER), 2),
        (set_up_switch, GameConfig(75, SEED, sensible_moves=NEVER), 2),
        (set_up_superko, GameConfig(75, SEED, sensible_moves=NEVER, free_moves=6, least_share=0.05), 1),
        (set_up, GameConfig(75, SEED, sensible_moves=NEVER, resign_below=-0.2, resign_count=2), 1),
        (set_up_played_out, GameConfig(75, SEED, sensible_moves=NEVER, resign_below=-0.2, resign_count=2), 1),
    ],
)
def test_games_are_those_of_the_slow_twin(batch, setups, config, n_networks):
    count = 6
    found = by_number(batch(setups, config, n_networks).play(iter(range(count))))
    all_setups = setups(np.arange(count))
    assert sorted(found) == list(range(count))
    for number in range(count):
        slow = SlowGame(networks(n_networks), 5, number, config, all_setups, number)
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


def test_the_cases_above_meet_every_ending(batch):
    resigning = GameConfig(75, SEED, sensible_moves=NEVER, resign_below=-0.2, resign_count=2)
    endings = {one[1] for one in by_number(batch(set_up, resigning).play(iter(range(30)))).values()}
    endings |= {one[1] for one in by_number(batch(set_up, GameConfig(30, SEED)).play(iter(range(30)))).values()}
    assert endings == {COUNTED, RESIGNED, LIMIT}


def test_a_game_does_not_depend_on_its_company(batch):
    config = GameConfig(75, SEED, sensible_moves=NEVER)
    alone = by_number(batch(set_up, config, 2, slots=1).play(iter(range(12))))
    together = by_number(batch(set_up, config, 2, slots=7).play(iter(range(11, -1, -1))))
    assert alone == together


def test_a_batch_plays_anew_what_is_asked_of_it(batch):
    both = batch(set_up, GameConfig(20, SEED))
    assert by_number(both.play(iter([3, 4]))) == by_number(both.play(iter([4, 3])))
    assert list(both.play(iter(()))) == []


def test_the_random_move_is_where_it_is_due_and_others_play_on(batch):
    """Moves up to the switch are the first network's, whatever comes later."""
    config = GameConfig(75, SEED, sensible_moves=NEVER)
    switched = by_number(batch(set_up_switch, config, 2).play(iter(range(7))))
    plain = by_number(batch(set_up, config, 1).play(iter(range(7))))
    for number in range(7):
        ply = number * 2
        assert switched[number][0][:ply] == plain[number][0][:ply]
        assert switched[number][0][ply] != 25


def test_states_in_kernels_are_those_of_seeds():
    state = np.zeros(4, np.uint64)
    for seed, stream in ((0, 0), (7, 3), (1 << 40, 1 << 50)):
        fill_state(state, seed, stream)
        assert state.tolist() == seed_state(seed, stream).tolist()


def counted(moves, ending=COUNTED, scoring="chinese"):
    """Black's lead as the board stands, and without dead stones."""
    position = new_position(SIZE, ROOM)
    apply_rules(position, RULE_SETS[scoring], 0.5)
    table, zero = new_table(SIZE, 1, ROOM, 1), np.zeros(1, np.int64)
    table.numbers[0], table.endings[0] = 0, ending
    begun = Games(size=np.array([SIZE]), offsets=np.array([0, len(moves)]), moves=np.array(moves, np.uint16))
    plies = np.array([len(moves)])
    begin_games(table, new_boards(SIZE, 1, ROOM), zero, 1, position.rules[None], recorded(begun), zero, plies)
    leads, owner, ownership = np.zeros((2, 1)), np.zeros((1, SIZE * SIZE), np.int8), np.zeros(SIZE * SIZE, np.float32)
    for lead, memory in zip(leads, (None, new_count_memory(SIZE, ROOM)), strict=True):
        count_games(table, zero, memory, ownership, lead, owner)
    return leads[:, 0].tolist()


def test_dead_stones_are_taken_off():
    # Black 7 + 14 + a stone between the walls, White 7 + 14, and a White stone in Black's corner.
    moves = [*WALLS, SIZE * 3 + 3, 0, PASS_INDEX, PASS_INDEX]
    assert counted(moves) == [8 - 22 - 0.5, 22 - 21 - 0.5]


def test_living_stones_stay():
    assert counted([*WALLS, SIZE * 3 + 3, PASS_INDEX, PASS_INDEX]) == [0.5, 0.5]
    assert np.isnan(counted(WALLS, RESIGNED)).all()


@pytest.mark.parametrize("dead_stones", ["alive", "removed"])
def test_games_in_bulk_are_counted_as_they_are_asked_to_be(dead_stones):
    options = BulkOptions(distribution(0.5, "chinese"), size=SIZE, passes="free", limit=30, dead_stones=dead_stones)
    with InferenceServer(HashNetwork("alphago-48"), threads=1) as server:
        batch = GameBatch([Player(server, options.config())], SIZE, 4, lambda numbers: setups_of(options, numbers))
        differences = []
        for games in (finished.games for finished in batch.play(iter(range(8)))):
            for k in range(len(games.size)):
                moves = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
                standing = counted(moves)[0]
                found = float(games.margin[k] * games.result[k])
                assert found == standing if dead_stones == "alive" else abs(found) <= SIZE * SIZE + 0.5
                differences.append(found - standing)
    assert any(differences) == (dead_stones == "removed") and len(differences) == 8
