"""KataGo's network, of any version that reads the V7 inputs: a trunk of blocks and two heads."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from engine.nets.architectures.shape import Shape, dimension
from engine.nets.compute.program import Program
from engine.nets.katago.blocks import MAX_BLOCKS, write_blocks
from engine.nets.katago.heads import (
    KataGoOutput,
    Multipliers,
    PolicyHead,
    ValueHead,
    mixed,
    outputs,
    result_logits,
    value_logit,
)
from engine.nets.katago.human import HumanEncoder
from engine.nets.katago.layers import MAX_CHANNELS, Norm
from engine.nets.network import Model, RawHeads

ROOT_OPTIMISM, TREE_OPTIMISM = 0.2, 1.0
"""Shares of the optimistic policy that KataGo mixes in by default: at the root, and below it"""


@dataclass(frozen=True)
class KataGoShape(Shape):
    """The network's outlines; nothing in it depends on the board's size."""

    planes: int = dimension("input planes", 1, 256)
    globals: int = dimension("input values that are not about points", 0, 256)
    blocks: int = dimension("blocks of the trunk, those within them not counted", 1, MAX_BLOCKS)
    channels: int = dimension("channels of the trunk", 1, MAX_CHANNELS)


class Trunk(NamedTuple):
    """Everything before the heads."""

    stem: nn.Conv2d
    stem_globals: nn.Linear
    human: HumanEncoder | None
    """of networks that play as people do, whose policy is never optimistic"""
    blocks: nn.Sequential
    tip: Norm
    """normalisation and activation between the blocks and the heads"""


class KataGoNet(Model):
    """The weights of a file and the forward pass.

    The board is the whole of the planes, so nothing is masked as KataGo does with boards smaller than its buffers.
    """

    shape: KataGoShape
    prefers_float16 = True
    """bfloat16 moves win rates of some of these networks by several hundredths, float16 by a tenth of that."""

    def __init__(self, version: int, multipliers: Multipliers, trunk: Trunk, policy: PolicyHead, value: ValueHead):
        """Put the parts together; on the ``version`` of the file depends what some outputs mean."""
        stem = trunk.stem
        super().__init__(
            KataGoShape(stem.in_channels, trunk.stem_globals.in_features, len(trunk.blocks), stem.out_channels)
        )
        self.version = version
        self.multipliers = multipliers
        self.policy_optimism = 0.0 if trunk.human else TREE_OPTIMISM
        """of :meth:`forward`; has no effect where there is one policy"""
        self.stem, self.stem_globals, self.human, self.blocks, self.tip = trunk
        self.policy, self.value = policy, value

    def forward(self, planes: Tensor, globals_: Tensor) -> RawHeads:
        """All four heads for planes[B, 22, N, N] and globals_[B, 19]; the score is KataGo's lead."""
        return self._raw_heads(*self._heads(planes, globals_))

    def _raw_heads(self, policies: Tensor, results: Tensor, scores: Tensor, owners: Tensor) -> RawHeads:
        no_result = results.softmax(1)[:, 2]
        return RawHeads(
            policy_logits=mixed(policies, self.policy_optimism),
            value_logit=value_logit(results),
            score=scores[:, 2] * self.multipliers.lead * (1.0 - no_result),
            ownership_logit=owners,
        )

    def raw(self, planes: Tensor, globals_: Tensor, optimism: float = ROOT_OPTIMISM) -> KataGoOutput:
        """All that KataGo's ``kata-raw-nn`` shows, for planes and globals as for :meth:`forward`.

        Args:
            optimism: of the policy, 0 to 1.
        """
        policies, results, scores, owners = self._heads(planes, globals_)
        policy = mixed(policies, 0.0 if self.human else optimism)
        return outputs(self.version, self.multipliers, policy, results, scores, owners)

    def _heads(self, planes: Tensor, globals_: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Policies [B, K, N*N+1], results [B, 3] with impossible ones at minus infinity, scores and owners."""
        x = self.stem(planes) + self.stem_globals(globals_)[..., None, None]
        if self.human is not None:
            x = x + self.human(int(planes.shape[2]))
        x = self.tip(self.blocks(x))
        results, scores, owners = self.value(x)
        return self.policy(x), result_logits(results, globals_), scores, owners

    def write_program(self, program: Program) -> None:
        """See :meth:`engine.nets.network.Model.write_program`."""
        into = self.stem_globals.weight
        if self.human is not None:
            into = torch.cat([into, torch.eye(len(into))], dim=1)
        bias = program.product(into, self.stem_globals.bias, program.globals)
        x = program.convolution(self.stem, program.planes, bias=bias)
        write_blocks(self.blocks, program, x)
        x = program.norm(x, self.tip.in_program())
        self.policy.write(program, x)
        self.value.write(program, x)

    def globals_of_program(self, globals_: Tensor, size: int) -> Tensor:
        """The globals, and behind them what a human profile adds to the trunk."""
        if self.human is None:
            return globals_
        return torch.cat([globals_, self.human(size).flatten(1).expand(len(globals_), -1)], dim=1)

    def heads_of_program(self, outputs: Mapping[str, Tensor], planes: Tensor, globals_: Tensor) -> RawHeads:
        """See :meth:`engine.nets.network.Model.heads_of_program`."""
        policies = torch.cat([outputs["policies"].flatten(2), outputs["passing"][:, :, None]], dim=2)
        sums = outputs["sums"]
        return self._raw_heads(policies, result_logits(sums[:, :3], globals_), sums[:, 3:], outputs["owners"][:, 0])

    @property
    def words(self) -> str:
        """What it is made of, for people."""
        kinds = Counter(block.words for block in self.blocks.modules() if hasattr(block, "words"))
        counts = ", ".join(f"{count} {words}" for words, count in kinds.items())
        activation = type(self.tip.activation).__name__
        return f"{counts} blocks; trunk of {self.shape.channels} channels; {activation}"
