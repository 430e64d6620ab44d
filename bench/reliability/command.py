"""``python -m bench.reliability [PARTS]``: a campaign that looks for what costs people a game, an hour or their trust.

The parts are in :mod:`bench.reliability.part`, which also says how to add one. With ``--out FOLDER`` every finished
case is on the disk before the next begins, and the same command goes on where it was ended, by Ctrl-C or a crash; cases
with faults are run again with ``--again``. Figures are JSON lines on standard output, the table goes to standard error.
Start at :func:`command`.
"""

from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from bench.reliability.folder import CampaignFolder, Record
from bench.reliability.part import NAMES, Campaign, Case, Part, load_part
from bench.reliability.runner import run_cases
from bench.reliability.table import Row, as_markdown, print_figures, show
from engine.config.declaration import core_count
from gtp.cli.arguments import PATHS
from gtp.cli.terminal import INTERRUPTED, one_line_errors, progress_bar, say
from weights import DEFAULT

FOLDER = click.Path(file_okay=False, path_type=Path)


def run_part(
    part: Part, campaign: Campaign, cases: list[Case], folder: CampaignFolder, jobs: int, again: bool,
    progress: Progress,
) -> None:  # fmt: skip
    """Run what is missing of a part; every finished case goes to the folder.

    Raises:
        ValueError: another process runs it in this folder.
    """
    folder.claim(part.name)
    records = folder.records(part.name)
    missing = [case for case in cases if case.name not in records or (again and records[case.name].faults)]
    task = progress.add_task(part.name, total=len(cases), completed=len(cases) - len(missing))
    if not progress.console.is_terminal:
        say(progress.console, f"{part.name}: {len(missing)} of {len(cases)} cases to run")
    n_faults = 0
    with closing(run_cases(part, campaign, missing, jobs)) as finished:
        for record in finished:
            folder.add(part.name, record)
            n_faults += len(record.faults)
            for fault in record.faults:
                say(progress.console, f"{part.name} {record.case}: {fault}")
            progress.update(task, advance=1, description=f"{part.name}: {n_faults} faults" if n_faults else part.name)


def rows_of(names: tuple[str, ...], campaign: Campaign, folder: CampaignFolder) -> list[Row]:
    """What is known of some parts."""
    rows = []
    for name in names:
        part = load_part(f"bench.reliability.{name}")
        cases = list(part.cases(campaign))
        kept = folder.records(part.name)
        records: list[Record] = [kept[case.name] for case in cases if case.name in kept]
        rows.append(Row(part, cases, records, part.missing(campaign)))
    return rows


@click.command(context_settings={"show_default": True})
@click.argument("parts", nargs=-1, type=click.Choice(NAMES))
@click.option("--out", type=FOLDER, help="folder for the results of cases; a campaign found there goes on")
@click.option("--quick", is_flag=True, help="the short form: all parts in five minutes on two cores")
@click.option("--jobs", default=core_count, type=click.IntRange(1, 256), show_default="cores", help="cases at once")
@click.option("--again", is_flag=True, help="also run the cases that had faults")
@click.option("--games", type=PATHS, help="real games for the parts that use them: a shard, or a folder of SGF files")
@click.option("--weights", default=DEFAULT, help="network to play with")
@click.option("--report", is_flag=True, help="run nothing, report what is in the folder")
@click.option("--markdown", is_flag=True, help="the table as markdown, instead of figures, on standard output")
@click.pass_context
def command(
    ctx: click.Context, parts: tuple[str, ...], out: Path | None, quick: bool, jobs: int, again: bool,
    games: Path | None, weights: str, report: bool, markdown: bool,
) -> None:  # fmt: skip
    """Look for crashes, hangs, wrong results, lost data and leaks: PARTS of the campaign, by default all."""
    campaign = Campaign(quick, games.resolve() if games else None, weights)
    settings = {name: value if value is None else str(value) for name, value in asdict(campaign).items()}
    console, status = Console(stderr=True), 0
    names = parts or NAMES
    with one_line_errors():
        folder = CampaignFolder(out, settings)
        rows = rows_of(names, campaign, folder)
        try:
            with progress_bar(console) as progress:
                for row in rows:
                    if not (report or row.missing):
                        run_part(row.part, campaign, list(row.cases), folder, jobs, again, progress)
        except KeyboardInterrupt:
            say(console, "interrupted" + ("; the same command goes on" if folder.is_kept else ""))
            status = INTERRUPTED
        rows = rows_of(names, campaign, folder)
    show(console, rows)
    if markdown:
        click.echo(as_markdown(rows))
    else:
        print_figures(rows)
    ctx.exit(status or int(not all(row.holds for row in rows)))
