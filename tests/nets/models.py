"""Toy networks of every registered architecture, and inputs for them."""

from functools import cache

import numpy as np
import torch

from engine.nets.architectures.registry import ARCHITECTURES, new_spec
from engine.nets.files.leela_zero import load_leela
from engine.nets.katago.model import ROOT_OPTIMISM, KataGoOutput
from engine.nets.model import Model, model_of, new_model, plain_of
from engine.nets.network import activated
from engine.nets.on_device import AlphaGoPair, Reference, network_on

SHAPES = {
    "keima-resnet": {"planes": 5, "globals": 3, "blocks": 3, "channels": 8, "head_channels": 8, "value_hidden": 8},
    "alphago-policy": {"filters": 8, "size": 7},
    "alphago-value": {"filters": 8, "hidden": 16, "size": 7},
    "alphago-zero": {"blocks": 2, "channels": 8, "value_hidden": 16, "size": 7},
    "elf-opengo": {"planes": 18, "blocks": 1, "channels": 8, "value_hidden": 16, "size": 7},
}
PAIR = "alphago-policy+alphago-value"
NETWORKS = (*ARCHITECTURES, PAIR)
CPU = "cpu"


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
    networks = [network_of(toy(part, seed), reduced=reduced) for part in name.split("+")]
    return networks[0] if len(networks) == 1 else InTensors(AlphaGoPair(*networks))


class InTensors:
    """A network that may also be asked in tensors, and answers in tensors then."""

    def __init__(self, network):
        self.network = network

    def __getattr__(self, name):
        return getattr(self.network, name)

    def evaluate(self, planes, globals_):
        """As the network's, for arrays or for tensors."""
        if not isinstance(planes, torch.Tensor):
            return self.network.evaluate(planes, globals_)
        return self.network.evaluate(planes.numpy(), globals_.numpy()).each(torch.from_numpy)


def network_of(model, spec=None, reduced=False, **how):
    """The network of a model, or of plain layers, on the processor."""
    plain = plain_of(model) if isinstance(model, Model) else model
    return InTensors(network_on(plain, spec or new_spec(plain, "toy"), "cpu", reduced, **how))


def exact_output(model, planes, globals_):
    """What a model computes by torch in float32; of plain layers, what their reference says."""
    if not isinstance(model, Model):
        return reference_of(model)(planes.numpy(), globals_.numpy()).each(torch.from_numpy)
    with torch.inference_mode():
        return activated(model.eval()(planes, globals_))


def inputs(name, count, size=7, seed=1):
    """Planes of zeros and ones, and any globals, as one of ``NETWORKS`` takes them."""
    shape = toy(name.split("+")[-1]).shape
    generator = torch.Generator().manual_seed(seed)
    planes = (torch.rand(count, shape.planes, size, size, generator=generator) < 0.3).float()
    return planes, torch.rand(count, shape.globals, generator=generator)


reference_of = cache(Reference)


def raw(network, planes, globals_, optimism=ROOT_OPTIMISM):
    """All outputs of one of KataGo's networks, as tensors, by the reference."""
    planes, globals_ = (np.ascontiguousarray(values.numpy()) for values in (planes, globals_))
    found = network.raw(reference_of(network).outputs(planes, globals_), globals_, optimism)
    return KataGoOutput(*(torch.from_numpy(np.array(values)) for values in found))


def leela_model(path):
    """One of Leela Zero's files as a model, its spec, and its record."""
    network, spec, record = load_leela(path)
    return model_of(network), spec, record
