"""What every network looks like from outside: its heads, a spec, and one call that evaluates a batch.

Quirks of a format (a missing pass logit, values for Black, win/loss/no-result) are removed in the adapter that
implements this interface, never above it. What there is to know of a head stands in one table, :data:`HEADS`; a head
that a network does not have is None, as its spec has it.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from engine.config.declaration import check, option
from engine.nets.compute.program import Program, Unwritable
from engine.nets.notices import said_sizes

T = TypeVar("T")
PASS_GAP = 10.0
"""How far below the lowest point's logit a pass lies for a network without a pass output: it is the last choice, and
chosen where nothing else is legal or a search finds everything else worse."""
MIN_SIZE, MAX_SIZE = 2, 25
"""Sizes of boards in the engine"""


class Heads(NamedTuple, Generic[T]):
    """Outputs for B positions on boards of N x N, all from the view of the side to move; None = no such head."""

    policy: T | None = None
    """float32[B, N*N+1]: logits in policy order, pass last; not masked for legality"""
    value: T | None = None
    """float32[B]: expected result, -1 = loss to 1 = win"""
    score: T | None = None
    """float32[B]: expected lead in points, komi counted"""
    ownership: T | None = None
    """float32[B, N, N]: 1 = surely the mover's, -1 = surely the opponent's"""

    def each(self, change: Callable[[T], T]) -> "Heads[T]":
        """The same with every head changed that is there."""
        return Heads(*(None if head is None else change(head) for head in self))


NetOutput = Heads[Tensor]
NetArrays = Heads[np.ndarray]


class RawHeads(NamedTuple):
    """What :meth:`Model.forward` returns and training works on; None = no such head.

    First those of :class:`Heads`, in its order, from the same view, in the dtype of the forward pass.
    """

    policy: Tensor | None = None
    """logits [B, N*N+1], pass last; [B, N*N] from an architecture without a pass output"""
    value: Tensor | None = None
    """[B]: its tanh is the value"""
    score: Tensor | None = None
    """[B], in points"""
    ownership: Tensor | None = None
    """[B, N, N]: its tanh is the ownership"""
    reply: Tensor | None = None
    """logits [B, N*N+1] of the opponent's next move, pass last; only of a model in training mode, since no search asks
    for it"""


def with_pass(policy: Tensor) -> Tensor:
    """Logits [B, N*N+1] of a policy head that may lack the pass, [B, N*N]; then it is the last choice."""
    if math.isqrt(policy.shape[1]) ** 2 < policy.shape[1]:
        return policy
    return torch.cat([policy, policy.amin(dim=1, keepdim=True) - PASS_GAP], dim=1)


def _as_it_is(head: Tensor) -> Tensor:
    return head


class Head(NamedTuple):
    """What there is to know of a head."""

    shape: Callable[[int], tuple[int, ...]]
    """of one position's output on a board of N x N"""
    finish: Callable[[Tensor], Tensor]
    """from a model's output to the network's"""
    unit: str
    """what people compare"""
    in_unit: Callable[[Tensor], Tensor]
    """from the network's output to that"""
    limit_32: float
    """largest difference between devices in float32, which GPUs may multiply with 11 significant bits"""
    limit_16: float
    """the same in 16 bits"""
    decides: bool = False
    """whether a network whose difference is beyond ``limit_16`` does not play so"""


HEADS = {
    "policy": Head(lambda n: (n * n + 1,), with_pass, "policy", lambda logits: logits.softmax(1), 0.002, 0.05, True),
    "value": Head(lambda n: (), Tensor.tanh, "win rate", lambda value: (1 + value) / 2, 0.002, 0.02, True),
    "score": Head(lambda n: (), _as_it_is, "score", _as_it_is, 0.05, 1.0),
    "ownership": Head(lambda n: (n, n), Tensor.tanh, "ownership", _as_it_is, 0.01, 0.1),
}
"""The fields of :class:`Heads`"""


