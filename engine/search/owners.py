"""Who owns what, as the whole search sees it: each node's own ownership, and the mean over a subtree.

A node's row is what the network said of its position, or who owns the points of a game that has ended there; the mean
weighs it as the tree weighs its value, by its own visit among those of the subtree. Rows take a byte a point beside
the tree's (361 beside 823 on 19x19) and are there only for searches that are asked for ownership; these have caches of
their own too, since the result cache knows nothing of owners.

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
from engine.search.batch import FINISHED, NEW, Batch
from engine.search.leaves import replay
from engine.search.pools import META_ROOT, NONE, Tree
from engine.search.report import MoveReport
from engine.search.tree import edge_visits
from engine.system.jit import kernel

STEPS = 127.0
"""Rows hold ownership in whole numbers from -127 to 127, 127 = Black's."""
UNKNOWN = -128
"""First byte of a row that says nothing"""
LEAST_SHARE = 1.0 / 16384.0
"""Nodes with a smaller share of the visits stand for all that is below them, which bounds the time of a report."""
STACK = 1 << 16


CACHE_SCALE = 60.0
"""Owners in the cache fill the range of its logits, in steps of 1/30,000."""


class OwnerRows:
    """The rows of one tree. Threads: the tree's lock is held."""

    def __init__(self, points: int) -> None:
        """No rows yet.

        Args:
            points: of the board.
        """
        self.rows = np.full((0, points), UNKNOWN, np.int8)
        self._stack = np.zeros(STACK, np.int32)
        self._shares = np.zeros(STACK, np.float64)

    def grow(self, rows: int) -> None:
        """Have as many rows as the tree has nodes."""
        have = len(self.rows)
        if rows > have:
            self.rows.resize((rows, self.rows.shape[1]), refcheck=False)
            self.rows[have:, 0] = UNKNOWN

    def of_root(self, tree: Tree) -> "RootOwners":
        """Mean and deviation over the whole tree, and over what is below each move of the root."""
        root = int(tree.meta[META_ROOT])
        first, count = int(tree.first_edge[root]), int(tree.n_edges[root])
        moves = {
            int(tree.move[edge]): self._mean(tree, int(tree.child[edge]))
            for edge in range(first, first + count)
            if tree.child[edge] != NONE and edge_visits(tree, edge) > 0
        }
        return RootOwners(*self._mean(tree, root), moves)

    def _mean(self, tree: Tree, node: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Mean and deviation over a subtree, float64[N*N] each; None if nothing is known there."""
        points = self.rows.shape[1]
        sums, squares = np.zeros(points), np.zeros(points)
        if not len(self.rows):
            return None, None
        weight = float(add_owners(tree, self.rows, node, self._stack, self._shares, sums, squares))
        if weight <= 0.0:
            return None, None
        found = sums / weight
        return found, np.sqrt(np.maximum(0.0, squares / weight - found * found))


class RootOwners(NamedTuple):
    """Who owns what as a tree sees it; arrays are float64[N*N], 1 = Black's, None = not known."""

    black: np.ndarray | None
    stdev: np.ndarray | None
    moves: dict[int, tuple[np.ndarray | None, np.ndarray | None]]
    """the same two below each visited move, by its point"""

    def given_to(self, moves: list[MoveReport]) -> list[MoveReport]:
        """The moves of a report with what is known of owners below them."""
        found = []
        for move in moves:
            black, stdev = self.moves.get(move.point, (None, None))
            found.append(replace(move, ownership_black=black, ownership_stdev=stdev) if black is not None else move)
        return found


NO_OWNERS = RootOwners(None, None, {})


@kernel
def add_owners(tree, rows, top, stack, shares, sums, squares):
    """Add the owners of a subtree's nodes, each by its share of the visits.

    Args:
        rows: int8[nodes, N*N].
        stack, shares: int32[STACK] and float64[STACK], overwritten.
        sums, squares: float64[N*N]: of ownership and of its square, added to.
    Returns:
        float: the share of the visits whose owners are known.
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
        if rows[node, 0] != UNKNOWN:
            known += each
            for index in range(rows.shape[1]):
                owner = rows[node, index] / STEPS
                sums[index] += each * owner
                squares[index] += each * owner * owner
    return known


@kernel
def take_owners(batch, count, to_move, symmetries, ownership, cache, owners):
    """Write the owners of a batch's new leaves: from the network's answer, or from the cache.

    Args:
        to_move: colour to move at the root.
        symmetries: int16[8, N*N + 1]: :func:`engine.features.symmetry.symmetry_table`.
        ownership: float32[S, N*N], output slots of the request.
        cache: the owners of :class:`engine.inference.cache.OwnerCaches`.
        owners: float32[K, N*N], overwritten: 1 = Black's; nan in the first place where nothing is known.
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
        row = batch.request_row[i]
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


def finished_owners(root: Position, position: Position, batch: Batch, count: int, owners: np.ndarray) -> None:
    """Write the owners of leaves where the game has ended; nothing is known of them under territory scoring.

    Args:
        root, position: as for :func:`engine.search.leaves.prepare`.
        owners: as for :func:`take_owners`.
    """
    for i in np.flatnonzero(batch.kind[:count] == FINISHED):
        owners[i, 0] = np.nan
        if root.rules[RULE_SCORING] != SCORING_TERRITORY:
            write_area(root, position, batch, i, owners[i])


@kernel
def write_area(root, position, batch, i, owner):
    """Write who owns the points of leaf i as they stand."""
    replay(root, position, batch, i)
    area_owner(position.board, owner)


@kernel
def keep_owners(batch, count, owners, rows):
    """Write the owners of a batch's leaves, which are in the tree by now, into its rows."""
    for i in range(count):
        if batch.kind[i] != NEW and batch.kind[i] != FINISHED:
            continue
        row = rows[batch.leaf[i]]
        if owners[i, 0] != owners[i, 0]:
            row[0] = UNKNOWN
            continue
        for index in range(owners.shape[1]):
            row[index] = np.int8(max(-STEPS, min(STEPS, round(STEPS * owners[i, index]))))
