"""``python -m bench.strength.regress FILES --engine COMMAND``: regression suites run with a GTP engine.

A suite is a text file of GTP commands and expected answers, as in GNU Go's source package (folder ``regression``). The
engine runs in the suite's folder, to which the paths of game files in suites are relative, so its command line must
work from any folder. Tests of commands that the engine does not list are left out, as are tests of game files that do
not exist. An engine that crashes is restarted. Start at :func:`run_suite`.

A line is a GTP command. A command that begins with a number is a test if a line ``#? [PATTERN]`` follows: the answer
must match the pattern, a regular expression, or must not match it if it begins with ``!``. After the bracket ``*``
means that the suite's author expected his program to fail, ``&`` that the answer is ignored. Other lines that begin
with ``#`` are comments. Commands without a number set up positions.

Source: the GNU Go program documentation, "Regression testing".
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from bench.match.gtp_client import START_S, EngineError, EngineRefused, GtpClient, argument_words
from engine.system.files import written_whole
from gtp.cli.arguments import NewFile, Number
from gtp.cli.terminal import INTERRUPTED, progress_bar, say

BEGINNINGS = ("loadsgf", "boardsize", "clear_board")
"""Commands that set up a position from scratch, so that an earlier error no longer matters"""
TERMS = {"kata-get-rules": "kata-set-rules", "get_komi": "komi"}
"""Command that returns rules or komi -> command that sets them"""
PASSED, FAILED, ERROR, LEFT_OUT = STATUSES = ("passed", "failed", "error", "left out")
LIMIT_S = 60.0
TEST = re.compile(r"(\d{1,18})\s+(\S.*)")
EXPECTATION = re.compile(r"#\?\s*\[(?:(.*?)\]\s*+([*&]*+)\s*+(?:#.*)?|([^\]]*))", re.DOTALL)
"""A line ``#? [PATTERN]`` and its marks; in some suites of GNU Go the closing bracket is missing"""


@dataclass(frozen=True)
class Expectation:
    """The answers with which a test passes: those that match a pattern, or those that do not."""

    pattern: str
    is_negated: bool
    may_fail: bool
    """whether the suite's author expected his program to fail"""

    def passes(self, answer: str) -> bool:
        """Whether the test passes with an answer; case is ignored."""
        return bool(re.fullmatch(self.pattern, answer, re.IGNORECASE | re.DOTALL)) != self.is_negated

    def __str__(self) -> str:
        return f"{'!' if self.is_negated else ''}{self.pattern}"


@dataclass(frozen=True)
class Step:
    """One command of a suite."""

    line: int
    """line number in the file, from 1"""
    number: int
    """number of a test; 0 = a command that sets up a position"""
    command: str
    expected: Expectation | None
    """None = the step is not a test"""

    @property
    def name(self) -> str:
        """The command's name."""
        return self.command.split()[0]


def parse_suite(text: str) -> list[Step]:
    """The commands of a suite, in order.

    Raises:
        ValueError: an expectation is invalid or follows no test; one line with the line number.
    """
    steps: list[Step] = []
    for count, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("#?"):
            try:
                steps[-1:] = _expecting(steps[-1] if steps else None, line)
            except ValueError as error:
                raise ValueError(f"line {count}: {error}") from error
            continue
        command = line.partition("#")[0].strip()
        if command:
            found = TEST.fullmatch(command)
            steps.append(Step(count, int(found[1]), found[2], None) if found else Step(count, 0, command, None))
    return steps


def _expecting(step: Step | None, line: str) -> list[Step]:
    """Make the step before a line ``#? [PATTERN]`` a test, unless the line says to ignore the answer.

    Returns:
        list[Step]: the step alone, for a slice assignment.
    Raises:
        ValueError: the line is invalid, or follows no test.
    """
    found = EXPECTATION.fullmatch(line)
    if found is None:
        raise ValueError(f"{line!r}, expected #? [PATTERN]")
    if step is None or step.number == 0 or step.expected is not None:
        raise ValueError("an expectation without a test before it")
    closed, marks, unclosed = found.groups(default="")
    if "&" in marks:
        return [step]
    text = closed or unclosed
    pattern = text.removeprefix("!")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    return [replace(step, expected=Expectation(pattern, text.startswith("!"), "*" in marks))]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one test."""

    number: int
    line: int
    command: str
    expected: str
    may_fail: bool
    """whether the suite's author expected his program to fail"""
    status: str
    """one of STATUSES: ``error`` = the engine refused or crashed, or the position could not be set up; ``left out`` =
    the engine does not list the command or one that sets up its position, or the game file is missing"""
    answer: str
    """the engine's answer, or the reason why there is none"""


