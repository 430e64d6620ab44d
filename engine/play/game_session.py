"""A game session: one game and its clock, which front ends change only through its methods.

A :class:`GameSession` needs neither network nor search, so it answers while they load; an
:class:`engine.play.early.EarlySession` answers before the board's kernels are compiled. A
:class:`engine.play.player.Player` is a session that also chooses moves; it takes over such a session's game.
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
"""Returned in place of a point: the player resigns."""


class Purpose(Enum):
    """What :meth:`engine.play.player.Player.genmove` does with the move that it chooses."""

    PLAY = auto()
    """play the move and charge the clock; may resign"""
    CLEAN_UP = auto()
    """play the move and charge the clock; never resigns. The players disagreed about dead stones, so the opponent's
    dead stones are captured before a pass, whatever the rules"""
    PROPOSE = auto()
    """only return the move, which the client is to play next; may resign, unless the search was interrupted"""
    ANSWER = auto()
    """only return the move, for information; never resigns"""

    @property
    def plays(self) -> bool:
        """Whether ``genmove`` plays the move itself."""
        return self in (Purpose.PLAY, Purpose.CLEAN_UP)


class GameSession:
    """A game with its clock. Threads: one caller."""

    def __init__(
        self, size: int = 19, rules: str = DEFAULT_RULES, komi: float = DEFAULT_KOMI, lag_s: float = 0.0,
        sizes: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        """Start with an empty board.

        Args:
            size: first board size, or the nearest accepted one.
            lag_s: as for :class:`engine.play.clock.Clock`.
            sizes: smallest and largest accepted board; None = all sizes that the rules allow.
        Raises:
            ValueError: rules, komi or size cannot be used; one clear line.
        """
        self._sizes = sizes
        self.game = Game(nearest_size(size, sizes), rules_named(rules), komi)
        """changed only by this session's methods"""
        self.clock = Clock(lag_s)

    def _before_change(self) -> None:
        """Called before each change of the game; subclasses override it."""

    def _begin(self) -> None:
        """Called after the start of another game: reset the clock."""
        self.clock.begin_game()

    def new_game(self, size: int) -> None:
        """Start a game on an empty board; rules, komi and time settings stay.

        Raises:
            ValueError: "unacceptable size", with the reason; the game stays unchanged.
        """
        check_size(size, self._sizes)
        self._before_change()
        self.game.new(size)
        self._begin()

    def load_sgf(self, data: bytes, n_moves: int | None = None) -> None:
        """Load the main line of an SGF file up to ``n_moves``; None = to its end.

        Komi and rules stay unchanged if the file does not name them.

        Raises:
            ValueError: damaged, too large, not Go, or an unacceptable size; the game stays unchanged.
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
        """Undo the last move.

        Raises:
            ValueError: "cannot undo".
        """
        self._before_change()
        self.game.undo()

    def set_rules(self, rules: Rules) -> None:
        """Change the rules, as if the game had been played under them from its start."""
        self._before_change()
        self.game.set_rules(rules)

    def set_komi(self, komi: float) -> None:
        """Set the komi of this game and following ones.

        Raises:
            ValueError: not a multiple of 0.5.
        """
        self._before_change()
        self.game.set_komi(komi)

    def set_up(self, black: Iterable[int], white: Iterable[int], to_move: int) -> None:
        """Start a game from a position; see :meth:`engine.go.game.Game.setup_stones`."""
        self._before_change()
        self.game.setup_stones(black, white, to_move)
        self._begin()

    def fixed_handicap(self, count: int) -> list[int]:
        """Place ``count`` handicap stones on the fixed points; see :meth:`engine.go.game.Game.fixed_handicap`."""
        self._before_change()
        return self.game.fixed_handicap(count)

    def place_free_handicap(self, count: int) -> list[int]:
        """Place handicap stones on points of our choice; see :meth:`engine.go.game.Game.place_free_handicap`."""
        self._before_change()
        return self.game.place_free_handicap(count)

    def set_free_handicap(self, points: Iterable[int]) -> None:
        """Place handicap stones on the client's points; see :meth:`engine.go.game.Game.set_free_handicap`."""
        self._before_change()
        self.game.set_free_handicap(points)

    def diagram(self) -> str:
        """The board as text, the last move marked."""
        moves = self.game.moves()
        return render(self.game.position.board, moves[-1][1] if moves else PASS)


def begun(early: EarlySession) -> GameSession:
    """A session with kernels that continues an early session's game: stones, moves, rules, komi and clock."""
    session, record = GameSession(early.game.size, sizes=early.sizes), early.game
    session.clock = early.clock
    session.game = Game(record.size, record.rules, record.komi)
    stones = record.start_stones()
    black, white = ([point for point, owner in stones.items() if owner == color] for color in (BLACK, WHITE))
    session.game.setup_stones(black, white, record.start_to_move)
    for color, point in record.moves():
        session.game.play(color, point)
    return session
