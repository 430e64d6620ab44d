"""``keima evaluate``: metrics of networks and pattern policies on held-out positions."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from engine.config.declaration import core_count
from engine.evaluation.evaluation import Beside, Wanted, evaluate_network
from engine.evaluation.plots import check_plots, write_plots
from engine.evaluation.rollout_values import COUNTS, rollout_values
from engine.evaluation.values import OWN_NAMES, ROLLOUTS, Estimate, Progressed
from engine.go.phases import PHASE_KEYS, PHASES
from engine.inference.server import InferenceServer
from engine.nets.network import Network
from engine.nets.on_device import load_network
from engine.play.factory import shipped_tables
from engine.records.archive import SHARD_FILE
from engine.records.filters import Filters
from engine.records.games import Games, read_games
from engine.records.gather import gather
from engine.records.labels import read_labels
from engine.records.schema import join
from engine.rollout.model import load_rollout
from engine.selfplay.games import batches_for
from engine.selfplay.policy_rollouts import policy_values
from gtp.cli import KeimaGroup
from gtp.cli.arguments import AS_JSON, DEVICE, PATHS, OneOf, Whole
from gtp.cli.bulk import AT_ONCE
from gtp.cli.patterns import KINDS, evaluate_command
from gtp.cli.terminal import bar, new_table, say, show_text, workers_for
from weights import PATTERNS, find_network, find_patterns

METRICS = {
    "top1": ("first choice", "{:.1%}"),
    "top5": ("among the first five", "{:.1%}"),
    "cross_entropy": ("cross-entropy, nats", "{:.3f}"),
    "value_mse": ("value MSE", "{:.3f}"),
    "constant_mse": ("of the best constant", "{:.3f}"),
    "value_accuracy": ("winner predicted", "{:.1%}"),
}
LABEL_METRICS = {
    "teacher_top1": ("same first choice", "{:.1%}"),
    "value_mse": ("value: mean squared error", "{:.3f}"),
    "score_mae": ("score: mean absolute error (points)", "{:.1f}"),
    "ownership_mse": ("ownership: mean squared error", "{:.3f}"),
}
MS = "ms of a core a position"
ERRORS = {
    "beside": "Value MSE by moves played, beside other networks and the best constant",
    "policy_rollouts": f"Value MSE by moves played, beside {{rollouts:,}} rollouts by each policy, and {MS}",
}
GAME_COLUMNS = 10
EVERY_GAME = Filters(sizes=(), max_handicap=255, setups=True, results="any")


class EvaluateGroup(KeimaGroup):
    """The group ``keima evaluate``: a first word other than ``rollout`` and ``tree`` is a network to evaluate."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((word for word in args if not word.startswith("-")), None)
        if first is not None and first not in self.commands:
            args = ["network", *args]
        return super().parse_args(ctx, args)


@click.group(cls=EvaluateGroup, subcommand_metavar="rollout|tree|NETWORK DATA [OPTIONS]")
def evaluate() -> None:
    """Measure a network or a pattern policy on held-out positions.

    NETWORK is a name such as default, a file, or a policy and a value network as POLICY+VALUE. Options for networks:
    keima evaluate default --help
    """


@evaluate.command("network", hidden=True)
@click.argument("network")
@click.argument("data", type=PATHS)
@click.option("--positions", default=50000, type=Whole(1),
              help="number of positions, a fixed sample of all games")  # fmt: skip
@click.option("--symmetries", default="1", type=OneOf(("1", "8")),
              help="number of symmetries; 8 = the mean of all eight too")  # fmt: skip
@click.option("--rollouts", default=0, type=Whole(0), metavar="POSITIONS",
              help="number of positions on which the value is compared with rollouts, in error and time")  # fmt: skip
@click.option("--count", "counts", multiple=True, type=Whole(1, 10**6), metavar="N",
              help="number of rollouts from a position, repeatable; default: 10, 100 and 1,000, of a --policy "
              "100")  # fmt: skip
@click.option("--policy", "policies", multiple=True, metavar="[NAME=]POLICY",
              help="policy of rollouts to compare the value with: uniform, rollout (the shipped one), its file "
              "(.npz) or a policy network; repeatable")  # fmt: skip
@click.option("--beside", "others", multiple=True, metavar="[NAME=]NETWORK",
              help="another network to compare the value with; repeatable")  # fmt: skip
@click.option("--game", default=0, type=Whole(0), metavar="K",
              help="number of a game, from 1, whose value is shown at each position; 0 = none")  # fmt: skip
