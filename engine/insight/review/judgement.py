"""What each move of a game cost: a loss to blame the move for, and the course of the lead for sums over moves.

A move's *loss* is the value of the first choice in the search before it, less the value of the position after it (as in
OGS's reviews). The first choice itself loses nothing, whatever the search after it says, and no loss is negative.

Both values carry the noise of their searches. The game itself shows how much: where the first choice was played, the
difference of its two values is noise alone. In units of the final score's deviation, divided by the square root of the
visits, it is alike all over a game, so its median there is the noise of every other move. No move is blamed for a loss
of less than ``SURE`` times the noise.

A sum of such losses would be biased: noise that is cut off move by move does not cancel, and small losses add up. Sums
are made of a move's *course*: the value of the position before it less that of the position after it, for its player.
Over a game the courses of both players differ by what the lead moved, exactly. Both are shifted by the *drift*, the
mean course of first choices, so that perfect moves lose nothing in the mean. The *mean loss* is the sum of the moves'
courses, without the drift, divided by their number: unbiased, with a 95% interval from the noise of the searches.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from engine.go.geometry import BLACK, WHITE, index_of
from engine.insight.review.turns import MOST_CANDIDATES, Candidate, Turn

KINDS = ("excellent", "great", "good", "inaccuracy", "mistake", "blunder")
UNBLAMED = KINDS.index("good")
"""The worst that a loss within the noise is called"""
POINTS, PERCENT = "points", "percent"
"""Units of losses; percent of the win rate where nothing estimates leads"""
A_POINT = {POINTS: 1.0, PERCENT: 4.0}
"""What stands for a point where moves are weighed"""
THRESHOLDS = {POINTS: (0.2, 0.6, 1.2, 4.0, 10.0), PERCENT: (0.5, 1.0, 2.0, 5.0, 15.0)}
"""Where the next kind begins. Points: those of OGS"""
SURE = 2.0
"""A loss is blamed from this many times its noise on"""
USUAL_NOISE, USUAL_WEIGHT = 0.15, 6
"""The noise that is assumed before a game shows its own, and the number of moves that this counts as"""
NORMAL_MEDIAN = 0.6745
"""The median of a normal variable's size, in deviations"""
STDEV_OF_SIZE = 1.6
"""The final score's deviation where nothing says it: KataGo's networks say 10 to 14 points on 7x7, 30 on 19x19"""
LEAST_STDEV = {POINTS: 2.0, PERCENT: 10.0}
"""Where the end is certain the searches still differ a little"""
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
class Move:
    """A move of a game, as it was judged."""

    number: int
    """from 1"""
    color: int
    point: int
    loss: float | None
    """in the unit of the review, 0 or more; None = the positions around it do not compare"""
    noise: float
    """what ``loss`` must exceed for the move to be blamed: ``SURE`` standard deviations"""
    course: float | None
    """by how much the value moved against the player, of either sign; None = as of ``loss``"""
    winrate_loss: float | None
    """in percent, as ``loss``"""
    is_first_choice: bool
    rank: int | None
    """among the search's candidates, by preference, from 1; None = it is none of the first"""
    policy_rank: int | None
    """among all moves, by the network's probability, from 1"""
    prior: float | None
    difficulty: float
    """points that the network's own moves would lose here in the mean, at most 1"""
    kind: int | None
    """index into ``KINDS``"""

    @property
    def counted(self) -> float:
        """The loss that the move is blamed for: none where it is within the noise."""
        return self.loss if self.loss is not None and self.loss > self.noise else 0.0


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


def unit_of(turns: Sequence[Turn]) -> str:
    """The unit of a game's losses."""
    return POINTS if all(turn.lead_black is not None for turn in turns) else PERCENT


def judged(turns: Sequence[Turn], played: Sequence[tuple[int, int]], size: int,
           thresholds: Sequence[float] | None = None, handicap_moves: int = 0) -> list[Move]:  # fmt: skip
    """Judge all moves of a game.

    Args:
        turns: one for each position, the last after the last move.
        played: colour and point of each move.
        thresholds: five losses that rise, at which the kinds after the first begin; None = those of the unit.
        handicap_moves: number of moves at the beginning that are handicap stones; they are not judged.
    """
    unit = unit_of(turns)
    scale = noise_scale(turns[handicap_moves:], played[handicap_moves:], size)
    moves = [
        _judged(n + 1, color, point, (turns[n], turns[n + 1]), size, unit, scale, thresholds or THRESHOLDS[unit])
        for n, (color, point) in enumerate(played)
    ]
    unjudged = [
        replace(move, loss=None, noise=0.0, course=None, winrate_loss=None, kind=None)
        for move in moves[:handicap_moves]
    ]
    return unjudged + moves[handicap_moves:]


def drift_of(moves: Sequence[Move]) -> float:
    """The mean course of a game's first choices, towards 0 where they are few: that of a move that loses nothing."""
    courses = [move.course for move in moves if move.course is not None and move.is_first_choice]
    return sum(courses) / (USUAL_WEIGHT + len(courses))


def noise_scale(turns: Sequence[Turn], played: Sequence[tuple[int, int]], size: int) -> float:
    """The noise of values, in deviations of the result at one visit; arguments as of :func:`judged`."""
    unit, seen = unit_of(turns), []
    for before, after, (color, point) in zip(turns, turns[1:], played, strict=False):
        if _compares(before, after, color) and before.moves[0].point == point:
            drift = _value(before.moves[0], unit) - _value(after, unit)
            seen.append(abs(drift) / _noise(before, after, size, unit))
    if not seen:
        return USUAL_NOISE
    own = median(seen) / NORMAL_MEDIAN
    return (USUAL_WEIGHT * USUAL_NOISE + len(seen) * own) / (USUAL_WEIGHT + len(seen))


