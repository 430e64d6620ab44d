"""Trainers of a tiny network, for tests of the training loop."""

import torch

from engine.config import TrainOptions
from engine.features.encoder import KEIMA
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import write_arrays
from engine.nets.model import load_model, new_model
from engine.train.dataset import Material, Mixture
from engine.train.metrics import game_metrics, in_training, label_metrics, sample_positions
from engine.train.trainer import Goal, Measure, Trainer
from tests.train.made import made_games, made_labels

GOAL = Goal("teacher_top1/9", 1)
CPU = torch.device("cpu")


def new_trainer(folder, steps, ranks=None, record=None, **values):
    """A trainer of a tiny network on made-up games and labels."""
    settings = {
        "steps": steps, "batch": 8, "rate": 4e-3, "warmup": 5, "decay_share": 0.0, "validate_every": 20,
        "save_every": 10, "label_share": 0.7,
    }  # fmt: skip
    options = TrainOptions(**(settings | values))
    torch.manual_seed(0)
    shape = {"planes": KEIMA.planes, "globals": KEIMA.globals, "blocks": 2, "channels": 8, "head_channels": 8}
    model = new_model("keima-resnet", shape | {"value_hidden": 8})
    data = Mixture(KEIMA, Material([made_games()], [made_labels()]), options, ranks=ranks)
    held = made_labels(seed=5)

    def validate(network):
        evaluate = in_training(network, CPU)
        games = made_games(seed=5)
        return game_metrics(evaluate, KEIMA, games, *sample_positions(games, 100)) | label_metrics(
            evaluate, KEIMA, held, 60
        )

    spec = new_spec(model, "test")
    return Trainer(model, spec, data, Measure(validate, GOAL), options, folder, CPU, record or {"licence": "MIT"})


def weights(folder):
    """The averaged weights in a run folder."""
    return load_model(folder / "network.safetensors")[0].state_dict()


def write_torch(path, tensors, facts):
    """Write a state's tensors, as a run does."""
    write_arrays(path, {name: one.numpy() for name, one in tensors.items()}, facts)
