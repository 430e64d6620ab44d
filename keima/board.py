"""A Go board with its game: moves, legality, text, SGF, score and a picture."""

import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import compress, cycle, islice
from os import PathLike
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE
from engine.go.diagram import parse, render
from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES, Game
from engine.go.geometry import EMPTY, PASS, on_board_points
from engine.go.handicap import fixed_handicap_points
from engine.go.position import legal_moves
from engine.go.rules import CUSTOM, Rules, rules_from, short_form
from engine.go.scoring import remove_dead
from engine.go.seki import score_with_dame_filled
from engine.go.sgf import read_sgf, write_sgf
from engine.live.words import why_illegal
from engine.pictures.boards import diagram
from engine.pictures.drawing import Picture, stand_alone
from keima.moves import (
    BLACK,
    WHITE,
    Color,
    ColorLike,
    MarksLike,
    Move,
    MoveLike,
    move_at,
    move_of,
    moves_in,
    moves_of,
    point_of,
)
from keima.perspective import Lead, Ownership

LONGEST_REPR = 40
"""Number of moves up to which ``repr`` lists them"""
_TO_MOVE = re.compile(r"^(Black|White) to move$", re.MULTILINE)
_CAPTURED = re.compile(r"^Black \(X\) has captured (\d+), White \(O\) (\d+)$", re.MULTILINE)
"""The last lines of a board's text"""


