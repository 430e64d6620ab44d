"""Which moves a search may choose: by colour and point, down to a depth."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.go.geometry import PASS, cell_count
from engine.search.leaves import MAX_DEPTH
from engine.search.tree import META_ROOT, META_ROOT_VISITS, Tree, edge_visits


@dataclass(frozen=True)
class Restriction:
    """Points that one colour leaves out, or, if ``is_exclusive``, the only ones it may choose."""

    color: int
    points: frozenset[int]
    """PASS may be one of them"""
    depth: int = 1
    """how many moves ahead, 1 or more; 1 = at the root alone"""
    is_exclusive: bool = False


@dataclass(frozen=True)
class MoveFilter:
    """Restrictions that all hold. Below the root a pass may always be chosen: there must be a move."""

    restrictions: tuple[Restriction, ...] = ()

    def __and__(self, other: "MoveFilter") -> "MoveFilter":
        """What both filters leave."""
        return MoveFilter(self.restrictions + other.restrictions)

    def allows(self, color: int, point: int) -> bool:
        """Whether the colour may choose the point at the root."""
        return all(one.color != color or (point in one.points) == one.is_exclusive for one in self.restrictions)

    def table(self, size: int, color: int) -> NDArray[np.uint8]:
        """The filter as the kernels read it.

        Args:
            color: to move at the root.
        Returns:
            uint8[D, L] by depth and point of the padded board, 1 = may be chosen; D is 1 or more, deeper all may.
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
OF_VISITS = 256
"""So few visits of moves that are left out now say nothing wrong of the root; a long analysis has some of the pass"""


def only(color: int, points: Iterable[int], depth: int = 1) -> MoveFilter:
    """The colour chooses among these points."""
    return MoveFilter((Restriction(color, frozenset(points), depth, is_exclusive=True),))


def without(color: int, points: Iterable[int], depth: int = 1) -> MoveFilter:
    """The colour leaves these points out."""
    return MoveFilter((Restriction(color, frozenset(points), depth),))


def has_excluded_visits(tree: Tree, move_filter: NDArray[np.uint8]) -> bool:
    """Whether an earlier search gave root moves that the filter leaves out more than one visit of ``OF_VISITS``.

    Args:
        move_filter: uint8[L] by point, the filter's row of the root.
    """
    root = int(tree.meta[META_ROOT])
    first, count = int(tree.first_edge[root]), int(tree.n_edges[root])
    excluded = sum(edge_visits(tree, e) for e in range(first, first + count) if not move_filter[tree.move[e]])
    return bool(OF_VISITS * excluded > tree.meta[META_ROOT_VISITS])
