"""The top of a search tree as SVG: moves as stones, wider lines to moves with more visits."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from engine.go.geometry import other
from engine.go.points import color_letter
from engine.pictures.drawing import svg

COLUMN, ROW, MARGIN = 46, 62, 28
"""Width of a leaf, height of a level, and the margins, in units of the drawing"""
RADIUS = 13
MOST_WIDTH = 9.0
"""Width of the line to a move with all visits"""


class Drawn(NamedTuple):
    """A node of the picture."""

    parent: int
    """number of the parent, which comes before; -1 for the root"""
    depth: int
    """number of moves from the root"""
    text: str
    """text on the stone"""
    visits: int
    share: float
    """share of the root's visits"""
    win_rate: float
    """of the node's colour, 0 to 1"""
    color: int
    """colour of the stone: the move's player, for the root the side to move"""


def drawn_tree(nodes: Sequence[Drawn], title: str) -> Markup:
    """A tree as an ``svg`` element; children stand below their parents, in the given order from the left.

    Args:
        title: text for screen readers.
    """
    columns = _columns(nodes)
    places = [(MARGIN + COLUMN * x, MARGIN + ROW * node.depth) for x, node in zip(columns, nodes, strict=True)]
    lines, stones = "", ""
    for (x, y), node in zip(places, nodes, strict=True):
        if node.parent >= 0:
            above_x, above_y = places[node.parent]
            width = max(0.6, MOST_WIDTH * node.share)
            lines += f'<path d="M{above_x:.1f} {above_y:.1f}L{x:.1f} {y:.1f}" stroke="var(--grid)"'
            lines += f' stroke-width="{width:.1f}"/>'
        own, ink = (color_letter(color).lower() for color in (node.color, other(node.color)))
        stones += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="var(--stone-{own})" stroke="var(--edge)"/>'
        stones += _text(x, y + 3.5, 9 if len(node.text) < 5 else 7, f"var(--stone-{ink})", node.text)
        stones += _text(x, y + RADIUS + 9, 8, "var(--ink)", f"{node.visits} · {100.0 * node.win_rate:.0f}%")
    width = 2 * MARGIN + COLUMN * max(columns)
    height = 2 * MARGIN + ROW * max(node.depth for node in nodes)
    return svg(width, height, lines + stones, title)


def _columns(nodes: Sequence[Drawn]) -> list[float]:
    """Horizontal place of each node in leaves from the left: a parent's is the middle of its children's."""
    children: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        if node.parent >= 0:
            children[node.parent].append(number)
    columns, leaves, stack = [0.0] * len(nodes), 0, [(0, False)]
    while stack:
        number, is_seen = stack.pop()
        if not children[number]:
            columns[number] = leaves
            leaves += 1
        elif is_seen:
            columns[number] = (columns[children[number][0]] + columns[children[number][-1]]) / 2
        else:
            stack += [(number, True), *((child, False) for child in reversed(children[number]))]
    return columns


def _text(x: float, y: float, size: int, ink: str, words: str) -> str:
    """Centred text as SVG."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle" fill="{ink}">{escape(words)}</text>'
