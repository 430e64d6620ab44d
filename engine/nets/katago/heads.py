"""KataGo's heads: logits of moves, results, scores and their uncertainty, and owners of points.

What a head computes becomes points and probabilities in :func:`outputs`, by the multipliers of the file.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.nets.compute.pooling import pooled, pooled_by_size
from engine.nets.compute.program import Program, Slot
from engine.nets.katago.layers import LayerReader, convolution, linear

ERROR_FROM, ERROR_OF_SQUARE_FROM, ERROR_OF_SQUARED_FROM = 9, 10, 14
"""Model versions from which short-term errors are there, come as the square, as the square of a softplus"""
WITH_Q_VALUES, COUNTED_POLICY = 16, 17
"""The version whose policy has two channels for Q values; from which on files have the number of channels"""
TWO_POLICIES_FROM, TWO_LAYER_PASS_FROM = 12, 15
POSITIONAL_OR_SITUATIONAL_KO, TERRITORY_SCORING = 6, 9
"""Global inputs that are 1 under these rules"""
LOG_2 = math.log(2.0)


class Multipliers(NamedTuple):
    """From units of the network to points, moves and their errors; the defaults are those of older files."""

    td_score: float = 20.0
    score_mean: float = 20.0
    score_deviation: float = 20.0
    lead: float = 20.0
    variance_time: float = 40.0
    value_error: float = 0.25
    score_error: float = 30.0


class KataGoOutput(NamedTuple):
    """All outputs of KataGo for B positions, float32, from the view of the side to move."""

    policy_logits: Tensor
    """[B, N*N+1], pass last; the two policies mixed, not masked for legality"""
    win: Tensor
    """[B]: probability, as ``loss`` and ``no_result`` (a game without end); together 1"""
    loss: Tensor
    no_result: Tensor
    lead: Tensor
    """[B]: points that would make the game even"""
    score: Tensor
    """[B]: points at the end of a game of the network with itself, on average; a game without result counts 0"""
    score_square: Tensor
    """[B]: of its square"""
    variance_time: Tensor
    """[B]: how long the game is open, in moves; -1, as the two that follow, before version 9"""
    value_error: Tensor
    """[B]: how far win minus loss is off from what a few moves will show"""
    score_error: Tensor
    """[B]: the same of the score"""
    ownership: Tensor
    """[B, N, N]: 1 = surely the mover's, -1 = surely the opponent's"""


class PolicyHead(nn.Module):
    """Logits of every policy the network has."""

    def __init__(self, layers: LayerReader, trunk: int):
        """Read the head that comes next in a file; ``trunk`` is the number of the trunk's channels."""
        super().__init__()
        layers.stream.name()
        channels = _policy_channels(layers)
        local, pool = layers.convolution(trunk), layers.convolution(trunk)
        self.pool = convolution(pool, layers.scaling(pool.outputs))
        self.pool_activation = layers.activation()
        bias = layers.matrix(3 * pool.outputs, local.outputs)
        after = layers.scaling(local.outputs)
        self.local = convolution(local, after)
        self.bias = linear(bias * after.scale[:, None])
        self.activation = layers.activation()
        self.out = convolution(layers.convolution(local.outputs, channels))
        if layers.version < TWO_LAYER_PASS_FROM:
            self.passing: nn.Module = linear(layers.matrix(3 * pool.outputs, channels))
        else:
            into = layers.matrix(3 * pool.outputs)
            hidden, activation = linear(into, layers.vector(len(into))), layers.activation()
            self.passing = nn.Sequential(hidden, activation, linear(layers.matrix(len(into), channels)))

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, K, N*N+1] of the trunk's x[B, C, N, N]: K is 1 for a policy, 2 where an optimistic one stands
        beside it, 4 where Q values do as well."""
        context = pooled(self.pool_activation(self.pool(x)))
        local = self.activation(self.local(x) + self.bias(context)[..., None, None])
        return torch.cat([self.out(local).flatten(2), self.passing(context)[:, :, None]], dim=2)

    def write(self, program: Program, x: Slot) -> None:
        """Write this head, with the outputs ``policies`` and ``passing``."""
        context = program.pool(program.convolution(self.pool, x, after=self.pool_activation))
        bias = program.linear(self.bias, context)
        local = program.convolution(self.local, x, bias=bias, after=self.activation)
        program.output("policies", program.convolution(self.out, local))
        program.output("passing", _write_matrices(program, self.passing, context))


def _policy_channels(layers: LayerReader) -> int:
    """Channels of the policy head, as the file or its version has them."""
    if layers.version < COUNTED_POLICY:
        return 4 if layers.version == WITH_Q_VALUES else 2 if layers.version >= TWO_POLICIES_FROM else 1
    channels = layers.stream.integer("policy channels", 2, 4)
    if channels == 3:
        raise layers.stream.wrong("policy channels", channels, "2 or 4")
    layers.zeros("policy", 3)
    return channels


def _write_matrices(program: Program, layers: nn.Module, x: Slot) -> Slot:
    """Write a matrix, or two with an activation between them."""
    if isinstance(layers, nn.Linear):
        return program.linear(layers, x)
    hidden, activation, out = cast(nn.Sequential, layers)
    return program.linear(cast(nn.Linear, out), program.linear(cast(nn.Linear, hidden), x, activation))


class Float32(nn.Sequential):
    """Layers that keep their 32 bits whatever the rest of a network is in."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """What ``to``, ``half`` and the like do to weights: these may move, no more."""
        return super()._apply(lambda values: values.to(fn(values).device), recurse)


class ValueHead(nn.Module):
    """Everything else; what is summed up over the board and its channels, in float32."""

    def __init__(self, layers: LayerReader, trunk: int):
        """Read the head that comes next in a file, as :class:`PolicyHead` does."""
        super().__init__()
        layers.stream.name()
        if layers.version >= COUNTED_POLICY:
            layers.zeros("value", 3)
        local = layers.convolution(trunk)
        self.local = convolution(local, layers.scaling(local.outputs))
        self.activation = layers.activation()
        into = layers.matrix(3 * local.outputs)
        hidden, activation = linear(into, layers.vector(len(into))), layers.activation()
        counts = 3, 6 if layers.version >= ERROR_FROM else 4
        weights = [(layers.matrix(len(into), count), layers.vector(count)) for count in counts]
        out = linear(*(np.concatenate(parts) for parts in zip(*weights, strict=True)))
        self.sums = Float32(hidden, activation, out)
        self.ownership = convolution(layers.convolution(local.outputs, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of the trunk's x[B, C, N, N]: [B, 3] results, [B, 4 or 6] scores, [B, N, N] owners, all before scaling."""
        local = self.activation(self.local(x))
        out = self.sums(pooled_by_size(local))
        return out[:, :3], out[:, 3:], self.ownership(local)[:, 0]

    def write(self, program: Program, x: Slot) -> None:
        """Write this head, with the outputs ``sums`` (results and scores) and ``owners``."""
        local = program.convolution(self.local, x, after=self.activation)
        program.output("sums", _write_matrices(program, self.sums, program.pool(local, by_size=True)))
        program.output("owners", program.convolution(self.ownership, local))


