"""``keima evaluate``: metrics of networks and pattern policies on held-out positions."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from engine.config.declaration import core_count
from engine.evaluation.evaluation import Beside, Wanted, evaluate_network
from engine.evaluation.plots import check_plots, write_plots
from engine.evaluation.rollout_values import rollout_values
from engine.evaluation.value_errors import OWN_NAMES, ROLLOUTS, Estimate, Progressed
from engine.inference.server import InferenceServer
from engine.nets.network import Network
from engine.nets.on_device import load_network
from engine.play.assembly import shipped_tables
from engine.records.archive import SHARD_FILE
from engine.records.filters import Filters
from engine.records.games import Games, read_games
from engine.records.gather import gather
from engine.records.labels import read_labels
from engine.records.schema import join
from engine.rollout.model import load_rollout
from engine.selfplay.many_games import groups_for
from engine.selfplay.policy_rollouts import policy_values
from gtp.cli.arguments import AS_JSON, PATHS, OneOf, Whole
from gtp.cli.data_play import AT_ONCE
from gtp.cli.evaluate_tables import tables_of
from gtp.cli.help_style import KeimaGroup
from gtp.cli.patterns import KINDS, evaluate_command
from gtp.cli.terminal import bar, one_line_errors, tell, workers_for
from weights import PATTERNS, find_network, find_patterns

EVERY_GAME = Filters(sizes=(), max_handicap=255, setups=True, results="any")


class EvaluateGroup(KeimaGroup):
    """``evaluate rollout DATA``, ``evaluate tree DATA``, and anything else names a network."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((word for word in args if not word.startswith("-")), None)
        if first is not None and first not in self.commands:
            args = ["network", *args]
        return super().parse_args(ctx, args)


@click.group(cls=EvaluateGroup, subcommand_metavar="rollout|tree|NETWORK DATA [OPTIONS]")
def evaluate() -> None:
    """Measure a network or a pattern policy on held-out positions.

    NETWORK is a name such as default, a file, or a policy and a value network as POLICY+VALUE; its options:
    keima evaluate default --help
    """


@evaluate.command("network", hidden=True)
@click.argument("network")
@click.argument("data", type=PATHS)
@click.option("--positions", default=50000, type=Whole(1),
              help="positions to look at, a fixed sample spread over all games")  # fmt: skip
@click.option("--symmetries", default="1", type=OneOf(("1", "8")),
              help="8: also the ensemble of all eight symmetries")  # fmt: skip
@click.option("--rollouts", default=0, type=Whole(0), metavar="POSITIONS",
              help="compare the value with 10, 100 and 1,000 rollouts by policy on this number of positions; "
              "about a quarter of a second each on a core")  # fmt: skip
@click.option("--policy", "policies", multiple=True, metavar="[NAME=]POLICY",
              help="compare the value with 100 rollouts by this policy instead: uniform, rollout (the shipped one), a "
              "file of it (.npz) or a policy network; may be given more than once")  # fmt: skip
@click.option("--beside", "others", multiple=True, metavar="[NAME=]NETWORK",
              help="network whose value is measured on the same positions; may be given more than once")  # fmt: skip
@click.option("--game", default=0, type=Whole(0), metavar="K",
              help="also the value through game K of DATA, counted from 1")  # fmt: skip
