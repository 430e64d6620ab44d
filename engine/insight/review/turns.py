"""Turns of a game: the analysis of each position, with all numbers from Black's view, and its form as a line of JSON.

As in KataGo's analysis queries, turns are the positions of a game, numbered by the moves before them.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from engine.go.geometry import BLACK, WHITE
from engine.insight.analyses import Analysis

MOST_CANDIDATES = 12
"""Maximum number of a turn's candidates, the best ones; the played move is kept besides"""
MOST_MOVES_OF_A_LINE = 12
DECIDED = 0.9
"""Win rate above which a game counts as decided, if it stays above it to the end"""


class Candidate(NamedTuple):
    """A move that the search visited."""

    point: int
    visits: int
    winrate_black: float
    """0 to 1"""
    lead_black: float | None
    """in points, komi included; None = the network has no score"""
    prior: float
    line: list[int]
    """PV as points, this move first"""


@dataclass(frozen=True)
class Turn:
    """The analysis of one position of a game, from Black's view."""

    number: int
    """number of moves before the position"""
    to_move: int
    visits: int
    winrate_black: float
    lead_black: float | None
    stdev: float | None
    """standard deviation of the final score, in points"""
    moves: list[Candidate]
    """best first, at most ``MOST_CANDIDATES`` and the played move"""
    ownership_black: np.ndarray | None
    """float16[N*N] in policy order, 1 = Black's"""
    policy: np.ndarray | None
    """float16[N*N+1] in policy order: the network's probabilities, -1 = illegal"""

    def candidate(self, point: int) -> Candidate | None:
        """The candidate at a point; None = the search did not visit it."""
        return next((move for move in self.moves if move.point == point), None)


class Decision(NamedTuple):
    """Where a game was decided, by the win rates of its turns."""

    winner: int
    """colour of the player ahead in the last turn"""
    ahead: int
    """number of the first turn from which the winner's win rate stays above 50% to the end"""
    decided: int | None
    """number of the first turn from which it stays above ``DECIDED`` to the end; None = open to the end"""


def decision_of(turns: Sequence[Turn]) -> Decision | None:
    """Where a game was decided; None if its last turn is even."""
    last = turns[-1].winrate_black
    if last == 0.5:
        return None
    winner = BLACK if last > 0.5 else WHITE
    rates = [turn.winrate_black if winner == BLACK else 1 - turn.winrate_black for turn in turns]

    def since(limit: float) -> int | None:
        below = [turn.number for turn, rate in zip(turns, rates, strict=True) if rate <= limit]
        first = below[-1] + 1 if below else 0
        return first if first < len(turns) else None

    ahead = since(0.5)
    assert ahead is not None
    return Decision(winner, ahead, since(DECIDED))


def turn_of(number: int, to_move: int, found: Analysis, played: int | None) -> Turn:
    """The turn of an analysed position.

    Args:
        number: number of moves before the position.
        played: point of the game's next move; None = the game ended here.
    """
    report, raw, owners = found.report, found.raw, found.ownership_black
    sign = 1.0 if to_move == BLACK else -1.0
    visited = [move for move in report.moves if move.visits > 0]
    kept = [move for n, move in enumerate(visited) if n < MOST_CANDIDATES or move.point == played]
    return Turn(
        number,
        to_move,
        report.visits,
        _rate(sign, report.value_stm),
        _lead(sign, report.score_stm),
        None if (stdev := found.score_stdev()) is None else round(stdev, 2),
        [
            Candidate(
                move.point, move.visits, _rate(sign, move.value_stm), _lead(sign, move.score_stm), round(move.prior, 4),
                move.pv[:MOST_MOVES_OF_A_LINE],
            )
            for move in kept
        ],
        None if owners is None else np.round(owners.reshape(-1), 2).astype(np.float16),
        None if raw.policy is None else np.nan_to_num(raw.policy, nan=-1.0).astype(np.float16),
    )  # fmt: skip


def _rate(sign: float, value_stm: float) -> float:
    """Black's win rate, 0 to 1, from the value for the side to move; ``sign`` = 1 if Black is to move, else -1."""
    return round(0.5 + 0.5 * sign * max(-1.0, min(1.0, value_stm)), 4)


def _lead(sign: float, score_stm: float | None) -> float | None:
    """Black's lead in points, from the lead of the side to move; ``sign`` as for :func:`_rate`."""
    return None if score_stm is None else round(sign * score_stm, 2)


def to_line(turn: Turn) -> str:
    """A turn as a line of JSON; :func:`from_line` is the inverse."""
    values: dict[str, Any] = dict(vars(turn))
    for name in ("ownership_black", "policy"):
        values[name] = _packed(values[name])
    return json.dumps(values, separators=(",", ":"))


def from_line(text: str) -> Turn:
    """A turn from its line of JSON.

    Raises:
        ValueError: the line is damaged.
    """
    try:
        values = json.loads(text)
        for name in ("ownership_black", "policy"):
            values[name] = _unpacked(values[name])
        values["moves"] = [Candidate(*move) for move in values["moves"]]
        return Turn(**values)
    except (ValueError, TypeError, KeyError, zlib.error) as error:
        raise ValueError("not a line of an analysed position") from error


def _packed(values: np.ndarray | None) -> str | None:
    """An array as text: its float16 values, compressed by zlib, in base64."""
    return None if values is None else base64.b64encode(zlib.compress(values.astype("<f2").tobytes())).decode()


def _unpacked(text: str | None) -> np.ndarray | None:
    """The float16 array of a text that :func:`_packed` made."""
    return None if text is None else np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f2").astype(np.float16)
