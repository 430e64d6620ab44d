"""Values of positions by rollouts, with uniformly random moves or a rollout policy: baselines for a value network.

Source: AlphaGo, Figure 2b: the error of the value network by move number beside that of rollouts.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import local

import numpy as np

from engine.go.board import META_SIZE, copy_board
from engine.go.geometry import BLACK, PASS, point_of
from engine.go.position import META_N_MOVES, META_TO_MOVE, copy_position, new_position, play_move
from engine.go.random import seed_state
from engine.records.games import Games
from engine.records.replay import game_rules, recorded, replay
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.policy import Tables, new_weights, play_out_by_policy
from engine.rollout.run import play_out
from engine.search.leaves import begin_rollout, end_rollout
from engine.system.jit import kernel

COUNTS = (10, 100, 1000)
"""Numbers of rollouts to compare; 10 and 100 are the first of the 1,000 rollouts from a position"""
SEED = 20160128


@kernel
def _roll_out(boards, weights, tables, replies, record, game, ply, rules, state, results):
    """Make R rollouts from the position after ``ply`` moves of a game.

    Args:
        boards: three positions of the game's size with room for its moves: an empty one, and two to overwrite.
        weights, tables, replies: as for :func:`engine.rollout.policy.play_out_by_policy`, which does not use replies
            here; ``tables`` None = uniformly random moves.
        state: uint64[4], overwritten: the random state.
        results: int8[R], overwritten: 1 = won for the side to move, -1 = lost, 0 = drawn.
    """
    fresh, start, position = boards
    replay(start, fresh, record, game, max(ply - 1, 0), rules)
    size, captured = start.board.meta[META_SIZE], 0
    if ply > 0:
        # The rollout policy has features of the last move's captures.
        move = point_of(np.int64(record.moves[record.offsets[game] + ply - 1]), size)
        captured = play_move(start, move, start.meta[META_TO_MOVE])
    color, played = start.meta[META_TO_MOVE], start.meta[META_N_MOVES]
    last = np.int64(start.moves[played - 1]) if played > 0 else PASS
    copy_position(position, start)
    lead_before = begin_rollout(start)
    for i in range(len(results)):
        copy_board(position.board, start.board)
        limit = 3 * size * size
        if tables is None:
            play_out(position.board, color, state, limit)
        else:
            play_out_by_policy(position.board, weights, tables, replies, 0.0, color, last, captured, state, limit)
        lead = end_rollout(position, lead_before)
        lead = lead if color == BLACK else -lead
        results[i] = 1 if lead > 0.0 else (-1 if lead < 0.0 else 0)


def rollout_values(
    games: Games, rows: np.ndarray, plies: np.ndarray, tables: Tables | None, counts: tuple[int, ...] = COUNTS,
    threads: int = 1, on_progress: Callable[[int], None] | None = None,
) -> np.ndarray:  # fmt: skip
    """Values of positions by rollouts under the games' rules and komi; equal for any number of threads.

    Args:
        rows, plies: int64[P]: each position's game, and the number of moves before it.
        tables: the rollout policy; None = uniformly random moves.
        counts: numbers of rollouts, ascending.
        on_progress: called with the number of positions done since the last call.
    Returns:
        float64[P, len(counts)]: mean result of the first ``counts[i]`` rollouts, -1 to 1 for the side to move.
    """
    own, record, replies = local(), recorded(games), new_last_good_replies()
    rules = game_rules(games, rows, games.territory[rows])
    values = np.zeros((len(rows), len(counts)))

    def work(i: int) -> None:
        size, ply = int(games.size[rows[i]]), int(plies[i])
        if getattr(own, "size", 0) != size or own.room <= ply:
            own.size, own.room = size, max(1024, ply + 1)
            own.boards = tuple(new_position(size, own.room) for _ in range(3))
            own.weights = new_weights(size)
        results = np.zeros(counts[-1], np.int8)
        _roll_out(
            own.boards, own.weights, tables, replies, record, rows[i], ply, rules[i], seed_state(SEED, i), results
        )
        values[i] = [results[:count].mean() for count in counts]
        if on_progress:
            on_progress(1)

    with ThreadPoolExecutor(threads, thread_name_prefix="rollouts") as pool:
        list(pool.map(work, range(len(rows))))
    return values
