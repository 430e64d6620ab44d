"""KataGo's network of any version with V7 inputs: a trunk of blocks and two heads, and its file.

Files are ``.bin.gz`` and ``.txt.gz``, compressed or not, of model versions 8 to 17 (:func:`load_katago`).
:func:`outputs` converts raw outputs to points and probabilities with the multipliers of the file.

Human SL networks have additional global inputs: players, date, time control (:mod:`engine.features.profiles`).

Sources: the public description of the format, and ``cpp/neuralnet/desc.cpp`` of KataGo 1.18.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from engine.nets.files.header import KATAGO_OPTIONS_FROM as OPTIONS_FROM
from engine.nets.files.header import PROFILE_VALUES, katago_encoder, opened
from engine.nets.forward import Forward, library_of, probabilities, softplus
from engine.nets.katago.blocks import MAX_BLOCKS, RmsNorm, read_blocks
from engine.nets.katago.layers import MAX_CHANNELS, LayerReader, Stream, linear, norm, normalised
from engine.nets.layers import IDENTITY, MISH, RELU, SILU, Part, named_arrays
from engine.nets.network import HEADS, NetworkSpec, PlainNetwork, RawHeads, Shape, dimension

PLANES, GLOBALS = 22, 19
FIRST_VERSION, LAST_VERSION = 8, 17
MULTIPLIERS_FROM = 13
MAX_MULTIPLIER = 1e6
SIZES = (2, 19)
NAME = re.compile(r"[!-~]{1,96}")


class HumanEncoder(Part):
    """Encodes a human profile, the last global values, as a vector that is added to the trunk's first layer."""

    def __init__(self, layers: LayerReader, trunk: int):
        """Read the encoder, next in a file; ``trunk`` is the trunk's number of channels."""
        layers.stream.name()
        layers.channels("values", PROFILE_VALUES)
        weight = layers.matrix(PROFILE_VALUES)
        # The first global values are those of all networks.
        self.first = linear(np.pad(weight, ((0, 0), (GLOBALS, 0))), layers.vector(len(weight)))
        self.first_activation = layers.activation()
        weight = layers.matrix(len(weight))
        self.second = linear(weight, layers.vector(len(weight)))
        self.second_activation = layers.activation()
        self.last = linear(layers.matrix(len(weight), trunk))

    def describe(self, forward: Forward, plus: Any) -> Any:
        """Describe the encoder; returns the slot of its vector plus another one."""
        hidden = forward.linear(self.first, forward.globals, self.first_activation)
        hidden = forward.linear(self.second, hidden, self.second_activation)
        return forward.product(self.last.weight, None, hidden, plus)


ERROR_FROM, ERROR_OF_SQUARE_FROM, ERROR_OF_SQUARED_FROM = 9, 10, 14
"""First model versions that output short-term errors as a softplus; their squares as a softplus; their squares as the
square of a softplus"""
WITH_Q_VALUES, COUNTED_POLICY = 16, 17
"""The version with two policy channels for Q values; the first version whose files count the policy channels"""
TWO_POLICIES_FROM, TWO_LAYER_PASS_FROM = 12, 15
POSITIONAL_OR_SITUATIONAL_KO, TERRITORY_SCORING = 6, 9
"""Indices of the global inputs that are 1 under these rules"""
LOG_2 = math.log(2.0)


class Multipliers(NamedTuple):
    """Factors that convert raw outputs to points, moves and errors; defaults are for files that state none."""

    td_score: float = 20.0
    score_mean: float = 20.0
    score_deviation: float = 20.0
    lead: float = 20.0
    variance_time: float = 40.0
    value_error: float = 0.25
    score_error: float = 30.0


A = TypeVar("A")
V = TypeVar("V")


