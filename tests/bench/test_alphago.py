"""``keima alphago``: every stage on a board of 5x5, what is run again and what is not, and the report."""

import json

import pytest
from click.testing import CliRunner

from bench.alphago import presets, runner
from bench.alphago.presets import Preset
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from gtp.cli import main
from gtp.cli.settings import read_settings
from tests.nets.models import toy

TINY = Preset(
    size=5,
    komi=4.5,
    filters=4,
    games=60,
    train=("--optimizer", "sgd", "--rate", "0.02", "--batch", "2", "--save-every", "10", "--threads", "1"),
    sl=("--steps", "20", "--validate-every", "10"),
    rl=("--updates", "4", "--games", "8", "--pool-every", "2", "--check-every", "2", "--check-games", "4"),
    decisive=40,
    positions=40,
    held_out=20,
    value=("--steps", "20", "--validate-every", "10"),
    seconds=0.02,
    pair_games=2,
    players=("rvp", "p"),
)


class InProcess:
    """A command of the command line, called in this process; only matches are child processes of their own."""

    def __init__(self, arguments, core):
        words = arguments[arguments.index("gtp.cli") + 1 :]
        found = CliRunner().invoke(main, words)
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        self.returncode = found.exit_code
        RUN.append((words, found.output))

    def poll(self):
        return self.returncode


RUN: list = []
"""Commands that were run, and what they printed"""


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Games to learn from, of a network without any skill."""
    folder = tmp_path_factory.mktemp("people")
    model = toy("alphago-policy", planes=48, size=5, filters=4)
    save_network(folder / "toy.safetensors", model, new_spec(model, "toy"), {})
    command = ["data", "play", str(folder / "toy.safetensors"), "--size", "5", "--komi", "4.5", "--games", "120"]
    found = CliRunner().invoke(main, [*command, "--out", str(folder / "games")])
    assert found.exit_code == 0, found.output
    return folder / "games"


def test_every_stage_on_5x5(tmp_path, people, monkeypatch):
    """The whole way, its report, its player; and nothing is run again."""
    monkeypatch.setattr(runner, "_start", InProcess)
    monkeypatch.setitem(presets.PRESETS, "tour", TINY)
    RUN.clear()
    out = tmp_path / "way"
    command = ["alphago", "--preset", "tour", "--games", str(people), "--out", str(out)]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 0, (found.output, RUN[-1:])
    ran = len(RUN)
    report = json.loads((out / "report.json").read_text())
    assert report["games"]["games"] > 80
    for name in ("rl_over_sl", "rl_over_sl_greedy"):
        one = report[name]
        assert one["won"] + one["lost"] + one["drawn"] == {"rl_over_sl": 40, "rl_over_sl_greedy": 4}[name]
        assert one["interval"][0] <= one["rate"] <= one["interval"][1]
    assert report["rl"]["updates"] == 4 and 0 <= report["rl"]["win_rate/start"] <= 1
    for kind in ("one_a_game", "whole_games"):
        errors = report["value"][kind]
        assert errors["positions"] >= 40 and 0 < errors["test"] < 4 and 0 < errors["constant"] <= 1
    players = report["ablation"]["players"]
    assert set(players) == {"rvp", "p"} and min(one["elo"] for one in players.values()) == 0
    assert all(one["interval"][0] < one["elo"] < one["interval"][1] for one in players.values())
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 8 and "http" not in page
    settings = read_settings(out / "player.toml")
    assert settings["size"] == 5 and str(out) in settings["weights"] and str(out) in settings["patterns"]

    assert CliRunner().invoke(main, command).exit_code == 0
    assert len(RUN) == ran
    (out / "sl" / "network.safetensors").unlink()
    assert CliRunner().invoke(main, [*command, "--only", "sl"]).exit_code == 0
    assert len(RUN) == ran + 1 and RUN[-1][0][:2] == ["train", "policy"]
