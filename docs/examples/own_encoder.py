"""An encoder of one's own: a class for its scratch, two kernels and a call of ``register``.

    python docs/examples/own_encoder.py

The encoder here shows a network three planes: own stones, the opponent's, and the stones in atari. Prints them for a
small position under two symmetries, and the key under which a result cache would keep what a network says of it.

To train on it, let an entry in engine/nets/architectures/registry.py name it and the command that trains it
(``encoder="atari-3"``, ``trained_by="dual"``), and call ``register`` where engine/features/encoder.py does; from
Python, ``new_spec(model, name, encoder="atari-3")``. ``keima zero`` begins with ``keima-2``: see ``first_network`` in
engine/train/turns.py and ``encoder`` in gtp/cli/zero.py.
"""

import sys
from typing import NamedTuple

import numpy as np

from engine.features.common import mix
from engine.features.encoder import Encoder, encode, key, register
from engine.features.symmetry import apply_symmetry
from engine.go.board import META_SIZE
from engine.go.game import Game
from engine.go.geometry import BLACK, EMPTY, WHITE, ZOBRIST, from_vertex, point_of
from engine.go.position import META_TO_MOVE
from engine.system.jit import kernel

PLANES = 3
NAMES = ("own stones", "the opponent's", "in atari")


class AtariScratch(NamedTuple):
    """Working memory, one a thread. Its type tells kernels which encoder is meant; this one needs none."""

    unused: np.ndarray


def new_scratch(size: int) -> AtariScratch:
    """For boards of one size."""
    return AtariScratch(np.zeros(1))


@kernel
def write_planes(position, symmetry, scratch, planes, globals_):
    """Write a position's planes for the side to move.

    Args:
        symmetry: 0 to 7, as in engine/features/symmetry.py: where each point goes.
        scratch: :class:`AtariScratch`.
        planes: float32[PLANES, N, N], overwritten.
        globals_: float32[0].
    """
    board, color = position.board, position.meta[META_TO_MOVE]
    size = board.meta[META_SIZE]
    flat = planes.reshape(PLANES, size * size)
    for index in range(size * size):
        point, at = point_of(index, size), apply_symmetry(index, size, symmetry)
        stone = board.color[point]
        flat[0, at] = stone == color
        flat[1, at] = stone != EMPTY and stone != color
        flat[2, at] = stone != EMPTY and board.libs[board.head[point]] == 1


@kernel
def input_key(position, scratch):
    """uint64 that covers all that is read: stones, which tell the liberties, and the side to move."""
    return mix(position.board.hash[0] ^ ZOBRIST[EMPTY, position.meta[META_TO_MOVE]])


def main(arguments: list[str]) -> None:
    """Encode a position."""
    encoder = register(Encoder("atari-3", PLANES, 0, new_scratch), AtariScratch, write_planes, input_key)
    game, size = Game(5), 5
    for color, vertex in ((BLACK, "C3"), (WHITE, "C2"), (BLACK, "B2"), (WHITE, "E5"), (BLACK, "D2")):
        game.play(color, from_vertex(vertex, size))
    scratch = encoder.new_scratch(size)
    planes, values = np.zeros((encoder.planes, size, size), np.float32), np.zeros(encoder.globals, np.float32)
    for symmetry in (0, 1):
        encode(game.position, symmetry, scratch, planes, values)
        print(f"symmetry {symmetry}, White to move: {', '.join(NAMES)}")
        for row in range(size):
            print("   ".join(" ".join(".#"[int(value)] for value in plane[row]) for plane in planes))
    before = key(game.position, scratch)
    game.play(WHITE, from_vertex("A5", size))
    print(f"key of the position {before:016x}, of the next one {key(game.position, scratch):016x}")


if __name__ == "__main__":
    main(sys.argv[1:])
