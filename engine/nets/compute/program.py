"""A network's forward pass as a program, a list of lines run by one kernel: for CPUs in float32.

torch has an overhead of some 20 us for each of a hundred operations, on a small board more than the convolutions of a
6x96 network take, and needs the interpreter's lock between operations. A :class:`Program` is written once for a
network, layer by layer (:meth:`engine.nets.network.Model.write_program`), compiled (:class:`CompiledNetwork`) and then
run by one kernel (:func:`run_program`) without torch or Python. 3x3 convolutions use Winograd's filtering
(:mod:`engine.nets.compute.winograd`); all other layers are matrix products. Global pooling gives three numbers for each
channel (:func:`pooled`), one of them the mean scaled by board size (Wu, "Accelerating Self-Play Learning in Go", 2019,
section 3.3).

Slots are consecutive in the memory of a batch: points as float32[B, N*N, pitch], vectors as float32[B, pitch]. Pitches
are multiples of ``WIDTH``; the padding is zero.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

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
from engine.system.jit import kernel

CENTRE_SIZE = 14.0
"""Board size at which the size-scaled mean is zero, the middle of 9 and 19."""
SIZE_UNIT = 10.0
"""Difference in board size that changes the scale of the size-scaled mean by 1"""
MEAN_SQUARE = 0.1
"""Subtracted from the square of the scale in the third number of :func:`pooled_by_size`"""


def board_scale(x: Tensor) -> float:
    """The scale of the size-scaled mean of x[B, C, N, N].

    It is a Python number, also in traces, each of which is made for one board size: on tensors, the subtraction and the
    division took longer than the mean of a 9x9 board.
    """
    return (int(x.shape[2]) - CENTRE_SIZE) / SIZE_UNIT


def pooled(x: Tensor) -> Tensor:
    """[B, 3C] of x[B, C, N, N] in the dtype of x: mean, mean scaled by board size, maximum.

    On CPUs it computes in float32, since CPUs compute the maximum of 16-bit numbers one by one, of float32 sixteen at a
    time: 4 us instead of 20 for three 9x9 boards of 32 channels.
    """
    wide = x.float() if x.device.type == "cpu" else x
    mean = wide.mean(dim=(2, 3))
    return torch.cat([mean, mean * board_scale(x), wide.amax(dim=(2, 3))], dim=1).to(x.dtype)


def pooled_by_size(x: Tensor) -> Tensor:
    """float32[B, 3C] of x[B, C, N, N]: mean, mean scaled by board size, mean scaled by the square of that."""
    mean, scale = x.mean(dim=(2, 3), dtype=torch.float32), board_scale(x)
    return torch.cat([mean, mean * scale, mean * (scale * scale - MEAN_SQUARE)], dim=1)


CONVOLUTION, PRODUCT, COLUMNS, POOL, NORM = range(5)
"""Kinds of lines of a program"""
IDENTITY, RECTIFIED, MISH, SILU = range(4)
"""Codes of activations in lines of a program"""
WITH_MAXIMUM, BY_SIZE = range(2)
"""Kinds of pooling: :func:`pooled` and :func:`pooled_by_size`"""
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
    if activation == RECTIFIED:
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
                tiling, source, scale, shift, line.before == RECTIFIED, filters, line.panel, bias, each, plus, adds,
                line.after == RECTIFIED, points, products, sheet, target,
            )  # fmt: skip
            if line.after != RECTIFIED:
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
    make: Callable[[], Tensor]
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
            values = make().detach().reshape(-1).numpy()
            assert len(values) == length, (len(values), length)
            self._numbers[start : start + length] = values
        tiled = lines[lines["kind"] == CONVOLUTION]
        summed = lines[(lines["kind"] == PRODUCT) & (lines["plus"] >= 0)]
        self._widest = int(max(tiled["inner"].max(initial=1), tiled["pitch"].max(initial=1)))
        self._widest_sum = [int(summed["pitch"][summed["is_vector"] == kind].max(initial=0)) for kind in (0, 1)]
        pitches = np.array([slot.pitch for slot in slots])
        are_vectors = np.array([slot.is_vector for slot in slots])
        self._points, self._vectors = pitches * ~are_vectors, pitches * are_vectors

    def run(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """The outputs by name: float32[B, C, N, N] of points, [B, C] of vectors.

        Boards are divided among ``torch.get_num_threads()`` threads.

        Args:
            planes: [B, C, N, N]; ``globals_`` [B, G]; of any dtype and memory layout.
        """
        count, threads = len(planes), torch.get_num_threads()
        each = max(1, min(MOST_BOARDS, -(-count // threads)))
        if each >= count:
            return self._run(planes, globals_)
        parts = planes.split(each), globals_.split(each)
        found = list(_threads(threads).map(self._run, *parts) if threads > 1 else map(self._run, *parts))
        return {name: torch.cat([part[name] for part in found]) for name in self._outputs}

    def _run(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """As :meth:`run`, in the calling thread and in one piece."""
        count, channels, size = planes.shape[:3]
        tiles = int(tiles_a_line(size, self._side))
        group = max(1, min(count, group_of(tiles)))
        rows = (self._side + 2) ** 2 * group * tiles**2
        sums = count * max(size**2 * self._widest_sum[0], self._widest_sum[1])
        places, total = self._places(count, size)
        memory = MEMORY.of("program", total)
        # In one layout and dtype: the kernel would be compiled again for any other.
        boards = planes.float().reshape(count, channels, size**2).contiguous()
        run_program(
            self._lines, self._numbers, places, boards.numpy(), globals_.float().contiguous().numpy(),
            size, self._side, group, memory, MEMORY.of("points", rows * self._widest),
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

    def _output(self, slot: Slot, memory: np.ndarray, count: int, size: int) -> Tensor:
        """A copy of a slot as a tensor."""
        shape = (count,) if slot.is_vector else (count, size, size)
        held = memory[: math.prod(shape) * slot.pitch].reshape(*shape, slot.pitch)[..., : slot.channels]
        values = torch.from_numpy(held.copy())
        return values if slot.is_vector else values.permute(0, 3, 1, 2)


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    """The process's pool of ``count`` threads, among which programs divide the boards of a batch."""
    return ThreadPoolExecutor(count, "program")


