"""A run that meets trouble: damaged files, a full disk, another process that fails."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open

import engine.train.trainer
import engine.train.turns
from engine.config import TrainOptions
from engine.go.rules import RULE_SETS
from engine.nets.architectures.registry import new_spec
from engine.nets.compute import precision
from engine.train.ranks import Ranks, find_ranks
from engine.train.trainer import Observer, Trainer
from engine.train.turns import TurnLearner
from tests.train.trainers import CPU, new_trainer, weights, write_torch

ROOT = Path(__file__).resolve().parents[2]


def changed_tensor(name, change):
    """Damages a state in one of its tensors; a change to None takes it away."""

    def damage(tensors, facts):
        found = change(tensors.pop(name))
        return tensors | ({} if found is None else {name: found}), facts

    return damage


STEM = "average/stem.weight"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda tensors, facts: (tensors, {}), "not the state of a run"),
        (lambda tensors, facts: (tensors, []), "not the state of a run"),
        (lambda tensors, facts: (tensors, facts | {"step": "x"}), "not the state of a run"),
        (lambda tensors, facts: (tensors, facts | {"step": -1}), "a negative number of steps"),
        (lambda tensors, facts: (tensors, facts | {"figures": [1]}), "not the state of a run"),
        (lambda tensors, facts: (tensors, facts | {"best": "high"}), "not the state of a run"),
        (lambda tensors, facts: (tensors, facts | {"options": 3}), "not the state of a run"),
        (changed_tensor(STEM, lambda one: None), "average/stem.weight is missing"),
        (changed_tensor(STEM, lambda one: one[:1]), "average/stem.weight is torch.float32 of shape"),
        (changed_tensor(STEM, lambda one: one.double()), "average/stem.weight is torch.float64"),
        (changed_tensor(STEM, lambda one: one * torch.nan), "expected finite torch.float32"),
        (changed_tensor("optimizer/step/stem.weight", lambda one: None), "no state of adamw"),
        (changed_tensor("optimizer/exp_avg/stem.weight", lambda one: one[:1]), "optimizer/exp_avg/stem.weight is"),
        (lambda tensors, facts: (tensors | {"more": torch.zeros(1)}, facts), "not those of a run"),
    ],
)
def test_a_state_that_is_damaged_inside_is_one_clear_error(tmp_path, damage, words):
    new_trainer(tmp_path, 1).run()
    path = tmp_path / "state.safetensors"
    with safe_open(path, "pt") as file:
        facts = json.loads(file.metadata()["keima"])
        tensors = {name: file.get_tensor(name) for name in list(file.keys())}
    write_torch(path, *damage(tensors, facts))
    with pytest.raises(ValueError, match=words) as caught:
        new_trainer(tmp_path, 4)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_torn_curve_is_read_as_far_as_it_is_whole(tmp_path):
    new_trainer(tmp_path, 20).run()
    path = tmp_path / "curves.csv"
    sound = path.read_bytes()
    for rest in (b"20,valid", b"20,validation/top1,0.\xff\xff\n\0\0\0\n,,\n"):
        path.write_bytes(sound + rest)
        lines: list[str] = []
        observer = Observer()
        observer.say = lines.append  # type: ignore[method-assign]
        new_trainer(tmp_path, 21).run(observer)
        assert any("curves.csv: " in line and "damaged lines left out" in line for line in lines)
        assert path.read_bytes().startswith(sound)
        shutil.rmtree(tmp_path)
        new_trainer(tmp_path, 20).run()
        assert path.read_bytes() == sound


@pytest.mark.parametrize(("longest_s", "kept"), [(0.0, 6), (1e9, 0)])
def test_steps_that_take_long_are_saved_each(tmp_path, monkeypatch, longest_s, kept):
    """A crash costs seconds, even where the steps between two saves would be hours."""
    monkeypatch.setattr(engine.train.trainer, "SAVE_S", longest_s)
    trainer, one_step = new_trainer(tmp_path, 20, save_every=1000), Trainer.one_step

    def breaks(self, *given):
        return one_step(self, *given) if self.step < 6 else 1 / 0

    monkeypatch.setattr(Trainer, "one_step", breaks)
    with pytest.raises(ZeroDivisionError):
        trainer.run()
    assert new_trainer(tmp_path, 20).step == kept


class Likewise(Ranks):
    """One of two processes, of which the other does the same at the same time."""

    def wrap(self, model):
        return model

    def most(self, number, device):
        return number

    def of_first(self, number, device):
        return number


@pytest.mark.parametrize(("step_s", "between"), [(10.0, 3), (3.0, 7), (0.5, 48), (0.01, 1000)])
def test_several_processes_save_as_often_as_one_however_slow_their_steps(tmp_path, monkeypatch, step_s, between):
    """Every 20 seconds, and not every 20 steps; where steps are fast they still agree every 20 of them."""
    steps, agreed = 100, []
    trainer = new_trainer(tmp_path, steps, Likewise(count=2), save_every=1000, validate_every=1000)
    monkeypatch.setattr(engine.train.trainer, "time", SimpleNamespace(perf_counter=lambda: step_s * trainer.step))
    monkeypatch.setattr(Trainer, "_agree", lambda self, *given: agreed.append(self.step) or agree(self, *given))
    saved = []
    monkeypatch.setattr(Trainer, "save", lambda self: saved.append(self.step))
    trainer.run()
    assert max(np.diff([0, *saved])) <= min(between, steps)
    assert max(np.diff([*agreed, steps])) <= max(1, min(20, 4.0 / step_s)) and len(saved) - 2 <= step_s * steps / 20.0


agree = Trainer._agree


def test_a_turn_with_slow_steps_is_saved_as_often(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(engine.train.turns, "time", clock)
    network = new_trainer(tmp_path / "of", 1).averaged()
    learner = TurnLearner(network, new_spec(network, "x"), TrainOptions(), CPU, tmp_path, RULE_SETS["chinese"])
    saved = []
    monkeypatch.setattr(learner, "save", lambda: saved.append(learner.step))
    monkeypatch.setattr(learner, "tensors", lambda batch: batch)

    def one_step(batch):
        clock.now += 15.0
        return {}

    monkeypatch.setattr(learner, "one_step", one_step)
    learner.learn(SimpleNamespace(batch_at=lambda step: step), (0, 9), 1e-3, lambda: False, lambda *_: None)
    assert saved == [2, 4, 6, 8, 9]


def test_a_full_disk_is_one_line_and_the_last_state_stays(tmp_path):
    resource = pytest.importorskip("resource")
    new_trainer(tmp_path, 10).run()
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")}
    trainer = new_trainer(tmp_path, 20)
    handler, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"state.safetensors") as caught:
            trainer.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors*")} == kept
    assert new_trainer(tmp_path, 20).step == 10


RANK_SCRIPT = """
import math
import sys
from pathlib import Path
import torch
from engine.nets.compute import precision
from engine.train.ranks import join_ranks
from tests.train.trainers import new_trainer
precision.prefers_bfloat16 = lambda device: False
torch.set_num_threads(1)
ranks, device = join_ranks(torch.device("cpu"))
trainer = new_trainer(Path(sys.argv[1]), int(sys.argv[3]), ranks, batch=int(sys.argv[2]))
if sys.argv[4:] == [str(ranks.rank)]:
    whole = trainer.tensors
    trainer.tensors = lambda batch: {name: math.nan * one for name, one in whole(batch).items()}
