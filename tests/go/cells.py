"""Conversion between cells of slow twins, (row, column) from the top left and from 0, and points of kernels."""

from functools import cache

from bench.reliability.rules_twin import Cell
from engine.go.geometry import point_at


def to_cell(point: int, size: int) -> Cell:
    """Row and column of a point."""
    row, column = divmod(int(point), size + 1)
    return row - 1, column - 1


@cache
def to_point(cell: Cell, size: int) -> int:
    """Point of a row and column."""
    return int(point_at(*cell, size))
