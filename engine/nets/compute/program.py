"""A network's forward pass as a program, a list of lines run by one kernel: for CPUs in float32.

torch has an overhead of some 20 us for each of a hundred operations, on a small board more than the convolutions of a
6x96 network take, and needs the interpreter's lock between operations. A :class:`Program` is written once for a
network, layer by layer (:meth:`engine.nets.network.PlainNetwork.describe`), compiled (:class:`CompiledNetwork`) and
then run by one kernel (:func:`run_program`) without torch or Python. 3x3 convolutions use Winograd's filtering
(:mod:`engine.nets.compute.winograd`); all other layers are matrix products.

Slots are consecutive in the memory of a batch: points as float32[B, N*N, pitch], vectors as float32[B, pitch]. Pitches
are multiples of ``WIDTH``; the padding is zero.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.nets.compute.simd import WIDTH, mish, silu
from engine.nets.compute.winograd import (
    MEMORY,
    Tiling,
    best_panel,
    convolve,
    group_of,
    in_panels,
    multiply,
    padded,
    tiles_a_line,
    transform_filters,
)
from engine.nets.forward import CENTRE_SIZE, MEAN_SQUARE, SIZE_UNIT, Forward
from engine.nets.layers import IDENTITY, MISH, RELU, SILU, ConvNorm, Norm
from engine.system.jit import kernel

CONVOLUTION, PRODUCT, COLUMNS, POOL, NORM, FLAT = range(6)
"""Kinds of lines of a program"""
WITH_MAXIMUM, BY_SIZE = range(2)
"""Kinds of pooling (:meth:`engine.nets.forward.Forward.pool`)"""
PLANES, GLOBALS = range(2)
"""Numbers of the slots of the inputs, the first two slots of every program"""
FIELDS = (
    "kind",
    # Slots by number, -1 = none: inputs; outputs; an addend of the outputs, which may be their own slot; a vector added
    # at every point, in place of the bias. Then whether the source is a vector, and the pitches of inputs and outputs.
    "source", "target", "plus", "bias_slot", "is_vector", "inner", "pitch",
    # Offsets of constants: filters and their length; bias[pitch]; scales and shifts of the source's channels,
    # [2, inner]. Then the outputs accumulated at a time.
    "filters", "filter_count", "bias", "scale", "panel",
    # Activations of the scaled source and of the outputs.
    "before", "after",
    # Columns: points of a filter on each side of its centre, and its dilation.
    "reach_y", "reach_x", "step_y", "step_x",
    "pooling",
    # Channels of the points that become one vector.
    "channels",
)  # fmt: skip
LINE = np.dtype([(name, np.int64) for name in FIELDS])
"""A line of a program; fields that its kind does not use are 0"""


@kernel
def _load(planes, globals_, boards, vectors):
    """Copy planes[B, C, N*N] and globals_[B, G] into their slots, padded with zeros."""
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
    """Apply an activation to float32[:] in place."""
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
    """Add bias and, if ``adds``, ``plus`` to float32[B * rows, pitch], and apply the activation.

    Args:
        rows: number of rows of a board, N*N (points) or 1 (a vector).
        bias: float32[pitch], or, if ``each``, float32[B, pitch].
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
    """Write the im2col matrix of a line's convolution: [N*N, height * width, pitch], zeros beyond the edge."""
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
    """Pool a board to [3, pitch]: mean, mean scaled by board size, and the maximum or a second scaled mean."""
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
def _flatten(board, points, pitch, channels, vector):
    """Write the points of a board, [points, pitch], as one vector [channels, points], padded with zeros."""
    for c in range(channels):
        for p in range(points):
            vector[c * points + p] = board[p * pitch + c]
    for i in range(channels * points, len(vector)):
        vector[i] = 0


@kernel
def _norm(source, pitch, scale, shift, activation, target):
    """Write the activation of source * scale + shift, float32[B * N*N, pitch]."""
    for at in range(0, len(source), pitch):
        line, out = source[at : at + pitch], target[at : at + pitch]
        for i in range(pitch):
            out[i] = line[i] * scale[i] + shift[i]
    _activate(target, activation)


