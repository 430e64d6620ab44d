"""``keima train``: networks trained on game records and labels.

One command a kind of network (``KINDS_OF_NETWORK``); they differ in architecture, defaults and the metric of early
stopping. The commands of the pattern policies are in :mod:`gtp.cli.patterns`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import click
import numpy as np
import torch
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.config import TrainOptions
from engine.config.declaration import key_of
from engine.features.encoder import ENCODERS
from engine.go.rules import RULE_SETS, Rules, rules_from
from engine.nets.architectures.registry import ARCHITECTURES, architecture_of, new_spec
from engine.nets.devices import torch_device
from engine.nets.files.checkpoint import load_plain
from engine.nets.model import Model, load_model, new_model
from engine.nets.network import NetworkSpec
from engine.nets.on_device import load_network
from engine.records.final_owners import FinalOwners, saved_final_owners
from engine.records.games import Games, read_games, shard_files
from engine.records.labels import read_labels
from engine.records.sgf_values import rank_text, read_rank
from engine.selfplay.game_distribution import GameDistribution, Komi, Shares, read_komi, read_size
from engine.selfplay.reinforce import Reinforce, ReinforceOptions
from engine.system import jit
from engine.system.executor import StopOnSignal
from engine.system.files import alone_in
from engine.train.dataset import Material, Mixture
from engine.train.grow import grown, on_newest_inputs, sizes_shown
from engine.train.metrics import game_metrics, in_training, label_metrics, sample_positions
from engine.train.ranks import Ranks, join_ranks, own_cores
from engine.train.teacher import Teacher, symmetries_of
from engine.train.trainer import Goal, Measure, Observer, Trainer
from gtp.cli import KeimaCommand, KeimaGroup
from gtp.cli.arguments import DEVICE, PATHS, THREADS, OneOf, Whole, parsed
from gtp.cli.bulk import OUT, distribution_options, share
from gtp.cli.options import GroupedCommand, options_from, options_of, with_options
from gtp.cli.patterns import KINDS, train_command
from gtp.cli.terminal import RESUMES, bar
from weights import files_of, find, find_network, identity

VALIDATION_POSITIONS = 4000
"""Number of validation positions; for a network without a policy, the number for 19x19: on smaller boards it grows in
inverse proportion to their points"""
USUAL_AREA = 361
RULES = share("NAME=SHARE", rules_from, text="rule set under which the teacher evaluates",
              usual="its game's, or chinese with --komi")  # fmt: skip
KOMI = share("KOMI=SHARE", read_komi, text="komi at which the teacher evaluates: usual, a number, or a range: 5.5..9.5",
             usual="its game's, or usual with --rules")  # fmt: skip
BOARDS = share("SIZE=SHARE", read_size, text="share of steps on a board size",
               usual="as there are games and labels")  # fmt: skip
LABEL_POSITIONS = 2000
"""Number of validation positions with labels, for each board size"""
LABEL_GOAL, LABEL_LOSSES = Goal("label_loss", -1), ("policy_kl", "value_ce")
"""Goal of early stopping with held-out labels, and the losses that it sums: a teacher does not teach human moves"""
LABEL_OPTIONS = (
    "label_share", "decided_weight", "reached_share", "echo", "teacher_share", "teacher_symmetries", "score_weight",
    "ownership_weight", "policy_weight", "reply_weight",
)  # fmt: skip

PLAIN: dict[str, object] = {"optimizer": "sgd", "rate": 0.005, "warmup": 500, "schedule": "cosine"}
"""Default training options of AlphaGo's plain networks: without normalisation, faster optimizers get stuck"""


class NetworkKind(NamedTuple):
    """One kind of network as ``keima train`` trains it."""

    help: str
    goal: Goal
    """metric of early stopping"""
    uses_labels: bool = False
    defaults: Mapping[str, object] = MappingProxyType({})
    """defaults that differ from those of TrainOptions"""
    hidden: tuple[str, ...] = ()
    """names of options without effect, which help does not list"""


