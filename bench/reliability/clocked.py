"""Games on every kind of clock, with times measured at the other end of the pipe and no tolerance.

The engine plays both sides with networks whose evaluations take 1, 50 and 400 ms, while two other processes (with
``-n`` also other games) load the processors. Time is measured from a command to its answer. Time that the hypervisor
took from the machine meanwhile (``steal`` of /proc/stat) is recorded, since no engine can account for it.

Sources: see :mod:`engine.play.clock`.
"""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.match.clocks import Dialect, PlayerClock
from bench.reliability.campaign import Outcome, Part
from bench.reliability.made_network import START_S, started
from engine.play.clock import TimeSettings, absolute, byoyomi, canadian, fischer

PART = Part(
    title="Games on eight kinds of clock, evaluations of 1, 50 and 400 ms, two busy processes beside",
    unit="games",
    wanted="240 games, no clock overstepped",
    figures={"longest move, s": max, "stolen, s": sum},
    busy=2,
    limit_s=1800.0,
)
ANSWER_S = 120.0
"""Longest wait for an answer, longer than any clock here"""
COSTS_S = (0.001, 0.05, 0.4)
MOST_MOVES = {9: 120, 19: 60}
"""Board size -> moves after which a game ends"""
QUICK_MOVES = 16
REPEATS = 5


class Kind(NamedTuple):
    """A clock and the GTP commands that the engine gets for it."""

    settings: TimeSettings
    dialect: Dialect
    tells_left: bool = True
    """whether ``time_left`` is sent before every move; otherwise the engine must keep track of its time"""


KINDS = {
    "absolute, without time_left": Kind(absolute(15.0), Dialect.GTP, tells_left=False),
    "absolute": Kind(absolute(15.0), Dialect.KATA),
    "Canadian": Kind(canadian(4.0, 6.0, 5), Dialect.GTP),
    "Canadian of KGS, without time_left": Kind(canadian(0.0, 6.0, 5), Dialect.KGS, tells_left=False),
    "byo-yomi of KGS": Kind(byoyomi(4.0, 2.0, 3), Dialect.KGS),
    "byo-yomi": Kind(byoyomi(0.0, 1.0, 3), Dialect.KATA),
    "Fischer": Kind(fischer(5.0, 0.5), Dialect.KATA),
    "capped Fischer": Kind(fischer(5.0, 1.0, 8.0, 2.0), Dialect.KATA),
}


def stolen_s() -> float:
    """Processor time in seconds that the hypervisor took from this machine so far; 0 if it is not known."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return float(words[8]) / 100.0
    except (OSError, IndexError, ValueError):
        return 0.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every clock, evaluation time and board size, ``REPEATS`` times; the quick campaign has one game on each clock."""
    if metafunc.config.option.campaign["quick"]:
        cases = [(kind, COSTS_S[number % 3], 9, 1, QUICK_MOVES) for number, kind in enumerate(KINDS)]
    else:
        games = product(range(1, REPEATS + 1), KINDS, COSTS_S, MOST_MOVES.items())
        cases = [(kind, cost_s, size, seed, moves) for seed, kind, cost_s, (size, moves) in games]
    metafunc.parametrize(("kind", "cost_s", "size", "seed", "most_moves"), cases)


def test_game(kind: str, cost_s: float, size: int, seed: int, most_moves: int, outcome: Outcome) -> None:
    """Play one game; each overstepping of a clock is a fault."""
    settings, dialect, tells_left = KINDS[kind]
    clocks = {color: PlayerClock(settings, dialect) for color in "bw"}
    longest_s, passes, stolen_before_s = 0.0, 0, stolen_s()
    options = ("--size", str(size), "--seed", str(seed), "--memory", "128")
    with started({"seconds_each": cost_s}, *options) as client:
        for line in ("komi 7", clocks["b"].settings_command()):
            client.ask(line, START_S)
        for n in range(most_moves):
            color = "bw"[n % 2]
            clock = clocks[color]
            if tells_left:
                client.ask(f"time_left {color} {clock.left_words()}", ANSWER_S)
            left = clock.left
            answer = client.ask(f"genmove {color}", ANSWER_S)
            longest_s = max(longest_s, client.last_answer_s)
            if not clock.spend(client.last_answer_s, 0.0):
                fault = f"move {n}: clock overstepped, {client.last_answer_s:.3f} s with {left}"
                outcome.faults.append(fault)
            passes = passes + 1 if answer == "pass" else 0
            if passes == 2 or answer == "resign":
                break
    outcome.figures = {"longest move, s": longest_s, "stolen, s": stolen_s() - stolen_before_s}