class KataGoOutput(NamedTuple, Generic[A, V]):
    """All outputs of KataGo, float32, from the view of the side to move, of B positions or, without axis B, of one."""

    policy: A
    """[B, N*N+1]: logits, pass last; policy and optimistic policy mixed; not masked for legality"""
    win: V
    """[B]: probability; ``win``, ``loss`` and ``no_result`` (an endless game) add up to 1"""
    loss: V
    no_result: V
    lead: V
    """[B]: lead in points, komi counted; the change of komi that would make the game even"""
    score: V
    """[B]: expected score in self-play, in points; a game without result counts 0"""
    score_square: V
    """[B]: expected square of the score in self-play"""
    variance_time: V
    """[B]: time until the result is clear, in moves; -1 before version 9, like ``value_error`` and ``score_error``"""
    value_error: V
    """[B]: short-term error of ``win`` minus ``loss``: expected distance from its value some moves later"""
    score_error: V
    """[B]: short-term error of the score, in points"""
    ownership: A
    """[B, N, N]: 1 = certainly the side to move's, -1 = certainly the opponent's"""


class PolicyHead(Part):
    """The policy head: logits of all policies of the network."""

    def __init__(self, layers: LayerReader, trunk: int):
        """Read the head, next in a file; ``trunk`` is the trunk's number of channels."""
        layers.stream.name()
        channels = _policy_channels(layers)
        local, pool = layers.convolution(trunk), layers.convolution(trunk)
        inner, pooled = len(local.weight), len(pool.weight)
        self.pool = normalised(pool, layers.scaling(pooled))
        self.pool_activation = layers.activation()
        bias = layers.matrix(3 * pooled, inner)
        after = layers.scaling(inner)
        self.local = normalised(local, after)
        self.bias = linear(bias * after.scale[:, None])
        self.activation = layers.activation()
        self.out = layers.convolution(inner, channels)
        if layers.version < TWO_LAYER_PASS_FROM:
            self.passing = [linear(layers.matrix(3 * pooled, channels))]
        else:
            into = layers.matrix(3 * pooled)
            self.passing = [linear(into, layers.vector(len(into)))]
            self.pass_activation = layers.activation()
            self.passing.append(linear(layers.matrix(len(into), channels)))

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this head, with the outputs ``policies`` [B, K, N, N] and ``passing`` [B, K]. K is 1 for one policy,
        2 with an optimistic policy, 4 with Q values too."""
        context = forward.pool(forward.convolution(self.pool, x, after=self.pool_activation))
        bias = forward.linear(self.bias, context)
        local = forward.convolution(self.local, x, bias=bias, after=self.activation)
        forward.output("policies", forward.convolution(self.out, local))
        if len(self.passing) > 1:
            context = forward.linear(self.passing[0], context, self.pass_activation)
        forward.output("passing", forward.linear(self.passing[-1], context))


def _policy_channels(layers: LayerReader) -> int:
    """Number of policy channels, as stated in the file or known from its version."""
    if layers.version < COUNTED_POLICY:
        return 4 if layers.version == WITH_Q_VALUES else 2 if layers.version >= TWO_POLICIES_FROM else 1
    channels = layers.stream.integer("policy channels", 2, 4)
    if channels == 3:
        raise layers.stream.wrong("policy channels", channels, "2 or 4")
    layers.zeros("policy", 3)
    return channels


class ValueHead(Part):
    """The value head: results, scores, errors and ownership; layers after pooling are in float32."""

    def __init__(self, layers: LayerReader, trunk: int):
        """Read the head, next in a file; ``trunk`` is the trunk's number of channels."""
        layers.stream.name()
        if layers.version >= COUNTED_POLICY:
            layers.zeros("value", 3)
        local = layers.convolution(trunk)
        inner = len(local.weight)
        self.local = normalised(local, layers.scaling(inner))
        self.activation = layers.activation()
        into = layers.matrix(3 * inner)
        self.hidden = linear(into, layers.vector(len(into)), is_float32=True)
        self.hidden_activation = layers.activation()
        counts = 3, 6 if layers.version >= ERROR_FROM else 4
        weights = [(layers.matrix(len(into), count), layers.vector(count)) for count in counts]
        weight, bias = (np.concatenate(parts) for parts in zip(*weights, strict=True))
        self.sums = linear(weight, bias, is_float32=True)
        self.ownership = layers.convolution(inner, 1)

    def describe(self, forward: Forward, x: Any) -> None:
        """Describe this head, with the outputs ``sums`` [B, 3 + 4 or 6], results and scores, and ``owners``
        [B, 1, N, N]."""
        local = forward.convolution(self.local, x, after=self.activation)
        hidden = forward.linear(self.hidden, forward.pool(local, by_size=True), self.hidden_activation)
        forward.output("sums", forward.linear(self.sums, hidden))
        forward.output("owners", forward.convolution(self.ownership, local))


