"""Games counted without their dead stones."""

import numpy as np
import pytest

from engine.go.position import apply_rules, new_position
from engine.go.rules import RULE_SETS
from engine.go.seki import new_count_memory
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.records.games import COUNTED, RESIGNED, Games
from engine.records.replay import recorded
from engine.selfplay.boards import new_boards
from engine.selfplay.dead_stones import count_living
from engine.selfplay.many_games import Group
from engine.selfplay.plan import BulkOptions, setups_of
from engine.selfplay.table import NEVER, begin_games, count_games, new_table, open_games
from tests.selfplay.runs import variety

SIZE, ROOM = 7, 60
PASS_INDEX = SIZE * SIZE
WALLS = [SIZE * row + column for row in range(SIZE) for column in (2, 4)]
"""Black and White in turn: two columns, with two columns of territory behind each and one between them"""


def counted(moves, ending=COUNTED, scoring="chinese"):
    """Black's lead as the board stands, and without dead stones."""
    position = new_position(SIZE, ROOM)
    apply_rules(position, RULE_SETS[scoring], 0.5)
    table, zero = new_table(SIZE, 1, ROOM), np.zeros(1, np.int64)
    players = np.zeros((1, 2, 2), np.int64)
    fresh, rules = new_boards(SIZE, 1, ROOM), position.rules[None]
    begin_games(table, fresh, zero, zero, 1, rules, np.ones(1), players, np.full(1, NEVER), zero)
    begun = Games(size=np.array([SIZE]), offsets=np.array([0, len(moves)]), moves=np.array(moves, np.uint16))
    open_games(table, fresh, zero, rules, recorded(begun), zero, np.array([len(moves)]))
    leads, endings = np.zeros((2, 1)), np.full(1, ending, np.uint8)
    count_games(table, zero, endings, leads[0])
    count_living(table, zero, endings, new_count_memory(SIZE, ROOM), np.zeros(SIZE * SIZE, np.float32), leads[1])
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
    options = BulkOptions(variety(0.5, "chinese"), size=SIZE, passes="free", limit=30, dead_stones=dead_stones)
    with InferenceServer(HashNetwork("alphago-48"), threads=1) as server:
        group = Group([server], SIZE, 4, options.conduct(), 1, lambda numbers: setups_of(options, numbers, 1))
        differences = []
        for games, *_ in group.play(iter(range(8))):
            for k in range(len(games.size)):
                moves = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
                standing = counted(moves)[0]
                found = float(games.margin[k] * games.result[k])
                assert found == standing if dead_stones == "alive" else abs(found) <= SIZE * SIZE + 0.5
                differences.append(found - standing)
    assert any(differences) == (dead_stones == "removed") and len(differences) == 8
