"""Random KataGo networks: plain dicts of what a file says, and a writer of either encoding.

A network is a dict with the keys that ``random_network`` sets; layers are dicts too, each with its weights as the file
orders them. Nothing here knows how the engine reads or computes.
"""

import gzip

import numpy as np

RELU, MISH, SILU, IDENTITY = (f"ACTIVATION_{name}" for name in ("RELU", "MISH", "SILU", "IDENTITY"))
TRUNK, NESTED, HEAD = 6, 4, 3
"""Channels"""


class Maker:
    """Draws layers of random weights."""

    def __init__(self, seed, activation):
        self.random = np.random.default_rng(seed)
        self.activation = activation

    def draw(self, *shape, spread=1.0):
        return (self.random.standard_normal(shape) * spread).astype(np.float32)

    def convolution(self, inputs, outputs, size=3, width=None, dilation=(1, 1)):
        width = width or size
        weight = self.draw(size, width, inputs, outputs, spread=0.8 / (size * width * inputs) ** 0.5)
        return {"kind": "convolution", "weight": weight, "dilation": dilation}

    def scaling(self, channels, has_scale=True, has_shift=True):
        return {
            "kind": "scaling",
            "epsilon": 1e-3,
            "mean": self.draw(channels, spread=0.3),
            "variance": self.random.uniform(0.5, 1.5, channels).astype(np.float32),
            "scale": 1 + self.draw(channels, spread=0.3) if has_scale else None,
            "shift": self.draw(channels, spread=0.3) if has_shift else None,
        }

    def matrix(self, inputs, outputs):
        return {"kind": "matrix", "weight": self.draw(inputs, outputs, spread=inputs**-0.5)}

    def vector(self, channels):
        return {"kind": "vector", "weight": self.draw(channels, spread=0.3)}

    def act(self, name=None):
        return {"kind": "activation", "name": name or self.activation}

    def token_norm(self, channels):
        return {"kind": "token_norm", "epsilon": 1e-6, "weight": 1 + self.draw(channels, spread=0.3)}

    def residual(self, channels):
        return {
            "kind": "ordinary_block",
            "layers": [
                self.scaling(channels), self.act(), self.convolution(channels, 5, dilation=(2, 1)),
                self.scaling(5, has_scale=False), self.act(), self.convolution(5, channels, 1, 3),
            ],
        }  # fmt: skip

    def pooling(self, channels):
        return {
            "kind": "gpool_block",
            "layers": [
                self.scaling(channels, has_scale=False), self.act(), self.convolution(channels, 4),
                self.convolution(channels, 2), self.scaling(2), self.act(), self.matrix(6, 4),
                self.scaling(4), self.act(), self.convolution(4, channels),
            ],
        }  # fmt: skip

    def nested(self, channels, kinds):
        return {
            "kind": "nested_bottleneck_block",
            "layers": [
                self.scaling(channels), self.act(), self.convolution(channels, NESTED, 1),
                [self.block(kind, NESTED) for kind in kinds],
                self.scaling(NESTED, has_shift=False), self.act(), self.convolution(NESTED, channels, 1),
            ],
        }  # fmt: skip

    def attention(self, channels, heads, key_heads, width, value_width, rope):
        block = {
            "kind": "transformer_attention_block",
            "numbers": [heads, key_heads, width, value_width, int(rope is not None), int(rope == "learnt")],
            "layers": [
                self.token_norm(channels), self.matrix(channels, heads * width),
                self.matrix(channels, key_heads * width), self.matrix(channels, key_heads * value_width),
                self.matrix(heads * value_width, channels),
            ],
            "rope": {"fixed": 20.0, "learnt": self.draw(key_heads, width // 2, 2), None: None}[rope],
        }  # fmt: skip
        block["layers"][1]["weight"] *= 3
        return block

    def feed_forward(self, channels):
        layers = [self.token_norm(channels), self.matrix(channels, 5), self.matrix(channels, 5)]
        return {
            "kind": "transformer_ffn_block",
            "numbers": [channels, 5, 1],
            "layers": [*layers, self.matrix(5, channels)],
        }

    def block(self, kind, channels):
        name, *options = kind if isinstance(kind, tuple) else (kind,)
        return getattr(self, name)(channels, *options)

    def policy_head(self, version, channels):
        outputs = {16: 4}.get(version, 1 if version < 12 else channels)
        layers = [
            self.convolution(TRUNK, HEAD, 1), self.convolution(TRUNK, 2, 1), self.scaling(2), self.act(),
            self.matrix(6, HEAD), self.scaling(HEAD), self.act(), self.convolution(HEAD, outputs, 1),
        ]  # fmt: skip
        if version >= 15:
            layers += [self.matrix(6, HEAD), self.vector(HEAD), self.act(), self.matrix(HEAD, outputs)]
        else:
            layers.append(self.matrix(6, outputs))
        return {"numbers": [channels, 0, 0, 0] if version >= 17 else [], "layers": layers}

    def value_head(self, version):
        scores = 6 if version >= 9 else 4
        layers = [
            self.convolution(TRUNK, HEAD, 1), self.scaling(HEAD), self.act(), self.matrix(3 * HEAD, 5),
            self.vector(5), self.act(), self.matrix(5, 3), self.vector(3), self.matrix(5, scores),
            self.vector(scores), self.convolution(HEAD, 1, 1),
        ]  # fmt: skip
        return {"numbers": [0, 0, 0] if version >= 17 else [], "layers": layers}

    def tip(self, kind):
        if kind == "scaling":
            return self.scaling(TRUNK)
        return {
            "kind": "rms_norm",
            "epsilon": 1e-6,
            "spatial": int(kind == "spatial"),
            "weight": 1 + self.draw(TRUNK, spread=0.3),
            "shift": self.draw(TRUNK, spread=0.3),
        }

    def human(self):
        layers = [self.matrix(192, 4), self.vector(4), self.act(), self.matrix(4, 4), self.vector(4), self.act()]
        return [*layers, self.matrix(4, TRUNK)]


def random_network(version=8, blocks=("residual",), activation=RELU, tip="scaling", policies=2, human=False, seed=0):
    """A tiny network; ``blocks`` are names of :class:`Maker`'s methods, with their options in a tuple."""
    make = Maker(seed, activation)
    return {
        "name": "tiny-b1c6",
        "version": version,
        "multipliers": [20.0, 12.5, 15.0, 8.0, 30.0, 0.5, 100.0] if version >= 13 else None,
        "options": [int(human), 0, 0, 0, 0, 0, 0, 0],
        "trunk": [len(blocks), TRUNK, 5, 4, 2, 2],
        "trunk_options": [int(tip != "scaling"), 0, 0, 0, 0, 0],
        "stem": [make.convolution(22, TRUNK, 5, 3), make.matrix(19, TRUNK)],
        "human": make.human() if human else None,
        "blocks": [make.block(kind, TRUNK) for kind in blocks],
        "tip": [make.tip(tip), make.act()],
        "policy": make.policy_head(version, policies),
        "value": make.value_head(version),
    }


class Writer:
    """Collects the content of a file."""

    def __init__(self, version, is_binary):
        self.version, self.is_binary = version, is_binary
        self.content = bytearray()
        self.count = 0

    def words(self, *words):
        for word in words:
            self.content += f"{word}\n".encode()

    def name(self):
        self.count += 1
        self.words(f"layer{self.count}")

    def weights(self, values):
        values = np.asarray(values, "<f4").reshape(-1)
        if self.is_binary:
            self.content += b"@BIN@" + values.tobytes() + b"\n"
        else:
            self.content += " ".join(str(value) for value in values).encode() + b"\n"

    def layer(self, layer):
        if isinstance(layer, list):
            for block in layer:
                self.block(block)
            return
        self.name()
        getattr(self, layer["kind"])(layer)

    def convolution(self, layer):
        self.words(*layer["weight"].shape, *layer["dilation"])
        self.weights(layer["weight"])

    def scaling(self, layer):
        has = [int(layer[part] is not None) for part in ("scale", "shift")]
        self.words(len(layer["mean"]), layer["epsilon"], *has)
        for part in ("mean", "variance", "scale", "shift"):
            if layer[part] is not None:
                self.weights(layer[part])

    def matrix(self, layer):
        self.words(*layer["weight"].shape)
        self.weights(layer["weight"])

    vector = matrix

    def activation(self, layer):
        if self.version >= 11:
            self.words(layer["name"])

    def token_norm(self, layer):
        self.words(len(layer["weight"]), layer["epsilon"])
        self.weights(layer["weight"])

    def rms_norm(self, layer):
        self.words(len(layer["weight"]), layer["epsilon"], layer["spatial"], 0)
        self.weights(layer["weight"])
        self.weights(layer["shift"])

    def block(self, block):
        self.words(block["kind"])
        self.name()
        self.words(*block.get("numbers", ()))
        inner = [len(layer) for layer in block["layers"] if isinstance(layer, list)]
        self.words(*inner)
        self.layers(block["layers"])
        rope = block.get("rope")
        if rope is not None:
            self.name()
            if isinstance(rope, float):
                self.words(rope)
            else:
                self.words(*rope.shape)
                self.weights(rope)

    def layers(self, layers):
        for layer in layers:
            self.layer(layer)

    def head(self, head):
        self.name()
        self.words(*head["numbers"])
        self.layers(head["layers"])


def written(network, is_binary=True):
    """The content of a network's file, not compressed."""
    version = network["version"]
    writer = Writer(version, is_binary)
    writer.words(network["name"], version, 22, 19)
    writer.words(*(network["multipliers"] or ()))
    writer.words(*(network["options"] if version >= 15 else ()))
    writer.name()
    writer.words(*network["trunk"], *(network["trunk_options"] if version >= 15 else ()))
    writer.layers(network["stem"])
    if network["human"]:
        writer.name()
        writer.words(192)
        writer.layers(network["human"])
    for block in network["blocks"]:
        writer.block(block)
    writer.layers(network["tip"])
    writer.head(network["policy"])
    writer.head(network["value"])
    return bytes(writer.content)


ATTENTION = [
    ("attention", 2, 2, 4, 4, "fixed"),
    ("attention", 3, 1, 6, 2, "fixed"),
    ("attention", 4, 2, 2, 3, "learnt"),
    ("attention", 2, 1, 3, 5, None),
]
NETWORKS = {
    "v8": random_network(8, ("residual", "pooling")),
    "v9": random_network(9, ("pooling",), seed=1),
    "v10": random_network(10, seed=2),
    "v11-mish": random_network(11, ("residual", "pooling"), MISH, seed=3),
    "v12-identity": random_network(12, ("residual",), IDENTITY, seed=4),
    "v13": random_network(13, ("pooling",), seed=5),
    "v14-silu": random_network(14, (("nested", ("residual", "pooling")),), SILU, seed=6),
    "v15-human": random_network(
        15, (("nested", (("nested", ("residual",)), "feed_forward")),), MISH, human=True, seed=7
    ),
    "v15-spatial": random_network(15, (ATTENTION[2], "feed_forward"), SILU, "spatial", seed=8),
    "v16-q": random_network(16, ("residual",), RELU, seed=9),
    "v17-plain": random_network(17, (ATTENTION[0], "feed_forward"), SILU, "plain", seed=10),
    "v17-q": random_network(17, (ATTENTION[1],), RELU, policies=4, seed=11),
    "v17-hybrid": random_network(
        17, ("residual", ("nested", (ATTENTION[3], "feed_forward", ATTENTION[2])), "pooling"), SILU, "spatial", seed=12
    ),
}
"""Networks with all kinds of blocks and of heads, of all versions"""


def saved(tmp_path, network, is_binary=True, packed=True):
    """A file of a network."""
    content = written(network, is_binary)
    path = tmp_path / f"net{'.bin' if is_binary else '.txt'}{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    return path