def mixed(policies: Tensor, optimism: float) -> Tensor:
    """[B, N*N+1] logits between the policy (optimism 0) and the optimistic one (1), if policies[B, K, N*N+1] has it."""
    if policies.shape[1] == 1:
        return policies[:, 0]
    return torch.lerp(policies[:, 0], policies[:, 1], optimism)


def result_logits(results: Tensor, globals_: Tensor) -> Tensor:
    """Logits [B, 3] of win, loss, no result for results[B, 3] and globals_[B, 19].

    The last is minus infinity under rules that let no position repeat.
    """
    always_ends = (globals_[:, POSITIONAL_OR_SITUATIONAL_KO] != 0) & (globals_[:, TERRITORY_SCORING] == 0)
    no_result = results[:, 2].masked_fill(always_ends, -torch.inf)
    return torch.stack([results[:, 0], results[:, 1], no_result], dim=1)


def value_logit(logits: Tensor) -> Tensor:
    """[B]: its tanh is win minus loss of logits[B, 3].

    With p the softmax, artanh(p0 - p1) = (log(2 p0 + p2) - log(2 p1 + p2)) / 2.
    """
    win, loss, no_result = logits.unbind(1)
    gap = no_result - LOG_2
    return (win - loss + F.softplus(gap - win) - F.softplus(gap - loss)) / 2.0


def outputs(
    version: int, multipliers: Multipliers, policy: Tensor, results: Tensor, scores: Tensor, owners: Tensor
) -> KataGoOutput:
    """Outputs in the units that people use, of a file of some version.

    Args:
        policy: [B, N*N+1] logits; ``results`` [B, 3] likewise, what is impossible at minus infinity.
        scores, owners: as :meth:`ValueHead.forward` returns them.
    """
    win, loss, no_result = results.float().softmax(1).unbind(1)
    scores = scores.float()
    has_result = 1.0 - no_result
    score = scores[:, 0] * multipliers.score_mean
    deviation = F.softplus(scores[:, 1]) * multipliers.score_deviation
    errors = torch.full_like(scores[:, :3], -1.0)
    if version >= ERROR_FROM:
        time = F.softplus(scores[:, 3:4]) * multipliers.variance_time
        errors = torch.cat([time, _short_term(version, multipliers, scores[:, 4:6])], dim=1)
    return KataGoOutput(
        policy_logits=policy.float(),
        win=win,
        loss=loss,
        no_result=no_result,
        lead=scores[:, 2] * multipliers.lead * has_result,
        score=score * has_result,
        score_square=(score.square() + deviation.square()) * has_result,
        variance_time=errors[:, 0],
        value_error=errors[:, 1],
        score_error=errors[:, 2],
        ownership=owners.float().tanh(),
    )


def _short_term(version: int, multipliers: Multipliers, raw: Tensor) -> Tensor:
    """[B, 2]: errors of value and score."""
    factor = raw.new_tensor([multipliers.value_error, multipliers.score_error])
    if version >= ERROR_OF_SQUARED_FROM:
        return F.softplus(raw / 2.0) * factor.sqrt()
    if version >= ERROR_OF_SQUARE_FROM:
        return (F.softplus(raw) * factor).sqrt()
    return F.softplus(raw) * raw.new_tensor([1.0, 10.0])