@click.option("--plots", type=click.Path(file_okay=False, path_type=Path), help="folder for plots (PNG)")
@click.option("--labels", type=PATHS, help="shard of labels to compare value, score and ownership with, by board size")
@DEVICE
@AS_JSON
def evaluate_named(
    network: str, data: Path, positions: int, symmetries: str, rollouts: int, counts: tuple[int, ...],
    policies: tuple[str, ...], others: tuple[str, ...], game: int, plots: Path | None, labels: Path | None,
    device: str, as_json: bool,
) -> None:  # fmt: skip
    """Measure how well NETWORK predicts the moves and the results of the games of DATA.

    DATA is a packed shard (.npz.xz), an SGF file, a zip or tar archive, or a folder of these.

    keima match with keima gtp --policy-only measures the playing strength of a policy.
    """
    counts = tuple(sorted(set(counts))) or ((ROLLOUTS,) if policies else COUNTS)
    wanted = Wanted(positions, int(symmetries), rollouts, game, counts)
    with ExitStack() as shown:
        if plots:
            check_plots(plots)
        if policies and not rollouts:
            raise ValueError("--policy needs --rollouts, the number of positions")
        if policies and len(counts) > 1:
            raise ValueError(f"--policy takes one number of rollouts, got --count {len(counts)} times")
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
    show_text(f"{loaded.spec.name} on {data.name}: {report['positions']:,} positions")
    if report["skipped_games"]:
        show_text(f"{report['skipped_games']:,} games skipped: the network does not play their board size")
    for heading, table in tables_of(report):
        show_text(f"\n{heading}", table)
    for path in drawn:
        show_text(f"drawn: {path}")


def _named(texts: tuple[str, ...]) -> dict[str, str]:
    """Parse texts ``NAME=VALUE`` into name -> value; a text without a name is its own name.

    Raises:
        ValueError: a name that is used twice, or that is a column of reports; one line.
    """
    named: dict[str, str] = {}
    for text in texts:
        name, equals, what = text.partition("=")
        if not equals or Path(text).exists():
            name, what = text, text
        if not name or name in OWN_NAMES or name in named:
            raise ValueError(f"{text!r}: expected NAME={what}, with an unused name")
        named[name] = what
    return named


def _with_value(network: Network) -> Network:
    """Return the network.

    Raises:
        ValueError: the network has no value head.
    """
    if "value" not in network.spec.heads:
        raise ValueError(f"network {network.spec.name} has no value to compare")
    return network


def _policy(text: str, device: str, sizes: np.ndarray) -> Estimate:
    """Make an estimator of values by rollouts of a policy.

    Args:
        text: ``uniform``, a rollout policy (name or file) or a policy network (name or file).
        sizes: int64[G]: board sizes of the games.
    Raises:
        ValueError: no such policy, or it does not play these sizes; one line.
    """
    if text == "uniform" or text in PATTERNS or text.endswith(".npz"):
        tables = None if text == "uniform" else load_rollout(find_patterns(text))

        def by_patterns(games: Games, rows: np.ndarray, plies: np.ndarray, count: int, done: Progressed) -> np.ndarray:
            return rollout_values(games, rows, plies, tables, (count,), core_count(), done)[:, 0]

        return by_patterns
    network = load_network(find_network(text), device)
    if "policy" not in network.spec.heads:
        raise ValueError(f"network {network.spec.name} has no policy")
    network.spec.check_sizes(sizes)

    def by_network(games: Games, rows: np.ndarray, plies: np.ndarray, count: int, done: Progressed) -> np.ndarray:
        at_once = AT_ONCE["gpu" if network.batches_requests else "cpu"]
        with InferenceServer(network, max_batch=at_once) as server:
            return policy_values(server, games, rows, plies, count, at_once, batches_for(server), done)

    return by_network


def _read(data: Path, console: Console) -> Games:
    """The games of a shard, or all readable games of an SGF file, an archive or a folder.

    Raises:
        ValueError: no game could be read; one line.
    """
    if data.name.casefold().endswith(SHARD_FILE):
        return read_games(data)
    parts: list[Games] = []
    problems: list[tuple[str, str]] = []
    with console.status(f"reading {data.name}"):
        for found in gather([data], EVERY_GAME, 0, workers_for([data])):
            parts += [] if found.games is None else [found.games]
            problems += found.problems
    first = ": ".join(problems[0]) if problems else "there are none"
    if not parts:
        raise ValueError(f"{data}: no game could be read; {first}")
    if problems:
        say(console, f"{len(problems):,} files or games could not be read and are skipped, the first: {first}")
    return join(parts)


def tables_of(report: dict[str, Any]) -> Iterator[tuple[str, Table]]:
    """The tables of a report of :func:`evaluate_network`, each with its heading."""
    yield "Moves and results predicted; value MSE is the mean of (z - v)^2 with z = 1 or -1", _metrics(report)
    if "calibration" in report:
        yield f"Calibration of the value, off by {report['calibration_error']:.1%} in the mean", _calibration(report)
    if "by_rank" in report:
        yield "By rank of the mover", _by_rank(report["by_rank"])
    rolled = report.get("rollouts", {})
    if 0 < sum(map(str.isdigit, rolled)) <= len(COUNTS):
        yield f"Value MSE by moves played, and that of rollouts, and {MS}", _by_move(report)
    elif "by_move" in report:
        yield "Value MSE by moves played", _by_move(report | {"rollouts": {"by_move": []}})
        if rolled:
            yield f"Value MSE of numbers of rollouts by moves played, and {MS}", _by_move({"rollouts": rolled})
    for key, heading in ERRORS.items():
        if key in report:
            columns = {name: name for name in report[key] if name not in ("by_move", "rollouts", "ms")}
            yield heading.format(**report[key]), _ranges([(report[key], columns)])
    if any(name.partition("/")[2].isdigit() for name in report):
        yield "Agreement with the teacher's labels", _labels(report)
    if "game" in report:
        game = report["game"]
        yield f"Black's win rate through game {game['number']}, {game['winner']}", _game(game)


