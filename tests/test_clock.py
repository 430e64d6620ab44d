"""Budgets from clocks: a table of cases, and a referee's clock that must never run out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.clock import Clock, TimeSettings, moves_left
from engine.go.geometry import BLACK, WHITE

LAG_S = 0.5


def configured(main_s, period_s, stones):
    clock = Clock(LAG_S)
    clock.configure(main_s, period_s, stones)
    return clock


@pytest.mark.parametrize(
    ("settings", "moves", "budget_s"),
    [
        ((0, 0, 0), 50, None),
        ((0, 1, 0), 50, None),
        ((600, 1, 0), 50, None),
        ((-5, 0, 0), 50, None),
        ((600, 0, 0), 100, 5.995),
        ((600, 0, 25), 100, 5.995),
        ((1, 0, 0), 10, 0.05),
        ((0.2, 0, 0), 10, 0.01),
        ((0, 30, 1), 50, 29.5),
        ((0, 300, 25), 50, 11.5),
        ((0, 10, 25), 50, 0.2),
        ((0, -10, 25), 50, None),
        ((600, 300, 25), 100, 17.5),
        ((5, 300, 25), 100, 11.5),
        ((60, 30, 1), 100, 30.1),
        ((-60, 30, 1), 100, 29.5),
        ((60, 30, -1), 100, None),
    ],
)
def test_budget_after_time_settings(settings, moves, budget_s):
    found = configured(*settings).budget_s(BLACK, moves)
    assert found == (None if budget_s is None else pytest.approx(budget_s))


@pytest.mark.parametrize(
    ("settings", "left", "moves", "budget_s"),
    [
        ((600, 0, 0), (100, 0), 100, 0.995),
        ((600, 0, 0), (-3, 0), 100, 0.0),
        ((600, 300, 25), (100, 10), 100, 9.5),
        ((600, 300, 25), (0, 0), 100, 11.5),
        ((600, 300, 25), (-2, 0), 100, 11.5),
        ((600, 300, 25), (-2, 3), 100, 0.0),
        ((600, 300, 25), (5, -1), 100, 11.5),
        (None, (0, 0), 100, None),
        (None, (100, 0), 100, 0.995),
        (None, (30, 3), 100, 9.5),
    ],
)
def test_budget_after_time_left(settings, left, moves, budget_s):
    clock = configured(*settings) if settings else Clock(LAG_S)
    clock.set_left(BLACK, *left)
    found = clock.budget_s(BLACK, moves)
    assert found == (None if budget_s is None else pytest.approx(budget_s))


def test_each_colour_has_its_own_clock():
    clock = configured(600, 0, 0)
    clock.set_left(WHITE, 10, 0)
    assert clock.budget_s(BLACK, 100) == pytest.approx(5.995)
    assert clock.budget_s(WHITE, 100) == pytest.approx(0.095)


def test_a_new_game_fills_the_clocks_and_keeps_the_settings():
    clock = configured(600, 0, 0)
    clock.spend(BLACK, 500)
    clock.begin_game()
    assert clock.budget_s(BLACK, 100) == pytest.approx(5.995)


def test_without_word_from_the_client_the_clock_keeps_account():
    clock = configured(10, 30, 2)
    clock.spend(BLACK, 6)
    assert clock.budget_s(BLACK, 1) == pytest.approx(15 - LAG_S)
    clock.spend(BLACK, 9)
    # 5 s into the first period, one of its two moves made
    assert clock.budget_s(BLACK, 1) == pytest.approx(25 - LAG_S)
    clock.spend(BLACK, 20)
    assert clock.budget_s(BLACK, 1) == pytest.approx(15 - LAG_S)


@pytest.mark.parametrize(
    ("n_moves", "area", "moves"), [(0, 361, 126.35), (100, 361, 76.35), (400, 361, 28.88), (90, 81, 8)]
)
def test_moves_left(n_moves, area, moves):
    assert moves_left(n_moves, area) == pytest.approx(moves)


def test_settings_know_whether_there_is_a_clock():
    assert TimeSettings(0, 10, 5).has_overtime
    assert not TimeSettings(0, 10, 0).is_limited
    assert not TimeSettings(10, 0, 5).has_overtime


class Referee:
    """A strict clock for one colour under Canadian overtime or absolute time."""

    def __init__(self, main_s, period_s, stones):
        self.period_s, self.period_stones = period_s, stones
        self.left_s, self.stones = main_s, 0

    def charge(self, seconds):
        """Take a move's time; False when the flag falls."""
        self.left_s -= seconds
        if self.left_s < -1e-9 and self.stones == 0 and self.period_s > 0:
            self.left_s, self.stones = self.left_s + self.period_s, self.period_stones
        if self.left_s < -1e-9:
            return False
        if self.stones > 0:
            self.stones -= 1
            if self.stones == 0:
                self.left_s, self.stones = self.period_s, self.period_stones
        return True


@given(
    main_s=st.floats(0, 3600),
    period_s=st.one_of(st.just(0.0), st.floats(0.1, 600)),
    stones=st.integers(1, 30),
    area=st.sampled_from([4, 81, 361, 625]),
    tells=st.booleans(),
    lag_share=st.floats(0, 1),
)
def test_budgets_never_exceed_the_clock(main_s, period_s, stones, area, tells, lag_share):
    """200 moves that use their whole budget, and some of the lag where the referee's account is passed on."""
    referee = Referee(main_s, period_s, stones)
    clock = configured(main_s, period_s, stones)
    if clock.budget_s(BLACK, 1) is None:
        return
    for n in range(200):
        if tells:
            clock.set_left(BLACK, referee.left_s, referee.stones)
        budget_s = clock.budget_s(BLACK, moves_left(2 * n, area))
        assert budget_s >= 0
        # What was kept back may be lost on the way, as long as there is overtime to come.
        lost_s = lag_share * min(LAG_S, budget_s) if tells and period_s else 0.0
        assert referee.charge(budget_s + lost_s)
        clock.spend(BLACK, budget_s)
