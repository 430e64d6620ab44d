"""A frozen snapshot of a search: what front ends show and move choice reads."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.jit import kernel
from engine.search.candidates import candidate_point, candidate_prior
from engine.search.pools import ROOT, Tree
from engine.search.selection import Tuning
from engine.search.tree import edge_visits
from engine.search.values import edge_mean, main_line, node_value, root_lead

PV_LENGTH = 24
LCB_DEVIATIONS = 5.0


@dataclass(frozen=True)
class MoveReport:
    """One move at the root; values are those of the side to move there."""

    point: int
    visits: int
    prior: float
    value_stm: float
    """-1 to 1; for a move without visits the root's value"""
    lcb_stm: float
    """what ``value_stm`` is at least, with near certainty; see :func:`_lower_bound`"""
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
    """the moves with visits, or before any has one all of them; best first, as :mod:`engine.search.root` orders them"""
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
    lcb: np.ndarray
    """float64[A]: likewise"""
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
        np.zeros(moves, np.float64),
        np.zeros((moves, PV_LENGTH), np.int16),
        np.zeros(moves, np.int16),
    )


@kernel
def _lower_bound(mean, squares, visits):
    """LCB_DEVIATIONS standard errors below a mean of so many results; a further result of variance 1 is imagined.

    Args:
        squares: sum of the squared results.
    """
    variance = (max(0.0, squares - visits * mean * mean) + 1.0) / visits
    return mean - LCB_DEVIATIONS * math.sqrt(variance / visits)


@kernel
def _read_root(tree, tuning, allowed, table):
    """Fill the table with the root's visited moves among the allowed ones, or with all allowed if none is visited.

    Returns:
        int: rows filled.
    """
    root = tree.meta[ROOT]
    first, n_edges = tree.first_edge[root], tree.n_edges[root]
    count = 0
    for edge in range(first, first + n_edges):
        visits = edge_visits(tree, edge)
        if visits == 0 or allowed[tree.move[edge]] == 0:
            continue
        table.point[count] = tree.move[edge]
        table.visits[count] = visits
        table.prior[count] = tree.P[edge]
        table.value[count] = edge_mean(tree, edge, tuning.rollout_weight)
        table.lcb[count] = _lower_bound(table.value[count], tree.S[edge], visits)
        table.score[count] = tree.W_s[edge] / visits
        table.line[count, 0] = tree.move[edge]
        table.length[count] = 1 + main_line(tree, tree.child[edge], table.line[count, 1:])
        count += 1
    if count > 0:
        return count
    heap = tree.first_candidate[root]
    for i in range(tree.n_candidates[root]):
        held = i < n_edges
        candidate = np.uint32(0) if held else tree.candidate[heap + i - n_edges]
        point = np.int64(tree.move[first + i]) if held else candidate_point(candidate)
        if allowed[point] == 0:
            continue
        table.point[count] = point
        table.visits[count] = 0
        table.prior[count] = tree.P[first + i] if held else candidate_prior(candidate)
        table.value[count] = node_value(tree, root, tuning.rollout_weight)
        table.lcb[count] = -1.0
        table.score[count] = root_lead(tree)
        table.line[count, 0] = point
        table.length[count] = 1
        count += 1
    return count


def read_moves(
    tree: Tree, tuning: Tuning, allowed: np.ndarray, table: RootTable, with_scores: bool
) -> list[MoveReport]:
    """The moves of a :class:`Report`, in no particular order.

    Args:
        allowed: uint8[L] by point: moves to report.
        with_scores: whether leads in points mean anything in this tree.
    Threads: the tree's lock is held.
    """
    return [
        MoveReport(
            int(table.point[i]),
            int(table.visits[i]),
            float(table.prior[i]),
            float(table.value[i]),
            float(table.lcb[i]),
            float(table.score[i]) if with_scores else None,
            table.line[i, : table.length[i]].tolist(),
        )
        for i in range(_read_root(tree, tuning, allowed, table))
    ]
