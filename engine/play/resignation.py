"""When a lost game is given up: after a number of hopeless moves in a row, but not in the opening."""

from engine.config import PlayOptions
from engine.go.game import Game
from engine.go.geometry import WHITE

RESIGN_AFTER = 0.2
"""Moves before which neither side resigns, as a share of the board's points: 72 on 19x19."""
RESIGN_AFTER_A_STONE = 0.1
"""The same for each handicap stone that the player has given, up to ``RESIGN_LATEST`` in all."""
RESIGN_LATEST = 0.6


class Resignation:
    """Both colours' hopeless moves in a row, known by their positions: clients replay a game, some before each move.

    Threads: one caller at a time.
    """

    def __init__(self) -> None:
        self._latest: dict[int, tuple[int, int, int, int]] = {}
        """by colour: hopeless moves in a row, how many they were before the latest move, and moves played before that
        one and their superko key"""

    def is_due(self, game: Game, color: int, value_stm: float, options: PlayOptions) -> bool:
        """Note the value of a colour's next move, and say whether it is time to resign instead.

        Args:
            value_stm: -1 to 1 for the colour.
            options: of these, those that begin with "resign": what is hopeless, and how many such moves are enough.
        """
        count, before, n_moves, key = self._latest.get(color, (0, 0, 0, 0))
        if n_moves > game.n_moves or int(game.position.hashes[n_moves]) != key:
            before = 0  # Of another game, or of moves that were taken back.
        elif n_moves < game.n_moves:
            before = count
        count = before + 1 if value_stm < options.resign_below else 0
        self._latest[color] = count, before, game.n_moves, int(game.position.hashes[game.n_moves])
        return count >= options.resign_count and game.n_moves >= _earliest(game, color)


def _earliest(game: Game, color: int) -> float:
    """Moves before which the colour does not resign: more for White the more stones Black was given."""
    given = game.handicap if color == WHITE else 0
    return min(RESIGN_AFTER + RESIGN_AFTER_A_STONE * given, RESIGN_LATEST) * game.size**2
