"""``keima zero``: AlphaGo Zero from random play, by one command; the loop itself is :mod:`engine.zero.loop`."""
# ruff: noqa: E402

from gtp.startup import calm_openmp

# Before torch is imported. Steps on small boards are short, and threads that spin while they wait take ten times the
# CPU time as soon as another process runs: 213 ms a step instead of 21 on 5x5.
calm_openmp()

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from engine.config import TrainOptions
from engine.config.declaration import key_of, sections
from engine.features.encoder import KEIMA
from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.nets.devices import torch_device
from engine.selfplay.search_options import SearchPlayOptions
from engine.system.executor import StopOnSignal
from engine.system.files import alone_in
from engine.train.ranks import own_cores
from engine.train.turns import first_network
from engine.zero.ladder import Ladder
from engine.zero.loop import MANIFEST, Zero
from engine.zero.networks import NETWORK
from engine.zero.options import LEARNING, NAMED, SHAPE, LadderOptions, NetworkShape, ZeroConfig, ZeroOptions, recipe_for
from engine.zero.page import write_page
from engine.zero.self_play import compile_self_play, is_compiled
from engine.zero.turn import Progress
from gtp.cli.arguments import DEVICE, Number, Whole
from gtp.cli.options import ExecutorOptions, GroupedCommand, options_from, options_of, ray_options, refusing
from gtp.cli.settings import read_settings, render
from gtp.cli.terminal import INTERRUPTED, say
from weights import find

KNOWN = {
    kind: [item for _, items in sections(kind) for item in items if kind is not TrainOptions or item.name in LEARNING]
    for kind in (NetworkShape, ZeroOptions, SearchPlayOptions, TrainOptions, LadderOptions)
}
RECIPE = [(kind.heading, items) for kind, items in KNOWN.items()]
"""All settings of a recipe, grouped under headings"""
TITLE = (
    "Recipe of keima zero, complete. Give it, or some lines of it, with --recipe FILE;",
    "options of the command line override it.",
)
RECIPE_ONLY = {
    *("first_sensible", "first_visits", "sensible", "window", "window_power", "window_slope", "network"),
    *("momentum", "drop_factor", "drop_at", "value_loss"),
    *(item.name for item in KNOWN[LadderOptions]),
}
"""Settings that only a recipe sets, without an option of the command line"""
SHOWN = {"blocks", "channels", "visits"}
"""Settings whose options ``--help`` lists; the options of other settings are hidden, but accepted"""
RENAMED = {"policy_temperature": "target_temperature"}
"""Name of a setting in earlier versions -> its name now"""
MINUTES_HELP = "time limit, after which the run is saved to resume later; 0 = no limit"
RECIPE_HELP = "settings that override those of the board size: published, as of AlphaGo Zero, or a TOML file"
DRY_RUN_HELP = "print all settings of the run as a recipe, each with its help and value, and exit"
CONSTANT = {"schedule": "constant"}
"""Fixed options of training: the rate is constant within a turn, since the loop sets it for each turn"""
CHUNK_TABLES = 2
"""Size of a Ray actor's chunk of games, in batches of ``--at-once``; larger chunks keep batches full for longer"""
PAGE_S = 20.0
"""Seconds between two writes of the run's page while no new metric is measured"""
LINES_S = 30.0
"""Seconds between two status lines if standard error is not a terminal"""


