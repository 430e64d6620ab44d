"""Complete SGF game trees, which can be changed and written again without loss.

:mod:`engine.go.sgf` reads the main line alone. Here all properties are kept as bytes, and variations in their order.
Text is converted to UTF-8, and CA is set to it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sgfmill import sgf_grammar

from engine.go.sgf import COLOR_OF, game_pieces, parsed_tree, text_of

Node = dict[str, list[bytes]]
"""A node's properties: name -> raw values, still escaped, in UTF-8"""


class SgfTree:
    """One game of a file with all its variations. Its nodes are dictionaries, which callers may change."""

    def __init__(self, tree: Any) -> None:
        """Convert sgfmill's ``Coarse_game_tree``; called by :func:`read_trees`."""
        self._root = Branch.of(tree)
        self._main = list(self._root.first_line())

    @property
    def root(self) -> "Branch":
        """The root with its subtree; once it is changed, only :meth:`to_bytes` and :meth:`every_node` are valid."""
        return self._root

    def main_line(self) -> list[Node]:
        """The nodes of the main line."""
        return [node.properties for node in self._main]

    def move_nodes(self, count: int) -> list[int]:
        """Main-line indices of the nodes that hold the last ``count`` moves, one index for each move.

        Args:
            count: number of moves, as in an ``SgfGame``, which leaves out moves before a setup in mid-game.
        """
        found = [at for at, node in enumerate(self.main_line()) for name in COLOR_OF if name in node]
        return found[len(found) - count :]

    def remove_variations(self, is_unwanted: Callable[[Node], bool]) -> None:
        """Remove every subtree whose nodes are all unwanted, at any depth; the main line stays."""
        main = {id(node) for node in self._main}
        # Children before parents, since a child that stays keeps its parent.
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
        """Append a variation after node ``at`` of the main line; nothing is appended after its last node."""
        parent = self._main[at]
        if not parent.children or not nodes:
            return
        first = branch = Branch(nodes[0])
        for properties in nodes[1:]:
            branch.children.append(Branch(properties))
            branch = branch.children[0]
        parent.children.append(first)

    def to_bytes(self) -> bytes:
        """The game as an SGF file."""
        tree = sgf_grammar.make_coarse_game_tree(self._root, lambda node: node.children, lambda node: node.properties)
        written: bytes = sgf_grammar.serialise_game_tree(tree, wrap=None)
        return written


class Branch:
    """A node with its subtree, which callers may change."""

    def __init__(self, properties: Node) -> None:
        self.properties = properties
        self.children: list[Branch] = []

    @classmethod
    def of(cls, tree: Any) -> "Branch":
        """Convert sgfmill's ``Coarse_game_tree``."""
        root = cls(tree.sequence[0])
        # make_tree also sets an attribute ``_children`` of each node to an empty list; it is not used.
        sgf_grammar.make_tree(tree, root, lambda parent, properties: cls(properties), _append)
        return root

    def first_line(self) -> "Iterator[Branch]":
        """This node, its first child, that child's first child, and so on."""
        node: Branch | None = self
        while node is not None:
            yield node
            node = node.children[0] if node.children else None


def _append(parent: Branch, child: Branch) -> None:
    parent.children.append(child)


def read_trees(data: bytes) -> Iterator[tuple[bytes, SgfTree | ValueError]]:
    """Every game of a file within the limits of :mod:`engine.go.sgf`.

    Yields:
        A game as bytes, for :func:`engine.go.sgf.read_sgf`, and its tree; a broken game's bytes and its ValueError.
    """
    for piece, encoding in game_pieces(data):
        try:
            tree = SgfTree(parsed_tree(piece))
        except ValueError as error:
            yield piece, error
            continue
        for node in tree.every_node():
            for name, values in node.items():
                node[name] = [value if value.isascii() else text_of(value, encoding).encode() for value in values]
        tree.main_line()[0]["CA"] = [b"UTF-8"]
        yield tree.to_bytes(), tree


def raw(text: str) -> bytes:
    """Text as a raw value: escaped, in UTF-8."""
    escaped: bytes = sgf_grammar.escape_text(text.encode())
    return escaped
