"""Go boards as SVG: the empty board, stones and marks, diagrams with numbered moves.

Points are policy indices. Colours are CSS variables of ``page.css``; ``board.js`` draws the same board, stones and
marks in a browser.
"""

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from engine.go.geometry import BLACK, COLUMNS, EMPTY, WHITE, other
from engine.go.handicap import star_points
from engine.go.points import color_letter
from engine.pictures.drawing import svg

CELL = 24
"""Distance between neighbouring lines, in units of the drawing"""
STONE_RADIUS = 11.2
LAYERS = '<g class="owners"></g><g class="stones"></g><g class="marks"></g>'
"""Empty SVG groups, drawn on a board, that ``board.js`` fills"""


def board(size: int, drawn: str, title: str, attributes: str = "") -> Markup:
    """A board with coordinates, as an ``svg`` element.

    Args:
        drawn: SVG elements on the board.
        title: text for screen readers.
        attributes: further attributes of the ``svg`` element.
    """
    side = CELL * (size + 1)
    return svg(side, side, _grid(size) + drawn, title, attributes)


def _grid(size: int) -> str:
    """An empty board: wood, lines, star points and coordinates."""
    (left, top), (right, bottom) = centre(0, size), centre(size * size - 1, size)
    side = CELL * (size + 1)
    lines = "".join(
        f"M{left:g} {top + CELL * n:g}H{right:g}M{left + CELL * n:g} {top:g}V{bottom:g}" for n in range(size)
    )
    drawn = [f'<rect width="{side}" height="{side}" rx="4" fill="var(--board)"/>']
    drawn.append(f'<path d="{lines}" stroke="var(--line)" fill="none"/>')
    drawn += [circle(row * size + column, size, 2.6, 'fill="var(--line)"') for row, column in star_points(size)]
    style = 'fill="var(--line)" font-size="10" text-anchor="middle"'
    drawn.append(f'<g class="coordinates" {style} aria-hidden="true">')
    for n in range(size):
        x, y = centre(n * size + n, size)
        drawn.append(
            f'<text x="{x:g}" y="{side - 5}">{COLUMNS[n]}</text><text x="10" y="{y + 3.5:g}">{size - n}</text>'
        )
    return "".join(drawn) + "</g>"


def centre(index: int, size: int) -> tuple[float, float]:
    """SVG coordinates of a point; the margins on the left and below have room for labels."""
    row, column = divmod(index, size)
    return CELL * (column + 1.5), CELL * (row + 1)


def circle(index: int, size: int, radius: float, style: str) -> str:
    """A circle around a point, as SVG."""
    x, y = centre(index, size)
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {style}/>'


def label(index: int, size: int, text: str, ink: str) -> str:
    """A text on a point, as SVG."""
    x, y = centre(index, size)
    return f'<text x="{x:g}" y="{y + 4:g}" font-size="11" text-anchor="middle" fill="{ink}">{escape(text)}</text>'


def stone(index: int, size: int, color: int, text: str = "") -> str:
    """A stone as SVG, with a text on it if there is one."""
    own, ink = color_letter(color).lower(), color_letter(other(color)).lower()
    style = f'fill="var(--stone-{own})" stroke="var(--edge)" stroke-width=".7"'
    return circle(index, size, STONE_RADIUS, style) + (label(index, size, text, f"var(--stone-{ink})") if text else "")


def diagram(
    colors: Sequence[int], title: str, line: Sequence[int] = (), to_move: int = BLACK, played: int = -1
) -> Markup:
    """A position with numbered moves, as an ``svg`` element.

    Args:
        colors: colour of each point.
        title: text for screen readers.
        line: moves to show with numbers from 1, colours alternating; -1 = a pass.
        to_move: colour of the line's first move.
        played: a move to show as a cross, or as a ring if it is part of the line; -1 = none.
    """
    size = math.isqrt(len(colors))
    stones = {at: (color, "") for at, color in enumerate(colors) if color != EMPTY}
    for number, index in enumerate(line, 1):
        if index >= 0:
            stones.setdefault(index, (to_move, str(number)))
        to_move = other(to_move)
    drawn = [stone(at, size, color, text) for at, (color, text) in stones.items()]
    if played in stones:
        drawn.append(circle(played, size, STONE_RADIUS, 'fill="none" stroke="var(--k5)" stroke-width="2.4"'))
    elif played >= 0:
        x, y = centre(played, size)
        lines = f"M{x - 5:g} {y - 5:g}L{x + 5:g} {y + 5:g}M{x + 5:g} {y - 5:g}L{x - 5:g} {y + 5:g}"
        drawn.append(f'<path d="{lines}" stroke="var(--k5)" stroke-width="2.4" fill="none"/>')
    return board(size, "".join(drawn), title)


def thumbnail(colors: Sequence[int], title: str) -> Markup:
    """A small picture of a position, without coordinates, in few characters.

    Args:
        colors: colour of each point.
        title: text for screen readers.
    """
    size = math.isqrt(len(colors))
    lines = "".join(f"M.5 {n + 0.5}H{size - 0.5}M{n + 0.5} .5V{size - 0.5}" for n in range(size))
    drawn = [f'<rect width="{size}" height="{size}" fill="var(--board)"/>']
    drawn.append(f'<path d="{lines}" stroke="var(--line)" stroke-width=".05" fill="none"/>')
    for color in (BLACK, WHITE):
        # A line without length and with round ends is a circle.
        places = (divmod(at, size) for at, there in enumerate(colors) if there == color)
        stones = "".join(f"M{column + 0.5} {row + 0.5}h0" for row, column in places)
        ink = f"var(--stone-{color_letter(color).lower()})"
        drawn.append(f'<path d="{stones}" stroke="{ink}" stroke-width=".94" stroke-linecap="round"/>' if stones else "")
    return svg(size, size, "".join(drawn), title)