@kernel
def run_program(program, numbers, places, planes, globals_, size, side, group, memory, points, products, sheet):
    """The forward pass of a batch.

    Args:
        program: ``LINE``[lines].
        numbers: float32[:], all constants.
        places: int64[slots], offset of each slot in the memory.
        planes: float32[B, C, N*N]; ``globals_`` float32[B, G], G may be 0; ``size`` is N.
        side, group: Winograd tile size m, and number of boards multiplied at a time.
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
        made = 1 if line.kind == POOL or line.kind == FLAT else rows
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
            # The product must not overwrite the addend, which may be in the same slot.
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
        elif kind == FLAT:
            whole = size * size * inner
            for b in range(count):
                _flatten(source[b * whole :], size * size, inner, line.channels, target[b * pitch : (b + 1) * pitch])
        else:
            scale = numbers[line.scale : line.scale + inner]
            shift = numbers[line.scale + inner : line.scale + 2 * inner]
            _norm(source, inner, scale, shift, line.after, target)


MOST_BOARDS = 64
"""Maximum number of boards that one run of a program computes, which bounds its memory"""


class Slot(NamedTuple):
    """Memory for channels of every board: channels of each point, or (a vector) of the whole board."""

    number: int
    is_vector: bool
    channels: int
    parts: int = 1
    """the slot holds this many times the channels, each part padded separately"""

    @property
    def pitch(self) -> int:
        """Stride from one point, or vector, to the next, in float32."""
        return self.parts * int(padded(self.channels))


class Constant(NamedTuple):
    """A constant array of a layer, in the layout of the kernel."""

    start: int
    """offset in the array of all constants"""
    length: int
    make: Callable[[], np.ndarray]
    """computes the array"""


class CompiledNetwork:
    """Runs a program on batches. Threads: any number, each with its own working memory."""

    def __init__(self, side: int, lines: np.ndarray, constants: Sequence[Constant], slots: Sequence[Slot],
                 outputs: Mapping[str, Slot]):  # fmt: skip
        """Compute the constants.

        Args:
            side: Winograd tile size m.
            lines: :data:`LINE`\\ [lines].
            slots: all slots, by number.
            outputs: slots that :meth:`run` returns, by name.
        """
        self._side, self._lines, self._slots, self._outputs = side, lines, tuple(slots), dict(outputs)
        # One large array, so that the system can use huge pages.
        self._numbers = np.empty(constants[-1].start + constants[-1].length if constants else 0, np.float32)
        for start, length, make in constants:
            values = make().reshape(-1)
            assert len(values) == length, (len(values), length)
            self._numbers[start : start + length] = values
        tiled = lines[lines["kind"] == CONVOLUTION]
        summed = lines[(lines["kind"] == PRODUCT) & (lines["plus"] >= 0)]
        self._widest = int(max(tiled["inner"].max(initial=1), tiled["pitch"].max(initial=1)))
        self._widest_sum = [int(summed["pitch"][summed["is_vector"] == kind].max(initial=0)) for kind in (0, 1)]
        pitches = np.array([slot.pitch for slot in slots])
        are_vectors = np.array([slot.is_vector for slot in slots])
        self._points, self._vectors = pitches * ~are_vectors, pitches * are_vectors

    def run(self, planes: np.ndarray, globals_: np.ndarray) -> dict[str, np.ndarray]:
        """The outputs by name: float32[B, C, N, N] of points, [B, C] of vectors.

        Args:
            planes: float32[B, C, N, N]; ``globals_`` float32[B, G].
        """
        if len(planes) <= MOST_BOARDS:
            return self._run(planes, globals_)
        starts = range(0, len(planes), MOST_BOARDS)
        found = [self._run(planes[at : at + MOST_BOARDS], globals_[at : at + MOST_BOARDS]) for at in starts]
        return {name: np.concatenate([part[name] for part in found]) for name in self._outputs}

    def _run(self, planes: np.ndarray, globals_: np.ndarray) -> dict[str, np.ndarray]:
        """As :meth:`run`, in one piece."""
        count, channels, size = planes.shape[:3]
        tiles = int(tiles_a_line(size, self._side))
        group = max(1, min(count, group_of(tiles)))
        rows = (self._side + 2) ** 2 * group * tiles**2
        sums = count * max(size**2 * self._widest_sum[0], self._widest_sum[1])
        places, total = self._places(count, size)
        memory = MEMORY.of("program", total)
        # In one layout and dtype: the kernel would be compiled again for any other.
        boards = np.ascontiguousarray(planes, np.float32).reshape(count, channels, size**2)
        run_program(
            self._lines, self._numbers, places, boards, np.ascontiguousarray(globals_, np.float32), size,
            self._side, group, memory, MEMORY.of("points", rows * self._widest),
            MEMORY.of("products", max(rows * self._widest, sums)),
            MEMORY.of("sheet", (self._side * tiles + 2) ** 2 * self._widest),
        )  # fmt: skip
        return {
            name: self._output(slot, memory[places[slot.number] :], count, size) for name, slot in self._outputs.items()
        }

    def _places(self, count: int, size: int) -> tuple[np.ndarray, int]:
        """int64[slots]: offset of each slot in the memory of a batch; and the length of that memory."""
        lengths = self._points * (count * size**2) + self._vectors * count
        ends = np.cumsum(lengths)
        return ends - lengths, int(ends[-1])

    def _output(self, slot: Slot, memory: np.ndarray, count: int, size: int) -> np.ndarray:
        """A copy of a slot's channels."""
        shape = (count,) if slot.is_vector else (count, size, size)
        held = memory[: math.prod(shape) * slot.pitch].reshape(*shape, slot.pitch)[..., : slot.channels]
        return held.copy() if slot.is_vector else np.ascontiguousarray(held.transpose(0, 3, 1, 2))


