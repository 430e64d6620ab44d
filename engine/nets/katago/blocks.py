"""KataGo's residual and transformer blocks, and stacks of them in a file.

All blocks take and return the trunk [B, C, N, N] and normalise it first. Sources: Wu, "Accelerating Self-Play Learning
in Go", 2019, section 3.3 (global pooling); ``docs/KataGoMethods.md`` of KataGo (nested bottlenecks). Transformer blocks
have a token for each point and no biases: Vaswani et al., "Attention Is All You Need", 2017; Zhang & Sennrich, "Root
Mean Square Layer Normalization", 2019; Su et al., "RoFormer", 2021 (rotary embedding); Shazeer, "GLU Variants Improve
Transformer", 2020; Ainslie et al., "GQA", 2023 (grouped query heads).
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.nets.forward import Forward, library_of
from engine.nets.katago.layers import MAX_SIZE, LayerReader, Scaling, linear, norm, normalised
from engine.nets.layers import Norm, Part

MAX_HEADS = 1 << 10
MAX_EPSILON = 1.0
MAX_THETA = 1e12
MAX_ANGLES = 1 << 22
"""Maximum number of rotary angles of a block; each query head has a copy of the angles of its group's key head"""


def inverse_rms(x: Any, dims: tuple[int, ...], epsilon: float) -> Any:
    """1 / root mean square of a tensor over some axes, kept with length 1; in its dtype, computed in float32."""
    return (x.float().square().mean(dims, keepdim=True) + epsilon).rsqrt().to(x.dtype)


class RmsNorm(Part):
    """The trunk's last layer in networks without batch normalisation: RMS normalisation, scale, shift, activation.

    The root mean square is over the channels of each point or, if "spatial", over all channels and points of the board.
    """

    def __init__(self, layers: LayerReader, channels: int):
        """Read the normalisation and its activation, next in a file."""
        stream = layers.stream
        stream.name()
        layers.channels("channels", channels)
        self.epsilon = stream.positive("epsilon", MAX_EPSILON)
        is_spatial = stream.integer("whether it is spatial", 0, 1)
        stream.integer("channels of a group", 0, 0)
        scaling = Scaling(stream.weights(channels), stream.weights(channels))
        self.norm = norm(scaling, layers.activation())
        self.dims = (1, 2, 3) if is_spatial else (1,)

    def describe(self, forward: Forward, x: Any) -> Any:
        """Describe this layer; returns the slot of its outputs."""
        return forward.norm(forward.apply(self, x), self.norm)

    def multiply_adds(self, points: int) -> int:
        """0: normalisation has no products."""
        return 0

    def by_torch(self, x: Any) -> Any:
        """x[B, C, N, N] after normalisation."""
        return x * inverse_rms(x, self.dims, self.epsilon)


class TokenBlock(Part):
    """Base of transformer blocks: normalise tokens [B, N*N, C], transform them, add them to the trunk [B, C, N, N].

    Only torch computes them. The subclass's constructor must call :meth:`_read_norm`.
    """

    into: Any
    """the first matrix"""
    out: Any
    """the last matrix"""

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this block; its outputs overwrite slot ``x``."""
        forward.apply(self, x)

    def _read_norm(self, layers: LayerReader, channels: int) -> np.ndarray:
        """Read root mean square normalisation; returns its weight, float32[C], for the next matrices to include."""
        layers.stream.name()
        layers.channels("channels", channels)
        self.epsilon = layers.stream.positive("epsilon", MAX_EPSILON)
        return layers.stream.weights(channels)

    @abstractmethod
    def change(self, tokens: Any, size: int) -> Any:
        """The residual, [B, N*N, C] like the normalised tokens, on boards of ``size`` x ``size``."""

    def multiply_adds(self, points: int) -> int:
        """Number of multiplications in the block's matrix products for a number of points."""
        return points * int(self.into.weight.size + self.out.weight.size)

    def by_torch(self, x: Any) -> Any:
        """The trunk after this block, [B, C, N, N] like x."""
        # In channels-last order both are views.
        tokens = x.flatten(2).transpose(1, 2)
        change = self.change(tokens * inverse_rms(tokens, (2,), self.epsilon), int(x.shape[2]))
        return x + change.transpose(1, 2).reshape(x.shape)


