"""Game clocks, and the time budget of one move.

:class:`TimeSettings` describes every kind of clock: main time, then overtime in periods (Canadian: many moves a period;
byo-yomi: one move, and several periods), or an increment after each move (Fischer). :func:`charge` subtracts a move's
time, :func:`budget` computes the time for the next move. A client may send the time left before each move; otherwise
:class:`Clock` computes it from the time of our own moves.

A move's share of the main time follows :func:`weight`, which is largest in the middle game. ``lag_s`` is reserved for
delays between engine and referee, or half of the time left if that is less. A move may be extended to a hard maximum,
with the same reserve. A move that ends within its hard maximum and is delayed by at most the lag exceeds the time left
by at most the lag; if twice the lag was left, the move is in time.

``gtp/commands/time`` has the clients' commands, ``bench/match/clocks`` the clocks of matches between engines.

Sources: GTP version 2, draft 2, section 4.2; for byo-yomi and Fischer KataGo's and kgsGtp's extensions of it; for the
middle game S.-C. Huang, R. Coulom, S.-S. Lin, "Time Management for Monte-Carlo Tree Search Applied to the Game of Go".
"""

import math
from dataclasses import dataclass
from functools import cache

from engine.config import PlayOptions
from engine.search.stoppers import SearchLimits

DEFAULT_S = PlayOptions.seconds
"""Seconds for a move if neither a clock nor options limit it"""
GAME_SHARE = 0.35
"""Expected number of own moves in a game, as a share of the board's points: 126 on 19x19"""
LEAST_SHARE = 0.08
"""Minimum number of own moves still expected at any time, as a share of the board's points: 29 on 19x19"""
LEAST_MOVES = 12.0
MIDDLE_GAME = 1.0
"""Additional weight of a move at the peak of the middle game; the first and the last moves have weight 1"""
MIDDLE = 0.25
"""Number of moves, of both sides, at the peak of :func:`weight`, as a share of the board's points: 90 on 19x19"""
SPREAD = 0.15
"""Width of the peak of :func:`weight` in moves, as a share of the board's points"""
EXTENSION = 2.0
"""Hard maximum of a move's time, as a multiple of its target"""
BEFORE_OVERTIME = 0.5
"""Overtime: additional main time for a move beyond its share (:func:`main_share`), as a multiple of :func:`weight`
times the time that overtime grants a move. Each move made in main time leaves one grant of overtime unused. An extended
move takes at most twice its share, plus one grant, plus this time, since people mind moves of several periods."""
KEPT_LAGS = 4.0
"""Fischer time: a move leaves a reserve on the clock: one increment, which extensions use, and this number of lags.
Without this reserve the main time is spent after some 40 moves, and later moves each end one lag before the flag
falls."""
SAVED = 0.3
"""Fischer time: largest share of its increment that a move leaves unused to restore the reserve"""
EXTRA = 0.5
"""Fischer time: largest share of the increment that an extension adds, besides another share of the main time"""
DELAY = 0.08
"""Absolute time: time that a move played at once takes on a busy machine, as a multiple of the lag: 40 ms of 0.5 s"""
AT_ONCE_SHARE = 0.75
"""Absolute time: number of moves played at once for which time is reserved, as a share of the board's points, so that
very long games are not lost on time"""
MOST_RESERVE = 0.2
"""Absolute time: upper limit of the reserve for moves played at once, as a share of the main time"""


def moves_left(n_moves: int, area: int) -> float:
    """Own moves that a game is expected to last after ``n_moves`` of both sides on a board of ``area`` points."""
    return max(GAME_SHARE * area - n_moves / 2, LEAST_SHARE * area, LEAST_MOVES)


def weight(n_moves: int, area: int) -> float:
    """Weight of a move's thinking time by the number of moves before it: about 1 early and late, more between."""
    return 1.0 + MIDDLE_GAME * math.exp(-(((n_moves / area - MIDDLE) / SPREAD) ** 2))


@cache
def main_share(n_moves: int, area: int) -> float:
    """Share of the main time for the next move: its weight divided by that of all own moves still expected."""
    ahead = [weight(n_moves + 2 * k, area) for k in range(math.ceil(moves_left(n_moves, area)))]
    return ahead[0] / sum(ahead)


