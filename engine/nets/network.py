"""What every network looks like from outside: a spec, and one call that evaluates a batch.

Quirks of a format (a missing pass logit, values for Black, win/loss/no-result) are settled in the adapter that
implements this interface, never above it.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch


class NetOutput(NamedTuple):
    """Raw outputs for B positions on boards of N x N, all from the view of the side to move."""

    policy: torch.Tensor
    """float32[B, N*N+1]: logits in policy order, pass last; not masked for legality"""
    value: torch.Tensor
    """float32[B]: expected result, -1 = loss to 1 = win"""
    score: torch.Tensor | None = None
    """float32[B]: expected lead in points, komi counted; None without such a head"""
    ownership: torch.Tensor | None = None
    """float32[B, N, N]: 1 = surely the mover's, -1 = surely the opponent's; None without such a head"""


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


class Network(Protocol):
    """A network ready to evaluate on one device."""

    spec: NetworkSpec
    device: torch.device

    def evaluate(self, planes: torch.Tensor, globals_: torch.Tensor) -> NetOutput:
        """Evaluate a batch.

        Args:
            planes: float32[B, C, N, N] as the spec's encoder writes them, on ``device``.
            globals_: float32[B, G], likewise.
        Returns:
            NetOutput on ``device``, float32.
        Threads: any number of callers at once on the CPU; one at a time on a GPU.
        """
        ...
