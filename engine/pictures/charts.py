"""Charts as SVG: curves with a legend, values with intervals, and values over the moves of a game."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from engine.pictures.drawing import size_of, svg

Points = Sequence[tuple[float, float]]
"""Pairs of x and y in order of x"""
WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 28, 56
"""Margins around the axes of line and interval charts, in units of the drawing"""
GAME_WIDTH, GAME_HEIGHT, GAME_WIDTH_OF_PHONES = 640, 150, 350
GAME_LEFT, GAME_RIGHT, GAME_TOP, GAME_BOTTOM = 48, 6, 8, 18
LETTER = 6
"""Approximate width of a letter, in units of the drawing"""
CURVE_COLORS = 6
"""Number of colours of curves: the variables ``--s0``, ``--s1`` and so on of ``page.css``"""
TICKS = 5
COLUMNS = 2
"""Number of charts in a row of :func:`side_by_side`"""
MOST_POINTS = 300
"""Maximum number of points of a drawn curve; in curves with more, neighbours are averaged"""
MOST_DOTS = 30
"""Maximum number of points of a curve whose points are drawn as dots"""


class Frame(NamedTuple):
    """The axes of a chart: the edges of their area in the drawing, and the ranges of x and y values."""

    left: float
    right: float
    top: float
    bottom: float
    xs: tuple[float, float]
    ys: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.xs
        return self.left + (self.right - self.left) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Vertical coordinate of a y value, which is clamped to the axis' range."""
        low, high = self.ys
        return self.bottom - (self.bottom - self.top) * (min(high, max(low, value)) - low) / (high - low)

    def curve(self, points: Points) -> str:
        """SVG path data of a line through points."""
        return "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)

    def columns(self, marks: Iterable[tuple[float, str]], has_lines: bool) -> str:
        """SVG of labels below the x axis, at values of x, with vertical grid lines if ``has_lines``."""
        places = [(f"{self.x(value):.1f}", words) for value, words in marks]
        lines = "".join(f'<path d="M{x} {self.top}V{self.bottom}" stroke="var(--grid)"/>' for x, _ in places)
        below = "".join(_text(x, self.bottom + 14, words, "middle") for x, words in places)
        return lines + below if has_lines else below

    def rows(self, marks: Iterable[tuple[float, str]]) -> str:
        """SVG of labels left of the y axis, at values of y, with horizontal grid lines."""
        places = [(self.y(value), words) for value, words in marks]
        return "".join(
            f'<path d="M{self.left} {y:.1f}H{self.right}" stroke="var(--grid)"/>'
            + _text(self.left - 4, f"{y + 4:.1f}", words, "end")
            for y, words in places
        )


