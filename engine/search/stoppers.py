"""When a search ends: its limits, and the stoppers that they become.

A stopper says how many more playouts may be started. Workers ask under the tree's lock before each batch; the smallest
answer counts, and 0 ends the search. A limit by visits alone makes the work, and with one thread the tree, independent
of how fast the machine is.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

UNLIMITED = 1 << 60
RIVAL_SHARE = 0.25
"""Visits, as a share of the leading move's, that make a move its rival; the value of fewer is mostly noise."""
CLEARLY_BETTER = 0.01
"""A rival's value is better than the leading move's by more than this: half a per cent of win rate."""
DECIDED_VALUE, DECIDED_SHARE, DECIDED_VISITS = 0.96, 0.2, 50
"""A game is decided where the root's value is this far from 0 (a win rate of 98% or 2%) after this share of the
search's time and this number of visits. KataGo searches won games less too (``searchFactorWhenWinning``)."""
THIN_MARGIN = 0.1
"""The margin between the two most visited moves is thin below this share of the first one's visits."""


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
    value_margin: float
    """value of the most visited move less the best of its rivals' (``RIVAL_SHARE``); a missing rival counts as -1"""
    value: float
    """of the root, -1 to 1"""
    full: bool
    """the tree has reached its memory limit"""
    seconds_per_playout: float
    """expected, all workers and evaluators together; 0 = not known yet"""
    seconds_per_evaluation: float = 0.0
    """expected, from the start of a playout to its end where the network has nothing else to do; likewise"""

    @property
    def is_choice_open(self) -> bool:
        """Whether more time may change the choice: a rival looks better, or the margin is thin.

        AlphaGo searches on while the most visited move is not the one with the best value (Methods, "Search
        algorithm"). A margin is thin too just after another move has become the most visited.
        """
        is_thin = self.best_visits - self.second_visits < THIN_MARGIN * self.best_visits
        return is_thin or self.value_margin < -CLEARLY_BETTER


class Stopper(Protocol):
    """One reason to stop."""

    def playouts_allowed(self, progress: Progress) -> int:
        """How many more playouts may be started now, 0 or more."""
        ...


@dataclass(frozen=True)
class VisitLimit:
    """A number of visits of the root, exactly."""

    visits: int

    def playouts_allowed(self, progress: Progress) -> int:
        """What is missing, playouts under way counted as done."""
        return max(0, self.visits - progress.visits - progress.in_flight)


@dataclass(frozen=True)
class TimeLimit:
    """A time in which the last playout must be finished, not only begun."""

    soft_s: float
    hard_s: float = 0.0
    """if more, the limit as long as the choice is open"""

    def playouts_allowed(self, progress: Progress) -> int:
        """What fits into the time left after the playouts under way: whole evaluations, side by side."""
        left = _limit(self, progress) - progress.elapsed_s
        if left <= 0.0:
            return 0
        if progress.seconds_per_playout <= 0.0:
            return UNLIMITED
        # The first playout is always begun: it is what corrects an estimate that a stalled machine has spoiled.
        first = 1 if progress.playouts + progress.in_flight == 0 else 0
        if progress.seconds_per_evaluation > progress.seconds_per_playout:
            left = int(left / progress.seconds_per_evaluation) * progress.seconds_per_evaluation + 1e-9
        return max(first, int(left / progress.seconds_per_playout) - progress.in_flight)


@dataclass(frozen=True)
class MemoryFull:
    """No room for another node: more playouts would only repeat known values."""

    def playouts_allowed(self, progress: Progress) -> int:
        """None once a row was refused."""
        return 0 if progress.full else UNLIMITED


@dataclass(frozen=True)
class Interrupt:
    """The end was asked for from outside."""

    event: threading.Event

    def playouts_allowed(self, progress: Progress) -> int:
        """None after the event."""
        return 0 if self.event.is_set() else UNLIMITED


