"""The division of one move's time among its steps.

A move has up to three steps: an estimate of the game's end, one or two searches, and, if the network does not answer in
time, a fallback search by rollouts.
"""

import math
import threading
import time
from dataclasses import replace
from typing import NamedTuple

from engine.inference.server import InferenceServer
from engine.search.stoppers import SearchLimits

RUSHED_S = 0.15
"""With less time than this, a move skips an optional estimate of the game's end, which would take half of it."""
AT_ONCE_S = 0.01
"""With less time than this, a search ends after one visit: the policy's first choice, or the best of a kept tree."""
NETWORK_SHARE, ESTIMATE_SHARE = 0.25, 0.4
"""Deadlines in an estimate of the game's end, as shares of a move's time: of the network's ownership, and of the
rollouts; on a busy machine both take that long"""
FIRST_SHARE = 0.8
"""Longest wait for the root's evaluation, as a share of a move's time; the rest is for the fallback search"""
HOPELESS_SHARE = 0.1
"""Longest wait for the root's evaluation if it is not expected in time, as a share of a move's time"""


class Part(NamedTuple):
    """A search's part of a move's time and visits: from the share ``begin`` of them to the share ``end``."""

    begin: float
    end: float

    def scaled(self, share: float) -> "Part":
        """The same part of the first ``share`` of a move's time and visits."""
        return Part(share * self.begin, share * self.end)


WHOLE = Part(0.0, 1.0)


class MoveTime:
    """The remaining limits of a move. Threads: the one that chooses the move."""

    def __init__(
        self, limits: SearchLimits, started_s: float, interrupted: threading.Event, server: InferenceServer | None
    ) -> None:
        """Start the time of a move.

        Args:
            limits: limits of the whole move.
            started_s: ``time.perf_counter`` at the start of the move's time.
            interrupted: once it is set, the move takes no more time.
            server: evaluates positions; None = no network.
        """
        self._limits, self._started_s, self._interrupted, self._server = limits, started_s, interrupted, server
        self.reserve_s = 0.0
        """seconds that the searches leave for estimates after them"""

    @property
    def used_s(self) -> float:
        """Seconds since the start of the move."""
        return time.perf_counter() - self._started_s

    @property
    def left_s(self) -> float:
        """Seconds until the hard maximum; infinite without one."""
        return self._limits.longest_s - self.used_s if self._limits.longest_s else math.inf

    def deadline_s(self, share: float) -> float:
        """``time.perf_counter`` when a share of the remaining target time is used up; infinite without a time limit."""
        if not self._limits.longest_s:
            return math.inf
        return time.perf_counter() + share * max(0.0, self._limits.soft_s - self.used_s)

    def limits(self, part: Part = WHOLE) -> SearchLimits:
        """The limits of a search that starts now: its part, plus time, but not visits, that earlier searches left."""
        whole, used_s = self._limits, self.used_s + self.reserve_s
        share = part.end - part.begin
        visits = max(1, int(whole.visits * share)) if whole.visits else 0
        whole = replace(whole, playouts=max(1, int(whole.playouts * share)) if whole.playouts else 0)
        hard_s = whole.longest_s * part.end - used_s if whole.longest_s else 0.0
        if self._interrupted.is_set() or (whole.longest_s and hard_s < AT_ONCE_S):
            visits = 1
        if not whole.longest_s:
            return replace(whole, visits=visits, interrupt=self._interrupted)
        hard_s = max(AT_ONCE_S, hard_s)
        soft_s = min(hard_s, max(1e-3, whole.soft_s * part.end - used_s))
        first_s = self._first_s(soft_s, hard_s)
        return replace(whole, visits=visits, soft_s=soft_s, hard_s=hard_s, first_s=first_s, interrupt=self._interrupted)

    def _first_s(self, soft_s: float, hard_s: float) -> float:
        """Seconds that a search with these limits waits at most for the root's evaluation; 0 = no network."""
        if self._server is None:
            return 0.0
        expected = self._server.positions_until(time.perf_counter() + FIRST_SHARE * hard_s) > 0
        return max(AT_ONCE_S, FIRST_SHARE * hard_s if expected else HOPELESS_SHARE * soft_s)
