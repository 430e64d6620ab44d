"""Winograd's transformations of tiles, as kernels: boards to points, points to boards. Needs no torch.

Channels lie innermost, so transformations are sums of lines of channels. What the points are, and the source:
:mod:`engine.nets.compute.winograd`.
"""

import numpy as np

from engine.system.jit import inlined_kernel, kernel

TWO, FOUR, FIVE, EIGHT = (np.float32(number) for number in (2, 4, 5, 8))
"""float32, lest sums be made in float64"""
CONSTANT = 7
"""The point (1, 1), where a constant added to all outputs of a tile has its only coefficient, 1"""


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
def _copy(source, target):
    """One line's channels."""
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def transform_input(boards, points, tile, half):
    """From boards to the 36 points of all their tiles.

    Args:
        boards: float32[B, N, N, C].
        points: float32[36, B * ceil(N/4)^2, C], written.
        tile, half: float32[6, 6, C], working memory.
    """
    size = boards.shape[1]
    at = 0
    for b in range(boards.shape[0]):
        for top in range(-1, size - 1, 4):
            for left in range(-1, size - 1, 4):
                for row in range(6):
                    for column in range(6):
                        y, x = top + row, left + column
                        if 0 <= y < size and 0 <= x < size:
                            _copy(boards[b, y, x], tile[row, column])
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
def transform_output(points, boards, bias, tile, half):
    """From the 36 points of all tiles to boards.

    Args:
        points: float32[36, B * ceil(N/4)^2, C]; the bias is added to it.
        boards: float32[B, N, N, C], written.
        bias: float32[C], added to all outputs.
        tile, half: float32[>= 4, 6, C], working memory.
    """
    size = boards.shape[1]
    at = 0
    for b in range(boards.shape[0]):
        for top in range(0, size, 4):
            for left in range(0, size, 4):
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
                for y in range(top, min(size, top + 4)):
                    for x in range(left, min(size, left + 4)):
                        _copy(tile[y - top, x - left], boards[b, y, x])
                at += 1
