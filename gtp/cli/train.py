"""``keima train``: from files on disk to a trained network.

One command a kind of network; they differ in the architecture, in what is known of its training by default and in
the metric that early stopping watches (``KINDS_OF_NETWORK``). The pattern policies' subcommands are in
:mod:`gtp.cli.patterns`, ``keima evaluate`` in :mod:`gtp.cli.evaluate`.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress, TaskID

from engine.config import TrainOptions
from engine.config.declaration import key_of
from engine.features.encoder import ENCODERS
from engine.go.rules import RULE_SETS, Rules, rules_from
from engine.nets.architectures.registry import ARCHITECTURES, new_model, new_spec
from engine.nets.files.checkpoint import load_model
from engine.nets.network import Model, NetworkSpec
from engine.nets.on_device import choose_device, load_network
from engine.records.final_owners import FinalOwners, saved_final_owners
from engine.records.games import Games, read_games, shard_files
from engine.records.labels import read_labels
from engine.selfplay.variety import Komi, Shares, Variety, read_komi, read_size
from engine.system import jit
from engine.system.files import alone_in
from engine.train.dataset import Material, Mixture
from engine.train.grow import grown, on_newest_inputs, sizes_shown
from engine.train.metrics import game_metrics, in_training, label_metrics, sample_positions
from engine.train.ranks import join_ranks, own_cores
from engine.train.teacher import Teacher
from engine.train.trainer import Goal, Measure, Observer, Trainer
from gtp.cli.arguments import PATHS, OneOf, Whole
from gtp.cli.bulk import identity, share
from gtp.cli.help_style import KeimaGroup
from gtp.cli.options import Decorator, GroupedCommand, options_from, options_of
from gtp.cli.patterns import KINDS, train_command
from gtp.cli.reinforce import reinforce_command
from gtp.cli.terminal import bar, one_line_errors
from weights import files_of, find, find_network

VALIDATION_POSITIONS = 4000
"""Of networks with a policy; of a value alone as many on 19x19, and on smaller boards what takes as long"""
USUAL_AREA = 361
RULES = share("NAME=SHARE", rules_from, text="rules that the teacher sees positions under",
              usual="its game's, or chinese with --komi")  # fmt: skip
KOMI = share("KOMI=SHARE", read_komi, text="komi likewise: usual, a number, or a range: 5.5..9.5",
             usual="its game's, or usual with --rules")  # fmt: skip
BOARDS = share("SIZE=SHARE", read_size, text="how many of the steps are on such boards",
               usual="as there are games and labels")  # fmt: skip
LABEL_POSITIONS = 2000
"""Of each board size"""
LABEL_GOAL, LABEL_LOSSES = Goal("label_loss", -1), ("policy_kl", "value_ce")
"""Where there are held-out labels, since people's moves are not what a teacher teaches: their sum, all boards alike"""
LABEL_OPTIONS = (
    "label_share", "decided_weight", "reached_share", "echo", "teacher_share", "score_weight", "ownership_weight",
    "policy_weight", "reply_weight",
)  # fmt: skip

PLAIN: dict[str, object] = {"optimizer": "sgd", "rate": 0.005, "warmup": 500, "schedule": "cosine"}
"""How plain networks of 13 and 15 layers learn by default: without normalisation faster ways get stuck"""


class NetworkKind(NamedTuple):
    """What ``keima train`` knows of one kind of network."""

    help: str
    goal: Goal
    defaults: dict[str, object]
    """options whose default differs from that of TrainOptions"""
    hidden: tuple[str, ...]
    """options that say nothing here"""
    uses_labels: bool


KINDS_OF_NETWORK = {
    "policy": NetworkKind(
        "Train AlphaGo's policy network (48 planes, 13 layers) to play the moves people played.",
        Goal("top1", 1),
        PLAIN,
        (*LABEL_OPTIONS, "value_weight", "result_weight", "value_loss"),
        uses_labels=False,
    ),
    "value": NetworkKind(
        "Train AlphaGo's value network (49 planes, 15 layers) to predict the results of games.",
        Goal("value_mse", -1),
        {**PLAIN, "value_loss": "mse", "positions_per_game": 1, "result_weight": 1.0},
        LABEL_OPTIONS,
        uses_labels=False,
    ),
    "dual": NetworkKind(
        "Train a network with policy and value: our own for all board sizes, or AlphaGo Zero's.\n\nGames teach the "
        "policy people's moves, the value their results, and where the last board could be counted, score and "
        "ownership. Labels, and a teacher that evaluates positions of the games meanwhile, teach all of these.",
        Goal("top1", 1),
        {},
        (),
        uses_labels=True,
    ),
}


