"""A slow reference implementation of board and rules in plain Python.

Stones are a dict from (row, column) to colour. Chains, liberties, captures and areas are flood-filled for every query;
ko is decided by comparing positions. Only the constants for colours and ko rules are shared with the kernels, so an
error common to twin and kernels is unlikely.
"""

from functools import cache

from engine.go.geometry import BLACK, WHITE, other
from engine.go.rules import KO_POSITIONAL, KO_SIMPLE

Cell = tuple[int, int]
Stones = dict[Cell, int]


@cache
def neighbours(size: int, cell: Cell) -> tuple[Cell, ...]:
    """The up to four neighbours of a cell."""
    row, column = cell
    around = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
    return tuple((r, c) for r, c in around if 0 <= r < size and 0 <= c < size)


def flood(stones: Stones, size: int, cell: Cell) -> tuple[set[Cell], set[Cell]]:
    """The region of connected cells of one colour (or empty ones) around a cell, and the cells that border it."""
    color, inside, border, waiting = stones.get(cell), {cell}, set(), [cell]
    while waiting:
        for beside in neighbours(size, waiting.pop()):
            if stones.get(beside) != color:
                border.add(beside)
            elif beside not in inside:
                inside.add(beside)
                waiting.append(beside)
    return inside, border


def chain_and_liberties(stones: Stones, size: int, cell: Cell) -> tuple[set[Cell], set[Cell]]:
    """A chain's stones and its liberties."""
    chain, border = flood(stones, size, cell)
    return chain, {beside for beside in border if beside not in stones}


def after(stones: Stones, size: int, cell: Cell, color: int) -> tuple[Stones, int, int]:
    """Stones after a move on an empty cell, number of captured stones, number of own stones lost by suicide."""
    result = {**stones, cell: color}
    captured = lost = 0
    for beside in neighbours(size, cell):
        if result.get(beside) == other(color):
            chain, liberties = chain_and_liberties(result, size, beside)
            if not liberties:
                captured += len(chain)
                result = {place: stone for place, stone in result.items() if place not in chain}
    chain, liberties = chain_and_liberties(result, size, cell)
    if not liberties:
        lost = len(chain)
        result = {place: stone for place, stone in result.items() if place not in chain}
    return result, captured, lost


class Twin:
    """A game by the reference implementation: stones, prisoners and the history of positions."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.stones: Stones = {}
        self.to_move = BLACK
        self.lost = {BLACK: 0, WHITE: 0}
        self.situations: list[tuple[frozenset[tuple[Cell, int]], int]] = [(frozenset(), BLACK)]

    def play(self, cell: Cell | None, color: int) -> int:
        """Play a move (None = a pass); returns the number of captured stones."""
        captured = 0
        if cell is not None:
            self.stones, captured, lost = after(self.stones, self.size, cell, color)
            self.lost[other(color)] += captured
            self.lost[color] += lost
        self.to_move = other(color)
        self.situations.append((frozenset(self.stones.items()), self.to_move))
        return captured

    def empty_cells(self) -> list[Cell]:
        """Empty cells, row by row."""
        cells = [(row, column) for row in range(self.size) for column in range(self.size)]
        return [cell for cell in cells if cell not in self.stones]

    def legal_cells(self, color: int, rule_pairs: list[tuple[int, bool]]) -> list[set[Cell]]:
        """Legal moves of a colour, a set for each pair of rules: ko rule, and whether multi-stone suicide is legal."""
        positions = {stones for stones, _ in self.situations}
        situations = set(self.situations)
        legal: list[set[Cell]] = [set() for _ in rule_pairs]
        for cell in self.empty_cells():
            result, _, lost = after(self.stones, self.size, cell, color)
            stones = frozenset(result.items())
            for cells, (ko_rule, suicide) in zip(legal, rule_pairs, strict=True):
                if ko_rule == KO_SIMPLE:
                    repeats = len(self.situations) > 1 and stones == self.situations[-2][0]
                elif ko_rule == KO_POSITIONAL:
                    repeats = stones in positions
                else:
                    repeats = (stones, other(color)) in situations
                if not repeats and (lost == 0 or (suicide and lost > 1)):
                    cells.add(cell)
        return legal

    def area(self) -> dict[Cell, int]:
        """Tromp-Taylor owner of every cell; cells without an owner are missing."""
        owners, seen = dict(self.stones), set()
        for cell in self.empty_cells():
            if cell not in seen:
                region, border = flood(self.stones, self.size, cell)
                seen |= region
                touched = {self.stones[beside] for beside in border}
                if len(touched) == 1:
                    owners.update(dict.fromkeys(region, touched.pop()))
        return owners
