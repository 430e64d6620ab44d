"""What a network's description calls to compute its layers, and the plain computation by numpy.

A network describes its forward pass once (:meth:`engine.nets.network.PlainNetwork.describe`). Three classes take the
description: :class:`engine.nets.compute.program.Program` writes it down for the kernels of processors,
:class:`engine.nets.model.TorchForward` computes it by torch, and :class:`NumpyForward` by numpy in float32, slowly and
exactly: the reference of all others.
"""

import sys
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from engine.nets.layers import IDENTITY, MISH, RELU, SILU, ConvNorm, Convolution, Norm

CENTRE_SIZE = 14.0
"""Board size at which the size-scaled mean is zero, the middle of 9 and 19."""
SIZE_UNIT = 10.0
"""Difference in board size that changes the scale of the size-scaled mean by 1"""
MEAN_SQUARE = 0.1
"""Subtracted from the square of the scale in the third number of channels pooled by size"""


class Unwritable(Exception):
    """A network has a layer that only torch computes."""


class Forward(ABC):
    """The forward pass of a batch, layer by layer.

    Methods take *slots*, which hold channels of each point or of the whole board (vectors), and return the slot of the
    outputs. ``planes`` and ``globals`` are the slots of the inputs.
    """

    planes: Any
    globals: Any
    training = False

    @abstractmethod
    def convolution(self, layer: Any, source: Any, before: Norm | None = None, bias: Any = None, plus: Any = None,
                    after: int = IDENTITY, into: Any = None) -> Any:  # fmt: skip
        """The points after(convolution(before(source)) + bias + plus).

        Args:
            layer: a convolution, with batch normalisation or without.
            before: transformation of the inputs.
            bias: slot of a vector added at every point, besides the layer's own bias.
            plus: slot of points that are added to the outputs; may be ``into``.
            after: activation of the outputs.
            into: slot of the outputs; None = a new slot.
        """

    @abstractmethod
    def linear(self, layer: Any, source: Any, after: int = IDENTITY) -> Any:
        """The output vector of a linear layer, from a vector or from all points."""

    @abstractmethod
    def product(self, weight: Any, shift: Any, source: Any, plus: Any = None, after: int = IDENTITY) -> Any:
        """The vector after(weight[K, C] x source + shift[K] + plus); ``shift`` may be None."""

    @abstractmethod
    def pool(self, source: Any, by_size: bool = False) -> Any:
        """The vector of pooled points, 3 C: mean, mean scaled by board size, and the maximum.

        With ``by_size`` the third number is the mean scaled by the square of the board size. Source: Wu, "Accelerating
        Self-Play Learning in Go", 2019, section 3.3.
        """

    @abstractmethod
    def norm(self, source: Any, norm: Norm) -> Any:
        """A new slot with the transformed source."""

    @abstractmethod
    def output(self, name: str, slot: Any) -> None:
        """Make a slot an output; it must not be freed."""

    def before_several(self, source: Any, norm: Norm) -> tuple[Any, Norm | None]:
        """Source and transformation for several convolutions of one source, to apply the transformation once."""
        return self.norm(source, norm), None

    def free(self, *slots: Any) -> None:  # noqa: B027
        """Release slots that no further layer reads; None is ignored."""

    def apply(self, part: Any, source: Any) -> Any:
        """Overwrite a slot of points with ``part.by_torch(points)``, for layers that only torch computes.

        ``part.multiply_adds(points)`` counts their multiplications for a number of points.

        Raises:
            Unwritable: this forward pass is not by torch.
        """
        raise Unwritable(type(part).__name__)


class _Held:
    """A slot that holds an array or a tensor: points [B, C, N, N] or vectors [B, C]."""

    def __init__(self, value: Any):
        self.value = value


class EagerForward(Forward):
    """Computes each layer when it is described, by the library of its inputs."""

    def __init__(self, planes: Any, globals_: Any):
        """Begin with planes[B, C, N, N] and globals_[B, G]."""
        self.planes, self.globals = _Held(planes), _Held(globals_)
        self.outputs: dict[str, Any] = {}
        """results by name: [B, C, N, N] of points, [B, C] of vectors"""

    def convolution(self, layer: Any, source: Any, before: Norm | None = None, bias: Any = None, plus: Any = None,
                    after: int = IDENTITY, into: Any = None) -> Any:  # fmt: skip
        """See :meth:`Forward.convolution`."""
        x = self._convolved(layer, source.value if before is None else self._normed(source.value, before))
        if bias is not None:
            x = x + bias.value[..., None, None]
        if plus is not None:
            x = plus.value + x
        into = into or _Held(None)
        into.value = self._activated(x, after)
        return into

    def linear(self, layer: Any, source: Any, after: int = IDENTITY) -> Any:
        """See :meth:`Forward.linear`."""
        x = source.value
        # Not len(x), which a trace would record as a constant.
        x = x if x.ndim == 2 else x.reshape(x.shape[0], -1)
        return _Held(self._activated(self._multiplied(layer.weight, layer.bias, x), after))

    def product(self, weight: Any, shift: Any, source: Any, plus: Any = None, after: int = IDENTITY) -> Any:
        """See :meth:`Forward.product`."""
        x = self._multiplied(weight, shift, source.value)
        return _Held(self._activated(x if plus is None else x + plus.value, after))

    def pool(self, source: Any, by_size: bool = False) -> Any:
        """See :meth:`Forward.pool`."""
        return _Held(self._pooled(source.value, by_size))

    def norm(self, source: Any, norm: Norm) -> Any:
        """See :meth:`Forward.norm`."""
        return _Held(self._normed(source.value, norm))

    def output(self, name: str, slot: Any) -> None:
        """See :meth:`Forward.output`."""
        self.outputs[name] = slot.value

    def _normed(self, x: Any, norm: Norm) -> Any:
        """x after scale, shift and activation."""
        shape = (-1, 1, 1) if x.ndim == 4 else (-1,)
        if norm.scale is not None:
            x = x * norm.scale.reshape(shape)
        if norm.shift is not None:
            x = x + norm.shift.reshape(shape)
        return self._activated(x, norm.activation)

    @abstractmethod
    def _convolved(self, layer: Any, x: Any) -> Any:
        """The outputs of a convolution."""

    @abstractmethod
    def _multiplied(self, weight: Any, shift: Any, x: Any) -> Any:
        """weight[K, C] x x[B, C] + shift[K], [B, K]."""

    @abstractmethod
    def _pooled(self, x: Any, by_size: bool) -> Any:
        """[B, 3C] of x[B, C, N, N]."""

    @abstractmethod
    def _activated(self, x: Any, activation: int) -> Any:
        """x after an activation."""


