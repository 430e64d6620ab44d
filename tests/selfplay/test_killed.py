"""Games, value positions and reinforcement killed outright (SIGKILL): the same command goes on to the same end."""

import json
import signal
import subprocess
import sys
import time

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

from bench.reliability.kills import games_kept, steps_kept
from engine.records.games import read_games
from gtp.cli import main
from tests.conftest import ROOT

ENDLESS = "1000000"
SHARED = ["--size", "5", "--komi", "4.5", "--device", "cpu", "--threads", "1"]


def run(words):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0 and done.stdout == "", done.output


def kill(words, is_due):
    """Run a command that would not end in a process of its own, and kill it as soon as something holds."""
    command = [sys.executable, "-P", "-m", "gtp.cli", *words]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        while not is_due():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.kill()
    assert process.returncode == -signal.SIGKILL


def all_games(out):
    """The games of a folder by number: moves, result and the one position."""
    found = {}
    for shard in json.loads((out / "games.json").read_text())["shards"]:
        games = read_games(out / shard["file"])
        for k, number in enumerate(games.number.tolist()):
            assert number not in found, "played twice"
            moves = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
            found[number] = moves, int(games.result[k]), int(games.position[k])
    return found


@pytest.mark.parametrize(
    ("words", "count"), [(["play", "NETWORK"], "--games"), (["values", "NETWORK", "NETWORK"], "--positions")]
)
def test_games_go_on_where_they_were_killed(start, tmp_path, words, count):
    words = ["data", *(word.replace("NETWORK", str(start)) for word in words), *SHARED, "--at-once", "4"]
    words += ["--games-per-shard", "12", "--out"]
    out = tmp_path / "killed"
    kill([*words, str(out), count, ENDLESS], lambda: games_kept(out) >= 20)
    kept = games_kept(out)
    # Numbers are begun in order, so the games that are held end not far behind their number.
    wanted = kept + 40
    for folder in (out, tmp_path / "whole"):
        run([*words, str(folder), count, str(wanted)])
    assert games_kept(out) >= kept
    found, expected = all_games(out), all_games(tmp_path / "whole")
    assert {number: found[number] for number in found if number < wanted} == expected
    assert len(expected) > 0.9 * wanted


def test_reinforcement_goes_on_where_it_was_killed(start, tmp_path):
    words = ["train", "reinforce", str(start), *SHARED, "--games", "4", "--pool-every", "2", "--check-every", "3"]
    words += ["--check-games", "4", "--save-every", "1", "--rate", "0.01", "--out"]
    out = tmp_path / "killed"
    kill([*words, str(out), "--updates", ENDLESS], lambda: steps_kept(out) >= 2)
    wanted = steps_kept(out) + 2
    for folder in (out, tmp_path / "whole"):
        run([*words, str(folder), "--updates", str(wanted)])
    assert steps_kept(out) == wanted
    for path in sorted((tmp_path / "whole").rglob("*.safetensors")):
        one, two = (load_file(folder / path.relative_to(tmp_path / "whole")) for folder in (out, tmp_path / "whole"))
        assert one.keys() == two.keys()
        for key, tensor in two.items():
            # Processes may round differently: where memory lies decides how sums are vectorised. Steps are of 0.01.
            assert torch.allclose(one[key], tensor, 1e-4, 1e-4), (path.name, key)
