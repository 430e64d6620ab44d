"""A network's whole forward pass as one kernel: it reads a program line by line.

What a program is and who writes it: :mod:`engine.nets.compute.program`. Slots lie one after the other in the memory of
a batch: points as float32[B, N*N, pitch], vectors as float32[B, pitch]. Pitches are multiples of ``WIDTH``; what is
beyond a slot's channels is zero.
"""

import numpy as np

from engine.nets.compute.lanes import WIDTH, mish, silu
from engine.nets.compute.pooling import CENTRE_SIZE, MEAN_SQUARE, SIZE_UNIT
from engine.nets.compute.winograd_tiles import Tiling, convolve, multiply, padded
from engine.system.jit import kernel

CONVOLUTION, PRODUCT, COLUMNS, POOL, NORM = range(5)
"""Kinds of lines"""
IDENTITY, RELU, MISH, SILU = range(4)
"""Activations"""
WITH_MAXIMUM, BY_SIZE = range(2)
"""Kinds of pooling: ``pooled`` and ``pooled_by_size`` of :mod:`engine.nets.compute.pooling`"""
PLANES, GLOBALS = range(2)
"""The slots of the inputs, the first that every program makes"""
LINE = np.dtype(
    [
        ("kind", np.int64),
        # Slots by number; those that a line does without are -1.
        ("source", np.int64),
        ("target", np.int64),
        ("plus", np.int64),  # what is added to the outputs, perhaps the target
        ("bias_slot", np.int64),  # a vector that is added at every point, in place of the bias
        ("is_vector", np.int64),  # whether the source is one
        ("inner", np.int64),  # pitch of the source
        ("pitch", np.int64),  # pitch of the target
        # Constants: where they begin.
        ("filters", np.int64),
        ("filter_count", np.int64),  # how many numbers the filters are
        ("bias", np.int64),  # [pitch]
        ("scale", np.int64),  # [2, inner]: scales and shifts of the source's channels
        ("panel", np.int64),  # outputs that are summed at a time
        ("before", np.int64),  # activations, of the scaled source and of the outputs
        ("after", np.int64),
        # Of columns: a filter's points to each side of its centre, and the distance from one to the next.
        ("reach_y", np.int64),
        ("reach_x", np.int64),
        ("step_y", np.int64),
        ("step_x", np.int64),
        ("pooling", np.int64),
    ]
)
"""A line of a program; what does not concern its kind is 0"""


@kernel
def _load(planes, globals_, boards, vectors):
    """Copy planes[B, C, N*N] and globals_[B, G] into their slots."""
    count, channels, points = planes.shape
    pitch, global_pitch = padded(channels), padded(globals_.shape[1])
    for b in range(count):
        for p in range(points):
            at = (b * points + p) * pitch
            for c in range(channels):
                boards[at + c] = planes[b, c, p]
            for c in range(channels, pitch):
                boards[at + c] = 0
        for i in range(global_pitch):
            vectors[b * global_pitch + i] = globals_[b, i] if i < globals_.shape[1] else np.float32(0)


@kernel
def _activate(numbers, activation):
    """Replace float32[:] by its activation."""
    if activation == RELU:
        for i in range(len(numbers)):
            numbers[i] = max(numbers[i], np.float32(0))
    elif activation == MISH:
        for i in range(0, len(numbers), WIDTH):
            mish(numbers, i)
    elif activation == SILU:
        for i in range(0, len(numbers), WIDTH):
            silu(numbers, i)


