"""Records, batches, and a loop that learns, stops and resumes to the same curve."""

import csv
import lzma
import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from engine.config import TrainOptions
from engine.features import keima
from engine.features.encoder import KEIMA
from engine.features.symmetry import turn
from engine.nets.checkpoint import load_model
from engine.nets.network import NetworkSpec
from engine.nets.resnet import ResNet, ResNetShape
from engine.train.commands import train
from engine.train.dataset import BatchBuilder, Mixture, sample_games
from engine.train.metrics import label_figures, policy_figures
from engine.train.records import Games, Labels, read_games, read_labels
from engine.train.trainer import Trainer, learning_rate


def made_games(count=40, size=9, length=30, seed=0):
    """Games of random distinct points, no captures worth mentioning: legal by construction on an almost empty board."""
    rng = np.random.default_rng(seed)
    moves = np.concatenate([rng.permutation(size * size)[:length] for _ in range(count)]).astype(np.uint16)
    return Games(
        size=np.full(count, size, np.int64),
        komi=np.full(count, 6.5, np.float32),
        offsets=np.arange(count + 1, dtype=np.int64) * length,
        moves=moves,
        result=np.ones(count, np.int8),
        territory=np.arange(count) % 2 == 0,
    )


def made_labels(seed=0):
    """Labels whose opinion is a rule that no symmetry changes: play the centre, pass if it is taken."""
    games = made_games(seed=seed, length=8)
    rows = 60
    rng = np.random.default_rng(seed)
    game, ply = rng.integers(0, 40, rows), rng.integers(0, 8, rows)
    index = np.full((rows, 12), 65535, np.uint16)
    weight = np.zeros((rows, 12), np.float32)
    for row in range(rows):
        played = set(games.moves[games.offsets[game[row]] :][: ply[row]].tolist())
        index[row, :2] = (81, 0) if 40 in played else (40, 81)
        weight[row, :2] = 0.6, 0.2
    return Labels(
        games, game, ply, index, weight, np.linspace(-1, 1, rows, dtype=np.float32),
        np.linspace(-30, 30, rows, dtype=np.float32),
        np.tile(np.repeat(np.arange(-4, 5), 9).astype(np.int8), rows), np.arange(rows + 1) * 81,
    )  # fmt: skip


def test_game_positions_show_the_board_before_the_move_and_target_the_move():
    games = made_games()
    rows, plies, turns = np.array([0, 1, 2]), np.array([0, 7, 20]), np.array([0, 5, 3])
    batch = BatchBuilder(KEIMA).from_games(games, rows, plies, games.territory[rows], turns)
    for i in range(3):
        move = games.moves[games.offsets[rows[i]] + plies[i]]
        assert batch.policy[i, turn(int(move), 9, int(turns[i]))] == 1
        assert batch.planes[i, keima.RECENT].sum() == (plies[i] > 0)
    assert batch.globals[:, keima.TERRITORY].tolist() == [1, 0, 1]
    assert not batch.judged