def _metrics(report: dict[str, Any]) -> Table:
    """Table of the metrics of policy and value by phase of the game, for one symmetry and for the mean of all."""
    several = report["symmetries"] > 1
    table = new_table("", *(("symmetries",) if several else ()), "all", *PHASES)
    for name, (words, form) in METRICS.items():
        for prefix, count in (("plain/", 1), ("", report["symmetries"])):
            if prefix + name in report:
                keys = [prefix + name, *(f"{prefix}{name}/{key}" for key in PHASE_KEYS)]
                shown = (str(count),) if several else ()
                table.add_row(words, *shown, *(_shown(report, key, form) for key in keys))
    return table


def _by_rank(rows: list[dict[str, Any]]) -> Table:
    """Table of metrics by rank of the mover."""
    names = {name: words for name, words in METRICS.items() if any(name in row for row in rows)}
    # A long heading takes two lines.
    table = new_table("rank", "positions", *("\n".join(words.rsplit(" ", 1)) for words, _ in names.values()))
    for row in rows:
        cells = (_shown(row, name, form) for name, (_, form) in names.items())
        table.add_row(row["rank"], f"{row['positions']:,}", *cells)
    return table


def _shown(row: dict[str, Any], key: str, form: str) -> str:
    """Metric ``key`` of a row, formatted by ``form``; empty if the row lacks it."""
    return form.format(row[key]) if key in row else ""


def _calibration(report: dict[str, Any]) -> Table:
    """Table of predicted and observed win rates."""
    table = new_table("win rate", "predicted", "observed", "positions")
    for row in report["calibration"]:
        span = f"{row['from']:.0%}-{row['to']:.0%}"
        table.add_row(span, f"{row['predicted']:.1%}", f"{row['observed']:.1%}", f"{row['positions']:,}")
    return table


def _by_move(report: dict[str, Any]) -> Table:
    """Table of value metrics by moves played, beside the metrics of rollouts on a sample of the positions."""
    whole, rolled = report.get("by_move", []), report.get("rollouts", {"by_move": []})
    total = report | {"by_move": whole, "positions": sum(row["positions"] for row in whole)}
    names = {"positions": "rolled\nout", "network": "network"} | {
        name: f"{int(name):,}" for name in rolled if name.isdigit()
    }
    return _ranges([
        (total, {"positions": "positions", "value_mse": "MSE", "value_accuracy": "winner\npredicted"}),
        (rolled, {key: name for key, name in names.items() if key in rolled}),
    ])  # fmt: skip


def _ranges(sides: Iterable[tuple[dict[str, Any], dict[str, str]]]) -> Table:
    """Table of metrics: a row for each range of moves played, then one for all moves.

    Args:
        sides: groups of columns. Each is a pair: metrics over all moves, with those of each range in ``by_move``; and
            metric -> heading of its column.
    """
    sides = [(total, names) for total, names in sides if total["by_move"]]
    forms = {"positions": "{:,}", "value_accuracy": "{:.1%}"}
    table = new_table("moves", *(heading for _, names in sides for heading in names.values()))
    starts = {row["from"]: row["to"] for total, _ in sides for row in total["by_move"]}
    for start, last in [*sorted(starts.items()), ("all", None)]:
        cells = []
        for total, names in sides:
            row = total if start == "all" else next((row for row in total["by_move"] if row["from"] == start), {})
            cells += [_shown(row, name, forms.get(name, "{:.3f}")) for name in names]
        if start == "all":
            table.add_section()
            table.add_row("all", *cells)
            if any("ms" in total for total, _ in sides):
                times = [_shown(total.get("ms", {}), name, "{:.3g}") for total, names in sides for name in names]
                table.add_row("ms", *times)
        else:
            table.add_row(f"from {start}" if last is None else f"{start}-{last}", *cells)
    return table


def _labels(report: dict[str, Any]) -> Table:
    """Table of the agreement with a teacher's labels, by board size."""
    sizes = sorted({int(name.partition("/")[2]) for name in report if name.partition("/")[2].isdigit()})
    table = new_table("", *(f"{size}x{size}" for size in sizes))
    for name, (words, form) in LABEL_METRICS.items():
        if any(f"{name}/{size}" in report for size in sizes):
            table.add_row(words, *(_shown(report, f"{name}/{size}", form) for size in sizes))
    return table


def _game(game: dict[str, Any]) -> Table:
    """Table of Black's win rate before each move of a game, ten to a row."""
    rates = [f"{(1 + value) / 2:.0%}" for value in game["value_black"]]
    table = new_table("moves", *(f"+{i}" for i in range(GAME_COLUMNS)))
    for start in range(0, len(rates), GAME_COLUMNS):
        table.add_row(str(start), *rates[start : start + GAME_COLUMNS])
    return table


for _kind in KINDS:
    evaluate.add_command(evaluate_command(_kind))
