"""The layers that KataGo's networks are made of: how a file holds them, and the torch modules they become.

Batch normalisation is read as a scale and a shift a channel. Behind a convolution or a matrix both go into its
weights; before one, where the trunk is normalised for a block, a :class:`Norm` remains.

Source: the public description of the format, ``cpp/neuralnet/desc.cpp`` of KataGo 1.17.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.compute import program
from engine.nets.katago.stream import Stream

MAX_CHANNELS = 1 << 14
MAX_SIZE = 19
"""Largest board of KataGo's own buffers, for which angles and profiles are kept"""
MAX_DIAMETER = 37
"""Of a convolution: from one corner of a 19x19 board it would reach the opposite one"""
ACTIVATIONS = {
    "ACTIVATION_IDENTITY": nn.Identity,
    "ACTIVATION_RELU": nn.ReLU,
    "ACTIVATION_MISH": nn.Mish,
    "ACTIVATION_SILU": nn.SiLU,
}
FIRST_WITH_ACTIVATIONS = 11
"""Model version from which on files name activations; before it was always ReLU"""


class Scaling(NamedTuple):
    """Batch normalisation with its statistics: ``x * scale + shift`` a channel."""

    scale: np.ndarray
    """float64[C]"""
    shift: np.ndarray
    """float64[C]"""


class Convolution(NamedTuple):
    """A convolution without bias."""

    weight: np.ndarray
    """float32[K, C, height, width]"""
    dilation: tuple[int, int]

    @property
    def outputs(self) -> int:
        """Channels out."""
        return len(self.weight)


class LayerReader:
    """Reads layers from a stream, their shapes checked against what stands before them.

    All methods raise ValueError as :class:`engine.nets.katago.stream.Stream` does.
    """

    def __init__(self, stream: Stream, version: int):
        """Go on where the stream is.

        Args:
            version: the model's.
        """
        self.stream = stream
        self.version = version
        self.statistics = 0
        """weights read so far that were measured in training, not learnt"""

    def channels(self, field: str, expected: int | None = None) -> int:
        """A number of channels, free if None is expected."""
        return self.stream.integer(field, expected or 1, expected or MAX_CHANNELS)

    def zeros(self, what: str, count: int) -> None:
        """Options that stand for things to come: 0 so far."""
        for index in range(count):
            self.stream.integer(f"{what} option {index + 1} of {count} unknown ones", 0, 0)

    def convolution(self, inputs: int, outputs: int | None = None) -> Convolution:
        """A convolution of odd height and width."""
        stream = self.stream
        stream.name()
        height, width = (stream.integer(f"{side} of a convolution", 1, MAX_DIAMETER) for side in ("height", "width"))
        if height % 2 == 0 or width % 2 == 0:
            raise stream.wrong("convolution", f"{height}x{width}", "odd height and width")
        channels = self.channels("input channels", inputs), self.channels("output channels", outputs)
        dilation_y, dilation_x = (stream.integer(f"dilation in {axis}", 1, MAX_DIAMETER) for axis in "yx")
        weight = stream.weights(height, width, *channels)
        return Convolution(np.ascontiguousarray(weight.transpose(3, 2, 0, 1)), (dilation_y, dilation_x))

    def scaling(self, channels: int) -> Scaling:
        """Batch normalisation."""
        stream = self.stream
        stream.name()
        self.channels("channels", channels)
        epsilon = stream.positive("epsilon", 1.0)
        has_scale, has_shift = (stream.integer(f"whether there is a {part}", 0, 1) for part in ("scale", "shift"))
        self.statistics += 2 * channels
        mean, variance = (stream.weights(channels).astype(np.float64) for _ in range(2))
        if variance.min() < 0.0:
            raise stream.wrong("variance", variance.min(), "none below 0")
        scale = stream.weights(channels) if has_scale else np.ones(channels)
        shift = stream.weights(channels) if has_shift else np.zeros(channels)
        factor = scale / np.sqrt(variance + epsilon)
        return Scaling(factor, shift - factor * mean)

    def activation(self) -> nn.Module:
        """An activation function."""
        self.stream.name()
        if self.version < FIRST_WITH_ACTIVATIONS:
            return nn.ReLU()
        kind = self.stream.word("activation")
        if kind not in ACTIVATIONS:
            raise self.stream.wrong("activation", kind, f"one of {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[kind]()

    def matrix(self, inputs: int, outputs: int | None = None) -> np.ndarray:
        """float32[outputs, inputs]: a matrix that is multiplied with channels."""
        self.stream.name()
        channels = self.channels("input channels", inputs), self.channels("output channels", outputs)
        return np.ascontiguousarray(self.stream.weights(*channels).T)

    def vector(self, channels: int) -> np.ndarray:
        """float32[channels]: a bias."""
        self.stream.name()
        return self.stream.weights(self.channels("channels", channels))


def parameter(values: np.ndarray) -> nn.Parameter:
    """Weights as torch has them, float32, not to be trained; what does not fit becomes infinite."""
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(values, np.float32)
    return nn.Parameter(torch.from_numpy(values), requires_grad=False)


def convolution(layer: Convolution, after: Scaling | None = None) -> nn.Conv2d:
    """A convolution on boards surrounded by zeros, with the normalisation behind it folded into its weights."""
    weight = layer.weight if after is None else layer.weight * after.scale[:, None, None, None]
    padding = tuple(step * (side // 2) for step, side in zip(layer.dilation, weight.shape[2:], strict=True))
    with torch.device("meta"):
        module = nn.Conv2d(weight.shape[1], len(weight), weight.shape[2:], padding=padding, dilation=layer.dilation)
    module.weight = parameter(weight)
    module.bias = None if after is None else parameter(after.shift)
    return module


def linear(weight: np.ndarray, bias: np.ndarray | None = None) -> nn.Linear:
    """A matrix[outputs, inputs], and what is added behind it."""
    with torch.device("meta"):
        module = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    module.weight = parameter(weight)
    if bias is not None:
        module.bias = parameter(bias)
    return module


class Norm(nn.Module):
    """Scale and shift of each channel, then an activation; what does nothing is left out."""

    def __init__(self, scaling: Scaling, activation: nn.Module):
        super().__init__()
        scale, shift = (values[None, :, None, None] for values in scaling)
        self.scale = parameter(scale) if (scale != 1.0).any() else None
        self.shift = parameter(shift)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, N, N] as it came."""
        return self.activation(x + self.shift if self.scale is None else torch.addcmul(self.shift, x, self.scale))

    def in_program(self) -> program.Before:
        """The same, as programs take it."""
        return program.Before(self.activation, self.scale, self.shift)