KINDS_OF_NETWORK = {
    "policy": NetworkKind(
        "Train AlphaGo's policy network (48 planes, 13 layers) to predict human moves.",
        Goal("top1", 1), defaults=PLAIN, hidden=(*LABEL_OPTIONS, "value_weight", "result_weight", "value_loss"),
    ),
    "value": NetworkKind(
        "Train AlphaGo's value network (49 planes, 15 layers) to predict the results of games.",
        Goal("value_mse", -1), hidden=LABEL_OPTIONS,
        defaults=PLAIN | {"value_loss": "mse", "positions_per_game": 1, "result_weight": 1.0},
    ),
    "dual": NetworkKind(
        "Train a network with policy and value: our own for all board sizes, or AlphaGo Zero's.\n\nThe policy learns "
        "the moves of games, the value their results, and score and ownership the final boards that could be counted. "
        "Labels, and a teacher that evaluates positions of the games during training, teach all of these.",
        Goal("top1", 1), uses_labels=True,
    ),
}  # fmt: skip


def _shape_options(command: Callable[..., Any], architectures: tuple[str, ...]) -> Callable[..., Any]:
    """Add to a command one option for each size of the architectures' networks, such as ``--blocks``."""
    usual: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for architecture in architectures:
        for item in fields(ARCHITECTURES[architecture].shape):
            if item.name not in ("planes", "globals"):
                texts.setdefault(item.name, f"new network: {item.metadata['help']}")
                usual.setdefault(item.name, []).append(f"{architecture}: {item.default}")
    return with_options(command, [
        click.option("--" + key_of(name), name, type=Whole(), show_default="; ".join(usual[name]), help=text)
        for name, text in texts.items()
    ])  # fmt: skip


def _network_command(name: str, kind: NetworkKind) -> click.Command:
    """Make the command ``keima train NAME``."""
    # The first architecture is the default.
    architectures = tuple(name_ for name_, one in ARCHITECTURES.items() if one.trained_by == name)
    label_option = partial(click.option, hidden=not kind.uses_labels)

    @click.command(name, cls=GroupedCommand, help=kind.help)
    @click.option("--games", type=PATHS, multiple=True, help="shard of games (.npz.xz) or folder of them")
    @click.option("--mover-rank", callback=parsed(read_rank), metavar="RANK", show_default="any",
                  help="lowest rank of the side to move in positions of games to learn from: 3k, 6d, 1p")  # fmt: skip
    @label_option("--labels", type=PATHS, multiple=True, help="shard of labels (.npz.xz) or folder of them")
    @click.option("--validation", type=PATHS, required=True, help="shard of held-out games to measure on")
    @label_option("--label-validation", type=PATHS, help="shard of held-out labels to measure on")
    @label_option("--teacher", metavar="NETWORK", help="network (name or file) that evaluates positions of games")
    @label_option("--rules", **RULES)
    @label_option("--komi", **KOMI)
    @label_option("--boards", **BOARDS)
    @click.option("--out", type=click.Path(path_type=Path), required=True, help="run folder; a started run resumes")
    @click.option("--start", metavar="NETWORK",
                  help="network (name or file) to start from instead of random weights; a keima-resnet may be smaller",
                  )  # fmt: skip
    @click.option("--network", "architecture", type=OneOf(architectures), default=architectures[0],
                  hidden=len(architectures) == 1, help="architecture")  # fmt: skip
    @DEVICE
    @click.option("--threads", default=0, type=Whole(), help="CPU threads of torch; 0 = torch's choice")
    @partial(_shape_options, architectures=architectures)
    @options_of(TrainOptions, defaults=kind.defaults, hidden=kind.hidden)
    def command(**given: Any) -> None:
        TrainingRun.of(kind, given).train()

    return command


