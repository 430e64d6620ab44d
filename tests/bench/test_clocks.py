"""Clocks of a match: parsing, remaining time, and GTP commands for engines that support only some kinds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.match.clocks import Dialect, PlayerClock, kind_of, time_control
from engine.play.clock import NO_CLOCK, TimeSettings, absolute, byoyomi, canadian, fischer


def test_main_time_runs_into_the_periods():
    clock = PlayerClock(canadian(10.0, 30.0, 5))
    assert clock.limit_s() == 40.0
    assert clock.spend(15.0, 0.0)
    assert (clock.left.seconds, clock.left.stones) == (25.0, 4)
    for _ in range(4):
        assert clock.spend(6.0, 0.0)
    assert (clock.left.seconds, clock.left.stones) == (30.0, 5)
    assert not clock.spend(30.1, 0.0)


def test_seconds_a_move_are_periods_of_one_stone():
    clock = PlayerClock(time_control("3"))
    assert (clock.left.seconds, clock.left.stones, clock.limit_s()) == (3.0, 1, 3.0)
    assert clock.spend(2.9, 0.0) and clock.left.seconds == 3.0
    assert clock.spend(3.4, 0.5) and clock.left.seconds == 3.0
    assert clock.overrun_s == pytest.approx(0.4)
    assert not clock.spend(3.6, 0.5)


def test_byoyomi_periods_are_lost_one_by_one():
    clock = PlayerClock(byoyomi(10.0, 1.0, 3))
    assert clock.limit_s() == 13.0
    assert clock.spend(10.5, 0.0)
    assert (clock.left.periods, clock.limit_s()) == (3, 3.0)
    assert clock.spend(1.5, 0.0)
    assert (clock.left.periods, clock.limit_s()) == (2, 2.0)
    assert not clock.spend(2.1, 0.0)


def test_fischer_time_grows():
    clock = PlayerClock(fischer(10.0, 1.0))
    assert clock.spend(0.0, 0.0) and clock.limit_s() == 11.0
    assert clock.spend(11.0, 0.0) and clock.limit_s() == 1.0
    assert not clock.spend(1.1, 0.0)


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("5", canadian(0.0, 5.0, 1), "canadian"),
        ("0.5", canadian(0.0, 0.5, 1), "canadian"),
        ("600+0", absolute(600.0), "absolute"),
        ("600+30/5", canadian(600.0, 30.0, 5), "canadian"),
        ("0+10", canadian(0.0, 10.0, 1), "canadian"),
        ("10+5x1", byoyomi(10.0, 1.0, 5), "byoyomi"),
        ("3x1.5", byoyomi(0.0, 1.5, 3), "byoyomi"),
        ("10+1f", fischer(10.0, 1.0), "fischer"),
        ("10+0.5f", fischer(10.0, 0.5), "fischer"),
    ],
)
def test_time_controls_are_read(text, expected, kind):
    assert time_control(text) == expected
    assert kind_of(expected) == kind


@pytest.mark.parametrize(
    "odd",
    [
        NO_CLOCK,
        TimeSettings(move_s=5.0),
        TimeSettings(10.0, 5.0, 5, 3),
        TimeSettings(10.0, 5.0, 1, 1, increment_s=1.0),
    ],
)
def test_a_clock_of_no_known_kind_is_refused(odd):
    with pytest.raises(ValueError, match="expected a clock of one of the kinds"):
        kind_of(odd)


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (fischer(10.0, 1.0, 30.0, 5.0), "fischer-capped 10 1 30 5"),
        (fischer(10.0, 1.0, limit_s=30.0), "fischer-capped 10 1 30 -1"),
        (fischer(10.0, 1.0, move_s=5.0), "fischer-capped 10 1 -1 5"),
        (fischer(10.0, 0.0, move_s=5.0), "fischer-capped 10 0 -1 5"),
    ],
)
def test_capped_fischer_time_is_told_in_full_or_not_at_all(control, words):
    assert PlayerClock(control, Dialect.KATA).settings_command() == f"kata-time_settings {words}"
    for dialect in (Dialect.GTP, Dialect.KGS):
        with pytest.raises(ValueError, match=f"{dialect.value} does not support fischer-capped time"):
            PlayerClock(control, dialect).settings_command()


def test_no_move_takes_longer_than_its_own_limit():
    clock = PlayerClock(fischer(10.0, 1.0, move_s=5.0))
    assert clock.limit_s() == 5.0
    assert clock.spend(5.0, 0.0) and not clock.spend(5.5, 0.0)


@pytest.mark.parametrize(("control", "had_s"), [(absolute(10.0), 10.0), (fischer(10.0, 1.0), 110.0)])
def test_what_is_forgiven_is_owed(control, had_s):
    """Half a second of tolerance gave a player 147 s of 10."""
    clock, spent_s = PlayerClock(control), 0.0
    move_s = 0.49 + (control.increment_s or 0.0)
    for _ in range(100):
        spent_s += move_s
        if not clock.spend(move_s, 0.5):
            break
    assert clock.overrun_s > 0.5
    assert spent_s < had_s + 1.0


@pytest.mark.parametrize(
    "text",
    ["", "0", "0+0", "x", "-3", "5+", "10+5/0", "1+2+3", "5 s", "inf", "10+5x0", "10+0x5", "10+0f", "10+5x1f", "10f",
     "1+10f", "10+5/" + "9" * 400, "10+" + "9" * 5000 + "x5", "9" * 400],
)  # fmt: skip
def test_no_time_control(text):
    with pytest.raises(ValueError, match="expected S, M"):
        time_control(text)


class PlainEngine:
    """The remaining time as an engine with GTP's own commands alone computes it."""

    def __init__(self, words):
        self.main_s, self.period_s, self.stones = (float(word) for word in words.split()[1:])

    def most_s(self, told):
        """Seconds for a move by that engine's computation."""
        seconds, stones = (float(word) for word in told.split())
        if stones > 0:
            return seconds / stones
        return seconds + self.period_s if self.stones == 1 else seconds


@given(
    control=st.one_of(
        st.builds(absolute, st.floats(1, 100)),
        st.builds(byoyomi, st.floats(0, 100), st.floats(0.5, 30), st.integers(1, 9)),
        st.builds(fischer, st.floats(0, 100), st.floats(0.5, 30)),
    ),
    shares=st.lists(st.floats(0, 1), min_size=30, max_size=30),
)
def test_an_engine_that_knows_only_canadian_time_cannot_lose_by_what_it_is_told(control, shares):
    clock = PlayerClock(control)
    engine = PlainEngine(clock.settings_command())
    for share in shares:
        assert clock.spend(share * engine.most_s(clock.left_words()), 1e-6)


@pytest.mark.parametrize("dialect", Dialect)
def test_what_is_told_is_never_more_than_is_left(dialect):
    clock = PlayerClock(byoyomi(10.0, 3.0, 3), dialect)
    for seconds in (0.001, 3.3333, 6.0, 4.0, 2.9999):
        told = float(clock.left_words().split()[0])
        assert told <= clock.limit_s()
        clock.spend(seconds, 0.0)
    assert clock.left_words() == {"GTP": "3 0", "KGS": "3 2", "KATA": "3 2"}[dialect.name]
