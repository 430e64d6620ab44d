"""``keima benchmark``: finds the strongest settings for a user's machine and writes them to the settings file.

Every setting searches the same middle-game positions for the same time with an empty result cache. All settings are
measured on one position before the next one, so that other load on the machine affects them equally. Start at
:func:`command`; :func:`measure` searches. Torch is imported after the options have been checked.
"""

import itertools
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console
from rich.progress import TimeRemainingColumn
from rich.table import Table

from engine.config import PlayOptions, SearchOptions, SetupOptions
from engine.config.declaration import core_count
from gtp.cli import KeimaCommand
from gtp.cli.arguments import Number, Whole
from gtp.cli.options import options_of, player_from, settings_option
from gtp.cli.settings import read_settings, write_settings
from gtp.cli.terminal import INTERRUPTED, progress_bar, show_text
from gtp.startup import calm_openmp, compile_progress

if TYPE_CHECKING:
    from engine.go.position import Position
    from engine.inference.server import InferenceServer
    from engine.play.factory import Parts

POSITIONS = 5
WARM_UP = 0.25
"""Length of the unmeasured search before each measured one, as a share of the measured one's time"""
LOOKS = 20
"""How many times the leaves in flight are counted during a search"""
CPU_BATCHES = (4, 8, 16, 32)
GPU_BATCHES = (8, 16, 32, 64, 128)
MOST_WORKERS = 16
"""Maximum number of search threads to try with a GPU; more would contend for the tree's lock"""
ELO_A_DOUBLING = 250.0
ELO_A_LEAF = 7.0
"""Elo that each leaf in flight costs at 800 visits a move"""
WORTH_ELO = 10.0
"""Smallest gain in Elo for which a setting is recommended"""
ERRORS = 2.0
"""Standard errors that a gain must exceed to be recommended"""
TRIAL_S = 0.05
"""Seconds of the first search, which compiles kernels and loads the network"""
RULE = (
    "Elo is an estimate by the rule of thumb of KataGo's benchmark: 250 for each doubling of visits/s, less 7 for "
    "each leaf in flight at 800 visits a move (2 at 5000), since leaves selected in parallel are selected worse."
)
COLUMNS = ("visits/s", "evals/s", "in flight", "Elo")


class Setting(NamedTuple):
    """Values of three options to measure together; the 0 that means automatic is replaced by the automatic value."""

    evaluators: int
    """0 = the option has no effect, as with a GPU or without a network"""
    threads: int
    batch: int


class Searched(NamedTuple):
    """Counts and duration of one search."""

    visits: int
    evaluations: int
    seconds: float
    in_flight: float
    """mean number of leaves in flight"""

    def elo(self, move_s: float) -> float:
        """Estimated strength in Elo at ``move_s`` seconds a move, up to a constant.

        It grows with the logarithm of the visits. Each leaf in flight costs Elo, since it was selected without the
        results of the others; it costs less with more visits a move.
        Source: the estimates of KataGo's benchmark, cpp/program/playutils.cpp, whose threads hold one leaf each.
        """
        rate = self.visits / self.seconds
        spread = (1600.0 / (800.0 + rate * move_s)) ** 0.85
        return ELO_A_DOUBLING * math.log2(rate) - ELO_A_LEAF * self.in_flight * spread


class Measured(list[Searched]):
    """The searches of a setting, one a position, in the order of the positions."""

    def per_second(self, name: str) -> float:
        """Visits or evaluations (``name``) a second, over all searches."""
        return sum(getattr(one, name) for one in self) / sum(one.seconds for one in self)

    def in_flight(self) -> float:
        """Mean number of leaves in flight."""
        return statistics.fmean(one.in_flight for one in self)

    def gain(self, other: "Measured", move_s: float) -> "Gain":
        """Gain in Elo over another setting, compared position by position."""
        gains = [one.elo(move_s) - base.elo(move_s) for one, base in zip(self, other, strict=False)]
        error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
        return Gain(statistics.fmean(gains), ERRORS * error)


class Gain(NamedTuple):
    """A difference in Elo, and its statistical error, without the error of the rule of thumb."""

    elo: float
    margin: float
    """``ERRORS`` standard errors; inf = unknown"""


def counts(most: int) -> list[int]:
    """Numbers of threads to try: 1 to ``most`` if ``most`` <= 4; else powers of two below ``most``, and ``most``."""
    if most <= 4:
        return list(range(1, most + 1))
    return sorted({1 << i for i in range(most.bit_length())} | {most})