@dataclass(frozen=True)
class SuiteResult:
    """The outcomes of one suite."""

    file: str
    seconds: float
    outcomes: list[Outcome]

    def count(self, *statuses: str) -> int:
        """Number of tests with one of some statuses."""
        return sum(outcome.status in statuses for outcome in self.outcomes)


class _Attempt(NamedTuple):
    """The outcome of one command."""

    status: str
    answer: str
    spoils: bool
    """whether the position is wrong until the next command of ``BEGINNINGS``"""


class Examinee:
    """An engine that is started by its first command, and restarted after a crash."""

    def __init__(self, command: str, folder: Path, limit_s: float) -> None:
        """Prepare an engine, which its first command starts.

        Args:
            command: the engine's command line.
            folder: its working directory.
            limit_s: longest wait for an answer.
        """
        self.folder = folder
        self._command, self._limit_s = command, limit_s
        self._client: GtpClient | None = None
        self._terms: list[str] = []
        """commands that restore the engine's initial rules and komi"""

    def _running(self) -> GtpClient:
        if self._client is None or not self._client.is_alive:
            self.close()
            self._client = GtpClient(self._command, self.folder)
            known = [name for name in TERMS if self._client.lists(name, START_S)]
            self._terms = [f"{TERMS[name]} {self._client.ask(name, START_S)}" for name in known]
        return self._client

    def begin_suite(self) -> None:
        """Restore the engine's initial rules and komi, which earlier suites may have changed."""
        self._running()
        for command in self._terms:
            self.ask(command)

    def knows(self, name: str) -> bool:
        """Whether the engine lists a command."""
        return self._running().lists(name, self._limit_s)

    def ask(self, command: str) -> str:
        """Send a command to the running engine. See :meth:`bench.match.gtp_client.GtpClient.ask`."""
        return self._running().ask(command, self._limit_s)

    def close(self) -> None:
        """End the engine."""
        if self._client is not None:
            self._client.close()


def run_suite(engine: Examinee, path: Path, on_test: Callable[[], None] = lambda: None) -> SuiteResult:
    """Run one suite with an engine.

    Args:
        engine: its working directory is the file's folder.
        on_test: called after each test.
    Raises:
        EngineError, EngineRefused: the engine cannot be started, or refuses ``list_commands``.
        ValueError: the file is not a suite; one line naming it.
        OSError: the file cannot be read.
    """
    begun, outcomes, spoilt = time.perf_counter(), [], None
    steps = read_suite(path)
    engine.begin_suite()
    for step in steps:
        if step.name in BEGINNINGS:
            spoilt = None
        attempt = spoilt or _try(engine, step)
        if attempt.spoils:
            spoilt = attempt
        if (wanted := step.expected) is not None:
            test = (step.number, step.line, step.command, str(wanted), wanted.may_fail)
            outcomes.append(Outcome(*test, attempt.status, attempt.answer))
            on_test()
    return SuiteResult(path.name, time.perf_counter() - begun, outcomes)


def _try(engine: Examinee, step: Step) -> _Attempt:
    """Send one command to the engine."""
    if not engine.knows(step.name):
        return _Attempt(LEFT_OUT, f"the engine does not list {step.name}", step.number == 0)
    if step.name == "loadsgf" and not engine.folder.joinpath(*step.command.split()[1:2]).is_file():
        return _Attempt(LEFT_OUT, f"{step.command}: no such file", True)
    try:
        answer = engine.ask(step.command)
    except EngineRefused as error:
        return _Attempt(ERROR, f"{step.command}: {error}", step.number == 0)
    except EngineError as error:
        return _Attempt(ERROR, str(error), True)
    return _Attempt(PASSED if step.expected is None or step.expected.passes(answer) else FAILED, answer, False)


