"""Go boards as SVG: the empty board, stones and marks, diagrams of positions with numbers, marks and maps.

Points are policy indices. Colours are CSS variables of ``page.css``; ``board.js`` draws the same board, stones and
marks in a browser.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from markupsafe import Markup, escape

from engine.go.geometry import BLACK, COLUMNS, EMPTY, WHITE, other
from engine.go.handicap import star_points
from engine.go.points import color_letter
from engine.pictures.drawing import svg

CELL = 24
"""Distance between neighbouring lines, in units of the drawing"""
STONE_RADIUS = 11.2
SHAPES: dict[str, Sequence[tuple[str, float, float]]] = {
    "circle": (),
    "triangle": (("M", 0, -7.5), ("L", 6.5, 4), ("L", -6.5, 4), ("Z", 0, 0)),
    "square": (("M", -5, -5), ("L", 5, -5), ("L", 5, 5), ("L", -5, 5), ("Z", 0, 0)),
    "cross": (("M", -5, -5), ("L", 5, 5), ("M", 5, -5), ("L", -5, 5)),
}
"""Name of a mark -> its path about the point, as commands of SVG with their place; a circle has none"""
LEAST_OWNERSHIP = 0.1
"""Absolute ownership from which a point has a square"""
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
    """A text on a point, as SVG; more than three characters are drawn smaller, so that it keeps to its point."""
    x, y = centre(index, size)
    font = 11 if len(text) <= 3 else max(5.0, 40 / len(text))
    return (
        f'<text x="{x:g}" y="{y + 4 * font / 11:g}" font-size="{font:g}" text-anchor="middle" fill="{ink}">'
        f"{escape(text)}</text>"
    )


def stone(index: int, size: int, color: int, text: str = "") -> str:
    """A stone as SVG, with a text on it if there is one."""
    own, ink = color_letter(color).lower(), color_letter(other(color)).lower()
    style = f'fill="var(--stone-{own})" stroke="var(--edge)" stroke-width=".7"'
    return circle(index, size, STONE_RADIUS, style) + (label(index, size, text, f"var(--stone-{ink})") if text else "")


def mark(index: int, size: int, color: int, text: str) -> str:
    """A mark as SVG: one of ``SHAPES``, else its text.

    Args:
        color: of the stone below it; EMPTY = none.
    """
    ink = {BLACK: "var(--stone-w)", WHITE: "var(--stone-b)"}.get(color, "var(--line)")
    x, y = centre(index, size)
    if text == "circle":
        return circle(index, size, 6, f'fill="none" stroke="{ink}" stroke-width="2"')
    if text in SHAPES:
        lines = " ".join(
            f"{sign}{x + right:g} {y + down:g}" if sign != "Z" else sign for sign, right, down in SHAPES[text]
        )
        return f'<path d="{lines}" fill="none" stroke="{ink}" stroke-width="2"/>'
    # A text on an empty point hides the lines below it.
    paper = "" if color else circle(index, size, 9, 'fill="var(--board)"')
    return paper + label(index, size, text, ink)


def arrow(start: int, end: int, size: int) -> str:
    """An arrow from the point ``start`` to the point ``end``, as SVG."""
    (x, y), (to_x, to_y) = centre(start, size), centre(end, size)
    length = math.hypot(to_x - x, to_y - y) or 1.0
    right, down = (to_x - x) / length, (to_y - y) / length
    neck = to_x - 10 * right, to_y - 10 * down
    wings = [(neck[0] - side * down, neck[1] + side * right) for side in (-5, 5)]
    head = "L".join(f"{a:.2f} {b:.2f}" for a, b in ((to_x, to_y), *wings))
    return (
        f'<g opacity=".85"><path d="M{x:g} {y:g}L{neck[0]:.2f} {neck[1]:.2f}" stroke="var(--heat)" stroke-width="3"/>'
        f'<path d="M{head}Z" fill="var(--heat)"/></g>'
    )


def square(index: int, size: int, side: float, ink: str, opacity: float, corners: float = 0) -> str:
    """A square around a point, as SVG.

    Args:
        corners: radius of its corners.
    """
    x, y = centre(index, size)
    rounded = f' rx="{corners:g}"' if corners else ""
    return (
        f'<rect x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" height="{side:.1f}"{rounded}'
        f' fill="{ink}" opacity="{opacity:.2f}"/>'
    )


def heat_map(values: Sequence[float], size: int) -> str:
    """Squares as opaque as the root of each point's share of the largest value; nothing where values are 0 or less."""
    largest = max((value for value in values if value > 0), default=1.0)
    shares = [math.sqrt(max(0.0, value) / largest) for value in values]
    return "".join(
        square(at, size, CELL - 2, "var(--heat)", 0.9 * share) for at, share in enumerate(shares) if share > 0.05
    )