def finished(raw: RawHeads) -> NetOutput:
    """A model's outputs as :class:`Network` promises them."""
    heads = zip(HEADS.values(), raw, strict=False)  # The reply is of training alone.
    return NetOutput(*(None if found is None else head.finish(found.float()) for head, found in heads))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities float64[B, A] of logits[B, A]; those of minus infinity are 0."""
    weights: np.ndarray = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def dimension(text: str, low: int, high: int, default: Any = MISSING) -> Any:
    """A field of a shape: its meaning and range; without a default it must be given."""
    return option(default, text, low=low, high=high)


def board_size() -> Any:
    """The field ``size`` of an architecture whose parameters belong to one board size."""
    return dimension("the one board size it plays", MIN_SIZE, MAX_SIZE, 19)


@dataclass(frozen=True)
class Shape:
    """Base of all shapes: the numbers of input planes and of global values; and ``size`` where that is fixed.

    Raises:
        ValueError: a value is no whole number or out of its range; one line.
    """

    planes: int
    # No field, for it has no annotation; a shape that reads global values makes it one.
    globals = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"{item.name} is {str(value)[:40]!r}, expected a whole number")
        check(self)

    @classmethod
    def read(cls, values: Any) -> Self:
        """The shape of a file's header or of options.

        Raises:
            ValueError: unknown or missing names, or wrong values; one line.
        """
        known = [item.name for item in fields(cls)]
        faults = [str(values)[:40]]
        if isinstance(values, Mapping):
            unknown = ", ".join(str(name)[:40] for name in values if name not in known)[:120]
            needed = {item.name for item in fields(cls) if item.default is MISSING}
            lacking = ", ".join(sorted(needed - set(values)))
            faults = [f"unknown {unknown}"] * bool(unknown) + [f"no {lacking}"] * bool(lacking)
        if faults:
            raise ValueError(f"the shape has {' and '.join(faults)}, expected {', '.join(known)}")
        return cls(**values)


def draw_normal(weight: Tensor, nonlinearity: Literal["relu", "linear"] = "relu") -> None:
    """Fill a layer's weight with random numbers that keep the size of what goes through it (He et al., 2015).

    A weight on the device ``meta`` stays as it is: to draw none there, torch would import its compiler, which takes a
    second of every start.

    Args:
        nonlinearity: what follows the layer, as ``torch.nn.init`` calls it.
    """
    if not weight.is_meta:
        nn.init.kaiming_normal_(weight, nonlinearity=nonlinearity)


class Model(nn.Module):
    """A module of any architecture: what files hold, training changes, and a :class:`Network` is made from."""

    prefers_float16 = False
    """whether bfloat16's 8-bit mantissa is too coarse for it; its activations must then fit float16"""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape

    def forward(self, planes: Tensor, globals_: Tensor) -> RawHeads:
        """The heads for planes[B, C, N, N] and globals_[B, G], both in the dtype of the weights."""
        return self.heads_of(self.outputs(planes, globals_), planes, globals_)

    def outputs(self, planes: Tensor, globals_: Tensor) -> Mapping[str, Tensor]:
        """By torch, and with more of them in training mode perhaps, what the program computes (:meth:`write_program`).

        Args:
            planes, globals_: as for :meth:`forward`, which needs neither this nor :meth:`heads_of` where it is an
                architecture's own.
        """
        raise NotImplementedError

    def write_program(self, program: Program) -> None:
        """Write the forward pass, batch normalisation folded, as far as lines of a program go.

        Its inputs are ``program.planes`` and ``program.globals``; its outputs have names of the model's own.

        Raises:
            Unwritable: the model has layers that no line computes.
        """
        raise Unwritable(type(self).__name__)

    def heads_of(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """The heads, from what :meth:`outputs` or a program computed.

        Args:
            outputs: of the program that :meth:`write_program` wrote, by name: float32[B, C, N, N] of points, [B, C] of
                the whole board.
            planes, globals_: as for :meth:`forward`.
        """
        raise NotImplementedError

    def globals_of_program(self, globals_: Tensor, size: int) -> Tensor:
        """[B, G] of the program's own, for boards of ``size`` x ``size``, from the model's; mostly the same."""
        return globals_


def replaced(
    model: nn.Module, replace: Callable[[nn.Module], nn.Module | None], shares_values: bool = False
) -> nn.Module:
    """A copy of a model with some of its layers exchanged.

    Args:
        replace: what takes a layer's place; None = the layer stays.
        shares_values: parameters and buffers are those of the model, not copies.
    """
    values = [*model.parameters(), *model.buffers()] if shares_values else []
    model = copy.deepcopy(model, {id(value): value for value in values})
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if (found := replace(child)) is not None:
                setattr(parent, name, found)
    return model


@dataclass(frozen=True)
class NetworkSpec:
    """What a network needs and offers."""

    name: str
    """for people: file stem or training name"""
    encoder: str
    """name in the encoder registry of engine/features"""
    min_size: int
    max_size: int
    heads: tuple[str, ...] = ("policy", "value")
    """fields of :class:`Heads` that are not None"""

    @property
    def sizes(self) -> tuple[int, int]:
        """Smallest and largest board."""
        return self.min_size, self.max_size

    def plays(self, size: int) -> bool:
        """Whether the network plays boards of a size."""
        return self.min_size <= size <= self.max_size

    @property
    def said(self) -> str:
        """For people: the network and the boards that it plays."""
        return f"network {self.name} plays boards of {said_sizes(self.sizes)}"

    def check_sizes(self, sizes: Iterable[int]) -> None:
        """Refuse boards that the network does not play.

        Raises:
            ValueError: one line.
        """
        for size in sizes:
            if not self.plays(size):
                raise ValueError(f"{self.said}, not {size}")


class Network(Protocol):
    """A network ready to evaluate on one device."""

    spec: NetworkSpec
    device: torch.device
    batches_requests: bool
    """whether batches are evaluated one after another and large ones cost little more than small ones, as on a GPU;
    else each of several callers has a core of its own"""

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """Evaluate a batch.

        Args:
            planes: float32[B, C, N, N] as the spec's encoder writes them, on ``device``.
            globals_: float32[B, G], likewise; G may be 0.
        Returns:
            NetOutput on ``device``, float32.
        Raises:
            ValueError: planes or globals of another encoder, or a board that the network does not play; one line.
        Threads: any number of callers at once, on CUDA each on a stream of its own; one at a time on MPS.
        """
        ...
