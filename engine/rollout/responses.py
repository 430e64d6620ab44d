"""Response patterns: the context that the last move leaves, the stones it captured, the chains it put into atari.

The paper leaves open what exactly the nakade and the save-atari feature look at: :func:`nakade_pattern` and
:func:`list_savers` define it.

Source: AlphaGo, Extended Data Table 4.
"""

import numpy as np

from engine.go.board import META_N_EMPTY, META_STRIDE, list_captures
from engine.rollout.patterns import diamond_code, for_mover
from engine.system.jit import inlined_kernel, kernel

MOST_NAKADE = 9
"""More captured stones leave no nakade."""
MOST_SAVERS = 16
DIAMOND_ROWS = (0, 2, 6, 10, 12)
"""Bit of the middle of each row of a diamond whose thirteen points are numbered row by row"""


@inlined_kernel
def context_of(cell, board, point, color):
    """Code of the last move as the side to move sees it: the diamond around it, and above that its liberties.

    Args:
        cell: uint8[L], the state of every cell.
        point: the last move, no pass.
        color: the side to move.
    Returns:
        int64: 36 bits of the diamond, then 2 of the liberties of the last move's chain, counted up to 3.
    """
    code = for_mover(diamond_code(cell, point, board.meta[META_STRIDE]), color)
    return code | (np.int64(min(board.libs[board.head[point]], 3)) << 36)


@inlined_kernel
def step_to(i, stride):
    """From a point to cell i of its diamond."""
    if i < 8:
        j = i + (i >= 4)
        return (j // 3 - 1) * stride + j % 3 - 1
    if i == 8:
        return -2 * stride
    if i == 11:
        return 2 * stride
    return -2 if i == 9 else 2


@kernel
def nakade_pattern(board, point, captured):
    """Which points of the diamond around a captured point were captured with it, 13 bits, row by row.

    Playing at such a point may keep the capturer from two eyes. Source: 8192 = 2**13 nakade patterns in Extended Data
    Table 4, "move matches a nakade pattern at captured stone".

    Args:
        board: after the capture, so that the captured points are the last of ``board.empty``.
    """
    stride, stop = board.meta[META_STRIDE], board.meta[META_N_EMPTY]
    row, column = point // stride, point % stride
    result = 0
    for i in range(stop - captured, stop):
        other = np.int64(board.empty[i])
        down, right = other // stride - row, other % stride - column
        if abs(down) + abs(right) <= 2:
            result |= 1 << (DIAMOND_ROWS[down + 2] + right)
    return result


@kernel
def list_savers(board, last, color, points):
    """List the captures of enemy chains beside own chains that the last move put into atari.

    Args:
        last: the last move, no pass.
        color: the side to move.
        points: int16[MOST_SAVERS], filled; further ones are left out.
    Returns:
        int: points listed, each once.
    """
    stride, colors, head, libs = board.meta[META_STRIDE], board.color, board.head, board.libs
    count = 0
    for beside in (last - stride, last - 1, last + 1, last + stride):
        if colors[beside] == color and libs[head[beside]] == 1:
            count = list_captures(board, beside, points, 0, count)
    return count
