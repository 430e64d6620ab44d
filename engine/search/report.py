"""Reports: immutable snapshots of a search, for front ends and for the choice of a move."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from engine.search.priors import GONE, is_move, prior_of
from engine.search.tree import META_ROOT, edge_visits
from engine.search.values import edge_mean, main_line, root_lead, root_value
from engine.system.arrays import allocate
from engine.system.jit import kernel

PV_LENGTH = 24
"""Maximum number of moves in a principal variation"""
LCB_DEVIATIONS = 5.0
"""Standard errors by which a lower confidence bound is below the mean"""


@dataclass(frozen=True)
class MoveReport:
    """One move at the root; values are for the side to move there."""

    point: int
    """the point played, or PASS"""
    visits: int
    prior: float
    value_stm: float
    """mean value, -1 to 1; for a move without visits the root's value"""
    lcb_stm: float
    """lower confidence bound of ``value_stm`` (:func:`_lower_bound`)"""
    score_stm: float | None
    """expected lead in points, including komi; None if neither rollouts nor a score head estimate it"""
    pv: list[int]
    """principal variation, this move first"""
    pv_visits: list[int]
    """number of visits of each move of ``pv``"""
    ownership_black: np.ndarray | None = None
    """mean ownership over the move's subtree, as in :class:`Report`; None unless the search keeps it"""
    ownership_stdev: np.ndarray | None = None
    """standard deviation of ownership over the move's subtree; None unless the search keeps it"""


@dataclass(frozen=True)
class Report:
    """The results of a search so far, at the root."""

    visits: int
    """visits of the root, including those kept from earlier searches"""
    playouts_this_run: int
    """visits of the root added in this run"""
    seconds: float
    """time since the start of the run"""
    value_stm: float
    """mean value, -1 to 1 for the side to move"""
    score_stm: float | None
    """expected lead of the side to move in points; None if nothing estimates it"""
    moves: list[MoveReport]
    """the moves with visits, best first (:func:`engine.search.choosing.best_first`); all moves while none has a visit.
    A :class:`Watcher` may add moves without visits"""
    ownership_black: np.ndarray | None
    """float[N*N] in policy order, 1 = Black's, -1 = White's; None unless requested"""
    tree_nodes: int
    """number of nodes in the tree"""
    evaluations: int
    """positions that the server evaluated since the start of this run, for other searches too"""
    has_values: bool = True
    """the network has a value head; else values are means of rollout results"""
    ownership_stdev: np.ndarray | None = None
    """float[N*N]: standard deviation of ownership over the tree; None if ownership was estimated before the search"""
    network_score_stm: float | None = None
    """the network's own lead at the root in points, for the side to move; None without a score head"""
    policy: np.ndarray | None = None
    """float64[N*N + 1] in policy order: the root's priors, which no filter changes; 0 for an illegal move; None before
    the root's expansion"""


@dataclass(frozen=True)
class Watcher:
    """Who receives reports during a search, when, and what they contain."""

    on_report: Callable[[Report], None]
    """called in the thread that runs the search, first when a move has a visit"""
    interval_s: float = 1.0
    """seconds between reports"""
    first_s: float = 0.0
    """seconds until the first report; 0 = the interval"""
    fewest_moves: int = 0
    """minimum number of moves in a report, filled up with moves without visits; a position with fewer has all in it"""
    ownership: bool = False
    """reports contain ownership: the mean over the tree, for each move too, if every node can have the network's; else
    an estimate from before the search"""
    ownership_s: float = 0.0
    """minimum seconds between two reports with the mean over the tree, the others having none; 0 = all have it"""


class RootTable(NamedTuple):
    """The root's moves as arrays of A rows, filled by :func:`read_root`; values are for the root's side to move.

    Columns are as in :class:`MoveReport`.
    """

    point: Annotated[np.ndarray, "int16[A]"]
    visits: Annotated[np.ndarray, "int32[A]"]
    prior: Annotated[np.ndarray, "float32[A]"]
    value: Annotated[np.ndarray, "float64[A]"]
    lcb: Annotated[np.ndarray, "float64[A]"]
    score: Annotated[np.ndarray, "float64[A]"]
    line: Annotated[np.ndarray, "int16[A, PV_LENGTH]"]
    """principal variation, the row's own move first"""
    line_visits: Annotated[np.ndarray, "int32[A, PV_LENGTH]"]
    """visits of the moves of ``line``"""
    length: Annotated[np.ndarray, "int16[A]"]
    """number of moves in ``line``"""


