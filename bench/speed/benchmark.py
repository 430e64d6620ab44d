"""``keima benchmark``: finds the settings that play strongest on a user's machine and writes them to the settings file.

Start at :func:`command`; :mod:`bench.speed.tuning` measures. Torch is imported when the options have been checked.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import TimeRemainingColumn
from rich.table import Table

from engine.config import PlayOptions, SearchOptions, SetupOptions
from gtp import startup
from gtp.cli.arguments import Number, Whole
from gtp.cli.help_style import KeimaCommand
from gtp.cli.options import network_of, options_from, options_of, settings_option, with_player
from gtp.cli.progress import compile_bar
from gtp.cli.settings import read_settings, write_settings
from gtp.cli.terminal import INTERRUPTED, one_line_errors, progress_bar
from gtp.startup import calm_openmp, compile_progress
from weights import NetworkPath

if TYPE_CHECKING:
    from bench.speed.tuning import Measured, Setting
    from engine.play.assembly import Parts

TRIAL_S = 0.05
"""A search that only compiles and loads what it needs"""
RULE = (
    "Elo is an estimate, by the rule of thumb of KataGo's benchmark: 250 for each doubling of visits/s, less 7 for "
    "each leaf in flight at 800 visits a move, and 2 at 5000, for leaves chosen together are chosen worse."
)
COLUMNS = ("visits/s", "evals/s", "in flight", "Elo")


def _number(name: str) -> Whole:
    """A number of an option to try; 0 would leave it to the machine."""
    item = next(item for item in fields(SearchOptions) if item.name == name)
    return Whole(1, item.metadata["high"])


@click.command(cls=KeimaCommand, epilog=RULE)
@settings_option(SetupOptions)
@options_of(SetupOptions, "weights", "device", "size")
@click.option(
    "--seconds", default=6.0, type=Number(0.01, 3600), metavar="SECONDS", help="time for each of the settings tried"
)
@click.option(
    "--move-seconds", type=Number(0.01, 86400), metavar="SECONDS", show_default="as the settings file says",
    help="time a move that Elo is estimated for",
)  # fmt: skip
@click.option("--evaluators", multiple=True, type=_number("evaluators"), help="try this number, repeatable; CPU only")
@click.option("--threads", multiple=True, type=_number("threads"), help="try this number, repeatable")
@click.option("--batch", "batches", multiple=True, type=_number("batch"), help="try this number, repeatable")
@click.option("--write/--no-write", default=None, help="write the best to the settings file; without either, ask")
@click.pass_context
def command(ctx, config, weights, device, size, seconds, move_seconds, evaluators, threads, batches, write) -> None:
    """Find the settings that play strongest on this machine.

    Searches middle-game positions as under a clock, with different numbers of threads and of leaves a batch. On the
    CPU evaluator threads are tried, in front of a GPU and without a network search threads. Ctrl-C ends it and shows
    what has been measured.
    """
    if write and config is None:
        raise click.UsageError("--write needs a settings file, and none was wanted")
    values: dict[str, Any] = read_settings(config) if config is not None else {}
    startup.bar = compile_bar
    calm_openmp()
    with one_line_errors(RuntimeError):
        values = with_player(ctx, values | {"weights": weights, "device": device, "size": size})
        setup = options_from(SetupOptions, values)
        size, network = setup.size, network_of(ctx, config, setup.weights)
        with compile_progress():
            parts = _load(options_from(SearchOptions, values), network, device, size)
    from bench.speed.tuning import as_options, best_of, settings_to_try
    from engine.config.declaration import core_count

    wanted = settings_to_try(parts, core_count(), evaluators, threads, batches)
    found: dict[Setting, Measured] = {}
    status = _measure(parts, wanted, size, seconds, found)
    if found:
        move_s = move_seconds or values.get("seconds") or PlayOptions.seconds
        best = best_of(found, wanted[0], move_s)
        _show(found, wanted[0], best, move_s)
        if status == 0:
            _conclude(best == wanted[0], as_options(best, parts), config, write)
    ctx.exit(status)


def _load(options: SearchOptions, network: NetworkPath | None, device: str, size: int) -> "Parts":
    """Load what a search needs, and use it once."""
    from bench.speed.tuning import in_force, measure
    from engine.play.assembly import load_parts

    parts = load_parts(options, network, device)
    if parts.spec:
        parts.spec.check_sizes((size,))
    for _ in measure(parts, [in_force(parts)], size, TRIAL_S, {}):
        pass
    return parts


def _measure(
    parts: "Parts", wanted: Sequence["Setting"], size: int, seconds: float, found: dict["Setting", "Measured"]
) -> int:
    """Measure with progress on standard error; the exit status."""
    from bench.speed.tuning import POSITIONS, measure

    console = Console(stderr=True)
    try:
        with progress_bar(console, TimeRemainingColumn()) as progress:
            task = progress.add_task("", total=len(wanted) * POSITIONS)
            for number, setting in enumerate(measure(parts, wanted, size, seconds, found)):
                progress.update(task, completed=number, description=_words(setting))
                if not console.is_terminal and number < len(wanted):
                    click.echo(f"measuring {_words(setting)}", err=True)
    except KeyboardInterrupt:
        click.echo("interrupted" if found else "interrupted before anything was measured", err=True)
        return INTERRUPTED
    except RuntimeError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        return 1
    return 0


def _words(setting: "Setting") -> str:
    """A setting in words."""
    return ", ".join(f"{name} {value}" for name, value in setting._asdict().items() if value)


def _show(found: dict["Setting", "Measured"], present: "Setting", best: "Setting", move_s: float) -> None:
    """The table, Elo against the present settings: for people on standard error, else plain on standard output."""
    names = [name for name, value in best._asdict().items() if value]
    rows = [[*names, *COLUMNS, ""]]
    for setting in sorted(found):
        one, gain = found[setting], found[setting].gain(found[present], move_s)
        rates = [f"{one.per_second(name):.1f}" for name in ("visits", "evaluations")]
        margin = f" ±{gain.margin:.0f}" if 0 < gain.margin < math.inf else ""
        notes = [note for note, of in (("now", present), ("best", best)) if setting == of]
        numbers = [str(value) for value in setting if value]
        rows.append([*numbers, *rates, f"{one.in_flight():.1f}", f"{gain.elo:+.0f}{margin}", ", ".join(notes)])
    console = Console(stderr=True)
    if not (console.is_terminal and sys.stdout.isatty()):
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
            click.echo("  ".join([*cells, row[-1]]).rstrip())
        return
    table = Table(box=None, pad_edge=False, caption=f"{RULE} Here: {move_s:g} s a move.", caption_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*row, style="bold" if row[-1] else None)
    console.print(table)


def _conclude(is_present: bool, values: dict[str, int], config: Path | None, write: bool | None) -> None:
    """Recommend the best, and write it if that is wanted."""
    line = ", ".join(f"{name} = {value}" for name, value in values.items())
    if is_present:
        click.echo(f"nothing is clearly better than the present settings: {line}")
        return
    click.echo(f"recommended: {line}")
    if write is None and config is not None and sys.stdin.isatty() and sys.stderr.isatty():
        write = click.confirm(f"write this to {config}?", default=True, err=True)
    if write and config is not None:
        with one_line_errors():
            write_settings(config, values)
        click.echo(f"written to {config}")


if __name__ == "__main__":
    command()
