"""When a search has done enough: small objects that are asked how many more playouts may be started.

Workers ask under the tree's lock before each batch; the smallest answer counts, and 0 ends the search. A limit by
visits alone makes the work, and with one thread the tree, independent of how fast the machine is.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

UNLIMITED = 1 << 60


@dataclass(frozen=True)
class Progress:
    """Where a search stands when a stopper is asked."""

    visits: int
    """of the root, those kept from earlier searches included"""
    in_flight: int
    """playouts under way"""
    playouts: int
    """completed in this search"""
    elapsed_s: float
    best_visits: int
    """of the most visited move"""
    second_visits: int
    """of the one after it"""
    full: bool
    """the tree has reached its memory limit"""
    seconds_per_playout: float
    """expected, all workers and evaluators together; 0 = not known yet"""


class Stopper(Protocol):
    """One reason to stop."""

    def allowance(self, progress: Progress) -> int:
        """How many more playouts may be started now, 0 or more."""
        ...


@dataclass(frozen=True)
class VisitLimit:
    """So many visits of the root, exactly."""

    visits: int

    def allowance(self, progress: Progress) -> int:
        """What is missing, playouts under way counted as done."""
        return max(0, self.visits - progress.visits - progress.in_flight)


@dataclass(frozen=True)
class TimeLimit:
    """So many seconds, in which the last playout must be finished, not only begun."""

    seconds: float

    def allowance(self, progress: Progress) -> int:
        """What fits into the time left after the playouts under way."""
        left = self.seconds - progress.elapsed_s
        if left <= 0.0:
            return 0
        if progress.seconds_per_playout <= 0.0:
            return UNLIMITED
        # The first playout is always begun: it is what corrects an estimate that a stalled machine has spoiled.
        first = 1 if progress.playouts + progress.in_flight == 0 else 0
        return max(first, int(left / progress.seconds_per_playout) - progress.in_flight)


@dataclass(frozen=True)
class MemoryFull:
    """No room for another node: more playouts would only repeat known values."""

    def allowance(self, progress: Progress) -> int:
        """None once a row was refused."""
        return 0 if progress.full else UNLIMITED


@dataclass(frozen=True)
class Interrupt:
    """Somebody asked for the end."""

    event: threading.Event

    def allowance(self, progress: Progress) -> int:
        """None after the event."""
        return 0 if self.event.is_set() else UNLIMITED


@dataclass(frozen=True)
class Decided:
    """The leading move cannot be overtaken by the playouts that the other limits leave.

    Nothing is concluded from less than ``MIN_SECONDS`` of running, since the speed is not known before.
    """

    visits: int
    """limit of visits, 0 = none"""
    seconds: float
    """limit of time, 0 = none"""

    MIN_SECONDS = 0.2

    def allowance(self, progress: Progress) -> int:
        """None once the lead is larger than what remains."""
        remaining = UNLIMITED
        if self.visits:
            remaining = max(0, self.visits - progress.visits)
        if self.seconds and progress.elapsed_s > self.MIN_SECONDS:
            speed = progress.playouts / progress.elapsed_s
            remaining = min(remaining, int((self.seconds - progress.elapsed_s) * speed) + progress.in_flight)
        return 0 if progress.best_visits - progress.second_visits > remaining else UNLIMITED


def allowance(stoppers: Sequence[Stopper], progress: Progress) -> int:
    """The smallest allowance of all."""
    return min(stopper.allowance(progress) for stopper in stoppers)
