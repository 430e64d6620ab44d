"""The campaign as a plugin of pytest: what a part's module holds, what comes of a case, how it is kept and shown.

A part is a module of this folder that pytest collects: its name in ``NAMES``, in the order of the table, a constant
``PART`` for its row, and one test whose parameters are the cases. Besides these, its row in ``docs/reliability.md``
(``--report --markdown`` prints it) and a test in ``tests/bench``. For example ``bench/reliability/counts.py``::

    PART = Part(
        title="Legal positions on 2x2, 3x3, 4x4",        # row of the table
        unit="positions",                                # what amounts count
        wanted="57; 12,675; 24,318,165",                 # what was wanted of them
        figures={"slowest count, s": max},               # figures of outcomes, and how those of all cases combine
    )

    def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
        sizes = (2, 3) if metafunc.config.option.campaign["quick"] else (2, 3, 4)
        metafunc.parametrize(("size", "amount"), [(size, KNOWN[size]) for size in sizes])

    def test_count(size: int, outcome: Outcome) -> None:
        if (found := legal_positions(size)) != KNOWN[size]:
            outcome.faults.append(f"{size}x{size}: {found} legal positions, expected {KNOWN[size]}")

What a part may rely on, and must keep to:

* The id that pytest gives a case is the same in every run of the same campaign: finished cases are not run again.
  Whatever is random follows from the case (seed = its number), never from the cases before it. A parameter ``amount``
  is how much of the part's unit the case does; without one it does 1.
* Each case runs in the main thread of a worker process of xdist; ``folder`` is an empty folder of its own that is
  removed afterwards. ``-n N`` workers share a part's cases; ``alone=True`` forbids that where time or memory is
  measured. ``busy`` processes beside them make the machine one that people use.
* All faults of a case are listed, one text each, what was expected and what came; a case does not stop at the first
  where it can continue. An exception is a fault too, so is the worker's death, so is a case that takes longer than
  ``limit_s``.
* Ctrl-C is a ``KeyboardInterrupt`` in the case: end child processes in ``finally`` or ``with``. The death of the
  campaign itself, even by SIGKILL, arrives as the same ``KeyboardInterrupt``.
* A case should take seconds to a few minutes: the one that runs is what a kill loses. With ``campaign["quick"]`` the
  cases of a part take about half a minute in all on two cores.
* A mark ``skipif`` says in a few words what a machine lacks to run the part (a program, reference material).
"""

import faulthandler
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.speed.figures import print_figure, rounded
from engine.system.work_folder import add_line
from weights import DEFAULT

NAMES = (
    "legality", "superko", "counts", "damage", "fuzz", "fuzz_json", "clocked", "evaluator", "kills", "actors", "memory",
)  # fmt: skip
"""Names of the parts, each that of its module in this folder, in the order of the table"""
STOP_S = 15.0
"""How long a case that took too long may take to end its child processes"""


@dataclass(frozen=True)
class Part:
    """A row of the table."""

    title: str
    unit: str
    wanted: str
    figures: Mapping[str, Callable[[Iterable[float]], float]] = field(default_factory=dict)
    """names, with units, of figures that outcomes hold, and how those of all cases become one"""
    alone: bool = False
    """no two cases at once"""
    busy: int = 0
    """processes that do nothing but keep processors busy beside the cases, however many of these run at once"""
    limit_s: float = 3600.0
    """most seconds that a case may take"""


@dataclass
class Outcome:
    """What comes of a case."""

    faults: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    """by the names in the part's ``figures``"""
    amount: int | None = None
    """what was really done, in the part's unit; None = all of it"""


class Record(NamedTuple):
    """How a case ended: a line of ``PART.jsonl``."""

    case: str
    amount: int
    """in the part's unit"""
    seconds: float
    faults: list[str]
    figures: dict[str, float]
    ended: str = ""
    """UTC, ISO 8601"""


class Recorder:
    """Plugin of the process that shares cases out among workers: adds every finished case to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_interrupted = False

    def pytest_testnodedown(self, error: object) -> None:
        """A worker that was interrupted from outside ends the campaign; its case is not at fault."""
        self._is_interrupted |= error == "keyboard-interrupt"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a case that has ended, by itself or with its worker."""
        if not self._is_interrupted and (report.failed or (report.passed and report.when == "call")):
            found = dict(report.user_properties).get("outcome")
            outcome = Outcome(**found) if isinstance(found, dict) else Outcome([report.longreprtext], amount=0)
            ended = datetime.now(UTC).isoformat(timespec="seconds")
            record = Record(report.nodeid, outcome.amount or 0, round(report.duration, 3), outcome.faults,
                            outcome.figures, ended)  # fmt: skip
            add_line(self._path, json.dumps(record._asdict()))


