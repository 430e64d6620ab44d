"""Live graphics: the search drawn on GoGui's board while a command runs, by lines on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gtp import gogui_layout as pictures
from gtp.info import caption

if TYPE_CHECKING:
    from engine.play.player import Player
    from engine.search.report import Report, Watcher

INTERVAL_S = 0.5
"""Between two drawings; people read no faster"""
FIRST_S = 0.02
"""Before the first one, so that short searches are seen too"""
CLEAR = f"{pictures.LIVE} CLEAR\n"


@contextmanager
def graphics(player: "Player", color: int) -> Iterator["Watcher | None"]:
    """Who draws a search for a colour, if the player's options ask for it; the board is cleared at the block's end."""
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
    """Send graphics; who does not look at them must not stop the search."""
    with suppress(OSError):
        print(text, end="", file=sys.stderr, flush=True)


def _drawing(report: "Report", size: int, color: int) -> str:
    """Shares of the visits, and the line the search expects."""
    from engine.go.geometry import BLACK, PASS, other, to_vertex

    shares = [(move.point, move.visits / max(1, report.visits)) for move in report.moves]
    sides = " bw"[color] + " bw"[other(color)]
    line = [(sides[n % 2], to_vertex(point, size)) for n, point in enumerate(report.moves[0].pv)]
    return pictures.live(
        pictures.shades((to_vertex(point, size), share) for point, share in shares if point != PASS),
        pictures.variation(line),
        f"TEXT {caption(report, color == BLACK)}",
    )
