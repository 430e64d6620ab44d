"""Budgets from clocks: tables of cases, and whole games on every clock against a referee who forgives nothing."""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.go.geometry import BLACK, WHITE
from engine.play.clock import (
    AT_ONCE_SHARE,
    DELAY,
    EXTENSION,
    Clock,
    TimeLeft,
    TimeSettings,
    absolute,
    budget,
    byoyomi,
    canadian,
    charge,
    fischer,
    main_share,
    moves_left,
    weight,
)

LAG_S = 0.5
AREA = 361


def configured(settings):
    clock = Clock(LAG_S)
    clock.configure(settings)
    return clock


@pytest.mark.parametrize(
    ("settings", "is_kept"),
    [
        (absolute(600), True),
        (fischer(0, 5), True),
        (byoyomi(60, 30, 5), True),
        (byoyomi(0, 30, 5), False),
        (canadian(0, 30, 2), True),
        (canadian(0, 30, 1), False),
    ],
)
def test_budgets_know_whether_later_moves_have_what_is_left(settings, is_kept):
    assert configured(settings).budget(BLACK, 0, AREA).is_kept is is_kept


@pytest.mark.parametrize(
    ("settings", "is_limited"),
    [
        (TimeSettings(), False),
        (absolute(600), True),
        (absolute(-5), False),
        (absolute(0), False),
        (canadian(600, 0, 0), True),
        (canadian(600, 1, 0), False),
        (canadian(0, 1, 0), False),
        (canadian(60, 30, -1), False),
        (canadian(-60, 30, 1), True),
        (canadian(0, -10, 25), False),
        (byoyomi(0, 30, 5), True),
        (byoyomi(0, 30, 0), False),
        (byoyomi(10, 0, 5), True),
        (fischer(0, 5), True),
        (fischer(10, -5), True),
        (fischer(-10, 0, -1, -1), False),
    ],
)
def test_settings_know_whether_there_is_a_clock(settings, is_limited):
    assert settings.is_limited == is_limited
    assert (configured(settings).budget(BLACK, 0, AREA) is not None) == is_limited


def test_odd_numbers_of_a_clock_are_clamped():
    assert canadian(-60, 30, 5) == TimeSettings(0, 30, 5, 1)
    assert byoyomi(-1, 30, 5) == TimeSettings(0, 30, 1, 5)
    assert fischer(60, 10, 20, -1) == TimeSettings(60, increment_s=10, limit_s=60)


OVERTIME = [
    # seconds, stones, periods -> target and most
    (canadian(600, 30, 1), (30, 1, 1), 29.5, 29.5),
    (canadian(600, 300, 25), (300, 25, 1), 11.5, 23.5),
    (canadian(600, 300, 25), (20, 2, 1), 9.5, 14.5),
    (canadian(600, 10, 25), (10, 25, 1), 0.2, 0.4),
    (canadian(600, 10, 25), (0, 3, 1), 0.0, 0.0),
    (byoyomi(600, 30, 5), (30, 1, 5), 29.5, 29.5),
    (byoyomi(600, 30, 5), (30, 1, 1), 29.5, 29.5),
    (byoyomi(600, 1, 5), (0.6, 1, 3), 0.3, 0.3),
]


@pytest.mark.parametrize(("settings", "left", "soft_s", "hard_s"), OVERTIME)
def test_in_overtime_a_move_gets_its_part_of_the_period(settings, left, soft_s, hard_s):
    found = budget(settings, TimeLeft(*left), 100, AREA, LAG_S)
    assert (found.soft_s, found.hard_s) == (pytest.approx(soft_s), pytest.approx(hard_s))


