"""Wide root noise: how it is drawn, and what it does to an analysis and does not do to a move."""

import math

import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.search import Search
from engine.search.selection import bonus
from engine.search.stoppers import SearchLimits
from engine.search.tree import META_ROOT_VISITS, new_tree
from tests.go.positions import random_game
from tests.search.tree_tools import check_at_rest


def test_half_of_the_moves_gain_the_size_of_a_normal_number():
    tree, drawn = new_tree(3), []
    for visits in range(1, 2001):
        tree.meta[META_ROOT_VISITS] = visits
        drawn += [bonus(tree, slot, 0.5) for slot in range(10)]
    gains = [one for one in drawn if one > 0.0]
    assert len(gains) / len(drawn) == pytest.approx(0.5, abs=0.02)
    assert sum(gains) / len(gains) == pytest.approx(0.5 * math.sqrt(2 / math.pi), rel=0.03)
    assert sum(one * one for one in gains) / len(gains) == pytest.approx(0.25, rel=0.05)


def test_an_analysis_looks_at_more_moves_and_the_next_search_does_not():
    with InferenceServer(HashNetwork(KEIMA.name, seed=5), threads=1) as server:
        search = Search(SearchOptions(threads=1, c_puct=0.5), server, KEIMA)
        search.set_position(random_game(9, 12, seed=3).position)
        seen = []
        for noise in (0.0, 0.2, 0.0):
            search.clear()
            report = search.run(SearchLimits(visits=400), wide_root_noise=noise)
            check_at_rest(search.tree)
            seen.append([(move.point, move.visits) for move in report.moves if move.visits])
        assert seen[0] == seen[2]
        assert len(seen[1]) > 1.5 * len(seen[0])
        search.close()