ACTIVATIONS: dict[type[nn.Module], int] = {
    nn.Identity: IDENTITY, nn.ReLU: RECTIFIED, nn.Mish: MISH, nn.SiLU: SILU,
}  # fmt: skip
AS_IS = nn.Identity()


class Before(NamedTuple):
    """Transformation of a layer's inputs: x * scale + shift, then an activation."""

    activation: nn.Module
    scale: Tensor | None = None
    """[C] in any shape; None = 1"""
    shift: Tensor | None = None
    """[C] in any shape; None = 0"""


RELU = Before(nn.ReLU())


class Unwritable(Exception):
    """A network has a layer that programs do not support."""


class Program:
    """Builder of a network's program, for one Winograd tile size.

    Methods that write lines take slots of inputs and return the slot of the output. Assertions check that channels fit.
    """

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

    def convolution(self, layer: nn.Conv2d, source: Slot, before: Before | None = None, bias: Slot | None = None,
                    plus: Slot | None = None, after: nn.Module = AS_IS, into: Slot | None = None) -> Slot:  # fmt: skip
        """A convolution with padding to the size of its inputs.

        Args:
            before: transformation of the inputs.
            bias: a vector added at every point, besides the layer's own bias.
            plus: slot of points that are added to the outputs; may be ``into``.
            after: an activation of the outputs.
            into: slot of the outputs; None = a new slot.
        Raises:
            Unwritable: programs do not support the layer's stride, groups or padding.
        """
        (height, width), (step_y, step_x) = layer.kernel_size, layer.dilation
        assert layer.in_channels == source.channels, (layer, source)
        is_plain = layer.stride == (1, 1) and layer.groups == 1 and layer.padding_mode == "zeros"
        is_centred = height % 2 == 1 and width % 2 == 1
        if not is_plain or not is_centred or layer.padding != (step_y * (height // 2), step_x * (width // 2)):
            raise Unwritable(f"{layer}")
        by_winograd = layer.kernel_size == (3, 3) and layer.dilation == (1, 1)
        spent = []
        if bias is not None and layer.bias is not None:
            bias = self.norm(bias, Before(AS_IS, shift=layer.bias))
            spent.append(bias)
        if before is not None and not (by_winograd and _is_quick(before)):
            source, before = self.norm(source, before), None
            spent.append(source)
        if not by_winograd and height * width > 1:
            columns = self._new(source.channels, False, height * width)
            self._line(COLUMNS, source, columns, reach_y=height // 2, reach_x=width // 2, step_y=step_y, step_x=step_x)
            source = columns
            spent.append(source)
        weight, side = layer.weight.detach(), self._side
        if by_winograd:
            into = into or self._new(len(weight), is_vector=False)
            self._line(
                CONVOLUTION, source, into, lambda: in_panels(transform_filters(weight, side)),
                self._bias(layer.bias, into), bias, plus, after, scale=self._scale(before, source),
                before=_code(AS_IS if before is None else before.activation),
            )  # fmt: skip
        else:
            matrix = weight.permute(0, 2, 3, 1).reshape(len(weight), -1)
            into = self._product(source, matrix, layer.bias, bias, plus, after, into)
        self.free(*spent)
        return into

    def linear(self, layer: nn.Linear, source: Slot, after: nn.Module = AS_IS) -> Slot:
        """The output vector of a linear layer."""
        return self.product(layer.weight, layer.bias, source, after=after)

    def product(self, weight: Tensor, shift: Tensor | None, source: Slot, plus: Slot | None = None,
                after: nn.Module = AS_IS) -> Slot:  # fmt: skip
        """The vector after(weight[K, C] x source + shift[K] + plus)."""
        return self._product(source, weight.detach(), shift, None, plus, after, None)

    def pool(self, source: Slot, by_size: bool = False) -> Slot:
        """The vector of pooled points, as :func:`pooled` or :func:`pooled_by_size` computes it."""
        target = self._new(source.channels, True, 3)
        self._line(POOL, source, target, pooling=BY_SIZE if by_size else WITH_MAXIMUM)
        return target

    def norm(self, source: Slot, before: Before) -> Slot:
        """A new slot with the transformed source: ``before`` applied at every point, or to the vector."""
        target = self._new(source.channels, source.is_vector)
        self._line(NORM, source, target, after=before.activation, scale=self._scale(before, source))
        return target

    def before_several(self, source: Slot, before: Before) -> tuple[Slot, Before | None]:
        """Source and transformation for several 3x3 convolutions of one source, to apply a slow transformation once."""
        return (source, before) if _is_quick(before) else (self.norm(source, before), None)

    def free(self, *slots: Slot | None) -> None:
        """Release slots that no further line reads; their memory is reused."""
        given = [slot for slot in slots if slot is not None]
        assert not {*given} & {*self._free, *self._outputs.values()}, given
        self._free += given

    def output(self, name: str, slot: Slot) -> None:
        """Make a slot an output of the program; it must not be freed."""
        assert slot not in self._free, slot
        self._outputs[name] = slot

    def compiled(self) -> CompiledNetwork:
        """The network as written so far, ready to run."""
        lines = np.array(self._lines, LINE)
        return CompiledNetwork(self._side, lines, self._constants, self._slots, self._outputs)

    def _new(self, channels: int, is_vector: bool, parts: int = 1) -> Slot:
        """A slot: a free one of the same kind if there is one, else a new one."""
        for slot in self._free:
            if slot[1:] == (is_vector, channels, parts):
                self._free.remove(slot)
                return slot
        self._slots.append(Slot(len(self._slots), is_vector, channels, parts))
        return self._slots[-1]

    def _product(self, source: Slot, matrix: Tensor, shift: Tensor | None, bias: Slot | None, plus: Slot | None,
                 after: nn.Module, into: Slot | None) -> Slot:  # fmt: skip
        """The product of a matrix[K, parts * C] and the source at every point, or of the matrix and the vector."""
        into = into or self._new(len(matrix), source.is_vector)
        assert matrix.shape[1] == source.parts * source.channels, (matrix.shape, source)
        # Without an addend the product is written directly, so it must not overwrite its source.
        assert into != source or plus is not None, into

        def numbers() -> Tensor:
            padded_parts = matrix.new_zeros(len(matrix), source.parts, source.pitch // source.parts)
            padded_parts[:, :, : source.channels] = matrix.reshape(len(matrix), source.parts, source.channels)
            return in_panels(padded_parts.reshape(1, len(matrix), -1).transpose(1, 2))

        self._line(PRODUCT, source, into, numbers, self._bias(shift, into), bias, plus, after)
        return into

    def _line(self, kind: int, source: Slot, target: Slot, filters: Callable[[], Tensor] | None = None, bias: int = 0,
              bias_slot: Slot | None = None, plus: Slot | None = None, after: nn.Module = AS_IS,
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
            "panel": best_panel(target.channels), "after": _code(after), **more,
        }  # fmt: skip
        assert fields.keys() <= set(FIELDS), fields
        self._lines.append(tuple(fields.get(name, 0) for name in FIELDS))

    def _constant(self, count: int, make: Callable[[], Tensor]) -> int:
        """Offset of a new constant of ``count`` numbers, which ``make`` computes when the program is compiled."""
        last = self._constants[-1] if self._constants else Constant(0, 0, make)
        self._constants.append(Constant(last.start + last.length, count, make))
        return self._constants[-1].start

    def _bias(self, values: Tensor | None, target: Slot) -> int:
        """Offset of a new constant: a layer's bias, or zeros if it is None."""
        return self._constant(target.pitch, lambda: _filled(values, target.channels, target.pitch, 0.0))

    def _scale(self, before: Before | None, source: Slot) -> int:
        """Offset of a new constant: scale and shift of a layer's inputs, [2, pitch]; ones and zeros if None."""
        scale, shift = (None, None) if before is None else (before.scale, before.shift)
        return self._constant(
            2 * source.pitch,
            lambda: torch.cat([
                _filled(scale, source.channels, source.pitch, 1.0), _filled(shift, source.channels, source.pitch, 0.0),
            ]),
        )  # fmt: skip


def _is_quick(before: Before) -> bool:
    """Whether the kernel of 3x3 convolutions can apply this transformation to its inputs."""
    return isinstance(before.activation, nn.Identity | nn.ReLU)


def _code(activation: nn.Module) -> int:
    """The code of an activation in lines of a program.

    Raises:
        Unwritable: programs do not support the activation.
    """
    if type(activation) not in ACTIVATIONS:
        raise Unwritable(f"{activation}")
    return ACTIVATIONS[type(activation)]


def _filled(values: Tensor | None, channels: int, pitch: int, default: float) -> Tensor:
    """float32[pitch]: values[channels] in any shape, padded with zeros; ``default`` for all channels if None."""
    filled = torch.zeros(pitch)
    filled[:channels] = default if values is None else values.detach().reshape(-1)
    return filled
