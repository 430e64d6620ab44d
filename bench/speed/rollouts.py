"""``python -m bench.speed.rollouts``: speed of rollouts, the board and the tree policy, one JSON line a figure.

Every loop runs inside a kernel, so Python's time is not measured. Start at :func:`command`.
"""

from collections.abc import Iterator

import numpy as np

from bench.speed.figures import Figure, Timing, Work, bench
from bench.speed.subjects import POSITIONS, SEED, middle_games, sizes
from engine.go.board import META_SIZE, copy_board, new_board
from engine.go.geometry import BLACK, PASS
from engine.go.position import META_TO_MOVE, legal_moves
from engine.go.random import seed_state
from engine.play.factory import shipped_patterns
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.model import Patterns
from engine.rollout.patterns import all_states
from engine.rollout.policy import Tables, new_weights, play_out_by_policy
from engine.rollout.run import area_lead_black, play_out
from engine.rollout.softmax import consider, weigh
from engine.system.jit import kernel

THREADS = 2
"""Number of threads of the second measurement of the rollout policy; the first has one thread"""
UNITS = {"ns": 1e9, "us": 1e6}
"""Unit of time -> number of such units in a second"""


@kernel
def _uniform_rollouts(start, board, state, count, lead):
    """Play uniformly random rollouts from a position; returns the number of moves, adds Black's leads to ``lead``."""
    moves, limit = 0, 3 * start.meta[META_SIZE] * start.meta[META_SIZE]
    for _ in range(count):
        copy_board(board, start)
        moves += play_out(board, BLACK, state, limit)
        lead[0] += area_lead_black(board)
    return moves


@kernel
def _policy_rollouts(start, board, weights, tables, replies, state, count, lead):
    """Play rollouts by the rollout policy from a position; returns the moves played, adds Black's leads to ``lead``."""
    moves, limit = 0, 3 * start.meta[META_SIZE] * start.meta[META_SIZE]
    for _ in range(count):
        copy_board(board, start)
        moves += play_out_by_policy(board, weights, tables, replies, 0.0, BLACK, PASS, 0, state, limit)
        lead[0] += area_lead_black(board)
    return moves


@kernel
def _copies(one, other, count):
    """Copy a board back and forth ``count`` times; returns 0, since a copy has no smaller steps to count."""
    for i in range(count):
        if i % 2 == 0:
            copy_board(other, one)
        else:
            copy_board(one, other)
    return 0


@kernel
def _legal_moves(position, out, count):
    """List the legal moves of a position ``count`` times; returns their total number."""
    legal = 0
    for _ in range(count):
        legal += legal_moves(position, position.meta[META_TO_MOVE], out)
    return legal


@kernel
def _tree_policy(position, moves, numbers, theta, count):
    """Compute the tree policy of a position ``count`` times; returns the total number of candidate moves."""
    considered = 0
    for _ in range(count):
        all_states(position.board, moves.cell)
        here = consider(moves, position.board, numbers, position.meta[META_TO_MOVE])
        if here > 0:
            weigh(moves, here, theta)
        considered += here
    return considered


def rollout_work(size: int, stream: int, tables: Tables | None = None) -> Work:
    """Work that plays rollouts from the empty board, uniformly random or, with tables, of the rollout policy.

    An item is a rollout; a step is a move.
    """
    boards, state, lead = (new_board(size), new_board(size)), seed_state(SEED, stream), np.zeros(1, np.int64)
    if tables is None:
        return lambda count: _uniform_rollouts(*boards, state, count, lead)
    policy = new_weights(size), tables, new_last_good_replies()
    return lambda count: _policy_rollouts(*boards, *policy, state, count, lead)


def board_works(size: int, patterns: Patterns) -> Iterator[tuple[str, Work, int, str]]:
    """Works on middle-game positions: name, work, number of positions in an item, unit of the figure."""
    games, out = middle_games(size), np.zeros(size * size + 1, np.uint8)
    policy = patterns.numbers, patterns.theta
    yield "legal_moves", lambda count: sum(_legal_moves(position, out, count) for position, _ in games), POSITIONS, "ns"
    yield "tree_policy", lambda count: sum(_tree_policy(*game, *policy, count) for game in games), POSITIONS, "us"
    # Last, since it overwrites one of the first two positions with the other.
    yield "board_copy", lambda count: _copies(games[0].position.board, games[1].position.board, count), 1, "ns"


@bench("repetitions", 5.0)
@sizes
def command(sizes: tuple[int, ...], timing: Timing) -> Iterator[Figure]:
    """Measure rollouts from the empty board, board operations and the tree policy: one JSON line a figure."""
    patterns = shipped_patterns()
    for size in sizes:
        rollouts = {f"uniform/{size}/1": [rollout_work(size, 0)]}
        for threads in (1, THREADS):
            works = [rollout_work(size, stream, patterns.tables) for stream in range(threads)]
            rollouts[f"rollout/{size}/{threads}"] = works
        for name, works in rollouts.items():
            found = timing.measure(name, works)
            yield name, [one.items_per_s for one in found], "rollouts/s"
            yield f"{name}/us_per_move", [1e6 * len(works) / one.steps_per_s for one in found], "us"
            yield f"{name}/moves", [one.steps_per_s / one.items_per_s for one in found], "moves"
        for what, work, positions, unit in board_works(size, patterns):
            name = f"{what}/{size}"
            yield name, [UNITS[unit] / rate for rate in timing.rates(name, [work], positions)], unit


if __name__ == "__main__":
    command()