def pytest_addoption(parser: pytest.Parser) -> None:
    """What the cases are told; by itself the short form."""
    known = {"quick": True, "games": None, "weights": DEFAULT}
    parser.addoption("--campaign", type=json.loads, default=known, help="settings of the campaign, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """In a worker, both signals interrupt the case."""
    if hasattr(config, "workerinput"):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt_once)


def _interrupt_once(number: int, frame: object) -> None:
    """Ctrl-C reaches the worker from the terminal and from the campaign; cleaning up is interrupted by neither."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The campaign's settings: quick, games, weights."""
    return request.config.option.campaign


@pytest.fixture
def outcome() -> Outcome:
    """What comes of this case."""
    return Outcome()


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that is removed afterwards, however many files a case leaves there."""
    with tempfile.TemporaryDirectory(prefix="keima-reliability-", ignore_cleanup_errors=True) as path:
        yield Path(path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End a worker whose case cannot be interrupted, as in a kernel without end."""
    if limit_s := item.config.option.timeout:
        faulthandler.dump_traceback_later(limit_s + STOP_S, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A case with faults has failed; its outcome travels with the report."""
    report = yield
    outcome = item.funcargs.get("outcome")
    if report.when == "call" and isinstance(outcome, Outcome):
        if outcome.amount is None:
            outcome.amount = 0 if report.failed else amount_of(item)
        if report.failed:
            outcome.faults.append(report.longreprtext)
        elif outcome.faults:
            report.outcome, report.longrepr = "failed", "\n".join(outcome.faults)
        report.user_properties.append(("outcome", asdict(outcome)))
    return report


def amount_of(item: pytest.Function) -> int:
    """How much of its part's unit a case is to do."""
    return int(item.callspec.params.get("amount", 1))  # type: ignore[call-overload]


@dataclass
class Row:
    """A part, its cases and what came of them."""

    name: str
    part: Part
    amounts: dict[str, int]
    """what the cases are to do, by their ids"""
    missing: str
    """why it cannot be run here"""
    records: list[Record] = field(default_factory=list)

    @property
    def amount(self) -> int:
        """What was done, in the part's unit."""
        return sum(record.amount for record in self.records)

    @property
    def faults(self) -> list[tuple[str, str]]:
        """Cases and what was wrong."""
        return [(record.case, fault) for record in self.records for fault in record.faults]

    @property
    def figures(self) -> dict[tuple[str, str], float]:
        """The part's figures over all cases, by words and unit."""
        found = {}
        for name, combine in self.part.figures.items():
            words, _, unit = name.rpartition(", ")
            if values := [record.figures[name] for record in self.records if name in record.figures]:
                found[(words, unit) if words else (unit, "")] = combine(values)
        return found

    @property
    def holds(self) -> bool:
        """Whether all cases have been run, without a fault."""
        return len(self.records) == len(self.amounts) and not self.faults

    def as_markdown(self) -> str:
        """The row as the docs have it."""
        found = [f"not run: {self.missing}" if self.missing else "not run yet"]
        if self.records:
            wanted, n_faults = sum(self.amounts.values()), len(self.faults)
            share = "" if self.amount == wanted else f" of {wanted:,}"
            found = [f"{self.amount:,}{share} {self.part.unit}", f"{n_faults} fault{'s' * (n_faults != 1)}"]
            for (words, unit), value in self.figures.items():
                found.append(f"{words} {f'{rounded(value):,}'.removesuffix('.0')} {unit}".rstrip())
            found.append(f"{sum(record.seconds for record in self.records) / 3600:.2f} h")
        return f"| {self.part.title} | {self.part.wanted} | {'; '.join(found)} |"

    def print_figures(self) -> None:
        """A JSON line a figure: what was done, faults, and the part's own figures."""
        if self.records:
            name = f"reliability/{self.name}"
            print_figure(name, [self.amount], self.part.unit)
            print_figure(f"{name}/faults", [len(self.faults)], "faults")
            for (words, unit), value in self.figures.items():
                print_figure(f"{name}/{words}", [value], unit)
