"""Games of levels side by side: those of the batch alone, of any size, and by the settings of each side."""

import pytest

from engine.features.encoder import KEIMA
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.level_choice import Level
from engine.selfplay.games import GameBatch, Player
from engine.selfplay.search_match import match_options
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.searches import new_tuning

SIZE = 5
OPTIONS = match_options(SearchPlayOptions(size=SIZE, komi=2.5), 5)
WEAK, SEARCHING = Level(1, 3.0, 0.001, 1.0, 1.0), Level(6, 0.5, 0.1, 1.0, 0.0)


@pytest.fixture
def server():
    with InferenceServer(HashNetwork(KEIMA.name), threads=1) as one:
        yield one


def games(server, pair, slots, numbers):
    """Moves of games by their numbers."""
    sides = []
    for level in pair:
        config = OPTIONS.config()._replace(visits=level.visits, fast_visits=level.visits, level=level)
        sides.append(Player(server, config, new_tuning(1.4, 0.2)))
    found = {}
    for finished in GameBatch(sides, SIZE, slots, OPTIONS.set_up).play(iter(numbers)):
        moves, ends = finished.games.moves.tolist(), finished.games.offsets.tolist()
        for i, number in enumerate(finished.games.number.tolist()):
            found[number] = moves[ends[i] : ends[i + 1]]
    return found


@pytest.mark.parametrize("pair", [(WEAK, WEAK), (SEARCHING, SEARCHING), (WEAK, SEARCHING)])
def test_games_do_not_depend_on_the_others_of_their_batch(server, pair):
    """Draws read what the draw before had left, so that the second game of a slot was passed out."""
    assert games(server, pair, 1, range(6)) == games(server, pair, 4, range(6))


def test_levels_differ(server):
    assert games(server, (WEAK, WEAK), 4, range(4)) != games(server, (SEARCHING, SEARCHING), 4, range(4))