def _trained_by(command: str) -> tuple[str, ...]:
    """The architectures that ``keima train COMMAND`` offers; the first is the default."""
    return tuple(name for name, architecture in ARCHITECTURES.items() if architecture.trained_by == command)


def _shape_options(architectures: tuple[str, ...]) -> Decorator:
    """A decorator that adds the shape of the network."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        usual: dict[str, list[str]] = {}
        texts: dict[str, str] = {}
        for architecture in architectures:
            for item in fields(ARCHITECTURES[architecture].shape):
                if item.name not in ("planes", "globals"):
                    texts.setdefault(item.name, f"new network: {item.metadata['help']}")
                    usual.setdefault(item.name, []).append(f"{architecture}: {item.default}")
        for name, text in reversed(texts.items()):
            command = click.option(
                "--" + key_of(name), name, type=Whole(), show_default="; ".join(usual[name]), help=text
            )(command)
        return command

    return decorate


def _network_command(name: str, kind: NetworkKind) -> click.Command:
    """The command ``keima train NAME``."""
    architectures = _trained_by(name)

    @click.command(name, cls=GroupedCommand, help=kind.help)
    @click.option("--games", type=PATHS, multiple=True, help="shard of games (.npz.xz) or folder of them")
    @click.option("--labels", type=PATHS, multiple=True, hidden=not kind.uses_labels,
                  help="shard of labels (.npz.xz) or folder of them")  # fmt: skip
    @click.option("--validation", type=PATHS, required=True, help="shard of games to measure on; never trained on")
    @click.option("--label-validation", type=PATHS, hidden=not kind.uses_labels,
                  help="shard of labels to measure on; never trained on")  # fmt: skip
    @click.option("--teacher", hidden=not kind.uses_labels, metavar="NETWORK",
                  help="network (name or file) that evaluates positions of games")  # fmt: skip
    @click.option("--rules", hidden=not kind.uses_labels, **RULES)
    @click.option("--komi", hidden=not kind.uses_labels, **KOMI)
    @click.option("--boards", hidden=not kind.uses_labels, **BOARDS)
    @click.option("--out", type=click.Path(path_type=Path), required=True, help="run folder; a started run goes on")
    @click.option(
        "--start",
        metavar="NETWORK",
        help="network (name or file) to start from instead of random weights; keima-resnet may be smaller",
    )
    @click.option("--network", "architecture", type=OneOf(architectures), default=architectures[0],
                  hidden=len(architectures) == 1, help="architecture")  # fmt: skip
    @click.option("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda or mps")
    @click.option("--threads", default=0, type=Whole(), help="CPU threads of torch; 0 = torch's choice")
    @_shape_options(architectures)
    @options_of(TrainOptions, defaults=kind.defaults, hidden=kind.hidden)
    def command(**given: Any) -> None:
        with one_line_errors(RuntimeError):
            options = options_from(TrainOptions, given)
            rest = {name: value for name, value in given.items() if name not in vars(options)}
            about = {item.name: rest.pop(item.name) for item in fields(_Asked) if item.name in rest}
            _train(kind, options, _Asked(**about, shape=rest))

    return command


@dataclass(frozen=True)
class _Asked:
    """What the command line says of a run beside the options of training."""

    games: tuple[Path, ...]
    labels: tuple[Path, ...]
    validation: Path
    label_validation: Path | None
    teacher: str | None
    rules: Shares[Rules]
    komi: Shares[Komi]
    """both empty = those of the games"""
    boards: tuple[tuple[int, float], ...]
    """board sizes and their shares; empty = as there are games and labels"""
    out: Path
    start: str | None
    architecture: str
    device: str
    threads: int
    shape: dict[str, int | None]
    """of a new network; None = left open"""


def _train(kind: NetworkKind, options: TrainOptions, asked: _Asked) -> None:
    """One run with its options read.

    Raises:
        ValueError: a file, the device or the folder's earlier state cannot be used.
    """
    with contextlib.ExitStack() as stack:
        torch.manual_seed(options.seed)
        ranks, chosen = join_ranks(choose_device(asked.device, asked.threads))
        stack.push(lambda kind, *_: ranks.leave(kind is not None))
        console = Console(stderr=True, quiet=not ranks.is_first)
        if ranks.is_first:
            stack.enter_context(alone_in(asked.out))
        model, begun = _new_network(asked.architecture, asked.shape, asked.start)
        game_files = shard_files(asked.games, asked.validation)
        label_files = shard_files(asked.labels, asked.label_validation)
        console.print(f"reading {len(game_files)} game shards and {len(label_files)} label shards")
        game_shards, labels = [read_games(path) for path in game_files], [read_labels(path) for path in label_files]
        shown = [*game_shards, *(one.games for one in labels)]
        sizes = sizes_shown(begun, shown, asked.boards) if begun and not hasattr(model.shape, "size") else None
        spec = new_spec(model, asked.out.name, sizes=sizes)
        record: dict[str, Any] = {
            "games": [path.name for path in game_files], "labels": [path.name for path in label_files],
            "validation": asked.validation.name,
            "label_validation": asked.label_validation.name if asked.label_validation else None,
            "processes": ranks.count, "boards": {str(size): share for size, share in asked.boards},
        }  # fmt: skip
        variety = _variety(asked)
        if variety:
            record["shown"] = variety.record()
        if asked.start:
            start = find(asked.start)
            record["start"] = identity(start, start.stem) | {"training": load_model(start)[2]}
        teacher = None
        if asked.teacher:
            found = find_network(asked.teacher)
            record["teacher"] = [identity(path, path.stem) for path in files_of(found)]
            teacher = Teacher(load_network(found, str(chosen)), own_cores())
            stack.callback(teacher.close)
        if teacher:
            _check_teacher(teacher, game_shards, variety)
        is_told = _is_told(teacher, options, game_shards)
        owners = _final_owners(game_shards, console) if "ownership" in spec.heads and not is_told else ()
        draw_rules = (lambda numbers, size: variety.draw(options.seed, numbers, size)[0]) if variety else None
        material = Material(game_shards, labels, owners, teacher, dict(asked.boards) or None, draw_rules)
        data = Mixture(ENCODERS[spec.encoder], material, options, spec.sizes, ranks)
        validate = _validation(spec, asked.validation, asked.label_validation, data, chosen)
        measure = Measure(validate, LABEL_GOAL if asked.label_validation else kind.goal)
        trainer = Trainer(model, spec, data, measure, options, asked.out, chosen, record)
        console.print(trainer.shards.said, highlight=False)
        with bar(console) as progress:
            trainer.run(Display(progress, progress.add_task("training", total=options.steps)))


@dataclass(frozen=True)
class Display(Observer):
    """A run on the terminal: a bar, and lines above it; see :class:`engine.train.trainer.Observer`."""

    progress: Progress
    task: TaskID

    def at_step(self, step: int, losses: str) -> None:
        """Move the bar."""
        self.progress.update(self.task, completed=step, description=losses)

    def say(self, line: str) -> None:
        """Print a line."""
        self.progress.console.print(line)


def _new_network(
    architecture: str, shape: dict[str, int | None], start: str | None
) -> tuple[Model, NetworkSpec | None]:
    """A network of random weights, or one that begins as the file ``start``, and its spec; the shape's None are left
    open."""
    shape = {name: value for name, value in shape.items() if value is not None}
    encoder = ENCODERS[ARCHITECTURES[architecture].encoder]
    known = {item.name for item in fields(ARCHITECTURES[architecture].shape)}
    inputs = {name: getattr(encoder, name) for name in ("planes", "globals") if name in known}
    if start is None:
        return new_model(architecture, inputs | shape), None
    ARCHITECTURES[architecture].shape.read(inputs | shape)
    model, spec = on_newest_inputs(*load_model(find(start))[:2])
    if type(model) is not ARCHITECTURES[architecture].module:
        raise ValueError(f"{start}: another architecture than {architecture}")
    if spec.encoder != encoder.name:
        raise ValueError(f"{start}: reads {spec.encoder}, {architecture} reads {encoder.name}")
    present: Any = model.shape
    wanted = replace(present, **shape)
    return model if wanted == present else grown(model, wanted), spec


def _check_teacher(teacher: Teacher, shards: Sequence[Games], variety: Variety | None) -> None:
    """Refuse a teacher that knows one komi alone, if it is shown others.

    Raises:
        ValueError: one line.
    """
    known = ENCODERS[teacher.spec.encoder].komi
    if known is None or "value" not in teacher.spec.heads:
        return
    shown = {komi for shard in shards for komi in np.unique(shard.komi[~np.isnan(shard.komi)]).tolist()}
    if variety:
        shown = {bound for komi, _ in variety.komi for bound in (komi.low, komi.high)}
    if not shown <= {known}:
        raise ValueError(
            f"--teacher: network {teacher.spec.name} knows no komi but {known:g} and would judge positions of others "
            f"by it: say --komi {known:g}=1"
        )


def _is_told(teacher: Teacher | None, options: TrainOptions, shards: Sequence[Games]) -> bool:
    """Whether all that games could say of score and ownership comes from the teacher."""
    if not teacher or options.teacher_share < 1.0 or not {"score", "ownership"} <= set(teacher.spec.heads):
        return False
    return all(teacher.plays(size) for shard in shards for size in np.unique(shard.size).tolist())


def _variety(asked: _Asked) -> Variety | None:
    """What the teacher is shown positions under; None = as they were in their games.

    Raises:
        ValueError: there is no teacher.
    """
    if not asked.rules and not asked.komi:
        return None
    if not asked.teacher:
        raise ValueError("--rules and --komi say what a teacher is asked under, but there is no --teacher")
    return Variety(asked.rules or ((RULE_SETS["chinese"], 1.0),), asked.komi or ((Komi(), 1.0),), ((1.0, 1.0),))


def _final_owners(shards: Iterable[Games], console: Console) -> list[FinalOwners]:
    """Who owned what at the end of the scored games; the first run computes it, later ones read it."""
    with Progress(console=console) as progress:
        task = progress.add_task(
            "final owners of scored games", total=sum((shard.margin >= 0).sum() for shard in shards)
        )
        advance = partial(progress.advance, task)
        # Beside the compiled kernels, wherever these can be written.
        folder = jit.FOLDER.parent / jit.RESULTS if jit.FOLDER else None
        found = [saved_final_owners(shard, folder, own_cores(), advance) for shard in shards]
        jit.drop_unused()
        progress.update(task, completed=progress.tasks[0].total)
    games = sum(len(shard.size) for shard in shards)
    console.print(f"score and ownership are known of {sum((one.row >= 0).sum() for one in found):,} of {games:,} games")
    return found


def _validation(
    spec: NetworkSpec, games: Path, labels: Path | None, data: Mixture, device: torch.device
) -> Callable[[Model], dict[str, float]]:
    """What measures a network in training: held-out games and labels, and what it learns from, to know the difference.

    Raises:
        ValueError: a file cannot be read, or there is nothing to measure a value network on.
    """
    held_games, held_labels = read_games(games), read_labels(labels) if labels else None
    encoder, sizes = ENCODERS[spec.encoder], spec.sizes
    if held_labels and not any(sizes[0] <= size <= sizes[1] for size in held_labels.games.size[held_labels.game]):
        raise ValueError(f"{labels}: no labels for boards of this network")
    # A result says little of a position: to tell two errors of the value apart takes many, and as many of both.
    count = VALIDATION_POSITIONS if "policy" in spec.heads else VALIDATION_POSITIONS * USUAL_AREA // spec.max_size**2
    try:
        rows, plies = sample_positions(held_games, count, sizes)
    except ValueError as error:
        raise ValueError(f"{games}: {error}") from error
    played = held_games.moves[held_games.offsets[rows] + plies]
    if "policy" in spec.heads and not held_labels and (played == held_games.size[rows] ** 2).all():
        raise ValueError(f"{games}: no position's move is known in it, there is nothing to measure a policy on")
    if "policy" not in spec.heads and not held_games.result[rows].any():
        raise ValueError(f"{games}: no game has a winner, there is nothing to measure a value network on")
    seen = data.seen_positions(count // 2 if "policy" in spec.heads else count) if data.shows_games else None

    def validate(network: Model) -> dict[str, float]:
        evaluate = in_training(network, device)
        metrics = game_metrics(evaluate, encoder, held_games, rows, plies)
        if seen:
            trained = game_metrics(evaluate, encoder, *seen)
            metrics |= {f"seen/{name}": trained[name] for name in ("top1", "value_mse") if name in trained}
        if held_labels:
            found = label_metrics(evaluate, encoder, held_labels, LABEL_POSITIONS, sizes)
            losses = [value for name, value in found.items() if name.partition("/")[0] in LABEL_LOSSES]
            metrics |= found | {LABEL_GOAL.metric: sum(losses) * len(LABEL_LOSSES) / len(losses)}
        return metrics

    return validate


@click.group(cls=KeimaGroup)
def train() -> None:
    """Train networks on game records and teacher's labels.

    On several GPUs, machines or cores: torchrun --nproc-per-node GPUS --no-python -- keima train ...; each process
    takes --batch positions a step.
    """


for _name, _kind in KINDS_OF_NETWORK.items():
    train.add_command(_network_command(_name, _kind))
for _patterns in KINDS:
    train.add_command(train_command(_patterns))
train.add_command(reinforce_command)
