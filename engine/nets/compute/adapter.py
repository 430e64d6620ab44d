"""From an architecture to the Network interface: precision, memory layout, tracing, and the quirks of its outputs."""

import threading
import warnings
from typing import cast

import torch
from torch import Tensor, nn

from engine.nets.architectures.alphago_zero import folded
from engine.nets.compute.packing import with_packed_weights
from engine.nets.compute.precision import has_matrix_unit, prefers_bfloat16, reduced_dtype
from engine.nets.compute.program import Program, Unwritable
from engine.nets.compute.winograd_tiles import tile_side
from engine.nets.compute.written import WrittenNetwork
from engine.nets.network import Model, NetOutput, NetworkSpec, RawHeads

PASS_GAP = 10.0
"""How far below the lowest point's logit a pass lies for a network without a pass output: it is the last choice, and
chosen where nothing else is legal or a search finds everything else worse."""
COUNTED_ON = 9
"""A board to count globals on: their number does not depend on it"""
_BUILDING = threading.Lock()
"""Of all networks: one is traced or written at a time. What a thread does to the process's warnings while it traces,
another one would undo; and of several that need the same thing one makes it."""


class TorchNetwork:
    """A trained model of any architecture behind the Network interface, frozen for one device.

    Batch normalisation is folded away. On CUDA it runs in 16 bits (about twice as fast; win rates move by less than
    0.01); outputs are float32 either way. Processors run it in float32 as a program
    (:mod:`engine.nets.compute.program`), if its layers can be written as one, which is nearly always faster than torch
    in 16 bits; a matrix unit for those may be faster still. For the rest, in 16 bits where there are instructions for
    them, each board size is traced and frozen once, and with one thread of torch, as evaluators have, its weights are
    packed (:mod:`engine.nets.compute.packing`).
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
        self.spec = spec
        self.device = device
        self.merges = device.type != "cpu"
        self.shape = model.shape
        present = _PresentHeads(model)
        can_write = device.type == "cpu" and written and _can_write(present.model)
        if reduced is None:
            reduced = prefers_bfloat16(device) and (not can_write or has_matrix_unit())
        self.dtype = reduced_dtype(device, model.prefers_float16) if reduced else torch.float32
        self._model = present.to(device, self.dtype)
        # Tensor.to takes a memory format as well, but torch's stubs know it of tensors alone.
        self._model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        has = (spec.has_policy, spec.has_value, spec.has_score, spec.has_ownership)
        # What comes after these heads is of training alone.
        self._heads = [name for name, there in zip(RawHeads._fields, has, strict=False) if there]
        is_exact = device.type == "cpu" and self.dtype == torch.float32
        self._programs: dict[int, WrittenNetwork] = {}
        self.is_written = is_exact and can_write
        """whether it runs as programs"""
        self.is_plain = is_exact and not self.is_written
        """whether it computes as :func:`exact_output` does"""
        self._frozen: dict[tuple[int, bool], nn.Module] = {}

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        self._check(planes, globals_)
        with torch.inference_mode():
            if self.is_written:
                return _to_output(self._by_program(planes, globals_), planes.shape[2])
            x = planes.to(dtype=self.dtype, memory_format=torch.channels_last)
            heads = self._for_size(planes.shape[2])(x, globals_.to(self.dtype))
            return _to_output(RawHeads(**dict(zip(self._heads, heads, strict=True))), planes.shape[2])

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

    def _for_size(self, size: int) -> nn.Module:
        """The model to call for one board size; where it is traced, that happens at the first call."""
        if self.device.type != "cpu":
            return self._model
        key = (size, torch.get_num_threads() == 1)
        if key not in self._frozen:
            with _BUILDING:
                if key not in self._frozen:
                    self._frozen[key] = self._traced(size)
        return self._frozen[key]

    def _by_program(self, planes: Tensor, globals_: Tensor) -> RawHeads:
        """The heads, computed by a program, which is written at the first call for boards with tiles of some size."""
        model, size = self._model.model, planes.shape[2]
        side = tile_side(size)
        if side not in self._programs:
            with _BUILDING:
                if side not in self._programs:
                    self._programs[side] = _program(model, side).finish()
        outputs = self._programs[side].run(planes, model.globals_of_program(globals_, size))
        return model.heads_of_program(outputs, planes, globals_)

    def _traced(self, size: int) -> nn.Module:
        """The model frozen for one board size and the threads that torch has here."""
        planes = torch.zeros(2, self.shape.planes, size, size, dtype=self.dtype)
        globals_ = torch.zeros(2, self.shape.globals, dtype=self.dtype)
        example = (planes.to(memory_format=torch.channels_last), globals_)
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")
            model = with_packed_weights(self._model, size)
            return torch.jit.freeze(torch.jit.trace(model, example, check_trace=False))


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
        return _to_output(model.eval()(planes, globals_), planes.shape[2])


def with_pass(policy: Tensor, size: int) -> Tensor:
    """Logits [B, N*N+1] of a policy head that may lack the pass; then it is the last choice."""
    if policy.shape[1] > size * size:
        return policy
    return torch.cat([policy, policy.amin(dim=1, keepdim=True) - PASS_GAP], dim=1)


def _to_output(raw: RawHeads, size: int) -> NetOutput:
    """Raw heads as :class:`engine.nets.network.Network` promises them."""
    policy, value, score, ownership, _ = (None if head is None else head.float() for head in raw)
    return NetOutput(
        policy=None if policy is None else with_pass(policy, size),
        value=None if value is None else value.tanh(),
        score=score,
        ownership=None if ownership is None else ownership.tanh(),
    )
