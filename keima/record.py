"""Game records: SGF with variations, comments, marks and clocks, and the board at any node."""

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Self

from engine.go.game import Game
from engine.go.rules import rules_from
from engine.go.sgf import COLOR_OF, komi_text, rules_text
from engine.live.record import Node as _Node
from engine.live.record import Record as _Record
from engine.pictures.drawing import Picture
from keima.board import Board, sgf_bytes
from keima.moves import Color, ColorLike, MarksLike, Move, MoveLike, move_at, point_of

_FIXED = {*COLOR_OF, "CA", "FF", "GM", "SZ"}
"""Properties that :meth:`Node.set_property` does not change: moves, and what the whole record depends on"""


class Node:
    """A node of a record: a move, or the root or a setup without one, with its comment, marks and clocks."""

    def __init__(self, record: "Record", node: _Node) -> None:
        """Called by the record; :meth:`play` adds nodes."""
        self.record = record
        """the record that the node is part of"""
        self._node = node

    @property
    def move(self) -> Move | None:
        """The node's move; None = it has none, as the root."""
        return None if self._node.move is None else move_at(self._node.move[1], self.record.size)

    @property
    def color(self) -> Color | None:
        """The colour of the node's move; None = it has none."""
        return None if self._node.move is None else Color(self._node.move[0])

    @property
    def parent(self) -> "Node | None":
        """The node before; None for the root."""
        return None if self._node.parent is None else self.record._node(self._node.parent)

    @property
    def children(self) -> "list[Node]":
        """The nodes after this one, the main one first."""
        return [self.record._node(child) for child in self._node.children]

    @property
    def depth(self) -> int:
        """Number of nodes before this one on its line."""
        return self._node.depth

    def line(self) -> "list[Node]":
        """The nodes from the root to this one."""
        return [self.record._node(node) for node in self._node.line()]

    def main_line(self) -> "list[Node]":
        """The first child, its first child, and so on."""
        return [self.record._node(node) for node in self._node.main_continuation()]

    def board(self) -> Board:
        """A board at this node, with the moves of its line; the record does not change with it.

        Raises:
            ValueError: an illegal move or setup on the line, as only variations can have; one line.
        """
        return Board._of_game(self.record._game_at(self._node))

    def play(self, move: MoveLike, color: ColorLike | None = None, *, main: bool = False) -> "Node":
        """The child with a move, which is added as the last variation if there is none.

        Args:
            color: None = the side to move.
            main: whether the child becomes the main variation.
        Raises:
            ValueError: the move is not a point of the board, or illegal, with the reason.
        """
        board = self.board()
        of = board.to_move if color is None else Color.of(color)
        point = board.play(move, of).point
        return self.record._node(self.record._record.play(self._node, of, point, main))

    def remove(self) -> None:
        """Remove the node and all that follow it from the record.

        Raises:
            ValueError: the node is the root, or was removed before.
        """
        self.record._record.remove(self._node)

    @property
    def comment(self) -> str:
        """The comment (C); empty if there is none. May be set."""
        return self._node.text("C")

    @comment.setter
    def comment(self, text: str) -> None:
        self._node.set_text("C", text)

    @property
    def marks(self) -> Mapping[Move, str]:
        """Point -> ``"circle"``, ``"triangle"``, ``"square"``, ``"cross"`` or a label's text (CR, TR, SQ, MA, LB).

        Set all of them at once: ``node.marks = {"D4": "A"}``; :meth:`Board.svg` draws them.
        """
        size = self.record.size
        return MappingProxyType({move_at(point, size): text for point, text in self._node.marks.items()})

    @marks.setter
    def marks(self, marks: MarksLike) -> None:
        self._node.marks = {self._point(move): text for move, text in marks.items()}

    @property
    def arrows(self) -> tuple[tuple[Move, Move], ...]:
        """Start and end of each arrow (AR); set all of them at once."""
        size = self.record.size
        return tuple((move_at(start, size), move_at(end, size)) for start, end in self._node.arrows)

    @arrows.setter
    def arrows(self, arrows: Iterable[tuple[MoveLike, MoveLike]]) -> None:
        self._node.arrows = [(self._point(start), self._point(end)) for start, end in arrows]

    @property
    def time_left(self) -> Mapping[Color, float]:
        """Colour -> seconds left on its clock after the move (BL, WL), where the record has them; may be set."""
        return MappingProxyType({Color(color): seconds for color, seconds in self._node.time_left.items()})

    @time_left.setter
    def time_left(self, seconds: Mapping[Color, float]) -> None:
        self._node.time_left = {Color.of(color): left for color, left in seconds.items()}

    @property
    def properties(self) -> Mapping[str, list[str]]:
        """SGF property -> its values as text, moves included; :meth:`set_property` changes one."""
        return MappingProxyType({name: self._node.texts(name) for name in self._node.properties})

    def set_property(self, name: str, *values: str) -> None:
        """Set an SGF property; without values it is removed.

        Raises:
            ValueError: not a name of capital letters, or a property that a record does not let change: moves, board
                size, encoding.
        """
        if not (name.isascii() and name.isalpha() and name.isupper()):
            raise ValueError(f"{name!r} is not an SGF property, expected capital letters")
        if name in _FIXED:
            raise ValueError(f"property {name} cannot be set; moves are added by play()")
        self._node.set_text(name, *values)
        self.record._latest = None

    def svg(self) -> Picture:
        """The board at this node with the node's marks and arrows; :meth:`Board.svg` draws more."""
        return self.board().svg(marks=self.marks, arrows=self.arrows)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        move = "root" if self.parent is None else "no move" if self.move is None else f"{self.color} {self.move}"
        return f"<Node {self.depth}: {move}, {len(self._node.children)} children>"

    def _point(self, move: MoveLike) -> int:
        point = point_of(move, self.record.size)
        if not point:
            raise ValueError("a pass is not a point of the board")
        return point


