"""3x3 convolutions by Winograd's minimal filtering, F(4x4, 3x3) and F(3x3, 3x3), for processors in float32.

A tile of m x m outputs depends on (m + 2) x (m + 2) inputs. Transformed (B^T d B), tile and filter need only be
multiplied point by point: 36 products instead of 144 for each pair of channels and tile of 4x4. Summed over the input
channels that is, for each of the 36 points, a product of a matrix of all tiles with a matrix of all filters, which
processors compute efficiently; another transformation (A^T m A) gives the outputs. 5 x 5 tiles of 4x4 cover a 19x19
board: 900 products where a direct convolution takes 3,249. A 9x9 board is nine tiles of 3x3: 225 instead of 729.

A *sheet* is a board with a margin of zeros, large enough for all of its tiles. *Points* are transformed tiles: for each
of the P points a matrix of all tiles (rows) and channels. Channels are the innermost axis of all arrays, padded to a
multiple of ``WIDTH``. In play, programs call the kernels (:mod:`engine.nets.compute.program`); in training,
:mod:`engine.nets.compute.winograd_learning` does.

Source: Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, section 4.
"""

import threading
from typing import NamedTuple

import numpy as np

from engine.nets.compute.simd import MOST_ROWS, WIDEST_PANEL, WIDTH, multiply_rows, on_both_sides
from engine.system.jit import kernel


class _Memory(threading.local):
    """Working memory of each thread, by name. Arrays grow to the largest size ever requested and live as long as the
    thread."""

    def __init__(self) -> None:
        self._held: dict[str, np.ndarray] = {}

    def of(self, name: str, count: int) -> np.ndarray:
        """float32[at least count], uninitialised; a thread's calls with the same name share the memory."""
        if name not in self._held or len(self._held[name]) < count:
            self._held[name] = np.empty(count, np.float32)
        return self._held[name]


MEMORY = _Memory()


Matrix = tuple[tuple[float, ...], ...]


class Filtering(NamedTuple):
    """Winograd's F(m x m, 3 x 3): the transformations of inputs, filters and outputs."""

    inputs: Matrix
    """B^T, [m + 2, m + 2]"""
    filters: Matrix
    """G, [m + 2, 3]"""
    outputs: Matrix
    """A^T, [m, m + 2]"""


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


def _transposed(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))


_three_inputs, _four_inputs = on_both_sides(THREE.inputs), on_both_sides(FOUR.inputs)
_three_outputs, _four_outputs = on_both_sides(THREE.outputs), on_both_sides(FOUR.outputs)
# The gradient of a transformation is its transpose; tiles of inputs overlap, so their gradients are added.
_three_outputs_back = on_both_sides(_transposed(THREE.outputs))
_four_outputs_back = on_both_sides(_transposed(FOUR.outputs))
_three_inputs_back = on_both_sides(_transposed(THREE.inputs), adds=True)
_four_inputs_back = on_both_sides(_transposed(FOUR.inputs), adds=True)


def tile_side(size: int) -> int:
    """The Winograd tile size m, 3 or 4, that needs fewer products on a board of ``size`` x ``size``."""
    return min((4, 3), key=lambda side: (side + 2) ** 2 * tiles_a_line(size, side) ** 2)


