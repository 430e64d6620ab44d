"""A frozen snapshot of a search: what front ends show and move choice reads."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.jit import kernel
from engine.search.kernels import Tuning, edge_sum, main_line, node_value
from engine.search.tree import ROOT, Tree, candidate_point, candidate_prior, edge_visits

PV_LENGTH = 24


@dataclass(frozen=True)
class MoveReport:
    """One move at the root; values are those of the side to move there."""

    point: int
    visits: int
    prior: float
    value_stm: float
    """-1 to 1; for a move without visits the root's value"""
    score_stm: float | None
    """expected lead in points, komi counted; None where nothing estimates it"""
    pv: list[int]
    """the most visited line, this move first"""


@dataclass(frozen=True)
class Report:
    """What a search has found so far."""

    visits: int
    """of the root, those kept from earlier searches included"""
    playouts_this_run: int
    seconds: float
    value_stm: float
    """-1 to 1 for the side to move"""
    score_stm: float | None
    moves: list[MoveReport]
    """the moves with visits, or before any has one all of them; best first: by visits, then value, then prior"""
    ownership_black: np.ndarray | None
    """float32[N*N] in policy order, 1 = Black's, -1 = White's; None unless asked for"""
    tree_nodes: int
    evaluations: int
    """positions the network has evaluated in this run"""


class RootTable(NamedTuple):
    """The root's moves as arrays of A rows; working memory of :func:`read_moves`."""

    point: np.ndarray
    """int16[A]"""
    visits: np.ndarray
    """int32[A]"""
    prior: np.ndarray
    """float32[A]"""
    value: np.ndarray
    """float64[A]: for the side to move at the root"""
    score: np.ndarray
    """float64[A]: likewise"""
    line: np.ndarray
    """int16[A, PV_LENGTH]: most visited moves, the row's own first"""
    length: np.ndarray
    """int16[A]: moves in ``line``"""


def new_root_table(size: int) -> RootTable:
    """Room for all moves of one board size."""
    moves = size * size + 1
    return RootTable(
        np.zeros(moves, np.int16),
        np.zeros(moves, np.int32),
        np.zeros(moves, np.float32),
        np.zeros(moves, np.float64),
        np.zeros(moves, np.float64),
        np.zeros((moves, PV_LENGTH), np.int16),
        np.zeros(moves, np.int16),
    )


@kernel
def _read_root(tree, tuning, allowed, table):
    """Fill the table with the root's visited moves among the allowed ones, or with all allowed if none is visited.

    Returns:
        int: rows filled.
    """
    first, n_edges = tree.first_edge[ROOT], tree.n_edges[ROOT]
    count = 0
    for edge in range(first, first + n_edges):
        visits = edge_visits(tree, edge)
        if visits == 0 or allowed[tree.move[edge]] == 0:
            continue
        table.point[count] = tree.move[edge]
        table.visits[count] = visits
        table.prior[count] = tree.P[edge]
        table.value[count] = edge_sum(tree, edge, tuning.rollout_weight) / visits
        table.score[count] = tree.W_s[edge] / visits
        table.line[count, 0] = tree.move[edge]
        table.length[count] = 1 + main_line(tree, tree.child[edge], table.line[count, 1:])
        count += 1
    if count > 0:
        return count
    for slot in range(tree.n_candidates[ROOT]):
        candidate = tree.candidate[tree.first_candidate[ROOT] + slot]
        if allowed[candidate_point(candidate)] == 0:
            continue
        table.point[count] = candidate_point(candidate)
        table.visits[count] = 0
        table.prior[count] = candidate_prior(candidate)
        table.value[count] = node_value(tree, ROOT, tuning.rollout_weight)
        table.score[count] = root_score(tree)
        table.line[count, 0] = table.point[count]
        table.length[count] = 1
        count += 1
    return count


@kernel
def root_score(tree):
    """Mean lead at the root for its side to move. Threads: the tree's lock is held."""
    visits, total = 1, float(tree.score[ROOT])
    for edge in range(tree.first_edge[ROOT], tree.first_edge[ROOT] + tree.n_edges[ROOT]):
        visits += edge_visits(tree, edge)
        total += tree.W_s[edge]
    return total / visits


def read_moves(
    tree: Tree, tuning: Tuning, allowed: np.ndarray, table: RootTable, with_scores: bool
) -> list[MoveReport]:
    """The moves of a :class:`Report`, best first.

    Args:
        allowed: uint8[L] by point: moves to report.
        with_scores: whether leads in points mean anything in this tree.
    Threads: the tree's lock is held.
    """
    moves = [
        MoveReport(
            int(table.point[i]),
            int(table.visits[i]),
            float(table.prior[i]),
            float(table.value[i]),
            float(table.score[i]) if with_scores else None,
            table.line[i, : table.length[i]].tolist(),
        )
        for i in range(_read_root(tree, tuning, allowed, table))
    ]
    return sorted(moves, key=lambda move: (-move.visits, -move.value_stm, -move.prior, move.point))