def settings_to_try(
    parts: "Parts", cores: int, evaluators: Sequence[int] = (), threads: Sequence[int] = (), batches: Sequence[int] = ()
) -> list[Setting]:
    """Settings to measure: the present one first, then every combination of some values.

    Tried are several values of ``batch``, and of ``evaluators`` if a network is on the CPU, else of ``threads``.

    Args:
        cores: number of processors.
        evaluators, threads, batches: values to try; empty = the device's defaults.
    """
    batches_requests = bool(parts.networks) and parts.networks[0].batches_requests
    if parts.networks and not batches_requests:
        evaluators, threads = evaluators or counts(cores), threads or (1,)
    else:
        evaluators, threads = (0,), threads or counts(min(cores, MOST_WORKERS) if batches_requests else cores)
    batches = batches or (GPU_BATCHES if batches_requests else CPU_BATCHES)
    tried = (Setting(*one) for one in itertools.product(evaluators, threads, batches))
    return list(dict.fromkeys((in_force(parts), *tried)))


def in_force(parts: "Parts") -> Setting:
    """The present setting: the options, with automatic values resolved on this machine."""
    from engine.search.tuning import resolved

    network = parts.networks[0] if parts.networks else None
    options = resolved(parts.options, network)
    with_evaluators = network is not None and not network.batches_requests
    return Setting(options.evaluators if with_evaluators else 0, options.threads, options.batch)


def as_options(setting: Setting, parts: "Parts") -> dict[str, int]:
    """A setting as values of the settings file; a value that equals the automatic choice becomes 0."""
    automatic = in_force(parts._replace(options=replace(parts.options, threads=0, evaluators=0, batch=0)))
    values = {
        "threads": 0 if setting.threads == automatic.threads else setting.threads,
        "batch": 0 if setting.batch == automatic.batch else setting.batch,
    }
    if setting.evaluators:
        is_automatic = setting.evaluators == automatic.evaluators and not values["threads"]
        values = {"evaluators": 0 if is_automatic else setting.evaluators} | values
    return values


def best_of(found: dict[Setting, Measured], present: Setting, move_s: float) -> Setting:
    """The strongest setting if its gain over the present one exceeds its margin and ``WORTH_ELO``; else ``present``."""
    gains = {setting: one.gain(found[present], move_s) for setting, one in found.items()}
    best = max(gains, key=lambda setting: gains[setting].elo)
    return best if gains[best].elo > max(WORTH_ELO, gains[best].margin) else present


def measure(
    parts: "Parts", wanted: Sequence[Setting], size: int, seconds: float, found: dict[Setting, Measured]
) -> Iterator[Setting]:
    """Measure settings one after the other; yields each setting before it is measured on a position.

    Args:
        wanted: settings in the order of measurement; neighbours with equal evaluators share a server.
        size: board size.
        seconds: total time for each setting.
        found: the results are added here.
    Raises:
        RuntimeError: the network failed.
    """
    from bench.speed.subjects import middle_games
    from engine.play.factory import new_server

    server, evaluators = None, None
    with ExitStack() as stack:
        for position, _ in middle_games(size)[:POSITIONS]:
            for setting in wanted:
                yield setting
                tried = parts._replace(options=replace(parts.options, **setting._asdict()))
                if setting.evaluators != evaluators:
                    stack.close()
                    server, evaluators = new_server(tried), setting.evaluators
                    if server is not None:
                        stack.enter_context(server)
                searched = _search(tried, server, position, seconds / POSITIONS)
                found.setdefault(setting, Measured()).append(searched)


def _search(parts: "Parts", server: "InferenceServer | None", position: "Position", seconds: float) -> Searched:
    """Search a position with an empty tree and cache."""
    from engine.search.report import Watcher
    from engine.search.search import Search
    from engine.search.stoppers import SearchLimits

    search = Search(parts.options, server, parts.encoder, parts.patterns)
    try:
        search.set_position(position)
        search.run(SearchLimits(soft_s=WARM_UP * seconds))
        search.clear()
        if server is not None:
            server.forget()
        looks: list[int] = []
        watcher = Watcher(lambda _: looks.append(search.in_flight()), seconds / LOOKS)
        report = search.run(SearchLimits(soft_s=seconds), watcher=watcher)
    finally:
        search.close()
    return Searched(report.visits, report.evaluations, report.seconds, statistics.fmean(looks or [1]))


def _number(name: str) -> Whole:
    """Type of the values to try for an option: the option's own range without 0, which means automatic."""
    item = next(item for item in fields(SearchOptions) if item.name == name)
    return Whole(1, item.metadata["high"])


