"""The clocks of a game in the browser, which count the time of both players."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.go.points import BLACK, WHITE, color_word
from engine.play.clock import Clock, TimeLeft, TimeSettings, byoyomi, charge, elapsed, fischer
from gtp.web.settings import ClockSettings

LATE_S = 0.01
"""Seconds from the time at which a flag should have fallen until the timer checks it"""
LAG_S = 0.2
"""Time that the engine reserves for delays between its move and the page"""


class GameClock:
    """Both players' clocks; at most one runs. Threads: one caller."""

    def __init__(
        self,
        settings: ClockSettings,
        on_flag: Callable[[int], None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the clocks to the start of a game; none runs.

        Args:
            on_flag: called with the colour whose flag may have fallen, in a thread of its own; None = no timer.
            now: returns seconds of a clock that never goes back.
        """
        self._settings = time_settings(settings)
        self._left = {color: self._settings.begin() for color in (BLACK, WHITE)}
        self._on_flag, self._now, self._since_s = on_flag, now, 0.0
        self._timer: threading.Timer | None = None
        self.running = 0
        """colour whose clock runs; 0 = none"""

    def start(self, color: int) -> None:
        """Let a colour's clock run, and stop the other's without a charge."""
        self._stop()
        self.running, self._since_s = color, self._now()
        if self._on_flag is not None and self.seconds_to_flag() < threading.TIMEOUT_MAX:
            self._timer = threading.Timer(self.seconds_to_flag() + LATE_S, self._on_flag, (color,))
            self._timer.daemon = True
            self._timer.start()

    def _stop(self) -> None:
        """Stop the timer of the flag; no clock runs."""
        self.running = 0
        if self._timer is not None:
            self._timer.cancel()

    def pause(self) -> None:
        """Stop the running clock in the middle of a move, whose time so far counts."""
        if self.running:
            self._left[self.running] = self._during(self.running)
        self._stop()

    def move(self, color: int) -> bool:
        """Charge a colour's move, and stop its clock; returns whether the move was in time."""
        if self.running != color:
            return True
        self._left[color], overrun_s = charge(self._settings, self._left[color], self._now() - self._since_s)
        self._stop()
        return overrun_s <= 0.0

    def seconds_to_flag(self) -> float:
        """Seconds until the running clock's flag falls; infinite if none runs, negative if it has fallen."""
        if not self.running:
            return math.inf
        return self._settings.until_flag_s(self._left[self.running]) - (self._now() - self._since_s)

    def for_engine(self) -> Clock:
        """A clock with these times for the engine's next move."""
        clock = Clock(LAG_S)
        clock.configure(self._settings)
        for color, left in self._left.items():
            clock.set_left(color, left.seconds, left.periods if left.stones else 0)
        return clock

    def state(self) -> dict[str, Any]:
        """Both clocks as the page shows them; the time of the move in progress is subtracted."""
        return {
            color_word(color): {
                "seconds": round(left.seconds, 2),
                "periods": left.periods if left.stones else self._settings.periods,
                "inPeriod": bool(left.stones),
                "periodSeconds": self._settings.period_s,
                "increment": self._settings.increment_s,
                "running": self.running == color,
            }
            for color, left in ((color, self._during(color)) for color in (BLACK, WHITE))
        }

    def _during(self, color: int) -> TimeLeft:
        """A colour's time left now, in the middle of a move if its clock runs."""
        left = self._left[color]
        if self.running != color:
            return left
        now = elapsed(self._settings, left, self._now() - self._since_s)
        return replace(now, seconds=max(0.0, now.seconds))

    def to_json(self) -> dict[str, list[float]]:
        """The times left, for the record; :meth:`restore` reads them."""
        return {color_word(color): [left.seconds, left.stones, left.periods] for color, left in self._left.items()}

    def restore(self, saved: Any) -> None:
        """Set the times left as :meth:`to_json` wrote them; anything else is ignored."""
        for color in (BLACK, WHITE):
            row = saved.get(color_word(color)) if isinstance(saved, dict) else None
            if isinstance(row, list) and len(row) == 3 and all(isinstance(one, int | float) for one in row):
                self._left[color] = TimeLeft(max(0.0, float(row[0])), int(row[1]), int(row[2]))


def time_settings(settings: ClockSettings) -> TimeSettings:
    """The settings in the form of :mod:`engine.play.clock`."""
    if settings.inc_s:
        return fischer(settings.main_s, settings.inc_s)
    return byoyomi(settings.main_s, settings.byo_s, settings.byo_periods)
