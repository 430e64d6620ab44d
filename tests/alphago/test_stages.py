"""``keima alphago``: every stage on a board of 5x5, what is run again and what is not, and the report."""

import contextlib
import json
import math
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

import click
import numpy as np
import pytest
from click.testing import CliRunner

from engine.alphago import run, stages
from engine.alphago.report import _ablation, _value_errors, _won, counted, outcomes_of, report_of, rows_of
from engine.alphago.stages import (
    EVALUATION,
    PLAYERS,
    PRESETS,
    RESIGNATION,
    ROLLOUT,
    SEARCH,
    SELECTION,
    SL,
    TEST,
    TORCHRUN,
    TREE,
    VALUE,
    VALUE_WHOLE,
    Plan,
    Preset,
    chosen,
)  # fmt: skip
from engine.evaluation.elo import ELO_SCALE, Z_95
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.records.games import Games, write_games
from engine.system.programs import keima
from gtp.cli import main
from gtp.cli.settings import read_settings
from tests.nets.models import toy
from weights import players

ROOT = Path(__file__).parents[2]
TINY = Preset(
    size=5,
    komi=4.5,
    filters=4,
    value_filters=4,
    min_rank="",
    games=60,
    train="--optimizer sgd --rate 0.02 --batch 2 --save-every 10 --threads 1",
    sl="--steps 20 --validate-every 10",
    rl="--updates 4 --games 8 --pool-every 2 --check-every 2 --check-games 4",
    decisive=40,
    positions=40,
    held_out=20,
    value="--steps 20 --validate-every 10",
    rolled_out=2,
    seconds=0.02,
    pair_games=2,
)


class InProcess:
    """A command of the command line, called in this process; only matches are child processes of their own."""

    def __init__(self, arguments, core, log, printed, folder):
        words = arguments[arguments.index("gtp.cli") + 1 :]
        with contextlib.chdir(folder):
            found = CliRunner().invoke(main, words)
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        self.returncode = found.exit_code
        if printed.suffix:
            printed.write_text(found.stdout)
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


def plan_of(out, people=(Path("kgs"),), preset=PRESETS["tour"], device="cpu"):
    return Plan(out, preset, people, device, 1)


def commands_of(plan):
    """The commands of all stages by what they make."""
    return {command.makes: command for stage in plan.stages() for command in stage.commands}


def after(command, word):
    """What follows a word of a command."""
    return command.words[command.words.index(word) + 1]


def test_human_games_are_filtered_by_rank(tmp_path):
    """The paper's games are those of 6 to 9 dan; games that a network plays have no ranks."""
    published, drawn = (commands_of(plan_of(tmp_path, of, PRESETS["published"])) for of in ((tmp_path,), ()))
    assert after(published["games/set"], "--min-rank") == "6d"
    assert "--min-rank" not in drawn["games/set"].words + commands_of(plan_of(tmp_path))["games/set"].words
    words = ["alphago", "--preset", "tour", "--games", str(tmp_path), "--min-rank", "1d", "--mover-rank", "3d"]
    shown = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "run"), "--dry-run"]).output
    assert "--size 7 --min-rank 1d --validation-share" in shown and shown.count("--mover-rank 3d") == 1
    found = CliRunner().invoke(main, ["alphago", "--min-rank", "1d", "--out", str(tmp_path / "run"), "--dry-run"])
    assert found.exit_code == 1 and found.output == (
        "Error: --min-rank and --mover-rank need --games: they filter human games\n"
    )


