"""The network interface: heads, spec, and one call that evaluates a batch.

Networks convert what differs between formats (a missing pass logit, values for Black, win/loss/no-result), so that
callers see the same heads. :data:`HEADS` describes all heads; a missing head is None.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from engine.config.declaration import check, option
from engine.nets.forward import Forward, library_of, probabilities
from engine.nets.layers import Part
from engine.nets.notices import said_sizes

T = TypeVar("T")
U = TypeVar("U")
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

    def each(self, change: Callable[[T], U]) -> "Heads[U]":
        """The heads after a function is applied to each that is not None."""
        return Heads(*(None if head is None else change(head) for head in self))


NetArrays = Heads[np.ndarray]


class RawHeads(NamedTuple):
    """A network's outputs before activations, arrays or tensors; None = no such head.

    The first four are those of :class:`Heads`, from the view of the side to move, in the dtype of the forward pass.
    """

    policy: Any = None
    """logits [B, N*N+1], pass last; [B, N*N] from an architecture without a pass output"""
    value: Any = None
    """[B]: its tanh is the value"""
    score: Any = None
    """[B], in points"""
    ownership: Any = None
    """[B, N, N]: its tanh is the ownership"""
    reply: Any = None
    """logits [B, N*N+1] of the opponent's next move, pass last; only in training mode"""


def with_pass(policy: Any) -> Any:
    """Policy logits [B, N*N+1]; a missing pass logit ([B, N*N]) is added ``PASS_GAP`` below the lowest."""
    if math.isqrt(policy.shape[1]) ** 2 < policy.shape[1]:
        return policy
    library = library_of(policy)
    return library.concat([policy, library.amin(policy, axis=1, keepdims=True) - PASS_GAP], axis=1)


def _as_it_is(head: Any) -> Any:
    return head


def _tanh(head: Any) -> Any:
    return library_of(head).tanh(head)


class Head(NamedTuple):
    """How a head is shaped, activated, and compared with a reference."""

    shape: Callable[[int], tuple[int, ...]]
    """shape of one position's output on a board of N x N"""
    activate: Callable[[Any], Any]
    """converts the raw head, array or tensor, to the network's output"""
    unit: str
    """name of the unit in which differences are reported"""
    in_unit: Callable[[np.ndarray], np.ndarray]
    """converts the network's output to ``unit``"""
    limit_32: float
    """largest accepted difference in float32, which GPUs may multiply with 11 significant bits"""
    limit_16: float
    """largest accepted difference in 16 bits"""
    decides: bool = False
    """a difference beyond ``limit_16`` makes the network run in 32 bits"""


HEADS = {
    "policy": Head(lambda n: (n * n + 1,), with_pass, "policy", lambda logits: softmax(logits), 0.002, 0.05, True),
    "value": Head(lambda n: (), _tanh, "win rate", lambda value: (1 + value) / 2, 0.002, 0.02, True),
    "score": Head(lambda n: (), _as_it_is, "score", _as_it_is, 0.05, 1.0),
    "ownership": Head(lambda n: (n, n), _tanh, "ownership", _as_it_is, 0.01, 0.1),
}
"""Descriptions of the fields of :class:`Heads`, in their order"""


def activated(raw: RawHeads) -> Heads[Any]:
    """A network's outputs, float32, from its raw heads."""
    heads = zip(HEADS.values(), raw, strict=False)  # Without the reply, which only training uses.
    return Heads(*(None if found is None else head.activate(_as_float32(found)) for head, found in heads))


def _as_float32(head: Any) -> Any:
    return head.astype(np.float32, copy=False) if isinstance(head, np.ndarray) else head.float()


def in_units(output: NetArrays) -> dict[str, np.ndarray]:
    """The heads that are not None, in the units of :data:`HEADS`, by unit.

    Returns:
        dict: ``policy`` [B, N*N+1], probabilities; ``win rate`` [B], 0 to 1; ``score`` [B], points; ``ownership``
        [B, N, N], -1 to 1; all from the view of the side to move.
    """
    found = output._asdict().items()
    return {HEADS[name].unit: HEADS[name].in_unit(values) for name, values in found if values is not None}


