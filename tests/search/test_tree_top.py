"""The top of the tree: what the kernel reads is what a walk by plain Python finds."""

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import PASS
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import NONE, edge_visits
from engine.search.tree_top import LINE_DEPTH, LINE_ROWS
from engine.search.values import edge_mean, node_value
from tests.go.positions import random_game
from tests.search.tree_tools import edges_of, moves_of, root_of


@pytest.fixture(params=[0.0, 0.5, 1.0])
def search(request):
    """A search of 400 visits of a middle game on 9x9, with network values, rollouts, or both."""
    network = HashNetwork(KEIMA.name) if request.param < 1.0 else None
    server = InferenceServer(network, threads=1) if network else None
    made = Search(SearchOptions(threads=1, seed=3, rollout_weight=request.param), server, KEIMA if network else None)
    made.set_position(random_game(9, 30, seed=2).position)
    made.run(SearchLimits(400))
    yield made
    made.close()
    if server:
        server.close()


def lines_of(tree, rollout_weight):
    """(parent's path, path, visits, prior, Q) of the most visited positions, the root first."""
    candidates, rows = [], [((), int(tree.meta[1]), 1.0, -node_value(tree, root_of(tree), rollout_weight))]

    def add(node, path):
        for edge in edges_of(tree, node) if node != NONE and len(path) < LINE_DEPTH else ():
            if edge_visits(tree, edge):
                move = (*path, int(tree.move[edge]))
                candidates.append((int(edge_visits(tree, edge)), move, float(tree.P[edge]),
                                   edge_mean(tree, edge, rollout_weight), int(tree.child[edge])))  # fmt: skip

    add(root_of(tree), ())
    while candidates and len(rows) < LINE_ROWS:
        best = max(candidates, key=lambda one: one[0])
        candidates.remove(best)
        visits, path, prior, value, child = best
        rows.append((path, visits, prior, value))
        add(child, path)
    return rows


def test_moves_are_those_of_the_root_with_their_statistics(search):
    tree, (top, moves, _) = search.tree, search.top()
    edges = {int(tree.move[edge]): edge for edge in edges_of(tree, root_of(tree))}
    expected = dict(moves_of(tree, root_of(tree)))
    assert moves == len(expected) and (len(edges) < moves or not search.setup.network)
    assert dict(zip(top.point[:moves].tolist(), top.prior[:moves].tolist(), strict=True)) == pytest.approx(expected)
    for row, point in enumerate(top.point[:moves].tolist()):
        edge = edges.get(point)
        found = (top.N_v[row], top.W_v[row], top.N_r[row], top.W_r[row])
        known = (tree.N_v, tree.W_v, tree.N_r, tree.W_r)
        assert found == (tuple(sums[edge] for sums in known) if point in edges else (0,) * 4)
    assert PASS in top.point[:moves]


def test_lines_are_the_most_visited_ones(search):
    top, _, rows = search.top()
    weight, paths = search.setup.options.rollout_weight, [()]
    for row in range(1, rows):
        parent = int(top.line_parent[row])
        assert 0 <= parent < row
        paths.append((*paths[parent], int(top.line_point[row])))
        assert top.line_depth[row] == len(paths[-1]) <= LINE_DEPTH
    expected = lines_of(search.tree, weight)
    # At equal visits any order is right, and any of the last ones.
    assert [int(n) for n in top.line_visits[:rows]] == [visits for _, visits, _, _ in expected]
    least = expected[-1][1]
    assert {path for path, visits, _, _ in expected if visits > least} <= set(paths)
    known = {path: (prior, value) for path, _, prior, value in expected}
    for row, path in enumerate(paths):
        if path in known:
            assert (top.line_prior[row], top.line_value[row]) == pytest.approx(known[path])
    assert top.line_parent[0] == NONE and rows == LINE_ROWS


def test_the_main_line_is_that_of_the_report(search):
    top, *_ = search.top()
    best = max(search.report().moves, key=lambda move: move.visits)
    assert top.main[: top.main_length[0]].tolist() == best.pv[: len(top.main)]
    assert top.main_visits[: top.main_length[0]].tolist() == best.pv_visits[: len(top.main)]


def test_before_the_first_visit_there_is_the_root_alone():
    search = Search(SearchOptions(threads=1, seed=3), None, None)
    search.set_position(random_game(9, 3, seed=2).position)
    top, moves, rows = search.top()
    assert (moves, rows, int(top.main_length[0])) == (0, 1, 0)
    assert np.all(top.line_visits == 0)
    search.close()
