"""AlphaGo Zero's network: one residual trunk with batch normalisation, a policy head and a value head.

Source: Silver et al., "Mastering the game of Go without human knowledge", 2017, Methods, "Neural network
architecture"; there 19 or 39 blocks of 256 channels. The fully connected layers of its heads fix one board size. Each
residual block starts as the identity (Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 5.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.nets.compute.program import RELU, Program, Slot
from engine.nets.network import Model, RawHeads, Shape, board_size, dimension, draw_normal, replaced

MOMENTUM = 0.1
"""Weight of the current batch in the running statistics"""
EPSILON = 1e-5
POLICY_FILTERS = 2
BLACK_TO_MOVE = 16
"""The plane that is 1 if Black is to move, in AlphaGo Zero's input and in Leela Zero's"""


@dataclass(frozen=True)
class ZeroShape(Shape):
    """The shape of a :class:`ZeroNet`; defaults are Keima's, 12 blocks of 128 channels."""

    planes: int = dimension("input planes", 1, 256, 17)
    blocks: int = dimension("residual blocks of two convolutions", 1, 256, 12)
    channels: int = dimension("channels of the trunk", 1, 2048, 128)
    value_hidden: int = dimension("units of the value head's hidden layer", 1, 4096, 256)
    size: int = board_size()


class ConvNorm(nn.Module):
    """A convolution without bias, then batch normalisation.

    Unlike torch's layer it does not count batches, so that all its state is floating point and can be averaged.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.scale = nn.Parameter(torch.ones(outputs))
        self.shift = nn.Parameter(torch.zeros(outputs))
        self.mean = nn.Buffer(torch.zeros(outputs))
        self.variance = nn.Buffer(torch.ones(outputs))
        draw_normal(self.conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        """[B, outputs, N, N] for x[B, inputs, N, N], normalised by the batch's statistics in training mode, else by
        running statistics."""
        x = self.conv(x)
        return F.batch_norm(x, self.mean, self.variance, self.scale, self.shift, self.training, MOMENTUM, EPSILON)

    def folded(self) -> nn.Conv2d:
        """One convolution that computes what this layer computes in evaluation mode."""
        weight = self.conv.weight.detach()
        factor = self.scale.detach() / torch.sqrt(self.variance + EPSILON)
        conv = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], padding=weight.shape[2] // 2)
        conv.weight = nn.Parameter(weight * factor[:, None, None, None])
        conv.bias = nn.Parameter(self.shift.detach() - self.mean * factor)
        return conv


def folded(model: nn.Module) -> nn.Module:
    """A copy of a network for evaluation, batch normalisation folded into the convolutions."""
    return replaced(model, lambda layer: layer.folded() if isinstance(layer, ConvNorm) else None).eval()


class ZeroBlock(nn.Module):
    """Two convolutions with a skip connection."""

    def __init__(self, channels: int):
        super().__init__()
        self.first = ConvNorm(channels, channels, 3)
        self.second = ConvNorm(channels, channels, 3)
        nn.init.zeros_(self.second.scale)

    def forward(self, x: Tensor) -> Tensor:
        """The trunk after this block, [B, C, N, N] like x."""
        return F.relu(x + self.second(F.relu(self.first(x))))

    def write(self, program: Program, x: Slot) -> None:
        """Write this block, its normalisation folded, to a program; its outputs overwrite slot ``x``."""
        inner = program.convolution(_plain(self.first), x)
        program.convolution(_plain(self.second), inner, RELU, plus=x, after=RELU.activation, into=x)
        program.free(inner)


class ZeroNet(Model):
    """AlphaGo Zero's network: the parameters and the forward pass."""

    shape: ZeroShape

    def __init__(self, shape: ZeroShape):
        super().__init__(shape)
        channels, points = shape.channels, shape.size**2
        self.stem = ConvNorm(shape.planes, channels, 3)
        self.blocks = nn.ModuleList(ZeroBlock(channels) for _ in range(shape.blocks))
        self.policy_local = ConvNorm(channels, POLICY_FILTERS, 1)
        self.policy_out = nn.Linear(POLICY_FILTERS * points, points + 1)
        self.value_local = ConvNorm(channels, 1, 1)
        self.value_hidden = nn.Linear(points, shape.value_hidden)
        self.value_out = nn.Linear(shape.value_hidden, 1)

    def outputs(self, planes: Tensor, globals_: Tensor) -> Mapping[str, Tensor]:
        """``policy`` [B, 2, N, N] and ``value`` [B, 1, N, N] for planes[B, C, N, N]; ``globals_`` is not read."""
        x = F.relu(self.stem(planes))
        for block in self.blocks:
            x = block(x)
        return {"policy": F.relu(self.policy_local(x)), "value": F.relu(self.value_local(x))}

    def write_program(self, program: Program) -> None:
        """See :meth:`engine.nets.network.Model.write_program`; fully connected layers are in :meth:`heads_of`."""
        relu = RELU.activation
        x = program.convolution(_plain(self.stem), program.planes, after=relu)
        for block in self.blocks:
            cast(ZeroBlock, block).write(program, x)
        program.output("policy", program.convolution(_plain(self.policy_local), x, after=relu))
        program.output("value", program.convolution(_plain(self.value_local), x, after=relu))

    def heads_of(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """Policy and value, computed by the fully connected layers."""
        hidden = F.relu(self.value_hidden(outputs["value"].flatten(1)))
        return RawHeads(self.policy_out(outputs["policy"].flatten(1)), self.value_out(hidden)[:, 0])


def _plain(layer: nn.Module) -> nn.Conv2d:
    """A layer of a folded model (:func:`folded`), cast to a convolution."""
    assert isinstance(layer, nn.Conv2d)
    return layer


class ElfNet(ZeroNet):
    """A :class:`ZeroNet` whose layers compute Black's value, as ELF OpenGo's; the output is the side to move's."""

    def __init__(self, shape: ZeroShape):
        if shape.planes <= BLACK_TO_MOVE:
            raise ValueError(f"planes is {shape.planes}, expected {BLACK_TO_MOVE + 1} or more: one for the colour")
        super().__init__(shape)

    def heads_of(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """As for :class:`ZeroNet`, with the sign of the value changed if White is to move."""
        heads = super().heads_of(outputs, planes, globals_)
        assert heads.value is not None
        return heads._replace(value=heads.value * (2.0 * planes[:, BLACK_TO_MOVE, 0, 0] - 1.0))
