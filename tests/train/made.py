"""Games and labels made up for tests, small and without files."""

import numpy as np

from engine.config import TrainOptions
from engine.features.encoder import KEIMA
from engine.records.games import Games
from engine.records.labels import CHINESE_FLAGS, RECORDED, Labels
from engine.train.dataset import Material, Mixture


def made_games(count=40, size=9, length=30, seed=0):
    """Games of random distinct points, no captures worth mentioning: legal by construction on an almost empty board."""
    rng = np.random.default_rng(seed)
    moves = np.concatenate([rng.permutation(size * size)[:length] for _ in range(count)]).astype(np.uint16)
    return Games(
        size=np.full(count, size, np.int64),
        komi=np.full(count, 6.5, np.float32),
        offsets=np.arange(count + 1, dtype=np.int64) * length,
        moves=moves,
        result=np.where(np.arange(count) % 3 == 0, -1, 1).astype(np.int8),
        territory=np.arange(count) % 2 == 0,
    )


def settled_games(komi, territory):
    """A 5x5 board where both sides can only pass, Black with 15 points of area and White with 10, then passes.

    Black has 12 stones and White 7, and both three eyes.
    """
    black = [5 * row + column for row in range(5) for column in (1, 2)] + [5, 15]
    white = [5 * row + 3 for row in range(5)] + [9, 19]
    return Games(
        size=np.array([5]), komi=np.array([komi], np.float32), offsets=np.array([0, 2]),
        moves=np.array([25, 25], np.uint16), result=np.array([1], np.int8), territory=np.array([territory]),
        setup_offsets=np.array([0, 19]), setup=np.array([2 * p for p in black] + [2 * p + 1 for p in white], np.uint16),
    )  # fmt: skip


def made_labels(seed=0):
    """Labels whose policy is a rule that no symmetry changes: play the centre, pass if it is taken."""
    games = made_games(seed=seed, length=8)
    rows = 60
    rng = np.random.default_rng(seed)
    game, ply = rng.integers(0, 40, rows), rng.integers(0, 8, rows)
    index = np.full((rows, 12), 65535, np.uint16)
    weight = np.zeros((rows, 12), np.float32)
    for row in range(rows):
        played = set(games.moves[games.offsets[game[row]] :][: ply[row]].tolist())
        index[row, :2] = (81, 0) if 40 in played else (40, 81)
        weight[row, :2] = 0.6, 0.2
    return Labels(
        games, game, ply, index, weight, np.linspace(-1, 1, rows, dtype=np.float32),
        np.linspace(-30, 30, rows, dtype=np.float32),
        np.tile(np.repeat(np.arange(-4, 5), 9).astype(np.int8), rows), np.arange(rows + 1) * 81,
        np.tile(CHINESE_FLAGS, (40, 1)), np.full(40, RECORDED, np.uint8),
    )  # fmt: skip


def mixture(games=(), labels=(), **values):
    """A mixture of small batches."""
    names = Material._fields[2:]
    material = Material(games, labels, **{name: values.pop(name) for name in names if name in values})
    settings = {name: values.pop(name) for name in ("sizes", "ranks") if name in values}
    return Mixture(KEIMA, material, TrainOptions(**({"batch": 8, "seed": 4} | values)), **settings)
