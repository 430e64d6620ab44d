"""``keima data build`` and ``keima data show``: shards from game files, and statistics of shards."""

import json
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from engine.records.archive import disk_bytes
from engine.records.duplicates import OPENING, SPLITS
from engine.records.filters import Filters
from engine.records.games import read_games
from engine.records.gather import Gathered
from engine.records.overview import added, cell, overview
from engine.records.shards import MANIFEST, BuildOptions, build, every_shard_file, verify
from gtp.cli import KeimaGroup
from gtp.cli.arguments import AS_JSON, PATHS, Whole
from gtp.cli.bulk import label_command, play_command, reached_command, values_command
from gtp.cli.options import options_from, options_of
from gtp.cli.terminal import INTERRUPTED, bar, workers_for

FEW_GAMES = 10
"""Minimum number of games in a held-out split; fewer are reported as too few for metrics"""
NAMED_PROBLEMS = 20
"""Maximum number of unreadable files that are named; further ones are only counted"""


@click.group(cls=KeimaGroup)
def data() -> None:
    """Make training data from game records, and look at it."""


@data.command("build")
@click.argument("sources", nargs=-1, required=True, type=PATHS)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="output folder")
@click.option("--without", multiple=True, type=PATHS,
              help=f"shard or folder whose games are excluded, by their first {OPENING} moves")  # fmt: skip
@options_of(Filters)
@click.option("--komi", type=(float, float), metavar="LEAST MOST", help="range of komi, such as 5.5 7.5")
@options_of(BuildOptions)
@click.option("--workers", type=Whole(0), default=0, help="worker processes; 0 = one a core")
@AS_JSON
@click.pass_context
def build_command(ctx: click.Context, /, sources: tuple[Path, ...], out: Path, as_json: bool, **given: Any) -> None:
    """Make shards of training games from SOURCES.

    A source is an SGF file (of one game or many), a zip or tar archive, a packed shard, or a folder of these, which is
    searched at any depth. Unreadable files are named, counted and skipped. Games equal up to the eight symmetries are
    kept once, and games with the same first 40 moves go to the same split, so training and validation never share a
    game.

    \b
        keima data build KGS-2019.zip my-games/ --out games --min-rank 6d --min-moves 60
        keima train dual --games games/train --validation games/validation.npz.xz --out run
    """
    given |= {"sources": sources, "workers": given["workers"] or workers_for(sources)}
    try:
        manifest = _build(options_from(BuildOptions, given | {"filters": options_from(Filters, given)}), out)
    except BrokenProcessPool as error:
        raise click.ClickException("a worker process was killed; try fewer --workers") from error
    except KeyboardInterrupt:
        click.echo("interrupted; nothing was written", err=True)
        ctx.exit(INTERRUPTED)
    if as_json:
        click.echo(json.dumps(manifest, ensure_ascii=False))
    else:
        _show_build(manifest, out)
    _warn_of_small_splits(manifest)


def _build(options: BuildOptions, out: Path) -> dict[str, Any]:
    """Call :func:`engine.records.shards.build` with progress and problems on standard error."""
    texts = (TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.fields[note]}"))
    console = Console(stderr=True)
    games = problems = 0
    with bar(console, *texts, TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        reading = progress.add_task("reading", total=sum(map(disk_bytes, options.sources)), note="")
        writing = progress.add_task("writing", total=None, note="", visible=False)

        def report(found: Gathered) -> None:
            nonlocal games, problems
            for name, reason in found.problems[: max(0, NAMED_PROBLEMS - problems)]:
                console.print(f"{name}: {reason}", markup=False, highlight=False, soft_wrap=True)
            games, problems = games + found.found, problems + len(found.problems)
            progress.update(reading, advance=found.bytes_read, note=f"{games} games, {problems} unreadable")

        def advance(done: int, total: int) -> None:
            progress.update(writing, completed=done, total=total, note=f"{done} games", visible=True)

        manifest: dict[str, Any] = build(options, out, report, advance)
    if problems > NAMED_PROBLEMS:
        console.print(f"... and {problems - NAMED_PROBLEMS} more that could not be read", highlight=False)
    return manifest


def _show_build(manifest: dict[str, Any], out: Path) -> None:
    """Print the numbers of games read, removed and written."""
    table = Table(Column("source", overflow="fold"), "files", "games", "unreadable", "after filters")
    for source in manifest["sources"]:
        table.add_row(*(str(source[name]) for name in ("path", "files", "games", "unreadable", "kept")))
    lost = Table("removed because", "games")
    for name, count in manifest["removed"].items():
        lost.add_row(name, str(count))
    made = Table("split", "games", "moves", "shards", "bytes")
    for name in SPLITS:
        shards = [shard for shard in manifest["shards"] if shard["split"] == name]
        numbers = manifest["games"][name], manifest["moves"][name], len(shards), sum(s["bytes"] for s in shards)
        made.add_row(name, *map(str, numbers))
    console = Console()
    for part in (table, lost, made):
        console.print(part)
    console.print(f"written: {out}", markup=False, highlight=False)


def _warn_of_small_splits(manifest: dict[str, Any]) -> None:
    """Warn of validation and test splits with too few games."""
    for name in SPLITS[1:]:
        share, games = manifest["split"][f"{name}_share"], manifest["games"][name]
        if share and games < FEW_GAMES:
            there = f"{games} game{'s' * (games > 1)} in" if games else "no"
            click.echo(
                f"{there} {name}.npz.xz: too few to measure on; increase --{name}-share from {share:g}, or add games",
                err=True,
            )


data.add_command(label_command)
data.add_command(play_command)
data.add_command(reached_command)
data.add_command(values_command)


@data.command("show")
@click.argument("path", type=PATHS)
@AS_JSON
def show_command(path: Path, as_json: bool) -> None:
    """Show statistics of PATH, a shard of games or a folder of them.

    The shards of a folder from `keima data build` are first checked against its manifest.
    """
    # Only one shard is in memory at a time.
    found: dict[str, dict[str, Any]] = {}
    if path.is_dir() and (path / MANIFEST).exists():
        verify(path)
    for file in every_shard_file(path):
        name = next((split for split in SPLITS if file.name.startswith(split)), file.name)
        facts = overview(read_games(file))
        found[name] = added(found[name], facts) if name in found else facts
    order = {name: number for number, name in enumerate(SPLITS)}
    found = {name: found[name] for name in sorted(found, key=lambda name: (order.get(name, len(order)), name))}
    if as_json:
        click.echo(json.dumps(found))
        return
    table = Table("", *found)
    for name in next(iter(found.values())):
        table.add_row(name.replace("_", " "), *(cell(facts[name]) for facts in found.values()))
    Console().print(table)
