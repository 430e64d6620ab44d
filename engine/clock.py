"""From a game clock to the seconds one move may take.

GTP describes a clock by main time and Canadian overtime: after the main time, ``stones`` moves in every period of
``period_s``. Without overtime the main time is absolute. A client may tell the time left before each move; where it
does not, the clock keeps the account itself, from the time our moves took.

Whatever the client says, a budget never exceeds what is on the clock, and something is always kept back for delays
between engine and referee: ``lag_s``, or half of the move's share where that is less. So the budgets of a whole game
stay within the time, and no odd value (negative main time, no stones in a period) makes the engine think forever.
"""

from dataclasses import dataclass

GAME_SHARE = 0.35
"""Own moves of a game, as a share of the board's points: 126 on 19x19."""
LEAST_SHARE = 0.08
"""Own moves still to be expected however long a game has lasted, likewise: 29 on 19x19."""
LEAST_MOVES = 8.0


def moves_left(n_moves: int, area: int) -> float:
    """Own moves that a game is expected to last after so many of both sides on a board of so many points."""
    return max(GAME_SHARE * area - n_moves / 2, LEAST_SHARE * area, LEAST_MOVES)


@dataclass(frozen=True)
class TimeSettings:
    """What a game is played under; seconds."""

    main_s: float
    period_s: float = 0.0
    """length of an overtime period; 0 = absolute time"""
    stones: int = 0
    """moves to be made in a period; 0 with a period = no limit at all"""

    @property
    def is_limited(self) -> bool:
        """Whether there is a clock: a period without stones means none (GTP 2, section 4.2), all zero likewise."""
        return self.stones > 0 if self.period_s > 0 else self.main_s > 0

    @property
    def has_overtime(self) -> bool:
        return self.period_s > 0 and self.stones > 0


@dataclass
class TimeLeft:
    """One colour's clock."""

    seconds: float
    stones: int = 0
    """moves left in this overtime period; 0 = in main time"""


class Clock:
    """The clocks of both colours. Threads: one caller at a time."""

    def __init__(self, lag_s: float = 0.5) -> None:
        self.lag_s = lag_s
        self._settings = TimeSettings(0.0)
        self._left: dict[int, TimeLeft] = {}

    def configure(self, main_s: float, period_s: float, stones: int) -> None:
        """Set the clock for both colours; negative values count as zero."""
        self._settings = TimeSettings(max(0.0, main_s), max(0.0, period_s), max(0, stones))
        self.begin_game()

    def begin_game(self) -> None:
        """Give both colours their full time again."""
        self._left = {}

    def set_left(self, color: int, seconds: float, stones: int) -> None:
        """Take over the referee's account of a colour.

        Args:
            seconds: in main time, or in the overtime period where ``stones`` > 0; negative counts as zero.
            stones: moves left in the period; 0 = main time.
        """
        left = TimeLeft(max(0.0, seconds), max(0, stones))
        if left.seconds == 0 and left.stones == 0 and not self._settings.is_limited:
            return  # Nobody has set a clock; a client without one may send zeros.
        if left.seconds == 0 and left.stones == 0 and self._settings.has_overtime:
            left = TimeLeft(self._settings.period_s, self._settings.stones)
        self._left[color] = left

    def budget_s(self, color: int, moves: float) -> float | None:
        """Seconds that the colour's next move may take; None where there is no clock.

        Args:
            moves: own moves still to be expected, at least 1; see :func:`moves_left`.
        """
        left = self._time_left(color)
        if left is None:
            return None
        if left.stones > 0:
            return self._keep_back(left.seconds / left.stones)
        if not self._settings.has_overtime:
            return self._keep_back(left.seconds) / max(moves, 1.0)
        # Main time is spent on top of what overtime grants for every move; at its end the two meet.
        grant = self._settings.period_s / self._settings.stones
        return self._keep_back(max(min(left.seconds, left.seconds / max(moves, 1.0) + grant), grant))

    def spend(self, color: int, seconds: float) -> None:
        """Note that a move of the colour took so long."""
        left, settings = self._time_left(color), self._settings
        if left is None:
            return
        rest, stones = left.seconds - seconds, left.stones
        if stones == 0 and rest <= 0 and settings.has_overtime:
            rest, stones = rest + settings.period_s, settings.stones
        if stones == 1:
            # The period is complete. A client that never sent its settings is taken to grant the same again.
            rest = settings.period_s if settings.has_overtime else left.seconds
            stones = settings.stones if settings.has_overtime else 1
        elif stones > 1:
            stones -= 1
        self._left[color] = TimeLeft(max(0.0, rest), stones)

    def _time_left(self, color: int) -> TimeLeft | None:
        """A colour's clock, None where there is none."""
        if color in self._left:
            return self._left[color]
        settings = self._settings
        if not settings.is_limited:
            return None
        return TimeLeft(settings.main_s) if settings.main_s > 0 else TimeLeft(settings.period_s, settings.stones)

    def _keep_back(self, seconds: float) -> float:
        """Less the lag, or half where that is less."""
        return seconds - min(self.lag_s, seconds / 2)
