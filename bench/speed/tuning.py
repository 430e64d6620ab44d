"""Which settings search fastest on this machine, and their gain in Elo: measuring for :mod:`bench.speed.benchmark`.

Every setting searches the same middle-game positions for the same time, the result cache empty; all settings take
turns on a position before the next one comes, so that other load of the machine meets all of them alike. Start at
:func:`measure`.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bench.speed.positions import middle_games
from engine.go.position import Position
from engine.inference.server import InferenceServer
from engine.play.assembly import Parts, new_server
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tuning import resolved

POSITIONS = 5
WARM_UP = 0.25
"""Share of a search's time that it runs before the clock does"""
LOOKS = 20
"""How often a search is asked for its leaves in flight"""
CPU_BATCHES = (4, 8, 16, 32)
GPU_BATCHES = (8, 16, 32, 64, 128)
MOST_WORKERS = 16
"""Search threads tried in front of a GPU; more would stand in each other's way."""
ELO_A_DOUBLING = 250.0
ELO_A_LEAF = 7.0
"""At 800 visits a move"""
WORTH_ELO = 10.0
"""Less is no reason to change anything."""
ERRORS = 2.0
"""Standard errors that a gain must exceed: less may be luck"""


class Setting(NamedTuple):
    """Options to try together; where the machine chooses, the number it chooses."""

    evaluators: int
    """0 where they cannot be chosen"""
    threads: int
    batch: int


class Searched(NamedTuple):
    """What one search has reached."""

    visits: int
    evaluations: int
    seconds: float
    in_flight: float
    """leaves under way, on average"""

    def elo(self, move_s: float) -> float:
        """Strength at ``move_s`` seconds a move, on a scale without a zero: only differences mean anything.

        Visits gain by their logarithm. Leaves in flight cost, for each was chosen without knowing what the others
        will find; the more visits a move has, the less.
        Source: the estimates of KataGo's benchmark, cpp/program/playutils.cpp, whose threads hold one leaf each.
        """
        rate = self.visits / self.seconds
        spread = (1600.0 / (800.0 + rate * move_s)) ** 0.85
        return ELO_A_DOUBLING * math.log2(rate) - ELO_A_LEAF * self.in_flight * spread


class Measured(list[Searched]):
    """What a setting has reached, a search a position, in the order of the positions."""

    def per_second(self, name: str) -> float:
        """Visits or evaluations a second."""
        return sum(getattr(one, name) for one in self) / sum(one.seconds for one in self)

    def in_flight(self) -> float:
        """Leaves under way, on average."""
        return statistics.fmean(one.in_flight for one in self)

    def gain(self, other: "Measured", move_s: float) -> "Gain":
        """Elo beyond another setting, compared position by position."""
        gains = [one.elo(move_s) - base.elo(move_s) for one, base in zip(self, other, strict=False)]
        error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
        return Gain(statistics.fmean(gains), ERRORS * error)


class Gain(NamedTuple):
    """A difference in Elo and its statistical error; the error of the rule of thumb is not in it."""

    elo: float
    margin: float
    """inf = unknown"""


def counts(most: int) -> list[int]:
    """Numbers of threads to try, up to ``most``: all if they are few, else powers of two and the most."""
    if most <= 4:
        return list(range(1, most + 1))
    return sorted({1 << i for i in range(most.bit_length())} | {most})


def settings_to_try(
    parts: Parts, cores: int, evaluators: Sequence[int] = (), threads: Sequence[int] = (), batches: Sequence[int] = ()
) -> list[Setting]:
    """What to try: the settings in force, and every combination of some numbers.

    On the CPU evaluators are tried, in front of a GPU and where rollouts are all there is search threads.

    Args:
        evaluators, threads, batches: numbers to try; none = what suits the device.
    """
    merges = bool(parts.networks) and parts.networks[0].merges
    if parts.networks and not merges:
        evaluators, threads = evaluators or counts(cores), threads or (1,)
    else:
        evaluators, threads = (0,), threads or counts(min(cores, MOST_WORKERS) if merges else cores)
    batches = batches or (GPU_BATCHES if merges else CPU_BATCHES)
    tried = (Setting(*one) for one in itertools.product(evaluators, threads, batches))
    return list(dict.fromkeys((in_force(parts), *tried)))


def in_force(parts: Parts) -> Setting:
    """The setting that the options amount to on this machine."""
    network = parts.networks[0] if parts.networks else None
    options = resolved(parts.options, network)
    with_evaluators = network is not None and not network.merges
    return Setting(options.evaluators if with_evaluators else 0, options.threads, options.batch)


def as_options(setting: Setting, parts: Parts) -> dict[str, int]:
    """A setting as the settings file has it: 0 where this machine would choose the same by itself."""
    automatic = in_force(parts._replace(options=replace(parts.options, threads=0, evaluators=0, batch=0)))
    values = {
        "threads": 0 if setting.threads == automatic.threads else setting.threads,
        "batch": 0 if setting.batch == automatic.batch else setting.batch,
    }
    if setting.evaluators:
        is_automatic = setting.evaluators == automatic.evaluators and not values["threads"]
        values = {"evaluators": 0 if is_automatic else setting.evaluators} | values
    return values


def best_of(found: dict[Setting, Measured], present: Setting, move_s: float) -> Setting:
    """The strongest setting; the present one, unless another gains more than its error and ``WORTH_ELO``."""
    gains = {setting: one.gain(found[present], move_s) for setting, one in found.items()}
    best = max(gains, key=lambda setting: gains[setting].elo)
    return best if gains[best].elo > max(WORTH_ELO, gains[best].margin) else present


def measure(
    parts: Parts, wanted: Sequence[Setting], size: int, seconds: float, found: dict[Setting, Measured]
) -> Iterator[Setting]:
    """Measure settings, writing into ``found`` as results come; yields each setting before its turn.

    Args:
        wanted: in the order in which they are measured; neighbours with equal evaluators share a server.
        size: of the board.
        seconds: for each setting in all.
    Raises:
        RuntimeError: the network failed.
    """
    positions = [game.position for game in middle_games(size)[:POSITIONS]]
    server, evaluators = None, None
    try:
        for position in positions:
            for setting in wanted:
                yield setting
                if setting.evaluators != evaluators:
                    if server is not None:
                        server.close()
                    server, evaluators = new_server(_with(parts, setting)), setting.evaluators
                searched = _search(_with(parts, setting), server, position, seconds / POSITIONS)
                found.setdefault(setting, Measured()).append(searched)
    finally:
        if server is not None:
            server.close()


def _with(parts: Parts, setting: Setting) -> Parts:
    """The parts with the options of a setting."""
    return parts._replace(options=replace(parts.options, **setting._asdict()))


def _search(parts: Parts, server: InferenceServer | None, position: Position, seconds: float) -> Searched:
    """Search a position with nothing known of it."""
    search = Search(parts.options, server, parts.encoder, parts.patterns)
    try:
        search.set_position(position)
        search.run(SearchLimits(soft_s=WARM_UP * seconds))
        search.clear()
        if server is not None:
            server.forget()
        looks: list[int] = []
        watcher = Watcher(lambda _: looks.append(search.in_flight()), seconds / LOOKS)
        report = search.run(SearchLimits(soft_s=seconds), watcher=watcher)
    finally:
        search.close()
    return Searched(report.visits, report.evaluations, report.seconds, statistics.fmean(looks or [1]))
