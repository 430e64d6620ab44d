"""The eight symmetries of the board.

Symmetry s moves the point (row, column) so: first, if ``s & 4``, rows and columns change places; then, if
``s & 1``, the rows are reversed; then, if ``s & 2``, the columns. 0 is the identity.
"""

from functools import cache

import numpy as np

from engine.system.jit import kernel

SYMMETRIES = 8
INVERSE = (0, 1, 2, 3, 4, 6, 5, 7)
"""INVERSE[s] undoes s."""


@kernel
def apply_symmetry(index, size, symmetry):
    """The policy index that an index goes to under a symmetry; a pass stays a pass.

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