def differences(exact: NetArrays, rough: NetArrays) -> dict[str, float]:
    """Largest difference of each head, in the units of :func:`in_units`; NaN counts as infinite.

    Args:
        exact, rough: outputs with the same heads for the same positions.
    """
    other, found = in_units(rough), {}
    for unit, one in in_units(exact).items():
        with np.errstate(invalid="ignore"):
            largest = float(np.abs(one - other[unit]).max())
        found[unit] = math.inf if math.isnan(largest) else largest
    return found


def excess(exact: NetArrays, rough: NetArrays) -> str:
    """Text for differences that are too large for play; empty if the outputs are finite and close enough."""
    found = differences(exact, rough)
    if lost := [unit for unit, difference in found.items() if not math.isfinite(difference)]:
        return f"outputs are NaN or infinite ({', '.join(lost)})"
    deciding = {head.unit: head.limit_16 for head in HEADS.values() if head.decides and head.unit in found}
    if all(found[unit] <= limit for unit, limit in deciding.items()):
        return ""
    return " and ".join(f"{unit} moves by {found[unit]:.3f}" for unit in deciding)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities float64[B, A] of logits[B, A]; 0 for a logit of minus infinity."""
    found: np.ndarray = probabilities(logits.astype(np.float64))
    return found


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


class PlainNetwork(Part):
    """Base of all architectures: a network's layers as arrays, and the description of its forward pass.

    A torch module made of it (:class:`engine.nets.model.Model`) has the same methods and attributes.
    """

    shape: Shape
    prefers_float16 = False
    """whether CUDA uses float16, since bfloat16's 8 significant bits are too coarse; activations must fit float16"""

    def describe(self, forward: Forward) -> None:
        """Describe all layers with weights, from ``forward.planes`` and ``forward.globals`` to named outputs."""
        raise NotImplementedError

    def heads_of(self, outputs: Mapping[str, Any], planes: Any, globals_: Any) -> RawHeads:
        """The heads from the outputs of :meth:`describe`.

        Args:
            outputs: by name: [B, C, N, N] of points, [B, C] of the whole board; arrays or tensors.
            planes, globals_: the network's inputs, [B, C, N, N] and [B, G].
        """
        raise NotImplementedError


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
    device: str
    """``cpu``, ``cuda:N`` or ``mps``"""
    batches_requests: bool
    """whether large batches cost little more than small ones, as on a GPU, so requests are merged; otherwise several
    callers evaluate at once, each on its own core"""

    def evaluate(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """Evaluate a batch.

        Args:
            planes: float32[B, C, N, N] of the spec's encoder.
            globals_: float32[B, G] of the spec's encoder; G may be 0.
        Returns:
            float32 arrays.
        Raises:
            ValueError: planes or globals of another encoder, or an unplayed board size; one line.
        Threads: any number; one at a time on MPS.
        """
        ...


def check_inputs(spec: NetworkSpec, shape: Shape, planes: Any, globals_: Any) -> None:
    """Refuse inputs of another encoder, and board sizes that the network does not play.

    Raises:
        ValueError: as for :meth:`Network.evaluate`.
    """
    given = tuple(planes.shape)
    if len(given) != 4 or given[1] != shape.planes or given[2] != given[3]:
        raise ValueError(f"{spec.name} takes {shape.planes} planes ({spec.encoder}) as [B, C, N, N], not {given}")
    if tuple(globals_.shape) != (given[0], shape.globals):
        raise ValueError(
            f"{spec.name} takes {shape.globals} global values ({spec.encoder}) for each of {given[0]} positions, "
            f"not {tuple(globals_.shape)}"
        )
    spec.check_sizes(given[2:3])
