"""Helpers for tests of the search: checks that hold for every tree at rest, and a readable dump."""

from engine.go.geometry import to_vertex
from engine.search.tree import (
    AWAITED,
    EXPANDED,
    IN_FLIGHT,
    N_NODES,
    NONE,
    PENDING,
    ROOT,
    ROOT_VISITS,
    UNEXPANDED,
    Tree,
    candidate_point,
    candidate_prior,
    edge_visits,
)


def edges_of(tree: Tree, node: int) -> range:
    """The edges of a node."""
    first = int(tree.first_edge[node])
    return range(first, first + int(tree.n_edges[node]))


def candidates_of(tree: Tree, node: int) -> list[tuple[int, float]]:
    """(point, prior) of a node's moves."""
    first = int(tree.first_candidate[node])
    packed = tree.candidate[first : first + int(tree.n_candidates[node])]
    return [(int(candidate_point(one)), float(candidate_prior(one))) for one in packed]


def check_at_rest(tree: Tree, placeholders: bool = False) -> None:
    """What must hold whenever nothing is in flight.

    Args:
        placeholders: nodes may have had edges before their priors: those moves come first, whatever their priors.
    """
    assert tree.meta[IN_FLIGHT] == 0
    seen = 0
    stack = [(ROOT, int(tree.meta[ROOT_VISITS]))]
    while stack:
        node, visits = stack.pop()
        seen += 1
        assert tree.state[node] not in (PENDING, AWAITED)
        moves = candidates_of(tree, node)
        packed = tree.candidate[int(tree.first_candidate[node]) :][: len(moves)]
        packed = packed[len(edges_of(tree, node)) if placeholders else 0 :]
        assert (packed[:-1] >> 16 <= packed[1:] >> 16).all(), "the largest priors come first"
        if tree.state[node] == EXPANDED:
            assert abs(sum(prior for _, prior in moves) - 1.0) < 0.01
            assert len({point for point, _ in moves}) == len(moves)
            assert visits == 1 + sum(int(edge_visits(tree, edge)) for edge in edges_of(tree, node))
        elif tree.state[node] == UNEXPANDED:
            assert len(edges_of(tree, node)) == 0
        for slot, edge in enumerate(edges_of(tree, node)):
            assert tree.in_flight[edge] == 0
            assert tree.move[edge] == moves[slot][0]
            assert abs(tree.P[edge] - moves[slot][1]) < 1e-6
            n_v, n_r = int(tree.N_v[edge]), int(tree.N_r[edge])
            assert n_v == n_r or n_v == 0 or n_r == 0
            assert abs(tree.W_v[edge]) <= n_v + 1e-6 and abs(tree.W_r[edge]) <= n_r + 1e-6
            if tree.child[edge] != NONE:
                assert tree.child[edge] > node
                stack.append((int(tree.child[edge]), max(n_v, n_r)))
    assert seen == tree.meta[N_NODES], "every node is reached by one path"


def dump(tree: Tree, size: int, node: int = ROOT, depth: int = 99) -> list:
    """The tree as nested lists: [vertex, N_v, W_v, N_r, W_r, W_s, [children]] for each edge, in candidate order."""
    if depth == 0:
        return []
    return [
        [
            to_vertex(int(tree.move[edge]), size),
            int(tree.N_v[edge]),
            float(tree.W_v[edge]),
            int(tree.N_r[edge]),
            float(tree.W_r[edge]),
            float(tree.W_s[edge]),
            dump(tree, size, int(tree.child[edge]), depth - 1) if tree.child[edge] != NONE else [],
        ]
        for edge in edges_of(tree, node)
    ]


def visits_of(edges: list) -> list:
    """Vertices and visits of a dump."""
    return [(vertex, max(n_v, n_r), visits_of(below)) for vertex, n_v, _, n_r, _, _, below in edges]
