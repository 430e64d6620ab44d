"""Boards and graphs as SVG text, for pages and as pictures of their own.

Colours are CSS variables, which a page sets by theme; a picture of its own carries :data:`STANDALONE`.
"""

from collections.abc import Mapping, Sequence
from html import escape

from engine.go.geometry import BLACK, COLUMNS, EMPTY, WHITE
from engine.go.notation import color_letter, star_points

CELL = 24
"""Side of a point, in units of the drawing"""
GRAPH_WIDTH, GRAPH_HEIGHT = 640, 150
LEFT, BOTTOM, TOP = 48, 18, 8
"""Margins of a graph for its labels"""
WOOD, LINES = "#e3b667", "#5b431b"
KIND_COLORS = ("#1a7f4f", "#4f8f2f", "#7d8a1a", "#b07a00", "#c8500a", "#b3123f")
"""Of moves, as in ``KINDS``, where there is no theme"""
STANDALONE = (
    f"<style>:root{{--board:{WOOD};--line:{LINES};--stone-b:#111;--stone-w:#fafafa;--edge:#444;--ink:#222;--paper:#fff;"
    "--grid:#ccc;--shade:#00000014;--accent:#1f5fbf;"
    f"{';'.join(f'--k{kind}:{color}' for kind, color in enumerate(KIND_COLORS))}}}svg{{font:11px sans-serif}}</style>"
)
MARK_SIZE = 11


def centre(index: int, size: int) -> tuple[float, float]:
    """Where a point of policy order is drawn."""
    row, column = divmod(index, size)
    return CELL * (column + 1.5), CELL * (row + 1)


def side(size: int) -> tuple[int, int]:
    """Width and height of a board's drawing: its labels are on the left and below."""
    return int(CELL * (size + 1)), int(CELL * (size + 1))


def grid(size: int) -> str:
    """An empty board: wood, lines, star points and coordinates."""
    left, top = centre(0, size)
    right, bottom = centre(size * size - 1, size)
    width, height = side(size)
    drawn = [f'<rect class="wood" width="{width}" height="{height}" rx="4" fill="var(--board)"/>']
    path = "".join(
        f"M{left:g} {top + CELL * n:g}H{right:g}M{left + CELL * n:g} {top:g}V{bottom:g}" for n in range(size)
    )
    drawn.append(f'<path d="{path}" stroke="var(--line)" fill="none"/>')
    for row, column in star_points(size):
        x, y = centre(row * size + column, size)
        drawn.append(f'<circle cx="{x:g}" cy="{y:g}" r="2.6" fill="var(--line)"/>')
    drawn.append('<g fill="var(--line)" font-size="10" text-anchor="middle" aria-hidden="true">')
    for n in range(size):
        x, y = centre(n * size + n, size)
        drawn.append(
            f'<text x="{x:g}" y="{height - 5}">{COLUMNS[n]}</text><text x="10" y="{y + 3.5:g}">{size - n}</text>'
        )
    return "".join(drawn) + "</g>"


def stone(index: int, color: int, size: int) -> str:
    """One stone."""
    x, y = centre(index, size)
    name = color_letter(color).lower()
    return f'<circle cx="{x:g}" cy="{y:g}" r="11.2" fill="var(--stone-{name})" stroke="var(--edge)" stroke-width=".7"/>'


def stones(colors: Sequence[int], size: int) -> str:
    """The stones of a board in policy order."""
    return "".join(stone(at, color, size) for at, color in enumerate(colors) if color != EMPTY)


def label(index: int, text: str, size: int, is_on_black: bool) -> str:
    """A word on a stone."""
    x, y = centre(index, size)
    ink = "var(--stone-w)" if is_on_black else "var(--stone-b)"
    return (
        f'<text x="{x:g}" y="{y + 4:g}" font-size="{MARK_SIZE}" text-anchor="middle" fill="{ink}">{escape(text)}</text>'
    )


def cross(index: int, size: int) -> str:
    """A cross on a point: a move that was played."""
    x, y = centre(index, size)
    return f'<path d="M{x - 5:g} {y - 5:g}l10 10m0 -10l-10 10" stroke="var(--k5)" stroke-width="2.4" fill="none"/>'


def ring(index: int, size: int) -> str:
    """A ring around a stone: a move that was played, where a line has it too."""
    x, y = centre(index, size)
    return f'<circle cx="{x:g}" cy="{y:g}" r="11.2" fill="none" stroke="var(--k5)" stroke-width="2.4"/>'


