"""The Network interface for models of any architecture: precision, memory layout, tracing or compiling."""

import threading
import warnings
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from engine.nets.architectures.alphago_zero import folded
from engine.nets.compute.precision import has_matrix_unit, prefers_bfloat16, reduced_dtype
from engine.nets.compute.program import Program, Unwritable
from engine.nets.compute.winograd import tile_side
from engine.nets.network import Model, NetOutput, NetworkSpec, RawHeads, activated

COUNTED_ON = 9
"""Board size on which a program's global values are counted; every board size gives the same number"""
_BUILDING = threading.Lock()
"""Held while a network is traced or compiled: tracing changes the process's warning filters, and threads that need the
same function should make it once."""


class TorchNetwork:
    """A trained model of any architecture behind the Network interface, frozen for one device.

    Batch normalisation is folded. CUDA runs the network in 16 bits (about twice as fast; win rates change by less than
    0.01); outputs are always float32. CPUs run the network in float32 as a program
    (:mod:`engine.nets.compute.program`) if its layers are supported, which is nearly always faster than torch in 16
    bits, except on CPUs with a matrix unit (AMX). Other models are traced and frozen by torch, once for each board
    size, in 16 bits if the CPU has instructions for them.
    """

    def __init__(self, model: Model, spec: NetworkSpec, device: torch.device, reduced: bool | None = None,
                 compiled: bool = True):  # fmt: skip
        """Copy the model onto the device; the given model is not changed.

        Args:
            model: on the CPU in float32.
            reduced: 16 bits (:func:`engine.nets.compute.precision.reduced_dtype`); None = if they are faster on the
                device.
            compiled: whether CPUs may run it as a program; False = torch alone.
        """
        self.spec, self.device, self.batches_requests, self.shape = spec, device, device.type != "cpu", model.shape
        present = _PresentHeads(model)
        can_write = device.type == "cpu" and compiled and _can_write(present.model)
        if reduced is None:
            reduced = prefers_bfloat16(device) and (not can_write or has_matrix_unit())
        self.dtype = reduced_dtype(device, model.prefers_float16) if reduced else torch.float32
        self._model = present.to(device, self.dtype)
        # Module.to takes a memory format too, but torch's stubs omit it.
        self._model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        is_exact = device.type == "cpu" and self.dtype == torch.float32
        self.is_compiled = is_exact and can_write
        """whether the network runs as programs"""
        self.is_plain = is_exact and not self.is_compiled
        """whether the network computes exactly as :func:`exact_output`"""
        self._ready: dict[int, Callable[[Tensor, Tensor], RawHeads]] = {}

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        self._check(planes, globals_)
        with torch.inference_mode():
            return activated(self._for_size(planes.shape[2])(planes, globals_))

    def _check(self, planes: Tensor, globals_: Tensor) -> None:
        """Refuse inputs of another encoder, and board sizes that the network does not play."""
        spec, shape, given = self.spec, self.shape, tuple(planes.shape)
        if len(given) != 4 or given[1] != shape.planes or given[2] != given[3]:
            raise ValueError(f"{spec.name} takes {shape.planes} planes ({spec.encoder}) as [B, C, N, N], not {given}")
        if tuple(globals_.shape) != (given[0], shape.globals):
            raise ValueError(
                f"{spec.name} takes {shape.globals} global values ({spec.encoder}) for each of {given[0]} positions, "
                f"not {tuple(globals_.shape)}"
            )
        spec.check_sizes(given[2:3])

    def _for_size(self, size: int) -> Callable[[Tensor, Tensor], RawHeads]:
        """The forward pass for one board size, made when it is first needed; a program serves all board sizes with the
        same Winograd tile size, a GPU's forward pass all board sizes."""
        key = tile_side(size) if self.is_compiled else size if self.device.type == "cpu" else 0
        if key not in self._ready:
            with _BUILDING:
                if key not in self._ready:
                    self._ready[key] = self._by_program(key) if self.is_compiled else self._by_torch(key)
        return self._ready[key]

    def _by_program(self, side: int) -> Callable[[Tensor, Tensor], RawHeads]:
        """The forward pass as a program, for boards with Winograd tile size ``side``."""
        model, compiled = self._model.model, _program(self._model.model, side).compiled()

        def call(planes: Tensor, globals_: Tensor) -> RawHeads:
            outputs = compiled.run(planes, model.globals_of_program(globals_, planes.shape[2]))
            return model.heads_of(outputs, planes, globals_)

        return call

    def _by_torch(self, size: int) -> Callable[[Tensor, Tensor], RawHeads]:
        """The forward pass by torch, traced and frozen for one board size; ``size`` 0 = any size, not traced."""
        model: nn.Module = self._model
        if size:
            planes = torch.zeros(2, self.shape.planes, size, size, dtype=self.dtype)
            globals_ = torch.zeros(2, self.shape.globals, dtype=self.dtype)
            example = planes.to(memory_format=torch.channels_last), globals_
            with warnings.catch_warnings(), torch.inference_mode():
                warnings.simplefilter("ignore")
                model = torch.jit.freeze(torch.jit.trace(self._model, example, check_trace=False))

        def call(planes: Tensor, globals_: Tensor) -> RawHeads:
            x = planes.to(dtype=self.dtype, memory_format=torch.channels_last)
            return RawHeads(**dict(zip(self.spec.heads, model(x, globals_.to(self.dtype)), strict=True)))

        return call


def _program(model: Model, side: int) -> Program:
    """A model's program for boards with Winograd tile size ``side``.

    Raises:
        Unwritable: the model has layers that programs do not support.
    """
    globals_ = model.globals_of_program(torch.zeros(1, model.shape.globals), COUNTED_ON)
    program = Program(model.shape.planes, globals_.shape[1], side)
    model.write_program(program)
    return program


def _can_write(model: Model) -> bool:
    """Whether programs support a model's layers."""
    try:
        _program(model, 4)
    except Unwritable:
        return False
    return True


class _PresentHeads(nn.Module):
    """A model that returns only its existing heads: a trace cannot return None."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = cast(Model, folded(model))
        self.eval()

    def forward(self, planes: Tensor, globals_: Tensor) -> tuple[Tensor, ...]:
        """The heads of :meth:`engine.nets.network.Model.forward` that are not None, in their order."""
        return tuple(head for head in self.model(planes, globals_) if head is not None)


def exact_output(model: Model, planes: Tensor, globals_: Tensor) -> NetOutput:
    """A model's outputs by torch in float32 on the CPU: the reference.

    Args:
        model: on the CPU in float32; put into evaluation mode.
        planes: float32[B, C, N, N]; ``globals_`` float32[B, G].
    """
    with torch.inference_mode():
        return activated(model.eval()(planes, globals_))
