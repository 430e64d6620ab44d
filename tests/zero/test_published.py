"""The published recipe of AlphaGo Zero: its network, its loss, its drops of the learning rate; runs of 3x3."""

from dataclasses import replace

import pytest
import torch

from engine.nets.model import load_model
from engine.zero.networks import NETWORK
from engine.zero.options import PUBLISHED
from gtp.cli.zero import config_of
from tests.zero.runs import run

SMALL = {
    "size": 3, "blocks": 1, "channels": 8, "visits": 8, "komi": 2.0, "first_rows": 120, "rows": 60, "batch": 16,
    "window": 100, "at_once": 4, "gate_games": 4, "drop_at": (25, 40),
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    torch.set_num_threads(1)
    config = config_of(3, PUBLISHED | SMALL, {})
    return run(tmp_path_factory.mktemp("published") / "run", config, turns=2)


def test_a_run_learns_with_the_published_network(finished):
    model, spec, _ = load_model(finished.out / NETWORK)
    assert spec.encoder == "zero-17"
    assert spec.heads == ("policy", "value") and (model.shape.blocks, model.shape.size) == (1, 3)
    assert finished.config.train.value_loss == "mse" and finished.config.train.optimizer == "sgd"
    assert finished.turn.number == 2 and finished.learner.step > 0


def test_the_rate_drops_at_the_steps(finished, monkeypatch):
    rates = {0: 0.01, 24: 0.01, 25: 0.001, 39: 0.001, 40: 0.0001}
    for step, rate in rates.items():
        monkeypatch.setattr(finished.learner, "step", step)
        assert finished._rate() == pytest.approx(rate)


def test_the_run_resumes_with_its_network(finished):
    again = run(finished.out, config_of(3, {}, {"options": {"size": 3}} | _manifest(finished)), turns=1)
    assert (
        again.turn.number >= 2
        and again.learner.step >= finished.learner.step
        and again.learner.spec.encoder == "zero-17"
    )
    with pytest.raises(ValueError, match="begun with shape"):
        run(finished.out, replace(again.config, shape=again.config.shape | {"channels": 12}), turns=1)


def _manifest(zero):
    return {"shape": zero._manifest["shape"], "settings": zero._manifest["settings"]}