try:
    trainer.run()
except ValueError as error:
    sys.exit(f"process {ranks.rank}: {error}")
print(ranks.rank, ranks.count, trainer.step)
ranks.leave()
"""


def trained_by_two(folder, *arguments):
    """What became of two processes that train together."""
    script = folder / "rank.py"
    script.write_text(RANK_SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.run(
        [*together, str(script), str(folder / "two"), "8", *arguments], env=environment, capture_output=True,
        text=True, timeout=480, check=False,
    )  # fmt: skip


def test_two_processes_take_the_steps_of_one_with_twice_the_batch(tmp_path, monkeypatch):
    """The same weights after six steps: the same positions, gradients averaged.

    In float32 on all processors: the rounding of bfloat16 would hide what is compared.
    """
    monkeypatch.setattr(precision, "prefers_bfloat16", lambda _: False)
    done = trained_by_two(tmp_path, "6")
    assert done.returncode == 0, done.stderr[-2000:]
    new_trainer(tmp_path / "one", 6, batch=16).run()
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-3, atol=1e-4)


def test_one_process_adds_up_its_own_numbers_on_any_device():
    """Apple's GPUs know no float64, which the sums of several have."""
    assert Ranks().total([0.5, 2.0], torch.device("meta")) == [0.5, 2.0]


def test_a_launcher_that_does_not_say_which_process_this_is_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match="not LOCAL_RANK: start processes with torchrun"):
        find_ranks(torch.device("cpu"))


def test_one_process_whose_loss_is_no_number_ends_all_at_once(tmp_path):
    """None is left to wait for the others in vain, and each says why."""
    done = trained_by_two(tmp_path, "100000", "1")
    assert done.returncode != 0
    for rank in range(2):
        assert f"process {rank}: training diverged: weights are NaN or infinite at step 1;" in done.stderr, done.stderr[
            -3000:
        ]
    assert not (tmp_path / "two" / "state.safetensors").exists()
