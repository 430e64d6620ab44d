"""Gradients of a batch in shards: those of the whole, each by one torch thread, and which networks have how many."""

import pytest
import torch

from engine.nets.compute import precision, winograd_learning
from engine.train.shards import FEW, Shards
from tests.nets.models import toy
from tests.train.trainers import new_trainer

CPU = torch.device("cpu")
WIDE = {"blocks": 1, "channels": 16}
"""Convolutions that Winograd's way is for"""


@pytest.fixture
def two_threads():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


def prefer_bfloat16(monkeypatch, is_so):
    for module in (precision, winograd_learning):
        monkeypatch.setattr(module, "prefers_bfloat16", lambda _: is_so)


def reached(folder, monkeypatch, threads, **values):
    """Averaged weights and the loss's parts after some steps, in float64's stead without 16 bits."""
    prefer_bfloat16(monkeypatch, False)
    torch.set_num_threads(threads)
    trainer = new_trainer(folder, 3, optimizer="sgd", rate=0.01, **values)
    parts = trainer.one_step(trainer.tensors(trainer.data.batch_at(0)))
    trainer.run()
    return trainer, parts


@pytest.mark.parametrize("batch", [8, 7, 1])
def test_a_run_takes_the_same_steps_with_any_number_of_threads(tmp_path, monkeypatch, two_threads, batch):
    one, parts = reached(tmp_path / "one", monkeypatch, 1, batch=batch)
    for threads in (2, 3):
        other, others = reached(tmp_path / str(threads), monkeypatch, threads, batch=batch)
        assert (one.shards.count, other.shards.count) == (1, threads)
        assert len(other.shards.parts(batch)) == min(threads, batch)
        assert others.keys() == parts.keys()
        for name, part in parts.items():
            torch.testing.assert_close(others[name], part)
        for name, value in one.average.items():
            torch.testing.assert_close(other.average[name], value, rtol=1e-3, atol=2e-5)


def test_no_thread_of_torch_waits_for_another(tmp_path, monkeypatch, two_threads):
    """They spin between the layers: with two a step took ten times the processor's time beside other work."""
    trainer, seen = new_trainer(tmp_path, 2), []
    trainer.shards.model.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    step = trainer.optimizer.step
    monkeypatch.setattr(trainer.optimizer, "step", lambda: seen.append(torch.get_num_threads()) or step())
    trainer.one_step(trainer.tensors(trainer.data.batch_at(0)))
    assert seen == [1, 1, 1] and torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("architecture", "shape", "threads", "count", "by_winograd"),
    [
        ("keima-resnet", WIDE, 2, 2, True), ("keima-resnet", WIDE, 1, 1, True),
        ("keima-resnet", {"blocks": 1, "channels": 4}, 2, 2, False),
        ("alphago-policy", {"planes": 48, "size": 5, "filters": 16}, 3, 3, True),
        ("alphago-zero", {"blocks": 1, "channels": 16, "size": 5}, 2, 1, True),
        ("alphago-zero", {"blocks": 1, "channels": 16, "size": 5}, FEW + 1, 1, False),
    ],
)  # fmt: skip
def test_how_a_network_learns(monkeypatch, two_threads, architecture, shape, threads, count, by_winograd):
    torch.set_num_threads(threads)
    model = toy(architecture, **shape)
    for is_so in (False, True):
        prefer_bfloat16(monkeypatch, is_so)
        shards = Shards(model, CPU)
        assert (shards.count, shards.by_winograd) == (count, by_winograd and not is_so)
        assert ("bfloat16" in shards.description) == is_so and ("Winograd" in shards.description) == shards.by_winograd
        used = count if shards.is_apart else threads
        assert f"with {used} thread" in shards.description
        assert Shards(model, CPU, is_shared=True).count == 1


def test_what_fails_in_a_shard_fails_the_step(tmp_path, two_threads):
    trainer = new_trainer(tmp_path, 2)
    trainer.shards.model.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trainer.one_step(trainer.tensors(trainer.data.batch_at(0)))
