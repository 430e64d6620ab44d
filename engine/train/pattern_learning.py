"""Training of a pattern policy: stochastic gradient ascent on the log-likelihood of recorded moves.

The policy is a linear softmax: a move's logit is the sum of the weights of its features. The gradient of a weight is
the count of its feature in the move played, minus the count's expectation under the policy. AdaGrad scales the steps,
so that rare and frequent patterns learn at their own speeds; the rate falls to 0 linearly.

Source: AlphaGo, Methods, "Rollout policy"; Duchi, Hazan and Singer, "Adaptive subgradient methods" (2011).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.go.board import META_N_EMPTY, META_SIZE, META_STRIDE, Board, clear, new_board, play
from engine.go.geometry import BLACK, PASS, point_of
from engine.records.games import Games
from engine.rollout.patterns import (
    DIAMOND_IMAGES,
    MOST_NAKADE,
    N_CODES,
    SQUARE_IMAGES,
    all_states,
    coarse_code,
    context_of,
    diamond_code,
    folded,
    for_mover,
    is_sensible_code,
    nakade_pattern,
    square_code,
    step_to,
)
from engine.rollout.policy import Weights, changed_points, new_weights
from engine.rollout.softmax import LAST_CAPTURED, LAST_MOVE, Candidates, consider, manhattan, new_candidates, weigh
from engine.rollout.vocabulary import CELL_BITS, N_CELLS, N_NAKADE, Numbers, Vocabulary, folded_nakade, folded_responses
from engine.system.jit import kernel

LEAST_SEEN = 100
"""Minimum number of occurrences for a 3x3 code to have a weight of its own; else a fine code uses the weight of its
coarse code, and a coarse code that of UNSEEN"""
LEAST_PLAYED = 16
"""Minimum number of occurrences for a response or diamond to have a weight"""
LEAST_NAKADE = 2
"""Minimum number of occurrences for a nakade pattern to have a weight"""


class Replay(NamedTuple):
    """A game being replayed, with cell states updated incrementally."""

    board: Board
    weights: Weights
    moves: Candidates
    """candidate moves and the last moves; shares the cell states of ``weights``"""


def _replays(games: Games, order: Iterable[int]) -> Iterator[tuple[Replay, np.ndarray]]:
    """For each game in ``order``, a replay at the empty board and the game's moves; games have one board size.

    It is the same replay every time, cleared for the next game.
    """
    size = int(games.size[0])
    weights = new_weights(size)
    replay = Replay(new_board(size), weights, new_candidates(size)._replace(cell=weights.cell))
    for game in order:
        clear(replay.board)
        all_states(replay.board, weights.cell)
        replay.moves.last[:] = 0
        yield replay, games.moves[games.offsets[game] : games.offsets[game + 1]]


@kernel
def advance(replay, point, color):
    """Play the next move of the game, ``point`` (padded, or PASS) of ``color``, and update the cell states."""
    last = replay.moves.last
    last[1] = last[0]
    last[0] = point
    last[2] = play(replay.board, point, color)
    if point != PASS:
        changed_points(replay.weights, replay.board, point, color, last[2])


@dataclass
class Counts:
    """How often patterns occur in games, symmetric patterns counted separately."""

    seen: np.ndarray = field(default_factory=lambda: np.zeros(N_CODES, np.int64))
    """int64[2**24]: number of occurrences of each 3x3 code around an empty point, coded as if Black were to move; the
    commonest code occurs 16,000 times a game"""
    nakade: np.ndarray = field(default_factory=lambda: np.zeros(N_NAKADE, np.int32))
    """int32[8192]: number of times that each nakade pattern was played"""
    responses: list[np.ndarray] = field(default_factory=list)
    """for each shard, int64: context and cell of every response played"""
    diamonds: list[np.ndarray] = field(default_factory=list)
    """for each shard, int64: diamond code of every move played"""


@kernel
def _count_game(replay, moves, seen, nakade, responses, diamonds, used):
    """Add the patterns of one game to counts.

    Args:
        moves: uint16[M], policy indices, Black first; the first pass ends the game.
        seen, nakade: as in :class:`Counts`.
        responses, diamonds: int64, updated: new entries are written behind those in use.
        used: int64[2], updated: number of entries in use of responses and of diamonds.
    """
    board, cell, stride = replay.board, replay.weights.cell, replay.board.meta[META_STRIDE]
    for ply in range(len(moves)):
        point, color = point_of(np.int64(moves[ply]), board.meta[META_SIZE]), BLACK + ply % 2
        if point == PASS:
            return
        for i in range(board.meta[META_N_EMPTY]):
            seen[for_mover(square_code(cell, np.int64(board.empty[i]), stride), color)] += 1
        diamonds[used[1]] = for_mover(diamond_code(cell, point, stride), color)
        used[1] += 1
        last, captured = replay.moves.last[LAST_MOVE], replay.moves.last[LAST_CAPTURED]
        if last != PASS and manhattan(point, last, stride) <= 2:
            for i in range(N_CELLS):
                if last + step_to(i, stride) == point:
                    responses[used[0]] = (context_of(cell, board, last, color) << CELL_BITS) | i
                    used[0] += 1
        if 0 < captured <= MOST_NAKADE:
            for i in range(board.meta[META_N_EMPTY] - captured, board.meta[META_N_EMPTY]):
                if board.empty[i] == point:
                    nakade[nakade_pattern(board, point, captured)] += 1
        advance(replay, point, color)


def count_games(games: Games, counts: Counts) -> Iterator[None]:
    """Add a shard of games of one board size to counts; yields after each game, so that callers can show progress."""
    responses, diamonds = np.zeros((2, len(games.moves)), np.int64)
    used = np.zeros(2, np.int64)
    for replay, moves in _replays(games, range(len(games.size))):
        _count_game(replay, moves, counts.seen, counts.nakade, responses, diamonds, used)
        yield
    counts.responses.append(responses[: used[0]])
    counts.diamonds.append(diamonds[: used[1]])


def _frequent(codes: np.ndarray, least: int, times: np.ndarray | None = None) -> np.ndarray:
    """int64: the distinct codes that occur at least ``least`` times, ascending.

    Args:
        times: number of occurrences of each entry of ``codes``; None = 1.
    """
    unique, inverse = np.unique(codes, return_inverse=True)
    return unique[np.bincount(inverse, times, len(unique)) >= least].astype(np.int64)


def choose_vocabulary(counts: Counts, is_tree: bool) -> Vocabulary:
    """The patterns that occur often enough to have weights; diamonds for the tree policy only (``is_tree``)."""
    codes = np.flatnonzero(counts.seen)
    codes = codes[[is_sensible_code(code) for code in codes.tolist()]]
    seen = counts.seen[codes]
    responses, diamonds = np.concatenate(counts.responses), np.concatenate(counts.diamonds)
    nakade = np.flatnonzero(counts.nakade)
    return Vocabulary(
        fine=_frequent(folded(codes, SQUARE_IMAGES), LEAST_SEEN, seen),
        coarse=_frequent(folded(coarse_code.py_func(codes), SQUARE_IMAGES), LEAST_SEEN, seen),
        responses=_frequent(folded_responses(responses >> CELL_BITS, responses & 15), LEAST_PLAYED),
        nakade=_frequent(folded_nakade()[nakade], LEAST_NAKADE, counts.nakade[nakade]),
        diamonds=_frequent(folded(diamonds, DIAMOND_IMAGES), LEAST_PLAYED) if is_tree else np.zeros(0, np.int64),
    )


RATE = 0.25
FIRST_SQUARE = 1.0
"""Initial value of AdaGrad's sums of squared gradients, which limits the first steps to the learning rate"""
NEGLIGIBLE = 1e-4
"""A move that was not played has no part in the gradient if its probability is at most this"""
STAGES = 6
STAGE_MOVES = 50
"""Number of moves in a stage of the game in :class:`PatternMetrics`; the last stage contains all later moves"""


