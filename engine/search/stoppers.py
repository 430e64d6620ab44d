"""The limits of a search, and the stoppers made from them.

A stopper returns the number of playouts that may still be started. Workers ask all stoppers under the tree's lock
before each batch; the smallest number holds, and 0 ends the search. With a visit limit alone, the work, and with one
thread the tree, does not depend on the machine's speed.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

UNLIMITED = 1 << 60
RIVAL_SHARE = 0.25
"""A move is a rival from this share of the leading move's visits on; with fewer visits its value is mostly noise."""
CLEARLY_BETTER = 0.01
"""Least value by which a rival is better than the leading move: half a per cent of win rate"""
DECIDED_VALUE, DECIDED_SHARE, DECIDED_VISITS = 0.96, 0.2, 50
"""A game is decided if the root's value is this far from 0 (a win rate of 98% or 2%) after this share of the search's
time and this number of visits. KataGo searches won games less too (``searchFactorWhenWinning``)."""
THIN_MARGIN = 0.1
"""The margin between the two most visited moves is thin below this share of the first one's visits."""


@dataclass(frozen=True)
class Progress:
    """The state of a search as stoppers see it."""

    visits: int
    """visits of the root, including those kept from earlier searches"""
    in_flight: int
    """playouts in flight"""
    playouts: int
    """playouts completed in this search"""
    elapsed_s: float
    best_visits: int
    """visits of the most visited move"""
    second_visits: int
    """visits of the second most visited move"""
    value_margin: float
    """value of the most visited move less its best rival's (``RIVAL_SHARE``); a missing rival counts as -1"""
    value: float
    """value of the root, -1 to 1"""
    full: bool
    """the tree has reached its memory limit"""
    seconds_per_playout: float
    """expected time, all workers and evaluators together; 0 = not known yet"""
    seconds_per_evaluation: float = 0.0
    """expected time of a single playout on an idle network; 0 = not known yet"""

    @property
    def is_choice_open(self) -> bool:
        """Whether more time may change the choice: a rival looks better, or the margin in visits is thin.

        AlphaGo continues to search while the most visited move does not have the best value (Methods, "Search
        algorithm"). The margin is thin too just after another move has become the most visited.
        """
        is_thin = self.best_visits - self.second_visits < THIN_MARGIN * self.best_visits
        return is_thin or self.value_margin < -CLEARLY_BETTER


class Stopper(Protocol):
    """One stop condition."""

    def playouts_allowed(self, progress: Progress) -> int:
        """The number of playouts that may be started now, 0 or more."""
        ...


@dataclass(frozen=True)
class VisitLimit:
    """The search ends at exactly this number of visits of the root."""

    visits: int

    def playouts_allowed(self, progress: Progress) -> int:
        """The visits still missing; playouts in flight count as visits."""
        return max(0, self.visits - progress.visits - progress.in_flight)


@dataclass(frozen=True)
class TimeLimit:
    """A time limit for completed playouts."""

    soft_s: float
    hard_s: float = 0.0
    """if larger, the limit while the choice is open"""

    def playouts_allowed(self, progress: Progress) -> int:
        """The playouts that fit into the time left after those in flight; evaluations run side by side."""
        left = _limit(self, progress) - progress.elapsed_s
        if left <= 0.0:
            return 0
        if progress.seconds_per_playout <= 0.0:
            return UNLIMITED
        # The first playout is always started: its time corrects an estimate spoiled by a stalled machine.
        first = 1 if progress.playouts + progress.in_flight == 0 else 0
        if progress.seconds_per_evaluation > progress.seconds_per_playout:
            left = int(left / progress.seconds_per_evaluation) * progress.seconds_per_evaluation + 1e-9
        return max(first, int(left / progress.seconds_per_playout) - progress.in_flight)


@dataclass(frozen=True)
class MemoryFull:
    """The search ends when the tree is full: more playouts would only repeat known values."""

    def playouts_allowed(self, progress: Progress) -> int:
        """0 once the tree has reached its memory limit."""
        return 0 if progress.full else UNLIMITED


