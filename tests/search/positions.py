"""Games for tests of the search, from diagrams or random moves."""

import random

import numpy as np

from engine.go.board import META_SIZE
from engine.go.diagram import parse
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, other
from engine.go.position import is_legal_move
from engine.go.rules import rules_named


def game_from(text: str, to_move: int = BLACK, komi: float = 0.0, rules: str = "tromp-taylor", passed: bool = False):
    """A game that begins at a diagram.

    Args:
        passed: the opponent has just passed.
    """
    board = parse(text).board
    game = Game(int(board.meta[META_SIZE]), rules_named(rules), komi)
    black, white = (np.flatnonzero(board.color == color).tolist() for color in (BLACK, WHITE))
    game.setup_stones(black, white, other(to_move) if passed else to_move)
    if passed:
        game.play(other(to_move), PASS)
    return game


def random_game(size: int, moves: int, seed: int, rules: str = "tromp-taylor", komi: float = 0.5) -> Game:
    """A game of so many random legal moves."""
    rng = random.Random(seed)
    game = Game(size, rules_named(rules), komi)
    points = [(row + 1) * (size + 1) + column + 1 for row in range(size) for column in range(size)]
    for _ in range(moves):
        legal = [point for point in points if is_legal_move(game.position, point, game.to_move)]
        game.play(game.to_move, rng.choice(legal) if legal else PASS)
    return game
