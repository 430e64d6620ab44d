"""The record of a game: an SGF tree with numbered nodes, and the game at any of them."""

from datetime import date

from sgfmill import sgf_grammar

from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES, Game
from engine.go.geometry import to_sgf
from engine.go.points import color_letter
from engine.go.rules import RULE_SETS, Rules
from engine.go.sgf import COLOR_OF, MAX_TEXT_BYTES, STONES, game_of_nodes, point_in, text_of, write_sgf
from engine.go.sgf_tree import Branch, SgfTree, raw, read_trees


class Node:
    """A node of a record."""

    def __init__(self, id: int, parent: "Node | None", branch: Branch, size: int) -> None:
        self.id, self.parent = id, parent
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

    def __init__(self, data: bytes, rules: Rules = RULE_SETS[DEFAULT_RULES], komi: float = DEFAULT_KOMI) -> None:
        """Read the first game of an SGF file, within the limits of :mod:`engine.go.sgf`.

        Args:
            rules, komi: used if the file names none.
        Raises:
            ValueError: broken, too large, not Go, or an illegal move or setup on the main line; one line.
        """
        _, tree = next(read_trees(data))
        if isinstance(tree, ValueError):
            raise tree
        self._tree: SgfTree = tree
        self._rules, self._komi = rules, komi
        self.size: int = game_of_nodes([tree.root.properties]).size
        self.nodes: list[Node] = []
        """all nodes; the index of each is its id, that of the root 0"""
        todo: list[tuple[Branch, Node | None]] = [(tree.root, None)]
        while todo:
            branch, parent = todo.pop()
            node = self._add(branch, parent)
            todo += [(child, node) for child in reversed(branch.children)]
        self.game_at((self.root.main_continuation() or [self.root])[-1])

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

    def text(self, name: str) -> str:
        """The text of a property of the root; empty if it is missing."""
        value = self.root.properties.get(name, [b""])[0][:MAX_TEXT_BYTES]
        return text_of(sgf_grammar.simpletext_value(value), "utf-8").strip()

    def set_text(self, name: str, text: str) -> None:
        """Set a property of the root; an empty text removes it."""
        if text:
            self.root.properties[name] = [raw(text)]
        else:
            self.root.properties.pop(name, None)

    def to_bytes(self) -> bytes:
        """The record as an SGF file."""
        return self._tree.to_bytes()

    def _add(self, branch: Branch, parent: Node | None) -> Node:
        node = Node(len(self.nodes), parent, branch, self.size)
        if parent is not None:
            parent.children.append(node)
        self.nodes.append(node)
        return node
