"""Reinforcement learning by several processes: the run is that of one, whoever goes on with it."""

import csv
import os
import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

import engine.nets.compute.by_torch
import engine.nets.compute.precision
from engine.selfplay.reinforce import Reinforce, ReinforceOptions
from engine.train.ranks import Ranks
from gtp.cli import main
from tests.conftest import ROOT
from tests.in_float32 import IN_FLOAT32
from tests.selfplay.runs import distribution

WORDS = ["--size", "5", "--games", "7", "--pool-every", "2", "--check-every", "2", "--check-games", "6"]
WORDS += ["--komi", "4.5", "--rate", "0.02", "--save-every", "1", "--device", "cpu", "--threads", "1"]


def by_processes(count, words):
    """A command by several processes that torchrun starts."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    return subprocess.run(
        [*together, "--no-python", "--", *IN_FLOAT32, *words],
        env=environment, capture_output=True, text=True, timeout=480, check=False,
    )  # fmt: skip


def curves(out):
    """What was measured of each update, but for speeds."""
    rows = list(csv.reader((out / "curves.csv").open()))
    return {(row[0], row[1]): float(row[2]) for row in rows[1:] if row[1] not in ("rl/games_per_s", "rl/seconds")}


def test_two_processes_learn_what_one_does_and_one_goes_on(start, tmp_path, monkeypatch):
    for module in (engine.nets.compute.by_torch, engine.nets.compute.precision):
        monkeypatch.setattr(module, "prefers_bfloat16", lambda device: False)
    words = ["train", "reinforce", str(start), *WORDS]
    done = by_processes(2, [*words, "--updates", "3", "--out", str(tmp_path / "parts")])
    assert done.returncode == 0 and done.stdout == "", done.stderr[-3000:]
    assert done.stderr.count("update 2: win_rate/start") == 1, "the first process alone talks"
    for updates, out in (("4", "parts"), ("4", "whole")):
        done = CliRunner().invoke(main, [*words, "--updates", updates, "--out", str(tmp_path / out)])
        assert done.exit_code == 0, done.output
    found, expected = (curves(tmp_path / name) for name in ("parts", "whole"))
    assert found.keys() >= expected.keys() and len(expected) > 20
    for key, value in expected.items():
        assert abs(found[key] - value) < 1e-3 * max(1.0, abs(value)), (key, found[key], value)
    for name in ("state.safetensors", "pool/000002.safetensors"):
        one, two = (load_file(tmp_path / folder / name) for folder in ("whole", "parts"))
        for key, tensor in one.items():
            torch.testing.assert_close(two[key], tensor, rtol=1e-3, atol=1e-5)


def test_more_processes_than_games_are_refused(start, tmp_path):
    options = ReinforceOptions(distribution(4.5), size=5, games=2)
    with pytest.raises(ValueError, match="a mini-batch has 2 games, expected at least one for each process"):
        Reinforce(start, {}, options, tmp_path / "out", torch.device("cpu"), None, 1, Ranks(1, 3))
