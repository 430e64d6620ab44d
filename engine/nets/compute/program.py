"""A network's forward pass as a list of lines, which one kernel works off: for processors in float32.

torch takes some 20 us for each of a hundred operations on a small board, longer in all than a 6x96 network needs for
its convolutions, and between them it waits for the interpreter's lock. A :class:`Program` is written once for a
network, in the words of its layers (:meth:`engine.nets.network.Model.write_program`), and then run by one kernel
(:mod:`engine.nets.compute.program_kernels`) without torch or Python between its lines. 3x3 convolutions go by
Winograd's filtering (:mod:`engine.nets.compute.winograd`); all other layers are products of matrices.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.compute import program_kernels as kernels
from engine.nets.compute.winograd import best_panel, in_panels, transform_filters
from engine.nets.compute.written import Constant, Slot, WrittenNetwork

ACTIVATIONS: dict[type[nn.Module], int] = {
    nn.Identity: kernels.IDENTITY, nn.ReLU: kernels.RELU, nn.Mish: kernels.MISH, nn.SiLU: kernels.SILU,
}  # fmt: skip
AS_IS = nn.Identity()


class Before(NamedTuple):
    """What is done to the channels before a layer: x * scale + shift, then an activation."""

    activation: nn.Module
    scale: Tensor | None = None
    """[C] in any shape; None = 1"""
    shift: Tensor | None = None
    """likewise; None = 0"""


RELU = Before(nn.ReLU())


class Unwritable(Exception):
    """A network has a layer that no line computes."""


class Program:
    """The lines of a network, for boards whose tiles have one side, while they are written.

    Methods that write take slots and return the slot of what they compute. What architectures ask for must fit
    together; assertions say where it does not.
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
        self._lines: list[tuple[int, ...]] = []
        self._constants: list[Constant] = []
        self._outputs: dict[str, Slot] = {}
        self.planes = self._new(planes, is_vector=False)
        self.globals = self._new(globals_, is_vector=True)
        assert (self.planes.number, self.globals.number) == (kernels.PLANES, kernels.GLOBALS)

    def convolution(self, layer: nn.Conv2d, source: Slot, before: Before | None = None, bias: Slot | None = None,
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
            source = self._columns(layer, source)
            spent.append(source)
        weight, side = layer.weight.detach(), self._side
        if by_winograd:
            into = into or self._new(len(weight), is_vector=False)
            self._line(
                kernels.CONVOLUTION, source, into, lambda: in_panels(transform_filters(weight, side)),
                self._bias(layer.bias, into), bias, plus, after, scale=self._scale(before, source),
                before=_code(AS_IS if before is None else before.activation),
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
        self._line(kernels.POOL, source, target, pooling=kernels.BY_SIZE if by_size else kernels.WITH_MAXIMUM)
        return target

    def norm(self, source: Slot, before: Before) -> Slot:
        """Normalised points, or a normalised vector."""
        target = self._new(source.channels, source.is_vector)
        self._line(kernels.NORM, source, target, after=before.activation, scale=self._scale(before, source))
        return target

    def before_several(self, source: Slot, before: Before) -> tuple[Slot, Before | None]:
        """What several 3x3 convolutions of the same inputs are given, so that nothing slow is done to these twice."""
        return (source, before) if _is_quick(before) else (self.norm(source, before), None)

    def free(self, *slots: Slot | None) -> None:
        """Say that nothing reads some slots any more: their memory may be used for others."""
        given = [slot for slot in slots if slot is not None]
        assert not {*given} & {*self._free, *self._outputs.values()}, given
        self._free += given

    def output(self, name: str, slot: Slot) -> None:
        """Make a slot an output of the program; it must never be freed."""
        assert slot not in self._free, slot
        self._outputs[name] = slot

    def finish(self) -> WrittenNetwork:
        """The network as written so far, ready to run; the program can be thrown away."""
        lines = np.array(self._lines, kernels.LINE)
        return WrittenNetwork(self._side, lines, self._constants, self._slots, self._outputs)

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
            kernels.COLUMNS, source, target, reach_y=height // 2, reach_x=width // 2, step_y=step_y, step_x=step_x
        )
        return target

    def _product(self, source: Slot, matrix: Tensor, shift: Tensor | None, bias: Slot | None, plus: Slot | None,
                 after: nn.Module, into: Slot | None) -> Slot:  # fmt: skip
        """Outputs of a matrix[K, parts * C] for every point, or for the board."""
        into = into or self._new(len(matrix), source.is_vector)
        assert matrix.shape[1] == source.parts * source.channels, (matrix.shape, source)
        # Sums are written at once, unless something is added to them.
        assert into != source or plus is not None, into

        def numbers() -> Tensor:
            padded_parts = matrix.new_zeros(len(matrix), source.parts, source.pitch // source.parts)
            padded_parts[:, :, : source.channels] = matrix.reshape(len(matrix), source.parts, source.channels)
            return in_panels(padded_parts.reshape(1, len(matrix), -1).transpose(1, 2))

        self._line(kernels.PRODUCT, source, into, numbers, self._bias(shift, into), bias, plus, after)
        return into

    def _line(self, kind: int, source: Slot, target: Slot, filters: Callable[[], Tensor] | None = None, bias: int = 0,
              bias_slot: Slot | None = None, plus: Slot | None = None, after: nn.Module = AS_IS,
              **more: int) -> None:  # fmt: skip
        """Write one line; what it does not name is 0."""
        start, count = 0, 0
        if filters is not None:
            points = (self._side + 2) ** 2 if kind == kernels.CONVOLUTION else 1
            count = points * source.pitch * target.pitch
            start = self._constant(count, filters)
        fields = {
            "kind": kind, "source": source.number, "target": target.number, "plus": -1 if plus is None else plus.number,
            "bias_slot": -1 if bias_slot is None else bias_slot.number, "is_vector": int(source.is_vector),
            "inner": source.pitch, "pitch": target.pitch, "filters": start, "filter_count": count, "bias": bias,
            "panel": best_panel(target.channels), "after": _code(after), **more,
        }  # fmt: skip
        assert kernels.LINE.names is not None and fields.keys() <= set(kernels.LINE.names), fields
        self._lines.append(tuple(fields.get(name, 0) for name in kernels.LINE.names))

    def _constant(self, count: int, make: Callable[[], Tensor]) -> int:
        """Where some constants begin, ``count`` of them, which are worked out at the end."""
        last = self._constants[-1] if self._constants else Constant(0, 0, make)
        self._constants.append(Constant(last.start + last.length, count, make))
        return self._constants[-1].start

    def _bias(self, values: Tensor | None, target: Slot) -> int:
        """Where the bias of a layer begins."""
        return self._constant(target.pitch, lambda: _filled(values, target.channels, target.pitch, 0.0))

    def _scale(self, before: Before | None, source: Slot) -> int:
        """Where scale and shift begin."""
        scale, shift = (None, None) if before is None else (before.scale, before.shift)
        return self._constant(
            2 * source.pitch,
            lambda: torch.cat([
                _filled(scale, source.channels, source.pitch, 1.0), _filled(shift, source.channels, source.pitch, 0.0),
            ]),
        )  # fmt: skip


def _is_quick(before: Before) -> bool:
    """Whether a 3x3 convolution does this to its inputs by the way."""
    return isinstance(before.activation, nn.Identity | nn.ReLU)


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
