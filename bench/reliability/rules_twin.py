"""A slow twin of the board and the position, written from the rules alone.

Stones are a dict from (row, column) to colour. Chains, liberties, captures and areas are flooded anew for every
question; a ko is what the rules say it is, a move that recreates a position. Nothing is shared with the kernels but
the numbers for colours and ko rules, so where both agree they are right or wrong together by accident only.
"""

from engine.go.geometry import BLACK, WHITE, other
from engine.go.rules import KO_POSITIONAL, KO_SIMPLE

Cell = tuple[int, int]
Stones = dict[Cell, int]


def neighbours(size: int, cell: Cell) -> list[Cell]:
    """The cells beside a cell."""
    row, column = cell
    around = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
    return [(r, c) for r, c in around if 0 <= r < size and 0 <= c < size]


def flood(stones: Stones, size: int, cell: Cell) -> tuple[set[Cell], set[Cell]]:
    """The cells connected to a cell in its own colour (or emptiness), and those that border them."""
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
    """Stones after a move on an empty cell, opponent's stones captured, own stones lost by suicide."""
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
    """A game: stones, prisoners and every position so far."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.stones: Stones = {}
        self.to_move = BLACK
        self.lost = {BLACK: 0, WHITE: 0}
        self.situations: list[tuple[frozenset[tuple[Cell, int]], int]] = [(frozenset(), BLACK)]

    def play(self, cell: Cell | None, color: int) -> int:
        """Play a move, None for a pass; returns the opponent's stones captured."""
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
        """For each pair of ko rule and multi-stone suicide, the cells where the colour may play."""
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
        """Owner of every cell as Tromp and Taylor define it; cells without an owner are missing."""
        owners, seen = dict(self.stones), set()
        for cell in self.empty_cells():
            if cell not in seen:
                region, border = flood(self.stones, self.size, cell)
                seen |= region
                touched = {self.stones[beside] for beside in border}
                if len(touched) == 1:
                    owners.update(dict.fromkeys(region, touched.pop()))
        return owners


ONE_EYE_SHAPES = """
    XX  XXX  XX   .X.  .XX
    XX  .X.  XXX  XXX  XXX
                  .X.  .X.
"""
"""Regions of four to six points with a vital point: square, pyramid, bulky five, crossed five, rabbity six."""


def symmetric(cells: set[Cell]) -> set[frozenset[Cell]]:
    """A shape in all eight orientations, moved to the origin."""
    forms = set()
    for _ in range(4):
        cells = {(column, -row) for row, column in cells}
        for form in (cells, {(row, -column) for row, column in cells}):
            top, left = min(row for row, _ in form), min(column for _, column in form)
            forms.add(frozenset((row - top, column - left) for row, column in form))
    return forms


def one_eye_forms() -> set[frozenset[Cell]]:
    """All orientations of the shapes drawn above."""
    rows = ONE_EYE_SHAPES.strip("\n").split("\n")
    drawn = {(r, c): 1 for r, row in enumerate(rows) for c, sign in enumerate(row) if sign == "X"}
    shapes = {frozenset(flood(drawn, 40, cell)[0]) for cell in drawn}
    return set().union(*(symmetric(set(shape)) for shape in shapes))


ONE_EYE_FORMS = one_eye_forms()


def eyes(region: set[Cell]) -> int:
    """Eyes a region is worth: two unless it is one point to three, or has a shape with a vital point."""
    return 1 if len(region) <= 3 or symmetric(region) & ONE_EYE_FORMS else 2


def taxed_score_black(stones: Stones, size: int, per_group: int) -> int:
    """Black's points in regions of groups that are not in seki, less White's, less ``per_group`` for each such group.

    Groups are found by merging, as long as any two overlap, the sets of a region and all that surrounds it.
    """
    regions = [flood(stones, size, (r, c)) for r in range(size) for c in range(size) if (r, c) not in stones]
    dame = {cell for region, border in regions if len({stones[b] for b in border}) > 1 for cell in region}
    groups: list[set[Cell]] = []
    for region, border in regions:
        if border and not region & dame:
            merged = region.union(*(flood(stones, size, stone)[0] for stone in border))
            apart = [group for group in groups if not group & merged]
            groups = [*apart, merged.union(*(group for group in groups if group & merged))]
    score = 0
    for group in groups:
        colors = {stones[cell] for cell in group if cell in stones}
        inside = [set(cells) for cells in {frozenset(region) for region, _ in regions if region <= group}]
        touches_dame = any(beside in dame for cell in group if cell in stones for beside in neighbours(size, cell))
        if not touches_dame or sum(eyes(region) for region in inside) >= 2:
            score += (sum(map(len, inside)) - per_group) * (1 if colors == {BLACK} else -1)
    return score