@dataclass(frozen=True)
class TrainingRun:
    """One training run of ``keima train policy``, ``value`` or ``dual``; the fields are the command's options."""

    kind: NetworkKind
    options: TrainOptions
    shape: dict[str, int]
    """shape of a new network; missing sizes have the architecture's defaults"""
    games: tuple[Path, ...]
    mover_rank: int | None
    labels: tuple[Path, ...]
    validation: Path
    label_validation: Path | None
    teacher: str | None
    rules: Shares[Rules]
    komi: Shares[Komi]
    boards: Shares[int]
    """board sizes and their shares of the steps; empty = as frequent as in games and labels"""
    out: Path
    start: str | None
    architecture: str
    device: str
    threads: int

    @classmethod
    def of(cls, kind: NetworkKind, given: dict[str, Any]) -> "TrainingRun":
        """Make a run of a command's options, and remove from ``given`` the options that are fields of the run."""
        own = {item.name: given.pop(item.name) for item in fields(cls) if item.name in given}
        options = options_from(TrainOptions, given)
        shape = {name: value for name, value in given.items() if value is not None and name not in vars(options)}
        return cls(kind, options, shape, **own)

    def train(self) -> None:
        """Train, or resume the run in the folder ``out``.

        Raises:
            ValueError: a file, the device or the folder's earlier state cannot be used; one line.
        """
        with ExitStack() as stack:
            torch.manual_seed(self.options.seed)
            ranks, device, console = _joined(stack, self.device, self.threads, self.out)
            model, begun = self._new_network()
            game_files = shard_files(self.games, self.validation)
            label_files = shard_files(self.labels, self.label_validation)
            console.print(f"reading {len(game_files)} game shards and {len(label_files)} label shards")
            games, labels = [*map(read_games, game_files)], [*map(read_labels, label_files)]
            shown = [*games, *(one.games for one in labels)]
            sizes = sizes_shown(begun, shown, self.boards) if begun and not hasattr(model.shape, "size") else None
            spec = new_spec(model, self.out.name, sizes=sizes)
            distribution, teacher = self._distribution(), None
            if self.teacher:
                network = load_network(find_network(self.teacher), str(device))
                teacher = Teacher(network, own_cores(), symmetries=symmetries_of(self.options))
                stack.callback(teacher.close)
                _check_teacher(teacher, games, distribution)
            gives_owners = teacher is not None and _gives_owners(teacher, self.options, games)
            owners = _final_owners(games, console) if "ownership" in spec.heads and not gives_owners else ()
            draw = (lambda n, size: distribution.draw(self.options.seed, n, size)[0]) if distribution else None
            material = Material(games, labels, owners, teacher, dict(self.boards) or None, self.mover_rank or 0, draw)
            data = Mixture(ENCODERS[spec.encoder], material, self.options, spec.sizes, ranks)
            validate = _validation(spec, self.validation, self.label_validation, data, device)
            measure = Measure(validate, LABEL_GOAL if self.label_validation else self.kind.goal)
            record = self._record(game_files, label_files, distribution) | {"processes": ranks.count}
            trainer = Trainer(model, spec, data, measure, self.options, self.out, device, record)
            console.print(trainer.shards.description, highlight=False)
            with bar(console) as progress:
                trainer.run(Display(progress, progress.add_task("training", total=self.options.steps)))

    def _record(self, games: list[Path], labels: list[Path], distribution: GameDistribution | None) -> dict[str, Any]:
        """Describe the data of the run, for the network's training record."""
        record: dict[str, Any] = {
            "games": [path.name for path in games], "labels": [path.name for path in labels],
            "validation": self.validation.name, "boards": {str(size): share for size, share in self.boards},
            "label_validation": self.label_validation.name if self.label_validation else None,
        }  # fmt: skip
        files = {"games": (*games,), "labels": (*labels,), "validation": (self.validation,)}
        if self.label_validation:
            files["label_validation"] = (self.label_validation,)
        # Shards of different data often have the same names.
        record["sha256"] = {name: identity(paths, name)["sha256"] for name, paths in files.items()}
        if self.mover_rank:
            record["mover_rank"] = rank_text(self.mover_rank)
        if distribution:
            record["shown"] = distribution.record()
        if self.start:
            path = find(self.start)
            # Of its own start only the identity: headers of networks may not grow with each training.
            training = load_plain(path)[2]
            earlier = training.get("start")
            if isinstance(earlier, dict):
                training = training | {"start": {name: earlier[name] for name in earlier if name != "training"}}
            record["start"] = identity(path, path.stem) | {"training": training}
        if self.teacher:
            record["teacher"] = [identity(path, path.stem) for path in files_of(find_network(self.teacher))]
        return record

    def _new_network(self) -> tuple[Model, NetworkSpec | None]:
        """The model to train, and the spec of the network ``start``, which is grown to the wanted shape.

        Without ``start``: a model of random weights, and None.
        """
        architecture = ARCHITECTURES[self.architecture]
        encoder, known = ENCODERS[architecture.encoder], {item.name for item in fields(architecture.shape)}
        inputs = {name: getattr(encoder, name) for name in ("planes", "globals") if name in known}
        if self.start is None:
            return new_model(self.architecture, inputs | self.shape), None
        architecture.shape.read(inputs | self.shape)
        model, spec = on_newest_inputs(*load_model(find(self.start))[:2])
        if architecture_of(model) != self.architecture:
            raise ValueError(f"{self.start}: not of the architecture {self.architecture}")
        if spec.encoder != encoder.name:
            raise ValueError(f"{self.start}: reads {spec.encoder}, {self.architecture} reads {encoder.name}")
        present: Any = model.shape
        wanted = replace(present, **self.shape)
        return model if wanted == present else grown(model, wanted), spec

    def _distribution(self) -> GameDistribution | None:
        """The rules and komi at which the teacher evaluates; None = the rules and komi of each game.

        Raises:
            ValueError: ``--rules`` or ``--komi`` without a teacher.
        """
        if not self.rules and not self.komi:
            return None
        if not self.teacher:
            raise ValueError("--rules and --komi need --teacher: they are the teacher's")
        rules, komi = self.rules or ((RULE_SETS["chinese"], 1.0),), self.komi or ((Komi(), 1.0),)
        return GameDistribution(rules, komi, ((1.0, 1.0),))


