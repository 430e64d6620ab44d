"""``keima train`` and ``keima evaluate``: from files on disk to a trained network and its figures.

The pattern policies' subcommands are in :mod:`engine.train.pattern_commands`.
"""

import json
from dataclasses import fields
from pathlib import Path

import click
import torch

from engine.config import TrainOptions, range_text
from engine.features.encoder import ENCODERS, KEIMA
from engine.nets.checkpoint import load_model
from engine.nets.load import choose_device
from engine.nets.network import NetworkSpec
from engine.nets.resnet import ResNet, ResNetShape
from engine.train.dataset import Mixture
from engine.train.grow import grown
from engine.train.metrics import label_figures, policy_figures
from engine.train.pattern_commands import KINDS, evaluate_command, train_command
from engine.train.records import read_games, read_labels, shard_files
from engine.train.trainer import Trainer

MIN_SIZE, MAX_SIZE = 7, 19
VALIDATION_POSITIONS = 4000
LABEL_POSITIONS = 600


def _with_options(command):
    """Add one command-line option for each field of TrainOptions."""
    for item in reversed(fields(TrainOptions)):
        name = "--" + item.name.replace("_", "-")
        text = f"{item.metadata['help']} ({range_text(item)})"
        command = click.option(name, item.name, type=type(item.default), default=item.default, show_default=True,
                               help=text)(command)  # fmt: skip
    return command


PATHS = click.Path(exists=True, path_type=Path)


@click.group()
def train() -> None:
    """Train networks on game records and teacher's labels."""


@train.command()
@click.option("--games", "games", type=PATHS, multiple=True, help="shard of games (.npz.xz) or folder of them")
@click.option("--labels", "labels", type=PATHS, multiple=True, help="shard of labels (.npz.xz) or folder of them")
@click.option("--validation", type=PATHS, required=True, help="shard of games for the accuracy on people's moves")
@click.option("--label-validation", type=PATHS, help="shard of labels for the agreement with the teacher")
@click.option("--out", "out", type=click.Path(path_type=Path), required=True, help="run folder; a started run goes on")
@click.option("--start", type=PATHS, help="network file to start from instead of random weights; it may be smaller")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda")
@click.option("--threads", default=0, show_default=True, help="CPU threads; 0 = torch's choice")
@_with_options
def dual(games, labels, validation, label_validation, out, start, device, threads, **values) -> None:
    """Train our size-independent network: policy, value, score and ownership.

    Games teach the policy people's moves; labels teach policy, value, score and ownership on all board sizes. A file
    named with --label-validation is never trained on, even if it lies in a folder given with --labels.
    """
    try:
        _train(games, labels, validation, label_validation, out, start, device, threads, TrainOptions(**values))
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def _train(games, labels, validation, label_validation, out, start, device, threads, options: TrainOptions) -> None:
    """:func:`dual` with its options read.

    Raises:
        ValueError: a file, the device or the folder's earlier state cannot be used.
    """
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(options.seed)
    chosen = choose_device(device)
    shape = ResNetShape(KEIMA.planes, KEIMA.globals, options.blocks, options.channels)
    model = grown(load_model(start)[0], shape) if start else ResNet(shape)
    game_files, label_files = shard_files(games, validation), shard_files(labels, label_validation)
    click.echo(f"reading {len(game_files)} game shards and {len(label_files)} label shards", err=True)
    data = Mixture(
        KEIMA, [read_games(path) for path in game_files], [read_labels(path) for path in label_files], options.batch,
        options.label_share, options.seed,
    )  # fmt: skip
    held_games = read_games(validation)
    held_labels = read_labels(label_validation) if label_validation else None

    def validate(network: ResNet) -> dict[str, float]:
        found = policy_figures(network, KEIMA, held_games, VALIDATION_POSITIONS, chosen)
        if held_labels:
            found |= label_figures(network, KEIMA, held_labels, LABEL_POSITIONS, chosen)
        return found

    spec = NetworkSpec(out.name, KEIMA.name, MIN_SIZE, MAX_SIZE, has_score=True, has_ownership=True)
    record = {"games": [path.name for path in game_files], "labels": [path.name for path in label_files]}
    Trainer(model, spec, data, validate, options, out, chosen, record).run()


@click.group()
def evaluate() -> None:
    """Measure networks on held-out positions."""


@evaluate.command()
@click.argument("network", type=PATHS)
@click.argument("data", type=PATHS)
@click.option("--positions", default=10000, show_default=True, help="positions to look at, spread over all games")
@click.option("--labels", type=PATHS, help="shard of labels: value, score and ownership by board size as well")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda")
@click.option("--json", "as_json", is_flag=True, help="one JSON object instead of a table")
def policy(network: Path, data: Path, positions: int, labels: Path | None, device: str, as_json: bool) -> None:
    """Accuracy of NETWORK on the moves people played in the games of DATA (.npz.xz)."""
    try:
        chosen = choose_device(device)
        model, spec, _ = load_model(network)
        encoder = ENCODERS[spec.encoder]
        model = model.eval().to(chosen, memory_format=torch.channels_last)
        figures = policy_figures(model, encoder, read_games(data), positions, chosen)
        if labels:
            figures |= label_figures(model, encoder, read_labels(labels), positions, chosen)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(figures))
    else:
        for name, value in figures.items():
            click.echo(f"{name:20} {value:.4f}" if isinstance(value, float) else f"{name:20} {value}")


for _kind in KINDS:
    train.add_command(train_command(_kind))
    evaluate.add_command(evaluate_command(_kind))
