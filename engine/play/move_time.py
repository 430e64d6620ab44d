"""The time of one move: how much of it each step of choosing the move may take.

A move has up to three steps: the estimate of the game's end, one or two searches, and, where the network does not
answer in time, a search by rollouts in the place of the network's.
"""

import math
import threading
import time
from dataclasses import replace
from typing import NamedTuple

from engine.inference.server import InferenceServer
from engine.search.stoppers import SearchLimits

RUSHED_S = 0.15
"""With less than this for a move, nothing is estimated that can wait: it would take half of it."""
AT_ONCE_S = 0.01
"""With less than this a move is the policy's first choice, or the best of a tree that was kept."""
NETWORK_SHARE, ESTIMATE_SHARE = 0.25, 0.4
"""Most of a move's time after which the network is no longer asked about the end of the game, and after which no more
rollouts are played to it: on a busy machine these take as long."""
FIRST_SHARE = 0.8
"""Most of a move's time that the first evaluation is waited for; what is left is for rollouts in its place."""
HOPELESS_SHARE = 0.1
"""The same where it is not expected in time"""


class Part(NamedTuple):
    """What one of a move's searches may take of its time and visits: from one share of them to another."""

    begin: float
    end: float


WHOLE = Part(0.0, 1.0)


class MoveTime:
    """What is left of a move's limits. Threads: the one that chooses the move."""

    def __init__(
        self, limits: SearchLimits, started_s: float, interrupted: threading.Event, server: InferenceServer | None
    ) -> None:
        """A move has begun.

        Args:
            limits: of the whole move.
            started_s: ``time.perf_counter`` from when on its time is counted.
            interrupted: no more time is to be taken once it is set.
            server: evaluates positions; None = there is no network to wait for.
        """
        self._limits, self._started_s, self._interrupted, self._server = limits, started_s, interrupted, server
        self.reserve_s = 0.0
        """for what comes after the searches"""

    @property
    def used_s(self) -> float:
        """Seconds since the move has begun."""
        return time.perf_counter() - self._started_s

    @property
    def left_s(self) -> float:
        """Seconds until the hard maximum; infinite without one."""
        return self._limits.longest_s - self.used_s if self._limits.longest_s else math.inf

    def deadline_s(self, share: float) -> float:
        """``time.perf_counter`` after some share of what is left of the target; infinite without a limit of time."""
        if not self._limits.longest_s:
            return math.inf
        return time.perf_counter() + share * max(0.0, self._limits.soft_s - self.used_s)

    def limits(self, part: Part = WHOLE) -> SearchLimits:
        """The limits of a search that begins now; time that earlier ones have left is its own, visits are not."""
        whole, used_s = self._limits, self.used_s + self.reserve_s
        visits = max(1, int(whole.visits * (part.end - part.begin))) if whole.visits else 0
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
        """How long the first evaluation of a search with these limits is waited for; 0 = there is none."""
        if self._server is None:
            return 0.0
        expected = self._server.positions_until(time.perf_counter() + FIRST_SHARE * hard_s) > 0
        return max(AT_ONCE_S, FIRST_SHARE * hard_s if expected else HOPELESS_SHARE * soft_s)
