"""Training losses of all heads; :data:`LOSSES` has an entry for each head."""

from collections.abc import Callable, Mapping

from torch import Tensor
from torch.nn import functional as F

from engine.config import TrainOptions
from engine.config.declaration import no_branch
from engine.nets.architectures.resnet import SCORE_SCALE
from engine.nets.network import RawHeads

Loss = Callable[[Tensor, Mapping[str, Tensor], TrainOptions], Tensor]
"""Computes a head's loss, summed over a batch, from the raw head, the targets by name, and the options"""


def combined_loss(
    outputs: RawHeads, targets: Mapping[str, Tensor], options: TrainOptions
) -> tuple[Tensor, dict[str, Tensor]]:
    """Weighted sum of the losses, and the unweighted losses by name (scalars).

    Every loss is the sum over the batch divided by B, to which unknown targets contribute zero: so the mean over the
    processes of a distributed run equals the loss of one process with all positions.

    Args:
        outputs: of a forward pass in training, in any dtype; losses are computed in float32.
        targets: the :data:`engine.train.batches.TARGETS` of a batch, on the same device.
    """
    count, heads = len(targets["value"]), outputs._asdict().items()
    parts = {name: LOSSES[name](head.float(), targets, options) / count for name, head in heads if head is not None}
    total = sum(getattr(options, f"{name}_weight") * part for name, part in parts.items())
    return total, {name: part.detach() for name, part in parts.items()}


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy in nats, summed over the batch.

    Args:
        logits: [B, A].
        target: probabilities, [B, A or more]; passes are ignored if the network has no pass output.
    """
    return -(target[:, : logits.shape[1]] * F.log_softmax(logits, dim=1)).sum()


def _binary(logit: Tensor, target: Tensor) -> Tensor:
    """Elementwise binary cross-entropy of the value tanh(logit) in [-1, 1]; the logit of (1 + tanh x) / 2 is 2x."""
    return F.binary_cross_entropy_with_logits(2 * logit, (1 + target) / 2, reduction="none")


def _value(logit: Tensor, targets: Mapping[str, Tensor], options: TrainOptions) -> Tensor:
    """Value loss: binary cross-entropy, or squared error on [-1, 1] (AlphaGo, Methods, "Value network: regression")."""
    if options.value_loss == "mse":
        each = (logit.tanh() - targets["value"]) ** 2
    elif options.value_loss == "cross-entropy":
        each = _binary(logit, targets["value"])
    else:
        raise no_branch("value_loss", options.value_loss)
    return (targets["value_known"] * each).sum()


def _score(score: Tensor, targets: Mapping[str, Tensor], options: TrainOptions) -> Tensor:
    """Score loss: Huber loss with threshold 1, of scores in units of ``SCORE_SCALE`` points."""
    each = F.huber_loss(score / SCORE_SCALE, targets["score"] / SCORE_SCALE, reduction="none")
    return (targets["score_ownership_weight"] * each).sum()


def _ownership(logit: Tensor, targets: Mapping[str, Tensor], options: TrainOptions) -> Tensor:
    """Ownership loss: binary cross-entropy, the mean over the points of a board."""
    return (targets["score_ownership_weight"] * _binary(logit, targets["ownership"]).mean(dim=(1, 2))).sum()


LOSSES: dict[str, Loss] = {
    "policy": lambda logits, targets, options: _cross_entropy(logits, targets["policy"]),
    "value": _value,
    "score": _score,
    "ownership": _ownership,
    "reply": lambda logits, targets, options: _cross_entropy(logits, targets["reply"]),
}
"""Loss of each head, by field of :class:`engine.nets.network.RawHeads`; option ``NAME_weight`` is the weight of NAME"""