def test_every_player_of_the_ablation_searches_as_published(tmp_path):
    """Extended Data Table 5: players of the ablation differ in their components alone."""
    plan = plan_of(tmp_path, (), PRESETS["evening"])
    (stage,) = (stage for stage in plan.stages() if stage.name == "ablation")
    assert stage.games == 6 * 100 + 5 * 50
    engines = {}
    for command in stage.commands:
        for side in ("first", "second"):
            words, name = after(command, f"--{side}").split(), after(command, f"--{side}-name")
            engines.setdefault(name, words)
            assert engines[name] == words
        games = int(after(command, "--games"))
        assert games == 100 or (after(command, "--first-name") == "rvp" and games == 50)
    weights = {"rvp": "0.5", "rp": "1.0", "vp": "0.0", "rv": "0.5", "v": "0.0", "r": "1.0"}
    for name, words in engines.items():
        found = {word: value for word, value in pairwise([*words, ""]) if word.startswith("--")}
        assert found["--seconds"] == "0.3"
        if name == "p":
            assert "--policy-only" in found and "--c-puct" not in found
            continue
        assert (found["--c-puct"], found["--policy-temperature"], found["--expand-after"]) == ("5.0", "0.67", "40")
        assert (found["--virtual-visits"], found["--virtual-loss-on"]) == ("3", "rollouts")
        assert found["--rollout-weight"] == weights[name]
        assert found.keys() >= {"--adaptive-expansion", "--placeholder-priors", "--async-values"}


def test_the_shipped_player_has_the_papers_settings():
    """``kata-get-params`` of alphago-9 beside Extended Data Table 5 and the Methods."""
    settings = tomllib.loads(players()["alphago-9"].read_text(encoding="utf-8"))
    assert settings.items() >= (SEARCH | RESIGNATION).items()
    table = {"policy-temperature": 0.67, "rollout-weight": 0.5, "virtual-visits": 3, "expand-after": 40, "c-puct": 5.0}
    assert settings.items() >= table.items()
    assert set(settings) == {*SEARCH, *RESIGNATION, "weights", "patterns", "size", "komi"}


def test_rollouts_learn_sharper_from_drawn_moves_than_from_those_of_people(tmp_path):
    """What a network draws at temperature 1 is flatter than what plays well."""
    drawn, human = (commands_of(plan_of(tmp_path, people)) for people in ((), (tmp_path,)))
    assert after(drawn[ROLLOUT], "--temperature") == "0.5"
    assert all("--temperature" not in command.words for command in (drawn[TREE], human[ROLLOUT], human[TREE]))


def test_every_stage_on_5x5(tmp_path, people, monkeypatch):
    """The whole run, its report, its player; and nothing is run again."""
    monkeypatch.setattr(run, "start_child", InProcess)
    monkeypatch.setitem(stages.PRESETS, "tour", TINY)
    monkeypatch.setattr(stages, "PLAYERS", [player for player in PLAYERS if player.name in ("rvp", "v")])
    RUN.clear()
    monkeypatch.chdir(tmp_path)
    out = Path("run")
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
        assert errors["positions"] >= 40 and 0 < errors["test"] < 4
    assert report["value"]["beside"].keys() >= {"network", "constant", "whole_games"}
    assert report["value"]["rollouts"].keys() >= {"network", "uniform", "rollout", "sl", "rl", "by_move"}
    players = report["ablation"]
    assert set(players) == {"rvp", "v"} and min(one["elo"] for one in players.values()) == 0
    assert all(one["interval"][0] < one["elo"] < one["interval"][1] for one in players.values() if one["elo"])
    page = (out / "report.html").read_text().replace("http://www.w3.org/2000/svg", "")
    assert page.count("<svg") >= 9 and "http:" not in page and "https:" not in page
    settings = read_settings(out / "player.toml")
    assert (
        settings["size"] == 5
        and str(out.resolve()) in settings["weights"]
        and str(out.resolve()) in settings["patterns"]
    )

    assert CliRunner().invoke(main, command).exit_code == 0
    assert len(RUN) == ran
    shutil.rmtree(out / "patterns")
    assert CliRunner().invoke(main, [*command, "--only", "patterns"]).exit_code == 0
    assert [words[:2] for words, *_ in RUN[ran:]] == [["train", "rollout"], ["train", "tree"]]


