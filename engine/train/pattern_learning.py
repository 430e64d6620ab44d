"""Learning a pattern policy: stochastic ascent of the log-likelihood of the moves people played.

The policy is a linear softmax: a move's score is the sum of the weights of its features. For each position the gradient
of a weight is what the played move has of its feature, less what the policy expects. AdaGrad scales the steps, so that
patterns seen once a game and once in a thousand games learn at their own speeds; the rate falls to 0 linearly.

Source: AlphaGo, Methods, "Rollout policy"; Duchi, Hazan and Singer, "Adaptive subgradient methods" (2011).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from engine.go.board import META_SIZE
from engine.go.geometry import BLACK, PASS, point_of
from engine.records.games import Games
from engine.rollout.softmax import consider, weigh
from engine.rollout.vocabulary import Numbers
from engine.system.jit import kernel
from engine.train.pattern_counts import advance, new_replay, restart

RATE = 0.25
FIRST_SQUARE = 1.0
"""What the sum of squared gradients starts from: the first steps are no longer than the rate."""
NEGLIGIBLE = 1e-4
"""Moves less probable than this teach nothing."""
STAGES = 6
STAGE_MOVES = 50
"""Moves of a stage of the game, for which accuracy is given apart; the last stage has all later moves."""


@kernel
def _step(moves, i, gradient, theta, squares, rate):
    """Move the weights of one move's features."""
    for j in range(moves.n_features[i]):
        feature = moves.feature[i, j]
        squares[feature] += gradient * gradient
        theta[feature] += rate * gradient / math.sqrt(squares[feature])


@kernel
def _learn_game(replay, numbers, game, theta, squares, rate):
    """Learn from every move of a game."""
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
    """Add every ``stride``-th position of all games to the metrics; ``first`` positions came before this game."""
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
    """How well a pattern policy predicts moves, by stage of the game; each float64[STAGES], sums over positions."""

    positions: np.ndarray
    hits: np.ndarray
    """the played move has the largest weight"""
    log_likelihood: np.ndarray
    """sum over positions whose move is considered at all"""
    considered: np.ndarray

    def as_dict(self) -> dict[str, float | int]:
        """Metrics by name: ``top1`` as a fraction, overall and by stage, ``log_likelihood`` a position."""
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
    """Learn from games of one board size one by one; yields after each, so that a caller may show progress or stop.

    Args:
        order: games in the order to learn from them.
        theta, squares: float32 and float64[weights], changed in place.
        rates: float64[len(order)].
    """
    replay = new_replay(int(games.size[0]))
    for step, game in enumerate(order.tolist()):
        restart(replay)
        moves = games.moves[games.offsets[game] : games.offsets[game + 1]]
        _learn_game(replay, numbers, moves, theta, squares, rates[step])
        yield


def evaluate_patterns(games: Games, numbers: Numbers, theta: np.ndarray, positions: int = 0) -> PatternMetrics:
    """Metrics on the moves of games of one board size.

    Args:
        numbers: the features' places in ``theta``, float32[weights].
        positions: roughly the number of positions to look at, spread over all games; 0 = all.
    """
    metrics = np.zeros((4, STAGES))
    total = int(games.offsets[-1])
    stride = max(1, total // positions) if positions else 1
    replay = new_replay(int(games.size[0]))
    for game in range(len(games.size)):
        restart(replay)
        first, stop = int(games.offsets[game]), int(games.offsets[game + 1])
        _evaluate_game(replay, numbers, games.moves[first:stop], first, theta, stride, metrics)
    return PatternMetrics(*metrics)
