"""3x3 convolutions by Winograd's minimal filtering, F(4x4, 3x3) and F(3x3, 3x3), for processors in float32.

A tile of m x m outputs depends on (m + 2) x (m + 2) inputs. Transformed (B^T d B), tile and filter need only be
multiplied point by point: 36 products instead of 144 for each pair of channels and tile of 4x4. Summed over the input
channels that is, for each of the 36 points, a product of a matrix of all tiles with a matrix of all filters, which is
what processors do best; another transformation (A^T m A) makes outputs of it. 5 x 5 tiles of 4x4 cover a 19x19 board:
900 products where a direct convolution takes 3,249. A 9x9 board is nine tiles of 3x3: 225 products instead of 729.

A *sheet* is a board with a margin of zeros, large enough for all of its tiles. *Points* are what the transformations
make of tiles: for each of the P points a matrix of all tiles (rows) and channels. Channels lie innermost everywhere, in
a multiple of ``WIDTH``. Networks that play call the kernels by way of a program (:mod:`engine.nets.compute.program`),
networks that learn by :mod:`engine.nets.compute.winograd_learning`.

Source: Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, section 4.
"""

import threading
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.nets.compute.simd import MOST_ROWS, WIDEST_PANEL, WIDTH, multiply_rows, on_both_sides
from engine.system.jit import kernel


class _Memory(threading.local):
    """Arrays of a thread by name. They grow to the most that was ever asked for and stay as long as the thread."""

    def __init__(self) -> None:
        self._held: dict[str, np.ndarray] = {}

    def of(self, name: str, count: int) -> np.ndarray:
        """float32[at least count], holding anything; all of one name lie in the same place."""
        if name not in self._held or len(self._held[name]) < count:
            self._held[name] = np.empty(count, np.float32)
        return self._held[name]


MEMORY = _Memory()


Matrix = tuple[tuple[float, ...], ...]


class Filtering(NamedTuple):
    """Winograd's F(m x m, 3 x 3): the transformations of inputs, filters and outputs."""

    inputs: Matrix
    """B^T, m + 2 rows of as many"""
    filters: Matrix
    """G, m + 2 rows of 3"""
    outputs: Matrix
    """A^T, m rows of m + 2"""