def _parts(outputs: Mapping[str, Any], globals_: Any) -> tuple[Any, Any, Any, Any]:
    """Policies [B, K, N*N+1], results [B, 3] with impossible ones at minus infinity, scores [B, 4 or 6] and owners
    [B, N, N], from the outputs of the heads."""
    points, passing, sums = outputs["policies"], outputs["passing"], outputs["sums"]
    points = points.reshape(*points.shape[:2], -1)
    policies = library_of(points).concat([points, passing[:, :, None]], axis=2)
    return policies, result_logits(sums[:, :3], globals_), sums[:, 3:], outputs["owners"][:, 0]


def mixed(policies: Any, optimism: float) -> Any:
    """Logits [B, N*N+1] mixed from the policy (optimism 0) and the optimistic policy (1) of policies[B, K, N*N+1]; the
    policy alone if K is 1."""
    if policies.shape[1] == 1:
        return policies[:, 0]
    return policies[:, 0] + optimism * (policies[:, 1] - policies[:, 0])


def result_logits(results: Any, globals_: Any) -> Any:
    """Logits [B, 3] of win, loss, no result for results[B, 3] and globals_[B, 19].

    No result is minus infinity under superko with area scoring, where every game ends.
    """
    library = library_of(results)
    always_ends = (globals_[:, POSITIONAL_OR_SITUATIONAL_KO] != 0) & (globals_[:, TERRITORY_SCORING] == 0)
    no_result = library.where(always_ends, -math.inf, results[:, 2])
    return library.stack([results[:, 0], results[:, 1], no_result], axis=1)


def value_logit(logits: Any) -> Any:
    """[B]: numbers whose tanh is the probability of a win minus that of a loss, for logits[B, 3].

    With p the softmax, artanh(p0 - p1) = (log(2 p0 + p2) - log(2 p1 + p2)) / 2.
    """
    win, loss, gap = logits[:, 0], logits[:, 1], logits[:, 2] - LOG_2
    return (win - loss + softplus(gap - win) - softplus(gap - loss)) / 2.0


def outputs(
    version: int, multipliers: Multipliers, policy: Any, results: Any, scores: Any, owners: Any
) -> KataGoOutput[Any, Any]:
    """Outputs in points and probabilities, from raw outputs of a model version.

    Args:
        policy: [B, N*N+1] logits; ``results`` [B, 3] logits, minus infinity for impossible results.
        scores, owners: [B, 4 or 6] and [B, N, N], raw.
    """
    found, library = probabilities(results), library_of(results)
    has_result = 1.0 - found[:, 2]
    score = scores[:, 0] * multipliers.score_mean
    deviation = softplus(scores[:, 1]) * multipliers.score_deviation
    errors = [library.full_like(score, -1.0)] * 3
    if version >= ERROR_FROM:
        errors = [softplus(scores[:, 3]) * multipliers.variance_time, *_short_term(version, multipliers, scores)]
    return KataGoOutput(
        policy=policy,
        win=found[:, 0],
        loss=found[:, 1],
        no_result=found[:, 2],
        lead=scores[:, 2] * multipliers.lead * has_result,
        score=score * has_result,
        score_square=(score * score + deviation * deviation) * has_result,
        variance_time=errors[0],
        value_error=errors[1],
        score_error=errors[2],
        ownership=library.tanh(owners),
    )


