"""The eight symmetries of the board.

Symmetry s moves the point (row, column) so: first, if ``s & 4``, rows and columns change places; then, if
``s & 1``, the rows are reversed; then, if ``s & 2``, the columns. 0 is the identity.
"""

from functools import cache

import numpy as np

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE, Board, new_board, play
from engine.go.geometry import BLACK, WHITE, on_board_points, point_of
from engine.system.jit import kernel

SYMMETRIES = 8
INVERSE = (0, 1, 2, 3, 4, 6, 5, 7)
"""INVERSE[s] is the symmetry that undoes symmetry s."""


@kernel
def apply_symmetry(index, size, symmetry):
    """The policy index to which a symmetry moves a point's index; the index of the pass stays.

    Args:
        index: int, 0 to size * size.
        symmetry: int, 0 to 7.
    """
    if index == size * size:
        return index
    row, column = index // size, index % size
    if symmetry & 4:
        row, column = column, row
    if symmetry & 1:
        row = size - 1 - row
    if symmetry & 2:
        column = size - 1 - column
    return row * size + column


@kernel
def symmetry_steps(size, symmetry):
    """A symmetry as three ints, corner, down and right: ``row * size + column`` goes to
    ``corner + row * down + column * right``."""
    corner = apply_symmetry(0, size, symmetry)
    return corner, apply_symmetry(size, size, symmetry) - corner, apply_symmetry(1, size, symmetry) - corner


@cache
def symmetry_table(size: int) -> np.ndarray:
    """int16[8, size*size+1], read-only: ``table[s, i]`` is where index i goes under symmetry s."""
    rows = [[apply_symmetry(i, size, s) for i in range(size * size + 1)] for s in range(SYMMETRIES)]
    table = np.array(rows, np.int16)
    table.flags.writeable = False
    return table


def canonical_board(board: Board) -> tuple[Board, list[int]]:
    """The canonical orientation of a board: of its eight orientations, the one with the lexicographically first cells.

    Results computed on the new board do not depend on a position's orientation or history: fields that depend on the
    order of moves (``empty``, ``head``, ``next``) are those of stones placed in policy order. There are no prisoners.

    Args:
        board: only read.
    Returns:
        the new board, and the symmetries that map ``board`` to it: several if the position itself is symmetric.
    """
    size = int(board.meta[META_SIZE])
    points = on_board_points(size)
    cells = board.color[points]
    if board.meta[META_KO_POINT]:
        cells[points == board.meta[META_KO_POINT]] = WHITE + board.meta[META_KO_COLOR]
    views = np.empty((SYMMETRIES, size * size), np.uint8)
    np.put_along_axis(views, symmetry_table(size)[:, :-1].astype(np.int64), np.tile(cells, (SYMMETRIES, 1)), axis=1)
    words = [row.tobytes() for row in views]
    symmetries = [symmetry for symmetry, word in enumerate(words) if word == min(words)]
    target = new_board(size)
    _set_up_cells(target, views[symmetries[0]])
    return target, symmetries


@kernel
def _set_up_cells(board, cells):
    """Place stones on an empty board in policy order, then set the ko point.

    Args:
        cells: uint8[size * size]: colours; on the ko point the forbidden colour plus 2.
    """
    size = board.meta[META_SIZE]
    for index in range(len(cells)):
        if cells[index] in (BLACK, WHITE):
            play(board, point_of(index, size), np.int64(cells[index]))
    for index in range(len(cells)):
        if cells[index] > WHITE:
            board.meta[META_KO_POINT] = point_of(index, size)
            board.meta[META_KO_COLOR] = cells[index] - WHITE