def new_root_table(size: int) -> RootTable:
    """Allocate a table with a row for each move on a board size."""
    return allocate(RootTable, A=size * size + 1)


@kernel
def _lower_bound(mean, squares, visits):
    """Lower confidence bound of a mean result: LCB_DEVIATIONS standard errors below it.

    1 is added to the sum of squared deviations, as by a prior result, so that few results do not look certain.

    Args:
        squares: sum of the squared results.
        visits: number of results.
    """
    variance = (max(0.0, squares - visits * mean * mean) + 1.0) / visits
    return mean - LCB_DEVIATIONS * math.sqrt(variance / visits)


@kernel
def read_root(tree, tuning, move_filter, fewest, table):
    """Fill the table with the root's visited moves and, if these are fewer than ``fewest``, with all other moves.

    Args:
        move_filter: uint8[L] by point: 1 = a move to report.
        fewest: 1 or more.
    Returns:
        tuple[int, int]: number of rows of visited moves, which come first; number of rows filled.
    Threads: the tree's lock is held.
    """
    root = tree.meta[META_ROOT]
    first, n_edges = tree.first_edge[root], tree.n_edges[root]
    visited = 0
    for edge in range(first, first + n_edges):
        visits = edge_visits(tree, edge)
        if visits == 0 or move_filter[tree.move[edge]] == 0:
            continue
        table.point[visited] = tree.move[edge]
        table.visits[visited] = visits
        table.prior[visited] = tree.P[edge]
        table.value[visited] = edge_mean(tree, edge, tuning.rollout_weight)
        table.lcb[visited] = _lower_bound(table.value[visited], tree.W_sq[edge], visits)
        table.score[visited] = tree.W_lead[edge] / visits
        table.line[visited, 0] = tree.move[edge]
        table.line_visits[visited, 0] = visits
        below = main_line(tree, tree.child[edge], table.line[visited, 1:], table.line_visits[visited, 1:])
        table.length[visited] = 1 + below
        visited += 1
    count = visited
    if visited >= fewest:
        return visited, count
    for edge in range(first, first + n_edges):
        if edge_visits(tree, edge) == 0 and move_filter[tree.move[edge]]:
            table.point[count] = tree.move[edge]
            table.prior[count] = tree.P[edge]
            count += 1
    if is_move(tree.best_without_edge[root]):
        for index in range(len(tree.point)):
            code = tree.prior_codes[root, index]
            if code != GONE and move_filter[tree.point[index]]:
                table.point[count] = tree.point[index]
                table.prior[count] = prior_of(code)
                count += 1
    value, lead = root_value(tree, tuning), root_lead(tree)
    for row in range(visited, count):
        table.visits[row] = 0
        table.value[row] = value
        table.lcb[row] = -1.0
        table.score[row] = lead
        table.line[row, 0] = table.point[row]
        table.line_visits[row, 0] = 0
        table.length[row] = 1
    return visited, count


def moves_in(table: RootTable, visited: int, count: int, fewest: int, with_scores: bool) -> list[MoveReport]:
    """The moves of a :class:`Report`, unsorted, from a filled table.

    Args:
        visited, count: as returned by :func:`read_root`.
        fewest: moves without visits are added, the largest priors first, until the list has this many; if no move has a
            visit, all are in it.
        with_scores: whether the search estimates leads in points; else ``score_stm`` is None.
    """
    rows = list(range(visited))
    others = sorted(range(visited, count), key=lambda row: -table.prior[row])
    rows += others[: fewest - visited] if visited else others
    return [
        MoveReport(
            int(table.point[row]),
            int(table.visits[row]),
            float(table.prior[row]),
            float(table.value[row]),
            float(table.lcb[row]),
            float(table.score[row]) if with_scores else None,
            table.line[row, : table.length[row]].tolist(),
            table.line_visits[row, : table.length[row]].tolist(),
        )
        for row in rows
    ]
