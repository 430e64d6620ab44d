"""A game's moves in a few numbers: accuracy for each player and phase, kinds counted, the most costly moves.

The mean loss is unbiased: the sum of the moves' courses, without the drift, divided by their number. Black's sum less
White's is by how much the lead moved over the game. Its 95% interval follows from the noise of the searches.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.go.geometry import BLACK, WHITE
from engine.insight.review.judgement import A_POINT, KINDS, SURE, Move, drift_of

PHASES = ("opening", "middle game", "endgame")
PHASE_ENDS = (0.14, 0.40)
"""Where the first two phases end, in moves for each point of the board. Source: KaTrain's report"""
KEPT_BY_A_POINT = 0.75
"""The part of the accuracy that a mean loss of one point leaves. Source: KaTrain's report"""
DEVIATIONS = 1.96
"""Standard deviations on either side of a 95% interval"""
NEAR_BEST, FIRST_FEW = 0.5, 5
"""A move among the first few that loses less points than this is as good as the best"""
MOST_COSTLY = 3


@dataclass(frozen=True)
class Score:
    """How one player did in one phase of a game."""

    moves: int
    """that were judged"""
    accuracy: float | None
    """0 to 100; None = no moves"""
    accuracies: tuple[float, float] | None
    """its 95% interval"""
    mean_loss: float | None
    """unbiased, so that it may be negative"""
    mean_loss_error: float | None
    """half of its 95% interval"""
    first_choices: float | None
    """share of moves that were the engine's own"""
    near_best: float | None
    """share of moves as good as that"""
    kinds: tuple[int, ...]
    """moves by kind"""


@dataclass(frozen=True)
class Summary:
    """A game in numbers."""

    whole: dict[int, Score]
    """by colour"""
    phases: dict[int, tuple[Score, ...]]
    """by colour, then as in ``PHASES``"""
    costly: list[Move]
    """the most costly moves of the game, the worst first"""
    costly_of: dict[int, list[Move]]
    """those of each player"""


def summary_of(moves: Sequence[Move], size: int, unit: str) -> Summary:
    """Sum a game up.

    Args:
        moves: from :func:`engine.insight.review.judgement.judged`.
        unit: of their losses.
    """
    of = {color: [move for move in moves if move.color == color] for color in (BLACK, WHITE)}
    drift = drift_of(moves)
    return Summary(
        {color: score_of(own, unit, drift) for color, own in of.items()},
        {
            color: tuple(
                score_of([move for move in own if phase_of(move.number, size) == n], unit, drift) for n in range(3)
            )
            for color, own in of.items()
        },
        most_costly(moves),
        {color: most_costly(own) for color, own in of.items()},
    )


def phase_of(number: int, size: int) -> int:
    """The phase that a move is in, an index into ``PHASES``."""
    return sum(number > end * size * size for end in PHASE_ENDS)


def most_costly(moves: Sequence[Move]) -> list[Move]:
    """The moves that cost the most, the worst first; those whose loss is certain, so there may be none."""
    return sorted((move for move in moves if move.counted > 0), key=lambda move: -move.counted)[:MOST_COSTLY]


def score_of(moves: Sequence[Move], unit: str, drift: float) -> Score:
    """How well some moves of one player were played.

    Args:
        drift: of the game, from :func:`engine.insight.review.judgement.drift_of`.
    """
    told = [move for move in moves if move.loss is not None]
    kinds = tuple(sum(move.kind == kind for move in told) for kind in range(len(KINDS)))
    if not told:
        return Score(0, None, None, None, None, None, None, kinds)
    mean = sum(move.course or 0.0 for move in told) / len(told) - drift
    # Each position's noise enters one move of a player alone, so a player's moves are independent.
    error = DEVIATIONS * math.sqrt(sum((move.noise / SURE) ** 2 for move in told)) / len(told)
    near = [
        move.is_first_choice
        or (move.counted < NEAR_BEST * A_POINT[unit] and move.rank is not None and move.rank <= FIRST_FEW)
        for move in told
    ]
    return Score(
        len(told),
        round(accuracy_of(mean, unit), 1),
        (round(accuracy_of(mean + error, unit), 1), round(accuracy_of(mean - error, unit), 1)),
        round(mean, 2),
        round(error, 2),
        round(sum(move.is_first_choice for move in told) / len(told), 3),
        round(sum(near) / len(told), 3),
        kinds,
    )


def accuracy_of(mean_loss: float, unit: str) -> float:
    """0 to 100: how little was lost a move."""
    accuracy: float = 100 * KEPT_BY_A_POINT ** (max(0.0, mean_loss) / A_POINT[unit])
    return accuracy
