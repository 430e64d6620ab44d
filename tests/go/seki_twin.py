"""A slow twin of seki: the largest set of dame that a colour may fill, by a search over all sets."""

from itertools import combinations
from typing import NamedTuple

from bench.reliability.rules_twin import Cell, Stones, flood, neighbours
from engine.go.geometry import BLACK, WHITE, other
from tests.go.score_twin import eyes


class Group(NamedTuple):
    """Stones of a colour and the regions that hang them together."""

    cells: frozenset[Cell]
    eyes: int
    touches_dame: bool

    @property
    def is_in_seki(self) -> bool:
        return self.touches_dame and self.eyes < 2


def owned_regions(stones: Stones, size: int, color: int) -> list[set[Cell]]:
    """The empty regions with stones of one colour around them."""
    empty, found = {(row, column) for row in range(size) for column in range(size)} - set(stones), []
    while empty:
        region, border = flood(stones, size, next(iter(empty)))
        empty -= region
        if {stones[cell] for cell in border} == {color}:
            found.append(region)
    return found


def groups_of(stones: Stones, size: int, color: int) -> list[Group]:
    """The groups of a colour."""
    owned = owned_regions(stones, size, color)
    inside = set().union(*owned)
    held = dict.fromkeys(inside, color) | {cell: color for cell, stone in stones.items() if stone == color}
    waiting, found = set(held), []
    while waiting:
        cells = frozenset(flood(held, size, next(iter(waiting)))[0])
        waiting -= cells
        beside = {near for cell in cells for near in neighbours(size, cell)}
        touches = any(near not in stones and near not in inside for near in beside)
        found.append(Group(cells, sum(eyes(region) for region in owned if region <= cells), touches))
    return found


def dame_to_fill(stones: Stones, size: int, color: int) -> list[Cell]:
    """The dame beside stones of the opponent's."""
    owned = set().union(*owned_regions(stones, size, BLACK), *owned_regions(stones, size, WHITE))
    empty = {(row, column) for row in range(size) for column in range(size)} - set(stones) - owned
    return sorted(cell for cell in empty if any(stones.get(near) == other(color) for near in neighbours(size, cell)))


def seki_cells(stones: Stones, size: int) -> set[Cell]:
    """Stones and regions in seki."""
    doubtful = {color: [g for g in groups_of(stones, size, color) if g.is_in_seki] for color in (BLACK, WHITE)}
    if not all(doubtful.values()):
        return set()
    for color in (BLACK, WHITE):
        points, connected = dame_to_fill(stones, size, color), set()
        for count in range(1, len(points) + 1):
            for chosen in combinations(points, count):
                groups = groups_of({**stones, **dict.fromkeys(chosen, color)}, size, color)
                alive = set().union(*(group.cells for group in groups if group.eyes >= 2))
                if alive.issuperset(chosen):
                    connected |= alive
        doubtful[color] = [group for group in doubtful[color] if not group.cells & connected]
    regions = [flood(stones, size, cell) for cell in dame_to_fill(stones, size, BLACK)]
    changed = True
    while changed:
        changed = False
        for color in (BLACK, WHITE):
            enemies = set().union(*(group.cells for group in doubtful[other(color)]))
            shared = set().union(*(border for _, border in regions if border & enemies))
            kept = [group for group in doubtful[color] if group.cells & shared]
            changed |= len(kept) < len(doubtful[color])
            doubtful[color] = kept
    return {cell for color in (BLACK, WHITE) for group in doubtful[color] for cell in group.cells}
