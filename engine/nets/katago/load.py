"""From a KataGo network file to a model: ``.bin.gz`` and ``.txt.gz``, packed or not, model versions 8 to 17.

Source: the public description of the format, ``cpp/neuralnet/desc.cpp`` of KataGo 1.18. What other engines would need
to know (the version's meaning, multipliers, the pass) is resolved here and in the modules.
"""

import re
from pathlib import Path
from typing import Any

from engine.nets.files.header import KATAGO_OPTIONS_FROM as OPTIONS_FROM
from engine.nets.files.header import katago_encoder, opened
from engine.nets.katago.attention import RmsNorm
from engine.nets.katago.blocks import MAX_BLOCKS, read_blocks
from engine.nets.katago.heads import Multipliers, PolicyHead, ValueHead
from engine.nets.katago.human import HumanEncoder
from engine.nets.katago.layers import MAX_CHANNELS, LayerReader, Norm, convolution, linear
from engine.nets.katago.model import KataGoNet, Trunk
from engine.nets.katago.stream import Stream
from engine.nets.network import Model, NetworkSpec

PLANES, GLOBALS = 22, 19
FIRST_VERSION, LAST_VERSION = 8, 17
MULTIPLIERS_FROM = 13
MAX_MULTIPLIER = 1e6
SIZES = (2, 19)
NAME = re.compile(r"[!-~]{1,96}")


def load_katago(path: Path) -> tuple[Model, NetworkSpec, dict[str, Any]]:
    """Read a network file on the CPU.

    Returns:
        the model in float32, its spec, and a record: ``name``, ``version``, ``architecture`` in words, number of
        ``parameters`` in the file, and ``human``, whether it plays as people do.
    Raises:
        ValueError: damaged, truncated, oversized or foreign file; one line naming the file, the byte and the field,
            and what was expected.
    """
    with opened(path) as file:
        stream = Stream(path, file)
        name = stream.word("name of the network")
        if not NAME.fullmatch(name):
            raise stream.wrong("name of the network", repr(name), "up to 96 printable ASCII characters")
        layers = LayerReader(stream, stream.integer("model version", FIRST_VERSION, LAST_VERSION))
        model, encoder = _read_model(layers)
        stream.finish()
        if not all(values.isfinite().all() for values in model.parameters()):
            raise stream.wrong("weights", "infinite ones once they are normalised", "finite ones")
    record = {
        "name": name, "version": layers.version, "architecture": model.words,
        "parameters": stream.parameters - layers.statistics, "human": model.human is not None,
    }  # fmt: skip
    spec = NetworkSpec(name, encoder, *SIZES, has_score=True, has_ownership=True)
    return model, spec, record


def _read_model(layers: LayerReader) -> tuple[KataGoNet, str]:
    """The network behind its name and version, and the encoder it is meant for."""
    stream, version = layers.stream, layers.version
    stream.integer("input planes", PLANES, PLANES)
    stream.integer("global inputs", GLOBALS, GLOBALS)
    multipliers = Multipliers()
    if version >= MULTIPLIERS_FROM:
        fields = (f"multiplier {field}" for field in Multipliers._fields)
        multipliers = Multipliers(*(stream.positive(field, MAX_MULTIPLIER) for field in fields))
    is_human = as_if_suicide = without_atari = 0
    if version >= OPTIONS_FROM:
        is_human = stream.integer("encoder of players and dates", 0, 1)
        as_if_suicide = stream.integer("whether areas live as if suicide were legal", 0, 1)
        without_atari = stream.integer("whether territory beside a chain in atari does not count", 0, 1)
        layers.zeros("model", 5)
    trunk = _read_trunk(layers, bool(is_human))
    channels = trunk.stem.out_channels
    heads = PolicyHead(layers, channels), ValueHead(layers, channels)
    encoder = katago_encoder(bool(as_if_suicide), bool(without_atari))
    return KataGoNet(version, multipliers, trunk, *heads), encoder


def _read_trunk(layers: LayerReader, is_human: bool) -> Trunk:
    """Everything before the heads."""
    stream = layers.stream
    stream.name()
    count = stream.integer("blocks", 1, MAX_BLOCKS)
    channels = layers.channels("channels of the trunk")
    for what in ("middle", "regular", "dilated", "pooled"):
        stream.integer(f"{what} channels", 0, MAX_CHANNELS)
    has_rms_norm = 0
    if layers.version >= OPTIONS_FROM:
        has_rms_norm = stream.integer("kind of the last normalisation", 0, 1)
        layers.zeros("trunk", 5)
    stem = convolution(layers.convolution(PLANES, channels))
    stem_globals = linear(layers.matrix(GLOBALS, channels))
    human = HumanEncoder(layers, channels) if is_human else None
    blocks = read_blocks(layers, count, channels)
    tip = RmsNorm(layers, channels) if has_rms_norm else Norm(layers.scaling(channels), layers.activation())
    return Trunk(stem, stem_globals, human, blocks, tip)
