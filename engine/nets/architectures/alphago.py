"""AlphaGo's policy network and value network, as published: plain convolutions, no normalisation.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", 2016, Methods, "Neural
network architecture". Layers have the paper's numbers. Convolutions are padded with zeros to the size of the board.
Both networks have parameters for one board size: a bias for each point (policy), a fully connected layer (value).

Our decisions where the paper is silent: the value network has 15 layers (convolutions 1 to 12, the 1x1 convolution 13,
the fully connected layer 14, the output), without an activation between layers 13 and 14, since a dead ReLU in the
single filter would make the output constant. Weights are initialised as in He et al., "Delving Deep into Rectifiers",
2015, which keeps the variance through thirteen plain layers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.nets.forward import Forward
from engine.nets.layers import RELU, Weights
from engine.nets.network import PlainNetwork, RawHeads, Shape, board_size, dimension

HIDDEN_LAYERS = 12
"""Number of convolutions with ReLU: the first is 5x5, the others are 3x3"""


@dataclass(frozen=True)
class PolicyShape(Shape):
    """The shape of an :class:`AlphaGoPolicy`; defaults are the match version's."""

    planes: int = dimension("input planes", 1, 256, 48)
    filters: int = dimension("filters of a hidden layer", 1, 1024, 192)
    size: int = board_size()


@dataclass(frozen=True)
class ValueShape(Shape):
    """The shape of an :class:`AlphaGoValue`; defaults are the match version's."""

    planes: int = dimension("input planes", 1, 256, 49)
    filters: int = dimension("filters of a hidden layer", 1, 1024, 192)
    hidden: int = dimension("units of the fully connected layer", 1, 4096, 256)
    size: int = board_size()


class _AlphaGo(PlainNetwork):
    """Base of the two networks, their layers 1 to 13: hidden convolutions, and a 1x1 convolution to one filter."""

    def __init__(self, shape: Any, weights: Weights, last_bias: str | None):
        self.shape = shape
        self.layers = [
            weights.convolution(f"layers.{i}", shape.filters, shape.filters, 3, "relu", "zeros")
            if i
            else weights.convolution(f"layers.{i}", shape.planes, shape.filters, 5, "relu", "zeros")
            for i in range(HIDDEN_LAYERS)
        ]
        self.last = weights.convolution("last", shape.filters, 1, 1, "linear", last_bias)

    def _points(self, forward: Forward) -> Any:
        """The slot of the single filter of layer 13."""
        x = forward.planes
        for layer in self.layers:
            following = forward.convolution(layer, x, after=RELU)
            forward.free(x)
            x = following
        return forward.convolution(self.last, x)


class AlphaGoPolicy(_AlphaGo):
    """13 layers from the planes to one logit a point, without an output for the pass."""

    def __init__(self, shape: PolicyShape, weights: Weights):
        super().__init__(shape, weights, None)
        self.point_bias = weights.array("point_bias", (shape.size**2,))

    def describe(self, forward: Forward) -> None:
        """See :meth:`engine.nets.network.PlainNetwork.describe`."""
        forward.output("points", self._points(forward))

    def heads_of(self, outputs: Mapping[str, Any], planes: Any, globals_: Any) -> RawHeads:
        """The policy logits [B, N*N], with the bias of each point, as the only head."""
        points = outputs["points"]
        return RawHeads(policy=points.reshape(points.shape[0], -1) + self.point_bias)


class AlphaGoValue(_AlphaGo):
    """15 layers from the planes, which include the colour to move, to one value."""

    def __init__(self, shape: ValueShape, weights: Weights):
        super().__init__(shape, weights, "zeros")
        self.hidden = weights.linear("hidden", shape.size**2, shape.hidden, "relu", "zeros")
        self.out = weights.linear("out", shape.hidden, 1, bias="zeros")

    def describe(self, forward: Forward) -> None:
        """See :meth:`engine.nets.network.PlainNetwork.describe`."""
        hidden = forward.linear(self.hidden, self._points(forward), RELU)
        forward.output("value", forward.linear(self.out, hidden))

    def heads_of(self, outputs: Mapping[str, Any], planes: Any, globals_: Any) -> RawHeads:
        """The value as the only head."""
        return RawHeads(value=outputs["value"][:, 0])
