"""Evaluations of each point of a position, as arrays that the GTP commands for GoGui turn into graphics."""

import time
from typing import NamedTuple

import numpy as np

from engine.config import SearchOptions
from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE, Board
from engine.go.geometry import BLACK, PASS, index_of, on_board_points
from engine.go.ladder import ladder_planes, new_ladder_scratch
from engine.go.position import META_N_MOVES, Position, is_legal_move
from engine.inference.server import NetworkFailed
from engine.insight.raw_outputs import PositionQuery
from engine.play.factory import patterns_of, tables_of
from engine.play.player import Player
from engine.rollout.patterns import all_states
from engine.rollout.policy import FACTOR_BITS, begin, clear_responses, list_responses, new_weights
from engine.rollout.softmax import consider, new_candidates, weigh

PATIENCE_S = 10.0
"""Longest wait for the network's policy"""


class Policy(NamedTuple):
    """Policy and win rate of the side to move, without a search."""

    probabilities: np.ndarray
    """float64[N*N+1] in policy order, the pass last; 0 = illegal"""
    win: float
    """win probability of the side to move; nan = unknown, without a network or value head"""


def policy(player: Player, color: int, symmetry: int) -> Policy:
    """The policy of the player's network under one symmetry; without a network the pattern tree policy.

    Raises:
        ValueError: the network failed, or did not answer in time or before an interruption; one line.
    Threads: as for :class:`Player`; pondering may continue meanwhile.
    """
    server, encoder = player.server, player.encoder
    if server is None or encoder is None or "policy" not in server.spec.heads:
        return Policy(_tree_policy(player.game.position, color, player.search_options), float("nan"))
    deadline_s = time.perf_counter() + PATIENCE_S
    try:
        query = PositionQuery(server, encoder, player.position_for(color), symmetry)
        found = query.outputs_unless(player.interrupted, deadline_s)
    except NetworkFailed as error:
        raise ValueError(str(error)) from error
    if found.policy is None:
        raise ValueError(f"network {server.spec.name} has not answered")
    win = float("nan") if found.value_stm is None else (1.0 + found.value_stm) / 2.0
    return Policy(np.nan_to_num(found.policy), win)


def rollout_probabilities(position: Position, color: int, options: SearchOptions) -> np.ndarray:
    """Probabilities of the next move of a rollout, float64[N*N+1] in policy order, the pass last."""
    tables, board = tables_of(options), position.board
    size, last = int(board.meta[META_SIZE]), _last_move(position, 1)
    weights = new_weights(size)
    begin(weights, board, tables)
    drawn = weights.weight[:, color - BLACK].astype(np.int64)
    count = clear_responses(weights)
    if last != PASS:
        # 0 captured stones, as in a search, whose root does not know the captures of the last move.
        count = list_responses(weights, board, tables, last, color, 0)
    for point in weights.response[:count]:
        drawn[point] = (drawn[point] * weights.factor[point]) >> FACTOR_BITS
    if board.meta[META_KO_COLOR] == color:
        drawn[board.meta[META_KO_POINT]] = 0
    return _normalised(np.append(drawn[on_board_points(size)], 0))


def _tree_policy(position: Position, color: int, options: SearchOptions) -> np.ndarray:
    """Probabilities of the pattern tree policy, float64[N*N+1] in policy order, the pass last."""
    patterns, board = patterns_of(options), position.board
    size = int(board.meta[META_SIZE])
    moves = new_candidates(size)
    all_states(board, moves.cell)
    moves.last[:] = _last_move(position, 1), _last_move(position, 2), 0
    count = int(consider(moves, board, patterns.numbers, color))
    probabilities = np.zeros(size * size + 1)
    if count:
        weigh(moves, count, patterns.theta)
    for point, probability in zip(moves.point[:count], moves.probability[:count], strict=True):
        if is_legal_move(position, point, color):
            probabilities[index_of(point, size)] = probability
    return _normalised(probabilities)


def _last_move(position: Position, back: int) -> int:
    """The last move for ``back`` = 1, the move before it for 2; PASS if there are fewer moves."""
    n_moves = int(position.meta[META_N_MOVES])
    return int(position.moves[n_moves - back]) if n_moves >= back else PASS


def _normalised(weights: np.ndarray) -> np.ndarray:
    """Weights, the pass last, divided by their sum; if all are 0, the pass gets probability 1."""
    if not weights.any():
        weights = np.append(np.zeros(len(weights) - 1), 1)
    return weights / weights.sum()


def liberties(board: Board) -> np.ndarray:
    """int16[N*N] in policy order: liberties of the chain on each point, 0 on empty points."""
    points = on_board_points(int(board.meta[META_SIZE]))
    heads = board.head[points]
    return np.where(heads > 0, board.libs[heads], 0)


def ladders(board: Board, color: int) -> tuple[list[int], list[int]]:
    """Points where a colour captures by a ladder, and points where it escapes from one (:mod:`engine.go.ladder`)."""
    size = int(board.meta[META_SIZE])
    captures, escapes = np.zeros(size * size, np.uint8), np.zeros(size * size, np.uint8)
    ladder_planes(board, color, new_ladder_scratch(size), captures, escapes)
    points = on_board_points(size)
    return points[captures == 1].tolist(), points[escapes == 1].tolist()
