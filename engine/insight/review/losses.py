"""Losses of a game's moves, the noise of these losses, and each player's unbiased mean loss and accuracy.

A move's *loss* is the value of the first choice in the search before it, minus the value of the position after it (as
in OGS's reviews). The first choice itself has loss 0, whatever the search after it finds, and no loss is negative.

Both values have search noise, which is estimated from the game itself: if the first choice was played, the difference
of its two values is noise alone. In units of the standard deviation of the final score divided by the square root of
the visits, noise is the same all over a game, so the median over these moves is the noise of all moves. A move is
blamed only for a loss above ``SURE`` times its noise.

A sum of such losses would be biased, since noise that is cut off at 0 move by move does not cancel. Sums use a move's
*course*, the value of the position before it minus that of the position after it, for its player, of either sign. Over
a game the courses of both players differ by exactly the change of the lead. The *drift*, the mean course of first
choices, is subtracted, so that perfect moves have mean 0. The *mean loss* is the mean course minus the drift: unbiased,
with a 95% interval from the noise of the searches.

A move's *consequence* is its loss weighted by how open the game was (:func:`openness_of`): four points in a game that
is decided teach nothing. A player's *lessons* are the moves of the largest consequence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from engine.go.geometry import BLACK, WHITE, index_of
from engine.go.phases import PHASES, phase_of
from engine.insight.review.turns import MOST_CANDIDATES, Candidate, Turn
from engine.pictures.candidates import THRESHOLDS as POINTS_LOST

KINDS = ("excellent", "great", "good", "inaccuracy", "mistake", "blunder")
UNBLAMED = KINDS.index("good")
"""Worst kind that a move gets if its loss is within the noise"""
POINTS, PERCENT = "points", "percent"
"""Units of losses: points of the lead or, for networks without a score head, percent of the win rate"""
A_POINT = {POINTS: 1.0, PERCENT: 4.0}
"""By unit: the loss that counts as much as one point"""
THRESHOLDS = {POINTS: POINTS_LOST, PERCENT: (0.5, 1.0, 2.0, 5.0, 15.0)}
"""By unit: minimum loss of each of ``KINDS`` after the first. Source of those in points: OGS"""
SURE = 2.0
"""A loss is blamed on its move if it exceeds this many standard deviations of its noise"""
USUAL_NOISE, USUAL_WEIGHT = 0.15, 6
"""Prior of :func:`noise_scale`, and the number of moves whose evidence has the same weight as the prior"""
NORMAL_MEDIAN = 0.6745
"""Median of the absolute value of a normal variable, in standard deviations"""
STDEV_OF_SIZE = 1.6
"""Standard deviation of the final score, in points per line of the board, if a turn has no estimate. Source: KataGo's
networks, which give 10 to 14 points on 7x7, 30 on 19x19"""
LEAST_STDEV = {POINTS: 2.0, PERCENT: 10.0}
"""By unit: lower bound of the standard deviation of a result; searches differ a little even if it is certain"""
KEPT_BY_A_POINT = 0.75
"""Each point of mean loss multiplies the accuracy by this. Source: KaTrain's report"""
DEVIATIONS = 1.96
"""Half the width of a 95% interval, in standard deviations"""
NEAR_BEST, FIRST_FEW = 0.5, 5
"""A move is near the best if it loses fewer points than the first number, and its rank among the search's candidates is
at most the second number"""
MOST_COSTLY = 3
LESSONS = 3
"""Maximum number of a player's lessons"""


