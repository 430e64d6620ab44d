"""GoGui's graphics: the layout of boards and graphics commands, and the search drawn while a command runs.

Points come as vertices. Source: GoGui's manual, "Analyze Commands" and "Live Graphics".
"""

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gtp.info import caption

if TYPE_CHECKING:
    from engine.play.player import Player
    from engine.search.report import Report, Watcher

LIVE = "gogui-gfx:"
"""Begins graphics on standard error; they end with an empty line"""


def board(words: Iterable[str], size: int) -> str:
    """Words as a board, the top row first, in columns of one width; an empty word becomes ``""``."""
    cells = [word or '""' for word in words]
    width = max(map(len, cells))
    rows = [" ".join(cell.rjust(width) for cell in cells[row : row + size]) for row in range(0, len(cells), size)]
    return "\n" + "\n".join(rows)


def pairs(labels: Iterable[tuple[str, str]]) -> str:
    """Vertices with their labels, in one line."""
    return " ".join(f"{vertex} {label}" for vertex, label in labels)


def graphic(*commands: str) -> str:
    """Graphics commands, one a line; those without anything to draw are left out."""
    return "\n".join(command for command in commands if " " in command.rstrip())


def shades(shares: Iterable[tuple[str, float]]) -> str:
    """Commands that colour points by a share, 0 to 1: pale yellow to red."""
    return "\n".join(f"COLOR #ff{_fade(255, share):02x}{_fade(160, share):02x} {vertex}" for vertex, share in shares)


def _fade(channel: int, share: float) -> int:
    """A colour channel that vanishes as the share grows; small shares still differ."""
    return round(channel * (1.0 - math.sqrt(share)))


def labels(words: Iterable[tuple[str, str]]) -> str:
    """The command that writes words on points."""
    return f"LABEL {pairs(words)}"


def points(shape: str, vertices: str) -> str:
    """The command that marks points, given in one line: TRIANGLE, SQUARE, CIRCLE or MARK."""
    return f"{shape} {vertices}"


def variation(moves: Iterable[tuple[str, str]]) -> str:
    """The command that shows moves, each a colour (b or w) and a vertex, as numbered stones."""
    return f"VAR {pairs(moves)}"


def live(*commands: str) -> str:
    """What to write to standard error to show graphics while a command runs."""
    return f"{LIVE}\n{graphic(*commands)}\n\n"


INTERVAL_S = 0.5
"""Between two drawings; people read no faster"""
FIRST_S = 0.02
"""Before the first one, so that short searches are seen too"""
CLEAR = f"{LIVE} CLEAR\n"


@contextmanager
def live_graphics(player: "Player", color: int) -> Iterator["Watcher | None"]:
    """A watcher that draws a search for a colour; None if the options ask for none. The end of the block clears it.

    Threads: it draws in the thread of the search's caller, the command thread.
    """
    if not player.options.live_graphics:
        yield None
        return
    from engine.search.report import Watcher

    is_drawn = False

    def draw(report: "Report") -> None:
        nonlocal is_drawn
        is_drawn = True
        _write(_drawing(report, player.game.size, color))

    try:
        yield Watcher(draw, INTERVAL_S, FIRST_S)
    finally:
        if is_drawn:
            # GoGui may read what was drawn last only after the answer, and would draw it over the next position.
            _write(CLEAR)


def _write(text: str) -> None:
    """Send graphics; where they are not read, the search goes on."""
    with suppress(OSError):
        print(text, end="", file=sys.stderr, flush=True)


def _drawing(report: "Report", size: int, color: int) -> str:
    """Shares of the visits, and the line the search expects."""
    from engine.go.geometry import BLACK, PASS, other, to_vertex

    shares = [(move.point, move.visits / max(1, report.visits)) for move in report.moves]
    sides = " bw"[color] + " bw"[other(color)]
    line = [(sides[n % 2], to_vertex(point, size)) for n, point in enumerate(report.moves[0].pv)]
    return live(
        shades((to_vertex(point, size), share) for point, share in shares if point != PASS),
        variation(line),
        f"TEXT {caption(report, color == BLACK)}",
    )
