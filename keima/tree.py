"""The tree of a search, as arrays and as nodes to walk."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.pictures.drawing import Picture, stand_alone
from engine.pictures.trees import Drawn, drawn_tree
from engine.search.snapshot import Snapshot
from keima.board import Board
from keima.moves import Color, Move, moves_of
from keima.perspective import Lead, WinRate


class Tree:
    """The positions that a search visited, one row each; row 0 is the position that was searched.

    Parents come before their children, and the children of a node are consecutive rows, most visits first. All arrays
    are read only. A tree does not change while the engine searches on.
    """

    def __init__(self, board: Board, nodes: Snapshot) -> None:
        """Made by :meth:`keima.Engine.tree`."""
        self.board = board
        """the position that was searched; a copy"""
        self._first_child, self._children = nodes.first_child, nodes.children
        self.parent: NDArray[np.int32] = nodes.parent
        """int32[R]: row of the parent; -1 for the root"""
        self.move: NDArray[np.int16] = nodes.move
        """int16[R]: policy index of the move that leads to the node; -1 for the root"""
        self.color: NDArray[np.uint8] = nodes.color
        """uint8[R]: colour that played the move, 1 = Black, 2 = White; for the root the one that is not to move"""
        self.depth: NDArray[np.int16] = nodes.depth
        """int16[R]: number of moves from the root"""
        self.visits: NDArray[np.int32] = nodes.visits
        """int32[R]"""
        self.prior: NDArray[np.float32] = nodes.prior
        """float32[R]: probability that the network gave the move, 0 to 1; 1 for the root"""
        self.win_rate_black: NDArray[np.float32] = (np.float32(1.0) + nodes.value_black) / np.float32(2.0)
        """float32[R]: Black's win rate, 0 to 1; mean over the node's visits"""
        self.lead_black: NDArray[np.float32] = nodes.lead_black
        """float32[R]: Black's lead in points; mean over the node's visits; 0 if nothing estimates it"""
        for column in (*nodes, self.win_rate_black):
            column.setflags(write=False)

    @property
    def root(self) -> "TreeNode":
        """The position that was searched."""
        return TreeNode(self, 0)

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.visits)

    def __getitem__(self, row: int) -> "TreeNode":
        return TreeNode(self, range(len(self))[row])

    def __iter__(self) -> "Iterator[TreeNode]":
        return (TreeNode(self, row) for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<Tree of {len(self)} nodes, {self.root.visits} visits>"

    def svg(self, nodes: int = 30, depth: int = 6) -> Picture:
        """A picture of the top of the tree: each move with its visits and the win rate of its player, the root with its
        side to move.

        Args:
            nodes: number of nodes; the most visited ones are drawn.
            depth: largest number of moves from the root.
        """
        near = np.flatnonzero(self.depth <= depth)
        # Parents have the visits of their children and more, and come first, so they are drawn too.
        rows = np.sort(near[np.argsort(-self.visits[near], kind="stable")[:nodes]])
        drawn = []
        for node in (TreeNode(self, int(row)) for row in rows):
            parent = int(np.searchsorted(rows, node.parent.row)) if node.parent else -1
            share = node.visits / max(1, self.root.visits)
            color = node.color if node.move else node.to_move
            text = str(node.move or color)
            drawn.append(Drawn(parent, node.depth, text, node.visits, share, node.win_rate.pov(color), color))
        return stand_alone(drawn_tree(drawn, f"Search tree of {self.root.visits} visits"))

    def _repr_svg_(self) -> str:
        return self.svg()


class TreeNode:
    """A node of a tree: a position, and the move that leads to it."""

    __slots__ = ("row", "tree")

    def __init__(self, tree: Tree, row: int) -> None:
        self.tree = tree
        self.row = row
        """row in the arrays of the tree"""

    @property
    def move(self) -> Move | None:
        """The move that leads to the node; None for the root."""
        index = int(self.tree.move[self.row])
        return None if index < 0 else moves_of(self.tree.board.size)[index]

    @property
    def color(self) -> Color:
        """The colour that played the move; for the root the one that is not to move."""
        return Color(int(self.tree.color[self.row]))

    @property
    def to_move(self) -> Color:
        """The side to move in the position."""
        return self.color.opponent

    @property
    def depth(self) -> int:
        """Number of moves from the root."""
        return int(self.tree.depth[self.row])

    @property
    def visits(self) -> int:
        """Visits of the position."""
        return int(self.tree.visits[self.row])

    @property
    def prior(self) -> float:
        """Probability that the network gave the move, 0 to 1; 1 for the root."""
        return float(self.tree.prior[self.row])

    @property
    def win_rate(self) -> WinRate:
        """Mean over the visits; ``relative`` is the opponent's of the player of the move, who is to move then."""
        return WinRate(float(self.tree.win_rate_black[self.row]), self.to_move)

    @property
    def lead(self) -> Lead:
        """Mean over the visits, in points; 0 if nothing estimates it."""
        return Lead(float(self.tree.lead_black[self.row]), self.to_move)

    @property
    def parent(self) -> "TreeNode | None":
        """The node before the move; None for the root."""
        row = int(self.tree.parent[self.row])
        return None if row < 0 else TreeNode(self.tree, row)

    @property
    def children(self) -> "list[TreeNode]":
        """The nodes after each visited move, most visits first."""
        first = int(self.tree._first_child[self.row])
        return [TreeNode(self.tree, first + n) for n in range(int(self.tree._children[self.row]))]

    def pv(self) -> list[Move]:
        """The moves from here on that have the most visits."""
        line, node = [], self
        while node.children:
            node = node.children[0]
            assert node.move is not None
            line.append(node.move)
        return line

    def path(self) -> list[Move]:
        """The moves from the root to this node."""
        moves, node = [], self
        while (move := node.move) is not None and (above := node.parent) is not None:
            moves.append(move)
            node = above
        return moves[::-1]

    def board(self) -> Board:
        """The position as a board of its own, with the game before it."""
        board = self.tree.board.copy()
        for move in self.path():
            board.play(move)
        return board

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeNode) and (self.tree, self.row) == (other.tree, other.row)

    def __hash__(self) -> int:
        return hash((id(self.tree), self.row))

    def __repr__(self) -> str:
        return f"<TreeNode {self.move or 'root'}: {self.visits} visits, {self.win_rate}>"
