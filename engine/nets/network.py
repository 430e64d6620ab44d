"""The network interface: heads, spec, and one call that evaluates a batch.

Networks convert what differs between formats (a missing pass logit, values for Black, win/loss/no-result), so that
callers see the same heads. :data:`HEADS` describes all heads; a missing head is None.
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
"""How far below the lowest point's logit the pass logit is set for a network without a pass output: the pass is the
last choice, played if no other move is legal or a search finds all others worse."""
MIN_SIZE, MAX_SIZE = 2, 25
"""Smallest and largest board of the engine"""


class Heads(NamedTuple, Generic[T]):
    """Outputs for B positions on boards of N x N, all from the view of the side to move; None = no such head."""

    policy: T | None = None
    """float32[B, N*N+1]: logits in policy order, pass last; not masked for legality"""
    value: T | None = None
    """float32[B]: expected result, -1 = loss to 1 = win"""
    score: T | None = None
    """float32[B]: expected lead in points, komi counted"""
    ownership: T | None = None
    """float32[B, N, N]: 1 = certainly the side to move's, -1 = certainly the opponent's"""

    def each(self, change: Callable[[T], T]) -> "Heads[T]":
        """The heads after a function is applied to each that is not None."""
        return Heads(*(None if head is None else change(head) for head in self))


NetOutput = Heads[Tensor]
NetArrays = Heads[np.ndarray]


class RawHeads(NamedTuple):
    """The output of :meth:`Model.forward`, before activations; None = no such head.

    The first four are those of :class:`Heads`, from the view of the side to move, in the dtype of the forward pass.
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
    """logits [B, N*N+1] of the opponent's next move, pass last; only in training mode"""


def with_pass(policy: Tensor) -> Tensor:
    """Policy logits [B, N*N+1]; a missing pass logit ([B, N*N]) is added ``PASS_GAP`` below the lowest."""
    if math.isqrt(policy.shape[1]) ** 2 < policy.shape[1]:
        return policy
    return torch.cat([policy, policy.amin(dim=1, keepdim=True) - PASS_GAP], dim=1)


def _as_it_is(head: Tensor) -> Tensor:
    return head


class Head(NamedTuple):
    """How a head is shaped, activated, and compared with a reference."""

    shape: Callable[[int], tuple[int, ...]]
    """shape of one position's output on a board of N x N"""
    activate: Callable[[Tensor], Tensor]
    """converts the raw head to the network's output"""
    unit: str
    """name of the unit in which differences are reported"""
    in_unit: Callable[[Tensor], Tensor]
    """converts the network's output to ``unit``"""
    limit_32: float
    """largest accepted difference in float32, which GPUs may multiply with 11 significant bits"""
    limit_16: float
    """largest accepted difference in 16 bits"""
    decides: bool = False
    """a difference beyond ``limit_16`` makes the network run in 32 bits"""


HEADS = {
    "policy": Head(lambda n: (n * n + 1,), with_pass, "policy", lambda logits: logits.softmax(1), 0.002, 0.05, True),
    "value": Head(lambda n: (), Tensor.tanh, "win rate", lambda value: (1 + value) / 2, 0.002, 0.02, True),
    "score": Head(lambda n: (), _as_it_is, "score", _as_it_is, 0.05, 1.0),
    "ownership": Head(lambda n: (n, n), Tensor.tanh, "ownership", _as_it_is, 0.01, 0.1),
}
"""Descriptions of the fields of :class:`Heads`, in their order"""


def activated(raw: RawHeads) -> NetOutput:
    """A network's outputs from a model's raw heads."""
    heads = zip(HEADS.values(), raw, strict=False)  # Without the reply, which only training uses.
    return NetOutput(*(None if found is None else head.activate(found.float()) for head, found in heads))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities float64[B, A] of logits[B, A]; 0 for a logit of minus infinity."""
    weights: np.ndarray = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def dimension(text: str, low: int, high: int, default: Any = MISSING) -> Any:
    """A field of a shape, with help text and range; without a default it is required."""
    return option(default, text, low=low, high=high)


def board_size() -> Any:
    """The field ``size`` of an architecture with parameters for one board size."""
    return dimension("board size", MIN_SIZE, MAX_SIZE, 19)


@dataclass(frozen=True)
class Shape:
    """Base of all architectures' shapes: numbers of input planes and global values; ``size`` if boards have one size.

    Raises:
        ValueError: a value is not an integer or out of range; one line.
    """

    planes: int
    # Not a field, since it has no annotation; shapes with global values declare it as one.
    globals = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"{item.name} is {str(value)[:40]!r}, expected a whole number")
        check(self)

    @classmethod
    def read(cls, values: Any) -> Self:
        """The shape that a file's header or options describe.

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
    """Initialise a layer's weight so that activations keep their variance (He et al., 2015).

    A weight on the device ``meta`` is skipped: torch would import its compiler, which takes a second at every start.

    Args:
        nonlinearity: the layer's activation, by its name in ``torch.nn.init``.
    """
    if not weight.is_meta:
        nn.init.kaiming_normal_(weight, nonlinearity=nonlinearity)