@dataclass(frozen=True)
class TimeSettings:
    """Settings of a clock, in seconds; all zero = no clock.

    Made by :func:`absolute`, :func:`canadian`, :func:`byoyomi` and :func:`fischer`.
    """

    main_s: float = 0.0
    period_s: float = 0.0
    """length of an overtime period; 0 = none"""
    stones: int = 0
    """moves to play in a period, after which the period begins anew"""
    periods: int = 0
    """number of periods; the flag falls at the end of the last one"""
    increment_s: float = 0.0
    """added to the main time after each move"""
    limit_s: float = 0.0
    """upper limit of the time on the clock after an increment; 0 = none"""
    move_s: float = 0.0
    """upper limit of one move's time; 0 = none"""

    @property
    def is_limited(self) -> bool:
        """Whether there is a clock."""
        return self.main_s > 0 or self.period_s > 0 or self.increment_s > 0

    @property
    def grant_s(self) -> float:
        """Seconds that overtime or increment grants each move."""
        return self.period_s / self.stones if self.period_s > 0 else self.increment_s

    def begin(self) -> "TimeLeft":
        """The clock at the start of a game."""
        return TimeLeft(self.main_s) if self.main_s > 0 or self.period_s <= 0 else self.overtime()

    def overtime(self) -> "TimeLeft":
        """The clock at the start of overtime."""
        return TimeLeft(self.period_s, self.stones, self.periods)

    def until_flag_s(self, left: "TimeLeft") -> float:
        """Seconds that a move may take before the flag falls, all periods included."""
        return left.seconds + self.period_s * (left.periods - 1 if left.stones else self.periods)


NO_CLOCK = TimeSettings()


def absolute(main_s: float) -> TimeSettings:
    """Absolute time: one main time for all moves; a negative one counts as zero."""
    return TimeSettings(max(0.0, main_s))


def canadian(main_s: float, period_s: float, stones: int) -> TimeSettings:
    """Main time, then ``stones`` moves in each period; a period for 0 stones means no clock at all (GTP 2, 4.2)."""
    if period_s <= 0:
        return absolute(main_s)
    return TimeSettings(max(0.0, main_s), period_s, stones, 1) if stones > 0 else NO_CLOCK


def byoyomi(main_s: float, period_s: float, periods: int) -> TimeSettings:
    """Main time, then periods for one move each; a period is lost only if a move takes longer."""
    if period_s <= 0 or periods <= 0:
        return absolute(main_s)
    return TimeSettings(max(0.0, main_s), period_s, 1, periods)


def fischer(main_s: float, increment_s: float, limit_s: float = 0.0, move_s: float = 0.0) -> TimeSettings:
    """Main time with an increment after each move; optional upper limits of the time on the clock and of each move."""
    limit_s = max(limit_s, main_s) if limit_s > 0 else 0.0
    return TimeSettings(max(0.0, main_s), increment_s=max(0.0, increment_s), limit_s=limit_s, move_s=max(0.0, move_s))


@dataclass(frozen=True)
class TimeLeft:
    """The time left on one colour's clock."""

    seconds: float
    """left in the main time, or in this overtime period"""
    stones: int = 0
    """moves left to play in the period; 0 = in main time"""
    periods: int = 0
    """periods left, including this one"""


@dataclass(frozen=True)
class Budget:
    """The time for one move, in seconds."""

    soft_s: float
    """the target, at which a search ends unless it is extended"""
    hard_s: float
    """the maximum, for a search extended because its choice is open"""
    is_kept: bool = True
    """whether unused time stays on the clock for later moves"""


def elapsed(settings: TimeSettings, left: TimeLeft, seconds: float) -> TimeLeft:
    """The clock ``seconds`` into a move: overtime begun, periods lost; a negative time once the flag has fallen."""
    rest, stones, periods = left.seconds - seconds, left.stones, left.periods
    if rest < 0 and stones == 0 and settings.period_s > 0:
        rest, stones, periods = rest + settings.period_s, settings.stones, settings.periods
    if rest < 0 and stones > 0 and periods > 1 and settings.period_s > 0:
        # Computed, not looped: a stalled machine may lose many short periods.
        needed = -rest / settings.period_s
        lost = math.ceil(min(needed, periods - 1))
        rest += lost * settings.period_s
        if needed <= periods - 1:
            rest = max(0.0, rest)  # the rounding of a product
        stones, periods = settings.stones, periods - lost
    return TimeLeft(rest, stones, periods)


def charge(settings: TimeSettings, left: TimeLeft, seconds: float) -> tuple[TimeLeft, float]:
    """Subtract a move that took ``seconds`` from a clock.

    Returns:
        The time left after the move, and the seconds by which the move exceeded the time left before it
        or the limit of a move; 0 = in time.
    """
    now = elapsed(settings, left, seconds)
    rest, stones, periods = now.seconds, now.stones, now.periods
    overrun_s = max(0.0, -rest, seconds - settings.move_s if settings.move_s else 0.0)
    rest = max(0.0, rest)
    if stones == 0:
        rest += settings.increment_s
        return TimeLeft(min(rest, settings.limit_s) if settings.limit_s else rest), overrun_s
    if stones > 1:
        return TimeLeft(rest, stones - 1, periods), overrun_s
    # The period is complete. Without settings from the client, the next one is assumed to be equal.
    rest = settings.period_s or left.seconds
    return TimeLeft(rest, settings.stones or 1, periods), overrun_s


