"""Games on every kind of clock, against a referee at the other end of the pipe who forgives nothing.

The engine plays both sides, by networks whose evaluations cost 1, 50 and 400 ms, on a machine that two other processes
keep busy, and with ``--jobs`` other games too. Time is counted from the command to its answer. What the hypervisor took
from the machine meanwhile (``steal`` of /proc/stat) is recorded: it is time that no engine can account for.

Sources: as of :mod:`engine.play.clock`.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.match.clocks import Dialect, PlayerClock
from bench.match.gtp_client import ROOT, EngineError, EngineRefused, GtpClient
from bench.reliability.made_network import command
from bench.reliability.part import Campaign, Case, Outcome, Part
from engine.features.encoder import KEIMA
from engine.play import ahead
from engine.play.clock import TimeSettings, absolute, byoyomi, canadian, fischer

START_S = 600.0
SETTLE_S = 3.0
"""For what an engine loads after its start"""
ANSWER_S = 120.0
"""Longer than any clock here: an engine that has not answered by then hangs"""
COSTS_S = (0.001, 0.05, 0.4)
MOST_MOVES = {9: 120, 19: 60}
"""Board size -> moves after which a game ends"""
QUICK_MOVES = 16
REPEATS = 5


class Kind(NamedTuple):
    """A clock and how the engine is told of it."""

    settings: TimeSettings
    dialect: Dialect
    tells_left: bool = True
    """``time_left`` goes before every move; otherwise the engine has to keep the account"""


KINDS = {
    "absolute, not told": Kind(absolute(15.0), Dialect.GTP, tells_left=False),
    "absolute": Kind(absolute(15.0), Dialect.KATA),
    "Canadian": Kind(canadian(4.0, 6.0, 5), Dialect.GTP),
    "Canadian of KGS, not told": Kind(canadian(0.0, 6.0, 5), Dialect.KGS, tells_left=False),
    "byo-yomi of KGS": Kind(byoyomi(4.0, 2.0, 3), Dialect.KGS),
    "byo-yomi": Kind(byoyomi(0.0, 1.0, 3), Dialect.KATA),
    "Fischer": Kind(fischer(5.0, 0.5), Dialect.KATA),
    "capped Fischer": Kind(fischer(5.0, 1.0, 8.0, 2.0), Dialect.KATA),
}


def stolen_s() -> float:
    """Processor time that other machines on this hardware took from this one so far; 0 where it is not told."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return float(words[8]) / 100.0
    except (OSError, IndexError, ValueError):
        return 0.0


def _play(kind: str, cost_s: float, size: int, seed: int, most_moves: int, folder: Path) -> Outcome:
    """One game."""
    settings, dialect, tells_left = KINDS[kind]
    clocks = {color: PlayerClock(settings, dialect) for color in "bw"}
    options = ("--size", str(size), "--seed", str(seed), "--memory", "128")
    ahead.compile_kernels(KEIMA.name)
    faults, longest_s, stolen_before_s = list[str](), 0.0, stolen_s()
    with GtpClient(command({"seconds_each": cost_s}, *options), ROOT) as client:
        client.ask("komi 7", START_S)
        client.ask(clocks["b"].settings_command(), START_S)
        client.ask("final_score", START_S)
        time.sleep(SETTLE_S)
        passes = 0
        for n in range(most_moves):
            color = "bw"[n % 2]
            clock = clocks[color]
            try:
                if tells_left:
                    client.ask(f"time_left {color} {clock.left_words()}", ANSWER_S)
                left = clock.left
                answer = client.ask(f"genmove {color}", ANSWER_S)
            except (EngineError, EngineRefused) as error:
                return Outcome([*faults, f"move {n}: {error}"])
            longest_s = max(longest_s, client.last_answer_s)
            if not clock.spend(client.last_answer_s, 0.0):
                faults.append(f"move {n}: {client.last_answer_s:.3f} s with {left}, the clock is overstepped")
            passes = passes + 1 if answer == "pass" else 0
            if passes == 2 or answer == "resign":
                break
    figures = {"longest move, s": longest_s, "stolen, s": stolen_s() - stolen_before_s}
    return Outcome(faults, figures)


def _cases(campaign: Campaign) -> Iterator[Case]:
    """Every clock by every cost on both boards, again and again; the short form begins one on each clock."""
    for seed in range(1, (1 if campaign.quick else REPEATS) + 1):
        for index, kind in enumerate(KINDS):
            for cost_s in COSTS_S[index % 3 :][:1] if campaign.quick else COSTS_S:
                for size in (9,) if campaign.quick else MOST_MOVES:
                    name = f"{kind}, {cost_s * 1000:g} ms, {size}x{size}, {seed}"
                    moves = QUICK_MOVES if campaign.quick else MOST_MOVES[size]
                    yield Case(name, partial(_play, kind, cost_s, size, seed, moves))


PART = Part(
    __name__,
    title="Games on eight kinds of clock, evaluations of 1, 50 and 400 ms, two busy processes beside",
    unit="games",
    wanted="240 games, no clock overstepped",
    cases=_cases,
    figures={"longest move, s": max, "stolen, s": sum},
    busy=2,
    limit_s=1800.0,
)
