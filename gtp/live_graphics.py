"""Live graphics: the search drawn on GoGui's board while a command runs, by lines on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gtp import gogui_layout
from gtp.info import caption

if TYPE_CHECKING:
    from engine.play.player import Player
    from engine.search.report import Report, Watcher

INTERVAL_S = 0.5
"""Between two drawings; people read no faster"""
FIRST_S = 0.02
"""Before the first one, so that short searches are seen too"""
CLEAR = f"{gogui_layout.LIVE} CLEAR\n"


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
    return gogui_layout.live(
        gogui_layout.shades((to_vertex(point, size), share) for point, share in shares if point != PASS),
        gogui_layout.variation(line),
        f"TEXT {caption(report, color == BLACK)}",
    )
