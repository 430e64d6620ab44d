"""``keima train rollout|tree`` and ``keima evaluate rollout|tree``: training and metrics of the pattern policies."""

import json
from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress

from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.records.games import Games, read_games, select, shard_files
from engine.rollout.model import PatternModel, load_patterns, save_patterns
from engine.rollout.vocabulary import Numbers, unfold
from engine.train.pattern_learning import (
    FIRST_SQUARE,
    RATE,
    Counts,
    choose_vocabulary,
    count_games,
    evaluate_patterns,
    learn,
)
from gtp.cli import KeimaCommand
from gtp.cli.arguments import AS_JSON, PATHS, Number, Whole
from gtp.cli.terminal import bar
from weights import find_patterns

BOARD = click.option("--size", default=19, type=Whole(MIN_SIZE, MAX_SIZE), help="board size of the games")
KINDS = {
    "rollout": "the fast policy of rollouts",
    "tree": "the tree policy of placeholder priors",
}


def train_command(kind: str) -> click.Command:
    """Make the command ``keima train KIND``."""

    @click.command(kind, cls=KeimaCommand, help=f"Learn {KINDS[kind]} from human games; takes some minutes.")
    @click.option("--games", type=PATHS, multiple=True, required=True, help="shard of games or folder of them")
    @click.option("--validation", type=PATHS, required=True, help="shard of held-out games to measure on")
    @click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="output file (.npz)")
    @click.option("--shards", default=4, type=Whole(0), help="number of shards to use; 0 = all")
    @click.option("--rate", default=RATE, type=Number(0.0, 100.0, min_open=True), help="first learning rate of AdaGrad")
    @click.option("--temperature", default=1.0, type=Number(0.0, 100.0, min_open=True),
                  help="divisor of the weights after training; 0.5 for rollouts trained on moves that a network drew",
                  )  # fmt: skip
    @BOARD
    @click.option("--seed", default=1, type=Whole(), help="random seed of the order of the games")
    def command(
        games: tuple[Path, ...], validation: Path, out: Path, shards: int, rate: float, temperature: float,
        size: int, seed: int,
    ) -> None:  # fmt: skip
        files = shard_files(games, validation)[: shards or None]
        if not out.absolute().parent.is_dir():
            raise ValueError(f"{out}: folder {out.absolute().parent} does not exist")
        held_out = _read(validation, size)
        model = _learn(kind, files, rate, size, seed).at(temperature)
        metrics = evaluate_patterns(held_out, unfold(model.words), model.theta).as_dict()
        save_patterns(out, model._replace(record=model.record | {"validation": metrics}))
        _show(metrics)

    return command


def evaluate_command(kind: str) -> click.Command:
    """Make the command ``keima evaluate KIND``."""

    @click.command(kind, cls=KeimaCommand, help=f"Measure {KINDS[kind]} on the moves of the games of DATA (.npz.xz).")
    @click.argument("data", type=PATHS)
    @click.option("--patterns", metavar="NAME|PATH", show_default="the shipped one",
                  help="pattern policy: a shipped one or a file")  # fmt: skip
    @click.option("--positions", default=0, type=Whole(0), help="number of positions, a sample of all games; 0 = all")
    @BOARD
    @AS_JSON
    def command(data: Path, patterns: str | None, positions: int, size: int, as_json: bool) -> None:
        model = load_patterns(find_patterns(patterns or kind))
        if model.kind != kind:
            raise ValueError(f"{patterns}: a {model.kind} policy, expected a {kind} policy")
        metrics = evaluate_patterns(_read(data, size), unfold(model.words), model.theta, positions).as_dict()
        if as_json:
            click.echo(json.dumps(metrics))
        else:
            _show(metrics)

    return command


def _read(path: Path, size: int) -> Games:
    """The games of a shard on boards of ``size`` that begin on the empty board with Black to move.

    Games of which only one position may be used are left out, since their other moves must not be learnt.

    Raises:
        ValueError: no such game; one line.
    """
    games = read_games(path)
    plain = games.starts_even() & (games.size == size) & (games.position < 0)
    if not plain.any():
        raise ValueError(f"{path}: no complete game on {size}x{size} that begins on the empty board")
    return games if plain.all() else select(games, plain)


def _learn(kind: str, files: list[Path], rate: float, size: int, seed: int) -> PatternModel:
    """Make a policy: count the patterns of all games, choose the vocabulary, and learn from every game once."""
    with bar(Console(stderr=True)) as progress:
        shards, counts = [_read(path, size) for path in files], Counts()
        n_games = sum(len(games.size) for games in shards)
        steps = (None for games in shards for _ in count_games(games, counts))
        _advance(progress, "counting patterns, games", steps, n_games)
        words = choose_vocabulary(counts, kind == "tree")
        if words.is_tree != (kind == "tree"):
            raise ValueError("these games have no diamond pattern that is frequent enough for a tree policy")
        del counts
        numbers = unfold(words)
        theta, squares = np.zeros(words.starts[-1], np.float32), np.full(words.starts[-1], FIRST_SQUARE)
        rates = rate * (1.0 - np.arange(n_games) / n_games)
        order = np.random.default_rng(seed)
        _advance(progress, "learning, games", _learn_shards(shards, order, numbers, theta, squares, rates), n_games)
    record = {
        "games": [path.name for path in files], "positions": sum(len(games.moves) for games in shards), "rate": rate,
        "patterns": {name: len(patterns) for name, patterns in words._asdict().items()},
    }  # fmt: skip
    return PatternModel(words, theta, record)


def _learn_shards(
    shards: list[Games], random: np.random.Generator, numbers: Numbers, theta: np.ndarray, squares: np.ndarray,
    rates: np.ndarray,
) -> Iterable[None]:  # fmt: skip
    """Learn from all shards in turn, each shard's games in random order; yields after every game.

    Args:
        theta: float32[W]: weights, changed in place.
        squares: float32[W]: AdaGrad's sums of squared gradients, changed in place.
        rates: float64[games]: learning rate of each game.
    """
    done = 0
    for games in shards:
        count = len(games.size)
        yield from learn(games, random.permutation(count), numbers, theta, squares, rates[done : done + count])
        done += count


def _advance(progress: Progress, title: str, steps: Iterable[None], total: int) -> None:
    """Exhaust ``steps`` under a progress bar, which is updated every hundred steps."""
    task = progress.add_task(title, total=total)
    for n, _ in enumerate(steps):
        if n % 100 == 99:
            progress.update(task, completed=n + 1)
    progress.update(task, completed=total)


def _show(metrics: dict[str, float | int]) -> None:
    """Print metrics, one a line."""
    for name, value in metrics.items():
        click.echo(f"{name:24} {value:.4f}" if isinstance(value, float) else f"{name:24} {value}")
