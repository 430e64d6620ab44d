"""Games that pattern policies are counted, learnt and judged on, and shards of them."""

import lzma

import numpy as np

from engine.go.board import new_board, play
from engine.go.geometry import BLACK, EMPTY, PASS, index_of, on_board_points
from engine.records.games import Games
from engine.rollout.run import is_sensible

SIZE, PASSED = 19, 361


def joined(games):
    """Games of policy indices as a shard is read."""
    return Games(
        size=np.full(len(games), SIZE, np.int64),
        komi=np.full(len(games), 6.5, np.float32),
        offsets=np.cumsum([0, *map(len, games)]).astype(np.int64),
        moves=np.concatenate([np.array(game, np.uint16) for game in games]),
        result=np.ones(len(games), np.int8),
        territory=np.ones(len(games), bool),
    )


def write_shard(path, games):
    """Pack games as the shards of games are; returns the path."""
    moves = np.concatenate([np.array(game, np.int64) for game in games])
    delta = np.diff([moves // SIZE, moves % SIZE], axis=1, prepend=0) % [[20], [19]]
    count = len(games)
    with lzma.open(path, "wb", preset=0) as file:
        np.savez(
            file, delta=delta.T.astype(np.uint8), length=np.array([len(game) for game in games], np.uint16),
            result=np.ones(count, np.int8), komi=np.full(count, 6.5, np.float16), source=np.zeros(count, np.uint8),
        )  # fmt: skip
    return path


def random_game(seed, region, length):
    """Sensible moves, most of them near the last one, in a top left corner of the board."""
    rng, board, game, last = np.random.default_rng(seed), new_board(SIZE), [], PASS
    points = on_board_points(SIZE).reshape(SIZE, SIZE)[:region, :region].ravel().astype(int)
    for ply in range(length):
        order, color = rng.permutation(points), BLACK + ply % 2
        if last and rng.random() < 0.7:
            away = np.abs(order // (SIZE + 1) - last // (SIZE + 1)) + np.abs(order % (SIZE + 1) - last % (SIZE + 1))
            order = order[np.argsort(away, kind="stable")]
        last = next((int(p) for p in order if board.color[p] == EMPTY and is_sensible(board, int(p), color)), PASS)
        play(board, last, color)
        game.append(int(index_of(last, SIZE)))
    return game


def staircase(length):
    """A game that follows from itself: Black fills one row, White always plays below, Black ahead of that."""
    return [(2 + ply % 2 + 4 * (ply // 38)) * SIZE + ply % 38 // 2 for ply in range(length)]


def games_of_all_kinds():
    """Fights in a corner, fights all over the board, and one that goes on after a pass."""
    some = [random_game(seed, 11, 110) for seed in range(3)] + [random_game(seed, 19, 130) for seed in range(3, 8)]
    return [*some, [*some[0][:40], PASSED, *some[0][41:60]]]
