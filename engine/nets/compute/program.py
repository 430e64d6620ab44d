"""A network's forward pass as a list of lines, which one kernel works off: for processors in float32.

torch takes some 20 us for each of a hundred operations on a small board, longer in all than a 6x96 network needs for
its convolutions, and between them it waits for the interpreter's lock. A :class:`Program` is written once for a
network, in the words of its layers (:meth:`engine.nets.network.Model.write`), and then run by one kernel
(:mod:`engine.nets.compute.program_kernels`) without torch or Python between its lines. 3x3 convolutions go by
Winograd's filtering (:mod:`engine.nets.compute.winograd`); all other layers are products of matrices.
"""

import functools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.compute import program_kernels as kernels
from engine.nets.compute.winograd import MEMORY, best_panel, group_of, in_panels, transform_filters
from engine.nets.compute.winograd_tiles import padded, tiles_a_line

ACTIVATIONS: dict[type[nn.Module], int] = {
    nn.Identity: kernels.IDENTITY, nn.ReLU: kernels.RELU, nn.Mish: kernels.MISH, nn.SiLU: kernels.SILU,
}  # fmt: skip
AS_IS = nn.Identity()
MOST_BOARDS = 64
"""Boards that go through a program at a time: what memory they take grows no further"""


class Slot(NamedTuple):
    """A place for some numbers of every board, either for each of its points or for the board as a whole."""

    number: int
    is_vector: bool
    channels: int
    parts: int = 1
    """how many times as many numbers there are, each part padded by itself"""

    @property
    def pitch(self) -> int:
        """Numbers from one point, or board, to the next."""
        return self.parts * int(padded(self.channels))


class Norm(NamedTuple):
    """What is done to the channels before a layer: x * scale + shift, then an activation."""

    activation: nn.Module
    scale: Tensor | None = None
    """[C] in any shape; None = 1"""
    shift: Tensor | None = None
    """likewise; None = 0"""


RELU = Norm(nn.ReLU())


class Unwritable(Exception):
    """A network has a layer that no line computes."""


