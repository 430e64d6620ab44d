"""Where things are on a board, and what they are called.

Four names for one place, and the only conversions between them:

* *point*: int index into the padded arrays of :mod:`engine.go.board`; ``PASS`` is 0, which is a border cell;
* *vertex*: GTP text, ``D4`` or ``pass``; columns skip I, rows count from the bottom (GTP 2, section 2.11);
* SGF coordinates: two letters, column then row, from the top left;
* *policy index*: ``row * size + column`` from the top left, ``size * size`` for a pass.

A padded row holds ``size + 1`` cells: one border cell on the left, which also closes the row before it.
"""

import numpy as np

from engine.go.splitmix import GOLDEN, mixed
from engine.system.jit import kernel

MIN_SIZE = 2
MAX_SIZE = 25
EMPTY, BLACK, WHITE, BORDER = 0, 1, 2, 3
PASS = 0
COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
MAX_CELLS = (MAX_SIZE + 1) * (MAX_SIZE + 2) + 1


@kernel
def cell_count(size):
    """Cells of the padded array: a border row above and below, one border cell a row, one for the last diagonal."""
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
    """All points in policy order, int16[size * size]."""
    rows, columns = np.divmod(np.arange(size * size), size)
    return ((rows + 1) * (size + 1) + columns + 1).astype(np.int16)


def to_vertex(point: int, size: int) -> str:
    """GTP text of a point: ``D4``, or ``pass``."""
    if point == PASS:
        return "pass"
    row, column = divmod(point, size + 1)
    return f"{COLUMNS[column - 1]}{size + 1 - row}"


def from_vertex(text: str, size: int) -> int:
    """Point of a GTP vertex, either case.

    Raises:
        ValueError: the text is no vertex of this board; the message names both.
    """
    word = text.strip().upper()
    if word == "PASS":
        return PASS
    column = COLUMNS.find(word[:1]) if word else -1
    digits = word[1:]
    if column >= 0 and digits.isascii() and digits.isdigit() and len(digits) <= 2:
        row = size - int(digits)
        if 0 <= row < size and column < size:
            return point_at(row, column, size)
    raise ValueError(f"{text!r} is no vertex of a {size}x{size} board")


def to_sgf(point: int, size: int) -> str:
    """SGF coordinates of a point; the empty string for a pass (FF[4])."""
    if point == PASS:
        return ""
    row, column = divmod(point, size + 1)
    return chr(96 + column) + chr(96 + row)


def other(color: int) -> int:
    """The opponent's colour."""
    return 3 - color


ZOBRIST_SEED = np.uint64(0x6B65696D61)
ZOBRIST = mixed(np.arange(4 * MAX_CELLS, dtype=np.uint64) * GOLDEN + ZOBRIST_SEED).reshape(4, MAX_CELLS)
"""uint64[4, MAX_CELLS]: fixed random words, the same on every machine. Rows BLACK and WHITE belong to stones by point;
row 0 holds words for other purposes (index 1, 2: colour to move). Source: A. Zobrist, "A new hashing method with
application for game playing" (1970)."""