def _joined(stack: ExitStack, device: str, threads: int, out: Path) -> tuple[Ranks, torch.device, Console]:
    """Join the processes that torchrun started, until the stack closes; the first one locks the folder and prints."""
    ranks, chosen = join_ranks(torch_device(device, threads))
    stack.push(lambda kind, *_: ranks.leave(kind is not None))
    if ranks.is_first:
        stack.enter_context(alone_in(out))
    # A notebook would show the bar as widgets.
    return ranks, chosen, Console(stderr=True, quiet=not ranks.is_first, force_jupyter=False)


@dataclass(frozen=True)
class Display(Observer):
    """Shows a training run on the terminal: a progress bar, and lines above it."""

    progress: Progress
    task: TaskID

    def at_step(self, step: int, losses: str) -> None:
        """Move the progress bar, and show the losses before it."""
        self.progress.update(self.task, completed=step, description=losses)

    def say(self, line: str) -> None:
        """Print a line above the progress bar."""
        self.progress.console.print(line)


def _check_teacher(teacher: Teacher, shards: Sequence[Games], distribution: GameDistribution | None) -> None:
    """Refuse a teacher that knows a single komi if it would have to evaluate positions at another komi.

    Raises:
        ValueError: one line.
    """
    known = ENCODERS[teacher.spec.encoder].komi
    if known is None or "value" not in teacher.spec.heads:
        return
    if distribution:
        asked = {bound for komi, _ in distribution.komi for bound in (komi.low, komi.high)}
    else:
        asked = {komi for shard in shards for komi in np.unique(shard.komi[~np.isnan(shard.komi)]).tolist()}
    if not asked <= {known}:
        raise ValueError(
            f"--teacher: network {teacher.spec.name} knows only komi {known:g} and would evaluate all games at it: add "
            f"--komi {known:g}=1"
        )


def _gives_owners(teacher: Teacher, options: TrainOptions, shards: Sequence[Games]) -> bool:
    """Whether the teacher evaluates every position of the games, and gives score and ownership."""
    if options.teacher_share < 1.0 or not {"score", "ownership"} <= set(teacher.spec.heads):
        return False
    return all(teacher.plays(size) for shard in shards for size in np.unique(shard.size).tolist())


def _final_owners(shards: Iterable[Games], console: Console) -> list[FinalOwners]:
    """Final ownership of the scored games, one item per shard; the first run computes and saves it for later runs."""
    with Progress(console=console) as progress:
        task = progress.add_task(
            "final owners of scored games", total=sum((shard.margin >= 0).sum() for shard in shards)
        )
        advance = partial(progress.advance, task)
        # Beside the compiled kernels, which lie in a writable folder.
        folder = jit.FOLDER.parent / jit.RESULTS if jit.FOLDER else None
        found = [saved_final_owners(shard, folder, own_cores(), advance) for shard in shards]
        jit.drop_unused()
        progress.update(task, completed=progress.tasks[0].total)
    games = sum(len(shard.size) for shard in shards)
    console.print(
        f"score and ownership are known for {sum((one.row >= 0).sum() for one in found):,} of {games:,} games"
    )
    return found


