"""A network architecture in one file: a shape, layers and their order, one entry in the registry; the rest knows it.

    python docs/examples/own_architecture.py [FOLDER]

Writes a network of random weights to FOLDER (a temporary one if none is given), reads it again and lets it choose a
move. Where the entry stands in engine/nets/architectures/registry.py, ``keima train`` trains such networks and
``keima gtp`` plays them.
"""

import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import keima
from engine.features.encoder import KEIMA
from engine.nets.architectures.registry import ARCHITECTURES, Architecture, make, new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.forward import Forward, library_of
from engine.nets.layers import RELU, Drawn, Weights, named_arrays
from engine.nets.network import PlainNetwork, RawHeads, Shape, dimension


@dataclass(frozen=True)
class PlainShape(Shape):
    """What fixes the parameters of a :class:`PlainNet`; files keep it in their header."""

    planes: int = dimension("input planes", 1, 256)
    globals: int = dimension("input values that are not about points", 0, 256)
    layers: int = dimension("convolutions", 1, 64, 3)
    channels: int = dimension("channels of each", 1, 1024, 16)


class PlainNet(PlainNetwork):
    """Convolutions in a row, a policy with a pass, and a value from the mean over the board: any board size will do."""

    shape: PlainShape

    def __init__(self, shape: PlainShape, weights: Weights) -> None:
        self.shape = shape
        widths = pairwise([shape.planes, *[shape.channels] * shape.layers])
        self.layers = [weights.convolution(f"layers.{i}", a, b, 3, "relu") for i, (a, b) in enumerate(widths)]
        self.from_globals = weights.linear("from_globals", shape.globals, shape.channels)
        self.points = weights.convolution("points", shape.channels, 1, 1)
        self.board = weights.linear("board", 3 * shape.channels, 2)

    def describe(self, forward: Forward) -> None:
        """Every layer with weights, from the inputs to named outputs: for processors, for torch, for training."""
        x, bias = forward.planes, forward.linear(self.from_globals, forward.globals)
        for layer in self.layers:
            x = forward.convolution(layer, x, bias=bias, after=RELU)
            bias = None
        forward.output("points", forward.convolution(self.points, x))
        forward.output("board", forward.linear(self.board, forward.pool(x)))

    def heads_of(self, outputs: Any, planes: Any, globals_: Any) -> RawHeads:
        """Logits of the policy and of the value; heads that are not named here, the network does not have."""
        points, board = outputs["points"], outputs["board"]
        logits = [points.reshape(points.shape[0], -1), board[:, :1]]
        return RawHeads(library_of(board).concat(logits, axis=1), board[:, 1])


def main(arguments: list[str]) -> None:
    """Register, write, read, play."""
    ARCHITECTURES["plain"] = Architecture(PlainShape, PlainNet, KEIMA.name, ("policy", "value"), "dual")
    network = make("plain", {"planes": KEIMA.planes, "globals": KEIMA.globals, "channels": 24}, Drawn(seed=1))
    print(f"{sum(values.size for _, values in named_arrays(network)):,} parameters, {network.shape}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments[0] if arguments else folder) / "plain.safetensors"
        save_network(path, network, new_spec(network, "plain"), {"trained": "not at all"})
        print(f"{path.name}: {path.stat().st_size:,} bytes")
        with keima.Engine(path, seed=1) as engine:
            played = engine.play(keima.Board(9), keima.Limit(visits=50))
            print(f"plays {played.move} after {played.info.visits} visits")


if __name__ == "__main__":
    main(sys.argv[1:])
