"""Keima's size-independent residual network: policy with pass, value, score and ownership from one trunk.

No parameter depends on the board size: convolutions are padded with zeros, a plane of ones marks the board, and the
heads use global pooling (:meth:`engine.nets.forward.Forward.pool`), so one network plays 7x7 to 19x19. There is no
batch normalisation, since each training batch has one board size, and statistics differ between sizes. Instead each
block starts as the identity (its last convolution is initialised to zero; Zhang et al., "Fixup Initialization", 2019).

With ``inner`` channels a block is a nested bottleneck: two residual blocks between 1x1 convolutions that make the trunk
narrower and wide again, so a network of the same cost is twice as deep (KataGo's b18c384nbt and later networks).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.nets.forward import Forward, library_of
from engine.nets.layers import AS_RELU, RELU, Part, Weights
from engine.nets.network import PlainNetwork, RawHeads, Shape, dimension

SCORE_SCALE = 20.0
"""Points per unit of the raw score output, which keeps that output in a trainable range"""


@dataclass(frozen=True)
class ResNetShape(Shape):
    """The shape of a :class:`ResNet`."""

    planes: int = dimension("input planes", 1, 256)
    globals: int = dimension("global input values", 0, 256)
    blocks: int = dimension("residual blocks", 1, 256, 6)
    channels: int = dimension("channels of the trunk", 1, 2048, 64)
    head_channels: int = dimension("channels of each head", 1, 1024, 32)
    value_hidden: int = dimension("units of the value head's hidden layer", 1, 4096, 64)
    pool_every: int = dimension("interval of blocks with a global pooling branch", 1, 256, 3)
    inner: int = dimension("inner channels of nested bottleneck blocks; 0 = plain residual blocks", 0, 2048, 0)
    reply: int = dimension("1 = an auxiliary head for the opponent's reply, used in training alone", 0, 1, 0)


class Block(Part):
    """Pre-activation residual block; with pooling, a third convolution is pooled to a bias of the first convolution."""

    def __init__(self, name: str, channels: int, pool: int, weights: Weights):
        """Make the layers; ``pool`` is the number of pooled channels, 0 = no pooling."""
        self.first = weights.convolution(f"{name}.first", channels, channels, 3, "relu")
        self.second = weights.convolution(f"{name}.second", channels, channels, 3, "zeros", "zeros")
        self.pool = weights.convolution(f"{name}.pool", channels, pool, 3) if pool else None
        self.pool_bias = weights.linear(f"{name}.pool_bias", 3 * pool, channels) if pool else None

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this block; its outputs overwrite slot ``x``."""
        bias, (ready, before) = None, forward.before_several(x, AS_RELU)
        if self.pool is not None and self.pool_bias is not None:
            pool = forward.convolution(self.pool, ready, before, after=RELU)
            context = forward.pool(pool)
            bias = forward.linear(self.pool_bias, context)
            forward.free(pool, context)
        inner = forward.convolution(self.first, ready, before, bias)
        forward.convolution(self.second, inner, AS_RELU, plus=x, into=x)
        forward.free(bias, inner)


