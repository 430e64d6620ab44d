"""Questions whose answers change nothing: a rollout, the network's hidden layers, and an analysis of any position."""

import os
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from engine.config import SearchOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, on_board_points
from engine.go.points import MAX_SIZE, MIN_SIZE
from engine.go.position import Position
from engine.go.rules import rules_from
from engine.insight.layers import layers
from engine.insight.thinking import rollout
from engine.live.engine import Engine, session_of
from engine.live.words import why_illegal
from engine.play.player import Player
from gtp.web.live_search import point_from, told
from gtp.web.settings import number, shown, whole, word
from weights import NetworkPath

QUESTIONS = ("rollout", "layers")
VISITS = 100
"""Visits of an analysis that the page of a review asks for, as many as a position of the review has"""
MAX_LINE = 2000
"""Maximum number of moves before a position that is asked for"""


def answer(
    name: str, position: Position, body: Mapping[str, Any], network: NetworkPath | None, options: SearchOptions
) -> dict[str, Any]:
    """The answer to one of :data:`QUESTIONS`, as more keys of the reply.

    Args:
        position: only read.
        body: for ``layers`` with the name of a layer, by default the first.
        options: name the rollout policy.
    Raises:
        ValueError: the question has no answer, such as layers without a network; one line.
    """
    if name == "rollout":
        return {"rollout": rollout(position, options, int.from_bytes(os.urandom(7), "little"))}
    return layers(network, position, word(body, "layer", "") or None)


def game_of(body: Mapping[str, Any]) -> Game:
    """The game that the page of a review describes.

    Args:
        body: ``size``, ``rules``, ``komi``; ``start``: the colour of each point before the first move, 0, 1 or 2, in
            policy order; ``moves``: pairs of colour and index.
    Raises:
        ValueError: a value has a wrong type or is out of range, or a move is illegal; one line.
    """
    size = whole(body, "size", None, MIN_SIZE, MAX_SIZE)
    game = Game(size, rules_from(word(body, "rules", "")), number(body, "komi", 0.0, -1000.0, 1000.0))
    start, moves = word(body, "start", "0" * size**2), body.get("moves")
    if len(start) != size**2 or not set(start) <= set("012"):
        raise ValueError(f"start is {shown(start)}, expected {size**2} digits 0, 1 or 2")
    if not isinstance(moves, list) or not 1 <= len(moves) <= MAX_LINE or not all(map(_is_pair, moves)):
        raise ValueError(f"moves is {shown(moves)}, expected 1 to {MAX_LINE} pairs of colour and index")
    points = on_board_points(size).tolist()
    stones = {color: [point for point, sign in zip(points, start, strict=True) if sign == str(color)]
              for color in (BLACK, WHITE)}  # fmt: skip
    game.setup_stones(stones[BLACK], stones[WHITE], moves[0][0])
    for color, at in moves:
        point = point_from(at, size)
        try:
            # As in files, moves may repeat a position.
            game.play(color, point)
        except ValueError as error:
            raise ValueError(why_illegal(game, color, point)) from error
    return game


def _is_pair(move: Any) -> bool:
    """Whether a value is a colour and an integer."""
    is_pair = isinstance(move, list) and len(move) == 2 and all(type(one) is int for one in move)
    return is_pair and move[0] in (BLACK, WHITE)


def analysed(engine: Engine, game: Game) -> "Future[dict[str, Any]]":
    """An analysis of a game's position by :data:`VISITS`, in the form of an event of the live search."""
    session = session_of(game)

    def work(player: Player) -> dict[str, Any]:
        player.take_over(session)
        color = session.game.to_move
        return told(player.look(color, VISITS), session.game.size, color)

    return engine.submit(work)