def owners(values: Sequence[float], colors: Sequence[int], size: int) -> tuple[str, str]:
    """Squares of the owner's colour for each point, as ``board.js`` draws them: below living stones, above dead ones.

    Args:
        values: 1 = certainly Black's, -1 = White's.
    """
    below: list[str] = []
    above: list[str] = []
    for at, value in enumerate(values):
        if abs(value) < LEAST_OWNERSHIP:
            continue
        color = BLACK if value > 0 else WHITE
        is_dead = colors[at] not in (EMPTY, color)
        side, ink = (11 if is_dead else 20) * math.sqrt(abs(value)), f"var(--stone-{color_letter(color).lower()})"
        (above if is_dead else below).append(square(at, size, side, ink, 1.0 if is_dead else 0.55))
    return "".join(below), "".join(above)


def diagram(
    colors: Sequence[int], title: str, line: Sequence[int] = (), to_move: int = BLACK, played: int = -1, *,
    last: int = -1, numbers: Mapping[int, str] = MappingProxyType({}), marks: Mapping[int, str] = MappingProxyType({}),
    arrows: Iterable[tuple[int, int]] = (), heat: Sequence[float] = (), ownership: Sequence[float] = (),
    upon: str = "",
) -> Markup:  # fmt: skip
    """A position with numbered moves and marks, as an ``svg`` element.

    Args:
        colors: colour of each point.
        title: text for screen readers.
        line: moves to show with numbers from 1, colours alternating; -1 = a pass.
        to_move: colour of the line's first move.
        played: a move to show as a cross, or as a ring if it is part of the line; -1 = none.
        last: the last move, to show as a circle unless it has a number or a mark; -1 = none.
        numbers: point -> text on its stone.
        marks: point -> one of ``SHAPES``, or a text.
        arrows: pairs of points.
        heat: for each point, as :func:`heat_map` draws it; empty = none.
        ownership: for each point, as :func:`owners` draws it; empty = none.
        upon: further SVG elements, drawn above all others.
    """
    size = math.isqrt(len(colors))
    stones = {at: (color, numbers.get(at, "")) for at, color in enumerate(colors) if color != EMPTY}
    for number, index in enumerate(line, 1):
        if index >= 0:
            stones.setdefault(index, (to_move, str(number)))
        to_move = other(to_move)
    below, above = owners(ownership, colors, size)
    drawn = [heat_map(heat, size), below]
    drawn += [stone(at, size, color, "" if at in marks else text) for at, (color, text) in stones.items()]
    drawn.append(above)
    if last in stones and not stones[last][1] and last not in marks:
        ink = f"var(--stone-{color_letter(other(stones[last][0])).lower()})"
        drawn.append(circle(last, size, 5, f'fill="none" stroke="{ink}" stroke-width="2"'))
    drawn += [mark(at, size, stones.get(at, (EMPTY, ""))[0], text) for at, text in marks.items()]
    drawn += [arrow(start, end, size) for start, end in arrows]
    if played in stones:
        drawn.append(circle(played, size, STONE_RADIUS, 'fill="none" stroke="var(--k5)" stroke-width="2.4"'))
    elif played >= 0:
        x, y = centre(played, size)
        lines = f"M{x - 5:g} {y - 5:g}L{x + 5:g} {y + 5:g}M{x + 5:g} {y - 5:g}L{x - 5:g} {y + 5:g}"
        drawn.append(f'<path d="{lines}" stroke="var(--k5)" stroke-width="2.4" fill="none"/>')
    return board(size, "".join(drawn) + upon, title)


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
