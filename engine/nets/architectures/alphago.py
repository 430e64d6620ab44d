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
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.nets.compute.program import RELU, Program
from engine.nets.network import Model, RawHeads, Shape, board_size, dimension, draw_normal

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


class _AlphaGo(Model):
    """Base of the two networks, their layers 1 to 13: hidden convolutions, and a 1x1 convolution to one filter."""

    def __init__(self, shape: PolicyShape | ValueShape, has_last_bias: bool):
        super().__init__(shape)
        self.layers = nn.ModuleList(
            nn.Conv2d(shape.filters, shape.filters, 3, padding=1)
            if i
            else nn.Conv2d(shape.planes, shape.filters, 5, padding=2)
            for i in range(HIDDEN_LAYERS)
        )
        for layer in self.layers:
            draw_normal(layer.get_parameter("weight"))
            nn.init.zeros_(layer.get_parameter("bias"))
        self.last = nn.Conv2d(shape.filters, 1, 1, bias=has_last_bias)

    def outputs(self, planes: Tensor, globals_: Tensor) -> Mapping[str, Tensor]:
        """``points`` [B, 1, N, N] for planes[B, C, N, N]; ``globals_`` [B, 0] is not read."""
        x = planes
        for layer in self.layers:
            x = F.relu(layer(x))
        return {"points": self.last(x)}

    def write_program(self, program: Program) -> None:
        """See :meth:`engine.nets.network.Model.write_program`; later layers are in :meth:`heads_of`."""
        x = program.planes
        for layer in self.layers:
            following = program.convolution(cast(nn.Conv2d, layer), x, after=RELU.activation)
            program.free(x)
            x = following
        program.output("points", program.convolution(self.last, x))


class AlphaGoPolicy(_AlphaGo):
    """13 layers from the planes to one logit a point, without an output for the pass."""

    def __init__(self, shape: PolicyShape):
        super().__init__(shape, has_last_bias=False)
        self.point_bias = nn.Parameter(torch.zeros(shape.size**2))
        draw_normal(self.last.weight, "linear")

    def heads_of(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """The policy logits [B, N*N], with the bias of each point, as the only head."""
        return RawHeads(policy=outputs["points"].flatten(1) + self.point_bias)


class AlphaGoValue(_AlphaGo):
    """15 layers from the planes, which include the colour to move, to one value."""

    def __init__(self, shape: ValueShape):
        super().__init__(shape, has_last_bias=True)
        self.hidden = nn.Linear(shape.size**2, shape.hidden)
        self.out = nn.Linear(shape.hidden, 1)
        draw_normal(self.last.weight, "linear")
        draw_normal(self.hidden.weight)
        for layer in (self.last, self.hidden, self.out):
            nn.init.zeros_(layer.get_parameter("bias"))

    def heads_of(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """The value, computed by the fully connected layers, as the only head."""
        return RawHeads(value=self.out(F.relu(self.hidden(outputs["points"].flatten(1))))[:, 0])