@dataclass(frozen=True)
class Move:
    """A move of a game, rated by its loss."""

    number: int
    """from 1"""
    color: int
    point: int
    loss: float | None
    """in the unit of the review, 0 or more; None = unknown: a handicap stone, or colours that do not alternate"""
    noise: float
    """loss above which the move is blamed: ``SURE`` standard deviations of the loss's noise"""
    course: float | None
    """value of the position before the move minus that after it, from the player's view; None = unknown, as ``loss``"""
    winrate_loss: float | None
    """loss of win rate in percentage points; None = unknown, as ``loss``"""
    is_first_choice: bool
    rank: int | None
    """rank among the search's candidates, from 1; None = not among the first ``MOST_CANDIDATES``"""
    policy_rank: int | None
    """rank among all moves by the network's policy, from 1; None = no policy"""
    prior: float | None
    difficulty: float
    """expected loss of a move drawn from the policy in this position, in points, at most 1"""
    kind: int | None
    """index into ``KINDS``; None = unknown, as ``loss``"""
    openness: float
    """weight of the loss in ``consequence``, 0 to 1: :func:`openness_of`; 1 where losses are percent of the win rate"""

    @property
    def counted(self) -> float:
        """The loss that the move is blamed for: 0 if it is within the noise."""
        return self.loss if self.loss is not None and self.loss > self.noise else 0.0

    @property
    def consequence(self) -> float:
        """``counted`` weighted by ``openness``."""
        return self.openness * self.counted


@dataclass(frozen=True)
class Performance:
    """Statistics of one player's moves in a game or a phase of it; None = no moves with a known loss."""

    moves: int
    """number of moves with a known loss"""
    accuracy: float | None
    """0 to 100; 100 = no mean loss (:func:`accuracy_of`)"""
    accuracies: tuple[float, float] | None
    """95% interval of the accuracy"""
    mean_loss: float | None
    """mean loss of a move in the unit of the review, estimated without bias, so it may be negative"""
    mean_loss_error: float | None
    """half the width of the mean loss's 95% interval"""
    first_choices: float | None
    """share of moves that were the search's first choice"""
    near_best: float | None
    """share of moves near the best; see ``NEAR_BEST``"""
    kinds: tuple[int, ...]
    """number of moves of each of ``KINDS``"""


@dataclass(frozen=True)
class Summary:
    """Statistics of a game's moves, by player and phase."""

    whole: dict[int, Performance]
    """by colour: statistics of the player's moves in the whole game"""
    phases: dict[int, tuple[Performance, ...]]
    """by colour: statistics of the player's moves in each of ``PHASES``"""
    costly: list[Move]
    """the moves of the game that cost most by ``Move.counted``, their loss if it exceeds the noise; the worst first"""
    costly_of: dict[int, list[Move]]
    """by colour: each player's moves that cost most, likewise"""
    lessons: dict[int, list[Move]]
    """by colour: the up to ``LESSONS`` moves of each player with the largest ``Move.consequence``, the largest first"""


def unit_of(turns: Sequence[Turn]) -> str:
    """The unit of a game's losses: points if all turns have a lead, else percent."""
    return POINTS if all(turn.lead_black is not None for turn in turns) else PERCENT


def move_losses(turns: Sequence[Turn], played: Sequence[tuple[int, int]], size: int,
           thresholds: Sequence[float] | None = None, handicap_moves: int = 0) -> list[Move]:  # fmt: skip
    """Losses of all moves of a game.

    Args:
        turns: one for each position: before each move, and after the last.
        played: colour and point of each move.
        thresholds: minimum loss of each of ``KINDS`` after the first, ascending; None = ``THRESHOLDS``.
        handicap_moves: number of moves up to the last handicap stone; their losses are unknown.
    """
    unit = unit_of(turns)
    scale = noise_scale(turns[handicap_moves:], played[handicap_moves:], size)
    used = thresholds or THRESHOLDS[unit]
    return [
        _move_loss(
            n + 1, color, point, (turns[n], turns[n + 1]), size, unit, scale, used if n >= handicap_moves else None
        )
        for n, (color, point) in enumerate(played)
    ]


def drift_of(moves: Sequence[Move]) -> float:
    """Mean course of a game's moves that were first choices, shrunk towards 0 if these are few."""
    courses = [move.course for move in moves if move.course is not None and move.is_first_choice]
    return sum(courses) / (USUAL_WEIGHT + len(courses))


