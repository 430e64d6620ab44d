"""The training loop: it learns, stops, resumes to the same curve, and gives up when nothing gets better."""

import csv
import json
import lzma
import math
import shutil
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors import safe_open

import engine.train.shards
from engine.config import TrainOptions
from engine.features.encoder import KEIMA
from engine.features.keima import GROUP_TAX, KOMI, SUICIDE_LEGAL, SUPERKO
from engine.nets.architectures.registry import ARCHITECTURES, new_spec
from engine.nets.model import load_model, new_model
from engine.records.games import read_games, write_games
from engine.train.curves import Curves, read_curves
from engine.train.dataset import Material, Mixture
from engine.train.learner import learning_rate
from engine.train.state import read_state
from engine.train.trainer import Goal, Measure, Observer, Trainer, changed_options
from gtp.cli.train import KINDS_OF_NETWORK, _network_command, train
from tests.train.made import made_games
from tests.train.trainers import CPU, GOAL, new_trainer, weights, write_torch


@pytest.mark.parametrize(
    ("optimizer", "rate", "steps"), [("adamw", 4e-3, 200), ("muon", 4e-3, 200), ("sgd", 0.05, 400)]
)
def test_training_learns_the_rule_and_writes_network_and_curves(tmp_path, optimizer, rate, steps):
    metrics = new_trainer(tmp_path, steps, optimizer=optimizer, rate=rate, label_share=0.9, validate_every=100).run()
    assert metrics["teacher_top1/9"] > 0.9
    assert 0 <= metrics["top1"] <= metrics["top5"] <= 1
    assert 0 <= metrics["value_accuracy"] <= 1 and metrics["value_mse"] > 0
    _model, _spec, record = load_model(tmp_path / "network.safetensors")
    assert record["step"] == steps and record["licence"] == "MIT"
    assert record["figures"]["teacher_top1/9"] == metrics["teacher_top1/9"]
    with (tmp_path / "curves.csv").open(newline="") as file:
        names = {row["name"] for row in csv.DictReader(file)}
    assert {"train/policy", "train/value", "validation/top1", "validation/value_mse"} <= names


def test_rules_that_no_position_showed_have_no_say(tmp_path):
    """Labels are made under one set of rules; under others a network's values moved by what it began with."""
    trainer = new_trainer(tmp_path, 30)
    trainer.run()
    network = trainer.averaged()
    planes, globals_ = torch.randn(4, KEIMA.planes, 9, 9), torch.zeros(4, KEIMA.globals)
    shown = network(planes, globals_)
    globals_[:, [GROUP_TAX, SUICIDE_LEGAL, SUPERKO]] = 1.0
    for one, other in zip(network(planes, globals_)[:4], shown[:4], strict=True):
        assert torch.equal(one, other)
    globals_[:, KOMI] = 1.0
    assert not torch.equal(network(planes, globals_).value, shown.value)


def test_curves_that_cannot_be_drawn_are_told_of(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    curves = Curves(tmp_path / "curves.csv", 0)
    curves.enter(1, {"train/value": 1.0})
    curves.plot(tmp_path / "curves.png")
    assert not (tmp_path / "curves.png").exists()
    assert "curves.csv; to draw them: pip install matplotlib" in capsys.readouterr().err


def test_what_is_registered_can_be_trained(monkeypatch):
    assert {one.trained_by for one in ARCHITECTURES.values()} == {"", *KINDS_OF_NETWORK}
    monkeypatch.setitem(ARCHITECTURES, "plain", ARCHITECTURES["keima-resnet"])
    offered = _network_command("dual", KINDS_OF_NETWORK["dual"])
    assert "plain" in next(one for one in offered.params if one.name == "architecture").type.choices


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "sgd"])
def test_an_interrupted_run_resumes_to_the_same_weights(tmp_path, optimizer):
    new_trainer(tmp_path / "whole", 30, optimizer=optimizer).run()
    first = new_trainer(tmp_path / "parts", 30, optimizer=optimizer)
    stream = first.data.stream(0, first.tensors)
    for _ in range(15):
        first.one_step(next(stream))
        first.step += 1
    stream.close()
    first.save()
    new_trainer(tmp_path / "parts", 30, optimizer=optimizer).run()
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-3, atol=1e-4)


