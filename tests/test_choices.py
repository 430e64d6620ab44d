"""Every option with choices: each is implemented, and one that is only declared is refused where it would be used."""

from dataclasses import fields

import pytest
import torch

from engine.config import PlayOptions, SearchOptions, SessionOptions, SetupOptions, TrainOptions, declaration
from engine.nets.network import RawHeads
from engine.play.levels import settings_of
from engine.records.filters import Filters
from engine.records.shards import BuildOptions
from engine.search.choosing import best_first
from engine.search.tuning import new_tuning, resolved, root_symmetries
from engine.selfplay.label_job import LabelOptions
from engine.train.learner import learning_rate, new_optimizer
from engine.train.losses import combined_loss
from engine.train.teacher import symmetries_of
from tests.train.made import made_games

CLASSES = (SetupOptions, SessionOptions, SearchOptions, PlayOptions, TrainOptions, Filters, BuildOptions, LabelOptions)
UNKNOWN = "only-declared"


def value_loss(options):
    targets = {"value": torch.tensor([1.0]), "value_known": torch.tensor([1.0])}
    combined_loss(RawHeads(value=torch.tensor([0.3])), targets, options)


USES = {
    (SearchOptions, "virtual_loss_on"): lambda options: new_tuning(options, None, None),
    (SearchOptions, "fpu_strategy"): lambda options: new_tuning(options, None, None),
    (SearchOptions, "move_choice"): lambda options: best_first([], options.move_choice),
    (SearchOptions, "root_symmetries"): lambda options: root_symmetries(resolved(options, None)),
    (PlayOptions, "level"): lambda options: settings_of(options.level, 9),
    (TrainOptions, "optimizer"): lambda options: new_optimizer(torch.nn.Linear(2, 2), options),
    (TrainOptions, "schedule"): lambda options: learning_rate(1, options),
    (TrainOptions, "value_loss"): value_loss,
    (TrainOptions, "teacher_symmetries"): symmetries_of,
    (Filters, "results"): lambda options: options.apply(made_games(count=2)),
}
"""What reads an option; it raises ValueError for a choice without a branch"""
DECLARED = {
    (kind, item.name): item.metadata["choices"] for kind in CLASSES for item in fields(kind)
    if item.metadata.get("choices")
}  # fmt: skip


def test_every_option_with_choices_is_tried_here():
    assert DECLARED.keys() == USES.keys()


@pytest.mark.parametrize(("kind", "name"), USES)
def test_every_choice_has_a_branch_and_no_other_does_the_same_silently(kind, name, monkeypatch):
    for choice in DECLARED[kind, name]:
        USES[kind, name](kind(**{name: choice}))
    options = kind()
    # As if it were declared: options that are made from these are not refused for it.
    monkeypatch.setattr(declaration, "check", lambda _: None)
    object.__setattr__(options, name, UNKNOWN)
    with pytest.raises(ValueError, match=f"{name} is .*{UNKNOWN}"):
        USES[kind, name](options)