def test_main_time_is_spent_on_top_of_what_overtime_grants():
    share = main_share(100, AREA)
    for control, grant in ((canadian(600, 300, 25), 12.0), (byoyomi(600, 30, 5), 30.0)):
        found = budget(control, TimeLeft(600), 100, AREA, LAG_S)
        extra = 0.5 * weight(100, AREA) * grant
        target = max(grant, 600 * share + extra)
        assert found.soft_s == pytest.approx(target - LAG_S)
        assert found.hard_s == pytest.approx(min(EXTENSION * target, EXTENSION * 600 * share + grant + extra) - LAG_S)
        # At its end it runs into the first period, which costs nothing.
        found = budget(control, TimeLeft(grant / 2), 100, AREA, LAG_S)
        assert (found.soft_s, found.hard_s) == (grant - LAG_S, pytest.approx(1.5 * grant - LAG_S))


def test_before_byoyomi_no_move_takes_much_longer_than_a_period_or_two():
    """A game of 600 s and 30 s a move began with a move of 95 s, and main time was gone after ten."""
    control, clock, taken = byoyomi(600, 30, 5), configured(byoyomi(600, 30, 5)), []
    for n in range(60):
        taken.append(clock.budget(BLACK, 2 * n, AREA))
        clock.spend(BLACK, taken[-1].soft_s)
    assert all(one.soft_s < 1.2 * control.period_s and one.hard_s < 2.2 * control.period_s for one in taken)
    assert all(one.hard_s < 1.8 * control.period_s for one in taken[:5]), "the opening"
    in_main_time = sum(one.hard_s > control.period_s for one in taken)
    assert 15 < in_main_time < 40


def test_under_fischer_the_increment_is_spent_and_a_share_of_what_lies_beyond_a_reserve():
    main = main_share(100, AREA) * (600 - 22)
    found = budget(fischer(600, 10), TimeLeft(600), 100, AREA, LAG_S)
    assert found.soft_s == pytest.approx(10 + main)
    assert found.hard_s == pytest.approx(found.soft_s + main + 5)
    scarce = ((22, 0, 10, 15), (21, 0, 9, 14), (10, 0, 7, 8), (3, 0, 1.5, 1.5), (15, 15, 10, 13))
    for left_s, limit_s, soft_s, hard_s in scarce:
        found = budget(fischer(15, 10, limit_s), TimeLeft(left_s), 100, AREA, LAG_S)
        assert (found.soft_s, found.hard_s) == (pytest.approx(soft_s), pytest.approx(hard_s))
    found = budget(fischer(600, 10, move_s=5), TimeLeft(600), 100, AREA, LAG_S)
    assert (found.soft_s, found.hard_s) == (4.5, 4.5)


def test_absolute_time_keeps_a_reserve_for_delays():
    kept_s = DELAY * LAG_S * AT_ONCE_SHARE * AREA
    assert kept_s == pytest.approx(10.83)
    found = budget(absolute(100), TimeLeft(100), 100, AREA, LAG_S)
    assert found.soft_s == pytest.approx((100 - kept_s) * main_share(100, AREA))
    assert found.hard_s == pytest.approx(EXTENSION * found.soft_s)
    assert budget(absolute(100), TimeLeft(8.8), 100, AREA, LAG_S).hard_s == 0
    assert budget(absolute(100), TimeLeft(10.8), 700, AREA, LAG_S).hard_s == 0
    assert budget(absolute(10), TimeLeft(2), 0, AREA, LAG_S).hard_s == 0
    assert budget(absolute(10), TimeLeft(2.1), 0, AREA, LAG_S).hard_s > 0


@pytest.mark.parametrize("extended", [0.0, 1.0])
@pytest.mark.parametrize(("main_s", "area"), [(15.0, 81), (60.0, 361), (600.0, 361)])
def test_absolute_time_lasts_for_a_long_game_on_a_busy_machine(main_s, area, extended):
    """Where every move costs 40 ms beyond what it plans, a game of 15 s on 9x9 once was lost at its 111th move."""
    referee, chance = Referee("absolute", main_s, 0.0, 1), random.Random(7)
    clock = configured(absolute(main_s))
    for n in range(int(0.75 * area)):
        clock.set_left(BLACK, *referee.told())
        found = clock.budget(BLACK, 2 * n, area)
        assert referee.charge((found.hard_s if chance.random() < extended else found.soft_s) + 0.04) == 0


