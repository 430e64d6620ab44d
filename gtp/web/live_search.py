"""The live search as the page shows it: an event for each report, as JSON.

Points are policy indices, row by row from the top left, and -1 for a pass.
"""

import functools
import json
import time
from collections.abc import Callable
from typing import Any

from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, index_of, on_board_points, point_of
from engine.insight.raw_outputs import owner_letters
from engine.search.report import MoveReport, Report

UPDATES_S = 0.05
"""Interval of events of the live search: 20 a second"""
OWNERS_S = 0.25
"""Interval of new ownership in these events: it changes slowly, and costs more than the rest of an event"""
MAX_LIVE_MOVES, MAX_MOVES = 12, 32
"""Maximum number of moves in an event, which a page shows, and in the analysis of one position"""
MAX_LINE = 16
"""Maximum number of moves of a principal variation in an event"""
FIRST_S = 0.2
"""Time after which a rate is known"""


def encoded(value: Any) -> bytes:
    """A value as one line of JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def index(point: int, size: int) -> int:
    """The page's index of a point, -1 for a pass."""
    return -1 if point == PASS else int(index_of(point, size))


def point_from(at: int, size: int) -> int:
    """The point of the page's index.

    Raises:
        ValueError: not a point of the board, nor -1.
    """
    if not -1 <= at < size * size:
        raise ValueError(f"point is {at}, expected -1 to {size * size - 1}")
    return PASS if at == -1 else int(point_of(at, size))


def values_of(report: Report, to_move: int) -> tuple[float | None, float | None]:
    """Black's win rate, 0 to 1, and Black's lead in points, rounded; None = unknown."""
    return winrate_black(report.value_stm, to_move), lead_black(report.score_stm, to_move)


def winrate_black(value_stm: float, to_move: int) -> float:
    """Black's win rate, 0 to 1."""
    return round((1.0 + (value_stm if to_move == BLACK else -value_stm)) / 2.0, 4)


def lead_black(score_stm: float | None, to_move: int) -> float | None:
    """Black's lead in points; None = unknown."""
    return None if score_stm is None else round(score_stm if to_move == BLACK else -score_stm, 2)


class LiveSearch:
    """Makes events of the reports on one position. Threads: the engine's."""

    def __init__(self, game: Game, node: int, publish: Callable[[bytes], None]) -> None:
        """Prepare the events of a position's search.

        Args:
            node: id of the position's node.
            publish: takes each event.
        """
        self._size, self._to_move, self.node = game.size, game.to_move, node
        self._publish = publish
        self._visits, self._since_s, self._before = -1, 0.0, 0
        self._owners: str | None = None
        self.values: tuple[float | None, float | None] = None, None

    def on_report(self, report: Report, thoughts: dict[str, Any] | None = None) -> None:
        """Send an event, unless there is nothing new.

        Args:
            thoughts: from :meth:`engine.insight.thinking.Thinking.now`.
        """
        if report.visits == self._visits and thoughts is None:
            return
        if self._visits < 0:
            self._since_s, self._before = time.perf_counter(), report.visits
        self._visits = report.visits
        seconds = time.perf_counter() - self._since_s
        self.values = values_of(report, self._to_move)
        found = told(report, self._size, self._to_move, MAX_LIVE_MOVES)
        # Of the last report that has it; in each event, since a slow tab gets only the latest.
        self._owners = found["owners"] or self._owners
        event = {
            "node": self.node,
            **found,
            "owners": self._owners,
            "visitsPerSecond": round((report.visits - self._before) / seconds) if seconds > FIRST_S else 0,
        }
        self._publish(encoded(event if thoughts is None else {**event, "thinking": thoughts}))


def told(report: Report, size: int, to_move: int, most: int = MAX_MOVES) -> dict[str, Any]:
    """A report as the page shows it, with ``most`` moves at most."""
    best, owners = report.moves[0] if report.moves else None, report.ownership_black
    winrate, lead = values_of(report, to_move)
    return {
        "visits": report.visits,
        "winrateBlack": winrate,
        "leadBlack": lead,
        "moves": [_move(one, best, indices_of(size), to_move) for one in report.moves[:most]],
        "owners": owner_letters(owners) if owners is not None and len(owners) == size * size else None,
    }


@functools.cache
def indices_of(size: int) -> dict[int, int]:
    """The page's index of each point and of the pass, for whole lines of moves."""
    return {PASS: -1} | {point: index for index, point in enumerate(on_board_points(size).tolist())}


def _move(move: MoveReport, best: MoveReport | None, indices: dict[int, int], to_move: int) -> dict[str, Any]:
    lost = None
    if best is not None and best.score_stm is not None and move.score_stm is not None:
        lost = round(max(0.0, best.score_stm - move.score_stm), 2)
    return {
        "i": indices[move.point],
        "visits": move.visits,
        "prior": round(move.prior, 4),
        "winrateBlack": winrate_black(move.value_stm, to_move),
        "leadBlack": lead_black(move.score_stm, to_move),
        "lost": lost,
        "pv": [indices[point] for point in move.pv[:MAX_LINE]],
    }
