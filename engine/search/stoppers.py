"""The limits of a search, and the stoppers made from them.

A stopper returns the number of playouts that may still be started. Before each batch, workers ask all stoppers, with
the tree's lock held; the smallest number holds, and 0 ends the search. With a visit limit alone, the number of playouts
does not depend on the machine's speed, and with one thread the tree does not either.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

UNLIMITED = 1 << 60
"""Number of playouts that a stopper allows if it sets no limit now"""
RIVAL_SHARE = 0.25
"""Minimum visits of a rival, as a share of the most visited move's; with fewer visits its value is mostly noise"""
CLEARLY_BETTER = 0.01
"""Difference in value above which a rival is better than the most visited move: half a percentage point of win rate"""
DECIDED_VALUE, DECIDED_SHARE, DECIDED_VISITS = 0.96, 0.2, 50
"""A game is decided if the root's value is at least DECIDED_VALUE from 0 (a win rate of 98% or 2%) after DECIDED_SHARE
of the soft time limit and DECIDED_VISITS visits. KataGo searches won games less too (``searchFactorWhenWinning``)."""
THIN_MARGIN = 0.1
"""The choice is open if the two most visited moves differ by less than this share of the first one's visits."""


@dataclass(frozen=True)
class Progress:
    """The state of a search as stoppers see it."""

    visits: int
    """visits of the root, including those kept from earlier searches"""
    in_flight: int
    """playouts in flight"""
    playouts: int
    """playouts completed in this run"""
    elapsed_s: float
    """seconds since the start of the run"""
    best_visits: int
    """visits of the most visited move"""
    second_visits: int
    """visits of the second most visited move"""
    value_margin: float
    """value of the most visited move minus the best rival's (``RIVAL_SHARE``); -1 stands for a missing rival's value"""
    value: float
    """value of the root for its side to move, -1 to 1"""
    full: bool
    """the tree has reached its memory limit"""
    seconds_per_playout: float
    """expected time for each playout when all evaluators work side by side; 0 = not known yet"""
    seconds_per_evaluation: float = 0.0
    """expected time from the start to the end of a single playout on an idle network; 0 = not known yet"""

    @property
    def is_choice_open(self) -> bool:
        """Whether more time may change the choice of the move: a rival has a better value, or nearly as many visits.

        AlphaGo continues to search while the most visited move does not have the best value (Methods, "Search
        algorithm"). Visits are close too just after another move has become the most visited.
        """
        is_thin = self.best_visits - self.second_visits < THIN_MARGIN * self.best_visits
        return is_thin or self.value_margin < -CLEARLY_BETTER


class Stopper(Protocol):
    """A condition that ends a search."""

    def playouts_allowed(self, progress: Progress) -> int:
        """The number of playouts that may be started now, 0 or more."""
        ...


@dataclass(frozen=True)
class VisitLimit:
    """Ends the search at exactly this number of visits of the root."""

    visits: int

    def playouts_allowed(self, progress: Progress) -> int:
        """The visits missing to the limit; playouts in flight count as visits."""
        return max(0, self.visits - progress.visits - progress.in_flight)


@dataclass(frozen=True)
class PlayoutLimit:
    """Ends the search after exactly this number of playouts."""

    playouts: int

    def playouts_allowed(self, progress: Progress) -> int:
        """The playouts missing to the limit; those in flight count."""
        return max(0, self.playouts - progress.playouts - progress.in_flight)


@dataclass(frozen=True)
class TimeLimit:
    """Ends the search so that its last playout is completed within a time limit."""

    soft_s: float
    """the time limit, in seconds from the start of the run"""
    hard_s: float = 0.0
    """if larger than ``soft_s``, the time limit while the choice is open (:attr:`Progress.is_choice_open`)"""

    def playouts_allowed(self, progress: Progress) -> int:
        """The number of playouts expected to be completed in the time left, minus those in flight.

        Unlimited while the time of a playout is unknown; at least 1 for the first playout of the run.
        """
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
    """Ends the search when the tree is full, since more playouts would only repeat known values."""

    def playouts_allowed(self, progress: Progress) -> int:
        """0 once the tree has reached its memory limit, else UNLIMITED."""
        return 0 if progress.full else UNLIMITED


@dataclass(frozen=True)
class Interrupt:
    """Ends the search when an event is set."""

    event: threading.Event

    def playouts_allowed(self, progress: Progress) -> int:
        """0 once the event is set, else UNLIMITED."""
        return 0 if self.event.is_set() else UNLIMITED