def noise_scale(turns: Sequence[Turn], played: Sequence[tuple[int, int]], size: int) -> float:
    """Standard deviation of the noise of a game's losses, as a multiple of :func:`_noise`.

    It is estimated from the moves that were first choices. Arguments as for :func:`move_losses`.
    """
    unit, seen = unit_of(turns), []
    for before, after, (color, point) in zip(turns, turns[1:], played, strict=False):
        if _compares(before, after, color) and before.moves[0].point == point:
            drift = _value(before.moves[0], unit) - _value(after, unit)
            seen.append(abs(drift) / _noise(before, after, size, unit))
    if not seen:
        return USUAL_NOISE
    own = median(seen) / NORMAL_MEDIAN
    return (USUAL_WEIGHT * USUAL_NOISE + len(seen) * own) / (USUAL_WEIGHT + len(seen))


def _move_loss(number: int, color: int, point: int, around: Sequence[Turn], size: int, unit: str, scale: float,
               thresholds: Sequence[float] | None) -> Move:  # fmt: skip
    """Rate a move by the analyses before and after it (``around``); without ``thresholds`` its loss is unknown."""
    before, after = around
    order = [candidate.point for candidate in before.moves]
    # The played move is kept after the candidates, even if it is not among the best.
    rank = order.index(point) + 1 if point in order[:MOST_CANDIDATES] else None
    policy_rank, prior = _by_policy(before, point, size)
    loss = course = winrate_loss = kind = None
    noise, openness = 0.0, 1.0
    if thresholds is not None and _compares(before, after, color):
        sign = 1.0 if color == BLACK else -1.0
        best, is_first = before.moves[0], rank == 1
        # Rounded before the kind is chosen, so that the kind agrees with the reported loss.
        noise = round(SURE * scale * _noise(before, after, size, unit), 3)
        loss = 0.0 if is_first else round(max(0.0, sign * (_value(best, unit) - _value(after, unit))), 2)
        course = sign * (_value(before, unit) - _value(after, unit))
        gain = 100 * sign * (after.winrate_black - best.winrate_black)
        winrate_loss = 0.0 if is_first else round(max(0.0, -gain), 2)
        kind = kind_of(loss, noise, thresholds)
        if unit == POINTS:
            openness = round(openness_of(best.winrate_black, after.winrate_black), 3)
    return Move(
        number, color, point, loss, noise, course, winrate_loss, rank == 1, rank, policy_rank,
        prior, difficulty(before, color, unit), kind, openness,
    )  # fmt: skip


def kind_of(loss: float, noise: float, thresholds: Sequence[float]) -> int:
    """The kind of a move with this loss and noise, an index into ``KINDS``."""
    kind = sum(loss >= threshold for threshold in thresholds)
    return kind if loss > noise else min(kind, UNBLAMED)


def openness_of(best: float, played: float) -> float:
    """How open the game was at a move: 4 w (1 - w) for the win rate w closest to 50% between two win rates.

    It is 1 if the move takes the win rate past 50%, 0.36 at 10% or 90%, and 0.04 at 1% or 99%.

    Args:
        best, played: win rate, 0 to 1, after the first choice and after the move played, of the same side.
    """
    nearest = min(max(0.5, min(best, played)), max(best, played))
    return 4 * nearest * (1 - nearest)


def difficulty(turn: Turn, color: int, unit: str) -> float:
    """Mean loss of the candidates, weighted by their priors, in points, at most 1. Source: KaTrain's complexity"""
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
    """Whether a move's loss is known: its colour is to move before, the opponent after, and moves were searched."""
    return bool(before.moves) and before.to_move == color and after.to_move != color


def _value(of: Turn | Candidate, unit: str) -> float:
    """The value in ``unit``: Black's lead in points, or Black's win rate in percent."""
    if unit == PERCENT:
        return 100 * of.winrate_black
    return of.lead_black or 0.0


