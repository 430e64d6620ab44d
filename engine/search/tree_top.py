"""The top of the tree as arrays: all moves at the root, the principal variation, the most visited lines."""

from typing import Annotated, NamedTuple

import numpy as np

from engine.go.geometry import PASS
from engine.search.priors import GONE, is_move, prior_of
from engine.search.report import PV_LENGTH
from engine.search.tree import META_ROOT, META_ROOT_VISITS, NONE, edge_visits
from engine.search.values import edge_mean, main_line, node_value
from engine.system.arrays import allocate
from engine.system.jit import kernel

LINE_ROWS = 41
"""Number of positions in the most visited lines, the root included"""
LINE_DEPTH = 6
"""Maximum number of moves in a line"""


class TreeTop(NamedTuple):
    """A moves at the root, M moves of the principal variation, R positions of the most visited lines (``line_...``).

    Filled by :func:`read_top`, which returns the numbers of moves and positions. Sums are for the root's side to move.
    """

    point: Annotated[np.ndarray, "int16[A]"]
    """the point played, or PASS"""
    prior: Annotated[np.ndarray, "float32[A]"]
    """prior of the move"""
    N_v: Annotated[np.ndarray, "int32[A]"]
    """number of network values, as in :class:`engine.search.tree.Tree`; 0 without visits"""
    W_v: Annotated[np.ndarray, "float64[A]"]
    """sum of network values, -1 to 1 each"""
    N_r: Annotated[np.ndarray, "int32[A]"]
    """number of rollout results"""
    W_r: Annotated[np.ndarray, "float64[A]"]
    """sum of rollout results, -1 to 1 each"""

    main: Annotated[np.ndarray, "int16[M]"]
    """principal variation"""
    main_visits: Annotated[np.ndarray, "int32[M]"]
    """visits of its moves"""
    main_length: Annotated[np.ndarray, "int16[1]"]
    """number of its moves"""

    line_parent: Annotated[np.ndarray, "int16[R]"]
    """row of the position before; NONE for row 0, the root"""
    line_depth: Annotated[np.ndarray, "int16[R]"]
    """number of moves from the root"""
    line_point: Annotated[np.ndarray, "int16[R]"]
    """the move that leads to the position, a point or PASS"""
    line_visits: Annotated[np.ndarray, "int32[R]"]
    """visits of the move"""
    line_prior: Annotated[np.ndarray, "float32[R]"]
    """prior of the move; 1 for the root"""
    line_value: Annotated[np.ndarray, "float64[R]"]
    """Q of the move, -1 to 1 for its player; for the root its value for the player who moved before it"""
    line_node: Annotated[np.ndarray, "int32[R]"]
    """node of the position; undefined once the tree's lock is released"""
    line_next: Annotated[np.ndarray, "int32[R]"]
    """working memory: the node's most visited edge that has no row yet, NONE if there is none"""


def new_tree_top(size: int) -> TreeTop:
    """Allocate the arrays for a board size."""
    return allocate(TreeTop, A=size * size + 1, M=PV_LENGTH, R=LINE_ROWS)


@kernel
def read_top(tree, rollout_weight, top):
    """Fill ``top``: moves with edges first, in their order, then the others in policy order; lines by visits.

    Each line's position follows that before it. Of all positions with a visit within LINE_DEPTH moves, the most visited
    ones have rows.

    Args:
        rollout_weight: lambda (:mod:`engine.search.values`).
    Returns:
        tuple[int, int]: number of moves, 0 before the root's expansion, and number of positions, 1 or more.
    Threads: the tree's lock is held.
    """
    root = tree.meta[META_ROOT]
    top.main_length[0] = main_line(tree, root, top.main, top.main_visits)
    return _read_moves(tree, root, top), _read_lines(tree, root, rollout_weight, top)


@kernel
def _read_moves(tree, root, top):
    """Fill the arrays of the root's moves; returns their number."""
    count = 0
    for edge in range(tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]):
        top.point[count], top.prior[count] = tree.move[edge], tree.P[edge]
        top.N_v[count], top.W_v[count] = tree.N_v[edge], tree.W_v[edge]
        top.N_r[count], top.W_r[count] = tree.N_r[edge], tree.W_r[edge]
        count += 1
    if is_move(tree.best_without_edge[root]):
        for index in range(len(tree.point)):
            code = tree.prior_codes[root, index]
            if code != GONE:
                top.point[count], top.prior[count] = tree.point[index], prior_of(code)
                top.N_v[count], top.W_v[count], top.N_r[count], top.W_r[count] = 0, 0.0, 0, 0.0
                count += 1
    return count


@kernel
def _read_lines(tree, root, rollout_weight, top):
    """Fill the arrays of the most visited lines; returns the number of positions."""
    top.line_parent[0], top.line_depth[0], top.line_point[0], top.line_prior[0] = NONE, 0, PASS, 1.0
    top.line_visits[0], top.line_value[0] = tree.meta[META_ROOT_VISITS], -node_value(tree, root, rollout_weight)
    top.line_node[0], top.line_next[0] = root, _next_edge(tree, root, NONE)
    count = 1
    while count < len(top.line_point):
        above, most = NONE, 0
        for row in range(count):
            edge = top.line_next[row]
            if edge != NONE and edge_visits(tree, edge) > most:
                above, most = row, edge_visits(tree, edge)
        if above == NONE:
            break
        edge = np.int64(top.line_next[above])
        depth, child = top.line_depth[above] + 1, tree.child[edge]
        top.line_parent[count], top.line_depth[count], top.line_point[count] = above, depth, tree.move[edge]
        top.line_visits[count], top.line_prior[count] = most, tree.P[edge]
        top.line_value[count] = edge_mean(tree, edge, rollout_weight)
        top.line_node[count], top.line_next[count] = child, NONE
        if depth < LINE_DEPTH and child != NONE:
            top.line_next[count] = _next_edge(tree, child, NONE)
        top.line_next[above] = _next_edge(tree, top.line_node[above], edge)
        count += 1
    return count


@kernel
def _next_edge(tree, node, after):
    """A node's next edge by visits, at equal visits by rows, after the edge ``after``; after NONE its first edge.

    NONE if no further edge has a visit.
    """
    best, most = NONE, 0
    for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
        visits = edge_visits(tree, edge)
        if after != NONE:
            limit = edge_visits(tree, after)
            if visits > limit or (visits == limit and edge <= after):
                continue
        if visits > most:
            best, most = edge, visits
    return best
