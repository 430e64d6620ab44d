"""``keima benchmark``: finds the settings that play strongest on a user's machine and writes them to the settings file.

Every setting searches the same middle-game positions for the same time, the result cache empty; all settings take
turns on a position before the next one comes, so that other load of the machine meets all of them alike. Start at
:func:`command`; :func:`measure` searches. Torch is imported when the options have been checked.
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
"""Share of a search's time that it runs before the clock does"""
LOOKS = 20
"""How often a search is asked for its leaves in flight"""
CPU_BATCHES = (4, 8, 16, 32)
GPU_BATCHES = (8, 16, 32, 64, 128)
MOST_WORKERS = 16
"""Search threads tried in front of a GPU; more would stand in each other's way."""
ELO_A_DOUBLING = 250.0
ELO_A_LEAF = 7.0
"""At 800 visits a move"""
WORTH_ELO = 10.0
"""Less is no reason to change anything."""
ERRORS = 2.0
"""Standard errors that a gain must exceed: less may be luck"""
TRIAL_S = 0.05
"""A search that only compiles and loads what it needs"""
RULE = (
    "Elo is an estimate, by the rule of thumb of KataGo's benchmark: 250 for each doubling of visits/s, less 7 for "
    "each leaf in flight at 800 visits a move, and 2 at 5000, for leaves chosen together are chosen worse."
)
COLUMNS = ("visits/s", "evals/s", "in flight", "Elo")


class Setting(NamedTuple):
    """Options to try together; where the machine chooses, the number it chooses."""

    evaluators: int
    """0 where they cannot be chosen"""
    threads: int
    batch: int


class Searched(NamedTuple):
    """What one search has reached."""

    visits: int
    evaluations: int
    seconds: float
    in_flight: float
    """leaves under way, on average"""

    def elo(self, move_s: float) -> float:
        """Strength at ``move_s`` seconds a move, on a scale without a zero: only differences mean anything.

        Visits gain by their logarithm. Leaves in flight cost, for each was chosen without knowing what the others
        will find; the more visits a move has, the less.
        Source: the estimates of KataGo's benchmark, cpp/program/playutils.cpp, whose threads hold one leaf each.
        """
        rate = self.visits / self.seconds
        spread = (1600.0 / (800.0 + rate * move_s)) ** 0.85
        return ELO_A_DOUBLING * math.log2(rate) - ELO_A_LEAF * self.in_flight * spread


class Measured(list[Searched]):
    """What a setting has reached, a search a position, in the order of the positions."""

    def per_second(self, name: str) -> float:
        """Visits or evaluations a second."""
        return sum(getattr(one, name) for one in self) / sum(one.seconds for one in self)

    def in_flight(self) -> float:
        """Leaves under way, on average."""
        return statistics.fmean(one.in_flight for one in self)

    def gain(self, other: "Measured", move_s: float) -> "Gain":
        """Elo beyond another setting, compared position by position."""
        gains = [one.elo(move_s) - base.elo(move_s) for one, base in zip(self, other, strict=False)]
        error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
        return Gain(statistics.fmean(gains), ERRORS * error)


class Gain(NamedTuple):
    """A difference in Elo and its statistical error; the error of the rule of thumb is not in it."""

    elo: float
    margin: float
    """inf = unknown"""


def counts(most: int) -> list[int]:
    """Numbers of threads to try, up to ``most``: all if they are few, else powers of two and the most."""
    if most <= 4:
        return list(range(1, most + 1))
    return sorted({1 << i for i in range(most.bit_length())} | {most})


def settings_to_try(
    parts: "Parts", cores: int, evaluators: Sequence[int] = (), threads: Sequence[int] = (), batches: Sequence[int] = ()
) -> list[Setting]:
    """What to try: the settings in force, and every combination of some numbers.

    On the CPU evaluators are tried, in front of a GPU and where rollouts are all there is search threads.

    Args:
        evaluators, threads, batches: numbers to try; none = what suits the device.
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
    """The setting that the options amount to on this machine."""
    from engine.search.tuning import resolved

    network = parts.networks[0] if parts.networks else None
    options = resolved(parts.options, network)
    with_evaluators = network is not None and not network.batches_requests
    return Setting(options.evaluators if with_evaluators else 0, options.threads, options.batch)


def as_options(setting: Setting, parts: "Parts") -> dict[str, int]:
    """A setting as the settings file has it: 0 where this machine would choose the same by itself."""
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
    """The strongest setting; the present one, unless another gains more than its error and ``WORTH_ELO``."""
    gains = {setting: one.gain(found[present], move_s) for setting, one in found.items()}
    best = max(gains, key=lambda setting: gains[setting].elo)
    return best if gains[best].elo > max(WORTH_ELO, gains[best].margin) else present


def measure(
    parts: "Parts", wanted: Sequence[Setting], size: int, seconds: float, found: dict[Setting, Measured]
) -> Iterator[Setting]:
    """Measure settings, writing into ``found`` as results come; yields each setting before its turn.

    Args:
        wanted: in the order in which they are measured; neighbours with equal evaluators share a server.
        size: of the board.
        seconds: for each setting in all.
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
    """Search a position with nothing known of it."""
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
    """A number of an option to try; 0 would leave it to the machine."""
    item = next(item for item in fields(SearchOptions) if item.name == name)
    return Whole(1, item.metadata["high"])


@click.command(cls=KeimaCommand, epilog=RULE)
@settings_option(SetupOptions)
@options_of(SetupOptions, "weights", "device", "size")
@click.option(
    "--seconds", default=6.0, type=Number(0.01, 3600), metavar="SECONDS", help="time a setting is measured for"
)
@click.option(
    "--move-seconds", type=Number(0.01, 86400), metavar="SECONDS", show_default="as the settings file says",
    help="thinking time a move for which Elo is estimated",
)  # fmt: skip
@click.option(
    "--evaluators",
    multiple=True,
    type=_number("evaluators"),
    help="number of evaluator threads to try, on the CPU; repeatable",
)
@click.option("--threads", multiple=True, type=_number("threads"), help="number of search threads to try; repeatable")
@click.option("--batch", "batches", multiple=True, type=_number("batch"), help="batch size to try; repeatable")
@click.option("--write/--no-write", default=None,
              help="write the best settings to the settings file; if neither is given, ask")  # fmt: skip
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
    """Measure with progress on standard error; the exit status."""
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
    """The table, Elo against the present settings: for people on standard error, else plain on standard output."""
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
    """Recommend the best, and write it if that is wanted."""
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