@pytest.mark.parametrize(
    ("settings", "told", "left"),
    [
        (absolute(600), (100, 0), TimeLeft(100)),
        (absolute(600), (-3, 0), TimeLeft(0)),
        (canadian(600, 300, 25), (100, 10), TimeLeft(100, 10, 1)),
        (canadian(600, 300, 25), (-2, 0), TimeLeft(300, 25, 1)),
        (canadian(600, 300, 25), (-2, 3), TimeLeft(0, 3, 1)),
        (canadian(600, 300, 25), (5, -1), TimeLeft(5)),
        (canadian(600, 30, 1), (20, 1), TimeLeft(20, 1, 1)),
        (byoyomi(600, 30, 5), (20, 3), TimeLeft(20, 1, 3)),
        (byoyomi(600, 30, 5), (20, 0), TimeLeft(20)),
        (byoyomi(600, 30, 5), (0, 0), TimeLeft(30, 1, 5)),
        (fischer(600, 10), (0, 0), TimeLeft(0)),
        (fischer(600, 10), (100, 1), TimeLeft(100)),
    ],
)
def test_a_clients_word_replaces_our_account(settings, told, left):
    clock = configured(settings)
    clock.set_left(BLACK, *told)
    assert clock.budget(BLACK, 50, AREA) == budget(settings, left, 50, AREA, LAG_S)


@pytest.mark.parametrize(("told", "left"), [((30, 3), TimeLeft(30, 3, 1)), ((100, 0), TimeLeft(100))])
def test_a_client_that_sends_no_settings_is_believed_until_it_sends_zeros(told, left):
    clock = Clock(LAG_S)
    clock.set_left(BLACK, 0, 0)
    assert clock.budget(BLACK, 50, AREA) is None
    clock.set_left(BLACK, *told)
    assert clock.budget(BLACK, 50, AREA) == budget(TimeSettings(), left, 50, AREA, LAG_S)
    clock.set_left(BLACK, 0, 0)
    assert clock.budget(BLACK, 50, AREA) is None


def test_a_clock_that_was_set_to_none_stays_so_whatever_time_is_left():
    """GTP 2, section 4.2: no limits until other settings come."""
    clock = configured(canadian(1, 1, 0))
    clock.set_left(BLACK, 30, 0)
    assert clock.budget(BLACK, 50, AREA) is None


@pytest.mark.parametrize(
    ("settings", "left", "seconds", "after", "overrun_s"),
    [
        (absolute(60), (60,), 10, (50,), 0),
        (absolute(60), (5,), 7, (0,), 2),
        (canadian(60, 30, 3), (5,), 7, (28, 2, 1), 0),
        (canadian(60, 30, 3), (28, 2, 1), 8, (20, 1, 1), 0),
        (canadian(60, 30, 3), (20, 1, 1), 8, (30, 3, 1), 0),
        (canadian(60, 30, 3), (20, 1, 1), 21, (30, 3, 1), 1),
        (byoyomi(60, 30, 3), (5,), 20, (30, 1, 3), 0),
        (byoyomi(60, 30, 3), (5,), 36, (30, 1, 2), 0),
        (byoyomi(60, 30, 3), (30, 1, 3), 30, (30, 1, 3), 0),
        (byoyomi(60, 30, 3), (30, 1, 3), 61, (30, 1, 1), 0),
        (byoyomi(60, 30, 3), (30, 1, 3), 91, (30, 1, 1), 1),
        (byoyomi(60, 30, 3), (10, 1, 1), 12, (30, 1, 1), 2),
        (byoyomi(0, 2**-30, 10**18), (2**-30, 1, 10**18), 3600, (2**-30, 1, 10**18 - 3600 * 2**30 + 1), 0),
        (fischer(60, 10), (60,), 5, (65,), 0),
        (fischer(60, 10), (4,), 5, (10,), 1),
        (fischer(60, 10, 62, 20), (60,), 5, (62,), 0),
        (fischer(60, 10, 62, 20), (60,), 23, (47,), 3),
        (TimeSettings(), (30, 1, 1), 5, (30, 1, 1), 0),
    ],
)
def test_what_a_move_leaves_of_a_clock(settings, left, seconds, after, overrun_s):
    assert charge(settings, TimeLeft(*left), seconds) == (TimeLeft(*after), overrun_s)


