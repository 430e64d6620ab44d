"""Reinforcement learning: an interrupted run is the undisturbed one, the pool, and the command."""

import csv

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

import engine.selfplay.reinforce
from engine.features.encoder import ENCODERS
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import arrays_of, save_network
from engine.nets.files.read import read_network
from engine.selfplay.reinforce import NETWORK, POOL, STATE, Reinforce, ReinforceOptions, member_of
from engine.train.ranks import Ranks
from gtp.cli import main
from tests.nets.models import toy
from tests.selfplay.runs import distribution

CPU = torch.device("cpu")
IDENTITY = {"name": "start", "sha256": "0"}


def options(**given):
    few = {"size": 5, "updates": 5, "games": 6, "pool_every": 2, "check_every": 3, "check_games": 4, "save_every": 2}
    return ReinforceOptions(distribution(4.5), **few | given)


def opened(start, out, **given):
    """A run of one process."""
    return Reinforce(start, IDENTITY, options(**given), out, CPU, None, 1, Ranks())


def run(start, out, until, **given):
    """A run that is asked to stop after a number of updates."""
    made = opened(start, out, **given)
    told = {}
    made.run(lambda: made.learner.step >= until, told.__setitem__)
    return told


def test_a_resumed_run_equals_an_undisturbed_one(start, tmp_path):
    given = {"rate": 0.01, "entropy": 0.01, "clip": 1.0}
    whole = run(start, tmp_path / "whole", 5, **given)
    parts = {}
    for until in (1, 3, 4, 5):
        parts |= run(start, tmp_path / "parts", until, **given)
    timed = ("games_per_s", "seconds")
    assert sorted(parts) == sorted(whole) == [1, 2, 3, 4, 5]
    for step, metrics in whole.items():
        for name in metrics.keys() - set(timed):
            assert parts[step][name] == metrics[name], (step, name)
    for name in (STATE, f"{POOL}/000002.safetensors", f"{POOL}/000004.safetensors"):
        first, second = (load_file(tmp_path / folder / name) for folder in ("whole", "parts"))
        assert first.keys() == second.keys()
        for key in first:
            assert torch.equal(first[key], second[key]), (name, key)
    rows = [list(csv.reader((tmp_path / folder / "curves.csv").open())) for folder in ("whole", "parts")]
    kept = [[row for row in part if row[1].removeprefix("rl/") not in timed] for part in rows]
    assert kept[0] == kept[1] and len(kept[0]) > 20


