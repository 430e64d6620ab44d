"""A clock that work moves, in place of the machine's: how long something takes does not depend on who else computes."""

import threading
import time

import pytest


class Clock:
    """Stands for ``time.perf_counter``: each look at it takes a little time, and work says how much it takes.

    Threads: any.
    """

    def __init__(self, look_s: float) -> None:
        self._look_s = look_s
        self._now_s = 1000.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.advance(self._look_s)

    def advance(self, seconds: float) -> float:
        """Let time pass; returns the time that it is then."""
        with self._lock:
            self._now_s += seconds
            return self._now_s


def stop_the_machines(monkeypatch: pytest.MonkeyPatch, look_s: float = 1e-3) -> Clock:
    """Put a clock of our own in the place of the machine's until the test ends."""
    clock = Clock(look_s)
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock
