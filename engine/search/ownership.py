"""Ownership averaged over the search tree: each node's own, and the mean over a subtree.

A node's row is the network's ownership of its position, or the area if the game has ended there. The mean weighs rows
as the tree weighs values: one visit for the node's own row, and a child's visits for the mean of its subtree. A row
takes one byte for each point (361 bytes beside a node's 823 on 19x19). Only searches that are asked for ownership have
rows. They use caches of their own, because the result cache does not hold ownership.

Threads: rows are written and read with the tree's lock held.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine.go.geometry import BLACK
from engine.go.position import Position
from engine.go.rules import RULE_SCORING, SCORING_TERRITORY
from engine.go.scoring import area_owner
from engine.inference.cache import insert, probe
from engine.search.leaves import FINISHED, NEW, Batch, replay
from engine.search.report import MoveReport
from engine.search.tree import META_ROOT, NONE, Tree, edge_visits
from engine.system.jit import kernel

STEPS = 127.0
"""Rows hold ownership as int8 from -127 to 127, 127 = Black's."""
UNKNOWN = -128
"""First byte of a row if the node's ownership is unknown"""
LEAST_SHARE = 1.0 / 16384.0
"""Below a node with a smaller share of the visits no rows are read: the node's own stands for its subtree. This bounds
the time of a report."""
STACK = 1 << 16
"""Maximum number of nodes on the stack of :func:`add_up_ownership`"""
CACHE_SCALE = 60.0
"""Factor from ownership to the logits in whose place a cache stores it, so that its steps are about 1/30,000"""


class NodeOwnership:
    """The ownership rows of one tree's nodes. Threads: the tree's lock is held."""

    def __init__(self, points: int) -> None:
        """Make it without rows; ``points`` is N*N."""
        self.rows = np.full((0, points), UNKNOWN, np.int8)
        self._stack = np.zeros(STACK, np.int32)
        self._shares = np.zeros(STACK, np.float64)

    def grow(self, rows: int) -> None:
        """Grow to at least this number of rows; new ones are unknown."""
        have = len(self.rows)
        if rows > have:
            self.rows.resize((rows, self.rows.shape[1]), refcheck=False)
            self.rows[have:, 0] = UNKNOWN

    def add_up(self, tree: Tree) -> "OwnershipSums":
        """Sums of ownership over the whole tree, and over the subtree of each visited root move."""
        points, edges = self.rows.shape[1], int(tree.n_edges[tree.meta[META_ROOT]])
        moves, weights = np.zeros(edges, np.int32), np.zeros(1 + edges)
        sums = np.zeros((2, 1 + edges, points))
        count = 0
        if len(self.rows):
            count = int(add_up_ownership(tree, self.rows, self._stack, self._shares, moves, weights, sums[0], sums[1]))
        return OwnershipSums(moves[:count], weights, sums)


class OwnershipSums(NamedTuple):
    """Weighted sums of ownership: row 0 for the whole tree, row 1 + m for the subtree of visited root move m."""

    moves: np.ndarray
    """int32[M]: points of the visited root moves"""
    weights: np.ndarray
    """float64[1 + M or more]: share of the visits whose nodes have a known ownership"""
    sums: np.ndarray
    """float64[2, 1 + M or more, N*N]: weighted sums of ownership (``STEPS`` = Black's) and of its square"""

    def means(self) -> "RootOwnership":
        """Divide the sums: means and standard deviations of ownership. Threads: any, without a lock."""
        known = self.weights > 0.0
        weights = np.where(known, self.weights, 1.0)[:, None]
        means = self.sums[0] / weights
        black, stdev = means / STEPS, np.sqrt(np.maximum(0.0, self.sums[1] / weights - means * means)) / STEPS
        found = [(black[row], stdev[row]) if known[row] else (None, None) for row in range(1 + len(self.moves))]
        return RootOwnership(found[0][0], found[0][1], dict(zip(self.moves.tolist(), found[1:], strict=True)))


class RootOwnership(NamedTuple):
    """Mean ownership of a tree; arrays are float64[N*N] in policy order, 1 = Black's, None = unknown."""

    black: np.ndarray | None
    """mean over the tree"""
    stdev: np.ndarray | None
    """standard deviation over the tree"""
    moves: dict[int, tuple[np.ndarray | None, np.ndarray | None]]
    """mean and standard deviation in the subtree of each visited root move, by its point"""

    def given_to(self, moves: list[MoveReport]) -> list[MoveReport]:
        """Copies of a report's moves, with the ownership of their subtrees."""
        found = [(move, *self.moves.get(move.point, (None, None))) for move in moves]
        return [replace(move, ownership_black=black, ownership_stdev=stdev) for move, black, stdev in found]


NO_OWNERSHIP = RootOwnership(None, None, {})


