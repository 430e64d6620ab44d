"""Clocks of a match: the form of ``--time``, a player's remaining time, and the GTP commands for both.

Engines support different clocks. :class:`Dialect` lists the GTP commands: KataGo's, if the engine lists them; kgsGtp's
for byo-yomi; else ``time_settings`` of GTP 2, which has main time and Canadian overtime. For that command byo-yomi is
converted into main time plus all periods but one, then one stone per period; Fischer time into overtime of one stone
with the increment as its period. The true clock never runs out before the converted one. Fischer time with a limit on
the main time or on a move needs KataGo's command.
"""

import enum
import math
import re

from engine.play.clock import NO_CLOCK, TimeSettings, absolute, byoyomi, canadian, charge, fischer

SECONDS, COUNT = r"\d{1,9}(?:\.\d{1,9})?", r"\d{1,9}"
FORM = re.compile(rf"(?:(?P<main>{SECONDS})\+)?(?:(?P<periods>{COUNT})x)?(?P<extra>{SECONDS})(?P<kind>/{COUNT}|f)?")
EXPECTED = (
    "expected S, M+0, M+S/N, M+PxS or M+Sf: "
    "M s main time, S s for every N moves, P byo-yomi periods of S s, Fischer's S s, at most M, more after each move"
)


def time_control(text: str) -> TimeSettings:
    """Parse ``--time``: ``5`` seconds a move, ``600+0``, Canadian ``600+30/5``, byo-yomi ``600+5x30``, ``600+10f``.

    Raises:
        ValueError: the text has none of these forms.
    """
    found = FORM.fullmatch(text.strip())
    settings = NO_CLOCK
    if found is not None:
        main_s, extra_s, kind = float(found["main"] or 0), float(found["extra"]), found["kind"]
        if found["periods"] is None and kind != "f":
            settings = canadian(main_s, extra_s, int((kind or "/1")[1:]))
        elif found["periods"] is None and 0 < extra_s <= main_s:
            settings = fischer(main_s, extra_s)
        elif not kind and extra_s and int(found["periods"]):
            settings = byoyomi(main_s, extra_s, int(found["periods"]))
    if not settings.is_limited:
        raise ValueError(f"time is {text!r}, {EXPECTED}")
    return settings


def kind_of(settings: TimeSettings) -> str:
    """KataGo's name of a kind of clock: ``absolute``, ``byoyomi`` and so on.

    Raises:
        ValueError: KataGo has no such clock.
    """
    return _kind_and_numbers(settings)[0]


def _kind_and_numbers(settings: TimeSettings) -> tuple[str, list[float]]:
    """KataGo's name of a clock's kind, and the numbers after it in ``kata-time_settings`` and ``kgs-time_settings``.

    Raises:
        ValueError: KataGo has no such clock.
    """
    main_s, period_s, increment_s = settings.main_s, settings.period_s, settings.increment_s
    capped = (main_s, increment_s, settings.limit_s or -1, settings.move_s or -1)
    kinds = {
        "absolute": (absolute(main_s), (main_s,)),
        "canadian": (canadian(main_s, period_s, settings.stones), (main_s, period_s, settings.stones)),
        "byoyomi": (byoyomi(main_s, period_s, settings.periods), (main_s, period_s, settings.periods)),
        "fischer": (fischer(main_s, increment_s), (main_s, increment_s)),
        "fischer-capped": (fischer(*capped), capped),
    }
    for kind, (clock, numbers) in kinds.items():
        if clock == settings and settings.is_limited:
            return kind, list(numbers)
    raise ValueError(f"{settings}: expected a clock of one of the kinds {', '.join(kinds)}")


class Dialect(enum.Enum):
    """The GTP command that sets an engine's clock: that of GTP 2, kgsGtp or KataGo."""

    GTP = "time_settings"
    KGS = "kgs-time_settings"
    KATA = "kata-time_settings"


class PlayerClock:
    """One player's remaining time as the match measures it, and the GTP commands for it."""

    def __init__(self, settings: TimeSettings, dialect: Dialect = Dialect.GTP) -> None:
        self.settings = settings
        self.dialect = dialect
        self.left = settings.begin()
        self.overrun_s = 0.0
        """largest overstepping of the clock so far in seconds, tolerated or not"""
        self._owed_s = 0.0
        """time used beyond a main time without overtime; subtracted from later moves"""

    def limit_s(self) -> float:
        """Seconds that the player may spend on this move before the flag falls."""
        until_s, move_s = self.settings.until_flag_s(self.left) - self._owed_s, self.settings.move_s
        return min(until_s, move_s) if move_s else until_s

    def spend(self, seconds: float, tolerance_s: float) -> bool:
        """Subtract the time of one move; returns False if the clock was overstepped by more than the tolerance.

        Time beyond a main time without overtime, though tolerated, is subtracted from later moves: the tolerance
        is for delays and adds no thinking time.
        """
        if self.settings.period_s > 0:
            self.left, overrun_s = charge(self.settings, self.left, seconds)
        else:
            spent_s, had_s, move_s = seconds + self._owed_s, self.left.seconds, self.settings.move_s
            self.left, _ = charge(self.settings, self.left, spent_s)
            self._owed_s = max(0.0, spent_s - had_s)
            overrun_s = max(self._owed_s, seconds - move_s if move_s else 0.0)
        self.overrun_s = max(self.overrun_s, overrun_s)
        return overrun_s <= tolerance_s

    def settings_command(self) -> str:
        """The GTP command that sets this clock.

        Raises:
            ValueError: the dialect cannot express the clock.
        """
        settings, (kind, numbers) = self.settings, _kind_and_numbers(self.settings)
        main_s, period_s, stones = settings.main_s, settings.period_s, settings.stones
        if kind == "fischer-capped" and self.dialect is not Dialect.KATA:
            raise ValueError(f"{self.dialect.value} does not support {kind} time")
        if self.dialect is not Dialect.GTP:
            return " ".join([self.dialect.value, kind, *(f"{number:.10g}" for number in numbers)])
        if kind == "fischer":
            main_s, period_s, stones = max(0.0, main_s - settings.increment_s), settings.increment_s, 1
        elif kind == "byoyomi":
            main_s += (settings.periods - 1) * period_s
        return f"time_settings {main_s:.10g} {period_s:.10g} {stones}"

    def left_words(self) -> str:
        """Arguments of ``time_left`` after the colour: seconds and stones, or byo-yomi periods if the dialect has them.

        Seconds are rounded down to whole ones or, in KataGo's dialect, to thousandths.
        """
        left, kind = self.left, kind_of(self.settings)
        seconds, stones = left.seconds, left.stones
        if self.dialect is Dialect.KATA:
            return f"{math.floor(seconds * 1000) / 1000:.10g} {left.periods if kind == 'byoyomi' else stones}"
        if kind == "byoyomi" and self.dialect is Dialect.KGS:
            stones = left.periods
        elif kind == "byoyomi":
            spare = left.periods - 2 if stones else self.settings.periods - 1
            seconds, stones = seconds + max(0, spare) * self.settings.period_s, 1 if stones and spare < 0 else 0
        elif kind == "fischer":
            increment_s = self.settings.increment_s
            seconds, stones = (seconds - increment_s, 0) if seconds > increment_s else (seconds, 1)
        return f"{int(seconds)} {stones}"
