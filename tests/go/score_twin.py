"""A slow twin of scoring: the eyes of a region and the score under taxes, written from the rules alone."""

from bench.reliability.rules_twin import Cell, Stones, chain_and_liberties, flood, neighbours
from engine.go.geometry import BLACK

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


def score_without_atari_black(stones: Stones, size: int) -> int:
    """Black's points in regions, less White's, but for points beside a chain in atari of the owner's own colour."""
    score = 0
    for cell in [(r, c) for r in range(size) for c in range(size) if (r, c) not in stones]:
        _, border = flood(stones, size, cell)
        owners = {stones[stone] for stone in border}
        chains = [chain_and_liberties(stones, size, stone) for stone in neighbours(size, cell) if stone in stones]
        if len(owners) == 1 and all(len(liberties) > 1 for _, liberties in chains):
            score += 1 if owners == {BLACK} else -1
    return score


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
