"""Colours and moves, and what is accepted in their place.

A move is a vertex such as ``"D4"`` or ``"pass"``, a pair (row, column), or a policy index. Rows and columns count
from 0 at the top left, as in the arrays of this package; a policy index is ``row * size + column``, and ``size * size``
is a pass.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from operator import index
from typing import Self, SupportsIndex, TypeAlias

from engine.go.points import BLACK as BLACK_POINT
from engine.go.points import PASS, from_vertex, is_on_board, padded, to_vertex
from engine.go.points import WHITE as WHITE_POINT


class Color(IntEnum):
    """The colour of a player; arrays of stones hold 0 for an empty point, 1 for Black and 2 for White."""

    BLACK = BLACK_POINT
    WHITE = WHITE_POINT

    @property
    def opponent(self) -> "Color":
        """The other colour."""
        return Color(3 - self)

    @property
    def letter(self) -> str:
        """``B`` or ``W``, as in SGF and results."""
        return self.name[0]

    def __str__(self) -> str:
        return self.name.capitalize()

    @classmethod
    def of(cls, color: "ColorLike") -> "Color":
        """The colour of 1, 2, ``"b"``, ``"w"``, ``"black"`` or ``"white"``, in any case.

        Raises:
            ValueError: not a colour; one line.
        """
        if isinstance(color, str):
            word = color.strip().upper()
            for one in cls:
                if word in (one.letter, one.name):
                    return one
        elif color in (BLACK_POINT, WHITE_POINT):
            return cls(color)
        raise ValueError(f"{color!r} is not a colour, expected 'black' or 'white'")


BLACK, WHITE = Color.BLACK, Color.WHITE
"""The colours"""
ColorLike: TypeAlias = Color | int | str
"""A colour, or what :meth:`Color.of` converts to one"""


class Move(str):
    """A point of a board, or a pass: its vertex in GTP's form, such as ``D4`` or ``pass``, with its coordinates.

    A move is a string, so ``move == "D4"`` holds on every board that has the point.
    """

    __slots__ = ("column", "point", "policy_index", "row", "size")

    size: int
    """board size"""
    row: int
    """row from 0 at the top; -1 for a pass"""
    column: int
    """column from 0 at the left; -1 for a pass"""
    policy_index: int
    """``row * size + column``; ``size * size`` for a pass"""
    point: int
    """the engine's own number of the point (:mod:`engine.go.geometry`); 0 for a pass"""

    def __new__(cls, move: "MoveLike", size: int) -> Self:
        """Convert a move for a board size.

        Raises:
            ValueError: not a point of this board; one line.
            TypeError: neither text, pair nor integer.
        """
        point = _point(move, size)
        made = super().__new__(cls, to_vertex(point, size))
        row, column = divmod(point, size + 1)
        made.size, made.point = size, point
        made.row, made.column = (row - 1, column - 1) if point else (-1, -1)
        made.policy_index = made.row * size + made.column if point else size * size
        return made

    @property
    def is_pass(self) -> bool:
        """Whether the move is a pass."""
        return self.point == PASS

    def __repr__(self) -> str:
        return f"Move({str(self)!r}, {self.size})"

    def __reduce__(self) -> "tuple[type[Move], tuple[str, int]]":
        return Move, (str(self), self.size)


MoveLike: TypeAlias = Move | str | tuple[SupportsIndex, SupportsIndex] | SupportsIndex
"""A move, or what is accepted in its place: a vertex, a pair (row, column), a policy index"""


MarksLike: TypeAlias = (
    Mapping[Move, str] | Mapping[str, str] | Mapping[tuple[int, int], str] | Mapping[int, str] | Mapping[MoveLike, str]
)
"""Points and their marks: shapes or other texts"""


@lru_cache(maxsize=32)
def moves_of(size: int) -> tuple[Move, ...]:
    """All moves of a board size by policy index, the pass last."""
    return tuple(Move(number, size) for number in range(size * size + 1))


@lru_cache(maxsize=32)
def _moves_by_vertex(size: int) -> dict[str, Move]:
    return {str(move): move for move in moves_of(size)}


def move_of(move: MoveLike, size: int) -> Move:
    """The move of a board size; errors as those of :class:`Move`."""
    if isinstance(move, Move) and move.size == size:
        return move
    known = _moves_by_vertex(size).get(move) if isinstance(move, str) else None
    return known or move_at(_point(move, size), size)


def point_of(move: MoveLike, size: int) -> int:
    """The engine's number of a move's point; errors as those of :class:`Move`."""
    return move_of(move, size).point


def _point(move: MoveLike, size: int) -> int:
    if isinstance(move, str):
        return from_vertex(move, size)
    if isinstance(move, tuple):
        row, column = (index(part) for part in move)
        if not (0 <= row < size and 0 <= column < size):
            raise ValueError(f"(row, column) is {(row, column)}, expected each from 0 to {size - 1}")
        return padded(row, column, size)
    try:
        number = index(move)
    except TypeError:
        raise TypeError(f"{move!r} is not a move, expected a vertex such as 'D4', (row, column) or an index") from None
    if not 0 <= number <= size * size:
        raise ValueError(f"policy index is {number}, expected 0 to {size * size}, which is a pass")
    return padded(*divmod(number, size), size) if number < size * size else PASS


def moves_in(moves: "Iterable[MoveLike]", size: int) -> "list[Move]":
    """Moves of a board; text has them between spaces: ``"E5 C3 pass"``. Errors as those of :class:`Move`."""
    return [move_of(move, size) for move in (moves.split() if isinstance(moves, str) else moves)]


def move_at(point: int, size: int) -> Move:
    """The move of one of the engine's points."""
    if point == PASS:
        return moves_of(size)[-1]
    assert is_on_board(point, size)
    row, column = divmod(point, size + 1)
    return moves_of(size)[(row - 1) * size + column - 1]