def test_each_colour_has_its_own_clock_and_a_new_game_fills_both():
    clock = configured(absolute(600))
    full = clock.budget(BLACK, 0, AREA)
    clock.spend(WHITE, 500)
    assert clock.budget(BLACK, 0, AREA) == full
    assert clock.budget(WHITE, 0, AREA).soft_s < full.soft_s / 5
    clock.begin_game()
    assert clock.budget(WHITE, 0, AREA) == full


@pytest.mark.parametrize(
    ("n_moves", "area", "moves"), [(0, 361, 126.35), (100, 361, 76.35), (400, 361, 28.88), (90, 81, 12)]
)
def test_moves_left(n_moves, area, moves):
    assert moves_left(n_moves, area) == pytest.approx(moves)


@pytest.mark.parametrize("area", [49, 81, 169, 361, 625])
def test_the_middle_game_gets_the_most_and_the_curve_is_smooth(area):
    weights = [weight(n, area) for n in range(area)]
    height = weights.index(max(weights))
    assert 0.2 * area < height < 0.3 * area
    assert weights[height] > 1.8 * weights[0]
    assert weights[height] > 1.9 * weights[-1]
    assert weights == sorted(weights[:height]) + sorted(weights[height:], reverse=True)
    assert max(abs(a - b) for a, b in pairwise(weights)) < 8 / area


class Referee:
    """A strict clock of one colour: what is left is a list of pieces, each spent before the next."""

    def __init__(self, kind, main_s, extra_s, count):
        self.kind, self.extra_s, self.count = kind, extra_s, count
        self.main_s = main_s
        self.pieces = [extra_s] * (count if kind == "byoyomi" else 1 if kind == "canadian" else 0)
        self.stones = count

    def charge(self, seconds):
        """Take a move's time; returns the seconds by which the flag had fallen."""
        taken = min(self.main_s, seconds)
        self.main_s -= taken
        seconds -= taken
        while seconds > 1e-9 and self.pieces:
            taken = min(self.pieces[0], seconds)
            self.pieces[0] -= taken
            seconds -= taken
            if seconds > 1e-9 and len(self.pieces) > 1:
                self.pieces.pop(0)
            elif seconds > 1e-9:
                break
        if self.kind == "fischer":
            self.main_s += self.extra_s
        if self.kind == "byoyomi" and self.pieces:
            self.pieces[0] = self.extra_s
        if self.kind == "canadian" and self.in_overtime:
            self.stones -= 1
            if self.stones == 0:
                self.pieces, self.stones = [self.extra_s], self.count
        return seconds if seconds > 1e-9 else 0.0

    @property
    def in_overtime(self):
        return self.main_s <= 0 and bool(self.pieces) and (self.kind == "byoyomi" or self.pieces[0] < self.extra_s)

    def told(self):
        """What the client says: seconds and stones or periods."""
        if self.main_s > 0 or not self.pieces:
            return self.main_s, 0
        return self.pieces[0], len(self.pieces) if self.kind == "byoyomi" else self.stones


MAKE = {
    "absolute": lambda main, extra, count: absolute(main),
    "canadian": canadian,
    "byoyomi": byoyomi,
    "fischer": lambda main, extra, count: fischer(main, extra),
}