class Bottleneck(Part):
    """Nested bottleneck: two residual blocks of fewer channels between 1x1 convolutions; the first block may pool."""

    def __init__(self, name: str, channels: int, inner: int, pool: int, weights: Weights):
        self.narrow = weights.convolution(f"{name}.narrow", channels, inner, 1, "relu")
        self.blocks = [Block(f"{name}.blocks.{i}", inner, pool if i == 0 else 0, weights) for i in range(2)]
        self.widen = weights.convolution(f"{name}.widen", inner, channels, 1, "zeros", "zeros")

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this block; its outputs overwrite slot ``x``."""
        inner = forward.convolution(self.narrow, x, AS_RELU)
        for block in self.blocks:
            block.describe(forward, inner)
        forward.convolution(self.widen, inner, AS_RELU, plus=x, into=x)
        forward.free(inner)


class ResNet(PlainNetwork):
    """Keima's residual network."""

    shape: ResNetShape

    def __init__(self, shape: ResNetShape, weights: Weights):
        self.shape = shape
        channels, head = shape.channels, shape.head_channels
        # Weights of global values are drawn as zeros: values that training never varies, such as rules that no game was
        # played under, then have no effect.
        self.stem = weights.convolution("stem", shape.planes, channels, 3)
        self.stem_globals = weights.linear("stem_globals", shape.globals, channels, "zeros")
        pools = [head if (i + 1) % shape.pool_every == 0 else 0 for i in range(shape.blocks)]
        self.blocks = [
            Bottleneck(f"blocks.{i}", channels, shape.inner, pool, weights)
            if shape.inner
            else Block(f"blocks.{i}", channels, pool, weights)
            for i, pool in enumerate(pools)
        ]
        self.policy_pool = weights.convolution("policy_pool", channels, head, 1)
        self.policy_local = weights.convolution("policy_local", channels, head, 1)
        self.policy_bias = weights.linear("policy_bias", 3 * head, head)
        self.policy_out = weights.convolution("policy_out", head, 1, 1)
        self.pass_hidden = weights.linear("pass_hidden", 3 * head, head)
        self.pass_out = weights.linear("pass_out", head, 1)
        self.reply_out = weights.convolution("reply_out", head, 1, 1) if shape.reply else None
        self.reply_pass = weights.linear("reply_pass", head, 1) if shape.reply else None
        self.value_local = weights.convolution("value_local", channels, head, 1)
        inputs = 3 * head + shape.globals
        self.value_hidden = weights.linear("value_hidden", inputs, shape.value_hidden, blank=shape.globals)
        self.value_out = weights.linear("value_out", shape.value_hidden, 2)
        self.ownership_out = weights.convolution("ownership_out", head, 1, 1)

    def _global_layers(self) -> Iterator[tuple[Any, Any]]:
        """Of each layer that reads global values, bias[K] and the weights of the global values, [K, globals]."""
        for layer in (self.stem_globals, self.value_hidden):
            yield layer.bias, layer.weight[:, layer.weight.shape[1] - self.shape.globals :]

    def ignores_globals(self, numbers: Collection[int]) -> bool:
        """Whether outputs do not depend on these global values, given by index."""
        return not any(weight[:, list(numbers)].any() for _, weight in self._global_layers())

    def fold_globals(self, values: Mapping[int, float]) -> None:
        """Fold fixed global values, by index, into the biases, so that outputs do not depend on these inputs.

        A torch module must be called without gradients.
        """
        for bias, weight in self._global_layers():
            for number, value in values.items():
                bias += value * weight[:, number]
                weight[:, number] = 0.0

    def describe(self, forward: Forward) -> None:
        """See :meth:`engine.nets.network.PlainNetwork.describe`; in training also ``reply`` and ``reply_pass``."""
        x = forward.convolution(self.stem, forward.planes, bias=forward.linear(self.stem_globals, forward.globals))
        for block in self.blocks:
            block.describe(forward, x)
        x = forward.norm(x, AS_RELU)
        context = forward.pool(forward.convolution(self.policy_pool, x, after=RELU))
        bias = forward.linear(self.policy_bias, context)
        local = forward.convolution(self.policy_local, x, bias=bias, after=RELU)
        forward.output("policy", forward.convolution(self.policy_out, local))
        passing = forward.linear(self.pass_hidden, context, RELU)
        forward.output("policy_pass", forward.linear(self.pass_out, passing))
        if forward.training and self.reply_out is not None and self.reply_pass is not None:
            forward.output("reply", forward.convolution(self.reply_out, local))
            forward.output("reply_pass", forward.linear(self.reply_pass, passing))
        local = forward.convolution(self.value_local, x, after=RELU)
        weight, split = self.value_hidden.weight, 3 * self.shape.head_channels
        of_globals = forward.product(weight[:, split:], None, forward.globals)
        hidden = forward.product(weight[:, :split], self.value_hidden.bias, forward.pool(local), of_globals, RELU)
        forward.output("value", forward.linear(self.value_out, hidden))
        forward.output("ownership", forward.convolution(self.ownership_out, local))

    def heads_of(self, outputs: Mapping[str, Any], planes: Any, globals_: Any) -> RawHeads:
        """See :meth:`engine.nets.network.PlainNetwork.heads_of`."""
        library, value = library_of(planes), outputs["value"]
        policy, reply = (
            library.concat([outputs[name].reshape(value.shape[0], -1), outputs[f"{name}_pass"]], axis=1)
            if name in outputs
            else None
            for name in ("policy", "reply")
        )
        return RawHeads(policy, value[:, 0], value[:, 1] * SCORE_SCALE, outputs["ownership"][:, 0], reply)
