"""What the page is told: the state of the game, and the live search, as JSON.

Points are policy indices, row by row from the top left, and -1 for a pass. Colours are ``black`` and ``white``.
"""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.go.board import META_KO_COLOR, META_KO_POINT
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, index_of, on_board_points, point_of
from engine.go.points import color_word
from engine.insight.raw_outputs import owner_letters
from engine.live.record import Node
from engine.search.report import MoveReport, Report

if TYPE_CHECKING:
    from gtp.web.table import Table

UPDATES_S = 0.05
"""Interval of events of the live search: 20 a second"""
MAX_MOVES = 32
"""Maximum number of moves in an event"""
MAX_LINE = 16
"""Maximum number of moves of a principal variation in an event"""
NO_REVIEW = {"state": "none", "text": "", "url": None}
FIRST_S = 0.2
"""Time after which a rate is known"""
SIGNS = ".bw"


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


def state_of(table: "Table") -> dict[str, Any]:
    """The state of the game: what every tab shows."""
    game, settings, node = table.game, table.settings, table.node
    size, board = game.size, game.position.board
    moves = [one for one in node.line() if one.move]
    ko = int(board.meta[META_KO_POINT])
    is_ko = bool(ko) and int(board.meta[META_KO_COLOR]) == game.to_move
    is_counted = table.phase != "play" and node is table.end
    count = table.count if is_counted else None
    return {
        "rev": table.rev,
        "id": table.id,
        "size": size,
        "rules": game.rules.name,
        "komi": game.komi,
        "handicap": game.handicap,
        "players": {color_word(color): table.player(color) for color in (BLACK, WHITE)},
        "phase": table.phase,
        "result": table.result or None,
        "board": "".join(SIGNS[board.color[point]] for point in on_board_points(size)),
        "toMove": color_word(BLACK if table.placing else game.to_move),
        "last": index(moves[-1].move[1], size) if moves and moves[-1].move else None,
        "ko": index(ko, size) if is_ko else None,
        "captures": {color_word(color): game.captures(color) for color in (BLACK, WHITE)},
        "node": node.id,
        "number": len(moves),
        "path": [row(one, size) for one in table.line if one.move or (one.parent and one.sets_up)],
        "branches": [row(one, size) for one in node.children] if len(node.children) > 1 else [],
        "atEnd": node is table.line[-1],
        "engine": table.opponent.state(),
        "network": table.network,
        "clock": table.clock.state() if table.clock else None,
        "dead": sorted(index(point, size) for point in table.dead) if is_counted else [],
        "owners": count.owners if count else None,
        "count": {"black": count.black, "white": count.white, "text": count.text} if count else None,
        "graph": graph_of(table),
        "help": dict(table.opponent.help),
        "level": settings.level,
        "levels": table.levels,
        "sizes": table.sizes,
        "placing": table.placing,
        "said": table.said,
        "warning": table.warning or None,
        "review": table.reviews.get(table.id, NO_REVIEW),
    }


def row(node: Node, size: int) -> list[Any]:
    """A node as the page shows it: id, colour, index; an empty colour for a change of stones without a move."""
    if node.move is None:
        return [node.id, "", None]
    return [node.id, SIGNS[node.move[0]], index(node.move[1], size)]


def graph_of(table: "Table") -> list[list[Any]]:
    """Number of moves, Black's win rate and Black's lead of the positions of the current line that have values."""
    found, number = [], 0
    for node in table.line:
        number += node.move is not None
        if node.id in table.opponent.values:
            found.append([number, *table.opponent.values[node.id]])
    return found


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
        """Args:
        node: id of the position's node.
        publish: takes each event.
        """
        self._size, self._to_move, self.node = game.size, game.to_move, node
        self._publish = publish
        self._visits, self._since_s, self._before = -1, 0.0, 0
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
        size, owners = self._size, report.ownership_black
        best = report.moves[0] if report.moves else None
        event = {
            "node": self.node,
            "visits": report.visits,
            "winrateBlack": self.values[0],
            "leadBlack": self.values[1],
            "moves": [self._move(one, best) for one in report.moves[:MAX_MOVES]],
            "owners": owner_letters(owners) if owners is not None and len(owners) == size * size else None,
            "visitsPerSecond": round((report.visits - self._before) / seconds) if seconds > FIRST_S else 0,
        }
        self._publish(encoded(event if thoughts is None else {**event, "thinking": thoughts}))

    def _move(self, move: MoveReport, best: MoveReport | None) -> dict[str, Any]:
        lost = None
        if best is not None and best.score_stm is not None and move.score_stm is not None:
            lost = round(max(0.0, best.score_stm - move.score_stm), 2)
        return {
            "i": index(move.point, self._size),
            "visits": move.visits,
            "prior": round(move.prior, 4),
            "winrateBlack": winrate_black(move.value_stm, self._to_move),
            "leadBlack": lead_black(move.score_stm, self._to_move),
            "lost": lost,
            "pv": [index(point, self._size) for point in move.pv[:MAX_LINE]],
        }
