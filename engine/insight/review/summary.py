"""A game's moves in a few numbers: accuracy for each player and phase, kinds counted, the most costly moves."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.go.geometry import BLACK, WHITE
from engine.insight.review.judgement import A_POINT, KINDS, Move

PHASES = ("opening", "middle game", "endgame")
PHASE_ENDS = (0.14, 0.40)
"""Where the first two phases end, in moves for each point of the board. Source: KaTrain's report"""
KEPT_BY_A_POINT = 0.75
"""What a weighted mean loss of one point leaves of the accuracy. Source: KaTrain's report"""
WEIGHTS = (0.05, 1.0)
"""Least and most that a move weighs"""
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
    mean_loss: float | None
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
    return Summary(
        {color: score_of(own, unit) for color, own in of.items()},
        {
            color: tuple(score_of([move for move in own if phase_of(move.number, size) == n], unit) for n in range(3))
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


def score_of(moves: Sequence[Move], unit: str) -> Score:
    """How well some moves were played."""
    told = [move for move in moves if move.loss is not None]
    kinds = tuple(sum(move.kind == kind for move in told) for kind in range(len(KINDS)))
    if not told:
        return Score(0, None, None, None, None, kinds)
    near = [
        move.is_first_choice
        or (move.counted < NEAR_BEST * A_POINT[unit] and move.rank is not None and move.rank <= FIRST_FEW)
        for move in told
    ]
    return Score(
        len(told),
        round(accuracy_of(told, unit), 1),
        round(sum(move.counted for move in told) / len(told), 2),
        round(sum(move.is_first_choice for move in told) / len(told), 3),
        round(sum(near) / len(told), 3),
        kinds,
    )


def accuracy_of(moves: Sequence[Move], unit: str) -> float:
    """0 to 100: how little was lost, where there was something to lose.

    A position where all candidates are as good weighs little, one where the network's own moves lose much weighs much;
    a move that costs much weighs as much as it costs.
    """
    least, most = WEIGHTS
    losses = [move.counted / A_POINT[unit] for move in moves]
    weights = [min(most, max(least, move.difficulty, loss / 4)) for move, loss in zip(moves, losses, strict=True)]
    mean = sum(weight * loss for weight, loss in zip(weights, losses, strict=True)) / sum(weights)
    accuracy: float = 100 * KEPT_BY_A_POINT**mean
    return accuracy
