"""Winograd's transformations of tiles and their gradients, as kernels: boards to points, points to boards. No torch.

Channels lie innermost, so transformations are sums of lines of channels. What the points are, and the source:
:mod:`engine.nets.compute.winograd`.

Tiles cover sheets of ``side`` x ``side`` boards with a line of zeros between them: nine tiles of 4x4 hang far over a
9x9 board, while 25 cover the 19x19 points of four. :func:`tiles_of` counts them.
"""

import numpy as np

from engine.system.jit import inlined_kernel, kernel

TWO, FOUR, FIVE, EIGHT = (np.float32(number) for number in (2, 4, 5, 8))
"""float32, lest sums be made in float64"""
CONSTANT = 7
"""The point (1, 1), where a constant added to all outputs of a tile has its only coefficient, 1"""


def tiles_of(count: int, size: int, side: int) -> int:
    """Tiles of ``count`` boards of ``size`` x ``size`` on sheets of ``side`` x ``side``."""
    return -(-count // side**2) * (-(-(side * (size + 1) - 1) // 4)) ** 2


def best_side(size: int) -> int:
    """1 or 2: the sheets with fewer tiles a board, where there are many boards."""
    return min((1, 2), key=lambda side: (tiles_of(4, size, side), side))


@inlined_kernel
def _six(a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5):
    """B^T: six lines into six."""
    # A loop for each line of output: LLVM cannot rule out that two of them overlap, and would not vectorise one loop.
    n = len(a0)
    for i in range(n):
        b0[i] = FOUR * a0[i] - FIVE * a2[i] + a4[i]
    for i in range(n):
        b1[i] = (a4[i] - FOUR * a2[i]) + (a3[i] - FOUR * a1[i])
    for i in range(n):
        b2[i] = (a4[i] - FOUR * a2[i]) - (a3[i] - FOUR * a1[i])
    for i in range(n):
        b3[i] = (a4[i] - a2[i]) + TWO * (a3[i] - a1[i])
    for i in range(n):
        b4[i] = (a4[i] - a2[i]) - TWO * (a3[i] - a1[i])
    for i in range(n):
        b5[i] = FOUR * a1[i] - FIVE * a3[i] + a5[i]


@inlined_kernel
def _four(a0, a1, a2, a3, a4, a5, b0, b1, b2, b3):
    """A^T: six lines into four."""
    n = len(a0)
    for i in range(n):
        b0[i] = a0[i] + (a1[i] + a2[i]) + (a3[i] + a4[i])
    for i in range(n):
        b1[i] = (a1[i] - a2[i]) + TWO * (a3[i] - a4[i])
    for i in range(n):
        b2[i] = (a1[i] + a2[i]) + FOUR * (a3[i] + a4[i])
    for i in range(n):
        b3[i] = (a1[i] - a2[i]) + EIGHT * (a3[i] - a4[i]) + a5[i]


@inlined_kernel
def _six_back(b0, b1, b2, b3, b4, b5, a0, a1, a2, a3, a4, a5):
    """B: the gradients of six lines from those of what :func:`_six` makes of them."""
    n = len(b0)
    for i in range(n):
        a0[i] = FOUR * b0[i]
    for i in range(n):
        a1[i] = FOUR * ((b2[i] - b1[i]) + b5[i]) + TWO * (b4[i] - b3[i])
    for i in range(n):
        a2[i] = -(FIVE * b0[i] + FOUR * (b1[i] + b2[i]) + (b3[i] + b4[i]))
    for i in range(n):
        a3[i] = (b1[i] - b2[i]) + TWO * (b3[i] - b4[i]) - FIVE * b5[i]
    for i in range(n):
        a4[i] = b0[i] + (b1[i] + b2[i]) + (b3[i] + b4[i])
    for i in range(n):
        a5[i] = b5[i]


@inlined_kernel
def _four_back(b0, b1, b2, b3, a0, a1, a2, a3, a4, a5):
    """A: the gradients of six lines from those of what :func:`_four` makes of them."""
    n = len(b0)
    for i in range(n):
        a0[i] = b0[i]
    for i in range(n):
        a1[i] = (b0[i] + b2[i]) + (b1[i] + b3[i])
    for i in range(n):
        a2[i] = (b0[i] + b2[i]) - (b1[i] + b3[i])
    for i in range(n):
        a3[i] = (b0[i] + FOUR * b2[i]) + TWO * (b1[i] + FOUR * b3[i])
    for i in range(n):
        a4[i] = (b0[i] + FOUR * b2[i]) - TWO * (b1[i] + FOUR * b3[i])
    for i in range(n):
        a5[i] = b3[i]


@inlined_kernel
def _board_at(y, x, sheet, side, boards):
    """The board at a point of a sheet, -1 = none there."""
    pitch = boards.shape[1] + 1
    if y < 0 or x < 0 or y % pitch == pitch - 1 or x % pitch == pitch - 1:
        return -1
    if y >= side * pitch or x >= side * pitch:
        return -1
    board = (sheet * side + y // pitch) * side + x // pitch
    return board if board < boards.shape[0] else -1


@inlined_kernel
def _copy(source, target):
    """One line's channels."""
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def transform_input(boards, side, points, tile, half):
    """From boards to the 36 points of all their tiles.

    Args:
        boards: float32[B, N, N, C].
        points: float32[36, T, C], written; T = :func:`tiles_of` them.
        tile, half: float32[6, 6, C], working memory.
    """
    pitch = boards.shape[1] + 1
    at = 0
    for sheet in range(-(-boards.shape[0] // side**2)):
        for top in range(-1, side * pitch - 2, 4):
            for left in range(-1, side * pitch - 2, 4):
                for row in range(6):
                    for column in range(6):
                        y, x = top + row, left + column
                        b = _board_at(y, x, sheet, side, boards)
                        if b >= 0:
                            _copy(boards[b, y % pitch, x % pitch], tile[row, column])
                        else:
                            for i in range(tile.shape[2]):
                                tile[row, column, i] = 0
                for k in range(6):
                    _six(
                        tile[0, k], tile[1, k], tile[2, k], tile[3, k], tile[4, k], tile[5, k],
                        half[0, k], half[1, k], half[2, k], half[3, k], half[4, k], half[5, k],
                    )  # fmt: skip
                for k in range(6):
                    h, p = half[k], 6 * k
                    _six(
                        h[0], h[1], h[2], h[3], h[4], h[5], points[p, at], points[p + 1, at], points[p + 2, at],
                        points[p + 3, at], points[p + 4, at], points[p + 5, at],
                    )  # fmt: skip
                at += 1


@kernel
def transform_output(points, boards, side, bias, tile, half):
    """From the 36 points of all tiles to boards.

    Args:
        points: float32[36, T, C]; the bias is added to it.
        boards: float32[B, N, N, C], written.
        bias: float32[C], added to all outputs.
        tile, half: float32[>= 4, 6, C], working memory.
    """
    pitch = boards.shape[1] + 1
    at = 0
    for sheet in range(-(-boards.shape[0] // side**2)):
        for top in range(0, side * pitch - 1, 4):
            for left in range(0, side * pitch - 1, 4):
                constant = points[CONSTANT, at]
                for i in range(len(bias)):
                    constant[i] += bias[i]
                for k in range(6):
                    _four(
                        points[k, at], points[6 + k, at], points[12 + k, at], points[18 + k, at], points[24 + k, at],
                        points[30 + k, at], half[0, k], half[1, k], half[2, k], half[3, k],
                    )  # fmt: skip
                for k in range(4):
                    h, t = half[k], tile[k]
                    _four(h[0], h[1], h[2], h[3], h[4], h[5], t[0], t[1], t[2], t[3])
                for row in range(4):
                    for column in range(4):
                        y, x = top + row, left + column
                        b = _board_at(y, x, sheet, side, boards)
                        if b >= 0:
                            _copy(tile[row, column], boards[b, y % pitch, x % pitch])
                at += 1


@kernel
def output_gradient(boards, side, points, tile, half):
    """The gradients of points from those of the boards that :func:`transform_output` makes of them.

    Args:
        boards: float32[B, N, N, C], gradients.
        points: float32[36, T, C], written.
        tile, half: float32[6, 6, C], working memory.
    """
    pitch = boards.shape[1] + 1
    at = 0
    for sheet in range(-(-boards.shape[0] // side**2)):
        for top in range(0, side * pitch - 1, 4):
            for left in range(0, side * pitch - 1, 4):
                for row in range(4):
                    for column in range(4):
                        y, x = top + row, left + column
                        b = _board_at(y, x, sheet, side, boards)
                        if b >= 0:
                            _copy(boards[b, y % pitch, x % pitch], tile[row, column])
                        else:
                            for i in range(tile.shape[2]):
                                tile[row, column, i] = 0
                for k in range(4):
                    _four_back(
                        tile[0, k], tile[1, k], tile[2, k], tile[3, k],
                        half[0, k], half[1, k], half[2, k], half[3, k], half[4, k], half[5, k],
                    )  # fmt: skip
                for k in range(6):
                    h, p = half[k], 6 * k
                    _four_back(
                        h[0], h[1], h[2], h[3], points[p, at], points[p + 1, at], points[p + 2, at],
                        points[p + 3, at], points[p + 4, at], points[p + 5, at],
                    )  # fmt: skip
                at += 1


@kernel
def input_gradient(points, boards, side, tile, half):
    """The gradients of boards from those of the points that :func:`transform_input` makes of them.

    Args:
        points: float32[36, T, C], gradients.
        boards: float32[B, N, N, C], written.
        tile, half: float32[6, 6, C], working memory.
    """
    pitch = boards.shape[1] + 1
    boards[:] = 0
    at = 0
    for sheet in range(-(-boards.shape[0] // side**2)):
        for top in range(-1, side * pitch - 2, 4):
            for left in range(-1, side * pitch - 2, 4):
                for k in range(6):
                    _six_back(
                        points[k, at], points[6 + k, at], points[12 + k, at], points[18 + k, at], points[24 + k, at],
                        points[30 + k, at], half[0, k], half[1, k], half[2, k], half[3, k], half[4, k], half[5, k],
                    )  # fmt: skip
                for k in range(6):
                    h, t = half[k], tile[k]
                    _six_back(h[0], h[1], h[2], h[3], h[4], h[5], t[0], t[1], t[2], t[3], t[4], t[5])
                for row in range(6):
                    for column in range(6):
                        y, x = top + row, left + column
                        b = _board_at(y, x, sheet, side, boards)
                        if b >= 0:
                            line, more = boards[b, y % pitch, x % pitch], tile[row, column]
                            for i in range(len(line)):
                                line[i] += more[i]
                at += 1