def _short_term(version: int, multipliers: Multipliers, scores: Any) -> Iterator[Any]:
    """Short-term errors of value and score, [B] each."""
    factors = multipliers.value_error, multipliers.score_error
    for raw, factor, early in zip((scores[:, 4], scores[:, 5]), factors, (1.0, 10.0), strict=True):
        if version >= ERROR_OF_SQUARED_FROM:
            yield softplus(raw / 2.0) * math.sqrt(factor)
        elif version >= ERROR_OF_SQUARE_FROM:
            yield (softplus(raw) * factor) ** 0.5
        else:
            yield softplus(raw) * early


ROOT_OPTIMISM, TREE_OPTIMISM = 0.2, 1.0
"""KataGo's default weights of the optimistic policy, at the root and below it"""


@dataclass(frozen=True)
class KataGoShape(Shape):
    """The network's main dimensions; none depends on the board size."""

    planes: int = dimension("input planes", 1, 256)
    globals: int = dimension("global input values", 0, 256)
    blocks: int = dimension("blocks of the trunk, without those nested in them", 1, MAX_BLOCKS)
    channels: int = dimension("channels of the trunk", 1, MAX_CHANNELS)


class KataGoNet(PlainNetwork):
    """One of KataGo's networks: the layers of its file.

    Planes have the size of the board, so there are no masks as in KataGo, whose buffers may be larger than the board.
    """

    shape: KataGoShape
    prefers_float16 = True
    """bfloat16 changes win rates of some of these networks by several hundredths, float16 by a tenth of that."""

    def __init__(self, layers: LayerReader):
        """Read the network, next in a file after name and version; the meaning of some outputs depends on the
        version."""
        stream = layers.stream
        stream.integer("input planes", PLANES, PLANES)
        stream.integer("global inputs", GLOBALS, GLOBALS)
        multipliers, has_options = Multipliers(), layers.version >= OPTIONS_FROM
        if layers.version >= MULTIPLIERS_FROM:
            fields = (f"multiplier {field}" for field in Multipliers._fields)
            multipliers = Multipliers(*(stream.positive(field, MAX_MULTIPLIER) for field in fields))
        is_human = as_if_suicide = without_atari = has_rms_norm = 0
        if has_options:
            is_human = stream.integer("encoder of players and dates", 0, 1)
            as_if_suicide = stream.integer("whether areas live as if suicide were legal", 0, 1)
            without_atari = stream.integer("whether territory beside a chain in atari does not count", 0, 1)
            layers.zeros("model", 5)
        stream.name()
        count = stream.integer("blocks", 1, MAX_BLOCKS)
        channels = layers.channels("channels of the trunk")
        for what in ("middle", "regular", "dilated", "pooled"):
            stream.integer(f"{what} channels", 0, MAX_CHANNELS)
        if has_options:
            has_rms_norm = stream.integer("kind of the last normalisation", 0, 1)
            layers.zeros("trunk", 5)
        more = PROFILE_VALUES * is_human
        self.shape = KataGoShape(PLANES, GLOBALS + more, count, channels)
        self.version, self.multipliers = layers.version, multipliers
        self.encoder = katago_encoder(bool(is_human), bool(as_if_suicide), bool(without_atari))
        """name of the network's encoder"""
        self.policy_optimism = 0.0 if is_human else TREE_OPTIMISM
        """weight of the optimistic policy in :meth:`heads_of`; no effect with one policy; 0 for human SL networks"""
        self.stem = layers.convolution(PLANES, channels)
        self.stem_globals = linear(np.pad(layers.matrix(GLOBALS, channels), ((0, 0), (0, more))))
        self.human = HumanEncoder(layers, channels) if is_human else None
        self.blocks = read_blocks(layers, count, channels)
        self.tip: Any = (
            RmsNorm(layers, channels) if has_rms_norm else norm(layers.scaling(channels), layers.activation())
        )
        self.policy, self.value = PolicyHead(layers, channels), ValueHead(layers, channels)

    def describe(self, forward: Forward) -> None:
        """See :meth:`engine.nets.network.PlainNetwork.describe`."""
        bias = forward.linear(self.stem_globals, forward.globals)
        if self.human is not None:
            bias = self.human.describe(forward, bias)
        x = forward.convolution(self.stem, forward.planes, bias=bias)
        for block in self.blocks:
            block.describe(forward, x)
        x = self.tip.describe(forward, x) if isinstance(self.tip, RmsNorm) else forward.norm(x, self.tip)
        self.policy.describe(forward, x)
        self.value.describe(forward, x)

    def heads_of(self, outputs: Mapping[str, Any], planes: Any, globals_: Any) -> RawHeads:
        """The four heads of :class:`engine.nets.network.Heads`; the score is KataGo's lead."""
        policies, results, scores, owners = _parts(outputs, globals_)
        no_result = probabilities(results)[:, 2]
        return RawHeads(
            policy=mixed(policies, self.policy_optimism),
            value=value_logit(results),
            score=scores[:, 2] * self.multipliers.lead * (1.0 - no_result),
            ownership=owners,
        )

    def raw(self, output: Mapping[str, Any], globals_: Any, optimism: float = ROOT_OPTIMISM) -> KataGoOutput[Any, Any]:
        """All outputs of KataGo's ``kata-raw-nn``, from the outputs of :meth:`describe`.

        Args:
            optimism: weight of the optimistic policy, 0 to 1.
        """
        policies, results, scores, owners = _parts(output, globals_)
        policy = mixed(policies, 0.0 if self.human else optimism)
        return outputs(self.version, self.multipliers, policy, results, scores, owners)

    @property
    def words(self) -> str:
        """Description of the architecture in words."""
        kinds = Counter(_words(self.blocks))
        counts = ", ".join(f"{count} {words}" for words, count in kinds.items())
        tip = self.tip.norm if isinstance(self.tip, RmsNorm) else self.tip
        activation = ACTIVATION_NAMES[tip.activation]
        return f"{counts} blocks; trunk of {self.shape.channels} channels; {activation}"