class Program:
    """The lines of a network, for boards whose tiles have one side: first written, then run.

    Methods that write take slots and return the slot of what they compute.
    """

    def __init__(self, planes: int, globals_: int, side: int):
        """Begin a program.

        Args:
            planes, globals_: the numbers of input planes and of global values.
            side: m of Winograd's filtering (:func:`engine.nets.compute.winograd_tiles.tile_side` of the boards).
        """
        self._side = side
        self._slots: list[Slot] = []
        self._free: list[Slot] = []
        self._lines: list[list[int]] = []
        self._numbers: list[Callable[[], Tensor]] = []
        self._count = 0
        self._outputs: dict[str, Slot] = {}
        self.planes = self._new(planes, is_vector=False)
        self.globals = self._new(globals_, is_vector=True)

    def convolution(self, layer: nn.Conv2d, source: Slot, before: Norm | None = None, bias: Slot | None = None,
                    plus: Slot | None = None, after: nn.Module = AS_IS, into: Slot | None = None) -> Slot:  # fmt: skip
        """A convolution whose outputs have as many points as its inputs.

        Args:
            before: what is done to its inputs first.
            bias: a vector that is added at every point, beside the layer's own.
            plus: points that are added to the outputs; may be the slot of ``into``.
            after: an activation of the outputs.
            into: where the outputs go; None = to a slot of their own.
        Raises:
            Unwritable: it is of a kind that no network here has.
        """
        (height, width), (step_y, step_x) = layer.kernel_size, layer.dilation
        is_plain = layer.stride == (1, 1) and layer.groups == 1 and layer.padding_mode == "zeros"
        if not is_plain or layer.padding != (step_y * (height // 2), step_x * (width // 2)):
            raise Unwritable(f"{layer}")
        by_winograd = layer.kernel_size == (3, 3) and layer.dilation == (1, 1)
        spent = []
        if bias is not None and layer.bias is not None:
            bias = self.norm(bias, Norm(AS_IS, shift=layer.bias))
            spent.append(bias)
        if before is not None and not (by_winograd and isinstance(before.activation, nn.Identity | nn.ReLU)):
            source, before = self.norm(source, before), None
            spent.append(source)
        if not by_winograd and height * width > 1:
            source = self._columns(layer, source)
            spent.append(source)
        weight, side = layer.weight.detach(), self._side
        if by_winograd:
            into = into or self._new(len(weight), is_vector=False)
            self._line(
                kernels.CONVOLUTION, source, into, lambda: in_panels(transform_filters(weight, side)),
                self._bias(layer.bias, into), bias, plus, after, SCALE=self._norm(before, source),
                BEFORE=_code(AS_IS if before is None else before.activation),
            )  # fmt: skip
        else:
            matrix = weight.permute(0, 2, 3, 1).reshape(len(weight), -1)
            into = self._product(source, matrix, layer.bias, bias, plus, after, into)
        self.free(*spent)
        return into

    def linear(self, layer: nn.Linear, source: Slot, after: nn.Module = AS_IS) -> Slot:
        """A vector from another one."""
        return self.product(layer.weight, layer.bias, source, after=after)

    def product(self, weight: Tensor, shift: Tensor | None, source: Slot, plus: Slot | None = None,
                after: nn.Module = AS_IS) -> Slot:  # fmt: skip
        """A vector: weight[K, C] times another one, plus shift[K], plus ``plus``, through an activation."""
        return self._product(source, weight.detach(), shift, None, plus, after, None)

    def pool(self, source: Slot, by_size: bool = False) -> Slot:
        """The vector that :func:`engine.nets.compute.pooling.pooled` makes of points, or ``pooled_by_size`` there."""
        target = self._new(source.channels, True, 3)
        self._line(kernels.POOL, source, target, POOLING=kernels.BY_SIZE if by_size else kernels.WITH_MAXIMUM)
        return target

    def norm(self, source: Slot, norm: Norm) -> Slot:
        """Normalised points, or a normalised vector."""
        target = self._new(source.channels, source.is_vector)
        self._line(kernels.NORM, source, target, after=norm.activation, SCALE=self._norm(norm, source))
        return target

    def free(self, *slots: Slot | None) -> None:
        """Say that nothing reads some slots any more: their memory may be used for others."""
        self._free += [slot for slot in slots if slot is not None]

    def output(self, name: str, slot: Slot) -> None:
        """Make a slot an output of the program; it must never be freed."""
        self._outputs[name] = slot

    def _new(self, channels: int, is_vector: bool, parts: int = 1) -> Slot:
        """A slot, in the memory of a free one if there is one of this kind."""
        for slot in self._free:
            if slot[1:] == (is_vector, channels, parts):
                self._free.remove(slot)
                return slot
        self._slots.append(Slot(len(self._slots), is_vector, channels, parts))
        return self._slots[-1]

    def _columns(self, layer: nn.Conv2d, source: Slot) -> Slot:
        """For each point all that a convolution sees there."""
        (height, width), (step_y, step_x) = layer.kernel_size, layer.dilation
        target = self._new(source.channels, False, height * width)
        self._line(
            kernels.COLUMNS, source, target, REACH_Y=height // 2, REACH_X=width // 2, STEP_Y=step_y, STEP_X=step_x
        )
        return target

    def _product(self, source: Slot, matrix: Tensor, shift: Tensor | None, bias: Slot | None, plus: Slot | None,
                 after: nn.Module, into: Slot | None) -> Slot:  # fmt: skip
        """Outputs of a matrix[K, parts * C] for every point, or for the board."""
        into = into or self._new(len(matrix), source.is_vector)

        def numbers() -> Tensor:
            padded_parts = matrix.new_zeros(len(matrix), source.parts, source.pitch // source.parts)
            padded_parts[:, :, : source.channels] = matrix.reshape(len(matrix), source.parts, source.channels)
            return in_panels(padded_parts.reshape(1, len(matrix), -1).transpose(1, 2))

        self._line(kernels.PRODUCT, source, into, numbers, self._bias(shift, into), bias, plus, after)
        return into

    def _line(self, kind: int, source: Slot, target: Slot, numbers: Callable[[], Tensor] | None = None, shift: int = 0,
              bias: Slot | None = None, plus: Slot | None = None, after: nn.Module = AS_IS,
              **more: int) -> None:  # fmt: skip
        """Write one line; what it does not name is 0."""
        start, count = 0, 0
        if numbers is not None:
            points = (self._side + 2) ** 2 if kind == kernels.CONVOLUTION else 1
            count = points * source.pitch * target.pitch
            start = self._constant(count, numbers)
        fields = {
            "KIND": kind, "SOURCE": source.number, "TARGET": target.number, "PLUS": -1 if plus is None else plus.number,
            "BIAS_SLOT": -1 if bias is None else bias.number, "INNER": source.pitch, "PITCH": target.pitch,
            "PANEL": best_panel(target.channels), "NUMBERS": start, "COUNT": count, "BIAS": shift,
            "AFTER": _code(after), "IS_VECTOR": int(source.is_vector), **more,
        }  # fmt: skip
        line = [0] * kernels.FIELDS
        for name, value in fields.items():
            line[getattr(kernels, name)] = value
        self._lines.append(line)

    def _constant(self, count: int, values: Callable[[], Tensor]) -> int:
        """Where some constants begin, ``count`` of them, which are worked out when the program is to run."""
        self._numbers.append(values)
        self._count += count
        return self._count - count

    def _bias(self, values: Tensor | None, target: Slot) -> int:
        """Where the bias of a layer begins."""
        return self._constant(target.pitch, lambda: _filled(values, target.channels, target.pitch, 0.0))

    def _norm(self, norm: Norm | None, source: Slot) -> int:
        """Where scale and shift begin."""
        scale, shift = (None, None) if norm is None else (norm.scale, norm.shift)
        return self._constant(
            2 * source.pitch,
            lambda: torch.cat([
                _filled(scale, source.channels, source.pitch, 1.0), _filled(shift, source.channels, source.pitch, 0.0),
            ]),
        )  # fmt: skip


def _code(activation: nn.Module) -> int:
    """The number of an activation."""
    if type(activation) not in ACTIVATIONS:
        raise Unwritable(f"{activation}")
    return ACTIVATIONS[type(activation)]


def _filled(values: Tensor | None, channels: int, pitch: int, default: float) -> Tensor:
    """float32[pitch]: values[channels] in any shape, zeros behind them; None = all the default."""
    filled = torch.zeros(pitch)
    filled[:channels] = default if values is None else values.detach().reshape(-1)
    return filled


class WrittenNetwork:
    """A program that is written: runs it on batches. Threads: any number at once, each with memory of its own."""

    def __init__(self, program: Program):
        """Take over a program, to which nothing may be added any more."""
        self._side, self._slots, self._outputs = program._side, program._slots, program._outputs
        self._lines = np.array(program._lines, np.int64)
        # One large array, and so on large pages.
        self._numbers = np.concatenate([make().detach().float().reshape(-1).numpy() for make in program._numbers])
        tiled = [line for line in self._lines if line[kernels.KIND] == kernels.CONVOLUTION]
        added = [line for line in self._lines if line[kernels.KIND] == kernels.PRODUCT and line[kernels.PLUS] >= 0]
        self._widest = max((max(line[kernels.INNER], line[kernels.PITCH]) for line in tiled), default=1)
        self._widest_sum = max((line[kernels.PITCH] for line in added), default=1)
        pitches = np.array([slot.pitch for slot in self._slots])
        are_vectors = np.array([slot.is_vector for slot in self._slots])
        self._points, self._vectors = pitches * ~are_vectors, pitches * are_vectors

    def run(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """The outputs by name: [B, C, N, N] of points, [B, C] of vectors.

        As many threads compute as torch has here, each some of the boards.

        Args:
            planes: float32[B, C, N, N]; ``globals_`` float32[B, G].
        """
        count, threads = len(planes), torch.get_num_threads()
        each = min(MOST_BOARDS, -(-count // threads))
        if each >= count:
            return self._run(planes, globals_)
        parts = planes.split(each), globals_.split(each)
        found = list(_pool(threads).map(self._run, *parts) if threads > 1 else map(self._run, *parts))
        return {name: torch.cat([part[name] for part in found]) for name in self._outputs}

    def _run(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """:meth:`run` in this thread."""
        count, size = planes.shape[0], planes.shape[2]
        tiles = int(tiles_a_line(size, self._side))
        group = min(count, group_of(tiles))
        rows = (self._side + 2) ** 2 * group * tiles**2
        places, total = self._places(count, size)
        memory = MEMORY.of("program", total)
        kernels.run(
            self._lines, self._numbers, places, planes.reshape(count, -1, size * size).numpy(),
            globals_.contiguous().numpy(), size, self._side, group, memory, MEMORY.of("points", rows * self._widest),
            MEMORY.of("products", max(rows * self._widest, count * size**2 * self._widest_sum)),
            MEMORY.of("sheet", (self._side * tiles + 2) ** 2 * self._widest),
        )  # fmt: skip
        return {
            name: self._output(slot, memory[places[slot.number] :], count, size) for name, slot in self._outputs.items()
        }

    def _places(self, count: int, size: int) -> tuple[np.ndarray, int]:
        """int64[slots]: where each begins in the memory of a batch; and how long that is."""
        lengths = self._points * (count * size**2) + self._vectors * count
        ends = np.cumsum(lengths)
        return ends - lengths, int(ends[-1])

    def _output(self, slot: Slot, memory: np.ndarray, count: int, size: int) -> Tensor:
        """A copy of what a slot holds."""
        shape = (count,) if slot.is_vector else (count, size, size)
        held = memory[: math.prod(shape) * slot.pitch].reshape(*shape, slot.pitch)[..., : slot.channels]
        values = torch.from_numpy(held.copy())
        return values if slot.is_vector else values.permute(0, 3, 1, 2)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads for callers with more than one."""
    return ThreadPoolExecutor(threads, "program")