@pytest.mark.slow
def test_the_tour_learns(tmp_path):
    """The whole of 7x7 as people call it: the RL policy beats the one it began as, with 95% confidence."""
    command = [sys.executable, "-P", "-m", "gtp.cli", "alphago", "--preset", "tour", "--out", str(tmp_path / "tour")]
    subprocess.run(command, check=True, cwd=ROOT)
    report = json.loads((tmp_path / "tour" / "report.json").read_text())
    assert report["rl_over_sl"]["interval"][0] > 0.5
    assert report["value"]["beside"]["network"] < report["value"]["beside"]["constant"]
    assert len(report["ablation"]) == 7


def test_intervals_of_the_ablation_are_from_the_weakest(tmp_path):
    """Its own has no width, and two players are as far apart as their games say."""
    (folder := tmp_path / "rvp-vp").mkdir()
    (folder / "summary.json").write_text(json.dumps({"all": {"won": 30, "lost": 10, "drawn": 0}}))
    found = _ablation(tmp_path)
    players = found["ablation"]
    assert found["ablation_pairs"]["rvp-vp"]["points"] == [30.0, 10.0]
    assert players["vp"]["interval"] == [0.0, 0.0] and players["vp"]["elo"] == 0.0
    rate = (30 + 0.5) / (40 + 1)
    half = Z_95 * ELO_SCALE / math.sqrt((40 + 1) * rate * (1 - rate))
    elo = players["rvp"]["elo"]
    assert players["rvp"]["interval"] == pytest.approx([elo - half, elo + half])
    (tmp_path / "vp-rv").mkdir()
    (tmp_path / "vp-rv" / "summary.json").write_text(json.dumps({"all": {"won": 0, "lost": 0, "drawn": 0}}))
    assert _ablation(tmp_path)["ablation"] == players, "a match without a game says nothing"
    assert _ablation(tmp_path / "none") == {}


def test_presets_by_name_and_by_board():
    assert chosen(None, None) == chosen(None, 9) == PRESETS["evening"]
    assert chosen(None, 7) == PRESETS["tour"] and chosen(None, 19) == PRESETS["published"]
    assert chosen("tour", 9) == replace(PRESETS["tour"], size=9)
    with pytest.raises(ValueError, match="no preset is for 13x13"):
        chosen(None, 13)


def options_known(words):
    """Whether a command of the command line has all options that some words give it; engines of a match too."""
    found, rest = main, list(words)
    while isinstance(found, click.Group):
        if found.name == "evaluate":
            rest = ["network", *rest]
        _, found, rest = found.resolve_command(click.Context(found), rest)
    names = {name for parameter in found.params for name in parameter.opts}
    inner = [shlex.split(word) for word in rest if " gtp.cli " in word]
    return {word for word in rest if word.startswith("--")} <= names and all(
        options_known(one[one.index("gtp.cli") + 1 :]) for one in inner
    )


@pytest.mark.parametrize("name", PRESETS)
def test_every_command_is_one_of_the_command_line(name):
    made = commands_of(plan_of(Path("out"), (), PRESETS[name]))
    assert len(made) >= 18
    for command in made.values():
        assert options_known(command.words), command.text
    assert not options_known(["data", "play", "default", "--no-such-option"])


def test_processes_share_the_positions_of_a_step(tmp_path):
    """Each took the whole batch: the published network would have learnt from four times the positions."""
    commands = commands_of(plan_of(tmp_path, (tmp_path,), PRESETS["published"], "cuda"))
    supervised, alone = commands[SL], commands[ROLLOUT]
    shared = supervised.arguments(4)
    assert shared[: len(TORCHRUN) + 1] == [*TORCHRUN, "4"]
    assert shared[shared.index("--batch") + 1] == "64" and "--batch 256" in supervised.text
    assert supervised.arguments(1) == keima(*supervised.words)
    assert alone.arguments(4) == keima(*alone.words)
    found = CliRunner().invoke(main, ["alphago", "--preset", "tour", "--processes", "3", "--out", str(tmp_path / "a")])
    assert found.exit_code == 1 and "--processes 3: cannot divide batches of 64" in found.output
    assert not (tmp_path / "a").exists()


def test_the_table_of_a_report_shows_what_there_is():
    report = {"size": 9, "filters": 32, "value_filters": 64, "rl_over_sl": counted(3, 1, 0)}
    rows = {row[0]: row[1:] for row in rows_of(report)}
    assert rows["RL policy against the SL policy, both sampling"] == ("more than 80%", "75.0% [30.1%, 95.4%], 4 games")


