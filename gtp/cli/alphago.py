"""``keima alphago``: AlphaGo of 2016 from games to a player and a report, by one command.

:mod:`engine.alphago.stages` has its stages, :mod:`engine.alphago.run` the loop over them.
"""

import shlex
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.progress import TimeRemainingColumn

from engine.alphago.report import PAGE, REPORT, write_report
from engine.alphago.run import Run
from engine.alphago.stages import PRESETS, Plan, Stage, chosen
from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.records.sgf_values import rank_text, read_rank
from engine.system.files import alone_in
from gtp.cli import KeimaCommand
from gtp.cli.arguments import DEVICE, PATHS, OneOf, Whole, parsed
from gtp.cli.terminal import INTERRUPTED, progress_bar, say

STAGES = ("games", "sl", "patterns", "rl", "values", "value", "ablation")
PRESET_HELP = (
    "preset: tour = 7x7, minutes; evening = 9x9; published = 19x19, the paper's sizes in batches of 256; paper = the "
    "same in the paper's batches of 16 and 32"
)
GAMES_HELP = "human games to learn from: files, archives or folders"
PROCESSES_HELP = "processes that share games and training (torchrun), one a GPU or core"


@click.command("alphago", cls=KeimaCommand)
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="folder of the run")
@click.option("--size", type=Whole(MIN_SIZE, MAX_SIZE), show_default="the preset's", help="board size")
@click.option("--preset", type=OneOf(tuple(PRESETS)), show_default="by --size", help=PRESET_HELP)
@click.option("--games", type=PATHS, multiple=True, show_default="the shipped network's", help=GAMES_HELP)
@click.option("--min-rank", callback=parsed(read_rank), metavar="RANK", show_default="6d on 19x19, else any",
              help="lowest rank of either player of --games: 3k, 6d, 1p")  # fmt: skip
@click.option("--mover-rank", callback=parsed(read_rank), metavar="RANK", show_default="any",
              help="lowest rank of the side to move in positions of --games that the SL policy learns")  # fmt: skip
@click.option("--skip", type=OneOf(STAGES), multiple=True, help="stage to skip; repeatable")
@click.option("--only", type=OneOf(STAGES), multiple=True, help="stage to run without the others; repeatable")
@click.option("--processes", default=1, type=Whole(1), help=PROCESSES_HELP)
@DEVICE
@click.option("--seed", default=1, type=Whole(0), help="random seed")
@click.option("--dry-run", is_flag=True, help="print the commands of all stages and exit")
@click.pass_context
def alphago(
    ctx: click.Context, out: Path, size: int | None, preset: str | None, games: tuple[Path, ...], min_rank: int | None,
    mover_rank: int | None, skip: tuple[str, ...], only: tuple[str, ...], processes: int, device: str, seed: int,
    dry_run: bool,
) -> None:  # fmt: skip
    """Build AlphaGo of 2016 whole, and measure what its parts are worth.

    The stages follow the paper: games, policy networks, patterns, value network. Each runs keima commands, which are
    printed. The same command resumes a stopped run, even one that was killed.

    \b
        keima alphago --size 9 --out runs/alphago-9
        keima alphago --preset tour --out runs/tour
    """
    console = Console(stderr=True)
    if (min_rank or mover_rank) and not games:
        raise ValueError("--min-rank and --mover-rank need --games: they filter human games")
    made = chosen(preset, size)
    if min_rank:
        made = replace(made, min_rank=rank_text(min_rank))
    plan = Plan(out, made, games, device, seed, rank_text(mover_rank) if mover_rank else "")
    stages = [stage for stage in plan.stages() if stage.name not in skip and stage.name in (only or STAGES)]
    # A command that cannot be shared among processes is refused now, not hours later.
    for one in (one for stage in stages for one in stage.commands):
        one.arguments(processes)
    if dry_run:
        click.echo(f"cd {shlex.quote(str(out))}")
        for stage in stages:
            click.echo(f"# {stage.name}: {stage.what}")
            for one in stage.commands:
                click.echo(f"keima {one.text}")
        return
    try:
        with alone_in(out):
            run = Run(plan)
            for number, stage in enumerate(stages):
                say(
                    console,
                    f"stage {number + 1} of {len(stages)}, {stage.name}: {stage.what}{_left(run, stages, number)}",
                )
                _run_stage(run, stage, processes, console)
                say(console, f"  {stage.name} took {run.spent(stage) / 60:.1f} minutes")
            write_report(plan, {stage.name: run.spent(stage) for stage in plan.stages()})
            say(console, f"written: {out / REPORT}, {out / PAGE}")
    except KeyboardInterrupt:
        say(console, "interrupted; the same command resumes")
        ctx.exit(INTERRUPTED)


def _run_stage(run: Run, stage: Stage, processes: int, console: Console) -> None:
    """Run a stage and print its commands; parallel matches share a progress bar, other commands show theirs."""
    files = [(run.plan.out / command.makes).with_name("games.jsonl") for command in stage.commands]
    with progress_bar(console, TimeRemainingColumn()) if stage.games else nullcontext() as progress:
        task = progress.add_task("games", total=stage.games) if progress else None

        def show() -> None:
            if progress and task is not None:
                done = sum(path.read_bytes().count(b"\n") for path in files if path.exists())
                progress.update(task, completed=done)

        run.run(stage, processes, lambda command: say(console, f"  keima {command.text}"), show)


def _left(run: Run, stages: list[Stage], number: int) -> str:
    """Text of the estimated time for ``stages[number:]``, from the time of the stages before; empty without these."""
    before, after = stages[:number], stages[number:]
    spent = sum(map(run.spent, before))
    left = spent / max(1e-9, sum(stage.share for stage in before)) * sum(stage.share for stage in after)
    return f"; {_about(left)} left" if before else ""


def _about(seconds: float) -> str:
    """An estimated time as text, such as ``about 12 min``."""
    if seconds < 60.0:
        return "under a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 90 * 60.0 else f"about {seconds / 3600:.1f} h"
