"""A game session without numpy, Numba and kernels, for the first commands of a client.

Importing Numba takes a second, compiling the board's kernels several seconds, on a busy machine a minute; some clients
drop an engine that does not answer ``boardsize`` or ``play`` in that time. :func:`engine.play.game_session.begun`
continues the game with kernels.
"""

from collections.abc import Iterable, Sequence

from sgfmill.boards import Board

from engine.config import SetupOptions
from engine.go.handicap import check_free_handicap, fixed_handicap_points, free_handicap_points
from engine.go.points import BLACK, MAX_SIZE, MIN_SIZE, PASS, WHITE, is_on_board, other
from engine.go.rules import Rules, rules_named, twice_komi
from engine.nets.notices import said_sizes
from engine.play.clock import Clock


def nearest_size(size: int, sizes: tuple[int, int] | None) -> int:
    """The board size nearest to ``size`` between the two ``sizes``; None = all sizes are accepted."""
    return size if sizes is None else min(max(size, sizes[0]), sizes[1])


def check_size(size: int, sizes: tuple[int, int] | None) -> None:
    """Refuse unacceptable board sizes.

    Args:
        sizes: smallest and largest size that the network plays; None = all sizes that the rules allow.
    Raises:
        ValueError: "unacceptable size", with the reason.
    """
    if sizes and not sizes[0] <= size <= sizes[1]:
        raise ValueError(f"unacceptable size: {size}, the network plays {said_sizes(sizes)}")
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(f"unacceptable size: {size}, expected {MIN_SIZE} to {MAX_SIZE}")


class EarlyGame:
    """A game that needs no kernels; attributes and methods mean the same as in :class:`engine.go.game.Game`."""

    def __init__(self, size: int, rules: Rules, komi: float) -> None:
        self.rules = rules
        self.size = size
        self.set_komi(komi)
        self.set_up((), (), BLACK)

    def set_komi(self, komi: float) -> None:
        self.komi = twice_komi(komi) / 2

    def set_up(self, black: Iterable[int], white: Iterable[int], to_move: int) -> None:
        """Start the game from a position, as :meth:`engine.go.game.Game.setup_stones` does."""
        stones = [(point, BLACK) for point in black] + [(point, WHITE) for point in white]
        if len({point for point, _ in stones}) < len(stones):
            raise ValueError("setup: a point is named twice")
        if not all(is_on_board(point, self.size) for point, _ in stones):
            raise ValueError("setup: a point is not on the board")
        board = Board(self.size)
        places = ([self._place(point) for point, color in stones if color == one] for one in (BLACK, WHITE))
        if not board.apply_setup(*places, ()):
            raise ValueError("setup: a chain has no liberty")
        self._board, self._first = board, board.copy()
        self._start_stones, self.start_to_move = dict(stones), to_move
        self._moves: list[tuple[int, int]] = []

    def start_stones(self) -> dict[int, int]:
        return dict(self._start_stones)

    @property
    def n_moves(self) -> int:
        return len(self._moves)

    @property
    def to_move(self) -> int:
        return other(self._moves[-1][0]) if self._moves else self.start_to_move

    def moves(self) -> list[tuple[int, int]]:
        return list(self._moves)

    def play(self, color: int, point: int) -> None:
        """Play a move; ko and suicide of several stones are legal here, as in :meth:`engine.go.game.Game.play`."""
        if point != PASS:
            row, column = self._place(point)
            around = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
            own = any(self._is_stone(*place, color) for place in around)
            if not is_on_board(point, self.size) or self._board.get(row, column) is not None:
                raise ValueError("illegal move")
            before = self._board.copy()
            self._board.play(row, column, "bw"[color - BLACK])
            if not own and self._board.get(row, column) is None:
                self._board = before
                raise ValueError("illegal move")
        self._moves.append((color, point))

    def undo(self) -> None:
        """Take the last move back, as :meth:`engine.go.game.Game.undo` does."""
        if not self._moves:
            raise ValueError("cannot undo")
        self._moves.pop()
        self._board = self._first.copy()
        for color, point in self._moves:
            if point != PASS:
                self._board.play(*self._place(point), "bw"[color - BLACK])

    def handicap(self, points: Sequence[int]) -> None:
        """Place Black's handicap stones, whose points were checked before, on the empty board."""
        if self._moves or not self._board.is_empty():
            raise ValueError("board not empty")
        self.set_up(points, (), WHITE)

    def _place(self, point: int) -> tuple[int, int]:
        """Row and column of a point, from 0 at the top left."""
        row, column = divmod(point, self.size + 1)
        return row - 1, column - 1

    def _is_stone(self, row: int, column: int, color: int) -> bool:
        is_there = 0 <= row < self.size and 0 <= column < self.size
        return is_there and self._board.get(row, column) == "bw"[color - BLACK]


class EarlySession:
    """A game and its clock that need no kernels.

    Methods have the effects and error messages of :class:`engine.play.game_session.GameSession`. Threads: one caller.
    """

    def __init__(
        self, size: int = SetupOptions.size, rules: str = SetupOptions.rules, komi: float = SetupOptions.komi,
        lag_s: float = 0.0, sizes: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        """An empty board; arguments and errors as for a :class:`engine.play.game_session.GameSession`."""
        self.sizes = sizes
        size = nearest_size(size, sizes)
        check_size(size, sizes)
        self.game = EarlyGame(size, rules_named(rules), komi)
        self.clock = Clock(lag_s)

    def new_game(self, size: int) -> None:
        check_size(size, self.sizes)
        self.game = EarlyGame(size, self.game.rules, self.game.komi)
        self.clock.begin_game()

    def set_up(self, black: Iterable[int], white: Iterable[int], to_move: int) -> None:
        self.game.set_up(black, white, to_move)
        self.clock.begin_game()

    def set_rules(self, rules: Rules) -> None:
        self.game.rules = rules

    def set_komi(self, komi: float) -> None:
        self.game.set_komi(komi)

    def play(self, color: int, point: int) -> None:
        self.game.play(color, point)

    def undo(self) -> None:
        self.game.undo()

    def fixed_handicap(self, count: int) -> list[int]:
        points = fixed_handicap_points(self.game.size, count)
        self.game.handicap(points)
        return points

    def place_free_handicap(self, count: int) -> list[int]:
        points = free_handicap_points(self.game.size, count)
        self.game.handicap(points)
        return points

    def set_free_handicap(self, points: Iterable[int]) -> None:
        stones = list(points)
        check_free_handicap(stones, self.game.size)
        self.game.handicap(stones)