def _noise(before: Turn, after: Turn, size: int, unit: str) -> float:
    """Scale of the noise of a move's loss: the result's standard deviation times sqrt(1 / A + 1 / B).

    A = visits of the first choice before the move, B = visits of the position after it.
    """
    if unit == PERCENT:
        deviation = 100 * math.sqrt(before.winrate_black * (1 - before.winrate_black))
    else:
        deviation = STDEV_OF_SIZE * size if before.stdev is None else before.stdev
    visits = 1 / max(1, before.moves[0].visits) + 1 / max(1, after.visits)
    return max(deviation, LEAST_STDEV[unit]) * math.sqrt(visits)


def _by_policy(turn: Turn, point: int, size: int) -> tuple[int | None, float | None]:
    """A move's rank, from 1, and probability in the network's policy; without a policy None and the search's prior."""
    if turn.policy is None:
        found = turn.candidate(point)
        return None, found.prior if found else None
    own = float(turn.policy[int(index_of(point, size))])
    return int((turn.policy > own).sum()) + 1, round(max(0.0, own), 4)


def summary_of(moves: Sequence[Move], size: int, unit: str) -> Summary:
    """Statistics of a game's moves.

    Args:
        moves: from :func:`move_losses`.
        unit: unit of the moves' losses.
    """
    whole, phases, costly_of, lessons, drift = {}, {}, {}, {}, drift_of(moves)
    for color in (BLACK, WHITE):
        own = [move for move in moves if move.color == color]
        parts = ([move for move in own if phase_of(move.number, size) == n] for n in range(len(PHASES)))
        whole[color], costly_of[color] = performance_of(own, unit, drift), most_costly(own)
        phases[color] = tuple(performance_of(part, unit, drift) for part in parts)
        lessons[color] = lessons_of(own)
    return Summary(whole, phases, most_costly(moves), costly_of, lessons)


def most_costly(moves: Sequence[Move]) -> list[Move]:
    """The up to ``MOST_COSTLY`` moves with the largest ``counted``, the worst first; none within the noise."""
    return sorted((move for move in moves if move.counted > 0), key=lambda move: -move.counted)[:MOST_COSTLY]


def lessons_of(moves: Sequence[Move]) -> list[Move]:
    """The up to ``LESSONS`` moves with the largest ``consequence``, the largest first; none within the noise."""
    return sorted((move for move in moves if move.consequence > 0), key=lambda move: -move.consequence)[:LESSONS]


def performance_of(moves: Sequence[Move], unit: str, drift: float) -> Performance:
    """Statistics of some moves of one player.

    Args:
        drift: :func:`drift_of` all moves of the game.
    """
    rated = [move for move in moves if move.loss is not None]
    kinds = tuple(sum(move.kind == kind for move in rated) for kind in range(len(KINDS)))
    if not rated:
        return Performance(0, None, None, None, None, None, None, kinds)
    mean = sum(move.course or 0.0 for move in rated) / len(rated) - drift
    # Each position's noise affects one move of a player alone, so the noises of a player's moves are independent.
    error = DEVIATIONS * math.sqrt(sum((move.noise / SURE) ** 2 for move in rated)) / len(rated)
    near = [
        move.is_first_choice
        or (move.counted < NEAR_BEST * A_POINT[unit] and move.rank is not None and move.rank <= FIRST_FEW)
        for move in rated
    ]
    return Performance(
        len(rated),
        round(accuracy_of(mean, unit), 1),
        (round(accuracy_of(mean + error, unit), 1), round(accuracy_of(mean - error, unit), 1)),
        round(mean, 2),
        round(error, 2),
        round(sum(move.is_first_choice for move in rated) / len(rated), 3),
        round(sum(near) / len(rated), 3),
        kinds,
    )


def accuracy_of(mean_loss: float, unit: str) -> float:
    """Accuracy, 0 to 100, for a mean loss in ``unit``."""
    accuracy: float = 100 * KEPT_BY_A_POINT ** (max(0.0, mean_loss) / A_POINT[unit])
    return accuracy
