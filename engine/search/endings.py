"""What ending the game at the root is worth in an analysis: the count that ``final_score`` gives.

In play two passes are scored by the stones as they stand, or under territory rules by a few rollouts, which makes a
pass safe. In an analysis they are worth the agreed count, dead stones off. It takes as long as dozens of evaluations,
so it is made at most once a run, and only where it matters:

* in the tree, a leaf behind passes alone where the game is over has the count as its result;
* in the report, a root where the game is over has it as its value;
* and if the root is settled (neither side gains by another move), so has the root, and the pass. A network's lead in
  such positions is off by a point or two, sometimes by ten, so a search contradicts the count only where its lead moves
  away from the network's own lead by more than :func:`_tolerance`, as after a pass that lets a group die, and the
  winner is not certain anyway;
* a root where one pass ends the game has at least the count as its value, settled or not.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.go.board import META_N_EMPTY, META_SIZE
from engine.go.geometry import BLACK, PASS
from engine.go.position import META_PASSES, META_TO_MOVE, Position
from engine.search.leaves import FINISHED, Batch
from engine.search.report import MoveReport, Report

ENDGAME_FILL = 0.3
"""Share of the board that holds stones before a game can be at its end"""
DOUBTFUL, DOUBTFUL_SHARE = 0.5, 0.08
"""A position may be settled where at most this share of its points is owned with less certainty than this"""
CERTAIN = 0.96
"""A value that is this far from 0 says who wins."""
CONTRADICTION, CONTRADICTION_SHARE = 4.0, 0.5
"""Points, and a share of the error of the network's own lead: where that is large, so are its differences' errors"""


class Ending(NamedTuple):
    """The count of a position, as if both sides passed there."""

    lead_black: float
    """in points, komi counted"""
    is_settled: bool
    """neither side gains by another move"""
    ownership_black: np.ndarray
    """float32[N*N] in policy order, 1 = Black's"""


def is_full(position: Position) -> bool:
    """Whether the board has filled enough for the game to be at its end."""
    board = position.board
    return bool(1.0 - int(board.meta[META_N_EMPTY]) / int(board.meta[META_SIZE]) ** 2 >= ENDGAME_FILL)


class RootEnding:
    """The count of a root, made when it is first asked for. Threads: any."""

    def __init__(self, root: Position, count: Callable[[], Ending]) -> None:
        """Nothing is counted yet.

        Args:
            root: only read.
            count: counts it.
        """
        self._root, self._count = root, count
        self._found: Ending | None = None
        self._counting = threading.Lock()
        self._passes = int(root.meta[META_PASSES])
        self._matters: bool | None = None

    @property
    def counted(self) -> Ending:
        """The count."""
        with self._counting:
            if self._found is None:
                self._found = self._count()
            return self._found

    @property
    def lead_stm(self) -> float:
        """The count for the side to move at the root."""
        return self.counted.lead_black * (1.0 if self._root.meta[META_TO_MOVE] == BLACK else -1.0)

    def matters(self, network_ownership: Callable[[], NDArray[np.float32] | None]) -> bool:
        """Whether a report of the root needs the count; False while the network's ownership is not known.

        Args:
            network_ownership: gives float32[N*N], of either side, or None where it is not known; called until it is,
                and only on boards that are full enough, since it may cost evaluations.
        """
        if self._passes > 0:
            return True
        if self._matters is None and is_full(self._root) and (owners := network_ownership()) is not None:
            self._matters = bool(np.count_nonzero(np.abs(owners) < DOUBTFUL) <= DOUBTFUL_SHARE * owners.size)
        return bool(self._matters)

    def score_leaves(self, batch: Batch, count: int, owners: NDArray[np.float32] | None = None) -> None:
        """Write the count into the leaves of a batch where the game is over behind passes alone.

        Args:
            owners: float32[K, N*N], the leaves' ownership, 1 = Black's; that of these leaves is overwritten.
        """
        ended = (batch.kind[:count] == FINISHED) & (batch.depth[:count] <= 2)
        for i in np.flatnonzero(ended).tolist():
            depth = int(batch.depth[i])
            if (batch.move[i, :depth] == PASS).all():
                lead = self.lead_stm if depth % 2 == 0 else -self.lead_stm
                batch.value[i] = batch.rollout[i] = np.sign(lead)
                batch.lead[i] = lead
                if owners is not None:
                    owners[i] = self.counted.ownership_black

    def applied(self, report: Report) -> Report:
        """A report of the root with the count in it."""
        counted, value = self.lead_stm, float(np.sign(self.lead_stm))
        if self._passes >= 2:
            return replace(report, value_stm=value, score_stm=None if report.score_stm is None else counted)
        if self.counted.is_settled and report.score_stm is not None and report.network_score_stm is not None:
            report = self._applied_to_settled(report, report.score_stm, report.network_score_stm - counted)
        if self._passes == 0:
            return report
        score = None if report.score_stm is None else max(report.score_stm, counted)
        return replace(report, value_stm=max(report.value_stm, value), score_stm=score)

    def _applied_to_settled(self, report: Report, score: float, error: float) -> Report:
        """A report of a settled root.

        Args:
            score: the search's lead, for the side to move.
            error: of the network's own lead.
        """
        counted = self.lead_stm
        is_counted = self._agrees(report.value_stm) or abs(score - error - counted) <= _tolerance(error)
        moves = [self._applied_to(move, error, is_counted) for move in report.moves]
        if is_counted:
            return replace(report, value_stm=float(np.sign(counted)), score_stm=counted, moves=moves)
        return replace(report, score_stm=score - error, moves=moves)

    def _applied_to(self, move: MoveReport, error: float, is_counted: bool) -> MoveReport:
        """A move of a settled root: it gains nothing, and a pass loses nothing, unless the search contradicts that.

        Args:
            is_counted: the search does not contradict the count of the root.
        """
        if move.score_stm is None or move.visits == 0:
            return move
        counted, lead = self.lead_stm, move.score_stm - error
        loses_nothing = lead >= counted
        if move.point == PASS:
            loses_nothing |= self._agrees(move.value_stm) or counted - lead <= _tolerance(error)
        if (move.point == PASS and self._passes > 0) or (is_counted and loses_nothing):
            value = float(np.sign(counted))
            return replace(move, value_stm=value, lcb_stm=value, score_stm=counted)
        return replace(move, score_stm=lead)

    def _agrees(self, value_stm: float) -> bool:
        """Whether a search is as sure of the winner as the count: then it gives points away, and its lead wanders."""
        return value_stm * float(np.sign(self.lead_stm)) >= CERTAIN


def _tolerance(error: float) -> float:
    """Points by which a search's lead may move away from the network's own before it contradicts the count."""
    return CONTRADICTION + CONTRADICTION_SHARE * abs(error)
