"""The value of ending the game at the root of an analysis: the score that ``final_score`` returns.

In play, a game that two passes end in the tree is scored with all stones alive, or under territory rules with dead
stones by a few rollouts, so that passes are safe. In an analysis it has the final score, dead stones removed. Computing
the final score takes as long as dozens of evaluations, so this is done at most once a run, and only if it matters:

* in the tree, the final score is the result of a finished game whose path from the root consists of passes;
* in the report, it is the value of a root where the game is over;
* if the root is settled (neither side gains by another move), it is the value of the root and of the pass. A network's
  lead in such positions is off by a point or two, sometimes by ten. So a search contradicts the final score only if two
  things hold: its lead differs from the network's own lead by more than :func:`_tolerance`, as after a pass that lets a
  group die, and its value does not make the final score's winner certain;
* if one pass ends the game, the root's value is at least that of the final score, settled or not.
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
"""Minimum share of the board's points that are occupied near the end of a game"""
DOUBTFUL, DOUBTFUL_SHARE = 0.5, 0.08
"""A position may be settled if abs(ownership) is below ``DOUBTFUL`` at no more than this share of its points."""
CERTAIN = 0.96
"""Minimum absolute value that makes the winner certain"""
CONTRADICTION, CONTRADICTION_SHARE = 4.0, 0.5
"""The terms of :func:`_tolerance`: points, and a share of the error of the network's own lead"""


class Ending(NamedTuple):
    """The result of a game that ends in a position because both sides pass there."""

    lead_black: float
    """Black's lead in points, including komi"""
    is_settled: bool
    """whether neither side gains by another move"""
    ownership_black: np.ndarray
    """float32[N*N] in policy order, 1 = Black's"""


def is_near_end(position: Position) -> bool:
    """Whether stones occupy at least ``ENDGAME_FILL`` of the board."""
    board = position.board
    return bool(1.0 - int(board.meta[META_N_EMPTY]) / int(board.meta[META_SIZE]) ** 2 >= ENDGAME_FILL)


class RootEnding:
    """The final score of a root, computed when it is first needed. Threads: any."""

    def __init__(self, root: Position, count: Callable[[], Ending]) -> None:
        """Keep the arguments; nothing is computed yet.

        Args:
            root: the root's position, only read.
            count: computes the root's final score; called at most once.
        """
        self._root, self._count = root, count
        self._found: Ending | None = None
        self._counting = threading.Lock()
        self._passes = int(root.meta[META_PASSES])
        self._matters: bool | None = None

    @property
    def counted(self) -> Ending:
        """The final score, computed at the first call; other threads wait meanwhile."""
        with self._counting:
            if self._found is None:
                self._found = self._count()
            return self._found

    @property
    def lead_stm(self) -> float:
        """The final score as a lead in points of the side to move at the root."""
        return self.counted.lead_black * (1.0 if self._root.meta[META_TO_MOVE] == BLACK else -1.0)

    def matters(self, network_ownership: Callable[[], NDArray[np.float32] | None]) -> bool:
        """Whether a report of the root needs the final score; False while the network's ownership is unknown.

        Args:
            network_ownership: returns the root's ownership, float32[N*N], 1 = Black's or 1 = White's, or None if it is
                unknown; called near the end of a game only, since it may cost evaluations, and until it is known.
        """
        if self._passes > 0:
            return True
        if self._matters is None and is_near_end(self._root) and (owners := network_ownership()) is not None:
            self._matters = bool(np.count_nonzero(np.abs(owners) < DOUBTFUL) <= DOUBTFUL_SHARE * owners.size)
        return bool(self._matters)

    def score_leaves(self, batch: Batch, count: int, owners: NDArray[np.float32] | None = None) -> None:
        """Write the final score into those of a batch's first ``count`` leaves where passes alone ended the game.

        Args:
            owners: float32[K, N*N], the leaves' ownership, 1 = Black's; overwritten for these leaves. None = not kept.
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
        """A report of the root, corrected by the final score (module's docstring)."""
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
        """A report of a settled root, corrected.

        Args:
            score: the search's lead in points, for the side to move.
            error: the network's own lead minus the final score.
        """
        counted = self.lead_stm
        is_counted = self._agrees(report.value_stm) or abs(score - error - counted) <= _tolerance(error)
        moves = [self._applied_to(move, error, is_counted) for move in report.moves]
        if is_counted:
            return replace(report, value_stm=float(np.sign(counted)), score_stm=counted, moves=moves)
        return replace(report, score_stm=score - error, moves=moves)

    def _applied_to(self, move: MoveReport, error: float, is_counted: bool) -> MoveReport:
        """A move of a settled root, corrected: no move gains points and a pass loses none, if the search agrees.

        Args:
            error: the network's own lead minus the final score.
            is_counted: the search does not contradict the root's final score.
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
        """Whether a value makes the final score's winner certain; the lead then proves nothing, since a winning search
        gives points away."""
        return value_stm * float(np.sign(self.lead_stm)) >= CERTAIN


def _tolerance(error: float) -> float:
    """Maximum difference between a search's lead and the network's own, in points, that contradicts no final score.

    Args:
        error: the network's own lead minus the final score.
    """
    return CONTRADICTION + CONTRADICTION_SHARE * abs(error)
