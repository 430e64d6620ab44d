"""The options of the loop of AlphaGo Zero: what a later start may change, from when on, and what it goes on with."""

import csv
import json
import shutil
import time
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from engine.zero.loop import COOL, MANIFEST, Zero
from engine.zero.turn import TRAIN
from tests.zero.runs import CONFIG, CPU, run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two turns."""
    torch.set_num_threads(1)
    return run(tmp_path_factory.mktemp("zero") / "run", turns=2)


def test_options_of_a_start_that_was_killed_are_kept(finished, tmp_path):
    shutil.copytree(finished.out, tmp_path / "run")
    Zero(tmp_path / "run", replace(CONFIG, loop=replace(CONFIG.loop, samples=5.0)), CPU).play.close()
    assert json.loads((tmp_path / "run" / MANIFEST).read_text())["settings"]["loop"]["samples"] == 5.0


def test_another_rate_counts_within_the_turn(tmp_path):
    zero = run(tmp_path, stop=("training", 10.0))
    assert zero.turn.phase == TRAIN and zero.turn.rate == CONFIG.train.rate
    config = replace(CONFIG, train=replace(CONFIG.train, rate=1e-4))
    assert run(tmp_path, config, stop=("training", 20.0)).turn.rate == 1e-4
    assert run(tmp_path, config, turns=1).learner.step == zero.turn.last_step
    with (tmp_path / "curves.csv").open(newline="") as file:
        rates = [float(row["value"]) for row in csv.DictReader(file) if row["name"] == "zero/rate"]
    assert rates == [1e-4]


def test_options_may_change_but_not_the_board_or_the_network(finished, tmp_path):
    shutil.copytree(finished.out, tmp_path / "run")
    zero = run(tmp_path / "run", replace(CONFIG, play=replace(CONFIG.play, visits=16)), stop=("self-play", 0.0))
    assert zero.turn.number == 2
    for other, words in (
        (replace(CONFIG, play=replace(CONFIG.play, size=4)), "begun with size 3, not 4"),
        (replace(CONFIG, play=replace(CONFIG.play, seed=2)), "begun with seed 1, not 2"),
        (replace(CONFIG, shape=CONFIG.shape | {"channels": 12}), "begun with shape"),
        (replace(CONFIG, train=replace(CONFIG.train, optimizer="muon")), "begun with optimizer (sgd|adamw), not muon"),
    ):
        with pytest.raises(ValueError, match=words):
            Zero(tmp_path / "run", other, CPU)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="expected a new or empty folder"):
        Zero(tmp_path / "other", CONFIG, CPU)


def test_the_rate_is_a_tenth_in_the_last_share_of_the_time(finished, monkeypatch):
    monkeypatch.setattr(finished, "config", replace(CONFIG, loop=replace(CONFIG.loop, cooldown=0.2)))
    for minutes, spent, factor in ((100.0, 79.0, 1.0), (100.0, 81.0, COOL), (0.0, 81.0, 1.0)):
        monkeypatch.setattr(finished, "_minutes", minutes)
        monkeypatch.setattr(finished, "_begun_s", time.monotonic() - 60.0 * spent)
        assert finished._rate() == pytest.approx(factor * CONFIG.train.rate)
    assert COOL == 0.1


def test_the_settings_are_kept(finished):
    kept = json.loads((finished.out / MANIFEST).read_text())["settings"]
    assert kept["loop"] == asdict(CONFIG.loop)
    assert np.isfinite(finished.board.policy).all() and finished.board.policy.sum() == pytest.approx(1.0)
