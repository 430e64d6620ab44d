"""A slow plain-Python twin of the tree: selection, expansion and backup of a made-up game."""

import math
import random
from typing import NamedTuple

import numpy as np

from engine.go.geometry import PASS, index_of, on_board_points, point_of
from engine.go.random import mixed
from engine.search.leaves import FINISHED, IN_TREE
from engine.search.priors import prior_of, to_prior_code
from engine.search.selection import Tuning
from tests.search.tree_tools import give_moves

SIZE = 3
POINTS = (PASS, *on_board_points(SIZE).tolist())
LIMIT = 64 << 20
EVERY = np.ones((1, 64), np.uint8)
BOTH = (True, True)


def tuning_of(c_puct: float, fpu_reduction: float, rollout_weight: float, virtual_visits: int, **others) -> Tuning:
    """A tuning with everything newer off."""
    numbers = {"score_weight": 0.0, "expand_after": 0}
    numbers |= {"virtual_loss": 1.0, "is_plain": False}
    return Tuning(
        c_puct=c_puct, fpu_reduction=fpu_reduction, rollout_weight=rollout_weight, virtual_visits=virtual_visits,
        **{**numbers, **others},
    )  # fmt: skip


class Facts(NamedTuple):
    """What is known of a position of a made-up game."""

    steps: dict[int, int]
    """by policy index, those of its moves' priors"""
    moves: list[tuple[int, float]]
    """points and priors, the likeliest first"""
    value: float
    rollout: float
    score: float
    over: bool


def position_facts(path: tuple[int, ...]) -> Facts:
    """The made-up game as a function of the moves so far."""
    rng = random.Random(repr(path))
    points = rng.sample(POINTS, rng.randint(1, len(POINTS)) if path else len(POINTS))
    weights = [rng.random() ** 3 + 0.01 for _ in points]
    total = sum(weights)
    steps = {index_of(p, SIZE): int(to_prior_code(-math.log(w / total))) for w, p in zip(weights, points, strict=True)}
    order = sorted((few, index) for index, few in steps.items())
    moves = [(int(point_of(index, SIZE)), prior_of(few)) for few, index in order]
    value, rollout = np.float32(rng.uniform(-1, 1)), rng.choice((-1.0, 1.0))
    return Facts(steps, moves, float(value), rollout, float(np.float32(rng.uniform(-5, 5))), len(path) >= 5)


def fill(batch, i: int, before: tuple[int, ...] = ()) -> None:
    """Evaluate leaf i of a batch, in a game with these moves before the root, by :func:`position_facts`."""
    path = before + tuple(int(move) for move in batch.move[i, : batch.depth[i]])
    facts = position_facts(path)
    batch.value[i], batch.rollout[i], batch.lead[i] = facts.value, facts.rollout, facts.score
    if facts.over:
        batch.kind[i] = FINISHED
        batch.value[i] = batch.rollout[i] = 1.0 if facts.value > 0 else -1.0
        return
    give_moves(batch, i, facts.steps)


def fill_new(batch, count: int) -> list[tuple[int, ...]]:
    """Evaluate those of a batch's first ``count`` leaves that the tree does not know; the moves that lead to all."""
    for i in range(count):
        if batch.kind[i] != IN_TREE:
            fill(batch, i)
    return [tuple(int(move) for move in batch.move[i, : batch.depth[i]]) for i in range(count)]


class TwinNode:
    """A node of the twin: everything spelt out, nothing shared with the kernels."""

    def __init__(self, path: tuple[int, ...]):
        self.path = path
        self.state = "unexpanded"
        self.evaluation = "none"
        self.moves: list[tuple[int, float]] = []
        self.own = self.own_lead = 0.0
        self.n_v: dict[int, int] = {}
        self.w_v: dict[int, float] = {}
        self.n_r: dict[int, int] = {}
        self.w_r: dict[int, float] = {}
        self.results: list[float] = []
        """of all visits, its own included, for its side to move"""
        self.lead: dict[int, float] = {}
        """sums of leads in points, by move"""
        self.in_flight: dict[int, int] = {}
        self.children: dict[int, TwinNode] = {}


