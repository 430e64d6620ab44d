"""From a game clock to the seconds one move may take.

One set of numbers describes every clock: main time, then overtime in periods (Canadian: many moves a period; byo-yomi:
one, and several periods to lose), or an increment after each move (Fischer). :func:`charge` says what a move leaves of
it, :func:`budget` what the next move may take. A client may tell the time left before each move; where it does not,
:class:`Clock` keeps the account itself, from the time our moves took.

Of the main time a move gets a share that follows :func:`weight`: most in the middle game. Something is always kept
back for delays between engine and referee: ``lag_s``, or half of what there is where that is less. A move may be
extended up to a hard maximum, which keeps back as much. A move that ends within its hard maximum and is delayed by
no more than the lag oversteps no clock by more than the lag; where twice the lag was left, it oversteps none.

Clients set clocks by ``gtp/commands/time``; those of a match between engines are ``bench/match/clocks``.

Sources: GTP version 2, draft 2, section 4.2; for byo-yomi and Fischer KataGo's and kgsGtp's extensions of it; for the
middle game S.-C. Huang, R. Coulom, S.-S. Lin, "Time Management for Monte-Carlo Tree Search Applied to the Game of Go".
"""

import math
from dataclasses import dataclass
from functools import cache

from engine.config import PlayOptions
from engine.search.stoppers import SearchLimits

DEFAULT_S = PlayOptions.seconds
"""Of a move without any limit"""
GAME_SHARE = 0.35
"""Own moves of a game, as a share of the board's points: 126 on 19x19."""
LEAST_SHARE = 0.08
"""Own moves still to be expected however long a game has lasted, likewise: 29 on 19x19."""
LEAST_MOVES = 12.0
MIDDLE_GAME = 1.0
"""How much more a move at the height of the middle game is worth than the first or the last."""
MIDDLE = 0.25
"""Moves of both sides at that height, as a share of the board's points: 90 on 19x19."""
SPREAD = 0.15
"""How far around it the middle game reaches, likewise."""
EXTENSION = 2.0
"""How many times its target a move may take at the most."""
BEFORE_OVERTIME = 0.5
"""What a move takes of the main time before overtime, besides its share of it, as a multiple of :func:`weight` and of
what overtime grants one: every move made in main time gives up one of overtime's. People mind moves of several periods,
so this is also the most, beyond the grant, that an extension adds to twice the share."""
KEPT_LAGS = 4.0
"""Fischer time: the reserve on the clock after a move is one increment, which extensions use, and this number of lags.
Without a reserve the main time is spent after some 40 moves, and each later one ends a lag before the flag falls."""
SAVED = 0.3
"""The most of its increment that a move saves to restore the reserve, as a share."""
EXTRA = 0.5
"""The most of the increment that an extension takes, as a share, besides another share of the main time."""
DELAY = 0.08
"""Absolute time: what a move costs though it is played at once, in lags: 40 ms on a busy machine."""
AT_ONCE_SHARE = 0.75
"""Moves that this is kept back for, as a share of the board's points: a game without end is not lost by them."""
MOST_RESERVE = 0.2
"""The most of it, as a share of the whole time."""


def moves_left(n_moves: int, area: int) -> float:
    """Own moves that a game is expected to last after ``n_moves`` of both sides on a board of ``area`` points."""
    return max(GAME_SHARE * area - n_moves / 2, LEAST_SHARE * area, LEAST_MOVES)


def weight(n_moves: int, area: int) -> float:
    """What a move is worth in thinking time, by the moves before it: 1 at the ends of a game, more between."""
    return 1.0 + MIDDLE_GAME * math.exp(-(((n_moves / area - MIDDLE) / SPREAD) ** 2))


@cache
def main_share(n_moves: int, area: int) -> float:
    """Share of the main time that the next move is to have, by its weight among all that are still expected."""
    ahead = [weight(n_moves + 2 * k, area) for k in range(math.ceil(moves_left(n_moves, area)))]
    return ahead[0] / sum(ahead)


@dataclass(frozen=True)
class TimeSettings:
    """What a game is played under; seconds. All zero = no clock. Make one with the functions below."""

    main_s: float = 0.0
    period_s: float = 0.0
    """length of an overtime period; 0 = none"""
    stones: int = 0
    """moves to be made in a period, which then begins anew"""
    periods: int = 0
    """periods to be used up; the flag falls with the last"""
    increment_s: float = 0.0
    """added to the main time after each move"""
    limit_s: float = 0.0
    """what the main time may grow to; 0 = any"""
    move_s: float = 0.0
    """most time a move; 0 = any"""

    @property
    def is_limited(self) -> bool:
        """Whether there is a clock."""
        return self.main_s > 0 or self.period_s > 0 or self.increment_s > 0

    @property
    def grant_s(self) -> float:
        """What overtime or an increment gives every move."""
        return self.period_s / self.stones if self.period_s > 0 else self.increment_s

    def begin(self) -> "TimeLeft":
        """The clock at the start of a game."""
        return TimeLeft(self.main_s) if self.main_s > 0 or self.period_s <= 0 else self.overtime()

    def overtime(self) -> "TimeLeft":
        """The clock at the start of overtime."""
        return TimeLeft(self.period_s, self.stones, self.periods)


NO_CLOCK = TimeSettings()


def absolute(main_s: float) -> TimeSettings:
    """One time for all moves. Negative values count as zero, here and below."""
    return TimeSettings(max(0.0, main_s))


