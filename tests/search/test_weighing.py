"""Weights of moves in a node's value: the kernels against a twin that works everything out anew, by recursion."""

import math

import numpy as np
import pytest

from engine.search.backup import complete
from engine.search.leaves import new_batch
from engine.search.selection import select
from engine.search.tree import edge_visits, new_tree, reserve
from engine.search.values import root_value, weigh_paths
from tests.search.tree_tools import edges_of, root_of
from tests.search.tree_twin import EVERY, LIMIT, SIZE, fill_new, position_facts, tuning_of


class Node:
    """A node of the twin: its moves in the order of their priors."""

    def __init__(self, path: tuple[int, ...]):
        facts = position_facts(path)
        self.own = (1.0 if facts.value > 0 else -1.0) if facts.over else facts.value
        self.extra = 0
        """visits of a finished game beyond the first"""
        self.moves = facts.moves
        self.children: dict[int, Node] = {}

    @property
    def visits(self) -> int:
        return 1 + self.extra + sum(child.visits for child in self.children.values())

    @property
    def sums(self) -> tuple[float, float]:
        """Of the values of the node and all below, for its side to move: their sum, and that of their squares."""
        below = [child.sums for child in self.children.values()]
        own = self.own * (1 + self.extra), self.own**2 * (1 + self.extra)
        return own[0] - sum(total for total, _ in below), own[1] + sum(squares for _, squares in below)

    def value(self, power: float) -> float:
        """For its side to move."""
        children = [self.children[m] for m, _ in self.moves if m in self.children]
        if not children:
            return self.own
        values, visits = [-child.value(power) for child in children], [child.visits for child in children]
        mean = sum(n * v for n, v in zip(visits, values, strict=True)) / sum(visits)
        weights = []
        for n, value in zip(visits, values, strict=True):
            deviation = math.sqrt(1 / (1.5 * math.sqrt(n)))
            weights.append(n * (student((value - mean) / deviation) + 1e-4) ** power)
        mean = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        return (self.own + sum(visits) * mean) / (1 + sum(visits))


def student(z: float) -> float:
    """Student's distribution function with 3 degrees of freedom, from its density, by Simpson's rule."""

    def density(x: float) -> float:
        return 2 / (math.pi * math.sqrt(3)) / (1 + x * x / 3) ** 2

    steps, width = 400, z / 400
    inner = sum((4 if i % 2 else 2) * density(i * width) for i in range(1, steps))
    return 0.5 + width / 3 * (density(0.0) + inner + density(z))


def compare(tree, node: int, twin: Node, power: float, spreads: list[tuple[float, float]]) -> int:
    """Each edge of a node and all below it against the twin's values; returns how many there are."""
    count = 0
    for edge in edges_of(tree, node):
        child = twin.children.get(int(tree.move[edge]))
        if child is not None:
            assert edge_visits(tree, edge) == child.visits
            assert tree.W_v[edge] / tree.N_v[edge] == pytest.approx(-child.value(power), abs=2e-5)
            total, squares = child.sums
            spread = tree.W_sq[edge] - tree.W_v[edge] ** 2 / tree.N_v[edge]
            # Each result counts by its distance from the mean of its time, which weights have moved.
            assert spread > -1e-6, "no variance is negative"
            spreads.append((spread, squares - total**2 / child.visits))
            count += 1 + compare(tree, int(tree.child[edge]), child, power, spreads)
    return count


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("power", [0.25, 2.0])
def test_the_kernels_weigh_as_the_twin_does(power, k):
    tuning = tuning_of(1.0, 0.2, 0.0, 1, is_plain=True, value_weight=power)
    tree, batch, root = new_tree(SIZE), new_batch(SIZE, k), None
    for _ in range(400 // k):
        reserve(tree, k, 4096, LIMIT)
        count = select(tree, batch, k, tuning, EVERY, False)
        paths = fill_new(batch, count)
        complete(tree, batch, count, 0.0, True, False)
        weigh_paths(tree, batch, count, power)
        for path in paths:
            node = root = root or Node(())
            for depth, move in enumerate(path):
                is_new = move not in node.children
                node = node.children.setdefault(move, Node(path[: depth + 1]))
            node.extra += bool(path) and not is_new
    spreads: list[tuple[float, float]] = []
    assert root is not None and compare(tree, root_of(tree), root, power, spreads) > 60
    kept, real = np.array(spreads).T
    assert np.sqrt(np.mean(((kept - real) / (1 + real)) ** 2)) < 0.2, "once 0.32 of weights to the power of 2"
    assert root_value(tree, tuning) == pytest.approx(root.value(power), abs=2e-5)
    assert abs(root.value(power) - root.value(0.0)) > 1e-3, "something was weighed"
