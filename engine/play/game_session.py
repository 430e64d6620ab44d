"""One game and its clock: the front end's only entry for changes of them.

A :class:`GameSession` needs neither network nor search, so it answers while they load; an
:class:`engine.play.early.EarlySession` answers before its kernels are compiled. A :class:`engine.play.player.Player` is
a session that also chooses moves; it takes over the game.
"""

from collections.abc import Iterable
from enum import Enum, auto

from engine.go.diagram import render
from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES, Game
from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.rules import Rules, rules_named
from engine.go.sgf import read_sgf, write_sgf
from engine.nets.notices import say_once
from engine.play.clock import Clock
from engine.play.early import EarlySession, check_size, nearest_size

RESIGN = -1
"""What a player may answer instead of a point: it gives the game up."""


class Purpose(Enum):
    """What a move is asked for."""

    PLAY = auto()
    """it is played, the clock charged; a lost game is resigned"""
    CLEAN_UP = auto()
    """likewise, but the players could not agree which stones are dead: those of the opponent are captured before a
    pass, whatever the rules, and nothing is resigned"""
    PROPOSE = auto()
    """it may be played next; a lost game is resigned, but by one whose search was interrupted"""
    SAY = auto()
    """it is only said"""

    @property
    def plays(self) -> bool:
        """Whether the move is played at once."""
        return self in (Purpose.PLAY, Purpose.CLEAN_UP)


class GameSession:
    """A game with its clock. Threads: one caller."""

    def __init__(
        self, size: int = 19, rules: str = DEFAULT_RULES, komi: float = DEFAULT_KOMI, lag_s: float = 0.0,
        sizes: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        """An empty board.

        Args:
            size: begun with, or the nearest one that is accepted.
            lag_s: as for :class:`engine.play.clock.Clock`.
            sizes: smallest and largest board that is accepted; None = all that the rules know.
        Raises:
            ValueError: rules, komi or size cannot be used; one clear line.
        """
        self._sizes = sizes
        self.game = Game(nearest_size(size, sizes), rules_named(rules), komi)
        """read by anyone, changed here alone"""
        self.clock = Clock(lag_s)

    def _before_change(self) -> None:
        """Called before the game changes."""

    def _begin(self) -> None:
        """Called when another game has begun."""
        self.clock.begin_game()

    def new_game(self, size: int) -> None:
        """An empty board; rules, komi and time settings stay.

        Raises:
            ValueError: "unacceptable size", with the reason; the game stays as it is.
        """
        check_size(size, self._sizes)
        self._before_change()
        self.game.new(size)
        self._begin()

    def load_sgf(self, data: bytes, n_moves: int | None = None) -> None:
        """Take over the main line of an SGF file, as far as ``n_moves``; None = to its end.

        Komi and rules stay as they are where the file does not name them.

        Raises:
            ValueError: broken, too large, no Go, or a size that is not played; the game stays as it is.
        """
        record = read_sgf(data, n_moves)
        check_size(record.size, self._sizes)
        self._before_change()
        self.game = record.to_game(self.game.rules, self.game.komi)
        self._begin()
        if record.unknown_rules:
            say_once(f"SGF: no rules are called {record.unknown_rules!r}: {self.game.rules.name} stay in force")

    def sgf(self) -> str:
        """The game so far as SGF."""
        return write_sgf(self.game)

    def play(self, color: int, point: int) -> None:
        """Play a move for a colour, in or out of turn.

        Raises:
            ValueError: "illegal move"; see :meth:`engine.go.game.Game.play`.
        """
        self._before_change()
        self.game.play(color, point)

    def undo(self) -> None:
        """Take the last move back.

        Raises:
            ValueError: "cannot undo".
        """
        self._before_change()
        self.game.undo()

    def set_rules(self, rules: Rules) -> None:
        """Put the game under other rules, as if it had been played under them from its start."""
        self._before_change()
        self.game.set_rules(rules)

    def set_komi(self, komi: float) -> None:
        """Set the komi, in the middle of a game too; it stays for all games to come.

        Raises:
            ValueError: not in half points.
        """
        self._before_change()
        self.game.set_komi(komi)

    def set_up(self, black: Iterable[int], white: Iterable[int], to_move: int) -> None:
        """Begin the game anew from a position; see :meth:`engine.go.game.Game.setup_stones`."""
        self._before_change()
        self.game.setup_stones(black, white, to_move)
        self._begin()

    def fixed_handicap(self, count: int) -> list[int]:
        """Place handicap stones; see :meth:`engine.go.game.Game.fixed_handicap`."""
        self._before_change()
        return self.game.fixed_handicap(count)

    def place_free_handicap(self, count: int) -> list[int]:
        """Place handicap stones; see :meth:`engine.go.game.Game.place_free_handicap`."""
        self._before_change()
        return self.game.place_free_handicap(count)

    def set_free_handicap(self, points: Iterable[int]) -> None:
        """Place handicap stones; see :meth:`engine.go.game.Game.set_free_handicap`."""
        self._before_change()
        self.game.set_free_handicap(points)

    def diagram(self) -> str:
        """The board as text, the last move marked."""
        moves = self.game.moves()
        return render(self.game.position.board, moves[-1][1] if moves else PASS)


def begun(early: EarlySession) -> GameSession:
    """The session of a game that has begun without a board: its clock, stones, moves and rules."""
    session, record = GameSession(early.game.size, sizes=early.sizes), early.game
    session.clock = early.clock
    session.game = Game(record.size, record.rules, record.komi)
    stones = record.start_stones()
    black, white = ([point for point, owner in stones.items() if owner == color] for color in (BLACK, WHITE))
    session.game.setup_stones(black, white, record.start_to_move)
    for color, point in record.moves():
        session.game.play(color, point)
    return session
