"""The choice of the move to play from a search's report, and changes of the root's priors before a search.

Dirichlet noise makes games differ; averaging the priors over all symmetries makes them more exact.
"""

import math
from typing import NamedTuple

import numpy as np

from engine.config.declaration import no_branch
from engine.go.position import Position
from engine.search.leaves import list_moves
from engine.search.priors import write_codes
from engine.search.report import MoveReport, Report
from engine.search.root_targets import read_priors, write_priors
from engine.search.tree import META_ROOT, Tree, replace_priors

CONCENTRATION = 0.03 * 361
"""Sum of the Dirichlet distribution's parameters: AlphaGo Zero's 0.03 for each move of the empty board (Methods)"""


def add_dirichlet_noise(tree: Tree, share: float, rng: np.random.Generator) -> None:
    """Mix Dirichlet noise into the priors of the root, which must be expanded: (1 - share) * P + share * noise.

    Threads: the tree's lock is held.
    """
    moves = len(tree.point)
    priors, codes = np.zeros(moves), np.zeros(moves, np.uint16)
    read_priors(tree, math.isqrt(moves), priors)
    there = priors > 0.0
    noise = rng.dirichlet(np.full(there.sum(), CONCENTRATION / there.sum()))
    priors[there] = (1.0 - share) * priors[there] + share * noise
    write_priors(tree, priors, codes)


class RootPolicy(NamedTuple):
    """A policy that replaces the priors of the root, and how a search explores its moves."""

    logits: np.ndarray
    """float32[N*N + 1] in policy order"""
    c_puct: float
    """exploration constant at the root"""
    c_permanent: float
    """part of it that grows with the square root of the root's visits"""


def replace_root_priors(tree: Tree, position: Position, policy: np.ndarray, temperature: float) -> None:
    """Replace the priors of the root, which must be expanded, by softmax(policy / temperature) over its moves.

    Args:
        position: the root's position.
        policy: float32[N*N + 1], logits in policy order.
    Threads: the tree's lock is held.
    """
    moves = len(policy)
    listed, codes = np.zeros(moves, np.uint16), np.zeros(moves, np.uint16)
    surprise, likelihood = np.zeros(moves, np.float32), np.zeros(moves, np.float32)
    count = list_moves(position, listed)
    write_codes(listed, count, policy, temperature, surprise, likelihood, codes)
    replace_priors(tree, tree.meta[META_ROOT], codes)


LCB_SHARE = 0.15
"""Minimum visits, as a share of the most visited move's, of a move that "lcb" may put first"""


def best_first(moves: list[MoveReport], move_choice: str) -> list[MoveReport]:
    """Moves sorted by preference, the best first.

    Args:
        move_choice: "visits": the most visited first (ties: the better value, then the larger prior). "lcb": moves with
            at least ``LCB_SHARE`` of the most visited move's visits first, then the others, both by their lower
            confidence bound, the largest first.
    Raises:
        ValueError: unknown ``move_choice``.
    """
    if move_choice not in ("visits", "lcb"):
        raise no_branch("move_choice", move_choice)
    enough = LCB_SHARE * max((move.visits for move in moves), default=0)

    def key(move: MoveReport) -> tuple[float, ...]:
        rest = (-move.visits, -move.value_stm, -move.prior, move.point)
        if move_choice == "lcb":
            return (move.visits < max(enough, 1), move.visits == 0, -move.lcb_stm, *rest)
        return rest

    return sorted(moves, key=key)


def choose(report: Report, temperature: float = 0.0, rng: np.random.Generator | None = None) -> int:
    """The point to play, or PASS.

    Args:
        temperature: 0 = the report's first move; above 0, a move is drawn with probability proportional to
            visits ** (1 / temperature), or prior ** (1 / temperature) if no move has a visit.
        rng: draws the move; without it the temperature is ignored.
    Raises:
        ValueError: the report holds no move.
    """
    if not report.moves:
        raise ValueError("no move to choose from")
    if temperature <= 0.0 or rng is None:
        return report.moves[0].point
    weights = np.array([move.visits for move in report.moves], np.float64)
    if not weights.any():
        weights = np.array([move.prior for move in report.moves], np.float64)
    # Weights are divided by the largest, so that powers do not overflow at small temperatures.
    weights = (weights / weights.max()) ** (1.0 / temperature)
    return report.moves[int(rng.choice(len(weights), p=weights / weights.sum()))].point
