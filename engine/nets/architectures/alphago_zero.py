"""AlphaGo Zero's network: one residual trunk with batch normalisation, a policy head and a value head.

Source: Silver et al., "Mastering the game of Go without human knowledge", 2017, Methods, "Neural network
architecture"; there 19 or 39 blocks of 256 channels. The fully connected layers of its heads fix one board size. Each
residual block starts as the identity (Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 5.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.nets.forward import Forward
from engine.nets.layers import AS_RELU, RELU, Part, Weights
from engine.nets.network import PlainNetwork, RawHeads, Shape, board_size, dimension

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


class ZeroBlock(Part):
    """Two convolutions with a skip connection."""

    def __init__(self, name: str, channels: int, weights: Weights):
        self.first = weights.conv_norm(f"{name}.first", channels, channels, 3)
        self.second = weights.conv_norm(f"{name}.second", channels, channels, 3, scale="zeros")

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this block; its outputs overwrite slot ``x``."""
        inner = forward.convolution(self.first, x)
        forward.convolution(self.second, inner, AS_RELU, plus=x, after=RELU, into=x)
        forward.free(inner)


class ZeroNet(PlainNetwork):
    """AlphaGo Zero's network."""

    shape: ZeroShape

    def __init__(self, shape: ZeroShape, weights: Weights):
        self.shape = shape
        channels, points = shape.channels, shape.size**2
        self.stem = weights.conv_norm("stem", shape.planes, channels, 3)
        self.blocks = [ZeroBlock(f"blocks.{i}", channels, weights) for i in range(shape.blocks)]
        self.policy_local = weights.conv_norm("policy_local", channels, POLICY_FILTERS, 1)
        self.policy_out = weights.linear("policy_out", POLICY_FILTERS * points, points + 1)
        self.value_local = weights.conv_norm("value_local", channels, 1, 1)
        self.value_hidden = weights.linear("value_hidden", points, shape.value_hidden)
        self.value_out = weights.linear("value_out", shape.value_hidden, 1)

    def describe(self, forward: Forward) -> None:
        """See :meth:`engine.nets.network.PlainNetwork.describe`."""
        x = forward.convolution(self.stem, forward.planes, after=RELU)
        for block in self.blocks:
            block.describe(forward, x)
        policy = forward.convolution(self.policy_local, x, after=RELU)
        forward.output("policy", forward.linear(self.policy_out, policy))
        hidden = forward.linear(self.value_hidden, forward.convolution(self.value_local, x, after=RELU), RELU)
        forward.output("value", forward.linear(self.value_out, hidden))

    def heads_of(self, outputs: Mapping[str, Any], planes: Any, globals_: Any) -> RawHeads:
        """Policy and value."""
        return RawHeads(outputs["policy"], outputs["value"][:, 0])


class ElfNet(ZeroNet):
    """A :class:`ZeroNet` whose layers compute Black's value, as ELF OpenGo's; the output is the side to move's."""

    def __init__(self, shape: ZeroShape, weights: Weights):
        if shape.planes <= BLACK_TO_MOVE:
            raise ValueError(f"planes is {shape.planes}, expected {BLACK_TO_MOVE + 1} or more: one for the colour")
        super().__init__(shape, weights)

    def heads_of(self, outputs: Mapping[str, Any], planes: Any, globals_: Any) -> RawHeads:
        """As for :class:`ZeroNet`, with the sign of the value changed if White is to move."""
        heads = super().heads_of(outputs, planes, globals_)
        return heads._replace(value=heads.value * (2.0 * planes[:, BLACK_TO_MOVE, 0, 0] - 1.0))