@kernel
def _step(moves, i, gradient, theta, squares, rate):
    """AdaGrad's step of the weights ``theta`` of the features of move ``i``, from the gradient of its logit."""
    for j in range(moves.n_features[i]):
        feature = moves.feature[i, j]
        squares[feature] += gradient * gradient
        theta[feature] += rate * gradient / math.sqrt(squares[feature])


@kernel
def _learn_game(replay, numbers, game, theta, squares, rate):
    """Train the weights ``theta`` on every move of a game up to the first pass; arguments as of :func:`learn`."""
    moves, size = replay.moves, replay.board.meta[META_SIZE]
    for ply in range(len(game)):
        point, color = point_of(np.int64(game[ply]), size), BLACK + ply % 2
        if point == PASS:
            return
        count = consider(moves, replay.board, numbers, color)
        played = moves.place[point]
        if played >= 0:
            weigh(moves, count, theta)
            for i in range(count):
                if i == played:
                    _step(moves, i, 1.0 - moves.probability[i], theta, squares, rate)
                elif moves.probability[i] > NEGLIGIBLE:
                    _step(moves, i, -moves.probability[i], theta, squares, rate)
        advance(replay, point, color)


@kernel
def _evaluate_game(replay, numbers, game, first, theta, stride, metrics):
    """Add some positions of a game to the metrics: every ``stride``-th of all positions of the shard.

    Args:
        game: uint16[M]: moves as policy indices.
        first: number of positions in the games before this one.
        metrics: float64[4, STAGES], updated: fields of :class:`PatternMetrics`.
    """
    moves, size = replay.moves, replay.board.meta[META_SIZE]
    for ply in range(len(game)):
        point, color = point_of(np.int64(game[ply]), size), BLACK + ply % 2
        if point == PASS:
            return
        if (first + ply) % stride == 0:
            stage = min(ply // STAGE_MOVES, STAGES - 1)
            count = consider(moves, replay.board, numbers, color)
            played = moves.place[point]
            metrics[0, stage] += 1
            if played >= 0:
                best = weigh(moves, count, theta)
                metrics[1, stage] += best == played
                metrics[2, stage] += math.log(moves.probability[played])
                metrics[3, stage] += 1
        advance(replay, point, color)


class PatternMetrics(NamedTuple):
    """Move prediction of a pattern policy: sums over positions, float64[STAGES] by stage of the game."""

    positions: np.ndarray
    hits: np.ndarray
    """number of positions in which the move played has the highest probability"""
    log_likelihood: np.ndarray
    """sum of the log-probabilities of the moves played, over the ``considered`` positions"""
    considered: np.ndarray
    """number of positions in which the move played is among the candidates of the policy"""

    def as_dict(self) -> dict[str, float | int]:
        """Metrics by name: ``positions``, ``top1`` and ``considered`` as fractions, ``top1`` also by stage, and
        ``log_likelihood`` per considered position.
        """
        result = {
            "positions": int(self.positions.sum()),
            "top1": float(self.hits.sum() / max(1.0, self.positions.sum())),
            "log_likelihood": float(self.log_likelihood.sum() / max(1.0, self.considered.sum())),
            "considered": float(self.considered.sum() / max(1.0, self.positions.sum())),
        }
        for stage in np.flatnonzero(self.positions):
            first, last = stage * STAGE_MOVES + 1, (stage + 1) * STAGE_MOVES
            name = f"top1_moves_{first}_to_{last}" if stage < STAGES - 1 else f"top1_moves_from_{first}"
            result[name] = float(self.hits[stage] / self.positions[stage])
        return result


def learn(
    games: Games, order: np.ndarray, numbers: Numbers, theta: np.ndarray, squares: np.ndarray, rates: np.ndarray
) -> Iterator[None]:
    """Train on games of one board size; yields after each game, so that callers can show progress or stop.

    Args:
        order: indices of the games in the order of training.
        numbers: indices of the features in ``theta``.
        theta: float32[weights], changed in place: weights of the features.
        squares: float64[weights], changed in place: AdaGrad's sums of squared gradients.
        rates: float64[len(order)]: learning rate for each game.
    """
    for rate, (replay, moves) in zip(rates, _replays(games, order.tolist()), strict=True):
        _learn_game(replay, numbers, moves, theta, squares, rate)
        yield


def evaluate_patterns(games: Games, numbers: Numbers, theta: np.ndarray, positions: int = 0) -> PatternMetrics:
    """Measure how well a pattern policy predicts the moves of games of one board size.

    Args:
        numbers: indices of the features in ``theta``.
        theta: float32[weights]: weights of the features.
        positions: approximate number of positions to measure, spread over all games; 0 = all.
    """
    metrics = np.zeros((4, STAGES))
    stride = max(1, int(games.offsets[-1]) // positions) if positions else 1
    for first, (replay, moves) in zip(games.offsets.tolist(), _replays(games, range(len(games.size))), strict=False):
        _evaluate_game(replay, numbers, moves, first, theta, stride, metrics)
    return PatternMetrics(*metrics)