class AttentionBlock(TokenBlock):
    """Self-attention over all points."""

    words = "attention"

    def __init__(self, layers: LayerReader, channels: int, depth: int):
        """Read the block, next in a file; arguments as for :class:`ResidualBlock`."""
        stream = layers.stream
        self.heads = stream.integer("query heads", 1, MAX_HEADS)
        self.key_heads = stream.integer("key and value heads", 1, self.heads)
        if self.heads % self.key_heads:
            raise stream.wrong("query heads", self.heads, f"a multiple of {self.key_heads} key and value heads")
        self.width, self.value_width = (layers.channels(f"width of a {what} head") for what in ("query", "value"))
        is_rotated = stream.integer("whether heads are rotated", 0, 1)
        is_learnt = stream.integer("whether rotations are learnt", 0, 1)
        if is_rotated and self.width % 2:
            raise stream.wrong("width of a query head", self.width, "an even one, as pairs are rotated")
        norm = self._read_norm(layers, channels)
        query = layers.matrix(channels, self.heads * self.width)
        key = layers.matrix(channels, self.key_heads * self.width)
        value = layers.matrix(channels, self.key_heads * self.value_width)
        self.out = linear(layers.matrix(self.heads * self.value_width, channels))
        if is_rotated:
            angles = self._read_angles(layers, bool(is_learnt))
            self.cosine, self.sine = (f(angles).astype(np.float32) for f in (np.cos, np.sin))
            query, key = (_halves(weight, self.width) for weight in (query, key))
        self.is_rotated = bool(is_rotated)
        self.into = linear(np.concatenate([query, key, value]) * norm)

    def multiply_adds(self, points: int) -> int:
        """See :meth:`TokenBlock.multiply_adds`; queries with keys, and what is seen with values."""
        return super().multiply_adds(points) + points * points * self.heads * (self.width + self.value_width)

    def _read_angles(self, layers: LayerReader, is_learnt: bool) -> np.ndarray:
        """Rotary angles float64[19, 19, heads, pairs]: by row, column, head (queries, then keys) and pair of
        channels."""
        stream, pairs = layers.stream, self.width // 2
        stream.name()
        matching = self.heads + self.key_heads
        if is_learnt and MAX_SIZE**2 * matching * pairs > MAX_ANGLES:
            raise stream.wrong("pairs", f"{matching} heads of {pairs}", f"at most {MAX_ANGLES:,} angles")
        if is_learnt:
            stream.integer("key heads that are rotated", self.key_heads, self.key_heads)
            stream.integer("pairs", pairs, pairs)
            stream.integer("axes", 2, 2)
            of_key = stream.weights(self.key_heads, pairs, 2)[..., ::-1]
            frequency = np.concatenate([of_key.repeat(self.heads // self.key_heads, axis=0), of_key])
        else:
            theta = stream.positive("theta", MAX_THETA)
            frequency = np.zeros((1, pairs, 2))
            # The first half of the pairs rotates with the row, the others with the column, at decreasing frequencies.
            for axis, start, stop in ((0, 0, pairs // 2), (1, pairs // 2, pairs)):
                frequency[0, start:stop, axis] = theta ** (-2.0 * np.arange(stop - start) / pairs)
        rows, columns = np.indices((MAX_SIZE, MAX_SIZE))
        frequency = frequency.astype(np.float64)
        return rows[..., None, None] * frequency[..., 0] + columns[..., None, None] * frequency[..., 1]

    def _rotated(self, heads: Any, size: int) -> Any:
        """Queries and keys [B, N*N, heads, width], each pair (first half, second half) rotated by its angle."""
        cosine, sine = (table[:size, :size].flatten(0, 1) for table in (self.cosine, self.sine))
        first, second = heads.chunk(2, dim=3)
        return library_of(heads).cat([first * cosine - second * sine, first * sine + second * cosine], dim=3)

    def change(self, tokens: Any, size: int) -> Any:
        """See :meth:`TokenBlock.change`."""
        from torch.nn import functional as F

        matching = self.heads + self.key_heads
        matched, value = self.into(tokens).split((matching * self.width, self.key_heads * self.value_width), dim=2)
        matched = matched.unflatten(2, (matching, self.width))
        if self.is_rotated:
            matched = self._rotated(matched, size)
        query, key = matched.transpose(1, 2).split((self.heads, self.key_heads), dim=1)
        value = value.unflatten(2, (self.key_heads, self.value_width)).transpose(1, 2)
        is_grouped = self.heads != self.key_heads
        seen = F.scaled_dot_product_attention(query, key, value, enable_gqa=is_grouped)
        return self.out(seen.transpose(1, 2).flatten(2))


def _halves(weight: np.ndarray, width: int) -> np.ndarray:
    """Reorder a matrix's rows: for each head the first elements of all pairs, then the second ones.

    Products of queries and keys do not change, and pairs can be rotated without reordering activations.
    """
    return weight.reshape(-1, width // 2, 2, weight.shape[1]).transpose(0, 2, 1, 3).reshape(weight.shape)


class FeedForwardBlock(TokenBlock):
    """Gated feed-forward layers (SwiGLU) on each point."""

    words = "feed-forward"

    def __init__(self, layers: LayerReader, channels: int, depth: int):
        """Read the block, next in a file; arguments as for :class:`ResidualBlock`."""
        layers.channels("channels", channels)
        hidden = layers.channels("hidden channels")
        # The format allows no other kind of layer yet.
        layers.stream.integer("whether there is a gate", 1, 1)
        norm = self._read_norm(layers, channels)
        self.into = linear(np.concatenate([layers.matrix(channels, hidden) for _ in range(2)]) * norm)
        self.out = linear(layers.matrix(hidden, channels))

    def change(self, tokens: Any, size: int) -> Any:
        """See :meth:`TokenBlock.change`."""
        from torch.nn import functional as F

        hidden, gate = self.into(tokens).chunk(2, dim=2)
        return self.out(F.silu(hidden) * gate)


MAX_BLOCKS = 1 << 10
MAX_DEPTH = 8
"""Maximum depth of stacks of blocks nested within each other"""


class ResidualBlock(Part):
    """Two convolutions with a skip connection."""

    words = "residual"

    def __init__(self, layers: LayerReader, channels: int, depth: int):
        """Read the block, next in a file.

        Args:
            channels: C of the trunk.
            depth: nesting depth of its stack, 1 for the trunk.
        """
        self.before = norm(layers.scaling(channels), layers.activation())
        first = layers.convolution(channels)
        inner = len(first.weight)
        self.first = normalised(first, layers.scaling(inner))
        self.middle = layers.activation()
        self.last = layers.convolution(inner, channels)

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this block; its outputs overwrite slot ``x``."""
        inner = forward.convolution(self.first, x, self.before)
        forward.convolution(self.last, inner, Norm(self.middle), plus=x, into=x)
        forward.free(inner)


class PoolingBlock(Part):
    """Two convolutions; globally pooled outputs of a third convolution become a bias of the first."""

    words = "global pooling"

    def __init__(self, layers: LayerReader, channels: int, depth: int):
        """Read the block, next in a file; arguments as for :class:`ResidualBlock`."""
        self.before = norm(layers.scaling(channels), layers.activation())
        first, pool = layers.convolution(channels), layers.convolution(channels)
        inner, pooled = len(first.weight), len(pool.weight)
        self.pool = normalised(pool, layers.scaling(pooled))
        self.pool_activation = layers.activation()
        bias = layers.matrix(3 * pooled, inner)
        after = layers.scaling(inner)
        self.first = normalised(first, after)
        self.pool_bias = linear(bias * after.scale[:, None])
        self.middle = layers.activation()
        self.last = layers.convolution(inner, channels)

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this block; its outputs overwrite slot ``x``."""
        ready, before = forward.before_several(x, self.before)
        pool = forward.convolution(self.pool, ready, before, after=self.pool_activation)
        context = forward.pool(pool)
        bias = forward.linear(self.pool_bias, context)
        inner = forward.convolution(self.first, ready, before, bias)
        forward.convolution(self.last, inner, Norm(self.middle), plus=x, into=x)
        forward.free(pool, context, bias, inner, None if ready == x else ready)


class NestedBlock(Part):
    """A nested bottleneck: a stack of blocks with fewer channels between two convolutions."""

    words = "nested bottleneck"

    def __init__(self, layers: LayerReader, channels: int, depth: int):
        """Read the block, next in a file; arguments as for :class:`ResidualBlock`."""
        count = layers.stream.integer("blocks", 1, MAX_BLOCKS)
        self.before = norm(layers.scaling(channels), layers.activation())
        self.first = layers.convolution(channels)
        inner = len(self.first.weight)
        self.blocks = read_blocks(layers, count, inner, depth + 1)
        self.after = norm(layers.scaling(inner), layers.activation())
        self.last = layers.convolution(inner, channels)

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this block; its outputs overwrite slot ``x``."""
        inner = forward.convolution(self.first, x, self.before)
        for block in self.blocks:
            block.describe(forward, inner)
        forward.convolution(self.last, inner, self.after, plus=x, into=x)
        forward.free(inner)


BLOCKS: dict[str, Callable[[LayerReader, int, int], Any]] = {
    "ordinary_block": ResidualBlock,
    "gpool_block": PoolingBlock,
    "nested_bottleneck_block": NestedBlock,
    "transformer_attention_block": AttentionBlock,
    "transformer_ffn_block": FeedForwardBlock,
}


def read_blocks(layers: LayerReader, count: int, channels: int, depth: int = 1) -> list[Any]:
    """Read a stack of blocks of any kind.

    Args:
        channels: C of the trunk that the blocks read and write.
        depth: nesting depth, 1 for the network's trunk.
    """
    stream = layers.stream
    if depth > MAX_DEPTH:
        raise stream.wrong("blocks", f"{depth} stacks within each other", f"at most {MAX_DEPTH}")
    stack = []
    for _ in range(count):
        kind = stream.word("kind of block")
        if kind not in BLOCKS:
            raise stream.wrong("kind of block", repr(kind[:40]), f"one of {', '.join(BLOCKS)}")
        stream.name()
        stack.append(BLOCKS[kind](layers, channels, depth))
    return stack
