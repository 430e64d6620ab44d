"""``python -m bench.speed.features``: time to encode a middle-game position, one JSON line a figure.

The positions are from games of the rollout policy; symmetries are cycled through. Every loop runs inside a kernel on
one core. Start at :func:`command`.
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
    """Encode a position ``count`` times; returns 0, since an encoding has no smaller steps to count."""
    for i in range(count):
        encode(position, i % SYMMETRIES, scratch, planes, globals_)
    return 0


def encoding_work(encoder: Encoder, games: list[MiddleGame]) -> Work:
    """Work that encodes positions; an item encodes each of them once."""
    size = int(games[0].position.board.meta[META_SIZE])
    scratch = encoder.new_scratch(size)
    planes, globals_ = np.zeros((encoder.planes, size, size), np.float32), np.zeros(encoder.globals, np.float32)
    return lambda count: sum(_encode(position, scratch, planes, globals_, count) for position, _ in games)


@bench("repetitions", 2.0)
@sizes
def command(sizes: tuple[int, ...], timing: Timing) -> Iterator[Figure]:
    """Measure the time to encode a position on one core, by encoder and board size: one JSON line a figure."""
    for size in sizes:
        games = middle_games(size)
        for encoder in ENCODERS.values():
            name = f"features/{encoder.name}/{size}"
            rates = timing.rates(name, [encoding_work(encoder, games)], POSITIONS)
            yield name, [1e6 / rate for rate in rates], "us"


if __name__ == "__main__":
    command()