@kernel
def add_up_ownership(tree, rows, stack, shares, moves, weights, sums, squares):
    """Add up the ownership of the tree's nodes, for the whole tree and for each visited root move, in a single pass.

    Args:
        rows: int8[nodes, N*N]: rows of :class:`NodeOwnership`.
        stack, shares: int32[STACK] and float64[STACK], working memory, overwritten.
        moves: int32[edges of the root], overwritten: points of the visited moves.
        weights, sums, squares: float64[1 + edges] and float64[1 + edges, N*N] twice, zeros; see
            :class:`OwnershipSums`.
    Returns:
        int: the number of visited moves.
    """
    root, count, below = tree.meta[META_ROOT], 0, 0
    first, end = tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]
    for edge in range(first, end):
        if tree.child[edge] != NONE:
            below += edge_visits(tree, edge)
    each = 1.0 / (1 + below)
    weights[0] = _add_row(rows, root, each, sums[0], squares[0])
    for edge in range(first, end):
        visits = edge_visits(tree, edge)
        if tree.child[edge] == NONE or visits == 0:
            continue
        moves[count] = tree.move[edge]
        count += 1
        known = _add_subtree(tree, rows, tree.child[edge], stack, shares, sums[count], squares[count])
        share = each * visits
        weights[count] = known
        weights[0] += share * known
        for index in range(rows.shape[1]):
            sums[0, index] += share * sums[count, index]
            squares[0, index] += share * squares[count, index]
    return count


@kernel
def _add_subtree(tree, rows, top, stack, shares, sums, squares):
    """Add the ownership of a subtree's nodes, each weighted by its share of the visits.

    Args:
        rows, stack, shares: as for :func:`add_up_ownership`.
        top: the subtree's root.
        sums, squares: float64[N*N]: sums of ownership (``STEPS`` = Black's) and of its square, added to.
    Returns:
        float: the share of the visits whose nodes have a known ownership.
    """
    stack[0], shares[0], count, known = top, 1.0, 1, 0.0
    while count > 0:
        count -= 1
        node, share = stack[count], shares[count]
        first, end = tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]
        below = 0
        if share >= LEAST_SHARE and count + tree.n_edges[node] < len(stack):
            for edge in range(first, end):
                if tree.child[edge] != NONE:
                    below += edge_visits(tree, edge)
        each = share / (1 + below)
        if below > 0:
            for edge in range(first, end):
                visits = edge_visits(tree, edge)
                if tree.child[edge] != NONE and visits > 0:
                    stack[count], shares[count] = tree.child[edge], each * visits
                    count += 1
        known += _add_row(rows, node, each, sums, squares)
    return known


@kernel
def _add_row(rows, node, weight, sums, squares):
    """Add one node's ownership, times ``weight``, and its square; returns the weight, 0 if the ownership is unknown."""
    row = rows[node]
    if row[0] == UNKNOWN:
        return 0.0
    for index in range(len(row)):
        owner = np.float64(row[index])
        sums[index] += weight * owner
        squares[index] += weight * owner * owner
    return weight


@kernel
def take_ownership(batch, count, to_move, symmetries, ownership, cache, owners):
    """Write the ownership of a batch's NEW leaves, from the network's outputs or from the cache.

    FINISHED leaves are left to :func:`finished_ownership`; the ownership of other leaves is unknown.

    Args:
        to_move: colour to move at the root.
        symmetries: int16[8, N*N + 1]: :func:`engine.features.symmetry.symmetry_table`.
        ownership: float32[S, N*N], the request's output by slot.
        cache: ``ownership`` of :class:`engine.inference.cache.OwnershipCaches`.
        owners: float32[K, N*N] by leaf, overwritten: 1 = Black's; the first item is NaN if the ownership is unknown.
    """
    points = owners.shape[1]
    for i in range(count):
        owner = owners[i]
        if batch.kind[i] == FINISHED:
            continue
        owner[0] = np.nan
        if batch.kind[i] != NEW:
            continue
        sign = 1.0 if (to_move == BLACK) == (batch.depth[i] % 2 == 0) else -1.0
        row = batch.request_slot[i]
        if row >= 0:
            indices = symmetries[batch.symmetry[i]]
            for index in range(points):
                owner[index] = CACHE_SCALE * ownership[row, indices[index]]
            insert(cache, batch.cache_key[i], points, owner, 0.0, 0.0)
        elif not probe(cache, batch.cache_key[i], points, owner)[0]:
            owner[0] = np.nan
            continue
        for index in range(points):
            owner[index] *= sign / CACHE_SCALE


def finished_ownership(root: Position, position: Position, batch: Batch, count: int, owners: np.ndarray) -> None:
    """Write the ownership of a batch's FINISHED leaves: the area, all stones alive; unknown under territory scoring.

    Args:
        root, position: as for :func:`engine.search.leaves.prepare`.
        owners: as for :func:`take_ownership`.
    """
    for i in np.flatnonzero(batch.kind[:count] == FINISHED):
        owners[i, 0] = np.nan
        if root.rules[RULE_SCORING] != SCORING_TERRITORY:
            write_area(root, position, batch, i, owners[i])


@kernel
def write_area(root, position, batch, i, owner):
    """Write the area of leaf i's board, all stones alive, into ``owner``, float32[N*N], 1 = Black's."""
    replay(root, position, batch, i)
    area_owner(position.board, owner)


@kernel
def store_ownership(batch, count, owners, rows):
    """Write the ownership of a batch's NEW and FINISHED leaves, after their backup, into the tree's rows.

    Args:
        owners: float32[K, N*N], from :func:`take_ownership` and :func:`finished_ownership`.
        rows: int8[nodes, N*N]: rows of :class:`NodeOwnership`.
    """
    for i in range(count):
        if batch.kind[i] != NEW and batch.kind[i] != FINISHED:
            continue
        row = rows[batch.leaf[i]]
        if owners[i, 0] != owners[i, 0]:
            row[0] = UNKNOWN
            continue
        for index in range(owners.shape[1]):
            row[index] = np.int8(max(-STEPS, min(STEPS, round(STEPS * owners[i, index]))))
