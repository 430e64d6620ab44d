"""Keeping the tree from one position to the next: which moves lead there, and where the tree has them."""

import numpy as np

from engine.go.geometry import other
from engine.go.position import META_HANDICAP, META_N_MOVES, META_TO_MOVE, Position
from engine.search.pools import EXPANDED, META_ROOT, NONE, Tree
from engine.search.tree import follow


def edges_along(tree: Tree, moves: list[int]) -> list[int] | None:
    """The edges from the root that play these moves; None if one is missing, or the last node has no moves."""
    node, edges = int(tree.meta[META_ROOT]), []
    for move in moves:
        edge = follow(tree, node, move)
        if edge == NONE or tree.child[edge] == NONE:
            return None
        edges.append(edge)
        node = int(tree.child[edge])
    return edges if tree.state[node] == EXPANDED else None


def moves_since(old: Position, new: Position) -> list[int] | None:
    """The moves that lead from one position to the other; None if it does not follow from it.

    Moves must alternate, since the tree knows no others.
    """
    n, m = int(old.meta[META_N_MOVES]), int(new.meta[META_N_MOVES])
    if m < n or len(old.board.buffer) != len(new.board.buffer):
        return None
    same = (
        np.array_equal(old.rules, new.rules)
        and old.meta[META_HANDICAP] == new.meta[META_HANDICAP]
        and np.array_equal(old.hashes[: n + 1], new.hashes[: n + 1])
        and np.array_equal(old.moves[:n], new.moves[:n])
        and np.array_equal(old.colors[:n], new.colors[:n])
    )
    first = int(old.meta[META_TO_MOVE])
    colors = np.where(np.arange(m - n + 1) % 2 == 0, first, other(first))
    if not same or colors[-1] != new.meta[META_TO_MOVE] or not np.array_equal(colors[:-1], new.colors[n:m]):
        return None
    return [int(move) for move in new.moves[n:m]]
