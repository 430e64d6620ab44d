"""A review's graphs and diagrams as PNG, by matplotlib, which comes with the extra ``train``."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.go.geometry import BLACK, COLUMNS, EMPTY, WHITE
from engine.go.notation import star_points
from engine.insight.review import graphs
from engine.insight.review.judgement import POINTS
from engine.insight.review.review import Review
from engine.insight.review.svg import KIND_COLORS, LINES, WOOD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = "PNG needs matplotlib: pip install matplotlib beside Keima, or take --svg"
BOARD_INCHES, GRAPH_INCHES, DPI = 6.0, (9.0, 2.4), 110


def check_pictures() -> None:
    """See to it that pictures can be made, before hours go into what they show.

    Raises:
        ValueError: without matplotlib; one line.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ValueError(MISSING) from error


def pictures(review: Review) -> dict[str, bytes]:
    """The pictures of a review by name, as :func:`engine.insight.review.files.drawings` has them.

    Raises:
        ValueError: without matplotlib; one line.
    """
    check_pictures()
    found = {"winrate": _winrate(review), "loss": _loss(review)}
    if review.unit == POINTS:
        found["lead"] = _lead(review)
    for move in review.summary.costly:
        lines = review.better(move)
        line = graphs.indices(lines[0], review.size)[: graphs.SHOWN_OF_A_LINE] if lines else []
        played = graphs.indices([move.point], review.size)[0]
        colors = review.game.colors(move.number - 1)
        found[f"move-{move.number}"] = _board(colors, review.size, line, move.color, played)
    found["end"] = _board(review.game.colors(len(review.moves)), review.size, [], BLACK, -1)
    return found


def _figure(width: float, height: float) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _saved(figure: "Figure") -> bytes:
    written = io.BytesIO()
    figure.savefig(written, dpi=DPI, format="png")
    return written.getvalue()


def _winrate(review: Review) -> bytes:
    figure, axes = _figure(*GRAPH_INCHES)
    axes.plot([turn.number for turn in review.turns], [100 * turn.winrate_black for turn in review.turns])
    axes.set(ylim=(0, 100), xlabel="move", ylabel="Black's win rate, %")
    axes.axhline(50, color="gray", linewidth=0.8)
    return _saved(figure)


def _lead(review: Review) -> bytes:
    figure, axes = _figure(*GRAPH_INCHES)
    axes.plot([turn.number for turn in review.turns], [turn.lead_black or 0.0 for turn in review.turns])
    axes.axhline(0, color="gray", linewidth=0.8)
    axes.set(xlabel="move", ylabel="Black's lead, points")
    return _saved(figure)


def _loss(review: Review) -> bytes:
    figure, axes = _figure(*GRAPH_INCHES)
    lost = [move for move in review.moves if move.counted]
    heights = [move.counted if move.color == BLACK else -move.counted for move in lost]
    axes.bar([move.number for move in lost], heights, color=[KIND_COLORS[move.kind or 0] for move in lost])
    axes.axhline(0, color="gray", linewidth=0.8)
    axes.set(xlim=(0, len(review.moves) + 1), xlabel="move", ylabel="lost: Black's up, White's down")
    return _saved(figure)


def _board(colors: Sequence[int], size: int, line: Sequence[int], to_move: int, played: int) -> bytes:
    """A position with numbered moves and a cross; arguments as of :func:`engine.insight.review.svg.board`."""
    figure, axes = _figure(BOARD_INCHES, BOARD_INCHES)
    axes.set_facecolor(WOOD)
    for n in range(size):
        axes.plot([0, size - 1], [n, n], color=LINES, linewidth=0.8, zorder=1)
        axes.plot([n, n], [0, size - 1], color=LINES, linewidth=0.8, zorder=1)
    stars = star_points(size)
    axes.scatter([column for _, column in stars], [row for row, _ in stars], s=14, color=LINES, zorder=2)
    width = (72 * BOARD_INCHES * 0.9 / (size + 1)) ** 2
    font = 0.4 * width**0.5
    color, seen = to_move, {at for at, one in enumerate(colors) if one != EMPTY}
    drawn = [(at, one, "") for at, one in enumerate(colors) if one != EMPTY]
    for number, index in enumerate(line, 1):
        if index >= 0 and index not in seen:
            drawn.append((index, color, str(number)))
            seen.add(index)
        color = BLACK + WHITE - color
    for at, one, text in drawn:
        row, column = divmod(at, size)
        face, ink = ("#111", "#fff") if one == BLACK else ("#fafafa", "#111")
        axes.scatter([column], [row], s=0.85 * width, color=face, edgecolors="#444", linewidths=0.6, zorder=3)
        axes.text(column, row, text, color=ink, ha="center", va="center", fontsize=font, zorder=4)
    if played >= 0:
        place = [played % size], [played // size]
        if played in seen:
            axes.scatter(*place, s=0.85 * width, facecolors="none", edgecolors=KIND_COLORS[5], linewidths=2, zorder=5)
        else:
            axes.scatter(*place, marker="x", s=0.3 * width, color=KIND_COLORS[5], zorder=5)
    axes.set_xticks(range(size), list(COLUMNS[:size]))
    axes.set_yticks(range(size), [str(size - n) for n in range(size)])
    axes.set(xlim=(-0.7, size - 0.3), ylim=(size - 0.3, -0.7), aspect="equal")
    return _saved(figure)