class NumpyForward(EagerForward):
    """The forward pass by numpy in float32: the reference."""

    def _convolved(self, layer: Convolution | ConvNorm, x: np.ndarray) -> np.ndarray:
        layer = layer.folded() if isinstance(layer, ConvNorm) else layer
        weight, (step_y, step_x) = layer.weight, layer.dilation
        (height, width), (count, channels, size, _) = weight.shape[2:], x.shape
        reach_y, reach_x = step_y * (height // 2), step_x * (width // 2)
        framed = np.pad(x, ((0, 0), (0, 0), (reach_y, reach_y), (reach_x, reach_x)))
        shown = np.empty((count, channels, height, width, size, size), np.float32)
        for y in range(height):
            for x_ in range(width):
                top, left = y * step_y, x_ * step_x
                shown[:, :, y, x_] = framed[:, :, top : top + size, left : left + size]
        made = weight.reshape(len(weight), -1) @ shown.reshape(count, -1, size * size)
        made = made.reshape(count, -1, size, size)
        return made if layer.bias is None else made + layer.bias[:, None, None]

    def _multiplied(self, weight: np.ndarray, shift: np.ndarray | None, x: np.ndarray) -> np.ndarray:
        made: np.ndarray = x @ weight.T
        return made if shift is None else made + shift

    def _pooled(self, x: np.ndarray, by_size: bool) -> np.ndarray:
        mean, scale = x.mean(axis=(2, 3)), np.float32(board_scale(x.shape[2]))
        third = mean * (scale * scale - np.float32(MEAN_SQUARE)) if by_size else x.max(axis=(2, 3))
        return np.concatenate([mean, mean * scale, third], axis=1)

    def _activated(self, x: np.ndarray, activation: int) -> np.ndarray:
        if activation == RELU:
            return np.maximum(x, np.float32(0))
        if activation == MISH:
            return x * np.tanh(softplus(x))
        if activation == SILU:
            return x * np.exp(-softplus(-x))
        return x


class CountingForward(Forward):
    """Counts the multiplications of one position's convolutions and matrix products; slots are None."""

    def __init__(self, size: int):
        """Begin with boards of ``size`` x ``size``."""
        self.planes = self.globals = None
        self.count, self._points = 0, size * size

    def convolution(self, layer: Any, source: Any, before: Norm | None = None, bias: Any = None, plus: Any = None,
                    after: int = IDENTITY, into: Any = None) -> None:  # fmt: skip
        """See :meth:`Forward.convolution`."""
        self.count += self._points * (layer.conv if isinstance(layer, ConvNorm) else layer).weight.size

    def linear(self, layer: Any, source: Any, after: int = IDENTITY) -> None:
        """See :meth:`Forward.linear`."""
        self.count += layer.weight.size

    def product(self, weight: Any, shift: Any, source: Any, plus: Any = None, after: int = IDENTITY) -> None:
        """See :meth:`Forward.product`."""
        self.count += weight.size

    def pool(self, source: Any, by_size: bool = False) -> None:
        """See :meth:`Forward.pool`."""

    def norm(self, source: Any, norm: Norm) -> None:
        """See :meth:`Forward.norm`."""

    def output(self, name: str, slot: Any) -> None:
        """See :meth:`Forward.output`."""

    def apply(self, part: Any, source: Any) -> None:
        """See :meth:`Forward.apply`; the part counts its own."""
        self.count += part.multiply_adds(self._points)


def board_scale(size: int) -> float:
    """The scale of the size-scaled mean on boards of ``size`` x ``size``."""
    return (size - CENTRE_SIZE) / SIZE_UNIT


# Functions of arrays, by numpy, by torch for its tensors, or as an array brings them: all have them under one name.


def library_of(array: Any) -> Any:
    """numpy, torch for a tensor, or the functions that an array brings (Python array API standard)."""
    if isinstance(array, np.ndarray):
        return np
    return array.__array_namespace__() if hasattr(array, "__array_namespace__") else sys.modules["torch"]


def softplus(x: Any) -> Any:
    """log(1 + exp(x)); 0 for minus infinity."""
    library = library_of(x)
    # torch's logaddexp may overflow on Apple's GPU.
    return library.nn.functional.softplus(x) if hasattr(library, "nn") else library.logaddexp(x, np.float32(0))


def probabilities(logits: Any) -> Any:
    """Probabilities of logits[B, K], in their dtype; 0 for minus infinity."""
    library = library_of(logits)
    weights = library.exp(logits - library.amax(logits, axis=1, keepdims=True))
    return weights / weights.sum(axis=1)[:, None]