def test_label_positions_are_seen_from_the_side_to_move_and_turned():
    labels = made_labels()
    rows = np.arange(20)
    turns = np.resize(np.arange(8), 20)
    batch = BatchBuilder(KEIMA).from_labels(labels, rows, turns)
    for i, row in enumerate(rows):
        sign = 1 if labels.ply[row] % 2 == 0 else -1
        assert batch.value[i] == pytest.approx(sign * labels.value_black[row])
        assert batch.score[i] == pytest.approx(sign * labels.lead_black[row])
        first, second = (turn(int(index), 9, int(turns[i])) for index in labels.policy_index[row, :2])
        assert batch.policy[i, [first, second]] == pytest.approx([0.75, 0.25])
        corner = turn(0, 9, int(turns[i]))
        assert batch.ownership[i, corner // 9, corner % 9] == pytest.approx(-0.4 * sign)


def test_batches_depend_only_on_seed_and_step():
    mixtures = [Mixture(KEIMA, [made_games()], [made_labels()], 8, 0.5, seed=4) for _ in range(2)]
    for step in (0, 3, 11):
        first, second = (mixture.batch_at(step) for mixture in mixtures)
        np.testing.assert_array_equal(first.planes, second.planes)
        np.testing.assert_array_equal(first.policy, second.policy)
    stream = mixtures[0].stream(3)
    np.testing.assert_array_equal(next(stream).planes, mixtures[1].batch_at(3).planes)
    stream.close()


def test_sample_is_fixed_and_spread_over_all_games():
    games = made_games()
    rows, plies = sample_games(games, 80, 7)
    assert np.bincount(rows, minlength=40).tolist() == [2] * 40
    assert ((plies >= 0) & (plies < 30)).all()
    np.testing.assert_array_equal(sample_games(games, 80, 7)[1], plies)


def new_trainer(folder, steps, seed=1):
    options = TrainOptions(
        steps=steps, batch=8, rate=4e-3, warmup=5, decay_share=0.0, validate_every=20, save_every=10, seed=seed
    )
    torch.manual_seed(0)
    model = ResNet(ResNetShape(KEIMA.planes, KEIMA.globals, 2, 8, 8, 8))
    data = Mixture(KEIMA, [made_games()], [made_labels()], 8, 0.7, seed)
    held = made_labels(seed=5)
    spec = NetworkSpec("test", KEIMA.name, 7, 19, True, True)

    def validate(network):
        device = torch.device("cpu")
        figures = policy_figures(network, KEIMA, made_games(seed=5), 100, device)
        return figures | label_figures(network, KEIMA, held, 60, device)

    return Trainer(model, spec, data, validate, options, folder, torch.device("cpu"), {"licence": "MIT"})


def test_training_learns_the_rule_and_writes_network_and_curves(tmp_path):
    figures = new_trainer(tmp_path, 100).run()
    assert figures["teacher_top1/9"] > 0.9
    assert 0 <= figures["top1"] <= figures["top5"] <= 1
    _model, _spec, record = load_model(tmp_path / "network.safetensors")
    assert record["step"] == 100 and record["licence"] == "MIT"
    assert record["figures"]["teacher_top1/9"] == figures["teacher_top1/9"]
    with (tmp_path / "curves.csv").open(newline="") as file:
        names = {row["name"] for row in csv.DictReader(file)}
    assert {"train/policy", "train/value", "validation/top1"} <= names


def test_an_interrupted_run_resumes_to_the_same_weights(tmp_path):
    new_trainer(tmp_path / "whole", 30).run()
    first = new_trainer(tmp_path / "parts", 30)
    stream = first.data.stream(0)
    for _ in range(15):
        first._one_step(next(stream))
        first.step += 1
    stream.close()
    first.save()
    new_trainer(tmp_path / "parts", 30).run()
    whole, parts = (load_model(tmp_path / name / "network.safetensors")[0] for name in ("whole", "parts"))
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(parts.state_dict()[name], value, rtol=1e-3, atol=1e-4)


def test_learning_rate_rises_stays_and_falls_to_zero():
    options = TrainOptions(steps=1000, rate=1.0, warmup=100, decay_share=0.5)
    assert learning_rate(0, options) == pytest.approx(0.01)
    assert learning_rate(300, options) == 1.0
    assert learning_rate(750, options) == pytest.approx(0.5)
    assert learning_rate(1000, options) == 0.0


def test_broken_shard_is_one_clear_error(tmp_path):
    path = tmp_path / "broken.npz.xz"
    path.write_bytes(lzma.compress(b"not an archive"))
    with pytest.raises(ValueError, match=r"broken.npz.xz: not a readable"):
        read_games(path)


@pytest.mark.shared
def test_real_shards_replay(shared_path):
    games = read_games(shared_path / "data" / "validation.npz.xz")
    assert len(games.size) == 10000 and len(games.moves) == 2132848
    labels = read_labels(shared_path / "labels" / "labels-07.npz.xz")
    assert len(labels.game) == 38291 and len(labels.ownership_black) == labels.own_offsets[-1]
    batch = Mixture(KEIMA, [games], [labels], 16, 0.5, 1).batch_at(0)
    np.testing.assert_allclose(batch.policy.sum(axis=1), 1, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "0"], "steps is 0, expected 1 to"),
        (["--games", "DATA"], "not a shard of games, it lacks"),
        (["--labels", "DATA"], "not a shard of labels, it lacks"),
        (["--device", "abacus"], "expected auto, cpu or cuda"),
        ([], "no training data"),
    ],
)
def test_a_run_that_cannot_start_is_one_clear_line(tmp_path, options, message):
    data = tmp_path / "other.npz.xz"
    with lzma.open(data, "wb") as file:
        np.savez(file, other=np.zeros(1))
    given = [str(shutil.copy(data, tmp_path / "given.npz.xz")) if word == "DATA" else word for word in options]
    command = ["dual", "--validation", str(data), "--out", str(tmp_path / "run"), *given]
    result = CliRunner().invoke(train, command)
    assert result.exit_code == 1
    assert message in result.output and "Traceback" not in result.output
