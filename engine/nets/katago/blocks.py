"""KataGo's residual blocks of convolutions, and how a file lists a stack of blocks.

All of them take and return the trunk [B, C, N, N] and normalise it first. Sources: Wu, "Accelerating Self-Play Learning
in Go", 2019, section 3.3 (global pooling); ``docs/KataGoMethods.md`` of KataGo (nested bottlenecks).
"""

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor, nn

from engine.nets.compute.pooling import pooled
from engine.nets.compute.program import Before, Program, Slot
from engine.nets.katago.attention import AttentionBlock, FeedForwardBlock
from engine.nets.katago.layers import LayerReader, Norm, convolution, linear

MAX_BLOCKS = 1 << 10
MAX_DEPTH = 8
"""Stacks within stacks"""


class ResidualBlock(nn.Module):
    """Two convolutions."""

    words = "residual"

    def __init__(self, layers: LayerReader, channels: int, depth: int):
        """Read the block that comes next in a file.

        Args:
            channels: C of the trunk.
            depth: of the stack it belongs to, 1 for the trunk.
        """
        super().__init__()
        self.before = Norm(layers.scaling(channels), layers.activation())
        first = layers.convolution(channels)
        self.first = convolution(first, layers.scaling(first.outputs))
        self.middle = layers.activation()
        self.last = convolution(layers.convolution(first.outputs, channels))

    def forward(self, x: Tensor) -> Tensor:
        """The trunk after this block, [B, C, N, N] as it came."""
        return x + self.last(self.middle(self.first(self.before(x))))

    def write(self, program: Program, x: Slot) -> None:
        """Write this block; its outputs take the place of x."""
        inner = program.convolution(self.first, x, self.before.in_program())
        program.convolution(self.last, inner, Before(self.middle), plus=x, into=x)
        program.free(inner)


class PoolingBlock(nn.Module):
    """Two convolutions; others beside the first one, pooled over the board, make a bias for its outputs."""

    words = "global pooling"

    def __init__(self, layers: LayerReader, channels: int, depth: int):
        """Read the block that comes next in a file, as :class:`ResidualBlock` does."""
        super().__init__()
        self.before = Norm(layers.scaling(channels), layers.activation())
        first, pool = layers.convolution(channels), layers.convolution(channels)
        self.pool = convolution(pool, layers.scaling(pool.outputs))
        self.pool_activation = layers.activation()
        bias = layers.matrix(3 * pool.outputs, first.outputs)
        after = layers.scaling(first.outputs)
        self.first = convolution(first, after)
        self.pool_bias = linear(bias * after.scale[:, None])
        self.middle = layers.activation()
        self.last = convolution(layers.convolution(first.outputs, channels))

    def forward(self, x: Tensor) -> Tensor:
        """The trunk after this block, [B, C, N, N] as it came."""
        ready = self.before(x)
        bias = self.pool_bias(pooled(self.pool_activation(self.pool(ready))))
        return x + self.last(self.middle(self.first(ready) + bias[..., None, None]))

    def write(self, program: Program, x: Slot) -> None:
        """Write this block; its outputs take the place of x."""
        ready, before = program.before_several(x, self.before.in_program())
        pool = program.convolution(self.pool, ready, before, after=self.pool_activation)
        context = program.pool(pool)
        bias = program.linear(self.pool_bias, context)
        inner = program.convolution(self.first, ready, before, bias)
        program.convolution(self.last, inner, Before(self.middle), plus=x, into=x)
        program.free(pool, context, bias, inner, None if ready == x else ready)


class NestedBlock(nn.Module):
    """A stack of blocks on fewer channels, between two convolutions."""

    words = "nested bottleneck"

    def __init__(self, layers: LayerReader, channels: int, depth: int):
        """Read the block that comes next in a file, as :class:`ResidualBlock` does."""
        super().__init__()
        count = layers.stream.integer("blocks", 1, MAX_BLOCKS)
        self.before = Norm(layers.scaling(channels), layers.activation())
        first = layers.convolution(channels)
        self.first = convolution(first)
        self.blocks = read_blocks(layers, count, first.outputs, depth + 1)
        self.after = Norm(layers.scaling(first.outputs), layers.activation())
        self.last = convolution(layers.convolution(first.outputs, channels))

    def forward(self, x: Tensor) -> Tensor:
        """The trunk after this block, [B, C, N, N] as it came."""
        return x + self.last(self.after(self.blocks(self.first(self.before(x)))))

    def write(self, program: Program, x: Slot) -> None:
        """Write this block; its outputs take the place of x."""
        inner = program.convolution(self.first, x, self.before.in_program())
        write_blocks(self.blocks, program, inner)
        program.convolution(self.last, inner, self.after.in_program(), plus=x, into=x)
        program.free(inner)


BLOCKS: dict[str, Callable[[LayerReader, int, int], nn.Module]] = {
    "ordinary_block": ResidualBlock,
    "gpool_block": PoolingBlock,
    "nested_bottleneck_block": NestedBlock,
    "transformer_attention_block": AttentionBlock,
    "transformer_ffn_block": FeedForwardBlock,
}


def read_blocks(layers: LayerReader, count: int, channels: int, depth: int = 1) -> nn.Sequential:
    """A stack of blocks of any kind.

    Args:
        channels: of the trunk they share.
        depth: 1 for the network's trunk, one more for each stack around this one.
    """
    stream = layers.stream
    if depth > MAX_DEPTH:
        raise stream.wrong("blocks", f"{depth} stacks within each other", f"at most {MAX_DEPTH}")
    stack = nn.Sequential()
    for _ in range(count):
        kind = stream.word("kind of block")
        if kind not in BLOCKS:
            raise stream.wrong("kind of block", repr(kind[:40]), f"one of {', '.join(BLOCKS)}")
        stream.name()
        stack.append(BLOCKS[kind](layers, channels, depth))
    return stack


def write_blocks(blocks: nn.Sequential, program: Program, x: Slot) -> None:
    """Write a stack of blocks; their outputs take the place of x.

    Raises:
        Unwritable: one of them is of attention.
    """
    for block in blocks:
        cast(Any, block).write(program, x)
