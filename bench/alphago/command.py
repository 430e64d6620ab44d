"""``keima alphago``: AlphaGo of 2016 from games to a player and a report, by one command.

What the stages are stands in :mod:`bench.alphago.stages`, how they are run in :mod:`bench.alphago.runner`.
"""

from contextlib import nullcontext
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, TimeRemainingColumn

from bench.alphago.page import PAGE, REPORT, write_report
from bench.alphago.presets import PRESETS, chosen
from bench.alphago.runner import CommandFailed, Observer, Record, run_stage
from bench.alphago.stages import Command, Stage, Way, all_stages
from bench.terminal import progress_bar, say
from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.system.files import alone_in
from gtp.cli import KeimaCommand
from gtp.cli.arguments import PATHS, OneOf, Whole
from gtp.cli.terminal import INTERRUPTED, one_line_errors

STAGES = ("games", "sl", "patterns", "rl", "values", "value", "ablation")
PRESET_HELP = "tour: 7x7, minutes; evening: 9x9; published: 19x19, the paper's sizes"
GAMES_HELP = "games of people to learn from, as for keima data build"
PROCESSES_HELP = "processes that share games and training (torchrun), one a GPU or core"


@click.command(cls=KeimaCommand)
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="folder of the whole")
@click.option("--size", type=Whole(MIN_SIZE, MAX_SIZE), show_default="the preset's", help="size of the board")
@click.option("--preset", type=OneOf(tuple(PRESETS)), show_default="by --size", help=PRESET_HELP)
@click.option("--games", type=PATHS, multiple=True, show_default="the shipped network's", help=GAMES_HELP)
@click.option("--skip", type=OneOf(STAGES), multiple=True, help="stage to leave out")
@click.option("--only", type=OneOf(STAGES), multiple=True, help="stage to run; the others are left out")
@click.option("--processes", default=1, type=Whole(1), help=PROCESSES_HELP)
@click.option("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda or mps")
@click.option("--seed", default=1, type=Whole(0), help="seed of all that is drawn")
@click.option("--dry-run", is_flag=True, help="print the commands of all stages, and end")
@click.pass_context
def command(
    ctx: click.Context, out: Path, size: int | None, preset: str | None, games: tuple[Path, ...], skip: tuple[str, ...],
    only: tuple[str, ...], processes: int, device: str, seed: int, dry_run: bool,
) -> None:  # fmt: skip
    """Build AlphaGo of 2016 whole, and measure what its parts are worth.

    These are made as published: games, policy networks, patterns, value network. Every stage is a keima command of its
    own, which is shown. A run that was stopped, even by kill -9, goes on when the same command is given again.

    \b
        keima alphago --size 9 --out runs/alphago-9
        keima alphago --preset tour --out runs/tour
    """
    console = Console(stderr=True)
    with one_line_errors(CommandFailed):
        way = Way(out, chosen(preset, size), games, device, seed)
        stages = [stage for stage in all_stages(way) if stage.name not in skip and stage.name in (only or STAGES)]
        # What cannot be shared is refused now, not hours later.
        for one in (one for stage in stages for one in stage.commands):
            one.arguments(processes)
        if dry_run:
            for stage in stages:
                click.echo(f"# {stage.name}: {stage.what}")
                for one in stage.commands:
                    click.echo(one.text)
            return
        try:
            with alone_in(out):
                record = Record.of(out)
                _run(stages, record, processes, console)
                write_report(way, {stage.name: record.spent(stage) for stage in all_stages(way)})
                say(console, f"written: {out / REPORT}, {out / PAGE}")
        except KeyboardInterrupt:
            say(console, "interrupted; the same command goes on from here")
            ctx.exit(INTERRUPTED)


def _run(stages: list[Stage], record: Record, processes: int, console: Console) -> None:
    """Run what has not ended of some stages."""
    is_due = False
    for number, stage in enumerate(stages, 1):
        say(console, f"stage {number} of {len(stages)}, {stage.name}: {stage.what}{_time_left(stages, number, record)}")
        with progress_bar(console, TimeRemainingColumn()) if stage.games else nullcontext() as progress:
            is_due |= run_stage(stage, record, processes, is_due, Shown(stage, console, progress))
        say(console, f"  {stage.name} took {record.spent(stage) / 60:.1f} minutes")


def _time_left(stages: list[Stage], number: int, record: Record) -> str:
    """About how long the stages from a number on will take, by the time of those before."""
    before, after = stages[: number - 1], stages[number - 1 :]
    spent = sum(record.spent(stage) for stage in before)
    left = spent / max(1e-9, sum(stage.share for stage in before)) * sum(stage.share for stage in after)
    return f"; {_about(left)} left" if before else ""


def _about(seconds: float) -> str:
    """A time in words, as exactly as an estimate of it deserves."""
    if seconds < 60.0:
        return "under a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 90 * 60.0 else f"about {seconds / 3600:.1f} h"


class Shown(Observer):
    """A stage on the terminal: its commands, and one bar for matches that are played at once; others have their own."""

    def __init__(self, stage: Stage, console: Console, progress: Progress | None) -> None:
        self._console, self._progress = console, progress
        self._files = [command.makes.parent / "games.jsonl" for command in stage.commands]
        self._task = progress.add_task("games", total=stage.games) if progress else None

    def begins(self, command: Command) -> None:
        """See :class:`bench.alphago.runner.Observer`."""
        say(self._console, f"  {command.text}")

    def waits(self) -> None:
        """See :class:`bench.alphago.runner.Observer`."""
        if self._progress and self._task is not None:
            done = sum(path.read_bytes().count(b"\n") for path in self._files if path.exists())
            self._progress.update(self._task, completed=done)
