"""Ownership by rollouts: mean owner of each point over uniformly random rollouts or rollouts of the rollout policy.

The policy is better in fights and semeais than uniformly random moves.
"""

import math
import time

import numpy as np

from engine.go.board import META_SIZE, Board, copy_board, new_board
from engine.go.geometry import BLACK, PASS, WHITE, point_of
from engine.go.random import seed_state
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.policy import Tables, new_weights, play_out_by_policy
from engine.rollout.run import owner_at_end, play_out
from engine.system.arrays import fill_items
from engine.system.jit import kernel

GAMES_AT_ONCE = 64
"""Number of rollouts between two readings of the clock, about 15 ms on 19x19"""


def rollout_ownership(
    board: Board, tables: Tables | None, count: int, seed: int, deadline_s: float = math.inf
) -> np.ndarray:
    """Mean owner of each point over rollouts; Black moves first in half of them, White in the rest.

    Who moves first may decide a seki, and in a finished game no colour is to move.

    Args:
        board: not changed.
        tables: of the rollout policy; None = uniformly random moves.
        count: number of rollouts, at least 1.
        seed: any int; determines the rollouts.
        deadline_s: ``time.perf_counter`` value after which no rollouts begin, except the first ``GAMES_AT_ONCE``.
    Returns:
        float32[N*N] in policy order: 1 = always Black's, -1 = always White's.
    """
    size = int(board.meta[META_SIZE])
    total, part = np.zeros(size * size, np.float32), np.empty(size * size, np.float32)
    state, scratch = seed_state(seed, 0), new_board(size)
    policy = None if tables is None else (new_weights(size), tables, new_last_good_replies())
    played = 0
    while played == 0 or (played < count and time.perf_counter() < deadline_s):
        games = min(GAMES_AT_ONCE, count - played)
        average_ownership(board, scratch, policy, games, state, part)
        total += games * part
        played += games
    ownership: np.ndarray = total / played
    return ownership


@kernel
def average_ownership(source, scratch, policy, count, state, out):
    """:func:`rollout_ownership` in the caller's memory, as a kernel; a rollout has at most three moves for each point.

    Args:
        source: the board, not changed.
        scratch: a board of the same size, overwritten.
        policy: None = uniformly random moves; else weights (overwritten), tables and replies as for
            :func:`engine.rollout.policy.play_out_by_policy`.
        count: number of rollouts, at least 1.
        state: uint64[4], the caller's random state.
        out: float32[N*N] in policy order, overwritten: 1 = always Black's, -1 = always White's.
    """
    area = source.meta[META_SIZE] * source.meta[META_SIZE]
    fill_items(out, 0.0)
    for game in range(count):
        copy_board(scratch, source)
        color = BLACK if 2 * game < count else WHITE
        if policy is None:
            play_out(scratch, color, state, 3 * area)
        else:
            play_out_by_policy(scratch, policy[0], policy[1], policy[2], 0.0, color, PASS, 0, state, 3 * area)
        _add_owners(scratch, out)
    for i in range(area):
        out[i] /= count


@kernel
def _add_owners(board, out):
    """Add every point's owner at the end of a rollout to ``out``."""
    size = board.meta[META_SIZE]
    for i in range(size * size):
        out[i] += owner_at_end(board, point_of(i, size))
