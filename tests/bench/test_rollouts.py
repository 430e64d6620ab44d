"""The benchmark of rollouts: names and form of figures, their consistency, errors."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import weights
from bench.speed.figures import print_figure, rounded, sample
from bench.speed.rollouts import command

ROOT = Path(__file__).parents[2]
ROLLOUTS = {"": "rollouts/s", "/us_per_move": "us", "/moves": "moves"}
ALONE = {"board_copy/19": "ns", "legal_moves/19": "ns", "tree_policy/19": "us"}


@pytest.fixture(scope="module")
def lines():
    """What the bench as it is called writes to standard output, read back; hurried, but for all default figures."""
    words = [sys.executable, "-m", "bench.speed.rollouts", "--seconds", "0.05", "--repeats", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert "measuring uniform/19/1" in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_line_is_one_figure_with_name_value_and_unit(lines):
    assert all(list(line) == ["name", "value", "unit"] for line in lines)
    assert all(type(line["value"]) in (int, float) and line["value"] > 0 for line in lines)
    names = [line["name"] for line in lines]
    assert len(set(names)) == len(names)


def test_all_promised_figures_are_there(lines):
    units = {line["name"]: line["unit"] for line in lines}
    for name in ("uniform/19/1", "uniform/9/1", "rollout/19/1", "rollout/19/2", "rollout/9/1"):
        assert {end: units[name + end] for end in ROLLOUTS} == ROLLOUTS
    assert {name: units[name] for name in ALONE} == ALONE


def test_rate_length_and_time_of_a_move_belong_together(lines):
    """One repetition, so the medians are of the same games; what is left is rounding."""
    values = {line["name"]: line["value"] for line in lines}
    for name in ("uniform/19/1", "rollout/19/1", "rollout/19/2", "rollout/9/1"):
        threads = int(name[-1])
        moves_per_s = values[name] * values[f"{name}/moves"]
        assert values[f"{name}/us_per_move"] * moves_per_s == pytest.approx(threads * 1e6, rel=0.005)


def test_games_are_whole(lines):
    """Random games fill the board about once and a quarter; one broken off or resigned would be shorter."""
    values = {line["name"]: line["value"] for line in lines}
    assert 430 < values["uniform/19/1/moves"] < 480
    assert 100 < values["uniform/9/1/moves"] < 125
    assert 300 < values["rollout/19/1/moves"] < 600


def test_a_policy_that_cannot_be_read_is_one_clear_line(tmp_path, monkeypatch):
    path = tmp_path / "rollout.npz"
    path.write_bytes(b"not a policy")
    monkeypatch.setitem(weights.PATTERNS, "rollout", path)
    answer = CliRunner().invoke(command, [])
    assert answer.exit_code == 1 and answer.stdout == ""
    assert answer.stderr.startswith(f"Error: {path}: not a readable pattern policy")
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "told"),
    [(17834.6, "17835"), (1.0694, "1.069"), (0.130049, "0.13"), (455.25, "455.2"), (2e6 / 3, "666667"), (0.0, "0.0")],
)
def test_values_are_rounded_sensibly(value, told):
    assert json.dumps(rounded(value)) == told


def test_a_figure_is_the_median_of_its_repetitions(capsys):
    """A slow repetition, such as another program's start, must not count."""
    print_figure("a/b", [3.0, 1000.0, 1.0, 2.0, 4.0], "ns")
    assert capsys.readouterr().out == '{"name": "a/b", "value": 3.0, "unit": "ns"}\n'


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_sample_adds_up_the_rates_of_its_threads(monkeypatch, n_threads):
    """Each thread has a clock of its own, which its work alone moves: 2 ms an item."""
    used = [set() for _ in range(n_threads)]
    clock = threading.local()
    monkeypatch.setattr(time, "perf_counter", lambda: getattr(clock, "now_s", 0.0))

    def worker(i):
        def work(count):
            used[i].add(threading.get_ident())
            clock.now_s = time.perf_counter() + 0.002 * count
            return 3 * count

        return work

    found = sample([worker(i) for i in range(n_threads)], 0.2, 4)
    assert len(found) == 4
    for rate in found:
        assert rate.items_per_s == pytest.approx(500 * n_threads)
        assert rate.steps_per_s == pytest.approx(3 * rate.items_per_s)
    # The first one is warmed up and run by the caller; the others have threads of their own in every repetition.
    assert used[0] == {threading.get_ident()}
    assert all(len(threads) > 1 for threads in used[1:])