def budget(settings: TimeSettings, left: TimeLeft, n_moves: int, area: int, lag_s: float) -> Budget:
    """The time for the next move.

    Args:
        n_moves: moves of both sides so far.
        area: number of points of the board.
        lag_s: seconds reserved for delays between engine and referee.
    """

    def keep_back(seconds: float) -> float:
        return seconds - min(lag_s, seconds / 2)

    share, grant = main_share(n_moves, area), settings.grant_s
    if left.stones > 0:
        # Later periods are not used: they are the reserve for a stalled machine. Half of its fair share is kept for
        # each of the period's other stones.
        fair = left.seconds / left.stones
        soft, hard = keep_back(fair), keep_back(fair * min(EXTENSION, (left.stones + 1) / 2))
    elif settings.period_s > 0:
        main, extra = left.seconds * share, BEFORE_OVERTIME * weight(n_moves, area) * grant
        target = max(min(left.seconds, main + extra), grant)
        longest = min(EXTENSION * target, EXTENSION * main + grant + extra)
        soft, hard = keep_back(target), keep_back(min(left.seconds + grant, longest))
    elif grant > 0:
        delays_s = KEPT_LAGS * lag_s
        reserve_s = grant + min(grant, delays_s)
        if settings.limit_s > 0:
            # Time above the limit would be lost.
            reserve_s = min(reserve_s, max(0.0, settings.limit_s - grant))
        spare_s = left.seconds - grant - reserve_s
        main = share * max(0.0, spare_s)
        target = grant + main + max(-SAVED * grant, min(0.0, spare_s))
        most = left.seconds - min(delays_s, left.seconds / 2)
        soft, hard = min(most, target), min(most, target + main + EXTRA * grant)
    else:
        delays_s = DELAY * lag_s * AT_ONCE_SHARE * area
        reserve_s = min(MOST_RESERVE * settings.main_s, delays_s)
        free = min(keep_back(left.seconds), max(0.0, left.seconds - reserve_s))
        soft, hard = free * share, min(free, EXTENSION * free * share)
    if settings.move_s > 0:
        most = keep_back(settings.move_s)
        soft, hard = min(soft, most), min(hard, most)
    return Budget(soft, hard, is_kept=left.stones != 1)


def move_limits(options: PlayOptions, budget: Budget | None) -> SearchLimits:
    """The search limits of the next move, by the options and the clock's budget; ``budget`` None = no clock."""
    if options.policy_only and budget is None:
        return SearchLimits(visits=1)
    if budget is not None:
        soft_s = max(1e-3, budget.soft_s)
        visits = 1 if options.policy_only else options.visits
        hard_s = max(soft_s, budget.hard_s if options.extend_unstable else 0.0)
        return SearchLimits(visits, soft_s, hard_s, early_stop=options.early_stop and budget.is_kept)
    seconds = options.seconds if options.visits or options.seconds else DEFAULT_S
    return SearchLimits(options.visits, seconds, seconds)


class Clock:
    """The clocks of both colours. Threads: one caller at a time."""

    def __init__(self, lag_s: float = PlayOptions.lag) -> None:
        self.lag_s = lag_s
        self._settings, self._is_set = NO_CLOCK, False
        self._left: dict[int, TimeLeft] = {}

    def configure(self, settings: TimeSettings) -> None:
        """Set the time settings for both colours, and reset their clocks."""
        self._settings, self._is_set = settings, True
        self.begin_game()

    def begin_game(self) -> None:
        """Reset both colours' clocks to the start of a game."""
        self._left = {}

    def set_left(self, color: int, seconds: float, stones: int) -> None:
        """Set a colour's clock as sent by the referee.

        Args:
            seconds: left in the main time, or in the overtime period if ``stones`` > 0; negative counts as zero.
            stones: moves left in the period; with byo-yomi, where a period is for one move, periods left; 0 = in main
                time.
        """
        settings, seconds, stones = self._settings, max(0.0, seconds), max(0, stones)
        if settings.is_limited and settings.period_s <= 0:
            stones = 0  # Without periods there are no stones to count.
        left = TimeLeft(seconds, stones, min(stones, 1))
        if stones > 0 and settings.stones == 1:
            left = TimeLeft(seconds, 1, stones)
        if self._is_set and not settings.is_limited:
            return  # No limits until the client sends other settings (GTP 2, 4.2).
        if seconds == 0 and stones == 0:
            if not settings.is_limited:
                self._left.pop(color, None)  # No clock was set; a client without one may send zeros.
                return
            if settings.period_s > 0:
                left = settings.overtime()
        self._left[color] = left

    def budget(self, color: int, n_moves: int, area: int) -> Budget | None:
        """The :func:`budget` of a colour's next move; None without a clock."""
        left = self._time_left(color)
        return None if left is None else budget(self._settings, left, n_moves, area, self.lag_s)

    def spend(self, color: int, seconds: float) -> None:
        """Charge a move of ``seconds`` to a colour's clock."""
        left = self._time_left(color)
        if left is not None:
            self._left[color] = charge(self._settings, left, seconds)[0]

    def _time_left(self, color: int) -> TimeLeft | None:
        """A colour's time left; None without a clock."""
        if color in self._left:
            return self._left[color]
        return self._settings.begin() if self._settings.is_limited else None