def test_errors_stand_on_the_papers_scale():
    errors = {"one_a_game": {"training": 0.5, "test": 0.6}, "whole_games": {"training": None, "test": 0.8}}
    rows = {row[0]: row[1:] for row in rows_of({"size": 9, "filters": 32, "value_filters": 64, "value": errors})}
    words = "Value network of {}: training and test error, half of (z - v)^2"
    assert rows[words.format("one position a game")] == ("0.226, 0.234", "0.250, 0.300")
    assert rows[words.format("whole games")] == ("0.19, 0.37", ", 0.400")


def test_a_folder_of_games_without_a_shard_is_left_out_of_the_report(tmp_path):
    """A command that was interrupted before its first shard has a manifest and a journal alone."""
    (tmp_path / "games").mkdir()
    assert outcomes_of(tmp_path / "games") is None
    (tmp_path / "network").mkdir()
    (tmp_path / "network" / "curves.csv").write_text("step,name,value\n10,validation/value_mse,0.5\n")
    assert _value_errors(tmp_path / "network", tmp_path / "games")["selection"] == 0.5


def test_results_count_for_the_first_network_in_both_colours(tmp_path):
    """Black in even games: it wins games 0 and 1, loses 2, and draws 3."""
    games = Games(
        size=np.full(6, 5), offsets=np.arange(7), moves=np.array([12, 12, 13, 13, 12, 12], np.uint16),
        result=np.array([1, -1, -1, 0, 1, -1], np.int8), number=np.arange(6),
    )  # fmt: skip
    write_games(tmp_path / "games-00000.npz.xz", games)
    found = outcomes_of(tmp_path)
    assert (found["won"], found["lost"], found["drawn"], found["rate"]) == (2, 1, 1, 0.625)
    assert found["games"] == 6, "the last two repeat the first two, and count once"
    assert _won(found).endswith("6 games, 4 different") and _won(counted(2, 1, 1)).endswith("4 games")


def test_the_value_network_is_chosen_on_other_positions_than_its_error_is_of(tmp_path):
    """The least of many errors on the same positions was reported."""
    commands = commands_of(plan := plan_of(tmp_path))
    for network in (VALUE, VALUE_WHOLE):
        assert after(commands[network], "--validation") == SELECTION
    assert TEST in commands[EVALUATION].words
    halves = [commands[str(PurePosixPath(path).parent)] for path in (SELECTION, TEST)]
    assert sum(int(after(one, "--positions")) for one in halves) == PRESETS["tour"].held_out
    assert len({after(one, "--seed") for one in halves}) == 2
    (folder := (tmp_path / VALUE).parent).mkdir()
    curve = [
        ("validation/value_mse", 100, 0.5),
        ("validation/seen/value_mse", 100, 0.4),
        ("validation/value_mse", 200, 0.6),
    ]
    lines = ["step,name,value", *(f"{step},{name},{value}" for name, step, value in curve)]
    (folder / "curves.csv").write_text("\n".join(lines) + "\n")
    evaluation = {"beside": {"network": 0.55, "constant": 1.0}, "policy_rollouts": {}}
    (tmp_path / EVALUATION).write_text(json.dumps(evaluation))
    found = report_of(plan, {})["value"]["one_a_game"]
    assert (found["step"], found["selection"], found["training"], found["test"]) == (100, 0.5, 0.4, 0.55)


def test_gnu_go_is_met_from_openings(tmp_path, monkeypatch):
    """The policy draws nothing, nor does GNU Go of one seed: four of 13 games were different."""
    monkeypatch.setattr(stages, "find_gnugo", lambda: "/usr/games/gnugo")
    commands = commands_of(plan_of(tmp_path))
    drawn = commands[after(commands["sl/against-gnugo/summary.json"], "--openings")]
    assert drawn.words[:2] == ["data", "play"] and int(after(drawn, "--games")) == 2
