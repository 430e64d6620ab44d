"""Move filters: which moves a search may choose, by colour and point, from the root down to a depth."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.go.geometry import PASS, cell_count
from engine.search.leaves import MAX_DEPTH
from engine.search.tree import META_ROOT, META_ROOT_VISITS, Tree, edge_visits


@dataclass(frozen=True)
class Restriction:
    """Points that one colour may not choose, or, if ``is_exclusive``, the only points it may choose."""

    color: int
    points: frozenset[int]
    """points of the padded board, perhaps also PASS"""
    depth: int = 1
    """number of moves from the root for which the restriction holds, 1 or more; 1 = at the root alone"""
    is_exclusive: bool = False
    """whether ``points`` are the only ones allowed; otherwise they are the forbidden ones"""


@dataclass(frozen=True)
class MoveFilter:
    """Allows the moves that obey all ``restrictions``, and below the root always the pass: every node keeps a move."""

    restrictions: tuple[Restriction, ...] = ()

    def __and__(self, other: "MoveFilter") -> "MoveFilter":
        """The filter that allows the moves that both filters allow."""
        return MoveFilter(self.restrictions + other.restrictions)

    def allows(self, color: int, point: int) -> bool:
        """Whether a colour may choose a point at the root."""
        return all(one.color != color or (point in one.points) == one.is_exclusive for one in self.restrictions)

    def table(self, size: int, color: int) -> NDArray[np.uint8]:
        """The filter as the kernels read it.

        Args:
            size: board size.
            color: the colour to move at the root.
        Returns:
            uint8[D, L] by depth and point of the padded board, 1 = allowed; D >= 1; from depth D on all are allowed.
        """
        depths = min(MAX_DEPTH, max((one.depth for one in self.restrictions), default=1))
        table = np.ones((depths, cell_count(size)), np.uint8)
        for one in self.restrictions:
            named = np.zeros(cell_count(size), np.uint8)
            named[list(one.points)] = 1
            first = 0 if one.color == color else 1
            table[first : one.depth : 2] &= named if one.is_exclusive else 1 - named
        table[1:, PASS] = 1
        filtered = np.flatnonzero((table == 0).any(axis=1))
        return table[: filtered[-1] + 1 if len(filtered) else 1]


EVERY_MOVE = MoveFilter()
TOLERATED_VISITS = 1 / 256
"""Maximum share of the root's visits for moves that a filter excludes: more bias the root's value. A long analysis has
visits of the pass, which are excluded for the next move."""


def only(color: int, points: Iterable[int], depth: int = 1) -> MoveFilter:
    """The filter that forbids a colour all points but these, down to a depth."""
    return MoveFilter((Restriction(color, frozenset(points), depth, is_exclusive=True),))


def without(color: int, points: Iterable[int], depth: int = 1) -> MoveFilter:
    """The filter that forbids a colour these points, down to a depth."""
    return MoveFilter((Restriction(color, frozenset(points), depth),))


def has_excluded_visits(tree: Tree, move_filter: NDArray[np.uint8]) -> bool:
    """Whether root moves that the filter excludes have more than ``TOLERATED_VISITS`` of the root's visits.

    Args:
        move_filter: uint8[L] by point, 1 = allowed at the root.
    """
    root = int(tree.meta[META_ROOT])
    first, count = int(tree.first_edge[root]), int(tree.n_edges[root])
    excluded = sum(edge_visits(tree, e) for e in range(first, first + count) if not move_filter[tree.move[e]])
    return bool(excluded > TOLERATED_VISITS * tree.meta[META_ROOT_VISITS])