@click.command(cls=KeimaCommand, epilog=RULE)
@settings_option(SetupOptions)
@options_of(SetupOptions, "weights", "device", "size")
@click.option("--seconds", default=6.0, type=Number(0.01, 3600), metavar="SECONDS", help="time for each setting")
@click.option(
    "--move-seconds", type=Number(0.01, 86400), metavar="SECONDS", show_default="as in the settings file",
    help="thinking time a move for which Elo is estimated",
)  # fmt: skip
@click.option(
    "--evaluators", multiple=True, type=_number("evaluators"), help="evaluator threads to try, repeatable; CPU only"
)
@click.option("--threads", multiple=True, type=_number("threads"), help="search threads to try, repeatable")
@click.option("--batch", "batches", multiple=True, type=_number("batch"), help="batch size to try, repeatable")
@click.option("--write/--no-write", default=None, help="write the best setting to the settings file; default: ask")
@click.pass_context
def command(ctx, config, weights, device, size, seconds, move_seconds, evaluators, threads, batches, write) -> None:
    """Find the settings that play strongest on this machine.

    Middle-game positions are searched under a time limit with different numbers of threads (evaluators on the CPU,
    search threads with a GPU or without a network) and leaves a batch. Ctrl-C stops and shows the results so far.
    """
    if write and config is None:
        raise click.UsageError("--write needs a settings file, but --config is none")
    values: dict[str, Any] = read_settings(config) if config is not None else {}
    calm_openmp()
    player = player_from(ctx, config, values | {"weights": weights, "device": device, "size": size})
    size, network = player.setup.size, player.network
    from engine.play.factory import load_parts

    with compile_progress():
        parts = load_parts(player.search, network, device)
        if parts.spec:
            parts.spec.check_sizes((size,))
        # Compiles and loads all that a search needs.
        list(measure(parts, [in_force(parts)], size, TRIAL_S, {}))
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


def _measure(
    parts: "Parts", wanted: Sequence[Setting], size: int, seconds: float, found: dict[Setting, Measured]
) -> int:
    """Measure with progress on standard error; returns the exit status."""
    console = Console(stderr=True)
    try:
        with progress_bar(console, TimeRemainingColumn()) as progress:
            task = progress.add_task("", total=len(wanted) * POSITIONS)
            for number, setting in enumerate(measure(parts, wanted, size, seconds, found)):
                words = ", ".join(f"{name} {value}" for name, value in setting._asdict().items() if value)
                progress.update(task, completed=number, description=words)
                if not console.is_terminal and number < len(wanted):
                    click.echo(f"measuring {words}", err=True)
    except KeyboardInterrupt:
        click.echo("interrupted" if found else "interrupted before anything was measured", err=True)
        return INTERRUPTED
    except RuntimeError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        return 1
    return 0


def _show(found: dict[Setting, Measured], present: Setting, best: Setting, move_s: float) -> None:
    """Print the table, with Elo relative to the present setting; as plain text if there is no terminal."""
    console = Console(stderr=True)
    is_seen = console.is_terminal and sys.stdout.isatty()
    caption = f"{RULE} Here: {move_s:g} s a move." if is_seen else None
    table = Table(box=None, pad_edge=False, caption=caption, caption_justify="left")
    for name in (*(name for name, value in best._asdict().items() if value), *COLUMNS, ""):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for setting in sorted(found):
        one, gain = found[setting], found[setting].gain(found[present], move_s)
        rates = [f"{one.per_second(name):.1f}" for name in ("visits", "evaluations")]
        margin = f" ±{gain.margin:.0f}" if 0 < gain.margin < math.inf else ""
        notes = ", ".join(note for note, of in (("now", present), ("best", best)) if setting == of)
        numbers = [str(value) for value in setting if value]
        row = (*numbers, *rates, f"{one.in_flight():.1f}", f"{gain.elo:+.0f}{margin}", notes)
        table.add_row(*row, style="bold" if notes else None)
    if is_seen:
        console.print(table)
    else:
        show_text(table)


def _conclude(is_present: bool, values: dict[str, int], config: Path | None, write: bool | None) -> None:
    """Print the recommended setting, and write it to the settings file if ``write`` is set or the user agrees."""
    line = ", ".join(f"{name} = {value}" for name, value in values.items())
    if is_present:
        click.echo(f"nothing is clearly better than the present settings: {line}")
        return
    click.echo(f"recommended: {line}")
    if write is None and config is not None and sys.stdin.isatty() and sys.stderr.isatty():
        write = click.confirm(f"write this to {config}?", default=True, err=True)
    if write and config is not None:
        write_settings(config, values)
        click.echo(f"written to {config}")


if __name__ == "__main__":
    command()
