"""What every network looks like from outside: a spec, and one call that evaluates a batch.

Quirks of a format (a missing pass logit, values for Black, win/loss/no-result) are removed in the adapter that
implements this interface, never above it. A head that a network does not have is None, as its spec has it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.architectures.shape import Shape
from engine.nets.compute.program import Program, Unwritable
from engine.nets.notices import said_sizes


class NetOutput(NamedTuple):
    """Outputs for B positions on boards of N x N, all from the view of the side to move; None = no such head."""

    policy: Tensor | None = None
    """float32[B, N*N+1]: logits in policy order, pass last; not masked for legality"""
    value: Tensor | None = None
    """float32[B]: expected result, -1 = loss to 1 = win"""
    score: Tensor | None = None
    """float32[B]: expected lead in points, komi counted"""
    ownership: Tensor | None = None
    """float32[B, N, N]: 1 = surely the mover's, -1 = surely the opponent's"""

    def each(self, change: Callable[[Tensor], Tensor]) -> "NetOutput":
        """The same with every head changed that is there."""
        return NetOutput(*(None if head is None else change(head) for head in self))


class NetArrays(NamedTuple):
    """:class:`NetOutput` as numpy's arrays, of the same shapes; None = no such head."""

    policy: np.ndarray | None = None
    value: np.ndarray | None = None
    score: np.ndarray | None = None
    ownership: np.ndarray | None = None


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities float64[B, A] of logits[B, A]; those of minus infinity are 0."""
    weights: np.ndarray = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


class RawHeads(NamedTuple):
    """What :meth:`Model.forward` returns and training works on; None = no such head.

    First those of :class:`NetOutput`, in its order, from the same view, in the dtype of the forward pass.
    """

    policy_logits: Tensor | None = None
    """[B, N*N+1], pass last; [B, N*N] from an architecture without a pass output"""
    value_logit: Tensor | None = None
    """[B]: its tanh is the value"""
    score: Tensor | None = None
    """[B], in points"""
    ownership_logit: Tensor | None = None
    """[B, N, N]: its tanh is the ownership"""
    reply_logits: Tensor | None = None
    """[B, N*N+1]: the opponent's next move, pass last; only of a model in training mode, since no search asks for it"""


class Model(nn.Module):
    """A module of any architecture: what files hold, training changes, and a :class:`Network` is made from."""

    prefers_float16 = False
    """whether bfloat16's 8-bit mantissa is too coarse for it; its activations must then fit float16"""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape

    def forward(self, planes: Tensor, globals_: Tensor) -> RawHeads:
        """The heads for planes[B, C, N, N] and globals_[B, G], both in the dtype of the weights."""
        raise NotImplementedError

    def write_program(self, program: Program) -> None:
        """Write the forward pass, batch normalisation folded, as far as lines of a program go.

        Its inputs are ``program.planes`` and ``program.globals``; its outputs have names of the model's own.

        Raises:
            Unwritable: the model has layers that no line computes.
        """
        raise Unwritable(type(self).__name__)

    def heads_of_program(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """What :meth:`forward` returns outside of training, from what a program computed.

        Args:
            outputs: of the program that :meth:`write_program` wrote, by name: float32[B, C, N, N] of points, [B, C] of
                the whole board.
            planes, globals_: as for :meth:`forward`.
        """
        raise NotImplementedError

    def globals_of_program(self, globals_: Tensor, size: int) -> Tensor:
        """[B, G] of the program's own, for boards of ``size`` x ``size``, from the model's; mostly the same."""
        return globals_


@dataclass(frozen=True)
class NetworkSpec:
    """What a network needs and offers."""

    name: str
    """for people: file stem or training name"""
    encoder: str
    """name in the encoder registry of engine/features"""
    min_size: int
    max_size: int
    has_score: bool = False
    has_ownership: bool = False
    has_policy: bool = True
    has_value: bool = True

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
    merges: bool
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