@dataclass(frozen=True)
class Decided:
    """Ends the search when the playouts that its limits still allow cannot make another move the most visited.

    Only visits are compared: with ``move_choice`` "lcb" the choice might still have changed. The time limit is
    considered only after ``MIN_SECONDS``, when the speed of the search is known.
    """

    visits: int
    """the search's visit limit, 0 = none"""
    soft_s: float
    """the search's time limit, 0 = none"""
    hard_s: float = 0.0
    """if larger than ``soft_s``, the time limit while the choice is open (:attr:`Progress.is_choice_open`)"""

    MIN_SECONDS = 0.2

    def playouts_allowed(self, progress: Progress) -> int:
        """0 once the most visited move leads the second by more visits than playouts remain, else UNLIMITED."""
        remaining = UNLIMITED
        if self.visits:
            remaining = max(0, self.visits - progress.visits)
        if self.soft_s and progress.elapsed_s > self.MIN_SECONDS:
            speed = progress.playouts / progress.elapsed_s
            remaining = min(remaining, int((_limit(self, progress) - progress.elapsed_s) * speed) + progress.in_flight)
        return 0 if progress.best_visits - progress.second_visits > remaining else UNLIMITED


@dataclass(frozen=True)
class GameDecided:
    """Ends the search early in a won or lost game: more time hardly changes the result, and later moves may need it."""

    soft_s: float
    """the search's time limit"""

    def playouts_allowed(self, progress: Progress) -> int:
        """0 once the game is decided (``DECIDED_VALUE``), else UNLIMITED."""
        is_known = progress.visits >= DECIDED_VISITS and progress.elapsed_s >= DECIDED_SHARE * self.soft_s
        return 0 if is_known and abs(progress.value) >= DECIDED_VALUE else UNLIMITED


def _limit(stopper: TimeLimit | Decided, progress: Progress) -> float:
    """The time limit that holds now, in seconds: the larger of both while the choice is open, else ``soft_s``."""
    return max(stopper.soft_s, stopper.hard_s if progress.is_choice_open else 0.0)


def playouts_allowed(stoppers: Sequence[Stopper], progress: Progress) -> int:
    """The smallest of the numbers of playouts that the stoppers allow."""
    return min(stopper.playouts_allowed(progress) for stopper in stoppers)


@dataclass(frozen=True)
class SearchLimits:
    """The limits of a search, which ends at the first one it reaches; 0 or None = no limit.

    Raises:
        ValueError: neither visits, playouts, seconds nor an interrupt is given.
    """

    visits: int = 0
    """visits of the root, including those kept from earlier searches"""
    soft_s: float = 0.0
    """time limit in seconds"""
    hard_s: float = 0.0
    """if larger than ``soft_s``, the time limit while the choice is open (:attr:`Progress.is_choice_open`)"""
    interrupt: threading.Event | None = None
    """ends the search once set; it may be set before the search begins, when
    :meth:`engine.search.search.Search.stop` has no effect"""
    first_s: float = 0.0
    """longest wait for the root's evaluation in seconds, after which the search ends without a move; 0 = no limit on
    this wait, even if the time limit passes"""
    early_stop: bool = False
    """end also once no other move can become the most visited (:class:`Decided`) or, with a time limit, once the game
    is decided (:class:`GameDecided`)"""
    playouts: int = 0
    """playouts of this search; unlike ``visits``, those of earlier searches do not count"""

    def __post_init__(self) -> None:
        if max(self.visits, self.playouts) <= 0 and self.soft_s <= 0.0 and self.interrupt is None:
            raise ValueError("a search needs a limit: visits, playouts, seconds or an interrupt")

    def __and__(self, other: "SearchLimits") -> "SearchLimits":
        """The limits with the smaller numbers of visits and playouts and the shorter times of both."""

        def smaller(one: float, two: float) -> float:
            return min(one, two) if one and two else one or two

        return replace(
            self,
            visits=int(smaller(self.visits, other.visits)),
            playouts=int(smaller(self.playouts, other.playouts)),
            soft_s=smaller(self.soft_s, other.soft_s),
            hard_s=smaller(self.hard_s, other.hard_s),
        )

    @property
    def longest_s(self) -> float:
        """The hard time limit in seconds; 0 = none."""
        return max(self.soft_s, self.hard_s)

    @property
    def is_urgent(self) -> bool:
        """Whether batches are kept short, since time is limited or only an interrupt ends the search."""
        return self.soft_s > 0.0 or max(self.visits, self.playouts) <= 0

    def stoppers(self, stop: threading.Event) -> Iterator[Stopper]:
        """The stoppers for these limits, for the event ``stop`` and for a full tree."""
        yield Interrupt(stop)
        yield MemoryFull()
        if self.interrupt is not None:
            yield Interrupt(self.interrupt)
        if self.visits > 0:
            yield VisitLimit(self.visits)
        if self.playouts > 0:
            yield PlayoutLimit(self.playouts)
        if self.soft_s > 0.0:
            yield TimeLimit(self.soft_s, self.hard_s)
        if self.early_stop:
            yield Decided(self.visits, self.soft_s, self.hard_s)
            if self.soft_s > 0.0:
                yield GameDecided(self.soft_s)
