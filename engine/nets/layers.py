"""Layers as plain arrays: the form in which networks are read, whatever computes them.

A network is a tree of layers, lists of layers and :class:`Part`\\ s, all of which hold numpy arrays. It describes its
forward pass once, by calls to a :class:`engine.nets.forward.Forward`. From the tree are made programs for processors
(:mod:`engine.nets.compute.program`) and torch modules with attributes of the same names (:mod:`engine.nets.model`),
for GPUs and training. Needs no torch.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

IDENTITY, RELU, MISH, SILU = range(4)
"""Activations"""
EPSILON = 1e-5
"""Added to variances by :class:`ConvNorm`"""
MAX_PARAMETERS = 1 << 28
"""Maximum number of parameters: 1 GiB as float32, several times the largest published Go network"""


@dataclass(eq=False)
class Convolution:
    """A convolution with odd sides, padded with zeros to the size of its inputs."""

    weight: Any
    """float32[K, C, height, width]"""
    bias: Any = None
    """float32[K], or None"""
    dilation: tuple[int, int] = (1, 1)


@dataclass(eq=False)
class ConvNorm:
    """A convolution without bias, then batch normalisation with trainable scale and shift."""

    conv: Convolution
    scale: Any
    shift: Any
    mean: Any
    variance: Any

    def folded(self) -> Convolution:
        """One convolution with the outputs of this layer in evaluation."""
        factor = self.scale / np.sqrt(self.variance + np.float32(EPSILON))
        weight = self.conv.weight * factor[:, None, None, None]
        return Convolution(weight, self.shift - self.mean * factor, self.conv.dilation)


@dataclass(eq=False)
class Linear:
    """A linear layer. Its inputs may be points, in the order [C, N, N]."""

    weight: Any
    """float32[K, C]"""
    bias: Any = None
    """float32[K], or None"""
    is_float32: bool = False
    """whether it stays in float32 in a network of another dtype; its inputs are float32 then"""


@dataclass(eq=False)
class Norm:
    """Scale and shift of each channel, then an activation."""

    activation: int = IDENTITY
    scale: Any = None
    """float32[C]; None = 1"""
    shift: Any = None
    """float32[C]; None = 0"""


AS_RELU = Norm(RELU)


class Part:
    """Base of blocks, heads and networks: attributes are layers, parts, lists of these, arrays, and constants."""


def folded(part: Any) -> Any:
    """A copy of a tree of layers, without copies of its arrays, in which batch normalisation is folded."""
    if isinstance(part, ConvNorm):
        return part.folded()
    if isinstance(part, list):
        return [folded(item) for item in part]
    if not isinstance(part, Part):
        return part
    copied = copy.copy(part)
    vars(copied).update({name: folded(value) for name, value in vars(part).items()})
    return copied


def named_arrays(part: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of a tree of layers, with the names that they have in files, such as ``blocks.0.first.weight``."""
    items = enumerate(part) if isinstance(part, list) else vars(part).items()
    for name, value in items:
        if isinstance(value, np.ndarray):
            yield f"{prefix}{name}", value
        elif isinstance(value, Part | list | Convolution | ConvNorm | Linear | Norm):
            yield from named_arrays(value, f"{prefix}{name}.")


class Misfit(ValueError):
    """A file lacks an array of its architecture, or has one of another shape."""


class Weights:
    """Where the layers of a network under construction get their arrays: a file, or a random generator.

    Layers are requested with the names that they have in files.
    """

    def array(self, name: str, shape: tuple[int, ...], draw: str = "zeros", fan_in: int = 0,
              blank: int = 0) -> np.ndarray:  # fmt: skip
        """float32 of this shape.

        Args:
            draw: initial values of a network to be trained: ``zeros``, ``ones``, ``uniform`` (torch's default for
                layers with ``fan_in`` inputs), or normal values for a layer before a ``relu`` or without activation
                (``linear``), which keep the variance of activations (He et al., 2015).
            blank: number of last columns that are zeros instead.
        Raises:
            Misfit: the file lacks the array, or it has another shape.
        """
        raise NotImplementedError

    def convolution(self, name: str, inputs: int, outputs: int, side: int, draw: str = "uniform",
                    bias: str | None = "uniform") -> Convolution:  # fmt: skip
        """A convolution of ``side`` x ``side`` points; ``bias`` is drawn as in :meth:`array`, None = there is none."""
        shape, fan_in = (outputs, inputs, side, side), inputs * side * side
        return Convolution(self.array(f"{name}.weight", shape, draw, fan_in), self._bias(name, outputs, fan_in, bias))

    def conv_norm(self, name: str, inputs: int, outputs: int, side: int, scale: str = "ones") -> ConvNorm:
        """A convolution with batch normalisation, whose scale is drawn as in :meth:`array`."""
        draws = {"scale": scale, "shift": "zeros", "mean": "zeros", "variance": "ones"}
        norm = {what: self.array(f"{name}.{what}", (outputs,), draw) for what, draw in draws.items()}
        return ConvNorm(self.convolution(f"{name}.conv", inputs, outputs, side, "relu", None), **norm)

    def linear(self, name: str, inputs: int, outputs: int, draw: str = "uniform", bias: str = "uniform",
               blank: int = 0) -> Linear:  # fmt: skip
        """A linear layer; arguments as for :meth:`convolution` and :meth:`array`."""
        weight = self.array(f"{name}.weight", (outputs, inputs), draw, inputs, blank)
        return Linear(weight, self._bias(name, outputs, inputs, bias))

    def _bias(self, name: str, outputs: int, fan_in: int, draw: str | None) -> np.ndarray | None:
        return None if draw is None else self.array(f"{name}.bias", (outputs,), draw, fan_in)


class Drawn(Weights):
    """Initial values of a network to be trained."""

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)

    def array(self, name: str, shape: tuple[int, ...], draw: str = "zeros", fan_in: int = 0,
              blank: int = 0) -> np.ndarray:  # fmt: skip
        """See :meth:`Weights.array`."""
        drawn = np.full(shape, draw == "ones", np.float32)
        if draw == "uniform":
            bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
            drawn = self._random.uniform(-bound, bound, shape).astype(np.float32)
        elif draw in ("relu", "linear"):
            gain = math.sqrt(2.0 if draw == "relu" else 1.0)
            drawn = self._random.standard_normal(shape, np.float32) * np.float32(gain / math.sqrt(fan_in))
        drawn[..., drawn.shape[-1] - blank :] = 0.0
        return drawn


class Stored(Weights):
    """The arrays of a file, by name; an array that was taken is removed from ``arrays``."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.arrays = dict(arrays)

    def array(self, name: str, shape: tuple[int, ...], draw: str = "zeros", fan_in: int = 0,
              blank: int = 0) -> np.ndarray:  # fmt: skip
        """See :meth:`Weights.array`."""
        if name not in self.arrays:
            raise Misfit(f"no {name}")
        found = self.arrays.pop(name)
        if found.shape != shape:
            raise Misfit(f"{name} of shape {list(found.shape)}, expected {list(shape)}")
        return np.ascontiguousarray(found, np.float32)


class Counted(Weights):
    """Counts the parameters of a shape, without memory for them."""

    def __init__(self) -> None:
        self.count = 0

    def array(self, name: str, shape: tuple[int, ...], draw: str = "zeros", fan_in: int = 0,
              blank: int = 0) -> np.ndarray:  # fmt: skip
        """See :meth:`Weights.array`."""
        self.count += math.prod(shape)
        return np.broadcast_to(np.float32(0), shape)
