"""A game: its first position, moves, rules and komi.

A :class:`Game` keeps its first and its current position. Undo and a change of rules replay the moves from the first
position by the kernel that plays moves, so hashes and the history for superko are as if just played. After undo, after
a change of rules and when its capacity grows, ``position`` is a new object; references to the old one stay valid.

Where GTP defines an error message, the message of the ``ValueError`` begins with it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from engine.config import SetupOptions
from engine.go.board import (
    META_CAPTURED_BLACK,
    META_CAPTURED_WHITE,
    META_N_EMPTY,
    META_SIZE,
    play,
    stones_lost_by_suicide,
)
from engine.go.geometry import BLACK, EMPTY, MAX_SIZE, MIN_SIZE, PASS, WHITE, on_board_points, other
from engine.go.handicap import check_free_handicap, fixed_handicap_points, free_handicap_points
from engine.go.position import (
    META_HANDICAP,
    META_N_MOVES,
    META_PASSES,
    META_TO_MOVE,
    Position,
    apply_rules,
    begin,
    is_legal_move,
    new_position,
    play_if_legal,
    play_move,
    with_capacity,
)
from engine.go.rules import RULE_KOMI_X2, RULE_SETS, Rules, twice_komi
from engine.system.jit import kernel

DEFAULT_RULES = SetupOptions.rules
DEFAULT_KOMI = SetupOptions.komi


class Stage(NamedTuple):
    """A part of a game that ends with a setup in mid-game: its first position and its moves."""

    stones: dict[int, int]
    """point -> colour of each stone before the first move"""
    to_move: int
    moves: list[tuple[int, int]]
    """colour and point of each move, oldest first"""


class Game:
    """A game: first position, moves, current position, rules and komi."""

    position: Position
    _first: Position
    """the first position; never changed, since copies of the game share it"""
    earlier: Sequence[Stage]
    """parts of the game before the first position, oldest first; only written to records, never replayed"""

    def __init__(self, size: int = 19, rules: Rules = RULE_SETS[DEFAULT_RULES], komi: float = DEFAULT_KOMI) -> None:
        self._rules = rules
        self._half_points = twice_komi(komi)
        self.new(size)

    @property
    def size(self) -> int:
        return int(self.position.board.meta[META_SIZE])

    @property
    def rules(self) -> Rules:
        return self._rules

    @property
    def komi(self) -> float:
        """Points that White gets, a multiple of 0.5."""
        return self._half_points / 2

    @property
    def handicap(self) -> int:
        """Number of handicap stones, 0 in an even game; see :func:`engine.go.position.play_move`."""
        return int(self.position.meta[META_HANDICAP])

    @property
    def to_move(self) -> int:
        """The colour to move; after a move, the opponent of the colour that played it."""
        return int(self.position.meta[META_TO_MOVE])

    @property
    def n_moves(self) -> int:
        """Number of moves played; passes count, handicap stones do not."""
        return int(self.position.meta[META_N_MOVES])

    @property
    def is_over(self) -> bool:
        """Whether the last two moves were passes (a pass that took the button does not count)."""
        return int(self.position.meta[META_PASSES]) >= 2

    def moves(self) -> list[tuple[int, int]]:
        """Colour and point of every move, oldest first."""
        colors, points = self.position.colors, self.position.moves
        return [(int(colors[n]), int(points[n])) for n in range(self.n_moves)]

    def start_stones(self) -> dict[int, int]:
        """Point -> colour of every stone that was on the board before the first move."""
        return _stones(self._first)

    def stones(self) -> dict[int, int]:
        """Point -> colour of every stone on the board."""
        return _stones(self.position)

    @property
    def start_to_move(self) -> int:
        """The colour to move before the first move."""
        return int(self._first.meta[META_TO_MOVE])

    def captures(self, color: int) -> int:
        """Number of stones that the opponent of ``color`` has lost, captured or by suicide."""
        return int(self.position.board.meta[META_CAPTURED_BLACK + other(color) - BLACK])

    def new(self, size: int) -> None:
        """Start a new game on an empty board; rules and komi stay.

        Raises:
            ValueError: "unacceptable size"; the game stays as it is.
        """
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise ValueError(f"unacceptable size: {size}, expected {MIN_SIZE} to {MAX_SIZE}")
        self._begin(new_position(size), BLACK)

    def set_komi(self, komi: float) -> None:
        """Set the komi, in the middle of a game too.

        Raises:
            ValueError: the komi is not a multiple of 0.5, or too large (:func:`engine.go.rules.twice_komi`).
        """
        self._half_points = twice_komi(komi)
        self._first = with_capacity(self._first, 1)
        self._first.rules[RULE_KOMI_X2] = self._half_points
        self.position.rules[RULE_KOMI_X2] = self._half_points

    def set_rules(self, rules: Rules) -> None:
        """Change the rules, and replay the game under them."""
        self._rules = rules
        self._first = with_capacity(self._first, 1)
        apply_rules(self._first, rules, self.komi)
        self._replay(self.n_moves)

    def is_legal(self, color: int, point: int) -> bool:
        """Whether a move is legal under the game's rules, superko included; a pass always is."""
        return point == PASS or (self._is_empty(point) and bool(is_legal_move(self.position, point, color)))

    def play(self, color: int, point: int) -> None:
        """Play a move of either colour, also out of turn.

        Repetition and suicide of several stones are accepted, since the client's rules may allow them.

        Raises:
            ValueError: "illegal move": the point is occupied or not on the board, or the move is a suicide of a single
                stone, which no rules allow.
        """
        if color not in (BLACK, WHITE) or not (point == PASS or self._is_empty(point)):
            raise ValueError("illegal move")
        if point != PASS and stones_lost_by_suicide(self.position.board, point, color) == 1:
            raise ValueError("illegal move")
        self._make_room()
        play_move(self.position, point, color)

    def play_if_legal(self, color: int, point: int) -> bool:
        """Play a move if it is legal under the game's rules, superko included; returns whether it is.

        Args:
            color: BLACK or WHITE.
            point: on the board, or PASS.
        """
        self._make_room()
        return bool(play_if_legal(self.position, point, color))

    def copy(self) -> Self:
        """A game whose moves can be played and undone without changing this one."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        twin.position = with_capacity(self.position, len(self.position.moves))
        return twin

    def __reduce__(self) -> tuple[Callable[..., "Game"], tuple[object, ...]]:
        """Pickle what the game was built from: the arrays of a board are views of one buffer, which pickle would split.

        Positions are rebuilt by replaying, so :func:`engine.go.position.hide_course` is forgotten.
        """
        taken = self._first.board.meta[[META_CAPTURED_BLACK, META_CAPTURED_WHITE]].tolist()
        first = Stage(self.start_stones(), self.start_to_move, self.moves())
        return _rebuilt, (self.size, self._rules, self.komi, first, (taken[0], taken[1]), self.earlier)

    def undo(self) -> None:
        """Take the last move back.

        Raises:
            ValueError: "cannot undo": no move has been played since the start, the handicap or the setup.
        """
        if self.n_moves == 0:
            raise ValueError("cannot undo")
        self._replay(self.n_moves - 1)

    def setup_stones(
        self, black: Iterable[int], white: Iterable[int], to_move: int, captured: tuple[int, int] = (0, 0),
        earlier: Sequence[Stage] = (),
    ) -> None:  # fmt: skip
        """Start the game, without moves, from given stones; two or more of Black's alone are a handicap.

        Args:
            captured: number of Black's and of White's stones captured before this position.
            earlier: parts of the game before this position, oldest first.
        Raises:
            ValueError: a point is named twice or off the board, or a chain has no liberty; the game is not changed.
        """
        position = new_position(self.size)
        stones = [(int(point), BLACK) for point in black] + [(int(point), WHITE) for point in white]
        if len({point for point, _ in stones}) < len(stones):
            raise ValueError("setup: a point is named twice")
        for point, color in stones:
            if not _on_board(position, point):
                raise ValueError("setup: a point is not on the board")
            if position.board.color[point] == EMPTY:
                play(position.board, point, color)
        # If all chains have a liberty in the end, none lacks one while stones are added, so no stone is captured.
        if any(position.board.color[point] != color for point, color in stones):
            raise ValueError("setup: a chain has no liberty")
        position.board.meta[META_CAPTURED_BLACK], position.board.meta[META_CAPTURED_WHITE] = captured
        self._begin(position, to_move)
        self.earlier = earlier

    def fixed_handicap(self, count: int) -> list[int]:
        """Place handicap stones on GTP 2's fixed points; White is to move.

        Returns:
            list[int]: the points, in the order of the specification.
        Raises:
            ValueError: "board not empty", or "invalid number of stones" for this size.
        """
        points = fixed_handicap_points(self.size, count)
        self._place_handicap(points)
        return points

    def place_free_handicap(self, count: int) -> list[int]:
        """Place handicap stones on points of the engine's choice; White is to move.

        Returns:
            list[int]: ``count`` points, see :func:`engine.go.handicap.free_handicap_points`.
        Raises:
            ValueError: "board not empty", or "invalid number of stones".
        """
        points = free_handicap_points(self.size, count)
        self._place_handicap(points)
        return points

    def set_free_handicap(self, points: Iterable[int]) -> None:
        """Place handicap stones on points of the client's choice; White is to move.

        Raises:
            ValueError: "board not empty", or "bad vertex list": see :func:`engine.go.handicap.check_free_handicap`.
        """
        stones = [int(point) for point in points]
        check_free_handicap(stones, self.size)
        self._place_handicap(stones)

    def _place_handicap(self, points: list[int]) -> None:
        """Start the game with Black's handicap stones, White to move; raises ValueError if it has begun."""
        if self.n_moves or self.position.board.meta[META_N_EMPTY] < self.size**2:
            raise ValueError("board not empty")
        position = new_position(self.size)
        for point in points:
            play(position.board, point, BLACK)
        self._begin(position, WHITE)

    def _begin(self, position: Position, to_move: int) -> None:
        """Make a position the first of the game, under the game's rules and komi, without history."""
        begin(position, to_move)
        apply_rules(position, self._rules, self.komi)
        self.position = position
        self._first = with_capacity(position, 1)
        self.earlier = ()

    def _replay(self, count: int) -> None:
        """Set ``position`` to the one after the first ``count`` moves, by replaying them."""
        played = self.position
        self.position = with_capacity(self._first, len(played.moves))
        _play_moves(self.position, played.moves, played.colors, count)

    def _make_room(self) -> None:
        """Make room for one more move."""
        if self.n_moves == len(self.position.moves):
            self.position = with_capacity(self.position, 2 * self.n_moves)

    def _is_empty(self, point: int) -> bool:
        return _on_board(self.position, point) and self.position.board.color[point] == EMPTY


