"""Searches to measure speed by: positions from the opening into the middle game, each searched from nothing.

They are those of a game that the priors play against themselves, so they need no data and suit every board size.
"""

from collections.abc import Iterator
from typing import NamedTuple

from engine.go.game import Game
from engine.play.player import Player
from engine.search.report import Report

POSITIONS = 10
SPACING = 0.03
"""Moves between two positions, as a share of the board's points: 11 on 19x19"""


class Measured(NamedTuple):
    """One search."""

    n_moves: int
    """played before its position"""
    report: Report


def measure(player: Player, visits: int) -> Iterator[Measured]:
    """Search the positions one after the other; the player's game stays as it is, its tree and cache do not.

    Fewer come where the player is interrupted, or the game is over.

    Raises:
        NetworkFailed: it did, or does not answer.
    """
    game = Game(player.game.size, player.game.rules, player.game.komi)
    spacing = max(1, round(SPACING * game.size**2))
    for _ in range(POSITIONS):
        yield Measured(game.n_moves, player.search_anew(game.position, visits))
        for _ in range(spacing):
            moves = player.search_anew(game.position, 1).moves
            if not moves or game.is_over:
                return
            game.play(game.to_move, moves[0].point)
