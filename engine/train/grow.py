"""Growing a network: initialising a larger network from a smaller trained one, to continue training.

The smaller network's weights become the leading rows and columns of the larger network's. Weights from new to old
channels start at zero, and new blocks start as the identity, so that at first both networks compute the same function;
new channels start with random weights (after Chen et al., "Net2Net", 2016).
"""

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import torch

from engine.features.encoder import KEIMA, KEIMA_1
from engine.nets.architectures.registry import ANY_SIZE
from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.model import Model, new_model
from engine.nets.network import NetworkSpec, Shape
from engine.records.games import Games

GROWING = ("globals", "blocks", "channels", "reply")


def grown(model: Model, shape: Shape) -> Model:
    """Make a larger network with the same outputs as ``model``.

    Args:
        shape: ``GROWING`` fields may exceed the model's; the others must be equal.
    Raises:
        ValueError: the architecture is not keima-resnet, or the shape is smaller or differs in other fields.
    """
    if not isinstance(model, ResNet) or not isinstance(shape, ResNetShape):
        raise ValueError(f"a network of shape {model.shape} cannot grow: only keima-resnet can")
    old = model.shape
    same = ResNetShape(**(vars(shape) | {name: getattr(old, name) for name in GROWING}))
    if same != old or any(getattr(shape, name) < getattr(old, name) for name in GROWING):
        raise ValueError(f"a network of shape {old} cannot grow to {shape}: only {', '.join(GROWING)} may increase")
    larger = new_model("keima-resnet", asdict(shape))
    held = larger.state_dict()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            target = held[name]
            if value.ndim > 1:
                target[: value.shape[0]] = 0.0
            target[tuple(slice(n) for n in value.shape)] = value
    return larger


def on_newest_inputs(model: Model, spec: NetworkSpec) -> tuple[Model, NetworkSpec]:
    """Convert a network with encoder keima-1 to keima-2, to continue training; return any other network unchanged."""
    if spec.encoder != KEIMA_1.name or not isinstance(model, ResNet):
        return model, spec
    return grown(model, replace(model.shape, globals=KEIMA.globals)), replace(spec, encoder=KEIMA.name)


def sizes_shown(begun: NetworkSpec, shards: Sequence[Games], boards: Sequence[tuple[int, float]]) -> tuple[int, int]:
    """Smallest and largest board of a network after training: the range of its sizes so far and of its training data.

    Args:
        begun: specification of the network that training starts from, whose shape does not fix the board size.
        shards: training games.
        boards: (board size, share) of the training data to use; empty = all sizes in the shards.
    """
    shown = {size for shard in shards for size in np.unique(shard.size).tolist()}
    if boards:
        shown &= dict(boards).keys()
    low, high = (pick((*ANY_SIZE, *begun.sizes)) for pick in (min, max))
    possible = [size for size in shown if low <= size <= high]
    return min(begun.min_size, *possible, begun.max_size), max(begun.max_size, *possible, begun.min_size)