@kernel
def _finish(target, rows, pitch, bias, each, plus, adds, activation):
    """Add bias and ``plus`` to float32[B * rows, pitch] and apply the activation.

    Args:
        rows: of a board.
        bias: float32[pitch], or with ``each`` float32[B, pitch].
    """
    for row in range(len(target) // pitch):
        line = target[row * pitch : (row + 1) * pitch]
        first = row // rows * pitch if each else 0
        more = bias[first : first + pitch]
        for i in range(pitch):
            line[i] += more[i]
        if adds:
            more = plus[row * pitch : (row + 1) * pitch]
            for i in range(pitch):
                line[i] += more[i]
    _activate(target, activation)


@kernel
def _columns(board, size, pitch, line, columns):
    """For each point all that a line's convolution sees there: [N*N, height * width, pitch], zeros beyond the edge."""
    at = 0
    for y in range(size):
        for x in range(size):
            for dy in range(-line.reach_y, line.reach_y + 1):
                for dx in range(-line.reach_x, line.reach_x + 1):
                    row, column = y + dy * line.step_y, x + dx * line.step_x
                    seen = columns[at : at + pitch]
                    if row < 0 or column < 0 or row >= size or column >= size:
                        for i in range(pitch):
                            seen[i] = 0
                    else:
                        source = (row * size + column) * pitch
                        point = board[source : source + pitch]
                        for i in range(pitch):
                            seen[i] = point[i]
                    at += pitch


@kernel
def _pool(board, size, pitch, pooling, vector):
    """[3, pitch] of a board: its mean, the mean scaled by the board's size, and the third number of the pooling."""
    mean, scaled, third = vector[:pitch], vector[pitch : 2 * pitch], vector[2 * pitch : 3 * pitch]
    for i in range(pitch):
        mean[i] = 0
        third[i] = board[i]
    for p in range(size * size):
        point = board[p * pitch : (p + 1) * pitch]
        for i in range(pitch):
            mean[i] += point[i]
        for i in range(pitch):
            third[i] = max(third[i], point[i])
    scale = np.float32((size - CENTRE_SIZE) / SIZE_UNIT)
    for i in range(pitch):
        mean[i] /= np.float32(size * size)
        scaled[i] = mean[i] * scale
    if pooling == BY_SIZE:
        for i in range(pitch):
            third[i] = mean[i] * (scale * scale - np.float32(MEAN_SQUARE))


@kernel
def _norm(source, pitch, scale, shift, activation, target):
    """Write source * scale + shift, float32[B * N*N, pitch], through an activation."""
    for at in range(0, len(source), pitch):
        line, out = source[at : at + pitch], target[at : at + pitch]
        for i in range(pitch):
            out[i] = line[i] * scale[i] + shift[i]
    _activate(target, activation)


@kernel
def run(program, numbers, places, planes, globals_, size, side, group, memory, points, products, sheet):
    """The forward pass of a batch.

    Args:
        program: ``LINE``[lines].
        numbers: float32[:], all constants.
        places: int64[slots], where each begins in the memory.
        planes: float32[B, C, N*N]; ``globals_`` float32[B, G], G perhaps 0; ``size`` is N.
        side, group: of Winograd's tiles, and how many boards are multiplied at a time.
        memory: float32[:], all slots; ``points``, ``products`` and ``sheet`` are working memory of convolutions.
    """
    count = len(planes)
    _load(planes, globals_, memory[places[PLANES] :], memory[places[GLOBALS] :])
    for index in range(len(program)):
        line = program[index]
        each, adds = line.bias_slot >= 0, line.plus >= 0
        rows = 1 if line.is_vector else size * size
        inner, pitch = line.inner, line.pitch
        source = memory[places[line.source] : places[line.source] + count * rows * inner]
        made = 1 if line.kind == POOL else rows
        target = memory[places[line.target] : places[line.target] + count * made * pitch]
        plus = memory[places[line.plus] :] if adds else target
        bias = memory[places[line.bias_slot] :] if each else numbers[line.bias :]
        kind = line.kind
        if kind == CONVOLUTION:
            filters = numbers[line.filters : line.filters + line.filter_count]
            scale = numbers[line.scale : line.scale + inner]
            shift = numbers[line.scale + inner : line.scale + 2 * inner]
            tiling = Tiling(size, side, group, count, inner, inner, pitch, pitch)
            convolve(
                tiling, source, scale, shift, line.before == RELU, filters, line.panel, bias, each, plus, adds,
                line.after == RELU, points, products, sheet, target,
            )  # fmt: skip
            if line.after != RELU:
                _activate(target, line.after)
        elif kind == PRODUCT:
            filters = numbers[line.filters : line.filters + line.filter_count]
            # What is added must not be overwritten by the product first.
            out = products[: len(target)] if adds else target
            multiply(source, count * rows, inner, filters, line.panel, out, pitch)
            _finish(out, rows, pitch, bias, each, plus, adds, line.after)
            if adds:
                for i in range(len(target)):
                    target[i] = out[i]
        elif kind == COLUMNS:
            whole, wide = size * size * inner, size * size * pitch
            for b in range(count):
                _columns(source[b * whole :], size, inner, line, target[b * wide : (b + 1) * wide])
        elif kind == POOL:
            whole = size * size * inner
            for b in range(count):
                _pool(source[b * whole :], size, inner, line.pooling, target[b * pitch : (b + 1) * pitch])
        else:
            scale = numbers[line.scale : line.scale + inner]
            shift = numbers[line.scale + inner : line.scale + 2 * inner]
            _norm(source, inner, scale, shift, line.after, target)
