"""Copies of the tree: what the kernel writes is what a walk by plain Python finds."""

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import BLACK, index_of, other
from engine.go.position import META_TO_MOVE
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import NONE, edge_visits
from engine.search.values import edge_mean
from tests.go.positions import random_game
from tests.search.tree_tools import edges_of, root_of


@pytest.fixture(params=[0.0, 0.5])
def search(request):
    """A search of 300 visits of a middle game on 9x9, White to move, with network values, or with rollouts too."""
    with InferenceServer(HashNetwork(KEIMA.name), threads=1) as server:
        made = Search(SearchOptions(threads=1, seed=3, rollout_weight=request.param), server, KEIMA)
        made.set_position(random_game(9, 31, seed=2).position)
        made.run(SearchLimits(300))
        yield made
        made.close()


def walked(search):
    """By path of policy indices: colour, visits, prior, Black's value and Black's lead of every visited node."""
    tree, weight, found = search.tree, search.setup.options.rollout_weight, {}

    def add(node, path, color):
        sign = 1.0 if color == BLACK else -1.0
        for edge in edges_of(tree, node) if node != NONE else ():
            if visits := int(edge_visits(tree, edge)):
                below = (*path, int(index_of(int(tree.move[edge]), 9)))
                value, lead = edge_mean(tree, edge, weight), tree.W_lead[edge] / visits
                found[below] = color, visits, tree.P[edge], sign * value, sign * lead
                add(int(tree.child[edge]), below, other(color))

    add(root_of(tree), (), int(search.root.meta[META_TO_MOVE]))
    return found


def test_every_visited_node_has_its_row(search):
    nodes, expected, paths = search.snapshot(), walked(search), [()]
    for row in range(1, len(nodes.move)):
        path = (*paths[nodes.parent[row]], int(nodes.move[row]))
        paths.append(path)
        found = nodes.color[row], nodes.visits[row], nodes.prior[row], nodes.value_black[row], nodes.lead_black[row]
        assert found == pytest.approx(expected[path], abs=1e-5) and nodes.depth[row] == len(path)
    assert set(paths[1:]) == set(expected)


def test_children_are_consecutive_rows_by_visits(search):
    nodes = search.snapshot()
    for row, (first, count) in enumerate(zip(nodes.first_child, nodes.children, strict=True)):
        rows = np.flatnonzero(nodes.parent == row)
        assert count == len(rows)
        if count:
            assert rows[0] == first and rows[-1] == first + count - 1
            assert (np.diff(nodes.visits[rows]) <= 0).all()


def test_the_root_has_the_values_of_the_report(search):
    nodes, report = search.snapshot(), search.report()
    assert (nodes.parent[0], nodes.move[0], nodes.depth[0], nodes.prior[0]) == (NONE, NONE, 0, 1.0)
    assert nodes.visits[0] == report.visits == 300
    assert nodes.value_black[0] == pytest.approx(-report.value_stm)
    assert nodes.lead_black[0] == pytest.approx(-report.score_stm, abs=1e-5)
    assert nodes.color[0] == BLACK


def test_a_report_has_the_priors_of_all_moves(search):
    policy = search.report().policy
    assert policy.sum() == pytest.approx(1, abs=1e-3)
    for move in search.report(fewest_moves=82).moves:
        assert policy[index_of(move.point, 9)] == pytest.approx(move.prior)


def test_a_released_tree_is_empty(search):
    before = search.memory_bytes
    search.release()
    assert search.memory_bytes < before and len(search.snapshot().move) == 1
    assert search.run(SearchLimits(playouts=20)).visits == 20
    assert search.run(SearchLimits(playouts=20)).visits == 40
