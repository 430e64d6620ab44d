"""An SGF game's whole tree as it stands in a file, to be added to and written again: all that was there stays.

What :mod:`engine.go.sgf` reads is the main line alone. Here properties are kept as bytes, known or not, variations in
their order. Text becomes UTF-8, and CA says so.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sgfmill import sgf_grammar

from engine.go.sgf import COLOR_OF, game_pieces, parsed_tree, text_of

Node = dict[str, list[bytes]]
"""A node's properties: raw values by name, in UTF-8"""


class SgfTree:
    """One game of a file. Its nodes are dictionaries, which may be changed."""

    def __init__(self, tree: Any) -> None:
        """Made by :func:`read_trees` of sgfmill's ``Coarse_game_tree``."""
        self._root = _Branch.of(tree)
        self._main = list(self._root.first_line())

    def main_line(self) -> list[Node]:
        """The nodes of the game itself."""
        return [node.properties for node in self._main]

    def move_nodes(self, count: int) -> list[int]:
        """Where in the main line the last moves are.

        Args:
            count: of moves; those before a later setup are none of the game.
        Returns:
            list[int]: the index of each move's node.
        """
        found = [at for at, node in enumerate(self.main_line()) for name in COLOR_OF if name in node]
        return found[len(found) - count :]

    def remove_variations(self, is_unwanted: Callable[[Node], bool]) -> None:
        """Drop the variations, wherever they are, all of whose nodes are unwanted; the game itself stays."""
        main = {id(node) for node in self._main}
        # Those below come first, since what is kept of them keeps what is above.
        order, todo = [], [self._root]
        while todo:
            node = todo.pop()
            order.append(node)
            todo += node.children
        gone: set[int] = set()
        for node in reversed(order):
            node.children = [child for child in node.children if id(child) not in gone]
            if not node.children and id(node) not in main and is_unwanted(node.properties):
                gone.add(id(node))

    def every_node(self) -> Iterator[Node]:
        """All nodes, in no particular order."""
        todo = [self._root]
        while todo:
            node = todo.pop()
            yield node.properties
            todo += node.children

    def add_variation(self, at: int, nodes: list[Node]) -> None:
        """Append a variation to what follows a node of the main line; a node where the game ends gets none."""
        parent = self._main[at]
        if not parent.children or not nodes:
            return
        first = branch = _Branch(nodes[0])
        for properties in nodes[1:]:
            branch.children.append(_Branch(properties))
            branch = branch.children[0]
        parent.children.append(first)

    def to_bytes(self) -> bytes:
        """The game as a file of SGF."""
        tree = sgf_grammar.make_coarse_game_tree(self._root, lambda node: node.children, lambda node: node.properties)
        written: bytes = sgf_grammar.serialise_game_tree(tree, wrap=None)
        return written


class _Branch:
    """A node and what follows it."""

    def __init__(self, properties: Node) -> None:
        self.properties = properties
        self.children: list[_Branch] = []

    @classmethod
    def of(cls, tree: Any) -> "_Branch":
        """From sgfmill's tree."""
        root = cls(tree.sequence[0])
        # It sets an attribute ``_children`` of ours to an empty list, which nothing reads.
        sgf_grammar.make_tree(tree, root, lambda parent, properties: cls(properties), _append)
        return root

    def first_line(self) -> "Iterator[_Branch]":
        """This node, what follows it first, and so on."""
        node: _Branch | None = self
        while node is not None:
            yield node
            node = node.children[0] if node.children else None


def _append(parent: _Branch, child: _Branch) -> None:
    parent.children.append(child)


def read_trees(data: bytes) -> Iterator[tuple[bytes, SgfTree | ValueError]]:
    """Every game of a file: its bytes, as :func:`engine.go.sgf.read_sgf` takes them, and its tree or what is wrong.

    The limits of :mod:`engine.go.sgf` hold.
    """
    for piece, encoding in game_pieces(data):
        try:
            tree = SgfTree(parsed_tree(piece))
        except ValueError as error:
            yield piece, error
            continue
        for node in tree.every_node():
            for name, values in node.items():
                node[name] = [_in_utf8(value, encoding) for value in values]
        tree.main_line()[0]["CA"] = [b"UTF-8"]
        yield tree.to_bytes(), tree


def _in_utf8(raw: bytes, encoding: str) -> bytes:
    """A raw value converted to UTF-8."""
    return raw if raw.isascii() else text_of(raw, encoding).encode()


def raw(text: str) -> bytes:
    """Text as a raw value."""
    escaped: bytes = sgf_grammar.escape_text(text.encode())
    return escaped