@dataclass(frozen=True)
class Decided:
    """The leading move cannot be overtaken by the playouts that the other limits leave.

    Visits alone are compared: a lower confidence bound might still have changed the choice. Nothing is concluded
    from less than ``MIN_SECONDS`` of running, since the speed is not known before.
    """

    visits: int
    """limit of visits, 0 = none"""
    soft_s: float
    """limit of time, 0 = none"""
    hard_s: float = 0.0
    """if more, the limit as long as the choice is open"""

    MIN_SECONDS = 0.2

    def playouts_allowed(self, progress: Progress) -> int:
        """None once the margin in visits is larger than what remains."""
        remaining = UNLIMITED
        if self.visits:
            remaining = max(0, self.visits - progress.visits)
        if self.soft_s and progress.elapsed_s > self.MIN_SECONDS:
            speed = progress.playouts / progress.elapsed_s
            remaining = min(remaining, int((_limit(self, progress) - progress.elapsed_s) * speed) + progress.in_flight)
        return 0 if progress.best_visits - progress.second_visits > remaining else UNLIMITED


@dataclass(frozen=True)
class GameDecided:
    """The game is won or lost: more time hardly changes its result, and later moves may need it."""

    soft_s: float
    """limit of time"""

    def playouts_allowed(self, progress: Progress) -> int:
        """None once the first part of the time has found the game decided."""
        is_known = progress.visits >= DECIDED_VISITS and progress.elapsed_s >= DECIDED_SHARE * self.soft_s
        return 0 if is_known and abs(progress.value) >= DECIDED_VALUE else UNLIMITED


def _limit(stopper: TimeLimit | Decided, progress: Progress) -> float:
    """Seconds that a search may take, as it stands."""
    return max(stopper.soft_s, stopper.hard_s if progress.is_choice_open else 0.0)


def playouts_allowed(stoppers: Sequence[Stopper], progress: Progress) -> int:
    """The smallest number that one of the stoppers allows."""
    return min(stopper.playouts_allowed(progress) for stopper in stoppers)


@dataclass(frozen=True)
class SearchLimits:
    """When a search ends: at the first limit that is reached; 0 or None is no limit.

    Raises:
        ValueError: nothing given that would end the search.
    """

    visits: int = 0
    """of the root, those kept from earlier searches included"""
    soft_s: float = 0.0
    hard_s: float = 0.0
    """if more than ``soft_s``, the limit as long as the choice is open"""
    interrupt: threading.Event | None = None
    """ends the search once set; unlike :meth:`engine.search.search.Search.stop` it may be set before the search"""
    first_s: float = 0.0
    """how long the root's own evaluation is waited for; 0 = as long as it takes, whatever the other limits. Where it
    does not come, the search ends without a move"""
    early_stop: bool = False
    """end as soon as the leading move cannot be overtaken within the limits, and early where the game is decided"""

    def __post_init__(self) -> None:
        if self.visits <= 0 and self.soft_s <= 0.0 and self.interrupt is None:
            raise ValueError("a search needs a limit: visits, seconds or an interrupt")

    @property
    def longest_s(self) -> float:
        """Seconds after which the search has ended whatever it found; 0 = no limit."""
        return max(self.soft_s, self.hard_s)

    @property
    def is_urgent(self) -> bool:
        """Whether batches are kept short: time is limited, or only an interrupt ends the search."""
        return self.soft_s > 0.0 or self.visits <= 0

    def stoppers(self, stop: threading.Event) -> Iterator[Stopper]:
        """The reasons to stop that these limits are, and that ``stop`` is set or memory full."""
        yield Interrupt(stop)
        yield MemoryFull()
        if self.interrupt is not None:
            yield Interrupt(self.interrupt)
        if self.visits > 0:
            yield VisitLimit(self.visits)
        if self.soft_s > 0.0:
            yield TimeLimit(self.soft_s, self.hard_s)
        if self.early_stop:
            yield Decided(self.visits, self.soft_s, self.hard_s)
            if self.soft_s > 0.0:
                yield GameDecided(self.soft_s)