class Board:
    """A board and the game that led to it.

    Two boards are equal if stones, side to move, :attr:`ko`, rules and komi are equal; their hash follows, so a board
    that is a key of a dictionary must not be changed. Boards can be copied and pickled. Threads: one at a time.
    """

    _game: Game

    def __init__(
        self, size: int = 19, *, rules: str = DEFAULT_RULES, komi: float | None = None, handicap: int = 0,
        moves: Iterable[MoveLike] = (),
    ) -> None:  # fmt: skip
        """Start a game.

        Args:
            size: 2 to 25.
            rules: a rule set such as ``"japanese"`` or ``"tromp-taylor"``, or KataGo's form of rules.
            komi: White's points, a multiple of 0.5; None = 7.5.
            handicap: number of Black's stones on the fixed points, 0 or from 2 on; White is to move after them.
            moves: moves to play, colours alternating; a string has them between spaces: ``"E5 C3 pass"``.
        Raises:
            ValueError: one of these is invalid, or a move is illegal; one line.
        """
        self._game = Game(size, rules_from(rules), DEFAULT_KOMI if komi is None else komi)
        if handicap:
            try:
                self._game.fixed_handicap(handicap)
            except ValueError as error:
                raise ValueError(f"handicap: no fixed points for {handicap} stones on {size}x{size}") from error
        for move in moves_in(moves, size):
            self.play(move)

    @classmethod
    def _of_game(cls, game: Game) -> Self:
        """A board that plays in the engine's game."""
        board = cls.__new__(cls)
        board._game = game
        return board

    @classmethod
    def from_stones(
        cls, size: int, black: Iterable[MoveLike] = (), white: Iterable[MoveLike] = (), to_move: ColorLike = BLACK, *,
        rules: str = DEFAULT_RULES, komi: float | None = None, captured: tuple[int, int] = (0, 0),
    ) -> Self:  # fmt: skip
        """A board that begins with given stones.

        Two or more stones of Black's alone are handicap stones. Points may be policy indices, so an array of stones can
        be set up: ``Board.from_stones(9, np.flatnonzero(stones == 1), np.flatnonzero(stones == 2))``.

        Args:
            black, white: points of the stones.
            captured: number of stones captured so far, by Black and by White; they count under territory rules.
        Raises:
            ValueError: a point is named twice, or a chain has no liberty; one line.
        """
        board = cls(size, rules=rules, komi=komi)
        by_black, by_white = captured
        board._game.setup_stones(
            [point_of(move, size) for move in black], [point_of(move, size) for move in white], int(Color.of(to_move)),
            (by_white, by_black),
        )  # fmt: skip
        return board

    @classmethod
    def from_text(
        cls, text: str, to_move: ColorLike | None = None, *, rules: str = DEFAULT_RULES, komi: float | None = None
    ) -> Self:
        """A board from a diagram: ``X`` black, ``O`` white, ``.`` empty, one line a row, spaces ignored.

        Text that ``str(board)`` gave is read too, with its captures and its side to move; it has no ko and no history.

        Args:
            to_move: None = as the text says, else Black.
        Raises:
            ValueError: not a diagram, or a chain has no liberty; one line.
        """
        drawn = _CAPTURED.sub("", _TO_MOVE.sub("", text))
        cells = parse(drawn).board
        size = int(cells.meta[META_SIZE])
        said, taken = _TO_MOVE.search(text), _CAPTURED.search(text)
        colors = cells.color[on_board_points(size)]
        black, white = (np.flatnonzero(colors == color).tolist() for color in (BLACK, WHITE))
        color = Color.of(to_move or (said[1] if said else BLACK))
        captured = (int(taken[1]), int(taken[2])) if taken else (0, 0)
        return cls.from_stones(size, black, white, color, rules=rules, komi=komi, captured=captured)

    @classmethod
    def from_sgf(cls, source: "str | bytes | PathLike[str]", n_moves: int | None = None) -> Self:
        """The main line of an SGF file's first game, all its moves played.

        Args:
            source: a file's name, or SGF itself as bytes or as text that begins with ``(``.
            n_moves: number of moves to play; None = all.
        Raises:
            ValueError: broken, not Go, not a square board of 2 to 25, or an illegal move; one line.
            OSError: the file cannot be read.
        """
        return cls._of_game(read_sgf(sgf_bytes(source), n_moves).to_game())

    def to_sgf(self) -> str:
        """The game as SGF, in one line; :class:`keima.Record` has variations, comments and names."""
        return write_sgf(self._game)

    def copy(self) -> Self:
        """A board whose moves can be played and undone without changing this one."""
        return self._of_game(self._game.copy())

    __copy__ = copy

    @property
    def size(self) -> int:
        """Number of lines, 2 to 25."""
        return self._game.size

    @property
    def rules(self) -> str:
        """The rule set's name, or KataGo's short form of other rules; setting it replays the game under the rules."""
        rules = self._game.rules
        return short_form(rules) if rules.name == CUSTOM else rules.name

    @rules.setter
    def rules(self, rules: str) -> None:
        self._game.set_rules(rules_from(rules))

    @property
    def komi(self) -> float:
        """White's points, a multiple of 0.5; it may be set at any time."""
        return self._game.komi

    @komi.setter
    def komi(self, komi: float) -> None:
        self._game.set_komi(komi)

    @property
    def handicap(self) -> int:
        """Number of handicap stones, 0 in an even game."""
        return self._game.handicap

    @property
    def to_move(self) -> Color:
        """The side to move."""
        return Color(self._game.to_move)

    @property
    def n_moves(self) -> int:
        """Number of moves played, passes included, handicap stones not."""
        return self._game.n_moves

    @property
    def moves(self) -> list[tuple[Color, Move]]:
        """Colour and move of each move played, oldest first."""
        return [(Color(color), move_at(point, self.size)) for color, point in self._game.moves()]

    @property
    def last_move(self) -> Move | None:
        """The last move; None before the first."""
        game = self._game
        return move_at(int(game.position.moves[game.n_moves - 1]), self.size) if game.n_moves else None

    @property
    def is_over(self) -> bool:
        """Whether both sides have passed; moves can be played all the same."""
        return self._game.is_over

    @property
    def ko(self) -> Move | None:
        """The point at which the side to move may not retake a ko now; None if there is none."""
        meta = self._game.position.board.meta
        point = int(meta[META_KO_POINT])
        return move_at(point, self.size) if point and meta[META_KO_COLOR] == self._game.to_move else None

    def play(self, move: MoveLike, color: ColorLike | None = None) -> Move:
        """Play a move.

        Args:
            color: None = the side to move; the other colour may be named, as for a setup.
        Raises:
            ValueError: not a point of the board, or illegal, with the reason: occupied, ko, superko or suicide.
        """
        game = self._game
        of, played = game.to_move if color is None else int(Color.of(color)), move_of(move, game.size)
        if not game.play_if_legal(of, played.point):
            raise ValueError(f"illegal move: {why_illegal(game, of, played.point)}")
        return played

    def pass_(self) -> Move:
        """Pass, as ``play("pass")`` does."""
        return self.play("pass")

    def undo(self) -> Move:
        """Take the last move back.

        Returns:
            Move: the move that was taken back.
        Raises:
            ValueError: no move has been played.
        """
        last = self.last_move
        if last is None:
            raise ValueError("cannot undo: no move has been played")
        self._game.undo()
        return last

    def is_legal(self, move: MoveLike, color: ColorLike | None = None) -> bool:
        """Whether a move is legal under the board's rules, superko included; a pass always is.

        Args:
            color: None = the side to move.
        Raises:
            ValueError: not a point of the board.
        """
        of = self._game.to_move if color is None else int(Color.of(color))
        return self._game.is_legal(of, point_of(move, self.size))

    @property
    def legal_moves(self) -> list[Move]:
        """All legal moves of the side to move, row by row from the top, the pass last."""
        return list(compress(moves_of(self.size), self._legal(self._game.to_move).tolist()))

    def legal_mask(self, color: ColorLike | None = None) -> NDArray[np.bool_]:
        """bool[N, N]: whether each point is a legal move, row 0 at the top.

        Args:
            color: None = the side to move.
        """
        of = self._game.to_move if color is None else int(Color.of(color))
        return self._legal(of)[:-1].reshape(self.size, self.size)

    def _legal(self, color: int) -> NDArray[np.bool_]:
        """bool[N*N + 1] in policy order."""
        found = np.empty(self.size**2 + 1, np.uint8)
        legal_moves(self._game.position, color, found)
        return found.view(np.bool_)

    @property
    def stones(self) -> NDArray[np.uint8]:
        """uint8[N, N]: 0 = empty, 1 = Black, 2 = White, row 0 at the top.

        A read-only view of the board's memory without a copy: moves played later show in it. ``undo``, other rules and
        very long games put the board into other memory: ask again after them. ``stones.copy()`` stays as it is.
        """
        size = self.size
        rows = self._game.position.board.color[size + 1 : (size + 1) ** 2].reshape(size, size + 1)
        rows.flags.writeable = False
        return rows[:, 1:]

    def color_at(self, move: MoveLike) -> Color | None:
        """The colour of the stone at a point; None = the point is empty."""
        color = int(self._game.position.board.color[self._point(move).point])
        return None if color == EMPTY else Color(color)

    def chain(self, move: MoveLike) -> list[Move]:
        """The points of the chain at a point, row by row from the top.

        Raises:
            ValueError: no stone there.
        """
        heads, points = self._game.position.board.head, on_board_points(self.size)
        return list(compress(moves_of(self.size), (heads[points] == self._head(move)).tolist()))

    def liberties(self, move: MoveLike) -> int:
        """Number of liberties of the chain at a point.

        Raises:
            ValueError: no stone there.
        """
        return int(self._game.position.board.libs[self._head(move)])

    def _point(self, move: MoveLike) -> Move:
        found = move_of(move, self.size)
        if found.is_pass:
            raise ValueError("a pass is not a point of the board")
        return found

    def _head(self, move: MoveLike) -> int:
        """The engine's name of the chain at a point."""
        point = self._point(move)
        head = int(self._game.position.board.head[point.point])
        if not head:
            raise ValueError(f"no stone at {point}")
        return head

    def captures(self, color: ColorLike) -> int:
        """Number of stones that a colour has captured; a suicide's stones count for the opponent."""
        return self._game.captures(Color.of(color))

    def score(self, dead: Iterable[MoveLike] = ()) -> Lead:
        """The score of the position by the board's rules: area or territory, komi, handicap bonus, tax and button.

        Args:
            dead: one or more points of each dead chain, which is taken off first; all other stones are alive.
        Raises:
            ValueError: no stone at one of the points.
        """
        position, points = self._game.position, [self._point(move).point for move in dead]
        cleared = remove_dead(position, points) if points else position
        return Lead(float(score_with_dame_filled(cleared)), self.to_move)

    def _key(self) -> tuple[bytes, int, Move | None, Rules, float]:
        game = self._game
        return self.stones.tobytes(), game.to_move, self.ko, game.rules, game.komi

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Board) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        last = self.last_move
        return f"{render(self._game.position.board, last.point if last else PASS)}\n{self.to_move} to move"

    def __repr__(self) -> str:
        arguments = self._arguments() if self.n_moves <= LONGEST_REPR else None
        if arguments is None:
            return f"<Board {self.size}x{self.size}: {self.n_moves} moves, {self.to_move} to move>"
        return f"Board({', '.join(arguments)})"

    def _arguments(self) -> list[str] | None:
        """Arguments that make this board anew; None = none do, since it began with other stones or has odd turns."""
        game, moves, start = self._game, self.moves, self._game.start_stones()
        with suppress(ValueError):
            handicap = len(start)
            is_fixed = not start or start == dict.fromkeys(fixed_handicap_points(self.size, handicap), BLACK)
            colors = islice(cycle((WHITE, BLACK) if handicap else (BLACK, WHITE)), len(moves))
            if is_fixed and not game.earlier and [color for color, _ in moves] == list(colors):
                return [
                    str(self.size),
                    *([f"rules={self.rules!r}"] if self.rules != DEFAULT_RULES else []),
                    *([f"komi={self.komi:g}"] if self.komi != DEFAULT_KOMI else []),
                    *([f"handicap={handicap}"] if handicap else []),
                    *([f"moves={' '.join(move for _, move in moves)!r}"] if moves else []),
                ]
        return None

    def svg(
        self, *, marks: MarksLike | None = None, arrows: Iterable[tuple[MoveLike, MoveLike]] = (),
        heat: ArrayLike | None = None, ownership: Ownership | ArrayLike | None = None, line: Iterable[MoveLike] = (),
        numbers: bool = False, last: bool = True, width: float = 400,
    ) -> Picture:  # fmt: skip
        """Draw the board. Notebooks show the picture, and ``save`` writes it to a file.

        Args:
            marks: point -> ``"circle"``, ``"triangle"``, ``"square"`` or ``"cross"``, or any other text.
            arrows: pairs of points.
            heat: float[N, N], float[N*N] or float[N*N + 1] (a policy: the pass is left out): values from 0 on, shown
                relative to the largest.
            ownership: Black's view, 1 = Black's and -1 = White's, as an array of the same shapes as ``heat``.
            line: moves to show with numbers from 1, the side to move first, such as ``info.pv``; passes are not shown.
            numbers: whether stones have the numbers of the moves that placed them.
            last: whether a circle shows the last move.
            width: width and height in pixels.
        Raises:
            ValueError: not a point of the board, or an array of another size; one line.
        """
        size = self.size
        moves = [(number, move) for number, (_, move) in enumerate(self.moves, 1) if not move.is_pass]
        drawn = diagram(
            self.stones.ravel().tolist(),
            f"{size}x{size} board, {self.n_moves} moves, {self.to_move} to move",
            [-1 if move.is_pass else move.policy_index for move in moves_in(line, size)],
            self.to_move,
            last=moves[-1][1].policy_index if last and moves and moves[-1][0] == self.n_moves else -1,
            numbers={move.policy_index: str(number) for number, move in moves} if numbers else {},
            marks={self._point(move).policy_index: str(text) for move, text in (marks or {}).items()},
            arrows=[(self._point(start).policy_index, self._point(end).policy_index) for start, end in arrows],
            heat=self._map(heat, "heat"),
            ownership=self._map(ownership.black if isinstance(ownership, Ownership) else ownership, "ownership"),
        )
        return stand_alone(drawn, width)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _map(self, values: ArrayLike | None, name: str) -> list[float]:
        """One value for each point, in policy order; empty for None."""
        if values is None:
            return []
        found, size = np.asarray(values, np.float64), self.size
        if found.shape not in ((size, size), (size * size,), (size * size + 1,)):
            expected = f"[{size}, {size}], [{size**2}] or [{size**2 + 1}]"
            raise ValueError(f"{name} has the shape {list(found.shape)}, expected {expected}")
        shown: list[float] = np.nan_to_num(found.ravel()[: size * size]).tolist()
        return shown


def checked_board(board: object) -> Board:
    """Return what was given as a board.

    Raises:
        TypeError: not a board; one line with what would give one.
    """
    if not isinstance(board, Board):
        hints = {"str": "keima.Board.from_sgf(...)", "Record": ".end.board()", "Node": ".board()"}
        hint = hints.get(type(board).__name__, "keima.Board(...)")
        raise TypeError(f"expected a keima.Board, got {type(board).__name__}; {hint} gives one")
    return board


def sgf_bytes(source: "str | bytes | PathLike[str]") -> bytes:
    """SGF that is given itself, as bytes or as text that begins with ``(``, or read from a file."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("("):
        return source.encode()
    return Path(source).read_bytes()