def _rebuilt(
    size: int, rules: Rules, komi: float, stage: Stage, captured: tuple[int, int], earlier: Sequence[Stage]
) -> Game:
    """The game that :meth:`Game.__reduce__` took apart."""
    game = Game(size, rules, komi)
    black, white = ([point for point, of in stage.stones.items() if of == color] for color in (BLACK, WHITE))
    game.setup_stones(black, white, stage.to_move, captured, earlier)
    game.position = with_capacity(game.position, max(len(game.position.moves), len(stage.moves)))
    points = np.array([point for _, point in stage.moves], game.position.moves.dtype)
    colors = np.array([color for color, _ in stage.moves], game.position.colors.dtype)
    _play_moves(game.position, points, colors, len(points))
    return game


@kernel
def _play_moves(position, points, colors, count):
    """Play the first ``count`` of the given moves."""
    for n in range(count):
        play_move(position, points[n], colors[n])


def _on_board(position: Position, point: int) -> bool:
    cells = position.board.color
    return 0 < point < len(cells) and cells[point] <= WHITE


def _stones(position: Position) -> dict[int, int]:
    """Point -> colour of every stone of a position."""
    cells = position.board.color
    points = on_board_points(int(position.board.meta[META_SIZE]))
    return {int(point): int(cells[point]) for point in points if cells[point] != EMPTY}
