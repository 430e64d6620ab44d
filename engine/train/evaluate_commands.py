"""``keima evaluate``: figures of networks and pattern policies on held-out positions."""

import json
from pathlib import Path

import click

from engine.features.encoder import ENCODERS
from engine.nets.checkpoint import load_model
from engine.nets.load import choose_device
from engine.train.metrics import game_figures, label_figures
from engine.train.pattern_commands import KINDS, evaluate_command
from engine.train.records import read_games, read_labels
from weights import find

PATHS = click.Path(exists=True, path_type=Path)


class EvaluateGroup(click.Group):
    """``evaluate rollout DATA``, ``evaluate tree DATA``, and anything else names a network."""

    def resolve_command(self, ctx: click.Context, args: list[str]):
        if args[0] not in self.commands:
            args = ["network", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=EvaluateGroup, subcommand_metavar="rollout|tree|NETWORK DATA [OPTIONS]")
def evaluate() -> None:
    """Measure a network (a name such as default, or a file) or a pattern policy on held-out positions."""


@evaluate.command("network", hidden=True)
@click.argument("network")
@click.argument("data", type=PATHS)
@click.option("--positions", default=50000, show_default=True, help="positions to look at, spread over all games")
@click.option("--labels", type=PATHS, help="shard of labels: value, score and ownership by board size as well")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda")
@click.option("--json", "as_json", is_flag=True, help="one JSON object instead of a table")
def evaluate_network(network: str, data: Path, positions: int, labels: Path | None, device: str, as_json: bool) -> None:
    """How well NETWORK (a name or a file) foresees the moves and results of the games of DATA (.npz.xz)."""
    try:
        chosen = choose_device(device)
        model, spec, _ = load_model(find(network))
        encoder = ENCODERS[spec.encoder]
        model = model.eval().to(chosen)
        figures = game_figures(model, encoder, read_games(data), positions, chosen)
        if labels:
            figures |= label_figures(model, encoder, read_labels(labels), positions, chosen)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(figures))
    else:
        for name, value in figures.items():
            click.echo(f"{name:24} {value:.4f}" if isinstance(value, float) else f"{name:24} {value}")


for _kind in KINDS:
    evaluate.add_command(evaluate_command(_kind))
