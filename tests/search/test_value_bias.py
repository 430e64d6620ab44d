"""Subtree value bias: the kernels against a twin that spells out KataGo's page, and what positions share a bucket."""

import numpy as np
import pytest

from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, point_at
from engine.search.backup import complete
from engine.search.leaves import FINISHED, NEW, new_batch
from engine.search.selection import select
from engine.search.tree import NONE, advance_root, clear, edge_visits, new_tree, reclaim, reserve
from engine.search.value_bias import bucket_key
from tests.search.tree_tools import edges_of, root_of
from tests.search.tree_twin import EVERY, LIMIT, SIZE, fill_new, position_facts, tuning_of

TUNING = tuning_of(1.4, 0.2, 0.0, 1, is_plain=True)


def bucket_of(path: tuple[int, ...]) -> int:
    """The made-up game's buckets: by the last two moves and whose turn it is."""
    return hash((path[-2:], len(path) % 2)) & 0xFFFF if path else -1


class Node:
    """A node of the twin, as the page defines it: utilities by recursion over its children."""

    def __init__(self, path: tuple[int, ...]):
        facts = position_facts(path)
        self.bucket = -1 if facts.over else bucket_of(path)
        self.network = self.own = (1.0 if facts.value > 0 else -1.0) if facts.over else facts.value
        self.extra = 0
        """visits of a finished game beyond the first"""
        self.children: dict[int, Node] = {}

    @property
    def visits(self) -> int:
        return 1 + self.extra + sum(child.visits for child in self.children.values())

    @property
    def squares(self) -> float:
        """Sum of the squared values of the node and all below."""
        return self.own**2 * (1 + self.extra) + sum(child.squares for child in self.children.values())

    @property
    def below(self) -> float:
        """Mean utility of the children, by visits, for this node's side to move."""
        return -sum(c.visits * c.utility for c in self.children.values()) / (self.visits - 1 - self.extra)

    @property
    def utility(self) -> float:
        if not self.children:
            return self.own
        return (self.own + (self.visits - 1) * self.below) / self.visits


class Twin:
    """The whole tree, told the moves of each playout."""

    def __init__(self):
        self.root: Node | None = None
        self.errors: dict[int, dict[int, tuple[float, float]]] = {}
        """by bucket and node, (error, weight)"""

    def correction(self, bucket: int) -> float:
        entered = self.errors.get(bucket, {}).values()
        weight = sum(w for _, w in entered)
        return 0.45 * sum(e * w for e, w in entered) / weight if weight else 0.0

    def play_out(self, path: tuple[int, ...]) -> None:
        if self.root is None:
            self.root = Node(())
            return
        nodes = [self.root]
        for depth, move in enumerate(path):
            if move not in nodes[-1].children:
                leaf = nodes[-1].children[move] = Node(path[: depth + 1])
                leaf.own = leaf.network
                if leaf.bucket >= 0:
                    leaf.own = min(1.0, max(-1.0, leaf.network + self.correction(leaf.bucket)))
                nodes.append(leaf)
                break
            nodes.append(nodes[-1].children[move])
        else:
            nodes[-1].extra += 1
        for node in reversed(nodes[1:-1]):
            entered = self.errors.setdefault(node.bucket, {})
            entered[id(node)] = (node.below - node.network, (node.visits - 1) ** 0.85)
            node.own = min(1.0, max(-1.0, node.network + self.correction(node.bucket)))


def compare(tree, node: int, twin: Node) -> int:
    """Each edge of a node and all below it against the twin's utilities; returns how many there are."""
    count = 0
    for edge in edges_of(tree, node):
        child = twin.children.get(int(tree.move[edge]))
        if child is None:
            assert edge_visits(tree, edge) == 0
            continue
        assert edge_visits(tree, edge) == child.visits
        assert tree.W_v[edge] / tree.N_v[edge] == pytest.approx(-child.utility, abs=2e-5)
        assert tree.value[tree.child[edge]] == pytest.approx(child.own, abs=2e-5)
        # The bound that chooses the move came of squares of values that had been corrected since.
        assert tree.W_sq[edge] == pytest.approx(child.squares, abs=1e-3)
        count += 1 + compare(tree, int(tree.child[edge]), child)
    return count