def test_what_a_state_holds_is_laid_out_as_the_weights_are(tmp_path, monkeypatch):
    """Files have no memory formats, and the optimizer goes through weights and moments side by side."""
    monkeypatch.setattr(engine.train.shards, "training_format", lambda device: torch.channels_last)
    first = new_trainer(tmp_path, 30)
    stream = first.data.stream(0, first.tensors)
    first.one_step(next(stream))
    first.step += 1
    stream.close()
    first.save()
    again = new_trainer(tmp_path, 30)
    moments = again.state().moments
    for name, value in again.model.named_parameters():
        held = [one for one in moments[name].values() if one.shape == value.shape]
        assert {one.stride() for one in (*held, again.average[name])} == {value.stride()}


def test_patience_ends_a_run_that_gets_no_better(tmp_path):
    trainer = new_trainer(tmp_path, 10_000, rate=0.0, patience=2, validate_every=5)
    trainer.run()
    assert trainer.step == 15, "the first validation sets the mark, two more are not above it"
    again = new_trainer(tmp_path, 10_000, rate=0.0, patience=2, validate_every=5)
    assert (again.best, again.worse) == (trainer.best, 2)
    again.run()
    assert again.step == 15, "its patience has ended already"


def test_the_network_of_the_best_validation_is_kept_behind_a_resumption_too(tmp_path):
    """The lowest error is not the last one where a network begins to learn its games by heart."""
    reached = iter([0.1, 0.3, 0.2, 0.25, 0.3])
    for steps in (9, 15):
        trainer = new_trainer(tmp_path, steps, validate_every=3)
        trainer.validate = lambda network: {GOAL.metric: next(reached)}
        trainer.run()
    record = load_model(tmp_path / "best.safetensors")[2]
    assert (record["step"], record["figures"][GOAL.metric]) == (6, 0.3)
    assert load_model(tmp_path / "network.safetensors")[2]["step"] == 15


def test_a_run_that_goes_on_with_another_goal_begins_to_look_for_the_best_anew(tmp_path):
    new_trainer(tmp_path, 6, validate_every=3).run()
    again = new_trainer(tmp_path, 9, validate_every=3)
    goal = Goal("label_loss", -1)
    other = Trainer(
        again.model, again.spec, again.data, Measure(lambda network: {"label_loss": 2.0}, goal), again.options,
        tmp_path, CPU, again.record,
    )  # fmt: skip
    assert again.best > other.best
    other.run()
    assert other.best == -2.0


def test_a_run_of_few_steps_has_its_losses_in_the_curves(tmp_path):
    for steps in (3, 5):
        new_trainer(tmp_path, steps).run()
        rows = read_curves(tmp_path / "curves.csv")[0]
        assert {step for step, name, _ in rows if name == "train/policy"} == {3, steps}


def test_a_run_stops_in_time_and_goes_on(tmp_path):
    trainer = new_trainer(tmp_path, 10_000, minutes=1e-4)
    trainer.run()
    stopped = trainer.step
    assert 0 < stopped < 10_000
    again = new_trainer(tmp_path, 10_000, minutes=1e-4)
    assert again.step == stopped


def test_a_run_that_goes_on_says_what_else_it_learns_from_now(tmp_path):
    told = {"games": ["a.npz.xz"], "boards": {"9": 1.0}, "processes": 2, "start": "x"}
    new_trainer(tmp_path, 2, record=told).run()
    lines: list[str] = []
    observer = Observer()
    observer.say = lines.append  # type: ignore[method-assign]
    new_trainer(tmp_path, 4, record=told).run(observer)
    assert not any("than before" in line for line in lines if "options" not in line)
    new_trainer(tmp_path, 6, record=told | {"boards": {"9": 2.0}, "teacher": ["b10"], "start": "y"}).run(observer)
    assert "resuming with other shares of boards, teacher than before" in lines
    for spoil in (lambda path: path.write_bytes(b"damaged"), lambda path: path.unlink()):
        spoil(tmp_path / "network.safetensors")
        assert new_trainer(tmp_path, 6, record=told).step == 6


def test_a_run_that_is_measured_on_other_games_looks_for_the_best_anew(tmp_path):
    told = {"validation": "a.npz.xz", "label_validation": None}
    measured = {**told, "validation": "b.npz.xz"}
    new_trainer(tmp_path, 2, record=told).run()
    assert new_trainer(tmp_path, 4, record=told).best > -math.inf
    again = new_trainer(tmp_path, 4, record=measured)
    assert again.best == -math.inf and again._other_data == ["held-out games"]


