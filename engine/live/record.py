"""The record of a game: an SGF tree with numbered nodes, their text, marks and clocks, and the game at any of them."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date

from sgfmill import sgf_grammar

from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES, Game
from engine.go.geometry import BLACK, WHITE, to_sgf
from engine.go.points import color_letter
from engine.go.rules import RULE_SETS, Rules
from engine.go.sgf import (
    COLOR_OF,
    MAX_TEXT_BYTES,
    STONES,
    game_of_nodes,
    point_in,
    points_in,
    text_of,
    write_sgf,
)
from engine.go.sgf_tree import Branch, SgfTree, raw, read_trees

SHAPES = {"CR": "circle", "TR": "triangle", "SQ": "square", "MA": "cross"}
"""Property of marks -> its shape"""
CLOCKS = {"BL": BLACK, "WL": WHITE}
"""Property of a clock -> its colour"""
MULTI_LINE = ("C", "GC")
"""Properties whose text may have several lines"""


class Node:
    """A node of a record."""

    def __init__(self, id: int, parent: "Node | None", branch: Branch, size: int) -> None:
        self.id, self.parent, self._size = id, parent, size
        self.branch = branch
        """the node in its :class:`engine.go.sgf_tree.SgfTree`"""
        self.children: list[Node] = []
        """variations, the main one first"""
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.move: tuple[int, int] | None = None
        """colour and point of the node's move; None = no move"""
        for name, color in COLOR_OF.items():
            if self.move is None and branch.properties.get(name):
                self.move = color, point_in(branch.properties[name][0], size)

    @property
    def properties(self) -> dict[str, list[bytes]]:
        """Property -> raw values in UTF-8, which callers may change."""
        return self.branch.properties

    @property
    def sets_up(self) -> bool:
        """Whether the node changes stones otherwise than by a move."""
        return bool(self.properties.keys() & STONES.keys())

    def texts(self, name: str) -> list[str]:
        """The values of a property as text; empty if it is missing."""
        read = sgf_grammar.text_value if name in MULTI_LINE else sgf_grammar.simpletext_value
        return [text_of(read(value[:MAX_TEXT_BYTES]), "utf-8").strip() for value in self.properties.get(name, [])]

    def text(self, name: str) -> str:
        """The first value of a property as text; empty if it is missing."""
        return next(iter(self.texts(name)), "")

    def set_text(self, name: str, *texts: str) -> None:
        """Set a property to values; none or an empty text removes it."""
        self._set(name, [raw(text) for text in texts if text])

    @property
    def marks(self) -> dict[int, str]:
        """Point -> one of ``SHAPES``, or the text of a label.

        Raises:
            ValueError: not a point of the board; one line.
        """
        found = {
            point: shape
            for name, shape in SHAPES.items()
            for point in points_in(self.properties.get(name, []), self._size)
        }
        for value in self.properties.get("LB", []):
            place, text = sgf_grammar.parse_compose(value[:MAX_TEXT_BYTES])
            found[point_in(place, self._size)] = text_of(sgf_grammar.simpletext_value(text or b""), "utf-8")
        return found

    @marks.setter
    def marks(self, marks: Mapping[int, str]) -> None:
        for name, shape in SHAPES.items():
            self._set(name, [to_sgf(point, self._size).encode() for point, text in marks.items() if text == shape])
        labels = {to_sgf(point, self._size): text for point, text in marks.items() if text not in SHAPES.values()}
        self._set("LB", [f"{place}:".encode() + raw(text) for place, text in labels.items()])

    @property
    def arrows(self) -> list[tuple[int, int]]:
        """Start and end of each arrow.

        Raises:
            ValueError: not a point of the board; one line.
        """
        ends = (sgf_grammar.parse_compose(value) for value in self.properties.get("AR", []))
        return [(point_in(start, self._size), point_in(end or b"", self._size)) for start, end in ends]

    @arrows.setter
    def arrows(self, arrows: Iterable[tuple[int, int]]) -> None:
        self._set("AR", [":".join(to_sgf(point, self._size) for point in ends).encode() for ends in arrows])

    @property
    def time_left(self) -> dict[int, float]:
        """Colour -> seconds left on its clock after the move, for the clocks that the node has."""
        found = {}
        for name, color in CLOCKS.items():
            with suppress(ValueError):
                found[color] = float(self.text(name))
        return {color: seconds for color, seconds in found.items() if math.isfinite(seconds)}

    @time_left.setter
    def time_left(self, seconds: Mapping[int, float]) -> None:
        for name, color in CLOCKS.items():
            self.set_text(name, f"{seconds[color]:g}" if color in seconds else "")

    def _set(self, name: str, values: list[bytes]) -> None:
        if values:
            self.properties[name] = values
        else:
            self.properties.pop(name, None)

    def line(self) -> "list[Node]":
        """The nodes from the root to this one."""
        found: list[Node] = []
        node: Node | None = self
        while node is not None:
            found.append(node)
            node = node.parent
        return found[::-1]

    def main_continuation(self) -> "list[Node]":
        """The first child, its first child, and so on."""
        found, node = [], self
        while node.children:
            node = node.children[0]
            found.append(node)
        return found