def read_suite(path: Path) -> list[Step]:
    """The commands of a suite's file.

    Raises:
        ValueError: the file is not a suite; one line naming it.
        OSError: the file cannot be read.
    """
    try:
        return parse_suite(path.read_text(encoding="latin-1"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def render(results: Sequence[SuiteResult]) -> str:
    """The table: one row a file and, if there are several, their sum."""
    width = max(12, *(len(result.file) for result in results))
    lines = [
        f"{'':{width}}{'tests':>7}{'passed':>8}{'rate':>8}{'wanted':>8}{'errors':>8}{'left out':>10}{'seconds':>9}"
    ]
    everything = [outcome for result in results for outcome in result.outcomes]
    total = SuiteResult("all", sum(result.seconds for result in results), everything)
    for result in [*results, total] if len(results) > 1 else results:
        tests, passed = result.count(PASSED, FAILED, ERROR), result.count(PASSED)
        wanted = sum(not outcome.may_fail for outcome in result.outcomes if outcome.status != LEFT_OUT)
        lines.append(
            f"{result.file:{width}}{tests:7}{passed:8}{f'{passed / tests:.1%}' if tests else '-':>8}{wanted:8}"
            f"{result.count(ERROR):8}{result.count(LEFT_OUT):10}{result.seconds:9.0f}"
        )
    return "\n".join(lines)


def _faults(result: SuiteResult, statuses: Iterable[str]) -> str:
    """The tests of a file with one of some statuses, one a line."""
    return "\n".join(
        f"{result.file}:{found.line} {found.number} {found.command}: {found.status}, wanted {found.expected}, "
        f"got {found.answer!r}"
        for found in result.outcomes
        if found.status in statuses
    )


def to_json(command_line: str, results: Sequence[SuiteResult]) -> str:
    """All outcomes, and their counts by status, as JSON."""
    files = [{**asdict(result), **{status: result.count(status) for status in STATUSES}} for result in results]
    return json.dumps({"engine": command_line, "files": files}, indent=1)


def _run_all(files: Sequence[Path], engine: str, limit_s: float) -> Iterator[SuiteResult]:
    """Run the suites, those of each folder with one engine; progress goes to standard error."""
    counts = [sum(step.expected is not None for step in read_suite(path)) for path in files]
    console = Console(stderr=True)
    with progress_bar(console) as progress:
        task = progress.add_task("", total=sum(counts))
        for folder, suites in groupby(files, lambda path: path.parent):
            with closing(Examinee(engine, folder, limit_s)) as examinee:
                for path in suites:
                    progress.update(task, description=path.name)
                    result = run_suite(examinee, path, lambda: progress.advance(task))
                    say(console, render([result]).splitlines()[1])
                    yield result


@click.command(context_settings={"show_default": True})
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--engine", required=True, help="command line of the engine, run in each suite's folder")
@click.option("--limit", default=LIMIT_S, type=Number(0.1), help="longest wait for an answer, in seconds")
@click.option("--failures", is_flag=True, help="list failed tests too, not only those that ended in errors")
@click.option("--json", "json_path", type=NewFile(), help="file for all outcomes as JSON")
def command(files: tuple[Path, ...], engine: str, limit: float, failures: bool, json_path: Path | None) -> None:
    """Run the regression suites FILES with a GTP engine; print how many tests it passes.

    The column "wanted" counts the tests that the suite's author expected his own program to pass, "left out" the tests
    of commands that the engine does not list.

    \b
        python -m bench.strength.regress gnugo-3.8/regression/*.tst --engine "keima gtp --visits 100"
    """
    results: list[SuiteResult] = []
    status, shown = 0, (ERROR, FAILED) if failures else (ERROR,)
    try:
        argument_words(engine)
        for result in _run_all([path.resolve() for path in files], engine, limit):
            # Written before the next suite, which may take hours or fail.
            results.append(result)
            if faults := _faults(result, shown):
                click.echo(faults)
            if json_path:
                json_path.parent.mkdir(parents=True, exist_ok=True)
                with written_whole(json_path) as part:
                    part.write_text(to_json(engine, results) + "\n", encoding="utf-8")
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        status = INTERRUPTED
    except (EngineError, EngineRefused, ValueError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        status = 1
    if results:
        click.echo(render(results))
    click.get_current_context().exit(status)


if __name__ == "__main__":
    command()
