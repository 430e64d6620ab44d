"""A finished review: a game, the analyses of its positions, the losses of its moves, and texts about these."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.go.geometry import BLACK, WHITE, to_vertex
from engine.go.points import color_word
from engine.insight.review.games import GameToReview
from engine.insight.review.losses import (
    KINDS,
    PERCENT,
    POINTS,
    THRESHOLDS,
    Move,
    Performance,
    Summary,
    move_losses,
    summary_of,
    unit_of,
)
from engine.insight.review.reasons import reasons_of
from engine.insight.review.turns import DECIDED, Candidate, Decision, Turn, decision_of
from engine.nets.notices import say_once

NOTHING = "–"
"""Text for an unknown number"""
WORTH_A_LINE = KINDS.index("inaccuracy")
"""Mildest kind of move for which a review adds better moves as variations"""


@dataclass(frozen=True)
class AnalysisSettings:
    """Network and limits of the searches of a review."""

    network: str
    """name; empty = no network, rollouts alone"""
    visits: int
    """for each position; 0 = no limit"""
    seconds: float
    """for each position; 0 = no limit"""

    def __str__(self) -> str:
        limits = [f"{self.visits} visits"] if self.visits else []
        limits += [f"{self.seconds:g} seconds"] if self.seconds else []
        return f"{self.network or 'rollouts, no network'}, {' or '.join(limits)} a position"


@dataclass(frozen=True)
class Review:
    """The review of one game."""

    name: str
    """name of its files, without ending"""
    game: GameToReview
    turns: list[Turn]
    moves: list[Move]
    summary: Summary
    unit: str
    thresholds: tuple[float, ...]
    settings: AnalysisSettings
    decision: Decision | None
    """where the game was decided; None = its last turn is even"""
    reasons: dict[int, str]
    """by number of the move: why it lost, as a sentence, if the data prove a reason"""

    @property
    def size(self) -> int:
        return self.game.record.size

    def player(self, color: int) -> str:
        """Name and rank of a player; the colour if the file names neither."""
        name, rank = ("PB", "BR") if color == BLACK else ("PW", "WR")
        details = self.game.record.details
        return f"{details.get(name, '')} {details.get(rank, '')}".strip() or color_word(color).capitalize()

    @property
    def title(self) -> str:
        """The names of both players."""
        return f"{self.player(BLACK)} against {self.player(WHITE)}"

    def about(self) -> list[str]:
        """Board, rules, komi, handicap, length, result and date of the game, a short text for each that is known."""
        game, record = self.game, self.game.record
        differs = record.komi not in (None, game.komi)
        said = [f"{self.size}x{self.size}", f"{game.rules.name} rules"]
        said.append(f"komi {game.komi:g}" + (f" (the file says {record.komi:g})" if differs else ""))
        said += [f"{game.handicap} handicap stones"] if game.handicap else []
        said += [f"{len(self.moves)} moves"]
        said += [f"result {record.result}"] if record.result else []
        return said + ([record.details["DT"]] if "DT" in record.details else [])

    def vertex(self, point: int) -> str:
        """GTP vertex of a point."""
        return to_vertex(point, self.size)

    def vertices(self, points: Iterable[int]) -> str:
        """GTP vertices of a line of moves, separated by spaces."""
        return " ".join(map(self.vertex, points))

    def words(self, move: Move) -> str:
        """A move as it is named in sentences: ``Black D4``."""
        return f"{color_word(move.color).capitalize()} {self.vertex(move.point)}"

    def amount(self, loss: float) -> str:
        """A loss in words: ``5.2 points``, or ``12% of the win rate``."""
        if self.unit == PERCENT:
            return f"{loss:.0f}% of the win rate"
        return f"{loss:.1f} point{'' if f'{loss:.1f}' == '1.0' else 's'}"

    def compared(self, move: Move) -> str:
        """What a blamed move and the first choice lead to: ``after C6 B+16.4, after C7 B+20.6``."""
        best, after = self.turns[move.number - 1].moves[0], self.turns[move.number]
        values: list[tuple[int, Turn | Candidate]] = [(best.point, best), (move.point, after)]
        return ", ".join(f"after {self.vertex(at)} {lead_text(of.lead_black) or standing(of)}" for at, of in values)

    def decided(self, color: int) -> tuple[str, int | None]:
        """Where the game was decided for a player, as text, and the number of the move that the text ends with.

        The number is None if the text is complete without a move.
        """
        found, limit = self.decision, f"above {100 * DECIDED:.0f}%"
        if found is None:
            return "even at the end", None
        if color == found.winner and found.decided is None:
            return "ahead, open to the end", None
        text, number = ("behind", found.ahead) if color != found.winner else (limit, found.decided)
        return (f"{text} from move", number) if number else (f"{text} from the start", None)

    def better(self, move: Move, count: int = 1) -> Sequence[list[int]]:
        """PVs of the candidates that rank before the played move, best first, at most ``count``."""
        candidates = self.turns[move.number - 1].moves[: move.rank or None]
        return [candidate.line for candidate in candidates if candidate.point != move.point][:count]


def review_of(name: str, game: GameToReview, turns: list[Turn], settings: AnalysisSettings,
              thresholds: Sequence[float] | None = None) -> Review:  # fmt: skip
    """The review of a game whose positions are all analysed.

    Args:
        thresholds: minimum loss of each of ``KINDS`` after the first, in points; None = ``THRESHOLDS``. If the game's
            losses are in percent, the thresholds are ignored with a notice.
    """
    unit = unit_of(turns)
    if thresholds and unit != POINTS:
        say_once("--thresholds: ignored, since they are points and this network has no score")
    used = tuple(thresholds) if thresholds and unit == POINTS else THRESHOLDS[unit]
    size = game.record.size
    moves = move_losses(turns, game.played, size, used, game.handicap_moves)
    summary, reasons = summary_of(moves, size, unit), reasons_of(game, turns, moves)
    return Review(name, game, turns, moves, summary, unit, used, settings, decision_of(turns), reasons)


def standing(of: Turn | Candidate) -> str:
    """Win rate and, if known, lead as text: ``Black 63.1%, B+4.5``."""
    rate = f"Black {100 * of.winrate_black:.1f}%"
    return rate if of.lead_black is None else f"{rate}, {lead_text(of.lead_black)}"


def lead_text(lead_black: float | None) -> str:
    """A lead in the form of results: ``B+4.5``; ``even`` below 0.05, empty if it is unknown."""
    if lead_black is None:
        return ""
    if abs(lead_black) < 0.05:
        return "even"
    return f"{'B' if lead_black > 0 else 'W'}+{abs(lead_black):.1f}"


def mean_loss(of: Performance) -> str:
    """A mean loss with half the width of its 95% interval: ``1.32 ± 0.20``; a dash if it is unknown."""
    return NOTHING if of.mean_loss is None else f"{of.mean_loss:.2f} ± {of.mean_loss_error:.2f}"