def test_other_files_of_the_same_names_are_other_data(tmp_path):
    told = {"games": ["a.npz.xz"], "validation": "held.npz.xz", "sha256": {"games": "1", "validation": "2"}}
    new_trainer(tmp_path, 2, record=told).run()
    again = new_trainer(tmp_path, 4, record=told | {"sha256": {"games": "1", "validation": "3"}})
    assert again._other_data == ["held-out games"] and again.best == -math.inf
    # A run that was begun before sums were recorded.
    assert new_trainer(tmp_path, 4, record={name: told[name] for name in ("games", "validation")})._other_data == []


def test_a_network_to_start_from_is_validated_before_the_first_step(tmp_path):
    new_trainer(tmp_path / "new", 4).run()
    new_trainer(tmp_path / "started", 4, record={"start": {"name": "x"}}).run()
    found = [(tmp_path / name / "curves.csv").read_text().splitlines() for name in ("new", "started")]
    assert [any(line.startswith("0,validation/top1,") for line in lines) for lines in found] == [False, True]
    assert (tmp_path / "started" / "best.safetensors").exists()


@pytest.mark.parametrize(("optimizer", "decay"), [("adamw", 0.02), ("sgd", 1e-4)])
def test_each_optimizer_has_its_own_usual_weight_decay(tmp_path, optimizer, decay):
    groups = new_trainer(tmp_path, 1, optimizer=optimizer).optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [decay, 0.0]
    groups = new_trainer(tmp_path, 1, optimizer=optimizer, weight_decay=0.5).optimizer.param_groups
    assert groups[0]["weight_decay"] == 0.5


def test_a_run_goes_on_with_its_own_optimizer_alone(tmp_path):
    new_trainer(tmp_path, 2, optimizer="sgd").run()
    with pytest.raises(ValueError, match="begun with --optimizer sgd"):
        new_trainer(tmp_path, 4)


@pytest.mark.parametrize(
    ("name", "begun", "now"),
    [("value_weight", 1.0, 2.0), ("result_weight", 0.3, 1.0), ("value_loss", "cross-entropy", "mse")],
)
def test_a_run_is_not_continued_with_another_loss(tmp_path, name, begun, now):
    new_trainer(tmp_path, 2).run()
    with pytest.raises(ValueError) as refused:
        new_trainer(tmp_path, 4, **{name: now})
    text = str(refused.value)
    assert f"begun with --{name.replace('_', '-')} {begun}, not {now}" in text and "\n" not in text


def test_a_run_that_goes_on_with_other_options_tells_each_that_matters(tmp_path):
    new_trainer(tmp_path, 2).run()
    lines: list[str] = []
    observer = Observer()
    observer.say = lines.append  # type: ignore[method-assign]
    changed = {"batch": 4, "schedule": "constant", "weight_decay": 0.02, "decided_weight": 0.5}
    purposeful = {"minutes": 9.0, "save_every": 3, "validate_every": 7, "workers": 2, "patience": 5}
    new_trainer(tmp_path, 3, **changed, **purposeful).run(observer)
    told = "--batch 4 (was 8), --schedule constant (was linear), --decided-weight 0.5 (was 1.0)"
    assert lines[0] == f"resuming with other options than before: {told}"
    assert not any("going on" in line for line in lines[1:])
    new_trainer(tmp_path, 4, **changed, **purposeful).run(observer := Observer())
    lines.clear()
    observer.say = lines.append  # type: ignore[method-assign]
    new_trainer(tmp_path, 5, **changed, **purposeful).run(observer)
    assert not any("going on" in line for line in lines)


def test_a_state_that_keeps_no_options_goes_on(tmp_path):
    new_trainer(tmp_path, 2, optimizer="sgd").run()
    path = tmp_path / "state.safetensors"
    with safe_open(path, "pt") as file:
        facts = json.loads(file.metadata()["keima"])
        tensors = {name: file.get_tensor(name) for name in list(file.keys())}
    older = {name: value for name, value in facts.items() if name not in ("options", "optimizer")}
    write_torch(path, tensors, older)
    assert new_trainer(tmp_path, 4, optimizer="sgd", value_weight=2.0).step == 2
    write_torch(path, tensors, older | {"optimizer": "sgd"})
    with pytest.raises(ValueError, match="begun with --optimizer sgd"):
        new_trainer(tmp_path, 4)
    write_torch(path, tensors, facts | {"options": {"unheard_of_weight": 1.0}})
    assert new_trainer(tmp_path, 4, optimizer="sgd").step == 2