class Record:
    """A game with all its variations. Threads: one caller."""

    def __init__(
        self, data: bytes | SgfTree, rules: Rules = RULE_SETS[DEFAULT_RULES], komi: float = DEFAULT_KOMI
    ) -> None:
        """Read the first game of an SGF file, within the limits of :mod:`engine.go.sgf`, or take a tree over.

        Args:
            rules, komi: used if the file names none.
        Raises:
            ValueError: broken, too large, not Go, or an illegal move or setup on the main line; one line.
        """
        tree = data if isinstance(data, SgfTree) else next(read_trees(data))[1]
        if isinstance(tree, ValueError):
            raise tree
        self._tree: SgfTree = tree
        self._rules, self._komi = rules, komi
        self.size: int = game_of_nodes([tree.root.properties]).size
        self.nodes: list[Node] = []
        """all nodes, also those removed; the index of each is its id, that of the root 0"""
        todo: list[tuple[Branch, Node | None]] = [(tree.root, None)]
        while todo:
            branch, parent = todo.pop()
            node = self._add(branch, parent)
            todo += [(child, node) for child in reversed(branch.children)]
        self.game_at((self.root.main_continuation() or [self.root])[-1])

    @classmethod
    def read_all(cls, data: bytes) -> "Iterator[Record | ValueError]":
        """The record of every game of a file; a broken game yields its ValueError."""
        for _, tree in read_trees(data):
            try:
                yield tree if isinstance(tree, ValueError) else cls(tree)
            except ValueError as error:
                yield error

    @classmethod
    def of_game(cls, game: Game, black: str = "", white: str = "") -> "Record":
        """The record of a game without variations, dated today.

        Args:
            black, white: names of the players.
        """
        record = cls(write_sgf(game, black, white).encode(), game.rules, game.komi)
        record.root.properties["DT"] = [date.today().isoformat().encode()]
        return record

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def game_at(self, node: Node) -> Game:
        """The game along the line to a node, all its moves played.

        Raises:
            ValueError: an illegal move or setup on the line; one line.
        """
        return game_of_nodes([one.properties for one in node.line()]).to_game(self._rules, self._komi)

    def play(self, at: Node, color: int, point: int, is_main: bool) -> Node:
        """The child of a node with a move, which is added if there is none; legality is not checked.

        Args:
            is_main: whether the move becomes the main variation.
        """
        found = next((child for child in at.children if child.move == (color, point)), None)
        if found is None:
            branch = Branch({color_letter(color): [to_sgf(point, self.size).encode()]})
            at.branch.children.append(branch)
            found = self._add(branch, at)
        if is_main:
            at.children.remove(found)
            at.children.insert(0, found)
            at.branch.children.remove(found.branch)
            at.branch.children.insert(0, found.branch)
        return found

    def remove(self, node: Node) -> None:
        """Remove a node with all that follows it.

        Raises:
            ValueError: the node is the root, or was removed before.
        """
        if node.parent is None or node not in node.parent.children:
            raise ValueError("only a node below the root can be removed, and only once")
        node.parent.children.remove(node)
        node.parent.branch.children.remove(node.branch)

    def text(self, name: str) -> str:
        """The text of a property of the root; empty if it is missing."""
        return self.root.text(name)

    def set_text(self, name: str, text: str) -> None:
        """Set a property of the root; an empty text removes it."""
        self.root.set_text(name, text)

    def to_bytes(self) -> bytes:
        """The record as an SGF file."""
        return self._tree.to_bytes()

    def _add(self, branch: Branch, parent: Node | None) -> Node:
        node = Node(len(self.nodes), parent, branch, self.size)
        if parent is not None:
            parent.children.append(node)
        self.nodes.append(node)
        return node