def board(
    colors: Sequence[int], size: int, title: str, line: Sequence[int] = (), to_move: int = BLACK,
    played: int | None = None,
) -> str:  # fmt: skip
    """A position, as an ``svg`` element.

    Args:
        colors: of the points in policy order.
        title: what it shows, for those who do not see it.
        line: policy indices of moves to be shown with numbers from 1, in turns; -1 = a pass.
        to_move: colour of the line's first move.
        played: policy index of a move to be shown as a cross, or as a ring where the line has it; None or -1 = none.
    """
    width, height = side(size)
    drawn = [grid(size), stones(colors, size)]
    color, seen = to_move, {at for at, one in enumerate(colors) if one != EMPTY}
    for number, index in enumerate(line, 1):
        if index >= 0 and index not in seen:
            drawn += [stone(index, color, size), label(index, str(number), size, color == BLACK)]
            seen.add(index)
        color = BLACK + WHITE - color
    if played is not None and played >= 0:
        drawn.append(ring(played, size) if played in seen else cross(played, size))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(title)}</title>{''.join(drawn)}</svg>"
    )


def graph(
    values: Mapping[int, float], last: int, low: float, high: float, title: str, marks: Sequence[tuple[float, str]],
    bars: Sequence[tuple[int, float, int]] = (), attributes: str = "",
) -> str:  # fmt: skip
    """A graph over the moves of a game, as an ``svg`` element.

    Args:
        values: of the line, by move.
        last: the last move.
        low, high: ends of the vertical axis.
        marks: values where a line is drawn across, and its words.
        bars: move, value (upwards for one player, downwards for the other) and kind.
    """
    inner = f"{LEFT} {TOP} {GRAPH_WIDTH - LEFT - 6} {GRAPH_HEIGHT - TOP - BOTTOM}"
    drawn = []
    for value, words in marks:
        y = down(value, low, high)
        drawn.append(f'<path d="M{LEFT} {y:.1f}H{GRAPH_WIDTH - 6}" stroke="var(--grid)"/>')
        drawn.append(
            f'<text x="{LEFT - 4}" y="{y + 4:.1f}" text-anchor="end" font-size="11" fill="var(--ink)">{words}</text>'
        )
    for number in range(0, last + 1, 50 if last > 120 else 20 if last > 40 else 10):
        x = across(number, last)
        drawn.append(
            f'<text x="{x:.1f}" y="{GRAPH_HEIGHT - 4}" text-anchor="middle" font-size="11"'
            f' fill="var(--ink)">{number}</text>'
        )
    if values:
        base = down(max(low, min(high, 50.0 if low >= 0 else 0.0)), low, high)
        points = [
            f"{across(at, last):.1f} {down(max(low, min(high, value)), low, high):.1f}" for at, value in values.items()
        ]
        first, end = across(min(values), last), across(max(values), last)
        drawn.append(
            f'<path d="M{first:.1f} {base:.1f}L{"L".join(points)}L{end:.1f} {base:.1f}Z" fill="var(--shade)"/>'
        )
        drawn.append(f'<path d="M{"L".join(points)}" fill="none" stroke="var(--accent)" stroke-width="1.6"/>')
    zero = down(0, low, high)
    width = max(1.0, min(7.0, 0.8 * (GRAPH_WIDTH - LEFT) / (last + 1)))
    for at, value, kind in bars:
        x, y = across(at, last), down(max(low, min(high, value)), low, high)
        drawn.append(
            f'<rect data-move="{at}" x="{x - width / 2:.1f}" y="{min(y, zero):.1f}" width="{width:.1f}"'
            f' height="{max(0.5, abs(zero - y)):.1f}" fill="var(--k{kind})"/>'
        )
    drawn.append(f'<path class="cursor" d="M0 {TOP}V{GRAPH_HEIGHT - BOTTOM}" stroke="var(--ink)" visibility="hidden"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {GRAPH_WIDTH} {GRAPH_HEIGHT}" role="img"'
        f' data-inner="{inner}" {attributes}><title>{escape(title)}</title>{"".join(drawn)}</svg>'
    )


def across(number: float, last: int) -> float:
    """Where a move is drawn."""
    return LEFT + (GRAPH_WIDTH - LEFT - 6) * number / max(1, last)


def down(value: float, low: float, high: float) -> float:
    """Where a value is drawn."""
    return TOP + (GRAPH_HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)


def standalone(drawn: str) -> str:
    """An ``svg`` element as a file of its own."""
    start = drawn.index(">") + 1
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn[:start]}{STANDALONE}{drawn[start:]}\n'
