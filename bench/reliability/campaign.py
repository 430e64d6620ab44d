"""The campaign as a plugin of pytest: parts, cases, their outcomes and records, the rows of the table.

A part is a module of this folder that pytest collects. It needs its name in ``NAMES``, in the order of the table, a
constant ``PART`` for its row, one test whose parameters are the cases, its row in ``docs/reliability.md``
(``--report --markdown`` prints it) and a test in ``tests/bench``. For example ``bench/reliability/counts.py``::

    PART = Part(
        title="Legal positions on 2x2, 3x3, 4x4",        # first column of the table
        unit="positions",                                # unit of the cases' amounts
        wanted="57; 12,675; 24,318,165",                 # goal, second column
        figures={"slowest count, s": max},               # figure of outcomes -> its aggregation over all cases
    )

    def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
        sizes = (2, 3) if metafunc.config.option.campaign["quick"] else (2, 3, 4)
        metafunc.parametrize(("size", "amount"), [(size, KNOWN[size]) for size in sizes])

    def test_count(size: int, outcome: Outcome) -> None:
        if (found := legal_positions(size)) != KNOWN[size]:
            outcome.faults.append(f"{size}x{size}: {found} legal positions, expected {KNOWN[size]}")

Rules for parts:

* The ids that pytest gives cases are the same in every run of a campaign, since finished cases are not run again.
  Random numbers depend on the case alone (seed = its number), never on earlier cases. A parameter ``amount`` is the
  case's amount in the part's unit, by default 1.
* Each case runs in the main thread of a worker process of xdist; ``folder`` is its own empty folder, deleted
  afterwards. ``-n N`` workers share a part's cases; ``alone=True`` runs one case at a time, for measurements of time or
  memory. ``busy`` child processes load the processors meanwhile, like other programs of a user's machine.
* All faults of a case are listed, each as a text with the expected and the actual result; a case continues after a
  fault if it can. Exceptions, the worker's death and more than ``limit_s`` seconds are faults too.
* Ctrl-C raises ``KeyboardInterrupt`` in the case, as does the death of the campaign, even by SIGKILL: end child
  processes in ``finally`` or ``with``.
* A case should take seconds to a few minutes, since a kill loses the running one. With ``campaign["quick"]`` the cases
  of a part take about half a minute in total on two cores.
* The reason of a ``skipif`` mark names the program or data that the machine lacks.
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
from engine.system.run_folder import add_line
from weights import DEFAULT

NAMES = (
    "legality", "superko", "counts", "library", "damage", "fuzz", "fuzz_json", "clocked", "evaluator", "kills",
    "actors", "memory",
)  # fmt: skip
"""Parts, by the names of their modules in this folder, in the order of the table"""
STOP_S = 15.0
"""Seconds after its time limit in which a case can end its child processes; then its worker is killed"""


@dataclass(frozen=True)
class Part:
    """A part of the campaign: a row of the table."""

    title: str
    unit: str
    wanted: str
    figures: Mapping[str, Callable[[Iterable[float]], float]] = field(default_factory=dict)
    """key "NAME, UNIT" of ``Outcome.figures`` -> function that combines its values of all cases"""
    alone: bool = False
    """whether cases run one at a time"""
    busy: int = 0
    """number of child processes that load the processors while cases run"""
    limit_s: float = 3600.0
    """time limit of a case in seconds"""


@dataclass
class Outcome:
    """The outcome of a case."""

    faults: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    """value of each figure, by the keys of ``Part.figures``"""
    amount: int | None = None
    """amount that was completed, in the part's unit; None = the case's whole amount"""


class Record(NamedTuple):
    """A finished case: a line of ``PART.jsonl``."""

    case: str
    amount: int
    """completed amount, in the part's unit"""
    seconds: float
    faults: list[str]
    figures: dict[str, float]
    ended: str = ""
    """time of the end: UTC, ISO 8601"""


class Recorder:
    """Pytest plugin of the main process: adds the record of every finished case to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_interrupted = False

    def pytest_testnodedown(self, error: object) -> None:
        """Note that a worker was interrupted from outside; its unfinished case is then not recorded as a fault."""
        self._is_interrupted |= error == "keyboard-interrupt"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a case that finished, or whose worker died."""
        if not self._is_interrupted and (report.failed or (report.passed and report.when == "call")):
            found = dict(report.user_properties).get("outcome")
            outcome = Outcome(**found) if isinstance(found, dict) else Outcome([report.longreprtext], amount=0)
            ended = datetime.now(UTC).isoformat(timespec="seconds")
            record = Record(report.nodeid, outcome.amount or 0, round(report.duration, 3), outcome.faults,
                            outcome.figures, ended)  # fmt: skip
            add_line(self._path, json.dumps(record._asdict()))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option ``--campaign``; without it the campaign is the quick one."""
    known = {"quick": True, "games": None, "weights": DEFAULT}
    parser.addoption("--campaign", type=json.loads, default=known, help="settings of the campaign, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGINT and SIGTERM interrupt the case of a worker."""
    if hasattr(config, "workerinput"):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt_once)


def _interrupt_once(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt once: Ctrl-C arrives twice, from terminal and main process, but clean-up must finish."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The campaign's settings: quick, games, weights."""
    return request.config.option.campaign


@pytest.fixture
def outcome() -> Outcome:
    """The outcome of this case, for the case to fill in."""
    return Outcome()


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that is deleted after the case."""
    with tempfile.TemporaryDirectory(prefix="keima-reliability-", ignore_cleanup_errors=True) as path:
        yield Path(path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Kill the worker if its case runs on for ``STOP_S`` after the time limit, as a case in an endless kernel does."""
    if limit_s := item.config.option.timeout:
        faulthandler.dump_traceback_later(limit_s + STOP_S, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark a case with faults as failed, and attach its outcome to the report."""
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
    """A case's parameter ``amount``, in its part's unit; 1 if it has none."""
    return int(item.callspec.params.get("amount", 1))  # type: ignore[call-overload]


@dataclass
class Row:
    """A part, its cases and their records."""

    name: str
    part: Part
    amounts: dict[str, int]
    """id of each case -> its amount"""
    missing: str
    """programs or data that the machine lacks to run the part; empty = none"""
    records: list[Record] = field(default_factory=list)

    @property
    def amount(self) -> int:
        """Completed amount of all cases, in the part's unit."""
        return sum(record.amount for record in self.records)

    @property
    def faults(self) -> list[tuple[str, str]]:
        """All faults, as pairs of case and text."""
        return [(record.case, fault) for record in self.records for fault in record.faults]

    @property
    def figures(self) -> dict[tuple[str, str], float]:
        """The part's figures over all cases, by name and unit."""
        found = {}
        for name, combine in self.part.figures.items():
            words, _, unit = name.rpartition(", ")
            if values := [record.figures[name] for record in self.records if name in record.figures]:
                found[(words, unit) if words else (unit, "")] = combine(values)
        return found

    @property
    def holds(self) -> bool:
        """Whether all cases have finished without a fault."""
        return len(self.records) == len(self.amounts) and not self.faults

    def as_markdown(self) -> str:
        """The row of the table in Markdown, as in docs/reliability.md."""
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
        """Print the amount, the number of faults and the part's own figures, one JSON line each."""
        if self.records:
            name = f"reliability/{self.name}"
            print_figure(name, [self.amount], self.part.unit)
            print_figure(f"{name}/faults", [len(self.faults)], "faults")
            for (words, unit), value in self.figures.items():
                print_figure(f"{name}/{words}", [value], unit)
