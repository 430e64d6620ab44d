"""A finished review: a game, what was found of each position, what each move cost, and words for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.go.geometry import BLACK, WHITE, to_vertex
from engine.go.notation import color_word
from engine.insight.review.game import GameToReview
from engine.insight.review.judgement import KINDS, PERCENT, POINTS, THRESHOLDS, Move, judged, unit_of
from engine.insight.review.summary import Summary, summary_of
from engine.insight.review.turns import Turn
from engine.nets.notices import say_once

NOTHING = "–"
"""In place of a number that there is not"""
WORTH_A_LINE = KINDS.index("inaccuracy")
"""From this kind on a review shows what was better"""


@dataclass(frozen=True)
class Means:
    """What a review was made with."""

    network: str
    """its name; empty = none, rollouts alone"""
    visits: int
    """a position; 0 = as many as fit"""
    seconds: float
    """a position; 0 = as many as it takes"""

    def __str__(self) -> str:
        limits = [f"{self.visits} visits"] if self.visits else []
        limits += [f"{self.seconds:g} seconds"] if self.seconds else []
        return f"{self.network or 'rollouts, no network'}, {' or '.join(limits)} a position"


@dataclass(frozen=True)
class Review:
    """The numbers and texts of one game's review."""

    name: str
    """of the file, without its ending"""
    game: GameToReview
    turns: list[Turn]
    moves: list[Move]
    summary: Summary
    unit: str
    thresholds: tuple[float, ...]
    means: Means

    @property
    def size(self) -> int:
        return self.game.size

    def player(self, color: int) -> str:
        """Name and rank of a player; the colour where the file says none."""
        details = self.game.record.details
        name = details.get("PB" if color == BLACK else "PW", "")
        rank = details.get("BR" if color == BLACK else "WR", "")
        return f"{name} {rank}".strip() or color_name(color)

    @property
    def title(self) -> str:
        """Who played."""
        return f"{self.player(BLACK)} against {self.player(WHITE)}"

    def vertex(self, point: int) -> str:
        """GTP text of a point."""
        return to_vertex(point, self.size)

    def better(self, move: Move, count: int = 1) -> Sequence[list[int]]:
        """Lines that begin with moves better than one that was played, best first; none where it was the first."""
        return [candidate.line for candidate in self.turns[move.number - 1].moves[: move.rank or None]
                if candidate.point != move.point][:count]  # fmt: skip


def review_of(name: str, game: GameToReview, turns: list[Turn], means: Means,
              thresholds: Sequence[float] | None = None) -> Review:  # fmt: skip
    """Judge a game whose positions are all analysed.

    Args:
        thresholds: of losses in points; None = the usual ones. Not used, and a line says so, where losses are percent.
    """
    unit = unit_of(turns)
    if thresholds and unit != POINTS:
        say_once("--thresholds are points: this network gives no score, kinds begin where they usually do")
    used = tuple(thresholds) if thresholds and unit == POINTS else THRESHOLDS[unit]
    moves = judged(turns, game.played, game.size, used, game.handicap_moves)
    return Review(name, game, turns, moves, summary_of(moves, game.size, unit), unit, used, means)


def after_better(review: Review, move: Move) -> str:
    """How the game stands after the first choice in a move's place, as the move's loss is counted."""
    best = review.turns[move.number - 1].moves[0]
    return _standing(best.winrate_black, best.lead_black)


def color_name(color: int) -> str:
    """A colour as sentences name it: ``Black``."""
    return color_word(color).capitalize()


def amount(value: float, unit: str) -> str:
    """A loss in words: ``5.2 points``, or ``12% of the win rate``."""
    if unit == PERCENT:
        return f"{value:.0f}% of the win rate"
    return f"{value:.1f} point{'' if f'{value:.1f}' == '1.0' else 's'}"


def standing(turn: Turn) -> str:
    """How a game stands: ``Black 63.1%, B+4.5``."""
    return _standing(turn.winrate_black, turn.lead_black)


def _standing(winrate_black: float, lead_black: float | None) -> str:
    rate = f"Black {100 * winrate_black:.1f}%"
    return rate if lead_black is None else f"{rate}, {lead_text(lead_black)}"


def with_error(value: float | None, error: float | None, digits: int) -> str:
    """A mean with half of its 95% interval: ``1.32 ± 0.20``; a dash where there is none."""
    return NOTHING if value is None or error is None else f"{value:.{digits}f} ± {error:.{digits}f}"


def lead_text(lead_black: float) -> str:
    """A lead as results are written: ``B+4.5``."""
    if abs(lead_black) < 0.05:
        return "even"
    return f"{'B' if lead_black > 0 else 'W'}+{abs(lead_black):.1f}"