def canadian(main_s: float, period_s: float, stones: int) -> TimeSettings:
    """Main time, then a number of stones in each period; a period without stones means no clock at all (GTP 2, 4.2)."""
    if period_s <= 0:
        return absolute(main_s)
    return TimeSettings(max(0.0, main_s), period_s, stones, 1) if stones > 0 else NO_CLOCK


def byoyomi(main_s: float, period_s: float, periods: int) -> TimeSettings:
    """Main time, then periods; one is lost only if it runs out within a move."""
    if period_s <= 0 or periods <= 0:
        return absolute(main_s)
    return TimeSettings(max(0.0, main_s), period_s, 1, periods)


def fischer(main_s: float, increment_s: float, limit_s: float = 0.0, move_s: float = 0.0) -> TimeSettings:
    """Main time that grows after each move, perhaps up to a limit, perhaps with a limit to each move."""
    limit_s = max(limit_s, main_s) if limit_s > 0 else 0.0
    return TimeSettings(max(0.0, main_s), increment_s=max(0.0, increment_s), limit_s=limit_s, move_s=max(0.0, move_s))


@dataclass(frozen=True)
class TimeLeft:
    """One colour's clock."""

    seconds: float
    """of the main time, or of this overtime period"""
    stones: int = 0
    """moves still to be made in the period; 0 = in main time"""
    periods: int = 0
    """periods left, this one included"""


@dataclass(frozen=True)
class Budget:
    """What one move may take; seconds."""

    soft_s: float
    """the target"""
    hard_s: float
    """the most, where the choice is worth more than the target"""
    is_kept: bool = True
    """what the move leaves of it, later moves have"""


def charge(settings: TimeSettings, left: TimeLeft, seconds: float) -> tuple[TimeLeft, float]:
    """A clock after a move that took ``seconds``.

    Returns:
        The clock, and the seconds by which the move overstepped it; 0 = in time.
    """
    rest, stones, periods = left.seconds - seconds, left.stones, left.periods
    if rest < 0 and stones == 0 and settings.period_s > 0:
        rest, stones, periods = rest + settings.period_s, settings.stones, settings.periods
    if rest < 0 and stones > 0 and periods > 1 and settings.period_s > 0:
        # Not one by one: a stalled machine may cost any number of short periods.
        needed = -rest / settings.period_s
        lost = math.ceil(min(needed, periods - 1))
        rest += lost * settings.period_s
        if needed <= periods - 1:
            rest = max(0.0, rest)  # the rounding of a product
        stones, periods = settings.stones, periods - lost
    overrun_s = max(0.0, -rest, seconds - settings.move_s if settings.move_s else 0.0)
    rest = max(0.0, rest)
    if stones == 0:
        rest += settings.increment_s
        return TimeLeft(min(rest, settings.limit_s) if settings.limit_s else rest), overrun_s
    if stones > 1:
        return TimeLeft(rest, stones - 1, periods), overrun_s
    # The period is complete. A client that never sent its settings is taken to grant the same again.
    rest = settings.period_s or left.seconds
    return TimeLeft(rest, settings.stones or 1, periods), overrun_s


def budget(settings: TimeSettings, left: TimeLeft, n_moves: int, area: int, lag_s: float) -> Budget:
    """What the next move may take.

    Args:
        n_moves: moves of both sides so far.
        area: points of the board.
        lag_s: kept back for delays.
    """

    def keep_back(seconds: float) -> float:
        return seconds - min(lag_s, seconds / 2)

    share, grant = main_share(n_moves, area), settings.grant_s
    if left.stones > 0:
        # Periods behind this one are never counted on: they are what a stalled machine may cost. Half of its fair
        # share stays for each of the period's other stones.
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
            # Time beyond the limit would be lost.
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
    """What the next move may take, by its options and its clock's budget."""
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
        """Set the clock for both colours."""
        self._settings, self._is_set = settings, True
        self.begin_game()

    def begin_game(self) -> None:
        """Give both colours their full time again."""
        self._left = {}

    def set_left(self, color: int, seconds: float, stones: int) -> None:
        """Take over the referee's account of a colour.

        Args:
            seconds: of the main time, or of the overtime period where ``stones`` > 0; negative counts as zero.
            stones: moves left in the period; under byo-yomi, one move a period, the periods left; 0 = main time.
        """
        settings, seconds, stones = self._settings, max(0.0, seconds), max(0, stones)
        if settings.is_limited and settings.period_s <= 0:
            stones = 0  # There are no periods that stones could be counted in.
        left = TimeLeft(seconds, stones, min(stones, 1))
        if stones > 0 and settings.stones == 1:
            left = TimeLeft(seconds, 1, stones)
        if self._is_set and not settings.is_limited:
            return  # Without limits until other settings come (GTP 2, 4.2).
        if seconds == 0 and stones == 0:
            if not settings.is_limited:
                self._left.pop(color, None)  # No clock was set; a client without one may send zeros.
                return
            if settings.period_s > 0:
                left = settings.overtime()
        self._left[color] = left

    def budget(self, color: int, n_moves: int, area: int) -> Budget | None:
        """What the colour's next move may take; None where there is no clock. See :func:`budget`."""
        left = self._time_left(color)
        return None if left is None else budget(self._settings, left, n_moves, area, self.lag_s)

    def spend(self, color: int, seconds: float) -> None:
        """Note that a move of the colour took ``seconds``."""
        left = self._time_left(color)
        if left is not None:
            self._left[color] = charge(self._settings, left, seconds)[0]

    def _time_left(self, color: int) -> TimeLeft | None:
        """A colour's clock, None where there is none."""
        if color in self._left:
            return self._left[color]
        return self._settings.begin() if self._settings.is_limited else None
