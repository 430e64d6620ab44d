"""What every network looks like from outside: a spec, and one call that evaluates a batch.

Quirks of a format (a missing pass logit, values for Black, win/loss/no-result) are settled in the adapter that
implements this interface, never above it. A head that a network does not have is None, and its spec says so.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch


class NetOutput(NamedTuple):
    """Outputs for B positions on boards of N x N, all from the view of the side to move; None = no such head."""

    policy: torch.Tensor | None = None
    """float32[B, N*N+1]: logits in policy order, pass last; not masked for legality"""
    value: torch.Tensor | None = None
    """float32[B]: expected result, -1 = loss to 1 = win"""
    score: torch.Tensor | None = None
    """float32[B]: expected lead in points, komi counted"""
    ownership: torch.Tensor | None = None
    """float32[B, N, N]: 1 = surely the mover's, -1 = surely the opponent's"""


class RawHeads(NamedTuple):
    """What every architecture's ``forward(planes, globals_)`` returns and training works on; None = no such head.

    In the order of :class:`NetOutput` and from the same view, in the dtype of the forward pass.
    """

    policy_logits: torch.Tensor | None = None
    """[B, N*N+1], pass last; [B, N*N] from an architecture without a pass output"""
    value_logit: torch.Tensor | None = None
    """[B]: its tanh is the value"""
    score: torch.Tensor | None = None
    """[B], in points"""
    ownership_logit: torch.Tensor | None = None
    """[B, N, N]: its tanh is the ownership"""


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


class Network(Protocol):
    """A network ready to evaluate on one device."""

    spec: NetworkSpec
    device: torch.device
    merges: bool
    """whether batches are evaluated one after another and large ones cost little more than small ones, as on a GPU;
    else each of several callers has a core of its own"""

    def evaluate(self, planes: torch.Tensor, globals_: torch.Tensor) -> NetOutput:
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
