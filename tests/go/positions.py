"""Games that begin at a diagram, or by random moves, and diagrams that several tests use."""

import contextlib
import random

import numpy as np

from engine.go.board import META_SIZE
from engine.go.diagram import parse
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, other
from engine.go.position import is_legal_move
from engine.go.rules import Rules, rules_named

DAME = """
    . X . O .
    . X . O .
    . X . O O
    . X X O .
    . X . O .
"""

SEKI = """
    . X . O . X .
    X X O O O X X
    O O O O O O O
    X X X X X X X
    . . . . . . .
    . . . . . . .
    . . . . . . .
"""

KO_MOUTH = """
    X . X O . O .
    X X O O O O O
    . X O . O . O
    X X O O O O O
    . X X X X X X
    X X . . . . .
    . X . . . X .
"""
"""Black's C7 is in atari, its last liberty B7 Black's; a white stone at G1 would be in atari too"""

TWO_EYES = """
    . X . X . O .
    X X X X . O .
    X X X X . O .
    X X X X . O .
    X X X X . O .
    X X X X . O .
    X X X X . O .
"""

ONE_EYE = """
    . X X X . O .
    X X X X . O .
    X X X X . O .
    X X X X . O .
    X X X X . O .
    X X X X . O .
    X X X X . O .
"""

TO_CONNECT = """
    . O O . O O .
    O O X X X O O
    X X X . X X X
    . . X X X . .
    X X X X X X X
    X . X . X . X
    X X X X X X X
"""
"""White's two chains have an eye each, and Black has left the dame at D7 to them."""

TO_CLOSE = """
    . O . . X
    O O O O X
    X X X X X
    . . X . .
    X X X X X
"""
"""White has a second eye at C5 after D5, which is a dame now; a move at C5 itself would leave him with one."""

TANGLED = """
    . X . X O .
    X X X O . O
    . X O . O .
    X O . O O .
    O O O X X X
    . O X . X .
"""
"""Eyes, a false eye, a ko, suicides, captures and open points, for either side."""


def game_from(
    text: str, to_move: int = BLACK, komi: float = 0.0, rules: Rules | str = "tromp-taylor", passed: bool = False
) -> Game:
    """A game that begins at a diagram.

    Args:
        passed: the opponent has just passed.
    """
    board = parse(text).board
    game = Game(int(board.meta[META_SIZE]), rules_named(rules) if isinstance(rules, str) else rules, komi)
    black, white = (np.flatnonzero(board.color == color).tolist() for color in (BLACK, WHITE))
    game.setup_stones(black, white, other(to_move) if passed else to_move)
    if passed:
        game.play(other(to_move), PASS)
    return game


def random_game(size: int, moves: int, seed: int, rules: str = "tromp-taylor", komi: float = 0.5) -> Game:
    """A game of random legal moves."""
    rng = random.Random(seed)
    game = Game(size, rules_named(rules), komi)
    points = [(row + 1) * (size + 1) + column + 1 for row in range(size) for column in range(size)]
    for _ in range(moves):
        legal = [point for point in points if is_legal_move(game.position, point, game.to_move)]
        game.play(game.to_move, rng.choice(legal) if legal else PASS)
    return game


def orientations(text: str) -> list[str]:
    """A diagram in its eight orientations, each once even if it is symmetric."""
    rows = [line.split() for line in text.strip().splitlines()]
    found = []
    for _ in range(4):
        rows = [list(column) for column in zip(*rows[::-1], strict=True)]
        found += ["\n".join(map(" ".join, one)) for one in (rows, rows[::-1])]
    return list(dict.fromkeys(found))


def random_diagrams(size: int, count: int, seed: int) -> list[str]:
    """Diagrams of boards on which half of the points or more hold stones, as games leave them or not."""
    rng, found = random.Random(seed), []
    while len(found) < count:
        stones = rng.uniform(0.55, 0.85)
        signs = rng.choices(".XO", (1 - stones, stones / 2, stones / 2), k=size * size)
        text = "\n".join(" ".join(signs[row * size : (row + 1) * size]) for row in range(size))
        with contextlib.suppress(ValueError):
            parse(text)
            found.append(text)
    return found