@click.option("--plots", type=click.Path(file_okay=False, path_type=Path), help="folder to draw plots (PNG) in")
@click.option("--labels", type=PATHS, help="shard of labels: value, score and ownership by board size as well")
@click.option("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda or mps")
@AS_JSON
def evaluate_named(
    network: str, data: Path, positions: int, symmetries: str, rollouts: int, policies: tuple[str, ...],
    others: tuple[str, ...], game: int, plots: Path | None, labels: Path | None, device: str, as_json: bool,
) -> None:  # fmt: skip
    """How well NETWORK predicts the moves and the results of the games of DATA.

    DATA is a packed shard (.npz.xz), an SGF file, a zip or tar archive, or a folder of such.

    For the strength of its policy without search, play keima match with keima gtp --policy-only.
    """
    wanted = Wanted(positions, int(symmetries), rollouts, game)
    with one_line_errors(RuntimeError), ExitStack() as shown:
        if plots:
            check_plots(plots)
        if policies and not rollouts:
            raise ValueError("--policy needs --rollouts: the number of positions to roll out")
        loaded = load_network(find_network(network), device)
        console = Console(stderr=True)
        games, label_rows = _read(data, console), read_labels(labels) if labels else None
        sizes = games.size[(games.size >= loaded.spec.min_size) & (games.size <= loaded.spec.max_size)]
        beside = Beside(
            {name: _with_value(load_network(find_network(text), device)) for name, text in _named(others).items()},
            {name: _policy(text, device, sizes) for name, text in _named(policies).items()},
            shipped_tables() if rollouts and not policies else None,
        )
        progress = bar(console)

        def new_bar(title: str, total: int) -> Callable[[float], None]:
            if not progress.live.is_started:
                shown.enter_context(progress)
            return partial(progress.advance, progress.add_task(title, total=total))

        report = evaluate_network(loaded, games, wanted, new_bar, beside, label_rows)
        drawn = write_plots(report, plots) if plots else []
    if as_json:
        click.echo(json.dumps(report))
        return
    tell(f"{loaded.spec.name} on {data.name}: {report['positions']:,} positions")
    if report["skipped_games"]:
        tell(f"{report['skipped_games']:,} games left out: the network does not play their boards")
    for heading, table in tables_of(report):
        tell(f"\n{heading}", table)
    for path in drawn:
        tell(f"drawn: {path}")


def _named(texts: tuple[str, ...]) -> dict[str, str]:
    """What an option says, ``NAME=WHAT`` or ``WHAT``, by name; without one what it says is its name.

    Raises:
        ValueError: a name that is used twice, or that reports use for something else.
    """
    named: dict[str, str] = {}
    for text in texts:
        name, equals, what = text.partition("=")
        if not equals or Path(text).exists():
            name, what = text, text
        if not name or name in OWN_NAMES or name in named:
            raise ValueError(f"{text!r}: expected NAME={what}, with a name of its own")
        named[name] = what
    return named


def _with_value(network: Network) -> Network:
    """A network that has a value, or ValueError."""
    if not network.spec.has_value:
        raise ValueError(f"network {network.spec.name} has no value to stand beside another's")
    return network


def _policy(text: str, device: str, sizes: np.ndarray) -> Estimate:
    """Values by rollouts of a policy: ``uniform``, a rollout policy or a policy network.

    Args:
        sizes: int64[G]: boards that it has to play.
    Raises:
        ValueError: there is no such policy; one line.
    """
    if text == "uniform" or text in PATTERNS or text.endswith(".npz"):
        tables = None if text == "uniform" else load_rollout(find_patterns(text))

        def by_patterns(games: Games, rows: np.ndarray, plies: np.ndarray, done: Progressed) -> np.ndarray:
            return rollout_values(games, rows, plies, tables, (ROLLOUTS,), core_count(), done)[:, 0]

        return by_patterns
    network = load_network(find_network(text), device)
    if not network.spec.has_policy:
        raise ValueError(f"network {network.spec.name} has no policy to play by")
    network.spec.check_sizes(sizes)

    def by_network(games: Games, rows: np.ndarray, plies: np.ndarray, done: Progressed) -> np.ndarray:
        at_once = AT_ONCE["gpu" if network.merges else "cpu"]
        with InferenceServer(network, max_batch=at_once) as server:
            return policy_values(server, games, rows, plies, ROLLOUTS, at_once, groups_for(server), done)

    return by_network


def _read(data: Path, console: Console) -> Games:
    """The games of a shard, or all that can be read of an SGF file, an archive or a folder.

    Raises:
        ValueError: there are none.
    """
    if data.name.casefold().endswith(SHARD_FILE):
        return read_games(data)
    parts: list[Games] = []
    problems: list[tuple[str, str]] = []
    with console.status(f"reading {data.name}"):
        for found in gather([data], EVERY_GAME, 0, workers_for([data])):
            parts += [] if found.games is None else [found.games]
            problems += found.problems
    told = ": ".join(problems[0]) if problems else "there are none in it"
    if not parts:
        raise ValueError(f"{data}: no game could be read; {told}")
    if problems:
        text = f"{len(problems):,} files or games could not be read and are left out, the first: {told}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    return join(parts)


for _kind in KINDS:
    evaluate.add_command(evaluate_command(_kind))
