"""What training minimises, for whatever heads a network has."""

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional as F

from engine.config import TrainOptions
from engine.config.declaration import no_branch
from engine.nets.architectures.resnet import SCORE_SCALE
from engine.nets.network import RawHeads


def combined_loss(
    outputs: RawHeads, targets: Mapping[str, Tensor], options: TrainOptions
) -> tuple[Tensor, dict[str, Tensor]]:
    """Weighted sum of the parts, and the parts by name (scalars).

    Every part is a sum over the batch divided by B, unknown targets counting zero, so the mean over the processes of a
    distributed run is the loss of one process with all their positions.

    Policy: cross-entropy with the target distribution, in nats; passes count nothing for a network without that output.
    Value: cross-entropy of won and lost with (1 + v) / 2, whose logit is twice the tanh's argument, or the squared
    error on [-1, 1] (AlphaGo, Methods, "Value network: regression"). Ownership: cross-entropy likewise. Score: Huber,
    in units of ``SCORE_SCALE`` points. Reply: as the policy, a position of which no reply is known counting nothing.

    Args:
        outputs: of a forward pass in training, in any dtype; losses are computed in float32.
        targets: the fields of :class:`engine.train.batches.TrainingBatch` from ``policy`` on, on the same device.
    """
    parts: dict[str, Tensor] = {}
    count = len(targets["value"])
    if outputs.policy_logits is not None:
        parts["policy"] = _cross_entropy(outputs.policy_logits, targets["policy"]) / count
    if outputs.value_logit is not None:
        logit = outputs.value_logit.float()
        if options.value_loss == "mse":
            each = (logit.tanh() - targets["value"]) ** 2
        elif options.value_loss == "cross-entropy":
            each = F.binary_cross_entropy_with_logits(2 * logit, (1 + targets["value"]) / 2, reduction="none")
        else:
            raise no_branch("value_loss", options.value_loss)
        parts["value"] = (targets["value_weight"] * each).sum() / count
    if outputs.ownership_logit is not None:
        each = F.binary_cross_entropy_with_logits(
            2 * outputs.ownership_logit.float(), (1 + targets["ownership"]) / 2, reduction="none"
        )
        parts["ownership"] = (targets["score_ownership_weight"] * each.mean(dim=(1, 2))).sum() / count
    if outputs.score is not None:
        each = F.huber_loss(outputs.score.float() / SCORE_SCALE, targets["score"] / SCORE_SCALE, reduction="none")
        parts["score"] = (targets["score_ownership_weight"] * each).sum() / count
    if outputs.reply_logits is not None:
        parts["reply"] = _cross_entropy(outputs.reply_logits, targets["reply"]) / count
    total = sum(getattr(options, f"{name}_weight") * part for name, part in parts.items())
    return total, {name: part.detach() for name, part in parts.items()}


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Summed over a batch, in nats; [B, A] logits, [B, A or more] probabilities."""
    return -(target[:, : logits.shape[1]] * F.log_softmax(logits.float(), dim=1)).sum()