@given(
    kind=st.sampled_from(list(MAKE)),
    main_s=st.floats(0, 3600),
    extra_s=st.floats(0.1, 300),
    count=st.integers(1, 25),
    area=st.sampled_from([4, 81, 361, 625]),
    lag_s=st.sampled_from([0.0, 0.1, 0.5, 5.0]),
    tells=st.booleans(),
    seed=st.integers(0, 2**32),
)
@example(kind="byoyomi", main_s=10.0, extra_s=1.0, count=5, area=81, lag_s=0.5, tells=True, seed=1)
@example(kind="fischer", main_s=10.0, extra_s=1.0, count=1, area=81, lag_s=0.5, tells=True, seed=1)
def test_no_clock_is_overstepped_by_more_than_the_lag(kind, main_s, extra_s, count, area, lag_s, tells, seed):
    """250 moves of any length up to the hard maximum, and every one of them late by up to the lag.

    Where the client tells us nothing there is no delay either: our account is then the only one.
    """
    referee, chance = Referee(kind, main_s, extra_s, count), random.Random(seed)
    clock = Clock(lag_s)
    clock.configure(MAKE[kind](main_s, extra_s, count))
    for n in range(250):
        before = sum(referee.pieces[:1]) + referee.main_s
        if tells:
            clock.set_left(BLACK, *referee.told())
        found = clock.budget(BLACK, 2 * n, area)
        if found is None:
            assert kind == "absolute" and main_s == 0
            return
        assert 0 <= found.soft_s <= found.hard_s or found.soft_s == pytest.approx(found.hard_s)
        used_s = found.hard_s * chance.choice([chance.random(), 1.0])
        late_s = lag_s * chance.choice([chance.random(), 1.0]) if tells else 0.0
        overrun_s = referee.charge(used_s + late_s)
        assert overrun_s <= late_s
        if used_s + late_s > 0 and before >= 2 * lag_s * max(1, referee.stones) and kind != "absolute":
            assert overrun_s == 0
        clock.spend(BLACK, used_s)


CLOCKS = [
    ("absolute", 10, 0, 1),
    ("absolute", 60, 0, 1),
    ("absolute", 1800, 0, 1),
    ("canadian", 60, 30, 5),
    ("byoyomi", 10, 1, 5),
    ("byoyomi", 600, 30, 5),
    ("fischer", 10, 1, 1),
    ("fischer", 60, 10, 1),
    ("fischer", 300, 10, 1),
]


@pytest.mark.parametrize(("kind", "main_s", "extra_s", "count"), CLOCKS)
@pytest.mark.parametrize("area", [81, 361])
@pytest.mark.parametrize("extended", [0.0, 0.3, 1.0])
def test_a_game_uses_its_time_and_never_loses_by_it(kind, main_s, extra_s, count, area, extended):
    """120 own moves, each a little late; some use the hard maximum, the others the target.

    Under Fischer's clock each from the 40th on ended a lag before the flag would have fallen.
    """
    late_s = 0.02 if main_s >= 60 or extra_s else 0.002
    referee, chance = Referee(kind, main_s, extra_s, count), random.Random(7)
    clock = Clock(LAG_S)
    clock.configure(MAKE[kind](main_s, extra_s, count))
    for n in range(120):
        clock.set_left(BLACK, *referee.told())
        found = clock.budget(BLACK, 2 * n, area)
        used_s = found.hard_s if chance.random() < extended else found.soft_s
        assert kind != "fischer" or referee.main_s - used_s > 1.8 * LAG_S
        assert referee.charge(used_s + late_s) == 0
    if kind == "fischer":
        assert referee.main_s < main_s / 2 + extra_s
    else:
        assert referee.main_s < main_s / 2
    assert kind != "byoyomi" or len(referee.pieces) == count


def test_most_moves_of_a_middle_game_cost_more_than_those_of_an_opening():
    clock = configured(absolute(1800))
    spent = []
    for n in range(126):
        spent.append(clock.budget(BLACK, 2 * n, AREA).soft_s)
        clock.spend(BLACK, spent[-1])
    opening, middle, end = (sum(spent[a:b]) / (b - a) for a, b in ((0, 20), (35, 55), (105, 125)))
    assert middle > 1.5 * opening
    assert middle > 1.5 * end
    assert math.isclose(spent[0], spent[1], rel_tol=0.05)
