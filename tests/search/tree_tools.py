"""Helpers for tests of the search: checks that hold for every tree at rest, and a readable dump."""

from itertools import pairwise

import numpy as np

from engine.go.geometry import to_vertex
from engine.search.leaves import Batch
from engine.search.priors import GONE, index_of_best, is_move, prior_of, prior_of_best
from engine.search.tree import (
    AWAITED,
    EDGE_CLASSES,
    EXPANDED,
    IN_EVALUATION,
    META_FREE_EDGES,
    META_FREE_NODE,
    META_IN_FLIGHT,
    META_N_EDGES,
    META_N_NODES,
    META_ROOT,
    META_ROOT_VISITS,
    META_USED_NODES,
    NONE,
    PENDING,
    PROVISIONAL,
    UNEXPANDED,
    Tree,
    edge_visits,
    reclaim,
)


def root_of(tree: Tree) -> int:
    """The node at the root."""
    return int(tree.meta[META_ROOT])


def edges_of(tree: Tree, node: int) -> range:
    """The edges of a node."""
    first = int(tree.first_edge[node])
    return range(first, first + int(tree.n_edges[node]))


def unchosen_of(tree: Tree, node: int) -> list[tuple[int, float]]:
    """(point, prior) of a node's moves without an edge, the likeliest first; the prior as an edge would hold it."""
    if tree.state[node] not in (EXPANDED, PROVISIONAL, AWAITED):
        return []
    steps = tree.prior_codes[node]
    order = sorted((int(steps[index]), index) for index in range(len(steps)) if steps[index] != GONE)
    return [(int(tree.point[index]), float(np.float32(prior_of(few)))) for few, index in order]


def moves_of(tree: Tree, node: int) -> list[tuple[int, float]]:
    """(point, prior) of a node's moves: those with an edge in their order, then the others, the likeliest first."""
    return [(int(tree.move[edge]), float(tree.P[edge])) for edge in edges_of(tree, node)] + unchosen_of(tree, node)


def give_moves(batch: Batch, i: int, steps: dict[int, int]) -> None:
    """Give leaf i of a batch its moves: the steps of their priors by policy index."""
    batch.prior_codes[i] = GONE
    batch.prior_codes[i, list(steps)] = list(steps.values())


def check_at_rest(tree: Tree, placeholders: bool = False, rolled: bool = False) -> None:
    """What must hold whenever nothing is in flight; dropped nodes are taken apart first.

    Args:
        placeholders: nodes may have had edges before their priors: those moves come first, whatever their priors.
        rolled: leaves may have been rolled out before the network saw them.
    """
    while reclaim(tree):
        pass
    assert tree.meta[META_IN_FLIGHT] == 0
    visits, nodes = {root_of(tree): int(tree.meta[META_ROOT_VISITS])}, []
    stack = [root_of(tree)]
    while stack:
        node = stack.pop()
        nodes.append(node)
        assert tree.state[node] not in (PENDING, AWAITED)
        _check_moves(tree, node, placeholders)
        for edge in edges_of(tree, node):
            assert tree.in_flight[edge] == 0
            n_v, n_r = int(tree.N_v[edge]), int(tree.N_r[edge])
            assert n_v == n_r or n_v == 0 or n_r == 0 or (rolled and n_v < n_r)
            assert abs(tree.W_v[edge]) <= n_v + 1e-6 and abs(tree.W_r[edge]) <= n_r + 1e-6
            assert 0.0 <= tree.W_sq[edge] <= max(n_v, n_r) + 1e-6
            if tree.child[edge] != NONE:
                child = int(tree.child[edge])
                assert child not in visits, "a tree reaches every node by one path"
                stack.append(child)
                visits[child] = max(n_v, n_r)
    assert len(nodes) == tree.meta[META_USED_NODES], "every node is reached"
    for node in nodes:
        below = sum(int(edge_visits(tree, edge)) for edge in edges_of(tree, node))
        if tree.state[node] == EXPANDED:
            assert visits[node] >= 1 + below if rolled else visits[node] == 1 + below
        elif tree.state[node] == UNEXPANDED:
            assert below == 0
            assert tree.evaluation[node] != IN_EVALUATION
    _check_rows(tree, nodes)


def _check_moves(tree: Tree, node: int, placeholders: bool) -> None:
    """Priors add up, no move is there twice, the likeliest unchosen one is known, and edges hold the likeliest."""
    moves, unchosen, n_edges = moves_of(tree, node), unchosen_of(tree, node), len(edges_of(tree, node))
    if tree.state[node] == EXPANDED:
        assert abs(sum(prior for _, prior in moves) - 1.0) < 0.01
        assert len({point for point, _ in moves}) == len(moves)
    top = tree.best_without_edge[node]
    assert is_move(top) == bool(unchosen)
    if unchosen:
        assert (tree.point[index_of_best(top)], np.float32(prior_of_best(top))) == unchosen[0]
    priors = [prior for _, prior in moves[n_edges if placeholders else 0 :]]
    assert all(before >= after - 1e-6 for before, after in pairwise(priors)), "the largest priors come first"
    assert abs(tree.edge_prior_mass[node] - sum(prior for _, prior in moves[:n_edges])) < 1e-4


def _check_rows(tree: Tree, nodes: list[int]) -> None:
    """Every row ever used belongs to one node or waits in one list."""
    free_nodes, node = [], int(tree.meta[META_FREE_NODE])
    while node != NONE:
        free_nodes.append(node)
        node = int(tree.next[node])
    assert sorted(free_nodes + nodes) == list(range(int(tree.meta[META_N_NODES])))
    edges = [(int(tree.first_edge[n]), int(tree.edge_room[n])) for n in nodes if tree.edge_room[n]]
    for block_class in range(EDGE_CLASSES):
        first = int(tree.meta[META_FREE_EDGES + block_class])
        while first != NONE:
            edges.append((first, 1 << block_class))
            first = int(tree.child[first])
    assert _covered(edges) == tree.meta[META_N_EDGES]


def _covered(runs: list[tuple[int, int]]) -> int:
    """How far runs of (start, length) reach from 0, which they must do without gap or overlap."""
    end = 0
    for first, length in sorted(runs):
        assert first == end
        end += length
    return end


def dump(tree: Tree, size: int, node: int | None = None, depth: int = 99) -> list:
    """The tree as nested lists: [vertex, N_v, W_v, N_r, W_r, W_lead, [children]] of every edge; None: the root."""
    node = root_of(tree) if node is None else node
    if depth == 0:
        return []
    return [
        [
            to_vertex(int(tree.move[edge]), size),
            int(tree.N_v[edge]),
            float(tree.W_v[edge]),
            int(tree.N_r[edge]),
            float(tree.W_r[edge]),
            float(tree.W_lead[edge]),
            dump(tree, size, int(tree.child[edge]), depth - 1) if tree.child[edge] != NONE else [],
        ]
        for edge in edges_of(tree, node)
    ]


def visits_of(edges: list) -> list:
    """Vertices and visits of a dump."""
    return [(vertex, max(n_v, n_r), visits_of(below)) for vertex, n_v, _, n_r, _, _, below in edges]
