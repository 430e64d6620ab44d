"""The mean of two networks' weights: one network that keeps something of both.

Where one was trained on from the other, or both from a third, the mean often does better than either, and forgets less
of what the last training did not show (Wortsman et al. 2022, "Model soups"). Of networks that have learned apart it is
worth nothing.
"""

from pathlib import Path

import torch

from engine.nets.architectures.registry import architecture_of
from engine.nets.files.checkpoint import load_model, refuse_existing, save_network
from engine.system.files import sha256_of


def average(first: Path, second: Path, target: Path, share: float = 0.5) -> None:
    """Write the mean of two of our networks' weights, statistics of a batch normalisation included.

    Args:
        share: of the second network in the mean; between 0 and 1.
    Raises:
        ValueError: files that cannot be read, differ in what they are or must not be overwritten; one line.
        OSError: the target cannot be written.
    """
    refuse_existing(target)
    model, spec, training = load_model(first)
    other, other_spec, _ = load_model(second)
    for what, one, two in (
        ("architecture", architecture_of(model), architecture_of(other)),
        ("shape", model.shape, other.shape),
        ("input", spec.encoder, other_spec.encoder),
        ("boards", spec.sizes, other_spec.sizes),
    ):
        if one != two:
            raise ValueError(f"{second}: its {what}, {two}, is not that of {first}, {one}")
    weights, others = model.state_dict(), other.state_dict()
    with torch.no_grad():
        for name, tensor in weights.items():
            if tensor.is_floating_point():
                tensor.lerp_(others[name], share)
    record = dict(training) if isinstance(training, dict) else {"record": training}
    # What was measured of the first is not true of the mean.
    record.pop("figures", None)
    joined = {"name": second.stem, "sha256": sha256_of(second), "share": share}
    save_network(target, model, spec, record | {"averaged_with": joined})
