"""Players and positions for tests of what they choose. Rollouts alone unless a test needs more."""

import threading

from engine.config import PlayOptions, SearchOptions
from engine.go import diagram
from engine.go.geometry import BLACK, WHITE, on_board_points, other, point_at

SEARCH = SearchOptions(threads=1, seed=1)
FEW = PlayOptions(visits=64, seconds=0.0)

DEAD_STONES = """
    . . . X O . . . .
    . O . X O . O . .
    . . X X O O . . .
    X X . X X O . O .
    . . X . X O O . .
    . X . . X X O . .
    . . . X . X O O .
    . O . X . X X O .
    . . . X . . X O .
"""
"""Black has 45 points and two dead white stones in them; counted as they stand these make Black's regions dame."""

SEKI_IN_A_CORNER = """
    . O . X . X O . .
    O O O X X X O . .
    X X X O O O . . .
    . . X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
"""
"""One eye each, at A9 and E9, and a dame between them; White has the rest of the right"""

SEKI_AT_C3 = """
    X . X . X O O . O
    . X . X X X O O .
    X . X X . X O O O
    X X X . X X O . O
    O O X X O X X O O
    . O O O O X . X O
    O O . O X X X X O
    X X X O X . X O O
    . X X O X . X X O
"""
"""From a game against GNU Go 3.8: in the lower left each side has one eye, and a move at C3 loses for both"""

TWO_EYES = """
    . X O O .
    X X O O O
    X X O . O
    X X O O O
    . X O O O
"""
"""Black's only moves fill its eyes, White's too"""

WALLS = "\n".join([". . X X O O . . ."] * 4 + [". O X X O O . . ."] + [". . X X O O . . ."] * 4)
"""Black has 36 points, White 45; random games still win this one time in ten"""


def position(player, text, to_move):
    """Set a player's board up from a diagram."""
    board = diagram.parse(text).board
    size = int(board.meta[0])
    player.new_game(size)
    points = on_board_points(size).tolist()
    stones = {color: [point for point in points if board.color[point] == color] for color in (BLACK, WHITE)}
    player.game.setup_stones(stones[BLACK], stones[WHITE], to_move)
    return player


def scatter(player, count, color):
    """Play isolated stones, colours in turn, to a number of moves: nothing is settled."""
    size = player.game.size
    spread = [point_at(row, column, size) for row in range(size) for column in range(row % 2, size, 2)]
    for point in spread:
        if player.game.n_moves < count and player.game.is_legal(color, point):
            player.play(color, point)
            color = other(color)


def ponder_threads():
    """The threads of this process that search in an opponent's time."""
    return [thread for thread in threading.enumerate() if thread.name == "ponder"]


def is_pondering():
    """Whether a player of this process searches in its opponent's time."""
    return bool(ponder_threads())


def ponder_to_the_end():
    """Wait until its own limits, or a failure, have ended every search in an opponent's time."""
    for thread in ponder_threads():
        thread.join()
