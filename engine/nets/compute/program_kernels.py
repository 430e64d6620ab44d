"""A network's whole forward pass as one kernel: it reads a program line by line. No torch.

What a program is and who writes it: :mod:`engine.nets.compute.program`. Slots lie one after the other in the memory of
a batch: points as float32[B, N*N, pitch], vectors as float32[B, pitch]. Pitches are multiples of ``WIDTH``; what is
beyond a slot's channels is zero.
"""

import numpy as np

from engine.nets.compute.lanes import WIDTH, mish, silu
from engine.nets.compute.winograd_tiles import Tiling, convolve, multiply, padded
from engine.system.jit import kernel

CONVOLUTION, PRODUCT, COLUMNS, POOL, NORM = range(5)
"""Kinds of lines"""
(
    KIND, SOURCE, TARGET, PLUS, BIAS_SLOT, INNER, PITCH, PANEL, NUMBERS, COUNT, BIAS, SCALE, BEFORE, AFTER, IS_VECTOR,
    REACH_Y, REACH_X, STEP_Y, STEP_X, POOLING,
) = range(20)  # fmt: skip
"""The numbers of a line: slots (-1 = none), pitches of source and target, where its constants are, activations"""
FIELDS = 20
IDENTITY, RELU, MISH, SILU = range(4)
"""Activations"""
WITH_MAXIMUM, BY_SIZE = range(2)
"""Kinds of pooling: ``pooled`` and ``pooled_by_size`` of :mod:`engine.nets.compute.pooling`"""
PLANES, GLOBALS = range(2)
"""The slots of the inputs"""
CENTRE_SIZE = np.float32(14.0)
"""As in :mod:`engine.nets.compute.pooling`"""


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
            for dy in range(-line[REACH_Y], line[REACH_Y] + 1):
                for dx in range(-line[REACH_X], line[REACH_X] + 1):
                    row, column = y + dy * line[STEP_Y], x + dx * line[STEP_X]
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
    scale = (np.float32(size) - CENTRE_SIZE) / np.float32(10.0)
    for i in range(pitch):
        mean[i] /= np.float32(size * size)
        scaled[i] = mean[i] * scale
    if pooling == BY_SIZE:
        for i in range(pitch):
            third[i] = mean[i] * (scale * scale - np.float32(0.1))


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
        program: int64[lines, FIELDS].
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
        each, adds = line[BIAS_SLOT] >= 0, line[PLUS] >= 0
        rows = 1 if line[IS_VECTOR] else size * size
        inner, pitch = line[INNER], line[PITCH]
        source = memory[places[line[SOURCE]] : places[line[SOURCE]] + count * rows * inner]
        target = memory[places[line[TARGET]] : places[line[TARGET]] + count * rows * pitch]
        plus = memory[places[line[PLUS]] :] if adds else target
        bias = memory[places[line[BIAS_SLOT]] :] if each else numbers[line[BIAS] :]
        kind = line[KIND]
        if kind == CONVOLUTION:
            filters = numbers[line[NUMBERS] : line[NUMBERS] + line[COUNT]]
            scale = numbers[line[SCALE] : line[SCALE] + inner]
            shift = numbers[line[SCALE] + inner : line[SCALE] + 2 * inner]
            tiling = Tiling(size, side, group, count, inner, inner, pitch, pitch)
            convolve(
                tiling, source, scale, shift, line[BEFORE] == RELU, filters, line[PANEL], bias, each, plus, adds,
                line[AFTER] == RELU, points, products, sheet, target,
            )  # fmt: skip
            if line[AFTER] != RELU:
                _activate(target, line[AFTER])
        elif kind == PRODUCT:
            filters = numbers[line[NUMBERS] : line[NUMBERS] + line[COUNT]]
            # What is added must not be overwritten by the product first.
            out = products[: len(target)] if adds else target
            multiply(source, count * rows, inner, filters, line[PANEL], out, pitch)
            _finish(out, rows, pitch, bias, each, plus, adds, line[AFTER])
            if adds:
                for i in range(len(target)):
                    target[i] = out[i]
        elif kind == COLUMNS:
            whole, made = size * size * inner, size * size * pitch
            for b in range(count):
                _columns(source[b * whole :], size, inner, line, target[b * made : (b + 1) * made])
        elif kind == POOL:
            whole = size * size * inner
            vectors = memory[places[line[TARGET]] :]
            for b in range(count):
                _pool(source[b * whole :], size, inner, line[POOLING], vectors[3 * b * inner : 3 * (b + 1) * inner])
        else:
            scale = numbers[line[SCALE] : line[SCALE] + inner]
            shift = numbers[line[SCALE] + inner : line[SCALE] + 2 * inner]
            _norm(source, inner, scale, shift, line[AFTER], target)
