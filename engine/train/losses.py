"""What training minimises, for networks with policy, value, score and ownership heads."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.nets.resnet import SCORE_SCALE


class LossWeights(NamedTuple):
    """How the parts add up."""

    policy: float = 1.0
    value: float = 1.0
    score: float = 0.5
    ownership: float = 1.0


class Targets(NamedTuple):
    """Targets of B positions as tensors on the network's device; shapes as in dataset.Batch."""

    policy: Tensor
    value: Tensor
    score: Tensor
    ownership: Tensor
    judged: bool


def combined_loss(
    outputs: tuple[Tensor, Tensor, Tensor, Tensor], targets: Targets, weights: LossWeights
) -> tuple[Tensor, dict[str, Tensor]]:
    """Weighted sum of the parts, and the parts by name (scalars, nats or as noted).

    Policy: cross-entropy with the target distribution. Value and ownership: binary cross-entropy of (1 + v) / 2,
    whose logit is twice the tanh's argument. Score: Huber, in units of ``SCORE_SCALE`` points. Positions of plain
    game records train the policy alone: results without ownership teach a small value head nothing.
    """
    policy_logits, value_logit, score, ownership_logit = (out.float() for out in outputs)
    parts = {"policy": -(targets.policy * F.log_softmax(policy_logits, dim=1)).sum(dim=1).mean()}
    total = weights.policy * parts["policy"]
    if targets.judged:
        parts["value"] = F.binary_cross_entropy_with_logits(2 * value_logit, (1 + targets.value) / 2)
        parts["ownership"] = F.binary_cross_entropy_with_logits(2 * ownership_logit, (1 + targets.ownership) / 2)
        parts["score"] = F.huber_loss(score / SCORE_SCALE, targets.score / SCORE_SCALE)
        total = (
            total
            + weights.value * parts["value"]
            + weights.score * parts["score"]
            + weights.ownership * parts["ownership"]
        )
    return total, {name: part.detach() for name, part in parts.items()}


def to_targets(batch, device: torch.device) -> Targets:
    """The targets of a dataset.Batch on a device."""
    arrays = (batch.policy, batch.value, batch.score, batch.ownership)
    return Targets(*(torch.from_numpy(array).to(device) for array in arrays), judged=batch.judged)
