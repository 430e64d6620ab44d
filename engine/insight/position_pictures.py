"""Pictures of a position as a network and a search see it: AlphaGo's Figure 5, ownership, a network's layers.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 2016, Figure 5.
"""

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.go.geometry import on_board_points, to_vertex
from engine.go.points import BLACK, WHITE
from engine.insight.layers import STEPS, ZERO, layers
from engine.insight.thinking import Thinking
from engine.pictures.charts import side_by_side
from engine.pictures.panels import layer_drawing, line_board, numbers_board, ownership_board, panel
from engine.play.player import Player

PANELS = {
    "value": ("values", "a  Value network", "win rate after each move, without search"),
    "q": ("qValue", "b  Tree, by values", "Q, lambda 0: mean value below each move"),
    "q-rollouts": ("qRollout", "c  Tree, by rollouts", "Q, lambda 1: mean rollout"),
    "policy": ("policy", "d  Policy network", "probability of each move, before the search"),
    "visits": ("visits", "e  Visits", "share of the search that went into each move"),
    "pv": ("line", "f  Principal variation", "the most visited line"),
}
"""Kind of picture -> part of :class:`engine.insight.thinking.Thinking`, title and explanation; in the figure's order"""
RATES = ("value", "q", "q-rollouts")
FIGURE_5, OWNERSHIP, LAYERS = "figure5", "ownership", "layers"
KINDS = (*PANELS, FIGURE_5, OWNERSHIP, LAYERS)
LINE = 20
"""Maximum number of moves of a principal variation"""
COLUMNS = 3


def picture(player: Player, kind: str, visits: int, layer: str = "") -> str:
    """Draw the player's position.

    Args:
        kind: of KINDS.
        visits: of the search, for the kinds that need one.
        layer: name of the layer, for LAYERS; empty = the input planes.
    Raises:
        ValueError: the network or the search lacks what the kind shows, or there is no such layer; one line.
    """
    game = player.game
    cells = game.position.board.color[on_board_points(game.size)].tolist()
    if kind == LAYERS:
        return _layers(player, layer)
    if kind == OWNERSHIP:
        report = player.look(game.to_move, visits)
        assert report.ownership_black is not None, "look() computes ownership"
        drawn = ownership_board(cells, report.ownership_black.tolist(), "ownership")
        return panel(
            drawn, f"Ownership, after {game.n_moves} moves", f"expected owner of each point, {report.visits} visits"
        )
    # The policy and the value network need no search.
    player.look(game.to_move, 1 if kind in ("policy", "value") else visits)
    wanted = tuple(PANELS) if kind == FIGURE_5 else (kind,)
    found = panels_of(player, wanted)
    if kind != FIGURE_5 and (missing := found[PANELS[kind][0]].get("missing")):
        raise ValueError(f"{kind}: {missing}")
    titles = {one: PANELS[one][1] for one in wanted}
    if kind != FIGURE_5:
        # Without the letter of the figure.
        titles[kind] = f"{titles[kind].split(maxsplit=1)[1]}, after {game.n_moves} moves"
    return side_by_side((_panel(one, titles[one], found, cells) for one in wanted), COLUMNS)


def panels_of(player: Player, kinds: Sequence[str]) -> dict[str, Any]:
    """The numbers of panels after a search: the result of :meth:`engine.insight.thinking.Thinking.whole`.

    Args:
        kinds: of PANELS.
    Raises:
        ValueError: the root is not expanded; one line.
    """
    thinking = Thinking(player.search, [PANELS[one][0] for one in kinds])
    try:
        found = thinking.whole()
    finally:
        thinking.close()
    if found is None:
        raise ValueError("the position has no move to show")
    return found


def _panel(kind: str, title: str, found: dict[str, Any], cells: list[int]) -> str:
    """One panel from the result of :meth:`engine.insight.thinking.Thinking.whole`."""
    part, _, about = PANELS[kind]
    shown, best = found[part], found["best"].get(part, -1)
    if kind == "pv":
        moves = shown["moves"][:LINE]
        drawn = line_board(cells, moves, BLACK if found["toMove"] == "black" else WHITE, title)
        return panel(drawn, title, f"{about}: {_line(moves, math.isqrt(len(cells)))}")
    drawn = numbers_board(cells, shown["points"], best, kind in RATES, title)
    return panel(drawn, title, shown.get("missing") or f"{about} ({shown['text']})")


def _line(moves: list[int], size: int) -> str:
    """The first moves of a line as text."""
    points = on_board_points(size)
    return " ".join(to_vertex(int(points[move]), size) if move >= 0 else "pass" for move in moves[:8])


def _layers(player: Player, layer: str) -> str:
    """The channels of a layer of the player's network."""
    found = layers(player.network_path, player.game.position, layer)
    if missing := found.get("missing"):
        raise ValueError(f"layers: {missing}")
    shape = found["channels"], found["size"], found["size"]
    data = np.frombuffer(base64.b64decode(found["picture"]), np.uint8).reshape(shape)
    drawn = layer_drawing(data, ZERO, STEPS, found["about"])
    return panel(drawn, f"Layer {found['layer']}", f"{found['about'].partition(': ')[2]}; orange above 0, blue below")
