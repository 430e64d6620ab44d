"""Choosing at the root by sequential halving over moves drawn without replacement, for budgets of few visits.

PUCT needs many visits to find out that a likely move is bad; here every drawn move gets its share of them, the worse
half leaves, and so on until one is left. The draw adds a Gumbel variable to every move's log prior and takes the
largest sums; with exact values the move that is left improves on the policy whatever the budget. With that variable a
move is played as often as the improved policy says, as self-play wants it; without it the best move is looked for.

Source: Danihelka et al., "Policy improvement by planning with Gumbel", ICLR 2022, section 3.
"""

import math

import numpy as np

from engine.search.halving import sigma
from engine.search.pools import META_ROOT, Tree
from engine.search.tree import add_edge, edge_visits
from engine.search.unchosen import is_move
from engine.search.values import edge_mean, node_value

VALUE_SCALE = 1.0
"""c_scale of the paper, for values from 0 to 1"""
AHEAD = 1e12
"""More than any two preferences differ by, whatever the visits"""


class SequentialHalving:
    """One run of it. Threads: every method wants the tree's lock."""

    def __init__(
        self, tree: Tree, move_filter: np.ndarray, width: int, visits: int, weight: float, noise: float,
        rng: np.random.Generator,
    ):  # fmt: skip
        """Draw the moves.

        Args:
            tree: its root is expanded.
            move_filter: uint8[D, L] by depth and point: its first row holds the moves to draw from.
            width: moves to draw at most.
            visits: to be shared out.
            weight: lambda.
            noise: factor of the Gumbel variables; 0 = the likeliest moves.
        """
        self._tree, self._weight = tree, weight
        self.move_filter = move_filter.copy()
        """uint8[D, L]: likewise; its first row holds the moves that are left"""
        root = int(tree.meta[META_ROOT])
        while is_move(tree.best_unexpanded[root]) and add_edge(tree, root) >= 0:
            pass
        first = int(tree.first_edge[root])
        self._edges = [e for e in range(first, first + int(tree.n_edges[root])) if move_filter[0, tree.move[e]]]
        draws = noise * rng.gumbel(size=len(self._edges))
        self._base = {e: math.log(tree.P[e]) + g for e, g in zip(self._edges, draws.tolist(), strict=True)}
        self._before = {e: int(edge_visits(tree, e)) for e in self._edges}
        self._rounds = max(1, math.ceil(math.log2(max(1, min(width, len(self._edges))))))
        self._visits = visits
        self._keep(sorted(self._edges, key=self._base.__getitem__, reverse=True)[:width])
        self._target = self._share()

    def _keep(self, edges: list[int]) -> None:
        """Go on with these moves."""
        self._edges = edges
        self.move_filter[0] = 0
        self.move_filter[0, self._tree.move[edges]] = 1

    def _share(self) -> int:
        """Visits each move that is left gets in this round."""
        return max(1, self._visits // (self._rounds * max(1, len(self._edges))))

    def _done(self, edge: int) -> int:
        return int(edge_visits(self._tree, edge)) - self._before[edge]

    def playouts_allowed(self) -> int:
        """Leaves that may be selected now; the next round begins when all of one are back."""
        tree = self._tree
        while len(self._edges) > 1 and all(self._done(edge) >= self._target for edge in self._edges):
            half = -(-len(self._edges) // 2)
            found = self._preferences(self._edges)
            self._keep(sorted(self._edges, key=found.__getitem__, reverse=True)[:half])
            self._target = max(self._done(edge) for edge in self._edges) + self._share()
        if len(self._edges) <= 1:
            return 1 << 30
        return sum(max(0, self._target - self._done(edge) - int(tree.in_flight[edge])) for edge in self._edges)

    def _preferences(self, edges: list[int]) -> dict[int, float]:
        """What moves are compared by: g + log prior + sigma(Q); an unvisited move has the root's value as Q."""
        tree = self._tree
        root = int(tree.meta[META_ROOT])
        first, end = int(tree.first_edge[root]), int(tree.first_edge[root] + tree.n_edges[root])
        visits = np.maximum(tree.N_v[first:end], tree.N_r[first:end])
        unvisited = node_value(tree, root, self._weight)
        most = int(visits.max())
        # Only visited edges are asked one by one: that is a kernel call each.
        values = {e: edge_mean(tree, e, self._weight) if visits[e - first] else unvisited for e in edges}
        return {e: self._base[e] + sigma(value, most, VALUE_SCALE) for e, value in values.items()}

    def order(self) -> dict[int, float]:
        """By point, how much a move is preferred: those still that is left before all others."""
        inside = set(self._edges)
        found = self._preferences(list(self._base))
        return {int(self._tree.move[e]): value + (AHEAD if e in inside else 0.0) for e, value in found.items()}