class Twin:
    """Monte Carlo tree search as the papers write it, with dictionaries and recursion."""

    def __init__(self, tuning: Tuning, adds_value: bool, adds_rollout: bool):
        self.tuning, self.adds_value, self.adds_rollout = tuning, adds_value, adds_rollout
        self.root = TwinNode(())

    def q(self, node: TwinNode, move: int) -> float:
        lam = self.tuning.rollout_weight
        n_v, n_r = node.n_v.get(move, 0), node.n_r.get(move, 0)
        q_v = node.w_v.get(move, 0.0) / n_v if n_v else 0.0
        q_r = node.w_r.get(move, 0.0) / n_r if n_r else 0.0
        return q_r if not n_v else q_v if not n_r else (1 - lam) * q_v + lam * q_r

    def visits(self, node: TwinNode, move: int) -> int:
        return max(node.n_v.get(move, 0), node.n_r.get(move, 0))

    def lead_value(self, node: TwinNode, move: int) -> float:
        """What the mean lead behind a move, beyond the root's, adds to its value."""
        root, ply = self.root, len(node.path)
        mean = (root.own_lead + sum(root.lead.values())) / (1 + sum(self.visits(root, m) for m, _ in root.moves))
        lead = node.lead.get(move, 0.0) / self.visits(node, move) - (mean if ply % 2 == 0 else -mean)
        return self.tuning.score_weight * lead / (abs(lead) + math.sqrt(len(POINTS)))

    def best_move(self, node: TwinNode, above: tuple["TwinNode", int] | None = None) -> int:
        virtual, is_root = self.tuning.virtual_visits, node is self.root
        tried = [m for m, _ in node.moves if self.visits(node, m) + node.in_flight.get(m, 0) > 0]
        visits = {m: self.visits(node, m) for m, _ in node.moves}
        total = sum(visits[m] + virtual * node.in_flight.get(m, 0) for m, _ in node.moves)
        mean = node.own + sum(visits[m] * self.q(node, m) for m in tried if visits[m])
        mean /= 1 + sum(visits.values())
        if above is not None and self.tuning.expand_after:
            # The node's own share has more rollouts than values.
            mean = -self.q(*above)
        if self.tuning.score_weight and above is not None:
            mean -= self.lead_value(*above)
        c_puct = self.tuning.c_puct
        mass = sum(p for m, p in node.moves if m in tried)
        unvisited = self.tuning.fpu_base * mean - (0.0 if is_root else self.tuning.fpu_reduction * math.sqrt(mass))

        def score(entry: tuple[int, float]) -> float:
            move, prior = entry
            pretended = virtual * node.in_flight.get(move, 0)
            weight = visits[move] + pretended
            q = self.q(node, move) if visits[move] else unvisited
            if self.tuning.score_weight and visits[move]:
                q += self.lead_value(node, move)
            if pretended:
                q -= self.tuning.virtual_loss * pretended / weight
            if is_wide:
                q += self.bonus(slots[move])
                prior = prior ** (1 / (1 + 4 * self.tuning.wide_root_noise))
            return q + c_puct * prior * math.sqrt(max(total, 1)) / (1 + weight)

        # Only the likeliest of the moves that were never chosen competes with the others.
        is_wide, slots = is_root and self.tuning.wide_root_noise > 0, {m: i for i, (m, _) in enumerate(node.moves)}
        rivals = node.moves[: len(tried) + 1] if is_wide else node.moves
        return max(rivals, key=score)[0]

    def bonus(self, slot: int) -> float:
        """Nothing for half of the draws, else the size of a normal number times the noise."""
        begun = len(self.root.results) + sum(self.root.in_flight.values())
        word = int(mixed(np.array([(begun << 12) + slot], np.uint64))[0])
        other = int(mixed(np.array([word], np.uint64))[0])
        first, second = ((word >> 11) + 1) / 2**53, (other >> 11) / 2**53
        normal = math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)
        return 0.0 if word % 2 else self.tuning.wide_root_noise * abs(normal)

    def kind_of(self, path: list[tuple[TwinNode, int]], leaf: TwinNode) -> str:
        """What a playout does at its leaf: "whole", or a rollout alone, with "evaluate" or with "expand"."""
        if leaf.state != "unexpanded":
            return "whole"
        if path:
            above, move = path[-1]
            begun = above.n_r.get(move, 0) + above.in_flight[move]
            if leaf.evaluation == "asked":
                return "roll out"
            if begun <= self.tuning.expand_after:
                return "evaluate" if leaf.evaluation == "none" and self.tuning.rollout_weight < 1 else "roll out"
        return "expand" if leaf.evaluation == "known" else "whole"

    def select(self, wanted: int) -> list[tuple[list[tuple[TwinNode, int]], TwinNode, str]]:
        """Paths of (node, move) to the leaves, the leaves, and what is done there."""
        leaves = []
        for _ in range(wanted):
            node, path = self.root, []
            while node.state == "expanded":
                move = self.best_move(node, path[-1] if path else None)
                path.append((node, move))
                node.in_flight[move] = node.in_flight.get(move, 0) + 1
                node = node.children.setdefault(move, TwinNode((*node.path, move)))
            if node.state == "pending":
                for above, move in path:
                    above.in_flight[move] -= 1
                break
            kind = self.kind_of(path, node)
            if kind == "evaluate":
                node.evaluation = "asked"
            elif node.state == "unexpanded" and kind != "roll out":
                node.state = "pending"
            leaves.append((path, node, kind))
        return leaves

    def complete(self, leaves) -> None:
        lam = self.tuning.rollout_weight
        for path, leaf, kind in leaves:
            _, moves, value, rollout, lead, over = position_facts(leaf.path)
            if over:
                value = rollout = 1.0 if value > 0 else -1.0
                kind = "whole"
            has_value = self.adds_value and kind != "roll out"
            both = has_value and self.adds_rollout
            result = (1 - lam) * value + lam * rollout if both else value if has_value else rollout
            leaf.results.append(result)
            if leaf.state == "pending" or (over and leaf.state == "unexpanded"):
                leaf.moves = moves
                leaf.state = "terminal" if over else "expanded"
                leaf.own_lead = lead
                leaf.own = result
            elif kind == "evaluate":
                leaf.evaluation, leaf.own, leaf.own_lead = "known", result, lead
            for ply, (node, move) in enumerate(reversed(path)):
                sign = -1.0 if ply % 2 == 0 else 1.0
                node.in_flight[move] -= 1
                node.results.append(sign * result)
                node.lead[move] = node.lead.get(move, 0.0) + sign * lead
                if has_value and kind != "expand":
                    node.n_v[move] = node.n_v.get(move, 0) + 1
                    node.w_v[move] = node.w_v.get(move, 0.0) + sign * value
                if self.adds_rollout:
                    node.n_r[move] = node.n_r.get(move, 0) + 1
                    node.w_r[move] = node.w_r.get(move, 0.0) + sign * rollout