class Program(Forward):
    """Builder of a network's program, for one Winograd tile size. Assertions check that channels fit."""

    def __init__(self, planes: int, globals_: int, side: int):
        """Begin a program.

        Args:
            planes, globals_: the numbers of input planes and of global values.
            side: Winograd tile size m (:func:`engine.nets.compute.winograd.tile_side` of the boards).
        """
        self._side = side
        self._slots: list[Slot] = []
        self._free: list[Slot] = []
        self._lines: list[tuple[int, ...]] = []
        self._constants: list[Constant] = []
        self._outputs: dict[str, Slot] = {}
        self.planes = self._new(planes, is_vector=False)
        self.globals = self._new(globals_, is_vector=True)
        assert (self.planes.number, self.globals.number) == (PLANES, GLOBALS)

    def convolution(self, layer: Any, source: Slot, before: Norm | None = None, bias: Slot | None = None,
                    plus: Slot | None = None, after: int = IDENTITY, into: Slot | None = None) -> Slot:  # fmt: skip
        """See :meth:`engine.nets.forward.Forward.convolution`."""
        layer = layer.folded() if isinstance(layer, ConvNorm) else layer
        weight, side, (step_y, step_x) = layer.weight, self._side, layer.dilation
        height, width = weight.shape[2:]
        assert weight.shape[1] == source.channels, (weight.shape, source)
        by_winograd = (height, width, step_y, step_x) == (3, 3, 1, 1)
        spent = []
        if bias is not None and layer.bias is not None:
            bias = self.norm(bias, Norm(shift=layer.bias))
            spent.append(bias)
        if before is not None and not (by_winograd and _is_quick(before)):
            source, before = self.norm(source, before), None
            spent.append(source)
        if not by_winograd and height * width > 1:
            columns = self._new(source.channels, False, height * width)
            self._line(COLUMNS, source, columns, reach_y=height // 2, reach_x=width // 2, step_y=step_y, step_x=step_x)
            source = columns
            spent.append(source)
        if by_winograd:
            into = into or self._new(len(weight), is_vector=False)
            self._line(
                CONVOLUTION, source, into, lambda: in_panels(transform_filters(weight, side)),
                self._bias(layer.bias, into), bias, plus, after, scale=self._scale(before, source),
                before=IDENTITY if before is None else before.activation,
            )  # fmt: skip
        else:
            matrix = weight.transpose(0, 2, 3, 1).reshape(len(weight), -1)
            into = self._product(source, matrix, layer.bias, bias, plus, after, into)
        self.free(*spent)
        return into

    def linear(self, layer: Any, source: Slot, after: int = IDENTITY) -> Slot:
        """See :meth:`engine.nets.forward.Forward.linear`."""
        if not source.is_vector:
            flat = self._new(layer.weight.shape[1], is_vector=True)
            self._line(FLAT, source, flat, channels=source.channels)
            source = flat
        return self.product(layer.weight, layer.bias, source, after=after)

    def product(self, weight: np.ndarray, shift: np.ndarray | None, source: Slot, plus: Slot | None = None,
                after: int = IDENTITY) -> Slot:  # fmt: skip
        """See :meth:`engine.nets.forward.Forward.product`."""
        return self._product(source, weight, shift, None, plus, after, None)

    def pool(self, source: Slot, by_size: bool = False) -> Slot:
        """See :meth:`engine.nets.forward.Forward.pool`."""
        target = self._new(source.channels, True, 3)
        self._line(POOL, source, target, pooling=BY_SIZE if by_size else WITH_MAXIMUM)
        return target

    def norm(self, source: Slot, norm: Norm) -> Slot:
        """See :meth:`engine.nets.forward.Forward.norm`."""
        target = self._new(source.channels, source.is_vector)
        self._line(NORM, source, target, after=norm.activation, scale=self._scale(norm, source))
        return target

    def before_several(self, source: Slot, norm: Norm) -> tuple[Slot, Norm | None]:
        """See :meth:`engine.nets.forward.Forward.before_several`; 3x3 convolutions apply a quick one themselves."""
        return (source, norm) if _is_quick(norm) else (self.norm(source, norm), None)

    def free(self, *slots: Slot | None) -> None:
        """See :meth:`engine.nets.forward.Forward.free`; the slots' memory is reused."""
        given = [slot for slot in slots if slot is not None]
        assert not {*given} & {*self._free, *self._outputs.values()}, given
        self._free += given

    def output(self, name: str, slot: Slot) -> None:
        """See :meth:`engine.nets.forward.Forward.output`."""
        assert slot not in self._free, slot
        self._outputs[name] = slot

    def compiled(self) -> CompiledNetwork:
        """The network as written so far, ready to run."""
        return CompiledNetwork(self._side, self.lines(), self._constants, self._slots, self._outputs)

    def lines(self) -> np.ndarray:
        """:data:`LINE`\\ [lines] written so far."""
        return np.array(self._lines, LINE)

    def _new(self, channels: int, is_vector: bool, parts: int = 1) -> Slot:
        """A slot: a free one of the same kind if there is one, else a new one."""
        for slot in self._free:
            if slot[1:] == (is_vector, channels, parts):
                self._free.remove(slot)
                return slot
        self._slots.append(Slot(len(self._slots), is_vector, channels, parts))
        return self._slots[-1]

    def _product(self, source: Slot, matrix: np.ndarray, shift: np.ndarray | None, bias: Slot | None,
                 plus: Slot | None, after: int, into: Slot | None) -> Slot:  # fmt: skip
        """The product of a matrix[K, parts * C] and the source at every point, or of the matrix and the vector."""
        into = into or self._new(len(matrix), source.is_vector)
        assert matrix.shape[1] == source.parts * source.channels, (matrix.shape, source)
        # Without an addend the product is written directly, so it must not overwrite its source.
        assert into != source or plus is not None, into

        def numbers() -> np.ndarray:
            padded_parts = np.zeros((len(matrix), source.parts, source.pitch // source.parts), np.float32)
            padded_parts[:, :, : source.channels] = matrix.reshape(len(matrix), source.parts, source.channels)
            return in_panels(padded_parts.reshape(1, len(matrix), -1).transpose(0, 2, 1))

        self._line(PRODUCT, source, into, numbers, self._bias(shift, into), bias, plus, after)
        return into

    def _line(self, kind: int, source: Slot, target: Slot, filters: Callable[[], np.ndarray] | None = None,
              bias: int = 0, bias_slot: Slot | None = None, plus: Slot | None = None, after: int = IDENTITY,
              **more: int) -> None:  # fmt: skip
        """Write one line; fields not given are 0."""
        start, count = 0, 0
        if filters is not None:
            points = (self._side + 2) ** 2 if kind == CONVOLUTION else 1
            count = points * source.pitch * target.pitch
            start = self._constant(count, filters)
        fields = {
            "kind": kind, "source": source.number, "target": target.number, "plus": -1 if plus is None else plus.number,
            "bias_slot": -1 if bias_slot is None else bias_slot.number, "is_vector": int(source.is_vector),
            "inner": source.pitch, "pitch": target.pitch, "filters": start, "filter_count": count, "bias": bias,
            "panel": best_panel(target.channels), "after": after, **more,
        }  # fmt: skip
        assert fields.keys() <= set(FIELDS), fields
        self._lines.append(tuple(fields.get(name, 0) for name in FIELDS))

    def _constant(self, count: int, make: Callable[[], np.ndarray]) -> int:
        """Offset of a new constant of ``count`` numbers, which ``make`` computes when the program is compiled."""
        last = self._constants[-1] if self._constants else Constant(0, 0, make)
        self._constants.append(Constant(last.start + last.length, count, make))
        return self._constants[-1].start

    def _bias(self, values: np.ndarray | None, target: Slot) -> int:
        """Offset of a new constant: a layer's bias, or zeros if it is None."""
        return self._constant(target.pitch, lambda: _filled(values, target.channels, target.pitch, 0.0))

    def _scale(self, before: Norm | None, source: Slot) -> int:
        """Offset of a new constant: scale and shift of a layer's inputs, [2, pitch]; ones and zeros if None."""
        scale, shift = (None, None) if before is None else (before.scale, before.shift)
        return self._constant(
            2 * source.pitch,
            lambda: np.concatenate([
                _filled(scale, source.channels, source.pitch, 1.0), _filled(shift, source.channels, source.pitch, 0.0),
            ]),
        )  # fmt: skip


def _is_quick(norm: Norm) -> bool:
    """Whether the kernel of 3x3 convolutions can apply this transformation to its inputs."""
    return norm.activation in (IDENTITY, RELU)


def _filled(values: np.ndarray | None, channels: int, pitch: int, default: float) -> np.ndarray:
    """float32[pitch]: values[channels] in any shape, padded with zeros; ``default`` for all channels if None."""
    filled = np.zeros(pitch, np.float32)
    filled[:channels] = default if values is None else values.reshape(-1)
    return filled
