"""A teacher's labels against those that it gave elsewhere."""

import numpy as np
import pytest

from engine.features.encoder import KEIMA
from engine.features.symmetry import apply_symmetry
from engine.go.rules import RULE_FIELDS
from engine.nets.fakes import HashNetwork
from engine.nets.files.read import read_network
from engine.records.labels import read_labels
from engine.train.batches import TARGETS, label_rules
from engine.train.teacher import Teacher
from tests.nets.models import network_of
from tests.train.made import made_games

POSITIONS = 1000
STORED_LEAD = 2.0**-11
"""of a lead, by which float16 rounds it"""
BATCH = 100


def test_a_teacher_with_all_heads_replaces_every_target_that_it_would_contradict():
    games, rows = made_games(), np.arange(4)
    teacher = Teacher(HashNetwork(KEIMA.name), threads=1)
    try:
        rules = np.zeros((4, RULE_FIELDS), np.int64)
        targets = teacher.targets(games, rows, rows, rules, np.zeros(4, np.int64))
        assert targets.keys() == TARGETS - {"reply"}
        assert {values.dtype for values in targets.values()} == {np.dtype(np.float32)}
    finally:
        teacher.close()


def test_outputs_averaged_over_all_symmetries_turn_with_the_position():
    games, rows, rules = made_games(), np.arange(4), np.zeros((4, RULE_FIELDS), np.int64)
    one, all_ = (Teacher(HashNetwork(KEIMA.name), threads=1, symmetries=count) for count in (1, 8))
    try:
        size = int(games.size[0])
        views = [one.targets(games, rows, rows, rules, np.full(4, view)) for view in range(8)]
        for symmetry in (0, 5, 6):
            found = all_.targets(games, rows, rows, rules, np.full(4, symmetry))
            assert found.keys() == views[0].keys()
            for name in ("value", "score"):
                np.testing.assert_allclose(found[name], np.mean([view[name] for view in views], axis=0), rtol=1e-5)
            for name in ("policy", "ownership"):
                for row in range(4):
                    for at in range(size * size):
                        # A hash differs between views: the mean of what each says of the point that this one becomes.
                        said = [
                            view[name][row].ravel()[apply_symmetry(at, size, k)] for k, view in enumerate(views)
                        ]  # fmt: skip
                        mean = found[name][row].ravel()[apply_symmetry(at, size, symmetry)]
                        assert mean == pytest.approx(np.mean(said), abs=1e-6)
            np.testing.assert_allclose(found["policy"].sum(axis=1), 1.0, rtol=1e-5)
    finally:
        one.close()
        all_.close()


@pytest.mark.shared
def test_the_teacher_repeats_the_labels_it_once_made(shared_path):
    labels = read_labels(shared_path / "labels" / "labels-03.npz.xz")
    sample = np.random.default_rng(3).choice(len(labels.game), POSITIONS, replace=False)
    sizes = labels.games.size[labels.game[sample]]
    model, spec, _ = read_network(shared_path / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz")
    teacher = Teacher(network_of(model, spec, reduced=False))
    try:
        for size in np.unique(sizes):
            of_size = sample[sizes == size]
            for start in range(0, len(of_size), BATCH):
                compare(teacher, labels, of_size[start : start + BATCH], int(size))
    finally:
        teacher.close()


def compare(teacher, labels, rows, size):
    """Value, lead, policy and ownership, for Black as labels are."""
    game, ply = labels.game[rows], labels.ply[rows]
    found = teacher.targets(labels.games, game, ply, label_rules(labels, rows), np.zeros(len(rows), np.int64))
    sign = np.where((ply % 2 == 0) == (labels.games.first[game] == 1), 1.0, -1.0)
    np.testing.assert_allclose(sign * found["value"], labels.value_black[rows], atol=1e-3)
    lead = labels.lead_black[rows]
    np.testing.assert_array_less(np.abs(sign * found["score"] - lead), 0.05 + STORED_LEAD * np.abs(lead))
    for i, row in enumerate(rows):
        stored = labels.policy[row] > 0
        chances = found["policy"][i][labels.policy_index[row][stored]]
        np.testing.assert_allclose(chances, labels.policy[row][stored], rtol=0.03)
        start = labels.own_offsets[row]
        owned = 0.1 * labels.ownership_black[start : start + size * size]
        np.testing.assert_allclose(sign[i] * found["ownership"][i].ravel(), owned, atol=0.06)