@dataclass(frozen=True)
class Interrupt:
    """The search ends when an event is set."""

    event: threading.Event

    def playouts_allowed(self, progress: Progress) -> int:
        """0 once the event is set."""
        return 0 if self.event.is_set() else UNLIMITED


@dataclass(frozen=True)
class Decided:
    """The search ends when the playouts left by the other limits cannot make another move the most visited.

    Only visits are compared: a lower confidence bound might still have changed the choice. Time limits count after
    ``MIN_SECONDS``, when the speed of the search is known.
    """

    visits: int
    """visit limit, 0 = none"""
    soft_s: float
    """time limit, 0 = none"""
    hard_s: float = 0.0
    """if larger, the time limit while the choice is open"""

    MIN_SECONDS = 0.2

    def playouts_allowed(self, progress: Progress) -> int:
        """0 once the margin in visits exceeds the remaining playouts."""
        remaining = UNLIMITED
        if self.visits:
            remaining = max(0, self.visits - progress.visits)
        if self.soft_s and progress.elapsed_s > self.MIN_SECONDS:
            speed = progress.playouts / progress.elapsed_s
            remaining = min(remaining, int((_limit(self, progress) - progress.elapsed_s) * speed) + progress.in_flight)
        return 0 if progress.best_visits - progress.second_visits > remaining else UNLIMITED


@dataclass(frozen=True)
class GameDecided:
    """The search ends early in a won or lost game: more time hardly changes its result, and later moves may need it."""

    soft_s: float
    """time limit"""

    def playouts_allowed(self, progress: Progress) -> int:
        """0 once the game is decided (``DECIDED_VALUE``)."""
        is_known = progress.visits >= DECIDED_VISITS and progress.elapsed_s >= DECIDED_SHARE * self.soft_s
        return 0 if is_known and abs(progress.value) >= DECIDED_VALUE else UNLIMITED


def _limit(stopper: TimeLimit | Decided, progress: Progress) -> float:
    """The time limit in force, in seconds: ``hard_s`` while the choice is open."""
    return max(stopper.soft_s, stopper.hard_s if progress.is_choice_open else 0.0)


def playouts_allowed(stoppers: Sequence[Stopper], progress: Progress) -> int:
    """The smallest number that one of the stoppers allows."""
    return min(stopper.playouts_allowed(progress) for stopper in stoppers)


@dataclass(frozen=True)
class SearchLimits:
    """The limits of a search, which ends at the first one it reaches; 0 or None = no limit.

    Raises:
        ValueError: neither visits, seconds nor an interrupt is given.
    """

    visits: int = 0
    """visits of the root, including those kept from earlier searches"""
    soft_s: float = 0.0
    hard_s: float = 0.0
    """if larger than ``soft_s``, the time limit while the choice is open"""
    interrupt: threading.Event | None = None
    """ends the search once set; unlike :meth:`engine.search.search.Search.stop` it may be set before the search"""
    first_s: float = 0.0
    """longest wait for the root's evaluation, without which the search ends without a move; 0 = no limit, whatever the
    other limits are"""
    early_stop: bool = False
    """end once no other move can become the most visited within the limits, and early if the game is decided"""

    def __post_init__(self) -> None:
        if self.visits <= 0 and self.soft_s <= 0.0 and self.interrupt is None:
            raise ValueError("a search needs a limit: visits, seconds or an interrupt")

    @property
    def longest_s(self) -> float:
        """The hard time limit in seconds; 0 = none."""
        return max(self.soft_s, self.hard_s)

    @property
    def is_urgent(self) -> bool:
        """Whether batches are kept short: time is limited, or only an interrupt ends the search."""
        return self.soft_s > 0.0 or self.visits <= 0

    def stoppers(self, stop: threading.Event) -> Iterator[Stopper]:
        """The stoppers for these limits, for the event ``stop`` and for full memory."""
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
