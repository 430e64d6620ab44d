"""The candidate moves of a search on a board, each in the colour of what it loses, as the page of ``keima play`` has
them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from engine.go.geometry import EMPTY
from engine.pictures.boards import board, centre, circle, stone

THRESHOLDS = (0.2, 0.6, 1.2, 4.0, 10.0)
"""Points lost from which a candidate has the next colour, ``--k1`` to ``--k5``; ``help.js`` has the same"""
PERCENT_A_POINT = 4.0
"""Percent of the win rate that count as one point, for networks without leads"""


class Mark(NamedTuple):
    """A candidate on the board."""

    point: int
    """policy index of its point"""
    points_lost: float | None
    """points lost against the best move; None = unknown"""
    win_rate_lost: float
    """win rate lost against the best move, 0 to 1"""

    @property
    def text(self) -> str:
        """The loss in points, or in percent of the win rate."""
        if self.points_lost is None:
            return f"{100.0 * self.win_rate_lost:.0f}%"
        return f"{self.points_lost:.{1 if self.points_lost < 9.95 else 0}f}"

    @property
    def color(self) -> int:
        """Number of the colour, 0 = best."""
        lost = self.points_lost
        if lost is None:
            lost = 100.0 * self.win_rate_lost / PERCENT_A_POINT
        return sum(lost >= threshold for threshold in THRESHOLDS)


def candidates_on(colors: Sequence[int], marks: Sequence[Mark], title: str) -> str:
    """A position with candidates, the best one first, as an ``svg`` element.

    Args:
        colors: colour of each point.
        title: text for screen readers.
    """
    size = int(len(colors) ** 0.5)
    drawn = [stone(at, size, color) for at, color in enumerate(colors) if color != EMPTY]
    for number, mark in enumerate(marks):
        width = ".6" if number else "1.3"
        style = f'fill="var(--k{mark.color})" stroke="var(--line)" stroke-width="{width}"'
        x, y = centre(mark.point, size)
        font = 'font-size="9.5" font-weight="600" text-anchor="middle" fill="var(--paper)"'
        drawn.append(circle(mark.point, size, 10 if number else 11, style))
        drawn.append(f'<text x="{x:g}" y="{y + 3.4:g}" {font}>{mark.text}</text>')
    return board(size, "".join(drawn), title)
