"""``python -m bench.speed.rollouts``: speeds of rollouts and of the board, one JSON line a figure.

Every loop runs inside a kernel, so Python is not measured; each thread has its own memory. Start at :func:`command`.
"""

import click
import numpy as np

from bench.speed.figures import Work, measure, measured, print_figure
from bench.speed.positions import POSITIONS, SEED, MiddleGame, middle_games, sizes
from engine.go.board import META_SIZE, copy_board, new_board
from engine.go.geometry import BLACK, PASS
from engine.go.position import META_TO_MOVE, legal_moves
from engine.go.random import seed_state
from engine.play.assembly import shipped_patterns
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.model import Patterns
from engine.rollout.patterns import all_states
from engine.rollout.policy import Tables, new_weights, play_out_by_policy
from engine.rollout.run import area_lead_black, play_out
from engine.rollout.softmax import consider, weigh
from engine.system.jit import kernel
from gtp.cli.terminal import one_line_errors

THREADS = 2
"""Rollouts by policy are measured with one thread and with this number."""


@kernel
def _uniform_rollouts(start, board, state, count, lead):
    """Random games from a position to their scores; returns moves played, adds Black's leads to ``lead``."""
    moves, limit = 0, 3 * start.meta[META_SIZE] * start.meta[META_SIZE]
    for _ in range(count):
        copy_board(board, start)
        moves += play_out(board, BLACK, state, limit)
        lead[0] += area_lead_black(board)
    return moves


@kernel
def _policy_rollouts(start, board, weights, tables, replies, state, count, lead):
    """The same by the rollout policy."""
    moves, limit = 0, 3 * start.meta[META_SIZE] * start.meta[META_SIZE]
    for _ in range(count):
        copy_board(board, start)
        moves += play_out_by_policy(board, weights, tables, replies, 0.0, BLACK, PASS, 0, state, limit)
        lead[0] += area_lead_black(board)
    return moves


@kernel
def _copies(one, other, count):
    """Copy a board to and fro; returns 0, copies have no steps."""
    for i in range(count):
        if i % 2 == 0:
            copy_board(other, one)
        else:
            copy_board(one, other)
    return 0


@kernel
def _legal_moves(position, out, count):
    """Mark the legal moves of a position again and again; returns how many there are, all told."""
    legal = 0
    for _ in range(count):
        legal += legal_moves(position, position.meta[META_TO_MOVE], out)
    return legal


@kernel
def _tree_policy(position, moves, numbers, theta, count):
    """Weigh the moves of a position again and again; returns how many there are, all told."""
    considered = 0
    for _ in range(count):
        all_states(position.board, moves.cell)
        here = consider(moves, position.board, numbers, position.meta[META_TO_MOVE])
        if here > 0:
            weigh(moves, here, theta)
        considered += here
    return considered


def uniform_work(size: int, stream: int) -> Work:
    """Uniform rollouts from the empty board; steps are moves."""
    boards, state, lead = (new_board(size), new_board(size)), seed_state(SEED, stream), np.zeros(1, np.int64)
    return lambda count: _uniform_rollouts(*boards, state, count, lead)


def policy_work(size: int, stream: int, tables: Tables) -> Work:
    """The same by the rollout policy."""
    boards, state, lead = (new_board(size), new_board(size)), seed_state(SEED, stream), np.zeros(1, np.int64)
    weights, replies = new_weights(size), new_last_good_replies()
    return lambda count: _policy_rollouts(*boards, weights, tables, replies, state, count, lead)


def copy_work(games: list[MiddleGame]) -> Work:
    """Copies between two boards, which one of them ends up on."""
    return lambda count: _copies(games[0].position.board, games[1].position.board, count)


def legal_work(games: list[MiddleGame]) -> Work:
    """Legal moves of all positions; steps are moves."""
    out = np.zeros(int(games[0].position.board.meta[META_SIZE]) ** 2 + 1, np.uint8)
    return lambda count: sum(_legal_moves(position, out, count) for position, _ in games)


def tree_work(games: list[MiddleGame], patterns: Patterns) -> Work:
    """Tree policy of all positions; steps are moves."""
    policy = patterns.numbers, patterns.theta
    return lambda count: sum(_tree_policy(position, moves, *policy, count) for position, moves in games)


def measure_board(size: int, patterns: Patterns, seconds: float, repeats: int) -> None:
    """Measure and print the figures of one board size."""

    def rollouts(name: str, works: list[Work]) -> None:
        found = measure(name, works, seconds, repeats)
        print_figure(name, [rate.items_per_s for rate in found], "rollouts/s")
        print_figure(f"{name}/us_per_move", [1e6 * len(works) / rate.steps_per_s for rate in found], "us")
        print_figure(f"{name}/moves", [rate.steps_per_s / rate.items_per_s for rate in found], "moves")

    def duration(name: str, work: Work, share: int, unit: str) -> None:
        units_per_s, found = {"ns": 1e9, "us": 1e6}[unit], measure(name, [work], seconds, repeats)
        print_figure(name, [units_per_s / rate.items_per_s / share for rate in found], unit)

    rollouts(f"uniform/{size}/1", [uniform_work(size, 0)])
    for threads in (1, THREADS):
        rollouts(f"rollout/{size}/{threads}", [policy_work(size, i, patterns.tables) for i in range(threads)])
    games = middle_games(size)
    duration(f"legal_moves/{size}", legal_work(games), POSITIONS, "ns")
    duration(f"tree_policy/{size}", tree_work(games, patterns), POSITIONS, "us")
    # Last, for it makes the first two positions one.
    duration(f"board_copy/{size}", copy_work(games), 1, "ns")


@click.command(context_settings={"show_default": True})
@sizes
@measured(5.0)
def command(sizes: tuple[int, ...], seconds: float, repeats: int) -> None:
    """Speeds of rollouts, from the empty board, and of the board: one JSON line a figure."""
    with one_line_errors():
        patterns = shipped_patterns()
    for size in sizes:
        measure_board(size, patterns, seconds, repeats)


if __name__ == "__main__":
    command()