class Model(nn.Module):
    """Base of all architectures. Files store models, training changes them, and a :class:`Network` evaluates them."""

    prefers_float16 = False
    """whether CUDA uses float16, since bfloat16's 8 significant bits are too coarse; activations must fit float16"""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape

    def forward(self, planes: Tensor, globals_: Tensor) -> RawHeads:
        """The heads for planes[B, C, N, N] and globals_[B, G], both in the dtype of the weights."""
        return self.heads_of(self.outputs(planes, globals_), planes, globals_)

    def outputs(self, planes: Tensor, globals_: Tensor) -> Mapping[str, Tensor]:
        """What the program (:meth:`write_program`) outputs, computed by torch; in training mode perhaps more.

        An architecture with its own :meth:`forward` needs neither this nor :meth:`heads_of`.

        Args:
            planes, globals_: as for :meth:`forward`.
        """
        raise NotImplementedError

    def write_program(self, program: Program) -> None:
        """Write the layers before :meth:`heads_of` to a program; the model's batch normalisation has been folded.

        Inputs are ``program.planes`` and ``program.globals``; the model chooses the names of its outputs.

        Raises:
            Unwritable: the model has layers that programs do not support.
        """
        raise Unwritable(type(self).__name__)

    def heads_of(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """The heads from the results of :meth:`outputs` or of the program.

        Args:
            outputs: by name: float32[B, C, N, N] of points, [B, C] of the whole board.
            planes, globals_: as for :meth:`forward`.
        """
        raise NotImplementedError

    def globals_of_program(self, globals_: Tensor, size: int) -> Tensor:
        """The program's global values [B, G] for boards of ``size`` x ``size``; by default the model's own."""
        return globals_


def replaced(
    model: nn.Module, replace: Callable[[nn.Module], nn.Module | None], shares_values: bool = False
) -> nn.Module:
    """A copy of a model with some of its layers replaced.

    Args:
        replace: returns a layer's replacement; None = the layer stays.
        shares_values: the copy shares parameters and buffers with the model.
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
    """A network's name, encoder, board sizes and heads."""

    name: str
    """file stem or training name, for messages"""
    encoder: str
    """name in ``engine.features.encoder.ENCODERS``"""
    min_size: int
    max_size: int
    heads: tuple[str, ...] = ("policy", "value")
    """fields of :class:`Heads` that are not None"""

    @property
    def sizes(self) -> tuple[int, int]:
        """Smallest and largest board."""
        return self.min_size, self.max_size

    def plays(self, size: int) -> bool:
        """Whether the network plays a board size."""
        return self.min_size <= size <= self.max_size

    @property
    def said(self) -> str:
        """Text for messages: the network's name and board sizes."""
        return f"network {self.name} plays boards of {said_sizes(self.sizes)}"

    def check_sizes(self, sizes: Iterable[int]) -> None:
        """Refuse board sizes that the network does not play.

        Raises:
            ValueError: it does not play one of them; one line.
        """
        for size in sizes:
            if not self.plays(size):
                raise ValueError(f"{self.said}, not {size}")


class Network(Protocol):
    """A network loaded onto one device."""

    spec: NetworkSpec
    device: torch.device
    batches_requests: bool
    """whether large batches cost little more than small ones, as on a GPU, so requests are merged; otherwise several
    callers evaluate at once, each on its own core"""

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """Evaluate a batch.

        Args:
            planes: float32[B, C, N, N] of the spec's encoder, on ``device``.
            globals_: float32[B, G] of the spec's encoder, on ``device``; G may be 0.
        Returns:
            NetOutput on ``device``, float32.
        Raises:
            ValueError: planes or globals of another encoder, or an unplayed board size; one line.
        Threads: any number, on CUDA each on its own stream; one at a time on MPS.
        """
        ...