def test_a_damaged_state_is_one_clear_error(tmp_path):
    (tmp_path / "state.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ValueError, match="cannot resume this run"):
        new_trainer(tmp_path, 4)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot resume this run"):
        new_trainer(tmp_path / "file", 4)


def test_weights_that_are_no_numbers_never_replace_good_ones(tmp_path):
    new_trainer(tmp_path, 10).run()
    kept = (tmp_path / "state.safetensors").read_bytes()
    diverged = new_trainer(tmp_path, 30, clip=0.0)
    with torch.no_grad():
        diverged.model.stem.weight[0] = float("inf")
    with pytest.raises(ValueError, match="training diverged"):
        diverged.run()
    assert (tmp_path / "state.safetensors").read_bytes() == kept


def test_another_networks_state_is_refused(tmp_path):
    new_trainer(tmp_path, 2).run()
    path = tmp_path / "state.safetensors"
    with safe_open(path, "pt") as file:
        assert "optimizer/exp_avg/stem.weight" in list(file.keys())
    shape = {"planes": KEIMA.planes, "globals": KEIMA.globals, "blocks": 1, "channels": 8}
    model, options = new_model("keima-resnet", shape), TrainOptions()
    data = Mixture(KEIMA, Material([made_games()]), options)
    with pytest.raises(ValueError, match="a network of shape"):
        Trainer(model, new_spec(model, "test"), data, Measure(dict, GOAL), options, tmp_path, CPU, {})


def test_a_state_from_before_a_part_of_the_shape_was_added_is_gone_on_from(tmp_path):
    trainer = new_trainer(tmp_path, 2)
    trainer.run()
    path = tmp_path / "state.safetensors"
    with safe_open(path, "pt") as file:
        names, facts = list(file.keys()), json.loads(file.metadata()["keima"])
        tensors = {name: file.get_tensor(name) for name in names}
    del facts["shape"]["reply"]
    write_torch(path, tensors, facts)
    assert read_state(path, trainer.model, CPU).step == 2


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("linear", {0: 0.01, 300: 1.0, 750: 0.5, 1000: 0.0}),
        ("cosine", {0: 0.01, 250: 0.853553, 500: 0.5, 1000: 0.0}),
        ("step", {0: 0.01, 399: 1.0, 400: 0.5, 850: 0.25}),
        ("constant", {0: 0.01, 99: 1.0, 999: 1.0}),
    ],
)
def test_the_rate_follows_its_schedule(schedule, rates):
    options = TrainOptions(steps=1000, rate=1.0, warmup=100, decay_share=0.5, schedule=schedule, drop_every=400)
    for step, rate in rates.items():
        assert learning_rate(step, options) == pytest.approx(rate, abs=1e-5)


def test_a_rate_drops_at_given_steps_and_a_resumed_run_knows_them():
    """AlphaGo Zero's schedule; a file holds the steps as a list."""
    options = TrainOptions(rate=0.01, warmup=0, schedule="step", drop_factor=0.1, drop_at=(400, 600))
    rates = [learning_rate(step, options) for step in (0, 399, 400, 599, 600, 9000)]
    assert rates == pytest.approx([1e-2, 1e-2, 1e-3, 1e-3, 1e-4, 1e-4])
    saved = json.loads(json.dumps(asdict(options)))
    assert changed_options(saved, asdict(options)) == []
    moved = asdict(replace(options, drop_at=(500,)))
    assert changed_options(saved, moved) == ["--drop-at (500,) (was [400, 600])"]


def test_broken_shard_is_one_clear_error(tmp_path):
    path = tmp_path / "broken.npz.xz"
    path.write_bytes(lzma.compress(b"not an archive"))
    with pytest.raises(ValueError, match=r"broken.npz.xz: not a readable"):
        read_games(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "0"], "steps is 0, expected 1 to"),
        (["--games", "DATA"], "not a shard of games, it lacks"),
        (["--labels", "DATA"], "not a shard of labels, it lacks"),
        (["--device", "abacus"], "expected auto, cpu, mps, cuda"),
        (["--start", "nowhere"], "nowhere"),
        (["--teacher", "nowhere"], "nowhere"),
        (["--komi", "7"], "--rules and --komi need --teacher"),
        (["--blocks", "0"], "blocks"),
        (["--start", "small", "--size", "9"], "the shape has unknown size"),
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


