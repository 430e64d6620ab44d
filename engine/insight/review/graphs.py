"""The graphs and diagrams of one review."""

import math
from collections.abc import Sequence

from engine.go.geometry import BLACK, PASS, index_of
from engine.insight.review import svg
from engine.insight.review.judgement import POINTS, Move
from engine.insight.review.review import Review, amount, color_name, lead_text

LEAST_SCALE = 10.0
"""Points or percent that a graph of leads or losses shows at least"""
SHOWN_OF_A_LINE = 8


def winrate_graph(review: Review) -> str:
    """Black's win rate over the game."""
    values = {turn.number: 100 * turn.winrate_black for turn in review.turns}
    last = review.turns[-1]
    title = f"Black's win rate over {last.number} moves, at the end {100 * last.winrate_black:.0f}%"
    marks = ((0, "W"), (50, "50%"), (100, "B"))
    return svg.graph(values, last.number, 0, 100, title, marks, attributes='id="g-winrate"')


def lead_graph(review: Review) -> str:
    """Black's lead over the game; empty where nothing estimates it."""
    values = {turn.number: turn.lead_black for turn in review.turns if turn.lead_black is not None}
    if review.unit != POINTS or not values:
        return ""
    most = scale(list(values.values()))
    title = f"Black's lead in points over {review.turns[-1].number} moves, at the end {lead_text(values[max(values)])}"
    marks = ((most, f"B+{most:g}"), (0, "0"), (-most, f"W+{most:g}"))
    return svg.graph(values, review.turns[-1].number, -most, most, title, marks, attributes='id="g-lead"')


def loss_graph(review: Review) -> str:
    """What each move lost: Black's upwards, White's downwards."""
    most = scale([move.loss for move in review.moves if move.loss is not None])
    bars = [
        (move.number, move.counted if move.color == BLACK else -move.counted, move.kind or 0)
        for move in review.moves
        if move.counted
    ]
    unit = "" if review.unit == POINTS else "%"
    marks = ((most, f"B {most:g}{unit}"), (0, "0"), (-most, f"W {most:g}{unit}"))
    title = f"{'Points' if review.unit == POINTS else 'Percent'} lost by each move, Black's upwards, White's downwards"
    return svg.graph({}, review.turns[-1].number, -most, most, title, marks, bars, 'id="g-loss"')


def scale(values: Sequence[float]) -> float:
    """Where a graph ends: what holds 98% of the values, rounded up."""
    sizes = sorted(abs(value) for value in values) or [0.0]
    most = max(LEAST_SCALE, sizes[min(len(sizes) - 1, math.ceil(0.98 * len(sizes)) - 1)])
    step = 5 if most <= 50 else 10
    return step * math.ceil(most / step)


def indices(points: Sequence[int], size: int) -> list[int]:
    """Policy indices of points, -1 = a pass."""
    return [-1 if point == PASS else int(index_of(point, size)) for point in points]


def costly_diagram(review: Review, move: Move) -> str:
    """The position before a costly move: the move crossed, and what was better with numbers."""
    lines = review.better(move)
    line = indices(lines[0], review.size)[:SHOWN_OF_A_LINE] if lines else []
    better = " ".join(review.vertex(point) for point in lines[0][:SHOWN_OF_A_LINE]) if lines else ""
    title = (
        f"The board before move {move.number}. {color_name(move.color)} played {review.vertex(move.point)},"
        f" which lost {amount(move.counted, review.unit)}. Better: {better or 'nothing known'}."
    )
    played = indices([move.point], review.size)[0]
    return svg.board(review.game.colors(move.number - 1), review.size, title, line, move.color, played)
