"""The time that moves take as a referee sees it: measured at the pipe, with the network that plays by default."""

import os
import re
import time

import pytest

from engine.play.clock import DEFAULT_S
from tests.gtp.process import Engine

TRIES = 3
"""The best of so many counts, since the machine may be busy"""


def seconds_of_move(ask, *commands):
    """How long a move on the empty board takes after these commands."""
    for command in ("clear_board", *commands):
        assert ask(command) == "="
    begin = time.perf_counter()
    assert re.fullmatch("= [A-J][1-9]", ask("genmove b"))
    return time.perf_counter() - begin


@pytest.mark.parametrize(
    ("clock", "left", "least_s", "most_s"),
    [
        ("kata-time_settings fischer-capped 60 10 120 -1", "2 0", 0.0, 2.0),
        ("kgs-time_settings byoyomi 0 2 1", "2 1", 1.0, 2.0),
        ("time_settings 0 6 3", "2 1", 1.0, 2.0),
        ("kgs-time_settings byoyomi 0 30 5", "1.5 1", 0.75, 1.5),
        ("time_settings 0 30 3", "1.5 1", 0.75, 1.5),
        ("kata-time_settings absolute 60", "0.3 0", 0.0, 0.3),
    ],
    ids=["Fischer", "byo-yomi", "Canadian", "the last of a byo-yomi", "the last of a Canadian period", "absolute"],
)
def test_a_move_is_answered_in_the_time_that_is_left(network, clock, left, least_s, most_s):
    """Users lost games on time with seconds left, and in byo-yomi saw moves that used a fraction of the period."""
    for command in ("kata-set-param visits 0", "kata-set-param early-stop false"):
        assert network(command) == "="
    taken = []
    while not taken or (min(taken) >= most_s and len(taken) < TRIES):
        taken.append(seconds_of_move(network, clock, f"time_left b {left}"))
    assert least_s <= min(taken) < most_s


def test_a_move_comes_though_nobody_has_set_a_time():
    """Users whose clients send no time settings waited for ever."""
    with Engine("--weights", "default") as engine:
        engine.ready()
        unlimited = ("kata-set-param visits 0", "kata-set-param seconds 0", "time_settings 0 0 0")
        for commands in ((), unlimited):
            assert seconds_of_move(engine.ask, *commands) < 2 * DEFAULT_S


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core")
def test_a_search_uses_more_than_one_core():
    """Users found one core of many busy. Measured against one thread, since others may hold part of the machine."""
    with Engine("--seconds", "2", "--no-early-stop") as engine:
        engine.ready()

        def cores_used(threads):
            assert engine.ask(f"kata-set-param threads {threads}") == "="
            before = float(engine.ask("cputime")[2:])
            wall_s = seconds_of_move(engine.ask)
            return (float(engine.ask("cputime")[2:]) - before) / wall_s

        gains = []
        while not gains or (max(gains) <= 1.2 and len(gains) < TRIES):
            gains.append(cores_used(0) / cores_used(1))
    assert max(gains) > 1.2
