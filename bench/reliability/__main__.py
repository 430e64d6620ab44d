"""``python -m bench.reliability [PARTS]``: a campaign of tests for crashes, hangs, wrong results, lost data and leaks.

The parts are modules that pytest runs with the plugin :mod:`bench.reliability.campaign`, whose docstring explains how
to add one. Every finished case is written to the folder of ``--out`` before the next begins, so the same command
resumes after Ctrl-C or a crash; ``--again`` repeats cases with faults. Figures are JSON lines on standard output;
everything else, the table included, goes to standard error. Start at :func:`command`.
"""

import json
import os
import signal
import sys
import tempfile
from contextlib import ExitStack, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from engine.config.declaration import core_count
from engine.system.files import alone_in
from engine.system.programs import start_child
from engine.system.run_folder import open_manifest, read_lines
from gtp.cli import one_line_errors
from gtp.cli.arguments import PATHS
from gtp.cli.terminal import INTERRUPTED
from weights import DEFAULT

if lacking := [name for name in ("pytest", "xdist", "pytest_timeout") if find_spec(name) is None]:
    sys.exit(f"the campaign needs pytest, pytest-xdist and pytest-timeout (pip install them); missing: {lacking}")

import pytest

from bench.reliability.campaign import NAMES, Record, Recorder, Row, amount_of

HERE = Path(__file__).parent
OUT = click.Path(file_okay=False, path_type=Path)


class Collected:
    """Pytest plugin that stores the collected cases."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Store the cases."""
        self.items = list(session.items)


def run_pytest(campaign: dict[str, Any], plugin: object, *options: str) -> int:
    """Run pytest with the campaign's settings and without any configuration file; returns pytest's exit status."""
    own = ("-c", os.devnull, "--rootdir", str(HERE), "--noconftest", "-p", "no:cacheprovider", "--disable-warnings")
    ours = ("-p", "bench.reliability.campaign", "--campaign", json.dumps(campaign))
    with redirect_stdout(sys.stderr):
        status = pytest.main([*own, *ours, *options], plugins=[plugin])
    return int(status)


def collected(names: tuple[str, ...], campaign: dict[str, Any], chosen: str) -> list[Row]:
    """Collect the cases of some parts; the rows have no records yet.

    Args:
        chosen: expression of pytest's ``-k``.
    Raises:
        ValueError: a part's module cannot be imported.
    """
    found, files = Collected(), [str(HERE / f"{name}.py") for name in names]
    collecting = ("--collect-only", "--continue-on-collection-errors", "-qq", "-k", chosen)
    status = run_pytest(campaign, found, *collecting, *files)
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise ValueError("pytest cannot collect the cases; its report is above")
    rows = []
    for name in names:
        items = [item for item in found.items if item.path.stem == name]
        lacking = [mark.kwargs["reason"] for item in items for mark in item.iter_markers("skipif") if mark.args[0]]
        if items:
            amounts = {item.nodeid: amount_of(item) for item in items}
            rows.append(Row(name, items[0].module.PART, amounts, lacking[0] if lacking else ""))
    return rows


def run_part(row: Row, campaign: dict[str, Any], file: Path, jobs: int, again: bool) -> int:
    """Run the unfinished cases of a part and add a record of each to the file; returns pytest's exit status.

    Args:
        again: whether to repeat finished cases that had faults.
        jobs: number of worker processes.

    Raises:
        ValueError: another process runs this part in this folder.
    """
    done = {record.case for record in row.records if not (again and record.faults)}
    missing = [str(HERE / case) for case in row.amounts if case not in done]
    if row.missing or not missing:
        return 0
    click.echo(f"{row.name}: {len(missing)} of {len(row.amounts)} cases to run", err=True)
    with ExitStack() as stack:
        stack.enter_context(alone_in(file.parent, f"-{row.name}"))
        for _ in range(row.part.busy):
            stack.callback(start_child([sys.executable, "-c", "while True: pass"], None, None).kill)
        workers = ("-n", str(1 if row.part.alone else jobs), "--maxschedchunk=1", "--max-worker-restart=1000000")
        shown = ("-q", "--tb=short", f"--timeout={row.part.limit_s}")
        return run_pytest(campaign, Recorder(file), *workers, *shown, *missing)


def read_records(row: Row, file: Path) -> None:
    """Read the records of a part's cases from its file; of two records of a case the later one counts."""
    lines = read_lines(file, lambda line: Record(**json.loads(line)), "finished case of a campaign")
    row.records = list({line.case: line for line in lines if line.case in row.amounts}.values())


@click.command(context_settings={"show_default": True})
@click.argument("parts", nargs=-1, type=click.Choice(NAMES))
@click.option("--out", type=OUT, help="folder for the results; a campaign found there is resumed")
@click.option("--quick", is_flag=True, help="short campaign: all parts in five minutes on two cores")
@click.option(
    "-n", "--jobs", default=core_count, type=click.IntRange(1, 256), show_default="cores", help="worker processes"
)
@click.option("-k", "chosen", default="", metavar="WORDS", help="run only cases whose names match, as with pytest -k")
@click.option("--again", is_flag=True, help="repeat the cases that had faults")
@click.option("--games", type=PATHS, help="recorded games for the part legality: a shard, or a folder of SGF files")
@click.option("--weights", default=DEFAULT, help="network of the engines")
@click.option("--report", is_flag=True, help="run no case, only report the results in the folder")
@click.option("--markdown", is_flag=True, help="print the table as Markdown on standard output instead of figures")
@click.pass_context
def command(
    ctx: click.Context, parts: tuple[str, ...], out: Path | None, quick: bool, jobs: int, chosen: str, again: bool,
    games: Path | None, weights: str, report: bool, markdown: bool,
) -> None:  # fmt: skip
    """Test for crashes, hangs, wrong results, lost data and leaks. PARTS: parts of the campaign, by default all."""
    campaign = {"quick": quick, "games": str(games.resolve()) if games else None, "weights": weights}
    with one_line_errors(), ExitStack() as stack:
        kept = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kept.mkdir(parents=True, exist_ok=True)
        open_manifest(kept / "campaign.json", {**campaign, "runner": "pytest"})
        rows, status = collected(parts or NAMES, campaign, chosen), 0
        for row in rows:
            file = kept / f"{row.name}.jsonl"
            read_records(row, file)
            if not report and status != pytest.ExitCode.INTERRUPTED:
                status = run_part(row, campaign, file, jobs, again)
                read_records(row, file)
    for row in rows:
        click.echo(row.as_markdown(), err=not markdown)
        if not markdown:
            row.print_figures()
    if status == pytest.ExitCode.INTERRUPTED:
        click.echo("interrupted" + ("; the same command resumes" if out else ""), err=True)
        ctx.exit(INTERRUPTED)
    ctx.exit(int(not all(row.holds for row in rows)))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command(prog_name="python -m bench.reliability")
