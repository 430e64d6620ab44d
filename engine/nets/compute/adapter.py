"""From an architecture to the Network interface: precision, memory layout, tracing or compiling."""

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
from engine.nets.network import Model, NetOutput, NetworkSpec, RawHeads, finished

COUNTED_ON = 9
"""A board to count globals on: their number does not depend on it"""
_BUILDING = threading.Lock()
"""Of all networks: one is traced or compiled at a time. What a thread does to the process's warnings while it traces,
another one would undo; and of several that need the same thing one makes it."""


class TorchNetwork:
    """A trained model of any architecture behind the Network interface, frozen for one device.

    Batch normalisation is folded away. On CUDA it runs in 16 bits (about twice as fast; win rates move by less than
    0.01); outputs are float32 either way. Processors run it in float32 as a program
    (:mod:`engine.nets.compute.program`), if its layers can be written as one, which is nearly always faster than torch
    in 16 bits; a matrix unit for those may be faster still. For the rest, in 16 bits where there are instructions for
    them, each board size is traced and frozen once.
    """

    def __init__(self, model: Model, spec: NetworkSpec, device: torch.device, reduced: bool | None = None,
                 written: bool = True):  # fmt: skip
        """Take a copy of the model; the model itself stays as it is.

        Args:
            model: on the CPU in float32.
            reduced: 16 bits (:func:`engine.nets.compute.precision.reduced_dtype`); None = where the device is faster
                with them.
            written: as a program, where that is faster than torch.
        """
        self.spec, self.device, self.batches_requests, self.shape = spec, device, device.type != "cpu", model.shape
        present = _PresentHeads(model)
        can_write = device.type == "cpu" and written and _can_write(present.model)
        if reduced is None:
            reduced = prefers_bfloat16(device) and (not can_write or has_matrix_unit())
        self.dtype = reduced_dtype(device, model.prefers_float16) if reduced else torch.float32
        self._model = present.to(device, self.dtype)
        # Tensor.to takes a memory format as well, but torch's stubs know it of tensors alone.
        self._model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        is_exact = device.type == "cpu" and self.dtype == torch.float32
        self.is_written = is_exact and can_write
        """whether it runs as programs"""
        self.is_plain = is_exact and not self.is_written
        """whether it computes as :func:`exact_output` does"""
        self._ready: dict[int, Callable[[Tensor, Tensor], RawHeads]] = {}

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        self._check(planes, globals_)
        with torch.inference_mode():
            return finished(self._for_size(planes.shape[2])(planes, globals_))

    def _check(self, planes: Tensor, globals_: Tensor) -> None:
        """Refuse what another encoder wrote, and boards of other sizes."""
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
        """The call for boards of one size, made when it is first needed; a program serves all boards of its tiles, a
        GPU's serves any."""
        key = tile_side(size) if self.is_written else size if self.device.type == "cpu" else 0
        if key not in self._ready:
            with _BUILDING:
                if key not in self._ready:
                    self._ready[key] = self._by_program(key) if self.is_written else self._by_torch(key)
        return self._ready[key]

    def _by_program(self, side: int) -> Callable[[Tensor, Tensor], RawHeads]:
        """The model compiled for boards whose tiles have this side."""
        model, compiled = self._model.model, _program(self._model.model, side).finish()

        def call(planes: Tensor, globals_: Tensor) -> RawHeads:
            outputs = compiled.run(planes, model.globals_of_program(globals_, planes.shape[2]))
            return model.heads_of(outputs, planes, globals_)

        return call

    def _by_torch(self, size: int) -> Callable[[Tensor, Tensor], RawHeads]:
        """The model as torch runs it, frozen for one board size; 0 = any."""
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
    """A model's program for boards whose tiles have this side.

    Raises:
        Unwritable: it has other layers.
    """
    globals_ = model.globals_of_program(torch.zeros(1, model.shape.globals), COUNTED_ON)
    program = Program(model.shape.planes, globals_.shape[1], side)
    model.write_program(program)
    return program


def _can_write(model: Model) -> bool:
    """Whether a model can be written as a program."""
    try:
        _program(model, 4)
    except Unwritable:
        return False
    return True


class _PresentHeads(nn.Module):
    """A model whose outputs are the heads it has: a trace cannot return None."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = cast(Model, folded(model))
        self.eval()

    def forward(self, planes: Tensor, globals_: Tensor) -> tuple[Tensor, ...]:
        """The heads of :meth:`engine.nets.network.Model.forward` that are there, in their order."""
        return tuple(head for head in self.model(planes, globals_) if head is not None)


def exact_output(model: Model, planes: Tensor, globals_: Tensor) -> NetOutput:
    """What a model computes in float32 on the CPU, the slow way: the reference for any other.

    Args:
        model: on the CPU in float32; put into evaluation mode.
        planes: float32[B, C, N, N]; ``globals_`` float32[B, G].
    """
    with torch.inference_mode():
        return finished(model.eval()(planes, globals_))
