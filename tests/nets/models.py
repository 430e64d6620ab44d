"""Toy networks of every registered architecture, and inputs for them."""

import torch

from engine.nets.architectures.registry import ARCHITECTURES, new_model, new_spec
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.on_device import AlphaGoPair

SHAPES = {
    "keima-resnet": {"planes": 5, "globals": 3, "blocks": 3, "channels": 8, "head_channels": 8, "value_hidden": 8},
    "alphago-policy": {"filters": 8, "size": 7},
    "alphago-value": {"filters": 8, "hidden": 16, "size": 7},
    "alphago-zero": {"blocks": 2, "channels": 8, "value_hidden": 16, "size": 7},
    "elf-opengo": {"planes": 18, "blocks": 1, "channels": 8, "value_hidden": 16, "size": 7},
}
PAIR = "alphago-policy+alphago-value"
NETWORKS = (*ARCHITECTURES, PAIR)
CPU = torch.device("cpu")


def toy(architecture, seed=0, **shape):
    """A model whose every parameter is random, so that no output is trivially constant."""
    torch.manual_seed(seed)
    model = new_model(architecture, SHAPES[architecture] | shape)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name.endswith("variance"):
                value.uniform_(0.5, 1.5)
            else:
                spread = 0.1 if value.ndim <= 1 else 0.5 / max(1, value[0].numel()) ** 0.5
                value.add_(torch.randn_like(value) * spread)
    return model.eval()


def toy_network(name, reduced=False, seed=0):
    """One of ``NETWORKS`` ready to evaluate."""
    parts = [toy(part, seed) for part in name.split("+")]
    networks = [TorchNetwork(model, new_spec(model, "toy"), CPU, reduced) for model in parts]
    return networks[0] if len(networks) == 1 else AlphaGoPair(*networks)


def inputs(name, count, size=7, seed=1):
    """Planes of zeros and ones, and any globals, as one of ``NETWORKS`` takes them."""
    shape = toy(name.split("+")[-1]).shape
    generator = torch.Generator().manual_seed(seed)
    planes = (torch.rand(count, shape.planes, size, size, generator=generator) < 0.3).float()
    return planes, torch.rand(count, shape.globals, generator=generator)
