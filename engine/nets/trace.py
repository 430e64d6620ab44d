"""The hidden layers of a network: the outputs of each layer for some positions.

A trace is the plain computation of a network's description (:class:`engine.nets.forward.NumpyForward`, or torch for
layers that only torch computes) that keeps what each layer writes, by the layer's name in the network's file. A layer
whose outputs are added to the trunk has the name of its block: what it writes is the trunk after the block. If the next
layer begins with an activation, as in pre-activation blocks, the outputs are kept after it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from engine.nets.devices import imported_torch
from engine.nets.forward import EagerForward, NumpyForward, Unwritable
from engine.nets.layers import IDENTITY, ConvNorm, Convolution, Norm, Part
from engine.nets.network import NetArrays, PlainNetwork, activated

INPUT = "input planes"
"""Name of the first layer of a trace"""
TIP = "trunk"
"""Name of the trunk after its last normalisation, in networks that have one"""


class Trace(NamedTuple):
    """What a network computes for B positions on boards of N x N."""

    layers: dict[str, np.ndarray]
    """float32[B, C, N, N] by name, in the order of computation, the input planes first; without layers that compute
    vectors"""
    heads: NetArrays
    """the network's outputs, from the view of the side to move"""


def trace(network: PlainNetwork, planes: np.ndarray, globals_: np.ndarray) -> Trace:
    """Compute a network and keep the outputs of its layers.

    Args:
        planes: float32[B, C, N, N] of the network's encoder.
        globals_: float32[B, G] of the network's encoder.
    Raises:
        ValueError: the network needs torch, which is not installed; one line.
    """
    try:
        forward: _Recording = _ByNumpy(_names(network), planes, globals_)
        network.describe(forward)
    except Unwritable:
        forward = _by_torch(network, planes, globals_)
    forward.finish()
    layers = {name: np.asarray(values, np.float32) for name, values in forward.layers.items()}
    outputs = {name: np.asarray(values, np.float32) for name, values in forward.outputs.items()}
    return Trace(layers, activated(network.heads_of(outputs, planes, globals_)))


class _Recording(EagerForward):
    """Keeps the points that each layer writes."""

    def __init__(self, names: Mapping[int, str], planes: Any, globals_: Any):
        """Begin with planes[B, C, N, N] and globals_[B, G]; ``names`` are those of layers and parts, by ``id``."""
        super().__init__(planes, globals_)
        self._names = names
        self.layers: dict[str, Any] = {INPUT: planes}
        self._unactivated: dict[int, tuple[Any, str]] = {}
        """by ``id``, the slots that a layer wrote without activation and no other layer has written, and its name"""
        self._activated_later: dict[int, Any] = {}
        """by ``id`` of such a slot, its points after the activation of the layer that reads it"""

    def convolution(self, layer: Any, source: Any, before: Norm | None = None, bias: Any = None, plus: Any = None,
                    after: int = IDENTITY, into: Any = None) -> Any:  # fmt: skip
        """See :meth:`engine.nets.forward.Forward.convolution`."""
        if before is not None and id(source) in self._unactivated:
            self._activated_later[id(source)] = self._normed(source.value, before)
        slot = super().convolution(layer, source, before, bias, plus, after, into)
        name = self._names[id(layer)]
        self.layers[name if into is None else name.rpartition(".")[0]] = slot.value
        if into is not None:
            # The trunk, which each block transforms in another way.
            self._unactivated.pop(id(into), None)
        elif after == IDENTITY:
            self._unactivated[id(slot)] = slot, name
        return slot

    def finish(self) -> None:
        """Replace outputs by those after the activation of the layer that reads them; to be called at the end."""
        for key, (_, name) in self._unactivated.items():
            if key in self._activated_later:
                self.layers[name] = self._activated_later[key]

    def norm(self, source: Any, norm: Norm) -> Any:
        """See :meth:`engine.nets.forward.Forward.norm`."""
        slot = super().norm(source, norm)
        if source.value.ndim == 4:
            self.layers[self._names.get(id(norm), TIP)] = slot.value
        return slot

    def before_several(self, source: Any, norm: Norm) -> tuple[Any, Norm | None]:
        """See :meth:`engine.nets.forward.Forward.before_several`; these points are no layer of their own."""
        return super().norm(source, norm), None

    def apply(self, part: Any, source: Any) -> Any:
        """See :meth:`engine.nets.forward.Forward.apply`."""
        slot = super().apply(part, source)
        self.layers[self._names[id(part)]] = slot.value
        return slot


class _ByNumpy(_Recording, NumpyForward):
    """The trace by numpy."""


def _names(part: Any, prefix: str = "") -> dict[int, str]:
    """The names of a network's convolutions, normalisations and parts, by ``id``: their attributes, joined by dots."""
    return {id(layer): name for name, layer in _named(part, prefix)}


def _named(part: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in enumerate(part) if isinstance(part, list) else vars(part).items():
        if isinstance(value, Part | list):
            yield from _named(value, f"{prefix}{name}.")
        if isinstance(value, Part | Convolution | ConvNorm | Norm):
            yield f"{prefix}{name}", value


def _by_torch(network: PlainNetwork, planes: np.ndarray, globals_: np.ndarray) -> _Recording:
    """The recorded computation by torch on the CPU."""
    torch = imported_torch("a network with attention")
    from engine.nets.model import TorchForward, model_of

    class ByTorch(_Recording, TorchForward):
        """The trace by torch."""

    model = model_of(network).eval()
    names = {id(module): name for name, module in model.named_modules()}
    with torch.inference_mode():
        forward = ByTorch(names, torch.from_numpy(planes), torch.from_numpy(globals_))
        model.describe(forward)
    return forward