def settings_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: an option for each setting; settings in :data:`RECIPE_ONLY` and old names are refused with a hint."""
    for kind in (TrainOptions, SearchPlayOptions, ZeroOptions, NetworkShape):
        names = {item.name for item in KNOWN[kind]} - RECIPE_ONLY - {"size", "reply"}
        function = options_of(kind, *names, hidden=names - SHOWN)(function)
    return refusing([*sorted(RECIPE_ONLY), *RENAMED], _moved)(function)


def _moved(name: str) -> str:
    """The message about a refused option: its new name, or how to set it in a recipe."""
    if new := RENAMED.get(name.replace("-", "_")):
        return f"--{name} was renamed: use --{key_of(new)}"
    return f"--{name} is a setting of the recipe: write {name} = VALUE into a file for --recipe (--dry-run prints one)"


@click.command("zero", cls=GroupedCommand)
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="folder of the run")
@click.option("--size", type=Whole(MIN_SIZE, MAX_SIZE), show_default="the folder's, else 9", help="board size")
@click.option("--recipe", metavar="RECIPE", help=RECIPE_HELP)
@click.option("--start", metavar="NETWORK", help="network (name or file) to begin with instead of random weights")
@click.option("--minutes", default=0.0, type=Number(0), metavar="MINUTES", help=MINUTES_HELP)
@click.option("--turns", default=0, type=Whole(0), help="number of networks after which the run stops; 0 = no limit")
@DEVICE
@click.option("--threads", default=0, type=Whole(0), help="CPU threads of self-play and training; 0 = one a core")
@click.option("--dry-run", is_flag=True, help=DRY_RUN_HELP)
@settings_options
@ray_options
@click.pass_context
def zero(
    ctx: click.Context, /, out: Path, size: int | None, recipe: str | None, start: str | None, dry_run: bool,
    **rest: Any,
) -> None:  # fmt: skip
    """Learn Go from nothing but self-play: AlphaGo Zero.

    A network of random weights plays games against itself by search, is trained on these searches, and plays again.
    The folder's index.html shows the progress of the run; its network.safetensors is the newest network. The same
    command resumes a stopped run; settings that are not given stay as they were.

    The options below are those used most. --size chooses a recipe of some 70 settings, whose values may differ from the
    defaults below. --dry-run prints all of them with their help; nearly each is an option of the same name, and each a
    line of a file for --recipe (docs/zero.md).

    \b
        keima zero --size 9 --out runs/zero-9
        keima gtp --weights runs/zero-9/network.safetensors
    """
    console = Console(stderr=True)
    before = _manifest(out)
    chosen = {name for name in rest if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if start and (wrong := [name for name in SHAPE if name in chosen]):
        raise ValueError(f"--{wrong[0]} is the shape of a new network, expected none with --start")
    given = _settings(recipe) if recipe else {}
    given = {name: value for name, value in given.items() if not start or name not in SHAPE}
    size = size or given.get("size") or (before["options"]["size"] if before else 9)
    config = config_of(size, given | {name: rest[name] for name in chosen}, before)
    first = find(start) if start else None
    if dry_run:
        model, _ = first_network(config.shape, size, first, config.play.seed)
        values = {name: value for group in config.settings.values() for name, value in group.items()}
        click.echo(render(config.shape | asdict(model.shape) | values, RECIPE, TITLE), nl=False)
        return
    try:
        with alone_in(out):
            _run(out, config, first, console, **{name: rest[name] for name in RUN_OPTIONS})
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED)


def _settings(recipe: str) -> dict[str, Any]:
    """The settings of a recipe: its name, or a file.

    Raises:
        ValueError: no such recipe, or the file is damaged; one line.
    """
    if recipe in NAMED:
        return dict(NAMED[recipe])
    if not Path(recipe).is_file():
        raise ValueError(f"--recipe {recipe}: no such file, expected a TOML file or {' or '.join(NAMED)}")
    return read_settings(Path(recipe), RECIPE, RENAMED)


RUN_OPTIONS = ("minutes", "turns", "device", "threads", "executor")


def _manifest(out: Path) -> dict[str, Any]:
    """Options, shape and settings from the manifest of the run in folder ``out``; empty for a new run.

    Raises:
        ValueError: the file is not the manifest of a run; one line.
    """
    path = out / MANIFEST
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {name: dict(found[name]) for name in ("options", "shape", "settings")}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not the record of keima zero ({error})") from error


def config_of(size: int, given: dict[str, Any], before: dict[str, Any]) -> ZeroConfig:
    """The options of a run: the given ones, and for the others the values of the run's last start.

    A new run takes them from the recipe for the board size, else from the defaults.

    Args:
        before: what :func:`_manifest` returns; empty for a new run.
    Raises:
        ValueError: the options contradict each other; one line.
    """
    groups = before.get("settings", {}).values()
    # JSON has lists for tuples.
    known = {
        RENAMED.get(name, name): tuple(value) if isinstance(value, list) else value
        for group in groups
        for name, value in group.items()
    }
    values = (known | before["shape"] if before else recipe_for(size)) | given | {"size": size}
    shape = {name: values[name] for name in before.get("shape", SHAPE)}
    train = {name: value for name, value in values.items() if name in LEARNING} | CONSTANT
    return ZeroConfig(
        options_from(ZeroOptions, values), options_from(SearchPlayOptions, values), options_from(TrainOptions, train),
        shape, options_from(LadderOptions, values),
    )  # fmt: skip


def _run(
    out: Path, config: ZeroConfig, first: Path | None, console: Console, *, minutes: float, turns: int, device: str,
    threads: int, executor: ExecutorOptions,
) -> None:  # fmt: skip
    """Run the loop of self-play and training, with a status line."""
    chosen, cores = torch_device(device, threads), threads or own_cores()
    shown = TerminalProgress(console)
    with ExitStack() as stack, shown.bar:
        actors = executor.open(stack, CHUNK_TABLES * config.loop.at_once) if executor.ray else None
        if not is_compiled(KEIMA.name):
            shown.at("compiling", 0, 1, "kernels of self-play and training, once on this machine; a minute or two")
            compile_self_play(KEIMA.name)
        ladder = Ladder(out, config.ladder)
        run = Zero(out, config, chosen, cores, first, shown, ladder, minutes, actors)
        shown.draw = lambda status: write_page(run, ladder.matches, status)
        shown.measured()
        say(
            console, f"{out}: turn {run.turn.number}, network {run.turn.network}, {run.seconds / 60:.0f} minutes so far"
        )
        say(console, run.learner.shards.description)
        with StopOnSignal(run.stop):
            run.run(turns)
        shown.status = "stopped; the same command resumes"
        shown.measured()
    say(console, f"stopped at turn {run.turn.number} after {run.seconds / 60:.1f} minutes; the same command resumes")
    say(console, f"the newest network: {out / NETWORK}")


class TerminalProgress(Progress):
    """Shows a run as a status line on the terminal, while ``bar`` is entered, and writes the same words to its page."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.fields[phase]}"), BarColumn(bar_width=20), TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(), TextColumn("{task.fields[words]}"),
        )  # fmt: skip
        self.console, self.status = console, ""
        self.draw: Callable[[str], None] = lambda status: None
        """writes the run's page with a line of status"""
        self.bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self.bar.add_task("", phase="", count="", words="")
        self._phase = ""
        self._said_s = self._drawn_s = 0.0

    def at(self, phase: str, done: float, total: float, words: str) -> None:
        """See :class:`engine.zero.turn.Progress`."""
        count = f"{done:,.0f}/{total:,.0f}" if total > 1 else ""
        is_due = phase != self._phase or time.monotonic() - self._said_s > LINES_S
        if phase != self._phase:
            self.bar.reset(self._task)
        self._phase, self.status = phase, " ".join(filter(None, (f"{phase}:", count, words)))
        self.bar.update(self._task, completed=done, total=total, phase=phase, count=count, words=words)
        if is_due and not self.console.is_terminal:
            self._said_s = time.monotonic()
            say(self.console, self.status)
        if time.monotonic() - self._drawn_s > PAGE_S:
            self.measured()

    def say(self, line: str) -> None:
        """See :class:`engine.zero.turn.Progress`."""
        say(self.console, line)

    def measured(self) -> None:
        """See :class:`engine.zero.turn.Progress`; writes the run's page."""
        self._drawn_s = time.monotonic()
        self.draw(self.status)
