"""The frame of a benchmark: a click command that prints its figures as JSON lines, each the median of repetitions.

``{"name": "uniform/19/1", "value": 17800, "unit": "rollouts/s"}``

A benchmark is a generator of figures decorated by :func:`bench`; :meth:`Timing.measure` measures its works. Progress
goes to standard error, so that standard output can be piped.
"""

import json
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, NamedTuple

import click

from bench.match.gtp_client import EngineError, EngineRefused
from gtp.cli import one_line_errors
from gtp.cli.arguments import Number

DIGITS = 4
"""Significant digits of a figure; repetitions differ by more"""
SLICES = 20
"""Approximate number of clock readings a repetition: enough to end on time, so few that Python's time is negligible"""

Work = Callable[[int], int]
"""Function that does N items of work and returns the number of smaller steps in them, 0 if steps are not counted"""

Figure = tuple[str, Iterable[float], str]
"""Name, the value of each repetition, unit"""


class Sample(NamedTuple):
    """Rates of one repetition, summed over all threads."""

    items_per_s: float
    steps_per_s: float


def sample(works: Sequence[Work], seconds: float, repeats: int) -> list[Sample]:
    """Measure the throughput of works that run concurrently, after a warm-up that compiles.

    Each thread divides its items by its own time, so that no waiting is measured.

    Args:
        works: one a thread; they must release the GIL to run concurrently.
        seconds: total time.
        repeats: repetitions that share the time.
    """
    for work in works:
        work(1)
    part_s = seconds / repeats
    count = _items_in(works[0], part_s / SLICES)
    return [_repetition(works, part_s, count) for _ in range(repeats)]


def _items_in(work: Work, seconds: float) -> int:
    """The first power of two such that this many items take ``seconds`` or longer."""
    count = 1
    while True:
        start = time.perf_counter()
        work(count)
        if time.perf_counter() - start >= seconds:
            return count
        count *= 2


def _repetition(works: Sequence[Work], seconds: float, count: int) -> Sample:
    """One repetition, with ``count`` items between two readings of the clock."""
    barrier = threading.Barrier(len(works))

    def run(work: Work) -> Sample:
        items, steps = 0, 0
        barrier.wait()
        start = time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds or items == 0:
            steps += work(count)
            items += count
        return Sample(items / spent, steps / spent)

    with ThreadPoolExecutor(len(works)) as pool:
        others = [pool.submit(run, work) for work in works[1:]]
        # The first work runs in the caller's thread: torch would start a new team of threads in another one.
        rates = [run(works[0]), *(other.result() for other in others)]
    return Sample(sum(rate.items_per_s for rate in rates), sum(rate.steps_per_s for rate in rates))


class Timing(NamedTuple):
    """The options ``--seconds`` and ``--repeats`` of a benchmark."""

    seconds: float
    """time for each measurement"""
    repeats: int
    """number of repetitions, which share ``seconds``"""

    def measure(self, name: str, works: Sequence[Work]) -> list[Sample]:
        """Announce a measurement on standard error, and run :func:`sample` with these options."""
        click.echo(f"measuring {name}", err=True)
        return sample(works, *self)

    def rates(self, name: str, works: Sequence[Work], items: int = 1) -> list[float]:
        """Measure works; returns items a second of each repetition, where an item of a work counts as ``items``."""
        return [items * one.items_per_s for one in self.measure(name, works)]


def bench(
    repeated: str, seconds: float | None = None, repeats: int = 5
) -> Callable[[Callable[..., Iterator[Figure]]], click.Command]:
    """Decorator that makes a generator of figures a click command; its own options are decorators below this one.

    The generator gets a :class:`Timing` as ``timing``.

    Args:
        repeated: what is repeated, for the help of ``--repeats``.
        seconds: default of ``--seconds``; None = no such option.
        repeats: default of ``--repeats``.
    """

    def decorate(figures: Callable[..., Iterator[Figure]]) -> click.Command:
        @click.command(context_settings={"show_default": True})
        @click.option("--seconds", default=seconds, type=Number(0.001, 3600), help="time for each measurement")
        @click.option(
            "--repeats", default=repeats, type=click.IntRange(1, 999), help=f"number of {repeated}; the median is shown"
        )
        @wraps(figures)
        def command(repeats: int, seconds: float = 0.0, **chosen: Any) -> None:
            with one_line_errors(EngineError, EngineRefused):
                for figure in figures(timing=Timing(seconds, repeats), **chosen):
                    print_figure(*figure)

        if seconds is None:
            command.params = [option for option in command.params if option.name != "seconds"]
        return command

    return decorate


def print_figure(name: str, values: Iterable[float], unit: str) -> None:
    """Print a figure as a JSON line: the median of its values."""
    click.echo(json.dumps({"name": name, "value": rounded(statistics.median(values)), "unit": unit}))


def rounded(value: float) -> float | int:
    """A value rounded to DIGITS significant digits; an int if it has no digits after the point."""
    if value == 0 or not math.isfinite(value):
        return value
    digits = DIGITS - 1 - math.floor(math.log10(abs(value)))
    return round(value, digits) if digits > 0 else round(value)
