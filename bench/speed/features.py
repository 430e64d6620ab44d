"""``python -m bench.speed.features``: what encoding a middle-game position costs, one JSON line a figure.

The positions are those that the rollout policy comes to, seen in all eight symmetries in turn, and every loop runs
inside a kernel on one core. Start at :func:`command`.
"""

from collections.abc import Iterator

import numpy as np

from bench.speed.figures import Figure, Timing, Work, bench
from bench.speed.subjects import POSITIONS, MiddleGame, middle_games, sizes
from engine.features.encoder import ENCODERS, Encoder, encode
from engine.features.symmetry import SYMMETRIES
from engine.go.board import META_SIZE
from engine.system.jit import kernel


@kernel
def _encode(position, scratch, planes, globals_, count):
    """Encode a position again and again; returns 0, encoding has no steps."""
    for i in range(count):
        encode(position, i % SYMMETRIES, scratch, planes, globals_)
    return 0


def encoding_work(encoder: Encoder, games: list[MiddleGame]) -> Work:
    """Encode all positions."""
    size = int(games[0].position.board.meta[META_SIZE])
    scratch = encoder.new_scratch(size)
    planes, globals_ = np.zeros((encoder.planes, size, size), np.float32), np.zeros(encoder.globals, np.float32)
    return lambda count: sum(_encode(position, scratch, planes, globals_, count) for position, _ in games)


@bench("parts to cut it into", 2.0)
@sizes
def command(sizes: tuple[int, ...], timing: Timing) -> Iterator[Figure]:
    """Time to encode a middle-game position on one core, by encoder and board: one JSON line a figure."""
    for size in sizes:
        games = middle_games(size)
        for encoder in ENCODERS.values():
            name = f"features/{encoder.name}/{size}"
            rates = timing.rates(name, [encoding_work(encoder, games)], POSITIONS)
            yield name, [1e6 / rate for rate in rates], "us"


if __name__ == "__main__":
    command()