def _judged(number: int, color: int, point: int, around: tuple[Turn, Turn], size: int, unit: str, scale: float,
            thresholds: Sequence[float]) -> Move:  # fmt: skip
    """One move, from the positions around it."""
    before, after = around
    order = [candidate.point for candidate in before.moves]
    # Behind the candidates comes the move that was played, wherever the search has it.
    rank = order.index(point) + 1 if point in order[:MOST_CANDIDATES] else None
    policy_rank, prior = _by_policy(before, point, size)
    loss = course = winrate_loss = kind = None
    noise = 0.0
    if _compares(before, after, color):
        sign = 1.0 if color == BLACK else -1.0
        best, is_first = before.moves[0], rank == 1
        # Rounded first, so that the kind follows from the loss as it is written.
        noise = round(SURE * scale * _noise(before, after, size, unit), 3)
        loss = 0.0 if is_first else round(max(0.0, sign * (_value(best, unit) - _value(after, unit))), 2)
        course = sign * (_value(before, unit) - _value(after, unit))
        gain = 100 * sign * (after.winrate_black - best.winrate_black)
        winrate_loss = 0.0 if is_first else round(max(0.0, -gain), 2)
        kind = kind_of(loss, noise, thresholds)
    return Move(
        number, color, point, loss, noise, course, winrate_loss, rank == 1, rank, policy_rank,
        prior, difficulty(before, color, unit), kind,
    )  # fmt: skip


def kind_of(loss: float, noise: float, thresholds: Sequence[float]) -> int:
    """The kind of a move, an index into ``KINDS``."""
    kind = sum(loss >= threshold for threshold in thresholds)
    return kind if loss > noise else min(kind, UNBLAMED)


def difficulty(turn: Turn, color: int, unit: str) -> float:
    """Points that the network's own candidates would lose in the mean, at most 1 (KataGo's clients weigh moves so)."""
    if not turn.moves:
        return 0.0
    sign = 1.0 if color == BLACK else -1.0
    best = sign * _value(turn.moves[0], unit)
    weights = [max(0.0, move.prior) for move in turn.moves]
    losses = [max(0.0, best - sign * _value(move, unit)) for move in turn.moves]
    whole = sum(weights)
    mean = sum(weight * loss for weight, loss in zip(weights, losses, strict=True)) / whole if whole else 0.0
    return round(min(1.0, mean / A_POINT[unit]), 3)


def _compares(before: Turn, after: Turn, color: int) -> bool:
    """Whether what a move cost can be read off the positions around it: its colour to move, then the other's."""
    return bool(before.moves) and before.to_move == color and after.to_move != color


def _value(of: Turn | Candidate, unit: str) -> float:
    """Black's lead, or Black's win rate in percent."""
    if unit == PERCENT:
        return 100 * of.winrate_black
    return of.lead_black or 0.0


def _noise(before: Turn, after: Turn, size: int, unit: str) -> float:
    """The noise of the difference between a first choice and the position after, at a scale of 1."""
    if unit == PERCENT:
        deviation = 100 * math.sqrt(before.winrate_black * (1 - before.winrate_black))
    else:
        deviation = STDEV_OF_SIZE * size if before.stdev is None else before.stdev
    visits = 1 / max(1, before.moves[0].visits) + 1 / max(1, after.visits)
    return max(deviation, LEAST_STDEV[unit]) * math.sqrt(visits)


def _by_policy(turn: Turn, point: int, size: int) -> tuple[int | None, float | None]:
    """A move's rank and probability before any search."""
    if turn.policy is None:
        found = turn.candidate(point)
        return None, found.prior if found else None
    own = float(turn.policy[int(index_of(point, size))])
    return int((turn.policy > own).sum()) + 1, round(max(0.0, own), 4)


def summary_of(moves: Sequence[Move], size: int, unit: str) -> Summary:
    """Sum a game up.

    Args:
        moves: from :func:`judged`.
        unit: of their losses.
    """
    whole, phases, costly_of, drift = {}, {}, {}, drift_of(moves)
    for color in (BLACK, WHITE):
        own = [move for move in moves if move.color == color]
        parts = ([move for move in own if phase_of(move.number, size) == n] for n in range(len(PHASES)))
        whole[color], costly_of[color] = score_of(own, unit, drift), most_costly(own)
        phases[color] = tuple(score_of(part, unit, drift) for part in parts)
    return Summary(whole, phases, most_costly(moves), costly_of)


def phase_of(number: int, size: int) -> int:
    """The phase that a move is in, an index into ``PHASES``."""
    return sum(number > end * size * size for end in PHASE_ENDS)


def most_costly(moves: Sequence[Move]) -> list[Move]:
    """The moves that cost the most, the worst first; those whose loss is certain, so there may be none."""
    return sorted((move for move in moves if move.counted > 0), key=lambda move: -move.counted)[:MOST_COSTLY]


def score_of(moves: Sequence[Move], unit: str, drift: float) -> Score:
    """How well some moves of one player were played.

    Args:
        drift: of the game, from :func:`drift_of`.
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
