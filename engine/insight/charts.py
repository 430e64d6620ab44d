"""Line charts and points with intervals as SVG, to stand inside a page; the page's style, and the curves of a run."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from engine.train.curves import read_curves

Series = dict[str, list[tuple[float, float]]]
"""Curves by name: steps and values, in order"""
PAGE_STYLE = (
    "body{font:15px/1.45 sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}table{border-collapse:collapse}"
    "td,th{border-bottom:1px solid #ccc;padding:.25em .8em .25em 0;text-align:left}pre{background:#f4f4f4;padding:.6em;"
    "overflow-x:auto;font-size:12px}"
)
WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 28, 56
LETTER = 6
"""Width of a letter, roughly"""
COLORS = ("#1b6ca8", "#c8553d", "#3a7d44", "#8a5a9e", "#b8860b", "#555555")
TICKS = 5
COLUMNS = 2
"""Of charts that stand side by side"""
MOST_POINTS = 300
"""Of a curve; longer ones are drawn as means"""


def curves_of(folder: Path) -> Series:
    """The curves of a run in a folder; nothing where there is none."""
    found: Series = {}
    for step, name, value in read_curves(folder / "curves.csv")[0]:
        found.setdefault(name, []).append((float(step), float(value)))
    return found


def line_chart(title: str, series: Mapping[str, Sequence[tuple[float, float]]], x_label: str) -> str:
    """Curves with a legend; empty where there are no points."""
    shown = {name: _thinned(points) for name, points in series.items() if points}
    if not shown:
        return ""
    frame = _Frame([point for points in shown.values() for point in points])
    parts = [frame.axes(title, x_label)]
    for i, (name, points) in enumerate(shown.items()):
        color = COLORS[i % len(COLORS)]
        path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"/>')
        left = LEFT + (WIDTH - LEFT) * (i % 3) / 3
        low = HEIGHT - 18 + 12 * (i // 3)
        parts.append(f'<text x="{left:.0f}" y="{low}" fill="{color}">{escape(name)}</text>')
    return _svg(parts, HEIGHT + 12 * ((len(shown) - 1) // 3))


def interval_chart(title: str, rows: Sequence[tuple[str, float, float, float]], x_label: str) -> str:
    """One point a row with its interval: name, value, low and high; empty where there are no rows."""
    if not rows:
        return ""
    names = [_shortened(name) for name, *_ in rows]
    left = max(LEFT, LETTER * max(map(len, names)) + 12)
    frame = _Frame([(value, 0.0) for row in rows for value in row[1:]], left)
    step = (HEIGHT - TOP - BOTTOM) / len(rows)
    parts = [frame.axes(title, x_label, is_flat=True)]
    for i, (_, value, low, high) in enumerate(rows):
        y = TOP + step * (i + 0.5)
        ends = f'x1="{frame.x(low):.1f}" x2="{frame.x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        parts.append(f'<line {ends} stroke="{COLORS[0]}" stroke-width="2"/>')
        parts.append(f'<circle cx="{frame.x(value):.1f}" cy="{y:.1f}" r="4" fill="{COLORS[1]}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(names[i])}</text>')
    return _svg(parts, HEIGHT)


def _shortened(name: str) -> str:
    """A name that leaves the chart half of the width, its middle left out where it is longer."""
    most = (WIDTH // 2 - 12) // LETTER
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - half]}…{name[-half:]}"


def side_by_side(charts: Sequence[str]) -> str:
    """Charts in rows of two, those that are empty left out, as one picture; a file of its own."""
    shown = [chart for chart in charts if chart]
    rows = -(-len(shown) // COLUMNS)
    places = [(WIDTH * (i % COLUMNS), HEIGHT * (i // COLUMNS)) for i in range(len(shown))]
    parts = [
        chart.replace("<svg ", f'<svg x="{x}" y="{y}" height="{HEIGHT}" ', 1)
        for chart, (x, y) in zip(shown, places, strict=True)
    ]
    size = f'viewBox="0 0 {COLUMNS * WIDTH} {rows * HEIGHT}" width="{COLUMNS * WIDTH}"'
    return stand_alone(f'<svg {size} role="img">{"".join(parts)}</svg>')


def stand_alone(chart: str) -> str:
    """A chart as a file of its own, on white, since viewers may be dark."""
    head, rest = chart.split(">", 1)
    page = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'{head} xmlns="http://www.w3.org/2000/svg" font-family="sans-serif">{page}{rest}\n'


class _Frame:
    """From values to places in the picture."""

    def __init__(self, points: Sequence[tuple[float, float]], left: int = LEFT) -> None:
        self._left = left
        self._x, self._y = (_padded([point[i] for point in points]) for i in (0, 1))

    def x(self, value: float) -> float:
        low, high = self._x
        return self._left + (WIDTH - self._left - RIGHT) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self._y
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    def axes(self, title: str, x_label: str, is_flat: bool = False) -> str:
        """Title, grid and numbers; a flat chart has no numbers on its y axis."""
        low, high, left = TOP, HEIGHT - BOTTOM, self._left
        parts = [f'<text x="{LEFT}" y="16" font-weight="bold">{escape(title)}</text>']
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{high + 30}" text-anchor="end">{escape(x_label)}</text>')
        for value in _ticks(*self._x):
            place = f"{self.x(value):.1f}"
            parts.append(f'<line x1="{place}" x2="{place}" y1="{low}" y2="{high}" stroke="#dddddd"/>')
            parts.append(f'<text x="{place}" y="{high + 15}" text-anchor="middle">{value:g}</text>')
        for value in () if is_flat else _ticks(*self._y):
            place = f"{self.y(value):.1f}"
            parts.append(f'<line x1="{left}" x2="{WIDTH - RIGHT}" y1="{place}" y2="{place}" stroke="#dddddd"/>')
            parts.append(f'<text x="{left - 6}" y="{float(place) + 4:.1f}" text-anchor="end">{value:g}</text>')
        return "".join(parts)


def _svg(parts: Sequence[str], height: int) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" font-size="11" role="img">{"".join(parts)}</svg>'


def _padded(values: Sequence[float]) -> tuple[float, float]:
    """Range of some values, a little wider, never empty."""
    low, high = min(values), max(values)
    room = (high - low) * 0.04 or abs(low) * 0.1 or 1.0
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers within a range."""
    rough = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first = math.ceil(low / step)
    return [round((first + i) * step, 10) for i in range(math.floor(high / step) - first + 1)]


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Neighbouring points as their mean, where there are too many."""
    size = -(-len(points) // MOST_POINTS)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]
