"""Who owns what in the end, by the rollout policy: it reads fights and semeais better than random moves do."""

import numpy as np

from engine.go.board import SIZE, Board, copy_board, new_board
from engine.go.geometry import BLACK, PASS, WHITE, point_of
from engine.jit import kernel
from engine.rollout.policy import Tables, new_weights, play_out_by_policy
from engine.rollout.random import seed_state
from engine.rollout.replies import new_replies
from engine.rollout.run import average_ownership, owner_at_end


def rollout_ownership(board: Board, tables: Tables | None, count: int, seed: int) -> np.ndarray:
    """Mean owner of each point over games to the end, half of them begun by each colour.

    In a seki whoever moves first has lost it, or won; and nobody's turn decides who owns what in a finished game.

    Args:
        board: left as it is.
        tables: of the rollout policy; None = uniformly random moves.
        count: games to play, at least 2.
    Returns:
        float32[N*N], policy order: 1 = always Black's, -1 = always White's.
    """
    size = int(board.meta[SIZE])
    halves = np.zeros((2, size * size), np.float32)
    state, scratch = seed_state(seed, 0), new_board(size)
    weights, replies = (new_weights(size), new_replies()) if tables else (None, None)
    for half, color in zip(halves, (BLACK, WHITE), strict=True):
        if tables is None:
            average_ownership(board, scratch, color, count // 2, state, half)
        else:
            _average_by_policy(board, scratch, weights, tables, replies, color, count // 2, state, half)
    return halves.mean(0)


@kernel
def _average_by_policy(source, scratch, weights, tables, replies, color, count, state, out):
    """:func:`engine.rollout.run.average_ownership` by the policy that ``tables`` hold."""
    area = source.meta[SIZE] * source.meta[SIZE]
    for i in range(area):
        out[i] = 0.0
    for _ in range(count):
        copy_board(scratch, source)
        play_out_by_policy(scratch, weights, tables, replies, 0.0, color, PASS, 0, state, 3 * area)
        for i in range(area):
            out[i] += owner_at_end(scratch, point_of(i, source.meta[SIZE]))
    for i in range(area):
        out[i] /= count
