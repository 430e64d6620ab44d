"""Each reason to stop, asked with plain figures."""

import threading

import pytest

from engine.search.stoppers import (
    UNLIMITED,
    Decided,
    GameDecided,
    Interrupt,
    MemoryFull,
    PlayoutLimit,
    Progress,
    SearchLimits,
    TimeLimit,
    VisitLimit,
    playouts_allowed,
)


def progress(**changes) -> Progress:
    """A search of one second and 100 visits, with some figures changed."""
    figures = {
        "visits": 100,
        "in_flight": 4,
        "playouts": 80,
        "elapsed_s": 1.0,
        "best_visits": 60,
        "second_visits": 20,
        "value_margin": 0.1,
        "value": 0.5,
        "full": False,
        "seconds_per_playout": 0.01,
    }
    return Progress(**(figures | changes))


CASES = [
    (VisitLimit(150), {}, 46),
    (VisitLimit(103), {}, 0),
    (VisitLimit(50), {}, 0),
    (PlayoutLimit(100), {}, 16),
    (PlayoutLimit(83), {}, 0),
    (TimeLimit(2.0), {}, 96),
    (TimeLimit(1.03), {}, 0),
    (TimeLimit(1.0), {}, 0),
    (TimeLimit(2.0), {"seconds_per_playout": 0.0}, UNLIMITED),
    (TimeLimit(2.0), {"seconds_per_playout": 0.2, "seconds_per_evaluation": 0.4}, 0),
    (TimeLimit(2.0), {"seconds_per_playout": 0.2, "seconds_per_evaluation": 0.4, "in_flight": 1}, 3),
    (TimeLimit(1.39), {"seconds_per_playout": 0.2, "seconds_per_evaluation": 0.4, "in_flight": 0}, 0),
    (TimeLimit(1.39), {"seconds_per_playout": 0.2, "seconds_per_evaluation": 0.4, "in_flight": 0, "playouts": 0}, 1),
    (TimeLimit(1.5, 2.0), {}, 46),
    (TimeLimit(1.5, 2.0), {"value_margin": -0.1}, 96),
    (TimeLimit(1.5, 2.0), {"second_visits": 55}, 96),
    (TimeLimit(1.0, 2.0), {}, 0),
    (TimeLimit(1.5, 1.0), {"value_margin": -0.1}, 46),
    (MemoryFull(), {}, UNLIMITED),
    (MemoryFull(), {"full": True}, 0),
    (Decided(140, 0.0), {}, UNLIMITED),
    (Decided(139, 0.0), {}, 0),
    (Decided(0, 1.4), {}, 0),
    (Decided(0, 1.5), {}, UNLIMITED),
    (Decided(0, 1.4), {"elapsed_s": 0.1, "playouts": 1}, UNLIMITED),
    (Decided(1000, 1.4), {}, 0),
    (Decided(0, 1.4, 1.5), {"value_margin": -0.1}, UNLIMITED),
    (Decided(0, 1.2, 1.4), {"value_margin": -0.1}, 0),
    (Decided(0, 1.4, 1.5), {}, 0),
    (Decided(0, 0.0), {}, UNLIMITED),
    (GameDecided(4.9), {}, UNLIMITED),
    (GameDecided(4.9), {"value": 0.97}, 0),
    (GameDecided(4.9), {"value": -0.97}, 0),
    (GameDecided(4.9), {"value": 0.97, "visits": 40}, UNLIMITED),
    (GameDecided(5.1), {"value": 0.97}, UNLIMITED),
]


@pytest.mark.parametrize(("stopper", "changes", "expected"), CASES)
def test_each_stopper_says_how_much_may_be_started(stopper, changes, expected):
    assert stopper.playouts_allowed(progress(**changes)) == expected


@pytest.mark.parametrize(
    ("changes", "is_choice_open"),
    [
        ({}, False),
        ({"second_visits": 54}, False),
        ({"second_visits": 55}, True),
        ({"value_margin": -0.01}, False),
        ({"value_margin": -0.02}, True),
        ({"value_margin": 2.0, "second_visits": 0}, False),
    ],
)
def test_a_choice_is_unsettled_while_the_lead_is_thin_or_a_rival_looks_better(changes, is_choice_open):
    assert progress(**changes).is_choice_open == is_choice_open


def test_an_interrupt_lasts():
    event = threading.Event()
    assert Interrupt(event).playouts_allowed(progress()) == UNLIMITED
    event.set()
    assert Interrupt(event).playouts_allowed(progress()) == 0


def test_the_smallest_allowance_counts():
    assert playouts_allowed([VisitLimit(150), TimeLimit(1.2), MemoryFull()], progress()) == 15


def test_both_limits_are_the_smaller_ones():
    both = SearchLimits(visits=100, soft_s=2.0, hard_s=2.0) & SearchLimits(visits=40, playouts=7)
    assert both == SearchLimits(visits=40, soft_s=2.0, hard_s=2.0, playouts=7)


def test_a_limit_of_playouts_is_a_limit():
    assert not SearchLimits(playouts=5).is_urgent
    with pytest.raises(ValueError, match="a search needs a limit"):
        SearchLimits()
