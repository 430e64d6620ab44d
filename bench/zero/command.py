"""``keima zero``: AlphaGo Zero from random play, by one command; the loop itself is :mod:`engine.selfplay.zero`."""

import json
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource
from rich.console import Console

from bench.terminal import say
from bench.zero.ladder import Ladder, LadderOptions
from bench.zero.presets import recipe_for
from bench.zero.status import Shown
from engine.config import TrainOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.nets.on_device import choose_device
from engine.selfplay.compiling import compile_self_play, is_compiled
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.zero import MANIFEST, Zero
from engine.selfplay.zero_networks import NETWORK
from engine.selfplay.zero_options import ZeroOptions
from engine.selfplay.zero_turn import LEARNING, Ways
from engine.system.crew import StopOnSignal
from engine.system.files import alone_in
from engine.train.ranks import own_cores
from engine.train.turns import first_network
from gtp.cli.arguments import Number, Whole
from gtp.cli.options import CrewOptions, GroupedCommand, options_from, options_of, ray_options
from gtp.cli.terminal import INTERRUPTED, one_line_errors
from weights import find

PLAYING = tuple(item.name for item in fields(SearchPlayOptions) if item.name != "size")
SHAPE = ("blocks", "channels")
MINUTES_HELP = "time after which the run ends, to go on another time; 0 = never"


class Machine(NamedTuple):
    """What a run may use."""

    device: str
    threads: int
    crew: CrewOptions


@click.command("zero", cls=GroupedCommand)
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="folder of the run")
@click.option("--size", type=Whole(MIN_SIZE, MAX_SIZE), show_default="the folder's, else 9", help="size of the board")
@click.option("--start", metavar="NETWORK", help="network (name or file) to begin with instead of random weights")
@click.option("--minutes", default=0.0, type=Number(0), metavar="MINUTES", help=MINUTES_HELP)
@click.option("--turns", default=0, type=Whole(0), help="networks that the whole run makes; 0 = any")
@click.option("--blocks", type=Whole(1), show_default="by --size", help="blocks of a new network")
@click.option("--channels", type=Whole(1), show_default="by --size", help="channels of a new network")
@click.option("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda or mps")
@click.option("--threads", default=0, type=Whole(0), help="processors that self-play and training take; 0 = all")
@click.option("--dry-run", is_flag=True, help="print the options that the run would have, and end")
@options_of(ZeroOptions)
@options_of(SearchPlayOptions, *PLAYING)
@options_of(TrainOptions, *LEARNING)
@options_of(LadderOptions)
@ray_options
@click.pass_context
def command(
    ctx: click.Context, out: Path, size: int | None, start: str | None, minutes: float, turns: int, device: str,
    threads: int, dry_run: bool, crew: CrewOptions, **given: Any,
) -> None:  # fmt: skip
    """Learn Go from nothing but self-play: AlphaGo Zero.

    From random weights to a network that plays: it plays itself by search, learns from its searches, and plays again.
    --size alone chooses a recipe, whose options differ from the defaults below; --dry-run prints them. The folder's
    index.html shows how the run does, its network.safetensors plays. A run that was stopped, in any way, goes on when
    the command is given again, with --out alone if you like: what is not given stays as it was.

    \b
        keima zero --size 9 --out runs/zero-9
        keima gtp --weights runs/zero-9/network.safetensors
    """
    console = Console(stderr=True)
    with one_line_errors(RuntimeError):
        before = _manifest(out)
        size = size or (before["options"]["size"] if before else 9)
        chosen = {name for name in given if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
        if start and (wrong := [name for name in SHAPE if name in chosen]):
            raise ValueError(f"--start has a shape of its own: leave out --{wrong[0]}")
        ways, ladder = ways_of(size, given, chosen, before)
        first = find(start) if start else None
        if dry_run:
            model, _ = first_network(ways.shape, size, first, ways.play.seed)
            click.echo(json.dumps({"size": size, "shape": asdict(model.shape), **ways.settings}, indent=1))
            return
        try:
            with alone_in(out):
                _run(out, ways, ladder, first, (minutes, turns), Machine(device, threads, crew), console)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def _manifest(out: Path) -> dict[str, Any]:
    """What a folder says of its run; nothing if there is none.

    Raises:
        ValueError: it is no such file; one line.
    """
    path = out / MANIFEST
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {name: dict(found[name]) for name in ("options", "shape", "settings")}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not the record of keima zero ({error})") from error


def ways_of(size: int, given: dict[str, Any], chosen: set[str], before: dict[str, Any]) -> tuple[Ways, LadderOptions]:
    """The options of a run: those chosen now, else those it went on with before, else the recipe's, else the defaults.

    Args:
        given: values of the command line by name, defaults among them.
        chosen: names of those that were really given.
        before: "options", "shape" and "settings" of the folder's run; empty for a new one.
    Raises:
        ValueError: they contradict each other; one line.
    """
    recipe = recipe_for(size)
    known = {name: value for group in before.get("settings", {}).values() for name, value in group.items()}
    shape = dict(before["shape"]) if before else recipe.shape
    shape |= {name: given[name] for name in SHAPE if name in chosen}
    values = given | (known or recipe.options) | {name: given[name] for name in chosen} | {"size": size}
    train = {name: value for name, value in values.items() if name in LEARNING} | CONSTANT
    ladder = options_from(LadderOptions, values)
    ways = Ways(
        options_from(ZeroOptions, values), options_from(SearchPlayOptions, values), options_from(TrainOptions, train),
        shape, {"ladder": asdict(ladder)},
    )  # fmt: skip
    return ways, ladder


CONSTANT = {"schedule": "constant"}
"""The rate of a turn is the loop's matter"""
CHUNK_TABLES = 2
"""Games that an actor of Ray gets at once, by those of a group: the last of a chunk leave seats empty"""


def _run(
    out: Path, ways: Ways, ladder: LadderOptions, first: Path | None, ends: tuple[float, int], machine: Machine,
    console: Console,
) -> None:  # fmt: skip
    """Run the loop with a status line."""
    device, threads = choose_device(machine.device, machine.threads), machine.threads or own_cores()
    with ExitStack() as stack, Shown(console) as shown:
        crew = machine.crew.open(stack, CHUNK_TABLES * ways.loop.at_once) if machine.crew.ray else None
        encoder = KEIMA.name
        if not is_compiled(encoder):
            shown.at("compiling", 0, 1, "kernels of self-play and training, once on this machine; a minute or two")
            compile_self_play(encoder)
        check = Ladder(out, ladder)
        zero = Zero(out, ways, device, threads, first, shown, check, ends[0], crew)
        shown.begins(zero, check)
        turn, spent = zero.turn, zero.seconds / 60
        shown.say(f"{out}: turn {turn.number}, network {turn.network}, {spent:.0f} minutes so far")
        shown.say(zero.learner.shards.said)
        with StopOnSignal(zero.stop):
            zero.run(ends[1])
        shown.ends()
    say(console, f"stopped at turn {zero.turn.number} after {zero.seconds / 60:.1f} minutes; the same command goes on")
    say(console, f"the newest network: {out / NETWORK}")