def _validation(
    spec: NetworkSpec, games: Path, labels: Path | None, data: Mixture, device: torch.device
) -> Callable[[Model], dict[str, float]]:
    """Make the function that measures a network in training on held-out games and labels, and on training positions.

    Raises:
        ValueError: a file cannot be read, or holds no target of the network; one line.
    """
    held_games, held_labels = read_games(games), read_labels(labels) if labels else None
    encoder, sizes = ENCODERS[spec.encoder], spec.sizes
    if held_labels and not any(sizes[0] <= size <= sizes[1] for size in held_labels.games.size[held_labels.game]):
        raise ValueError(f"{labels}: no labels on board sizes of this network")
    # Results are noisy targets: the value's error on held-out and on seen positions needs many positions of each.
    count = VALIDATION_POSITIONS if "policy" in spec.heads else VALIDATION_POSITIONS * USUAL_AREA // spec.max_size**2
    try:
        rows, plies = sample_positions(held_games, count, sizes)
    except ValueError as error:
        raise ValueError(f"{games}: {error}") from error
    played = held_games.moves[held_games.offsets[rows] + plies]
    if "policy" in spec.heads and not held_labels and (played == held_games.size[rows] ** 2).all():
        raise ValueError(f"{games}: no move of any position is known, expected moves to measure a policy on")
    if "policy" not in spec.heads and not held_games.result[rows].any():
        raise ValueError(f"{games}: no game has a winner, expected results to measure a value network on")
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


SHOWN = ("win_rate/start", "win_rate/newest", "win_rate/pool")
"""Metrics of ``keima train reinforce`` that are printed: win rates in matches against earlier policies"""


@click.command("reinforce", cls=KeimaCommand)
@click.argument("network")
@OUT
@click.option(
    "--baseline", metavar="NETWORK", show_default="nothing", help="network whose value is subtracted from the rewards"
)
@distribution_options
@options_of(ReinforceOptions)
@DEVICE
@THREADS
def reinforce_command(
    network: str, out: Path, baseline: str | None, distribution: GameDistribution, device: str, threads: int,
    **rest: float | str,
) -> None:  # fmt: skip
    """Improve the policy of NETWORK by games against earlier versions of itself, as AlphaGo did (REINFORCE).

    The same command resumes a stopped run. Processes that torchrun starts share games and gradients: torchrun
    --nproc-per-node GPUS --no-python -- keima train reinforce ...

    \b
        keima train reinforce alphago-9-sl --size 9 --updates 2000 --pool-every 100 --out rl-9
    """
    options = ReinforceOptions(distribution, **rest)  # type: ignore[arg-type]
    with ExitStack() as stack, StopOnSignal() as stop:
        ranks, chosen, console = _joined(stack, device, threads, out)
        start, known = find(network), None
        if baseline:
            path = find_network(baseline)
            loaded = load_network(path, str(chosen))
            if "value" not in loaded.spec.heads:
                raise ValueError(f"network {loaded.spec.name} has no value to use as a baseline")
            known = loaded, identity(path, loaded.spec.name)
        run = Reinforce(start, identity(start, start.stem), options, out, chosen, known, threads, ranks)
        console.print(run.learner.shards.description, highlight=False)
        columns = (MofNCompleteColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn(), TimeRemainingColumn())
        with bar(console, *columns) as progress:
            task = progress.add_task("updates", total=options.updates, completed=run.learner.step, note="")

            def report(step: int, metrics: dict[str, float]) -> None:
                note = f"entropy {metrics['entropy']:.2f}, {metrics['games_per_s']:.1f} games/s"
                progress.update(task, completed=step, note=note)
                if rates := [f"{name} {metrics[name]:.1%}" for name in SHOWN if name in metrics]:
                    console.print(f"update {step}: {', '.join(rates)}", highlight=False)

            run.run(lambda: stop.asked, report)
        if run.learner.step < options.updates:
            console.print(RESUMES, highlight=False)


@click.group(cls=KeimaGroup)
def train() -> None:
    """Train networks on game records and teacher's labels.

    On several GPUs, machines or cores: torchrun --nproc-per-node GPUS --no-python -- keima train ...; each process
    computes --batch positions a step.
    """


for _name, _kind in KINDS_OF_NETWORK.items():
    train.add_command(_network_command(_name, _kind))
for _patterns in KINDS:
    train.add_command(train_command(_patterns))
train.add_command(reinforce_command)