@kernel
def tiles_a_line(size, side):
    """Number of ``side`` x ``side`` tiles along a line of the board."""
    return -(-size // side)


@kernel
def padded(channels):
    """``channels`` rounded up to a multiple of ``WIDTH``; at least ``WIDTH``, since a product needs one term."""
    return -(-max(channels, 1) // WIDTH) * WIDTH


@kernel
def spread(board, size, count, scale, shift, has_relu, sheet, margin, width, channels):
    """Write board * scale + shift into a sheet, with or without a ReLU, and zeros around it.

    Args:
        board: float32[:], [N, N, ``count``]; ``size`` is N.
        scale, shift: float32[count].
        sheet: float32[:], [``width``, ``width``, ``channels``]; the board starts ``margin`` points from top and left.
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
    """Write sheet + bias + plus into a board, with or without a ReLU; other arguments as for :func:`spread`.

    Args:
        bias: float32[count].
        plus: float32[:], of the shape of ``board``, may be ``board`` itself; read if ``adds``.
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
    """Transform the tiles of a sheet to points.

    Args:
        side: tile size m; ``tiles`` is the number of tiles along a line.
        overlap: 2 = tiles of inputs, which overlap by two points; 0 = tiles of the outputs' gradients, which become
            the gradients of the points from which :func:`from_points` computes outputs.
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
    """Transform points to the tiles of a sheet; other arguments as for :func:`to_points`.

    Args:
        overlap: 0 = tiles of outputs; 2 = tiles of the inputs' gradients, added where tiles overlap: the points are
            the gradients of those that :func:`to_points` computes.
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
    """Multiply, for each point, all tiles by all filters.

    Args:
        points: float32[:], [P, rows, inner]: rows of tiles, inner channels.
        filters: float32[:], [P, outputs / panel, inner, panel]: outputs in panels of ``panel``.
        products: float32[:], [P, rows, outputs], written.
    """
    groups = -(-rows // MOST_ROWS)
    # While a panel is multiplied, the next one is prefetched, a part for each group of rows: filters are not in the
    # first-level cache. A part is one cache line for each input, so with few groups only some of a panel is prefetched.
    step = -(-panel // groups)
    for p in range(len(filters) // (inner * outputs)):
        for first in range(0, outputs, panel):
            weights = (p * outputs + first) * inner
            row = 0
            for group in range(groups):
                # Groups of equal size: ten rows are twice five, not nine and one.
                count = (rows - row) // (groups - group)
                at = p * rows + row
                ahead = weights + inner * (panel + group * step)
                multiply_rows(
                    points, at * inner, count, inner, filters, weights, panel, ahead, step, products,
                    at * outputs + first, outputs,
                )  # fmt: skip
                row += count


class Tiling(NamedTuple):
    """The dimensions of a convolution of a batch of boards."""

    size: int
    """N, the board size"""
    side: int
    """Winograd tile size m"""
    group: int
    """number of boards multiplied at a time"""
    boards: int
    inputs: int
    """number of input channels, C"""
    inner: int
    """number of input channels, padded"""
    outputs: int
    """number of output channels, K"""
    outer: int
    """number of output channels, padded"""


@kernel
def convolve(tiling, boards, scale, shift, has_relu, filters, panel, bias, each, plus, adds, has_relu_after, points,
             products, sheet, outputs):  # fmt: skip
    """Convolve a batch of boards with 3x3 filters.

    Args:
        tiling: :class:`Tiling`.
        boards: float32[:], [B, N, N, C].
        scale, shift, has_relu: transformation of the inputs, as for :func:`spread`.
        filters, panel: as for :func:`multiply`.
        bias: float32[K], or, if ``each``, float32[:], [B, K].
        plus: float32[:], [B, N, N, K], added to the outputs if ``adds``; may be the outputs themselves.
        has_relu_after: apply a ReLU to the outputs.
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
    """Write the points of one group of boards, and the gradients of the group's products.

    Args:
        boards, gradients: inputs and gradients of the outputs, float32[:], [B, N, N, C] and [B, N, N, K]; B is
            ``tiling.group``.
        scale, shift: float32[>= max(C, K)], ones and zeros.
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
    """Write the gradients of one group's inputs, computed from the gradients of the group's products.

    Args:
        products: as :func:`points_of` writes them.
        filters: transposed filters, [P, K, C], in the layout of :func:`multiply`.
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
"""Maximum number of tiles multiplied at a time, unless one board has more: enough for a 19x19 board, or four 9x9
boards. With 96 channels either has 350 kB of points and 350 kB of products; more would not stay in the second-level
cache until they are read."""
FILTERINGS = {3: THREE, 4: FOUR}


def filter_points(side: int) -> np.ndarray:
    """float64[P, 9]: the Kronecker product of G and G, coefficients of a filter's nine weights at each point.

    Args:
        side: tile size m.
    """
    g = np.array(FILTERINGS[side].filters)
    return np.kron(g, g)


def transform_filters(weight: np.ndarray, side: int) -> np.ndarray:
    """float32[P, C, K]: a convolution's weights[K, C, 3, 3] at all points, G g G^T, summed in float64."""
    points = filter_points(side) @ weight.transpose(2, 3, 1, 0).reshape(9, -1).astype(np.float64)
    return points.reshape(-1, weight.shape[1], weight.shape[0]).astype(np.float32)


def best_panel(count: int) -> int:
    """Width of the panels, in outputs, for ``count`` outputs: the widest of those that need the least padding."""
    return min((WIDEST_PANEL, 2 * WIDTH, WIDTH), key=lambda panel: (-(-count // panel) * panel, -panel))


def in_panels(points: np.ndarray) -> np.ndarray:
    """Filters[P, C, K] in the layout of :func:`multiply`: float32[P, K / panel, C, panel], K and C padded."""
    count, inner, outer = points.shape
    panel = best_panel(outer)
    panels = -(-outer // panel)
    filled = np.zeros((count, padded(inner), panels * panel), np.float32)
    filled[:, :inner, :outer] = points
    return np.ascontiguousarray(filled.reshape(count, -1, panels, panel).transpose(0, 2, 1, 3))


def group_of(tiles: int, most: int = TILES) -> int:
    """Number of boards of ``tiles`` x ``tiles`` tiles multiplied at a time: at most ``most`` tiles, or one board."""
    return max(1, most // tiles**2)