ACTIVATION_NAMES = {IDENTITY: "Identity", RELU: "ReLU", MISH: "Mish", SILU: "SiLU"}


def _words(blocks: Iterable[Any]) -> Iterator[str]:
    """The kinds of blocks of a stack, with those nested in them."""
    for block in blocks:
        yield block.words
        yield from _words(getattr(block, "blocks", ()))


def load_katago(path: Path) -> tuple[PlainNetwork, NetworkSpec, dict[str, Any]]:
    """Read a network file.

    Returns:
        the network, its spec, and a record: ``name``, ``version``, ``architecture`` in words, number of
        ``parameters`` in the file, and ``human``, whether it is a human SL network.
    Raises:
        ValueError: damaged, truncated, oversized or unknown file; one line naming the file, the byte and the field,
            and what was expected.
    """
    with opened(path) as file:
        stream = Stream(path, file)
        name = stream.word("name of the network")
        if not NAME.fullmatch(name):
            raise stream.wrong("name of the network", repr(name), "up to 96 printable ASCII characters")
        layers = LayerReader(stream, stream.integer("model version", FIRST_VERSION, LAST_VERSION))
        model = KataGoNet(layers)
        stream.check_end()
        if not all(np.isfinite(values).all() for _, values in named_arrays(model)):
            raise stream.wrong("weights", "infinite ones once they are normalised", "finite ones")
    record = {
        "name": name, "version": layers.version, "architecture": model.words,
        "parameters": stream.parameters - layers.statistics, "human": model.human is not None,
    }  # fmt: skip
    return model, NetworkSpec(name, model.encoder, *SIZES, tuple(HEADS)), record