def test_a_device_that_fails_is_one_clear_line(tmp_path, monkeypatch):
    """As :class:`torch.OutOfMemoryError`, which went by as a traceback."""

    def run(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Trainer, "run", run)
    write_games(tmp_path / "games.npz.xz", made_games())
    write_games(tmp_path / "held.npz.xz", made_games(count=5, seed=3))
    command = ["dual", "--blocks", "1", "--channels", "4", "--games", str(tmp_path / "games.npz.xz")]
    result = CliRunner().invoke(
        train, [*command, "--validation", str(tmp_path / "held.npz.xz"), "--out", str(tmp_path / "run")]
    )
    assert result.exit_code == 1 and result.output.endswith("Error: CUDA out of memory\n")


def test_a_teacher_with_all_heads_leaves_nothing_to_work_out_of_last_boards(tmp_path):
    write_games(tmp_path / "games.npz.xz", made_games())
    write_games(tmp_path / "held.npz.xz", made_games(count=5, seed=3))
    command = ["dual", "--blocks", "1", "--channels", "4", "--games", str(tmp_path / "games.npz.xz")]
    command += ["--validation", str(tmp_path / "held.npz.xz"), "--steps", "2", "--batch", "4", "--teacher", "small"]
    shown = ["--komi", "5.5..9.5=3", "--komi", "usual"]
    for name, more, is_told in (("half", [], False), ("all", ["--teacher-share", "1", *shown], True)):
        result = CliRunner().invoke(train, [*command, "--out", str(tmp_path / name), *more])
        assert result.exit_code == 0, result.output
        assert ("score and ownership are known for" in result.output) != is_told
    record = load_model(tmp_path / "all" / "network.safetensors")[2]
    assert record["shown"]["komi"] == {"5.5..9.5": 3.0, "usual": 1.0}
    assert record["shown"]["rules"] == {"chinese": 1.0}


def test_a_komi_that_is_none_is_one_clear_line(tmp_path):
    command = ["dual", "--validation", str(tmp_path), "--out", str(tmp_path / "run"), "--komi", "much"]
    result = CliRunner().invoke(train, command)
    assert result.exit_code == 2
    assert "komi 'much', expected usual, a number in half points, or a range" in " ".join(result.output.split())


def test_shards_of_other_boards_are_no_trouble_for_a_network_of_one_size(tmp_path):
    """The first shard of the folder holds none that the network plays."""
    folder = tmp_path / "games"
    folder.mkdir()
    write_games(folder / "a.npz.xz", made_games(size=9))
    write_games(folder / "b.npz.xz", made_games(size=13, length=40))
    write_games(tmp_path / "held.npz.xz", made_games(count=5, size=13, seed=3))
    command = ["dual", "--network", "alphago-zero", "--size", "13", "--blocks", "1", "--channels", "4", "--games"]
    command += [str(folder), "--validation", str(tmp_path / "held.npz.xz"), "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(train, [*command, "--steps", "3", "--batch", "4", "--validate-every", "2"])
    assert result.exit_code == 0, result.output
    record = load_model(tmp_path / "run" / "network.safetensors")[2]
    assert record["validation"] == "held.npz.xz" and record["step"] == 3
    assert record["sha256"].keys() == {"games", "labels", "validation"}
    # A chain of trainings: of the network before the one that training started from, only the identity.
    shape = ["--network", "alphago-zero", "--size", "13", "--blocks", "1", "--channels", "4"]
    for name, start in (("second", "run"), ("third", "second")):
        more = ["--start", str(tmp_path / start / "network.safetensors"), "--out", str(tmp_path / name), "--steps", "1"]
        options = ["--games", str(folder), "--validation", str(tmp_path / "held.npz.xz"), "--batch", "4"]
        result = CliRunner().invoke(train, ["dual", *shape, *options, *more])
        assert result.exit_code == 0, result.output
    record = load_model(tmp_path / "third" / "network.safetensors")[2]
    assert record["start"]["training"]["step"] == 1
    assert record["start"]["training"]["start"].keys() == {"name", "sha256"}
    write_games(tmp_path / "small.npz.xz", made_games(count=5))
    command[command.index(str(tmp_path / "held.npz.xz"))] = str(tmp_path / "small.npz.xz")
    result = CliRunner().invoke(train, command)
    assert result.exit_code == 1 and "no game with moves on a board of 13" in result.output