def test_a_match_that_failed_is_played_when_the_run_goes_on(start, tmp_path, monkeypatch):
    """The update before it is not saved as done: its line of the curves would be missing for good."""
    monkeypatch.setattr(Reinforce, "check", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(start, tmp_path / "broken", 5)
    monkeypatch.undo()
    run(start, tmp_path / "broken", 5)
    run(start, tmp_path / "whole", 5)
    for name in ("network.safetensors", "pool/000004.safetensors"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    rows = [
        [line for line in (tmp_path / name / "curves.csv").read_text().splitlines() if "seconds" not in line]
        for name in ("broken", "whole")
    ]
    assert [line for line in rows[0] if "games_per_s" not in line] == [
        line for line in rows[1] if "games_per_s" not in line
    ]


@pytest.mark.parametrize(("longest_s", "kept"), [(0.0, 2), (1e9, 0)])
def test_updates_that_take_long_are_saved_each(start, tmp_path, monkeypatch, longest_s, kept):
    """At published size an update may take a minute: a crash costs one, not twenty."""
    monkeypatch.setattr(engine.selfplay.reinforce, "SAVE_S", longest_s)
    monkeypatch.setattr(Reinforce, "check", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(start, tmp_path / "out", 5, save_every=1000)
    monkeypatch.undo()
    assert opened(start, tmp_path / "out", save_every=1000).learner.step == kept


def test_a_network_of_more_heads_than_learn_goes_on(tmp_path):
    """Its value head has no part in the gradient."""
    encoder = ENCODERS["keima-2"]
    model = toy("keima-resnet", planes=encoder.planes, globals=encoder.globals, blocks=1)
    path = tmp_path / "start.safetensors"
    save_network(path, model, new_spec(model, "start"), {})
    for until in (1, 2):
        run(path, tmp_path / "out", until, size=7, rate=0.01)
    before, after = (arrays_of(read_network(one)[0]) for one in (path, tmp_path / "out" / NETWORK))
    assert any(not np.array_equal(before[name], after[name]) for name in before if name.startswith("policy"))
    assert all(np.array_equal(before[name], after[name]) for name in before if "value" in name)


def test_the_network_changes_and_can_be_played(start, tmp_path):
    told = run(start, tmp_path / "out", 5, rate=0.01)
    before, after = (arrays_of(read_network(path)[0]) for path in (start, tmp_path / "out" / NETWORK))
    assert any(not np.array_equal(before[name], after[name]) for name in before)
    assert {"win_rate/start", "win_rate/newest", "win_rate/pool"} <= told[3].keys() & told[5].keys()
    assert told[1]["divergence"] < 1e-4 < told[5]["divergence"]
    assert sorted(path.stem for path in (tmp_path / "out" / POOL).iterdir()) == ["000000", "000002", "000004"]


def test_members_of_the_pool_are_drawn_evenly():
    drawn = np.array([member_of(update, 7, seed=3) for update in range(7000)])
    counts = np.bincount(drawn, minlength=7)
    # Five standard deviations of a binomial count.
    assert len(counts) == 7 and (np.abs(counts - 1000) < 5 * np.sqrt(1000 * 6 / 7)).all()
    assert (drawn != [member_of(update, 7, seed=4) for update in range(7000)]).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"size": 7}, "plays boards of 5 alone, not 7"), ({"seed": 2}, "begun with seed 1, not 2"),
     ({"rate": 0.5}, "begun with rate 7e-05, not 0.5")],
)  # fmt: skip
def test_a_run_goes_on_only_as_it_began(start, tmp_path, change, message):
    run(start, tmp_path / "out", 1)
    with pytest.raises(ValueError, match=message):
        run(start, tmp_path / "out", 2, **change)
    run(start, tmp_path / "out", 2, updates=9)


def test_a_foreign_or_damaged_state_is_one_line(start, tmp_path):
    run(start, tmp_path / "out", 1)
    state = tmp_path / "out" / STATE
    for content in (b"", b"nothing", state.read_bytes()[:200]):
        state.write_bytes(content)
        with pytest.raises(ValueError, match="cannot resume this run") as error:
            run(start, tmp_path / "out", 2)
        assert "\n" not in str(error.value)


def test_weights_that_are_no_numbers_end_the_run(start, tmp_path):
    made = opened(start, tmp_path / "out")
    with torch.no_grad():
        next(made.learner.model.parameters())[0] = torch.nan
    with pytest.raises((ValueError, RuntimeError)):
        made.run(lambda: False, lambda step, metrics: None)


def test_the_command_goes_on_where_it_was(start, tmp_path):
    words = ["train", "reinforce", str(start), "--out", str(tmp_path / "out"), "--size", "5", "--games", "4"]
    for updates in ("1", "2"):
        done = CliRunner().invoke(main, [*words, "--updates", updates, "--check-games", "2"])
        assert done.exit_code == 0 and done.stdout == "", done.output
        assert f"update {updates}: win_rate/start" in done.stderr and "training in " in done.stderr
    done = CliRunner().invoke(main, [*words, "--updates", "3", "--pool-every", "7"])
    assert done.exit_code == 1 and "begun with pool_every 500, not 7" in done.stderr


def test_a_komi_that_the_network_does_not_know_is_refused(tmp_path):
    model = toy("elf-opengo")
    path = tmp_path / "start.safetensors"
    save_network(path, model, new_spec(model, "start"), {})
    with pytest.raises(ValueError, match=r"network start only supports komi 7\.5: use it for all games"):
        run(path, tmp_path / "out", 1, size=7)


def test_a_baseline_needs_a_value(start, tmp_path):
    words = ["train", "reinforce", str(start), "--out", str(tmp_path / "out"), "--size", "5"]
    done = CliRunner().invoke(main, [*words, "--baseline", str(start)])
    assert done.exit_code == 1 and "has no value to use as a baseline" in done.stderr
