"""Coordinates: the four representations of a point, and all conversions between them.

* *point*: int index into the padded arrays of :mod:`engine.go.board`; ``PASS`` is 0, which is a border cell;
* *vertex*: GTP text, ``D4`` or ``pass``; columns skip I, rows count from the bottom (GTP 2, section 2.11);
* SGF coordinates: two letters, column then row, from the top left;
* *policy index*: ``row * size + column`` from the top left, ``size * size`` for a pass.

A padded row holds ``size + 1`` cells: its border cell on the left is also the right border of the row above.
"""

import numpy as np

from engine.go.points import (  # noqa: F401 - exported too, since most files need names of both modules
    BLACK,
    BORDER,
    COLUMNS,
    EMPTY,
    MAX_SIZE,
    MIN_SIZE,
    PASS,
    WHITE,
    from_vertex,
    other,
    to_vertex,
)
from engine.go.random import GOLDEN, mixed
from engine.system.jit import kernel

MAX_CELLS = (MAX_SIZE + 1) * (MAX_SIZE + 2) + 1


@kernel
def cell_count(size):
    """Number of cells of a padded array: rows with one border cell each, border rows above and below, one last cell."""
    return (size + 1) * (size + 2) + 1


@kernel
def point_at(row, column, size):
    """Point of a row and column counted from the top left, both from 0."""
    return (row + 1) * (size + 1) + column + 1


@kernel
def index_of(point, size):
    """Policy index of a point, ``size * size`` for PASS."""
    if point == PASS:
        return size * size
    return (point // (size + 1) - 1) * size + point % (size + 1) - 1


@kernel
def point_of(index, size):
    """Point of a policy index; PASS for ``size * size``."""
    if index == size * size:
        return PASS
    return (index // size + 1) * (size + 1) + index % size + 1


def on_board_points(size: int) -> np.ndarray:
    """All points of the board in policy order, without the pass, int16[size * size]."""
    rows, columns = np.divmod(np.arange(size * size), size)
    return ((rows + 1) * (size + 1) + columns + 1).astype(np.int16)


def to_sgf(point: int, size: int) -> str:
    """SGF coordinates of a point; the empty string for a pass (FF[4])."""
    if point == PASS:
        return ""
    row, column = divmod(point, size + 1)
    return chr(96 + column) + chr(96 + row)


ZOBRIST_SEED = np.uint64(0x6B65696D61)
ZOBRIST = mixed(np.arange(4 * MAX_CELLS, dtype=np.uint64) * GOLDEN + ZOBRIST_SEED).reshape(4, MAX_CELLS)
"""uint64[4, MAX_CELLS]: fixed random words, the same on every machine. Rows BLACK and WHITE are indexed by a stone's
point; indices BLACK and WHITE of row 0 are words for the colour to move. Source: A. Zobrist, "A new hashing method with
application for game playing" (1970)."""