def line_chart(
    title: str, series: Mapping[str, Points], x_label: str,
    y_range: tuple[float | None, float | None] = (None, None), x_marks: Sequence[tuple[float, str]] = (),
) -> Markup:  # fmt: skip
    """A chart of named curves with a legend; empty if there are no points. Points that are not finite are left out.

    Args:
        y_range: ends of the y axis; None = from the values.
        x_marks: values of x with their labels; empty = round numbers.
    """
    shown = {name: found for name, points in series.items() if (found := _thinned(points))}
    if not shown:
        return Markup()
    xs, ys = zip(*(point for points in shown.values() for point in points), strict=True)
    low, high = (end if given is None else given for given, end in zip(y_range, _padded(ys), strict=True))
    frame = Frame(LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, _padded(xs), (low, high))
    columns = frame.columns(x_marks or _ticks(*frame.xs), True)
    parts = [_headings(title, x_label), columns, frame.rows(_ticks(*frame.ys))]
    legends = max(1, (WIDTH - LEFT) // (LETTER * max(12, *map(len, shown)) + 14))
    for i, (name, points) in enumerate(shown.items()):
        color = f"var(--s{i % CURVE_COLORS})"
        parts.append(f'<path d="{frame.curve(points)}" fill="none" stroke="{color}" stroke-width="1.6"/>')
        for x, y in points if len(points) <= MOST_DOTS else ():
            parts.append(f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="2" fill="{color}"/>')
        left = LEFT + (WIDTH - LEFT) * (i % legends) / legends
        parts.append(_text(f"{left:.0f}", HEIGHT - 10 + 12 * (i // legends), name, "start", color))
    return svg(WIDTH, HEIGHT + 12 * ((len(shown) - 1) // legends), "".join(parts))


def interval_chart(title: str, rows: Sequence[tuple[str, float, float, float]], x_label: str) -> Markup:
    """A chart of values with intervals, one in each row; empty if there are no rows.

    Args:
        rows: name, value, and low and high end of the interval.
    """
    if not rows:
        return Markup()
    names = [_shortened(name) for name, *_ in rows]
    left = max(LEFT, LETTER * max(map(len, names)) + 12)
    xs = _padded([value for row in rows for value in row[1:]])
    frame = Frame(left, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, xs, (0, len(rows)))
    parts = [_headings(title, x_label), frame.columns(_ticks(*xs), True)]
    for i, (_, value, low, high) in enumerate(rows):
        y = frame.y(len(rows) - i - 0.5)
        parts.append(f'<path d="M{frame.x(low):.1f} {y:.1f}H{frame.x(high):.1f}" stroke="var(--s0)" stroke-width="2"/>')
        parts.append(f'<circle cx="{frame.x(value):.1f}" cy="{y:.1f}" r="4" fill="var(--s1)"/>')
        parts.append(_text(left - 6, f"{y + 4:.1f}", names[i], "end"))
    return svg(WIDTH, HEIGHT, "".join(parts))


def side_by_side(charts: Iterable[str], columns: int = COLUMNS) -> Markup:
    """One drawing of several charts in rows of ``columns``; empty charts are left out."""
    shown = [chart for chart in charts if chart]
    wide = max([WIDTH, *(size_of(chart)[0] for chart in shown)])
    parts, bottom = [], 0.0
    for first in range(0, len(shown), columns):
        row = shown[first : first + columns]
        for column, chart in enumerate(row):
            width, height = size_of(chart)
            place = f'x="{wide * column:g}" y="{bottom:g}" width="{width:g}" height="{height:g}"'
            parts.append(str(chart).replace("<svg ", f"<svg {place} ", 1))
        bottom += max(size_of(chart)[1] for chart in row)
    return svg(wide * min(columns, len(shown)), bottom, "".join(parts))


def game_chart(
    title: str, last: int, y_range: tuple[float, float], marks: Sequence[tuple[float, str]],
    values: Points = (), bars: Sequence[tuple[int, float, int]] = (), attributes: str = "",
    dots: Sequence[tuple[int, float, int]] = (), width: int = GAME_WIDTH,
) -> Markup:  # fmt: skip
    """A chart of values over the moves of a game: a filled curve or bars, and a hidden cursor that a script moves.

    Args:
        title: text for screen readers.
        last: number of the last move.
        marks: value and label of each horizontal line; the area between curve and middle line is filled.
        values: points of the curve: number of moves, value.
        bars: for each bar the number of its move, the value, and the kind, which selects a colour: ``--k0`` and so on.
        attributes: further attributes of the ``svg`` element.
        dots: moves to mark on the curve, as ``bars``.
        width: width of the drawing, in its units.
    """
    right, low = width - GAME_RIGHT, GAME_HEIGHT - GAME_BOTTOM
    frame = Frame(GAME_LEFT, right, GAME_TOP, low, (0, max(1, last)), y_range)
    step = (50 if last > 120 else 20 if last > 40 else 10) * (1 if width >= GAME_WIDTH else 2)
    parts = [frame.rows(marks), frame.columns([(n, str(n)) for n in range(0, last + 1, step)], False)]
    base = frame.y(marks[len(marks) // 2][0])
    if values:
        curve, ends = frame.curve(values), [frame.x(values[k][0]) for k in (0, -1)]
        parts.append(f'<path d="{curve}L{ends[1]:.1f} {base:.1f}L{ends[0]:.1f} {base:.1f}Z" fill="var(--shade)"/>')
        parts.append(f'<path d="{curve}" fill="none" stroke="var(--accent)" stroke-width="1.6"/>')
    thick = max(1.0, min(7.0, 0.8 * (width - GAME_LEFT) / (last + 1)))
    for at, value, kind in bars:
        y = frame.y(value)
        parts.append(
            f'<rect data-move="{at}" x="{frame.x(at) - thick / 2:.1f}" y="{min(y, base):.1f}" width="{thick:.1f}"'
            f' height="{max(0.5, abs(base - y)):.1f}" fill="var(--k{kind})"/>'
        )
    for at, value, kind in dots:
        place = f'cx="{frame.x(at):.1f}" cy="{frame.y(value):.1f}"'
        parts.append(f'<circle data-move="{at}" {place} r="4" fill="var(--k{kind})"/>')
    parts.append(f'<path class="cursor" d="M0 {GAME_TOP}V{low}" stroke="var(--ink)" visibility="hidden"/>')
    axes = f'data-left="{GAME_LEFT}" data-right="{right}"'
    return svg(width, GAME_HEIGHT, "".join(parts), title, f"{axes} {attributes}")


def _headings(title: str, x_label: str) -> str:
    """SVG of the title above the axes and the name of the x axis."""
    above = f'<text x="{LEFT}" y="16" font-weight="bold" fill="var(--ink)">{escape(title)}</text>'
    return above + _text(WIDTH - RIGHT, HEIGHT - BOTTOM + 30, x_label, "end")


def _text(x: float | str, y: float | str, words: str, anchor: str, color: str = "var(--ink)") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{color}">{escape(words)}</text>'


def _shortened(name: str) -> str:
    """A name, its middle left out if the name would take more than half of a chart's width."""
    most = (WIDTH // 2 - 12) // LETTER
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - half]}…{name[-half:]}"


def _padded(values: Sequence[float]) -> tuple[float, float]:
    """Range of an axis: that of some values and a margin, never empty."""
    low, high = min(values), max(values)
    room = (high - low) * 0.04 or abs(low) * 0.1 or 1.0
    return low - room, high + room


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round numbers within an axis' range, and their labels."""
    rough = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    values = (round(n * step, 10) for n in range(math.ceil(low / step), math.floor(high / step) + 1))
    return [(value, f"{value:g}") for value in values]


def _thinned(points: Points) -> list[tuple[float, float]]:
    """The finite points of a curve; if there are more than ``MOST_POINTS``, means of neighbours."""
    points = [point for point in points if all(map(math.isfinite, point))]
    size = max(1, -(-len(points) // MOST_POINTS))
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]
