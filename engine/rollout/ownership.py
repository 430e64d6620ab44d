"""Who owns what in the end: the mean over games to the end, uniformly random ones or those of the rollout policy.

The policy reads fights and semeais better than random moves do.
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
"""Games between two looks at the time: some 15 ms on 19x19"""


def rollout_ownership(
    board: Board, tables: Tables | None, count: int, seed: int, deadline_s: float = math.inf
) -> np.ndarray:
    """Mean owner of each point over games to the end, half of them begun by each colour.

    The side that moves first loses a seki, or wins it, and in a finished game no side is to move.

    Args:
        board: left as it is.
        tables: of the rollout policy; None = uniformly random moves.
        count: games to play, at least 1.
        seed: any int; the same one gives the same games.
        deadline_s: ``time.perf_counter`` after which no more games are begun, but for the first of them.
    Returns:
        float32[N*N], policy order: 1 = always Black's, -1 = always White's.
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
    """:func:`rollout_ownership` in the caller's memory; a game is broken off after three boards full of moves.

    Args:
        source: the position, left as it is.
        scratch: a board of the same size, overwritten.
        policy: None for uniformly random moves, else weights (overwritten), tables and replies as for
            :func:`engine.rollout.policy.play_out_by_policy`.
        count: games to play, at least 1.
        state: uint64[4], the caller's random state.
        out: float32[N*N], policy order, overwritten: 1 = always Black's, -1 = always White's.
    """
    area = source.meta[META_SIZE] * source.meta[META_SIZE]
    fill_items(out, 0.0)
    for game in range(count):
        copy_board(scratch, source)
        color = _beginner(game, count)
        if policy is None:
            play_out(scratch, color, state, 3 * area)
        else:
            play_out_by_policy(scratch, policy[0], policy[1], policy[2], 0.0, color, PASS, 0, state, 3 * area)
        _add_owners(scratch, out)
    for i in range(area):
        out[i] /= count


@kernel
def _beginner(game, count):
    """Who begins a game, the first of ``count`` being number 0."""
    return BLACK if 2 * game < count else WHITE


@kernel
def _add_owners(board, out):
    """Add every point's owner after a game to ``out``."""
    size = board.meta[META_SIZE]
    for i in range(size * size):
        out[i] += owner_at_end(board, point_of(i, size))