THREE = Filtering(
    inputs=((2, -1, -2, 1, 0), (0, -2, -1, 1, 0), (0, 2, -3, 1, 0), (0, -1, 0, 1, 0), (0, 2, -1, -2, 1)),
    filters=((1 / 2, 0, 0), (-1 / 2, -1 / 2, -1 / 2), (-1 / 6, 1 / 6, -1 / 6), (1 / 6, 1 / 3, 2 / 3), (0, 0, 1)),
    outputs=((1, 1, 1, 1, 0), (0, 1, -1, 2, 0), (0, 1, 1, 4, 1)),
)
"""F(3x3, 3x3); the interpolation points are 0, 1, -1, 2 and infinity"""
FOUR = Filtering(
    inputs=(
        (4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0), (0, -2, -1, 2, 1, 0), (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    filters=(
        (1 / 4, 0, 0), (-1 / 6, -1 / 6, -1 / 6), (-1 / 6, 1 / 6, -1 / 6), (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6), (0, 0, 1),
    ),
    outputs=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
)  # fmt: skip
"""F(4x4, 3x3); the interpolation points are 0, 1, -1, 2, -2 and infinity"""


def _turned(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))


_three_inputs, _four_inputs = on_both_sides(THREE.inputs), on_both_sides(FOUR.inputs)
_three_outputs, _four_outputs = on_both_sides(THREE.outputs), on_both_sides(FOUR.outputs)
# A gradient goes back through a transformation by its transpose; tiles of inputs overlap, so their gradients add up.
_three_outputs_back, _four_outputs_back = on_both_sides(_turned(THREE.outputs)), on_both_sides(_turned(FOUR.outputs))
_three_inputs_back = on_both_sides(_turned(THREE.inputs), adds=True)
_four_inputs_back = on_both_sides(_turned(FOUR.inputs), adds=True)


def tile_side(size: int) -> int:
    """m of the filtering with fewer products for a board of ``size`` x ``size``, 3 or 4."""
    return min((4, 3), key=lambda side: (side + 2) ** 2 * tiles_a_line(size, side) ** 2)


@kernel
def tiles_a_line(size, side):
    """Tiles of ``side`` x ``side`` outputs that a line of the board needs."""
    return -(-size // side)


@kernel
def padded(channels):
    """The next multiple of ``WIDTH``, which none at all have too: products need something to add up."""
    return -(-max(channels, 1) // WIDTH) * WIDTH


@kernel
def spread(board, size, count, scale, shift, has_relu, sheet, margin, width, channels):
    """Write board * scale + shift into a sheet, perhaps through a ReLU, and zeros around it.

    Args:
        board: float32[:], [N, N, ``count``]; ``size`` is N.
        scale, shift: float32[count].
        sheet: float32[:], [``width``, ``width``, ``channels``]; the board stands ``margin`` points from above and left.
    """
    least = np.float32(0.0 if has_relu else -np.inf)
    at, source = 0, 0
    for y in range(-margin, width - margin):
        for x in range(-margin, width - margin):
            line = sheet[at : at + channels]
            if y < 0 or x < 0 or y >= size or x >= size:
                for i in range(channels):
                    line[i] = 0
            else:
                point = board[source : source + count]
                for i in range(count):
                    line[i] = max(point[i] * scale[i] + shift[i], least)
                for i in range(count, channels):
                    line[i] = 0
                source += count
            at += channels


@kernel
def gather(sheet, margin, width, channels, board, size, count, bias, plus, adds, has_relu):
    """Write sheet + bias + plus into a board, perhaps through a ReLU; other arguments as for :func:`spread`.

    Args:
        bias: float32[count].
        plus: float32[:], as ``board``, and perhaps the same; read where ``adds``.
    """
    least = np.float32(0.0 if has_relu else -np.inf)
    at = 0
    for y in range(size):
        source = ((y + margin) * width + margin) * channels
        for _ in range(size):
            line, target = sheet[source : source + count], board[at : at + count]
            if adds:
                more = plus[at : at + count]
                for i in range(count):
                    target[i] = max(line[i] + bias[i] + more[i], least)
            else:
                for i in range(count):
                    target[i] = max(line[i] + bias[i], least)
            source += channels
            at += count


@kernel
def to_points(sheet, side, tiles, overlap, channels, points, first, rows):
    """From a sheet to the points of its tiles.

    Args:
        side: m; ``tiles`` a line of the board.
        overlap: 2 = of inputs, whose tiles reach into their neighbours and a margin; 0 = the gradients of points from
            those of the outputs that :func:`from_points` makes of them.
        points: float32[:], [P, ``rows``, ``channels``]; its rows from ``first`` on are written.
    """
    width, row = side * tiles + overlap, first
    for top in range(tiles):
        for left in range(tiles):
            for i in range(0, channels, WIDTH):
                source, line = side * (top * width + left) * channels + i, width * channels
                target, step = row * channels + i, rows * channels
                if side == 4 and overlap:
                    _four_inputs(sheet, source, line, channels, points, target, 6 * step, step)
                elif overlap:
                    _three_inputs(sheet, source, line, channels, points, target, 5 * step, step)
                elif side == 4:
                    _four_outputs_back(sheet, source, line, channels, points, target, 6 * step, step)
                else:
                    _three_outputs_back(sheet, source, line, channels, points, target, 5 * step, step)
            row += 1


@kernel
def from_points(points, first, rows, side, tiles, overlap, channels, sheet):
    """From the points of a board's tiles to a sheet.

    Args:
        overlap: 0 = outputs; 2 = the gradients of inputs from those of the points that :func:`to_points` makes of them,
            added up where tiles overlap.
    """
    width, row = side * tiles + overlap, first
    if overlap:
        for i in range(width * width * channels):
            sheet[i] = 0
    for top in range(tiles):
        for left in range(tiles):
            for i in range(0, channels, WIDTH):
                source, step = row * channels + i, rows * channels
                target, line = side * (top * width + left) * channels + i, width * channels
                if side == 4 and overlap:
                    _four_inputs_back(points, source, 6 * step, step, sheet, target, line, channels)
                elif overlap:
                    _three_inputs_back(points, source, 5 * step, step, sheet, target, line, channels)
                elif side == 4:
                    _four_outputs(points, source, 6 * step, step, sheet, target, line, channels)
                else:
                    _three_outputs(points, source, 5 * step, step, sheet, target, line, channels)
            row += 1


@kernel
def multiply(points, rows, inner, filters, panel, products, outputs):
    """For each point the product of all tiles and all filters.

    Args:
        points: float32[:], [P, rows, inner].
        filters: float32[:], [P, outputs / panel, inner, panel].
        products: float32[:], [P, rows, outputs], written.
    """
    groups = -(-rows // MOST_ROWS)
    # While a panel is multiplied, the next one is fetched, a part for each group of rows: filters come from far away.
    # A part is a line of the cache for each input, so where groups are few only some of the next panel's come.
    step = -(-panel // groups)
    for p in range(len(filters) // (inner * outputs)):
        for first in range(0, outputs, panel):
            weights = (p * outputs + first) * inner
            row = 0
            for group in range(groups):
                # As even as can be: ten rows are twice five, not nine and one.
                count = (rows - row) // (groups - group)
                at = p * rows + row
                ahead = weights + inner * (panel + group * step)
                multiply_rows(
                    points, at * inner, count, inner, filters, weights, panel, ahead, step, products,
                    at * outputs + first, outputs,
                )  # fmt: skip
                row += count


class Tiling(NamedTuple):
    """A batch of boards as convolutions take it."""

    size: int
    """N"""
    side: int
    """m of the filtering"""
    group: int
    """boards that are multiplied at a time"""
    boards: int
    inputs: int
    """channels in the boards, C"""
    inner: int
    """the same, padded"""
    outputs: int
    """channels of the outputs, K"""
    outer: int
    """the same, padded"""


@kernel
def convolve(tiling, boards, scale, shift, has_relu, filters, panel, bias, each, plus, adds, has_relu_after, points,
             products, sheet, outputs):  # fmt: skip
    """Convolve some boards.

    Args:
        tiling: :class:`Tiling`.
        boards: float32[:], [B, N, N, C].
        scale, shift, has_relu: what is done to them first, as for :func:`spread`.
        filters, panel: as for :func:`multiply`.
        bias: float32[K], or with ``each`` float32[:], [B, K].
        plus: float32[:], [B, N, N, K], added to the outputs where ``adds``; may be the outputs themselves.
        has_relu_after: of the outputs.
        points, products, sheet: float32[:], working memory: points and products of a group, one sheet.
        outputs: float32[:], [B, N, N, K], written.
    """
    size, side, inputs, count = tiling.size, tiling.side, tiling.inputs, tiling.outputs
    tiles = tiles_a_line(size, side)
    whole, made = size * size * inputs, size * size * count
    for first in range(0, tiling.boards, tiling.group):
        group = min(tiling.group, tiling.boards - first)
        rows = group * tiles * tiles
        for b in range(group):
            board = boards[(first + b) * whole : (first + b + 1) * whole]
            spread(board, size, inputs, scale, shift, has_relu, sheet, 1, side * tiles + 2, tiling.inner)
            to_points(sheet, side, tiles, 2, tiling.inner, points, b * tiles * tiles, rows)
        multiply(points, rows, tiling.inner, filters, panel, products, tiling.outer)
        for b in range(group):
            from_points(products, b * tiles * tiles, rows, side, tiles, 0, tiling.outer, sheet)
            start, of = (first + b) * made, (first + b) * count if each else 0
            gather(
                sheet, 0, side * tiles, tiling.outer, outputs[start : start + made], size, count, bias[of : of + count],
                plus[start : start + made], adds, has_relu_after,
            )  # fmt: skip


@kernel
def points_of(tiling, boards, gradients, scale, shift, sheet, points, products):
    """The points of one group of boards, and the gradients of its products.

    Args:
        boards, gradients: float32[:], [B, N, N, C] and [B, N, N, K]; B is ``tiling.group``.
        scale, shift: float32[>= C, K], ones and zeros.
        points, products: float32[:], [P, rows, C] and [P, rows, K], channels padded; written.
    """
    size, side = tiling.size, tiling.side
    tiles = tiles_a_line(size, side)
    rows, whole, made = tiling.group * tiles * tiles, size * size * tiling.inputs, size * size * tiling.outputs
    for b in range(tiling.group):
        board, gradient = boards[b * whole : (b + 1) * whole], gradients[b * made : (b + 1) * made]
        spread(board, size, tiling.inputs, scale, shift, False, sheet, 1, side * tiles + 2, tiling.inner)
        to_points(sheet, side, tiles, 2, tiling.inner, points, b * tiles * tiles, rows)
        spread(gradient, size, tiling.outputs, scale, shift, False, sheet, 0, side * tiles, tiling.outer)
        to_points(sheet, side, tiles, 0, tiling.outer, products, b * tiles * tiles, rows)


@kernel
def boards_of(tiling, products, filters, panel, zeros, sheet, points, boards):
    """The gradients of one group of boards from those of its products.

    Args:
        products: as :func:`points_of` writes them.
        filters: their transposes, [P, K, C], as :func:`multiply` reads them.
        zeros: float32[>= C].
        points: float32[:], working memory.
        boards: float32[:], [B, N, N, C], written.
    """
    size, side = tiling.size, tiling.side
    tiles = tiles_a_line(size, side)
    rows, whole = tiling.group * tiles * tiles, size * size * tiling.inputs
    multiply(products, rows, tiling.outer, filters, panel, points, tiling.inner)
    for b in range(tiling.group):
        from_points(points, b * tiles * tiles, rows, side, tiles, 2, tiling.inner, sheet)
        board = boards[b * whole : (b + 1) * whole]
        gather(sheet, 1, side * tiles + 2, tiling.inner, board, size, tiling.inputs, zeros, board, False, False)


TILES = 40
"""Tiles that are multiplied at a time, at most, unless one board has more: a 19x19 board, or four 9x9 boards. Of 96
channels these have 350 kB of points and as much of products; with more boards they would not be in the second-level
cache any more when they are read again."""
FILTERINGS = {3: THREE, 4: FOUR}


def transform_filters(weight: Tensor, side: int) -> Tensor:
    """float32[P, C, K]: a convolution's weights[K, C, 3, 3] at all points, G g G^T, summed in float64.

    Args:
        side: m.
    """
    g = torch.tensor(FILTERINGS[side].filters, dtype=torch.float64)
    points = torch.einsum("ia,kcab,jb->ijck", g, weight.double(), g)
    return points.reshape(-1, weight.shape[1], weight.shape[0]).float()


def best_panel(count: int) -> int:
    """How many outputs of ``count`` are summed at a time: of what needs the least padding, the most."""
    return min((WIDEST_PANEL, 2 * WIDTH, WIDTH), key=lambda panel: (-(-count // panel) * panel, -panel))


def in_panels(points: Tensor) -> Tensor:
    """float32[P, K / panel, C, panel], both padded: filters[P, C, K] as :func:`multiply` of the kernels reads them."""
    count, inner, outer = points.shape
    panel = best_panel(outer)
    panels = -(-outer // panel)
    filled = points.new_zeros(count, padded(inner), panels * panel)
    filled[:, :inner, :outer] = points
    return filled.view(count, -1, panels, panel).transpose(1, 2).contiguous()


def group_of(tiles: int, most: int = TILES) -> int:
    """Boards of ``tiles`` x ``tiles`` that are multiplied at a time: at most ``most`` tiles in all, or one board."""
    return max(1, most // tiles**2)
