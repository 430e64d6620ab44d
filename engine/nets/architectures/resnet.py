"""Keima's size-independent residual network: policy with pass, value, score and ownership from one trunk.

No parameter depends on the board size: convolutions are padded with zeros, a plane of ones marks the board, and the
heads use global pooling (:mod:`engine.nets.compute.program`), so one network plays 7x7 to 19x19. There is no batch
normalisation, since each training batch has one board size, and statistics differ between sizes. Instead each block
starts as the identity (its last convolution is initialised to zero; Zhang et al., "Fixup Initialization", 2019).

With ``inner`` channels a block is a nested bottleneck: two residual blocks between 1x1 convolutions that make the trunk
narrower and wide again, so a network of the same cost is twice as deep (KataGo's b18c384nbt and later networks).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.nets.compute.program import RELU, Program, Slot, pooled
from engine.nets.network import Model, RawHeads, Shape, dimension, draw_normal

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


class Block(nn.Module):
    """Pre-activation residual block; with pooling, a third convolution is pooled to a bias of the first convolution."""

    def __init__(self, channels: int, pool_channels: int = 0):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.pool = nn.Conv2d(channels, pool_channels, 3, padding=1) if pool_channels else None
        self.pool_bias = nn.Linear(3 * pool_channels, channels) if pool_channels else None
        draw_normal(self.first.weight)
        for values in self.second.parameters():
            nn.init.zeros_(values)

    def forward(self, x: Tensor) -> Tensor:
        """The trunk after this block, [B, C, N, N] like x."""
        ready = F.relu(x)
        inner = self.first(ready)
        if self.pool is not None and self.pool_bias is not None:
            inner = inner + self.pool_bias(pooled(F.relu(self.pool(ready))))[..., None, None]
        return x + self.second(F.relu(inner))

    def write(self, program: Program, x: Slot) -> None:
        """Write this block to a program; its outputs overwrite slot ``x``."""
        bias = None
        if self.pool is not None and self.pool_bias is not None:
            pool = program.convolution(self.pool, x, RELU, after=RELU.activation)
            context = program.pool(pool)
            bias = program.linear(self.pool_bias, context)
            program.free(pool, context)
        inner = program.convolution(self.first, x, RELU, bias)
        program.convolution(self.second, inner, RELU, plus=x, into=x)
        program.free(bias, inner)


class Bottleneck(nn.Module):
    """Nested bottleneck: two residual blocks of fewer channels between 1x1 convolutions; the first block may pool."""

    def __init__(self, channels: int, inner: int, pool_channels: int = 0):
        super().__init__()
        self.narrow = nn.Conv2d(channels, inner, 1)
        self.blocks = nn.Sequential(Block(inner, pool_channels), Block(inner))
        self.widen = nn.Conv2d(inner, channels, 1)
        draw_normal(self.narrow.weight)
        for values in self.widen.parameters():
            nn.init.zeros_(values)

    def forward(self, x: Tensor) -> Tensor:
        """The trunk after this block, [B, C, N, N] like x."""
        return x + self.widen(F.relu(self.blocks(self.narrow(F.relu(x)))))

    def write(self, program: Program, x: Slot) -> None:
        """Write this block to a program; its outputs overwrite slot ``x``."""
        inner = program.convolution(self.narrow, x, RELU)
        for block in self.blocks:
            cast(Block, block).write(program, inner)
        program.convolution(self.widen, inner, RELU, plus=x, into=x)
        program.free(inner)


class ResNet(Model):
    """Keima's residual network: the parameters and the forward pass."""

    shape: ResNetShape

    def __init__(self, shape: ResNetShape):
        super().__init__(shape)
        channels, head = shape.channels, shape.head_channels
        self.stem = nn.Conv2d(shape.planes, channels, 3, padding=1)
        self.stem_globals = nn.Linear(shape.globals, channels)
        pools = [head if (i + 1) % shape.pool_every == 0 else 0 for i in range(shape.blocks)]
        self.blocks = nn.ModuleList(
            Bottleneck(channels, shape.inner, pool) if shape.inner else Block(channels, pool) for pool in pools
        )
        self.policy_pool = nn.Conv2d(channels, head, 1)
        self.policy_local = nn.Conv2d(channels, head, 1)
        self.policy_bias = nn.Linear(3 * head, head)
        self.policy_out = nn.Conv2d(head, 1, 1)
        self.pass_hidden = nn.Linear(3 * head, head)
        self.pass_out = nn.Linear(head, 1)
        self.reply_out = nn.Conv2d(head, 1, 1) if shape.reply else None
        self.reply_pass = nn.Linear(head, 1) if shape.reply else None
        self.value_local = nn.Conv2d(channels, head, 1)
        self.value_hidden = nn.Linear(3 * head + shape.globals, shape.value_hidden)
        self.value_out = nn.Linear(shape.value_hidden, 2)
        self.ownership_out = nn.Conv2d(head, 1, 1)
        # Global values that training never varies, such as rules that no game was played under, then have no effect.
        with torch.no_grad():
            for _, weight in self._global_layers():
                weight.zero_()

    def _global_layers(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Of each layer that reads global values, bias[K] and the weights of the global values, [K, globals]."""
        for layer in (self.stem_globals, self.value_hidden):
            yield layer.bias, layer.weight[:, layer.in_features - self.shape.globals :]

    def ignores_globals(self, numbers: Collection[int]) -> bool:
        """Whether outputs do not depend on these global values, given by index."""
        return not any(weight[:, list(numbers)].any() for _, weight in self._global_layers())

    @torch.no_grad()
    def fold_globals(self, values: Mapping[int, float]) -> None:
        """Fold fixed global values, by index, into the biases, so that outputs do not depend on these inputs."""
        for bias, weight in self._global_layers():
            for number, value in values.items():
                bias += value * weight[:, number]
                weight[:, number] = 0.0

    def outputs(self, planes: Tensor, globals_: Tensor) -> Mapping[str, Tensor]:
        """See :meth:`engine.nets.network.Model.outputs`; in training mode also ``reply`` and ``reply_pass``."""
        x = self.stem(planes) + self.stem_globals(globals_)[..., None, None]
        for block in self.blocks:
            x = block(x)
        x = F.relu(x)
        context = pooled(F.relu(self.policy_pool(x)))
        local = F.relu(self.policy_local(x) + self.policy_bias(context)[..., None, None])
        passing = F.relu(self.pass_hidden(context))
        found = {"policy": self.policy_out(local), "policy_pass": self.pass_out(passing)}
        if self.training and self.reply_out is not None and self.reply_pass is not None:
            found |= {"reply": self.reply_out(local), "reply_pass": self.reply_pass(passing)}
        local = F.relu(self.value_local(x))
        hidden = F.relu(self.value_hidden(torch.cat([pooled(local), globals_], dim=1)))
        return found | {"value": self.value_out(hidden), "ownership": self.ownership_out(local)}

    def write_program(self, program: Program) -> None:
        """See :meth:`engine.nets.network.Model.write_program`."""
        relu = RELU.activation
        x = program.convolution(self.stem, program.planes, bias=program.linear(self.stem_globals, program.globals))
        for block in self.blocks:
            cast(Block | Bottleneck, block).write(program, x)
        x = program.norm(x, RELU)
        context = program.pool(program.convolution(self.policy_pool, x, after=relu))
        bias = program.linear(self.policy_bias, context)
        local = program.convolution(self.policy_local, x, bias=bias, after=relu)
        program.output("policy", program.convolution(self.policy_out, local))
        passing = program.linear(self.pass_hidden, context, relu)
        program.output("policy_pass", program.linear(self.pass_out, passing))
        local = program.convolution(self.value_local, x, after=relu)
        weight, split = self.value_hidden.weight, self.value_hidden.in_features - self.shape.globals
        of_globals = program.product(weight[:, split:], None, program.globals)
        hidden = program.product(weight[:, :split], self.value_hidden.bias, program.pool(local), of_globals, relu)
        program.output("value", program.linear(self.value_out, hidden))
        program.output("ownership", program.convolution(self.ownership_out, local))

    def heads_of(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """See :meth:`engine.nets.network.Model.heads_of`."""
        policy, reply = (
            torch.cat([outputs[name].flatten(1), outputs[f"{name}_pass"]], dim=1) if name in outputs else None
            for name in ("policy", "reply")
        )
        value = outputs["value"]
        return RawHeads(policy, value[:, 0], value[:, 1] * SCORE_SCALE, outputs["ownership"][:, 0], reply)
