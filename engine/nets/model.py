"""Networks as torch modules, for GPUs, for training, and for layers that only torch computes."""

from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.nets import layers
from engine.nets.architectures.registry import architecture_of, make
from engine.nets.files.checkpoint import arrays_of, load_plain
from engine.nets.forward import MEAN_SQUARE, EagerForward, board_scale
from engine.nets.layers import EPSILON, IDENTITY, MISH, RELU, SILU, Drawn, Stored
from engine.nets.network import NetworkSpec, PlainNetwork, RawHeads

MOMENTUM = 0.1
"""Weight of the current batch in the running statistics of batch normalisation"""
ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {
    IDENTITY: lambda x: x, RELU: F.relu, MISH: F.mish, SILU: F.silu,
}  # fmt: skip


class ConvNorm(nn.Module):
    """A convolution without bias, then batch normalisation: :class:`engine.nets.layers.ConvNorm` by torch.

    Unlike torch's layer it does not count batches, so that all its state is floating point and can be averaged.
    """

    def __init__(self, layer: layers.ConvNorm):
        super().__init__()
        self.conv = module_of(layer.conv)
        self.scale, self.shift = _parameter(layer.scale), _parameter(layer.shift)
        self.mean, self.variance = (
            nn.Buffer(torch.from_numpy(np.array(values))) for values in (layer.mean, layer.variance)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[B, outputs, N, N] for x[B, inputs, N, N], normalised by the batch's statistics in training mode, else by
        running statistics."""
        x = self.conv(x)
        return F.batch_norm(x, self.mean, self.variance, self.scale, self.shift, self.training, MOMENTUM, EPSILON)


class Float32Linear(nn.Linear):
    """A linear layer that stays in float32 in a network of another dtype."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Change the device of weights, not their dtype; torch calls this for ``to``, ``half`` and similar methods."""
        return super()._apply(lambda values: values.to(fn(values).device), recurse)


class Norm(nn.Module):
    """Scale, shift and activation: :class:`engine.nets.layers.Norm` by torch."""

    def __init__(self, layer: layers.Norm):
        super().__init__()
        self.activation = layer.activation
        self.scale, self.shift = (None if one is None else _parameter(one) for one in (layer.scale, layer.shift))


def _parameter(values: np.ndarray) -> nn.Parameter:
    # A copy, since files' arrays may be read-only.
    return nn.Parameter(torch.from_numpy(np.array(values, np.float32)))


def module_of(layer: Any) -> Any:
    """The torch module of a layer, of a part, or of a list of them; other values as they are.

    Arrays become parameters. The names in the ``state_dict`` are those of :func:`engine.nets.layers.named_arrays`.
    """
    if isinstance(layer, layers.Convolution):
        padding = tuple(step * (side // 2) for step, side in zip(layer.dilation, layer.weight.shape[2:], strict=True))
        outputs, inputs, *sides = layer.weight.shape
        # On the device meta nothing is drawn.
        with torch.device("meta"):
            convolution = nn.Conv2d(inputs, outputs, tuple(sides), padding=padding, dilation=layer.dilation)
        return _filled(convolution, layer)
    if isinstance(layer, layers.Linear):
        with torch.device("meta"):
            linear = (Float32Linear if layer.is_float32 else nn.Linear)(layer.weight.shape[1], layer.weight.shape[0])
        return _filled(linear, layer)
    if isinstance(layer, layers.ConvNorm):
        return ConvNorm(layer)
    if isinstance(layer, layers.Norm):
        return Norm(layer)
    if isinstance(layer, layers.Part):
        kind: Any = type(layer)
        return _module_class(kind)(layer)
    if isinstance(layer, list):
        return nn.ModuleList(module_of(item) for item in layer)
    return _parameter(layer) if isinstance(layer, np.ndarray) else layer


def _filled(module: Any, layer: Any) -> nn.Module:
    """A module with the weight and the bias of a layer."""
    module.weight = _parameter(layer.weight)
    module.bias = None if layer.bias is None else _parameter(layer.bias)
    return module


class _PartModule(nn.Module):
    """The torch module of a part; its classes inherit the part's methods too."""

    def __init__(self, part: layers.Part):
        super().__init__()
        for name, value in vars(part).items():
            setattr(self, name, module_of(value))


class Model(_PartModule):
    """The torch module of a network, with the methods of its :class:`engine.nets.network.PlainNetwork`."""

    shape: Any
    describe: Any
    heads_of: Any
    prefers_float16: bool

    def forward(self, planes: Tensor, globals_: Tensor) -> RawHeads:
        """The heads for planes[B, C, N, N] and globals_[B, G], both in the dtype of the weights."""
        return self.heads_of(self.outputs(planes, globals_), planes, globals_)

    def outputs(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """The outputs of :meth:`engine.nets.network.PlainNetwork.describe` by name."""
        forward = TorchForward(planes, globals_, self.training)
        self.describe(forward)
        return forward.outputs


@cache
def _module_class(part: Any) -> type[_PartModule]:
    """The class of the torch modules of a class of parts."""
    base = Model if issubclass(part, PlainNetwork) else _PartModule
    return type(part.__name__, (base, part), {"__module__": part.__module__})


def model_of(network: PlainNetwork) -> Model:
    """The torch module of a network, on the CPU in float32, with a copy of its arrays."""
    model: Model = module_of(network)
    return model


def new_model(architecture: str, shape: dict[str, Any]) -> Model:
    """A model with random weights, which torch's seed determines.

    Args:
        shape: fields of the architecture's shape; those with a default may be omitted.
    Raises:
        ValueError: as for :func:`engine.nets.architectures.registry.make`.
    """
    return model_of(make(architecture, shape, Drawn(int(torch.randint(1 << 62, ())))))


def load_model(path: Path) -> tuple[Model, NetworkSpec, dict[str, Any]]:
    """As :func:`engine.nets.files.checkpoint.load_plain`, with the network as a model on the CPU."""
    network, spec, training = load_plain(path)
    return model_of(network), spec, training


def plain_of(model: Model) -> PlainNetwork:
    """The network of a model of a registered architecture, with a copy of its values."""
    arrays = {name: np.array(values) for name, values in arrays_of(model).items()}
    return make(architecture_of(model), asdict(model.shape), Stored(arrays))


class TorchForward(EagerForward):
    """The forward pass by torch; layers are torch modules."""

    def __init__(self, planes: Tensor, globals_: Tensor, training: bool = False):
        super().__init__(planes, globals_)
        self.training = training

    def apply(self, part: Any, source: Any) -> Any:
        """See :meth:`engine.nets.forward.Forward.apply`."""
        source.value = part.by_torch(source.value)
        return source

    def _convolved(self, layer: nn.Module, x: Tensor) -> Tensor:
        found: Tensor = layer(x)
        return found

    def _multiplied(self, weight: Tensor, shift: Tensor | None, x: Tensor) -> Tensor:
        return F.linear(x, weight, shift)

    def _pooled(self, x: Tensor, by_size: bool) -> Tensor:
        return pooled_by_size(x) if by_size else pooled(x)

    def _activated(self, x: Tensor, activation: int) -> Tensor:
        return ACTIVATIONS[activation](x)


def pooled(x: Tensor) -> Tensor:
    """[B, 3C] of x[B, C, N, N] in the dtype of x: mean, mean scaled by board size, maximum.

    On CPUs it computes in float32, since CPUs compute the maximum of 16-bit numbers one by one, of float32 sixteen at a
    time: 4 us instead of 20 for three 9x9 boards of 32 channels. The scale is a Python number, also in traces, each of
    which is made for one board size: on tensors it took longer than the mean of a 9x9 board.
    """
    wide = x.float() if x.device.type == "cpu" else x
    mean = wide.mean(dim=(2, 3))
    return torch.cat([mean, mean * board_scale(int(x.shape[2])), wide.amax(dim=(2, 3))], dim=1).to(x.dtype)


def pooled_by_size(x: Tensor) -> Tensor:
    """float32[B, 3C] of x[B, C, N, N]: mean, mean scaled by board size, mean scaled by the square of that."""
    mean, scale = x.mean(dim=(2, 3), dtype=torch.float32), board_scale(int(x.shape[2]))
    return torch.cat([mean, mean * scale, mean * (scale * scale - MEAN_SQUARE)], dim=1)
