"""The clocks of a game: main time, byo-yomi, increments, pauses, flags. Time is the test's own."""

import math
import threading

import pytest

from engine.go.geometry import BLACK, WHITE
from gtp.web.clocks import GameClock
from gtp.web.settings import ClockSettings, clock_from


class Hand:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += seconds


@pytest.fixture
def hand():
    return Hand()


def black(clock):
    """Black's seconds, whether they are a period's, and the periods."""
    shown = clock.state()["black"]
    return shown["seconds"], shown["inPeriod"], shown["periods"]


def test_main_time_then_periods(hand):
    clock = GameClock(ClockSettings(60.0, 10.0, 3), now=hand)
    clock.start(BLACK)
    hand.pass_(50.0)
    assert black(clock) == (10.0, False, 3) and clock.seconds_to_flag() == 40.0
    hand.pass_(15.0)
    assert black(clock) == (5.0, True, 3)
    hand.pass_(10.0)
    assert black(clock) == (5.0, True, 2)
    assert clock.move(BLACK) and black(clock) == (10.0, True, 2)
    clock.start(BLACK)
    hand.pass_(21.0)
    assert black(clock)[0] == 0.0 and clock.seconds_to_flag() == -1.0
    assert not clock.move(BLACK)


def test_increments(hand):
    clock = GameClock(ClockSettings(60.0, inc_s=5.0), now=hand)
    clock.start(WHITE)
    hand.pass_(10.0)
    assert clock.move(WHITE) and clock.state()["white"]["seconds"] == 55.0
    assert clock.state()["white"]["increment"] == 5.0 and black(clock) == (60.0, False, 0)


def test_one_clock_runs(hand):
    clock = GameClock(ClockSettings(60.0), now=hand)
    assert clock.running == 0 and clock.seconds_to_flag() == math.inf
    clock.start(BLACK)
    hand.pass_(1.0)
    clock.move(BLACK)
    clock.start(WHITE)
    hand.pass_(2.0)
    assert black(clock)[0] == 59.0 and clock.state()["white"] | {"running": True} == clock.state()["white"]
    assert clock.move(BLACK)


def test_a_pause_counts_the_time_so_far(hand):
    clock = GameClock(ClockSettings(60.0, 10.0, 2), now=hand)
    clock.start(BLACK)
    hand.pass_(65.0)
    clock.pause()
    hand.pass_(1000.0)
    assert black(clock) == (5.0, True, 2)
    clock.start(BLACK)
    hand.pass_(6.0)
    assert black(clock) == (9.0, True, 1)


def test_a_restart_continues(hand):
    clock, again = (GameClock(ClockSettings(60.0, 10.0, 3), now=hand) for _ in range(2))
    clock.start(BLACK)
    hand.pass_(62.0)
    clock.move(BLACK)
    again.restore(clock.to_json())
    assert again.state() == clock.state()


@pytest.mark.parametrize(
    "saved", [None, 3, {}, {"black": 1}, {"black": [1]}, {"black": ["x", 1, 1]}, {"black": [-5, 0, 0]}]
)
def test_what_was_saved_may_be_damaged(hand, saved):
    clock = GameClock(ClockSettings(60.0), now=hand)
    clock.restore(saved)
    assert black(clock)[0] in (0.0, 60.0)


def test_the_engine_gets_the_same_times(hand):
    clock = GameClock(ClockSettings(60.0, 10.0, 3), now=hand)
    clock.start(BLACK)
    hand.pass_(85.0)
    clock.move(BLACK)
    budget = clock.for_engine().budget(BLACK, 50, 81)
    assert 5.0 < budget.hard_s < 10.0


def test_a_timer_tells_when_a_flag_may_fall():
    fallen, done = [], threading.Event()
    clock = GameClock(ClockSettings(0.02), lambda color: (fallen.append(color), done.set()))
    clock.start(WHITE)
    done.wait()
    assert fallen == [WHITE] and clock.seconds_to_flag() <= 0.0


@pytest.mark.parametrize(
    "body, expected",
    [
        ({"mainSeconds": 60}, ClockSettings(60.0)),
        ({"mainSeconds": 0}, None),
        ({"byoSeconds": 30, "byoPeriods": 5}, ClockSettings(0.0, 30.0, 5)),
        ({"byoSeconds": 30}, ClockSettings(0.0, 30.0, 1)),
        ({"mainSeconds": 60, "incSeconds": 2}, ClockSettings(60.0, inc_s=2.0)),
    ],
)
def test_settings_of_the_page(body, expected):
    assert clock_from(body) == expected
