"""A network architecture in one file: a shape, a module, one entry in the registry, and everything else knows it.

    python docs/examples/own_architecture.py [FOLDER]

Writes a network of random weights to FOLDER (a temporary one if none is given), reads it again and lets it choose a
move. Where the entry stands in engine/nets/architectures/registry.py, ``keima train`` trains such networks and
``keima gtp`` plays them.
"""

import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.config import PlayOptions, SearchOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import BLACK, to_vertex
from engine.nets.architectures.registry import ARCHITECTURES, Architecture, new_model, new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.network import Model, RawHeads, Shape, dimension
from engine.play.player import Player


@dataclass(frozen=True)
class PlainShape(Shape):
    """What fixes the parameters of a :class:`PlainNet`; files keep it in their header."""

    planes: int = dimension("input planes", 1, 256)
    globals: int = dimension("input values that are not about points", 0, 256)
    layers: int = dimension("convolutions", 1, 64, 3)
    channels: int = dimension("channels of each", 1, 1024, 16)


class PlainNet(Model):
    """Convolutions in a row, a policy with a pass, and a value from the mean over the board: any board size will do."""

    shape: PlainShape

    def __init__(self, shape: PlainShape) -> None:
        super().__init__(shape)
        widths = [shape.planes, *[shape.channels] * shape.layers]
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(widths))
        self.from_globals = nn.Linear(shape.globals, shape.channels)
        self.points = nn.Conv2d(shape.channels, 1, 1)
        self.board = nn.Linear(shape.channels, 2)

    def forward(self, planes: Tensor, globals_: Tensor) -> RawHeads:
        """Logits of the policy and of the value; heads that are not named here, the network does not have.

        Args:
            planes: float32[B, C, N, N].
            globals_: float32[B, G].
        """
        x = planes
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        x = x + self.from_globals(globals_)[..., None, None]
        passing, value = self.board(x.mean(dim=(2, 3))).unbind(dim=1)
        return RawHeads(torch.cat([self.points(x).flatten(1), passing[:, None]], dim=1), value)


def main(arguments: list[str]) -> None:
    """Register, write, read, play."""
    ARCHITECTURES["plain"] = Architecture(PlainShape, PlainNet, KEIMA.name, ("policy", "value"), "dual")
    torch.manual_seed(1)
    model = new_model("plain", {"planes": KEIMA.planes, "globals": KEIMA.globals, "channels": 24})
    print(f"{sum(value.numel() for value in model.parameters()):,} parameters, {model.shape}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments[0] if arguments else folder) / "plain.safetensors"
        save_network(path, model, new_spec(model, "plain"), {"trained": "not at all"})
        print(f"{path.name}: {path.stat().st_size:,} bytes")
        options = PlayOptions(visits=50, seconds=0.0)
        with closing(Player(SearchOptions(seed=1), options, path, size=9)) as player:
            point = player.genmove(BLACK)
            print(f"plays {to_vertex(point, 9)} after {player.last_genmove_report.visits} visits")


if __name__ == "__main__":
    main(sys.argv[1:])
