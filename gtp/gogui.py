"""GoGui's graphics: the layout of boards and graphics commands, and the search drawn while a command runs.

Points are given as GTP vertices. Source: GoGui's manual, "Analyze Commands" and "Live Graphics".
"""

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gtp.host import Host
from gtp.info import caption

if TYPE_CHECKING:
    from engine.search.report import Report, Watcher

LIVE = "gogui-gfx:"
"""First word of live graphics on standard error, which end with an empty line"""
CLEAR = f"{LIVE} CLEAR\n"
INTERVAL_S = 0.5
"""Seconds between two drawings, so that people can read them"""
FIRST_S = 0.02
"""Seconds before the first drawing; few, so that short searches are drawn too"""


def board(words: Iterable[str], size: int) -> str:
    """Lay out words as a board, the top row first, in columns of one width; an empty word becomes ``""``."""
    cells = [word or '""' for word in words]
    width = max(map(len, cells))
    rows = [" ".join(cell.rjust(width) for cell in cells[row : row + size]) for row in range(0, len(cells), size)]
    return "\n" + "\n".join(rows)


def pairs(labels: Iterable[tuple[str, str]]) -> str:
    """Pairs of a vertex and its label as one line, the format of ``LABEL`` and ``VAR``."""
    return " ".join(f"{vertex} {label}" for vertex, label in labels)


def graphic(*commands: str) -> str:
    """Join graphics commands such as ``LABEL`` and ``VAR``, one a line, without those that lack arguments."""
    return "\n".join(command for command in commands if " " in command.rstrip())


def shades(shares: Iterable[tuple[str, float]]) -> str:
    """Commands that colour points by a share from 0 (pale yellow) to 1 (red), on a square-root scale."""

    def fade(channel: int, share: float) -> int:
        return round(channel * (1.0 - math.sqrt(share)))

    return "\n".join(f"COLOR #ff{fade(255, share):02x}{fade(160, share):02x} {vertex}" for vertex, share in shares)


@contextmanager
def live_graphics(host: Host, color: int) -> Iterator["Watcher | None"]:
    """Context manager: a watcher that draws a search for a colour, or None if live graphics are off.

    Leaving the block clears the board.

    Threads: drawings are written in the command thread, which runs the search.
    """
    if not host.draws_live:
        yield None
        return
    from engine.search.report import Watcher

    player, is_drawn = host.player, False

    def draw(report: "Report") -> None:
        nonlocal is_drawn
        is_drawn = True
        _write(f"{LIVE}\n{_drawing(report, player.game.size, color)}\n\n")

    try:
        yield Watcher(draw, INTERVAL_S, FIRST_S)
    finally:
        if is_drawn:
            # GoGui may read the last drawing after the answer, and would draw it over the next position.
            _write(CLEAR)


def _write(text: str) -> None:
    """Write graphics to standard error, ignoring write errors: a closed standard error must not stop the search."""
    with suppress(OSError):
        print(text, end="", file=sys.stderr, flush=True)


def _drawing(report: "Report", size: int, color: int) -> str:
    """GoGui's commands for a report: shares of the visits as colours, the principal variation, and a caption."""
    from engine.go.geometry import BLACK, PASS, other, to_vertex

    shares = [(to_vertex(move.point, size), move.visits / max(1, report.visits)) for move in report.moves
              if move.point != PASS]  # fmt: skip
    sides = " bw"[color] + " bw"[other(color)]
    line = ((sides[n % 2], to_vertex(point, size)) for n, point in enumerate(report.moves[0].pv))
    return graphic(shades(shares), f"VAR {pairs(line)}", f"TEXT {caption(report, color == BLACK)}")
