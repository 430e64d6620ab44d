"""When a search ends: its limits, and the stoppers that they become."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from engine.search.stoppers import Decided, GameDecided, Interrupt, MemoryFull, Stopper, TimeLimit, VisitLimit


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
