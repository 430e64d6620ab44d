"""Weights of moves in a node's value: the kernels against a twin that works everything out anew, by recursion."""

import math

import pytest

from engine.search.backup import complete
from engine.search.batch import new_batch
from engine.search.selection import select
from engine.search.tree import edge_visits, new_tree, reserve
from engine.search.weighing import root_value, weigh_paths
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

    def value(self, prunes: bool, power: float) -> float:
        """For its side to move."""
        moves = [(prior, self.children[m]) for m, prior in self.moves if m in self.children]
        if not moves:
            return self.own
        values = [-child.value(prunes, power) for _, child in moves]
        weights = [float(child.visits) for _, child in moves]
        if prunes:
            for i in range(1, len(moves)):
                before = sum(weights[:i])
                gap = sum(w * v for w, v in zip(weights[:i], values, strict=False)) / before - values[i]
                earned = before * moves[i][0] / sum(prior for prior, _ in moves[:i])
                excess = weights[i] - 2 * earned
                if gap > 0 and excess > 0:
                    weights[i] -= excess * (1 - math.exp(-gap / 0.15))
        total = sum(weights)
        mean = sum(w * v for w, v in zip(weights, values, strict=True)) / total
        if power:
            factors = []
            for weight, value in zip(weights, values, strict=True):
                deviation = math.sqrt(1 / (1.5 * math.sqrt(weight)))
                factors.append((student(((value - mean) / deviation)) + 1e-4) ** power)
            shares = [w * f for w, f in zip(weights, factors, strict=True)]
            mean = sum(s * v for s, v in zip(shares, values, strict=True)) / sum(shares)
        return (self.own + total * mean) / (1 + total)


def student(z: float) -> float:
    """Student's distribution function with 3 degrees of freedom, from its density, by Simpson's rule."""

    def density(x: float) -> float:
        return 2 / (math.pi * math.sqrt(3)) / (1 + x * x / 3) ** 2

    steps, width = 400, z / 400
    inner = sum((4 if i % 2 else 2) * density(i * width) for i in range(1, steps))
    return 0.5 + width / 3 * (density(0.0) + inner + density(z))


def compare(tree, node: int, twin: Node, ways: tuple[bool, float]) -> int:
    """Each edge of a node and all below it against the twin's values; returns how many there are."""
    count = 0
    for edge in edges_of(tree, node):
        child = twin.children.get(int(tree.move[edge]))
        if child is not None:
            assert edge_visits(tree, edge) == child.visits
            assert tree.W_v[edge] / tree.N_v[edge] == pytest.approx(-child.value(*ways), abs=2e-5)
            count += 1 + compare(tree, int(tree.child[edge]), child, ways)
    return count


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(("noise_pruning", "value_weight"), [(True, 0.0), (False, 0.25), (True, 0.5)])
def test_the_kernels_weigh_as_the_twin_does(noise_pruning, value_weight, k):
    ways = {"weighs": True, "noise_pruning": noise_pruning, "value_weight": value_weight}
    tuning = tuning_of(1.0, 0.2, 0.0, 1, is_plain=True, **ways)
    tree, batch, root = new_tree(SIZE), new_batch(SIZE, k), None
    for _ in range(400 // k):
        reserve(tree, k, 4096, LIMIT)
        count = select(tree, batch, k, tuning, EVERY, False)
        paths = fill_new(batch, count)
        complete(tree, batch, count, 0.0, True, False)
        weigh_paths(tree, batch, count, tuning)
        for path in paths:
            node = root = root or Node(())
            for depth, move in enumerate(path):
                is_new = move not in node.children
                node = node.children.setdefault(move, Node(path[: depth + 1]))
            node.extra += bool(path) and not is_new
    assert root is not None and compare(tree, root_of(tree), root, (noise_pruning, value_weight)) > 60
    value = root.value(noise_pruning, value_weight)
    assert root_value(tree, tuning) == pytest.approx(value, abs=2e-5)
    assert abs(value - root.value(False, 0.0)) > 1e-3, "something was weighed"