def grown(playouts: int, k: int = 1) -> tuple:
    """A tree that corrects, and its twin; k leaves at a time."""
    tree, twin, batch = new_tree(SIZE, value_bias=0.45), Twin(), new_batch(SIZE, k, corrects=True)
    for _ in range(playouts):
        reserve(tree, k, 4096, LIMIT)
        count = select(tree, batch, k, TUNING, EVERY, False)
        paths = fill_new(batch, count)
        for i in range(count):
            if batch.kind[i] in (NEW, FINISHED):
                batch.bucket_key[i] = max(0, bucket_of(paths[i]))
        complete(tree, batch, count, 0.0, True, False)
        for path in paths:
            twin.play_out(path)
    return tree, twin


@pytest.mark.parametrize("k", [1, 4])
def test_the_kernels_correct_as_the_twin_does(k):
    tree, twin = grown(400 // k, k)
    assert compare(tree, root_of(tree), twin.root) > 60
    moved = [abs(tree.value[tree.child[e]] - tree.network_value[tree.child[e]]) for e in edges_of(tree, root_of(tree))]
    assert max(moved) > 0.01, "something was corrected"


def test_nodes_that_are_given_back_leave_their_buckets():
    tree, _ = grown(150)
    assert np.count_nonzero(tree.bias_weight) > 10
    advance_root(tree, max(edges_of(tree, root_of(tree)), key=lambda edge: edge_visits(tree, edge)))
    while reclaim(tree):
        pass
    sums, weights = np.zeros_like(tree.bias_sum), np.zeros_like(tree.bias_weight)
    stack = [root_of(tree)]
    while stack:
        node = stack.pop()
        if tree.bucket[node] != NONE:
            sums[tree.bucket[node]] += tree.entered_error[node]
            weights[tree.bucket[node]] += tree.entered_weight[node]
        stack += [int(tree.child[edge]) for edge in edges_of(tree, node) if tree.child[edge] != NONE]
    np.testing.assert_allclose(tree.bias_sum, sums, atol=1e-4)
    np.testing.assert_allclose(tree.bias_weight, weights, atol=1e-4)
    clear(tree)
    assert not tree.bias_weight.any()


def key_after(moves: list[tuple[int, tuple[int, int]]], size: int = 9) -> int:
    """The bucket of a game of (colour, (row, column)); no point = pass."""
    game = Game(size)
    for color, at in moves:
        game.play(color, int(point_at(*at, size)) if at else PASS)
    return int(bucket_key(game.position))


def test_positions_share_a_bucket_by_their_last_moves_and_the_stones_around():
    local = [(BLACK, (3, 3)), (WHITE, (3, 4))]
    near, far, edge = (BLACK, (4, 4)), (BLACK, (8, 8)), (WHITE, (8, 0))
    assert key_after([far, (WHITE, (7, 7)), *local]) == key_after([(BLACK, (6, 8)), edge, *local])
    assert key_after([near, edge, *local]) != key_after([far, edge, *local])
    assert key_after(local) != key_after([(BLACK, (3, 3)), (WHITE, ())])
    assert key_after(local) != key_after([(WHITE, (3, 3)), (BLACK, (3, 4))])
    assert key_after([far, *local[::-1]]) != key_after([far, *local])


def test_a_chain_in_atari_is_another_matter():
    chain = [(BLACK, (4, 5)), (BLACK, (4, 6))]
    around = [(WHITE, at) for at in ((3, 5), (5, 5), (4, 4), (3, 6))]
    last = [(BLACK, (0, 0)), (WHITE, (4, 3))]
    atari, free = (WHITE, (5, 6)), (WHITE, (8, 8))
    assert key_after([*chain, *around, atari, *last]) != key_after([*chain, *around, free, *last])
    outside = [(WHITE, (8, 7)), *last], [(WHITE, (8, 8)), *last]
    assert key_after([*chain, *around, *outside[0]]) == key_after([*chain, *around, *outside[1]])