class _Text:
    """A text of the root, which can be set."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, record: "Record", owner: "type[Record]") -> str:
        return record._record.text(self._name)

    def __set__(self, record: "Record", text: str) -> None:
        record._record.set_text(self._name, text)


class Record:
    """A game with all its variations, as SGF stores it. Threads: one at a time."""

    def __init__(self, board: Board | None = None, *, black: str = "", white: str = "") -> None:
        """The record of a board's game, dated today.

        Args:
            board: its moves become the main line; None = an empty 19x19 board.
            black, white: names of the players.
        """
        self._begin(_Record.of_game((board or Board())._game, black, white))

    def _begin(self, record: _Record) -> None:
        self._record = record
        self._nodes: dict[int, Node] = {}
        self._latest: tuple[_Node, Game] | None = None

    @classmethod
    def read(cls, source: "str | bytes | PathLike[str]") -> Self:
        """The first game of an SGF file.

        Args:
            source: a file's name, or SGF itself as bytes or as text that begins with ``(``.
        Raises:
            ValueError: broken, too large, not Go, or an illegal move on the main line; one line.
            OSError: the file cannot be read.
        """
        return cls._of(_Record(sgf_bytes(source)))

    @classmethod
    def read_all(cls, source: "str | bytes | PathLike[str]") -> "Iterator[Record]":
        """Every game of an SGF file, one by one; arguments and errors as for :meth:`read`.

        Raises:
            ValueError: as :meth:`read`, with the number of the game; the iteration ends.
        """
        for number, record in enumerate(_Record.read_all(sgf_bytes(source)), 1):
            if isinstance(record, ValueError):
                raise ValueError(f"game {number}: {record}") from record
            yield cls._of(record)

    @classmethod
    def _of(cls, record: _Record) -> Self:
        made = cls.__new__(cls)
        made._begin(record)
        return made

    black = _Text("PB")
    """Black's name; empty if the record has none, as for the other texts. May be set, as they."""
    white = _Text("PW")
    """White's name"""
    black_rank = _Text("BR")
    """Black's rank"""
    white_rank = _Text("WR")
    """White's rank"""
    result = _Text("RE")
    """the result, such as ``B+3.5`` or ``W+R``"""
    date = _Text("DT")
    """the date, ``YYYY-MM-DD``"""
    event = _Text("EV")
    """the event"""

    @property
    def size(self) -> int:
        """Number of lines."""
        return self._record.size

    @property
    def rules(self) -> str:
        """The rules, as :attr:`Board.rules`; ``"chinese"`` if the record names none. May be set."""
        return self.root.board().rules

    @rules.setter
    def rules(self, rules: str) -> None:
        self.root.set_property("RU", rules_text(rules_from(rules)))

    @property
    def komi(self) -> float:
        """White's points; 7.5 if the record names none. May be set."""
        return self.root.board().komi

    @komi.setter
    def komi(self, komi: float) -> None:
        board = self.root.board()
        board.komi = komi
        self.root.set_property("KM", komi_text(board.komi))

    @property
    def handicap(self) -> int:
        """Number of handicap stones, 0 in an even game."""
        return self.root.board().handicap

    @property
    def root(self) -> Node:
        """The first node."""
        return self._node(self._record.root)

    @property
    def end(self) -> Node:
        """The last node of the main line; ``record.end.board()`` is the final position."""
        return self._node((self._record.root.main_continuation() or [self._record.root])[-1])

    @property
    def nodes(self) -> list[Node]:
        """All nodes: each before its children, variations one after another."""
        found, todo = [], [self._record.root]
        while todo:
            node = todo.pop()
            found.append(self._node(node))
            todo += reversed(node.children)
        return found

    def main_line(self) -> list[Node]:
        """The nodes of the main line after the root."""
        return self.root.main_line()

    def to_sgf(self) -> str:
        """The record as SGF, all that was read included."""
        return self._record.to_bytes().decode("utf-8")

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the record to an SGF file, in UTF-8.

        Raises:
            OSError: the file cannot be written.
        """
        Path(path).write_bytes(self._record.to_bytes())

    def _repr_svg_(self) -> str:
        return self.end.svg()

    def __repr__(self) -> str:
        players = f"{self.black or 'Black'} - {self.white or 'White'}"
        result = f", {self.result}" if self.result else ""
        return f"<Record {players}: {self.size}x{self.size}, {len(self.main_line())} nodes{result}>"

    def _node(self, node: _Node) -> Node:
        """The same object for the same node, whenever it is asked for."""
        return self._nodes.setdefault(node.id, Node(self, node))

    def _game_at(self, node: _Node) -> Game:
        """A new game at a node; only its last move is played if the node before it was the last one asked for."""
        latest, game = self._latest or (None, None)
        if latest is not node and not (latest is node.parent and game is not None and _plays_on(node, game)):
            game = None
        game = game or self._record.game_at(node)
        self._latest = node, game
        return game.copy()


def _plays_on(node: _Node, game: Game) -> bool:
    """Play a node's move in the game at its parent; False, and nothing is played, if that is not all that it does."""
    moves = node.properties.keys() & {*COLOR_OF, "PL"}
    # A first move out of turn sets the side to move of the first position.
    if node.move is None or len(moves) > 1 or node.sets_up or not game.n_moves:
        return False
    return game.play_if_legal(*node.move)
