"""Muon: momentum with orthogonalised steps for the large matrices of a network; AdamW for all other parameters.

A few directions dominate the gradient of a matrix; after orthogonalisation all directions move equally. Jordan et al.,
"Muon: An optimizer for hidden layers in neural networks", 2024; step sizes as in Liu et al., "Muon is Scalable for LLM
Training", 2025, section 2.2, so that AdamW's rates and weight decay apply. ``torch.optim.Muon`` accepts matrices only
and computes in bfloat16, which most CPUs lack.
"""

import math
from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

BETAS = (0.9, 0.99)
"""AdamW's decay rates of the mean gradient and mean squared gradient"""
MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b, c of the polynomial a x + b x^3 + c x^5, which in five iterations maps singular values of 0.01 to 1 near 1"""
ROUNDS = 5
NARROWEST = 16
"""Minimum of both rows and columns for Muon; narrower matrices (outputs of heads, inputs from globals) use AdamW"""


def is_inner(value: Tensor) -> bool:
    """Whether Muon updates a parameter: a matrix, or filters [out, in, K, K] taken as a matrix [out, in*K*K], that has
    at least ``NARROWEST`` rows and columns.

    Unlike in Jordan et al. this includes the first layer. Outputs of heads are too narrow.
    """
    return value.ndim > 1 and min(len(value), value[0].numel()) >= NARROWEST


def orthogonal(matrices: Tensor) -> Tensor:
    """Orthogonalise K matrices approximately, by Newton-Schulz iteration.

    Args:
        matrices: float32[K, M, N], with singular value decompositions U S V^T.
    Returns:
        float32[K, M, N]: nearly U V^T; singular values are 0.7 to 1.2.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if is_tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(ROUNDS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x


class Muon(torch.optim.AdamW):
    """Optimizer: Muon for :func:`is_inner` parameters, AdamW for all others, with a group's rate and weight decay."""

    def __init__(self, groups: Iterable[dict], rate: float, fused: bool | None):
        """Prepare the optimizer.

        Args:
            groups: dicts of "params" and "weight_decay".
            rate: learning rate.
            fused: as for ``torch.optim.AdamW``.
        """
        split = []
        for group in groups:
            for inner in (False, True):
                split.append(group | {"params": [p for p in group["params"] if is_inner(p) is inner], "inner": inner})
        super().__init__([group for group in split if group["params"]], lr=rate, betas=BETAS, fused=fused)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient; clears the gradients of Muon's parameters."""
        for group in self.param_groups:
            if group["inner"]:
                self._step_inner(group["params"], group["lr"], group["weight_decay"])
                for value in group["params"]:
                    value.grad = None
        # AdamW skips parameters without a gradient.
        super().step()

    def _step_inner(self, values: list[Tensor], rate: float, decay: float) -> None:
        """Take Muon's step for some parameters; matrices of the same shape are orthogonalised together."""
        alike: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for value in values:
            if value.grad is None:
                continue
            state = self.state[value]
            if not state:
                state["momentum_buffer"] = torch.zeros_like(value)
            mean = state["momentum_buffer"].lerp_(value.grad, 1 - MOMENTUM)
            ahead = value.grad.lerp(mean, MOMENTUM).flatten(1)
            alike[ahead.shape].append((value, ahead))
        for shape, pairs in alike.items():
            steps = orthogonal(torch.stack([ahead for _, ahead in pairs]))
            for (value, _), step in zip(pairs, steps, strict=True):
                value.mul_(1 - rate * decay)
                # 0.2 is the usual size of AdamW's steps, as a share of the rate.
                value.add_(step.reshape(value.shape), alpha=-0.2 * rate * math.sqrt(max(shape)))
