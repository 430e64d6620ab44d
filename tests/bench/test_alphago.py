"""``keima alphago``: every stage on a board of 5x5, what is run again and what is not, and the report."""

import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np
import pytest
from click.testing import CliRunner

from bench.alphago import presets, runner, stages
from bench.alphago.page import MARKS, _won, rows_of
from bench.alphago.page import command as page_command
from bench.alphago.presets import PRESETS, PUBLISHED, TOUR, Preset, chosen
from bench.alphago.results import _ablation, counted, outcomes_of, report_of
from bench.alphago.runner import CommandFailed, Observer, Record, run_stage
from bench.alphago.stages import PLAYERS, TORCHRUN, Way, all_stages
from bench.charts import interval_chart, line_chart
from bench.child import start_child
from bench.match import engines
from bench.match.elo import ELO_SCALE, Z_95
from bench.match.engines import keima
from bench.match.folder import GameRecord
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.records.games import Games, write_games
from gtp.cli import main
from gtp.cli.settings import read_settings
from tests.bench.parents import kill_parent
from tests.bench.small_stage import stage_of
from tests.nets.models import toy

ROOT = Path(__file__).parents[2]
TINY = Preset(
    size=5,
    komi=4.5,
    filters=4,
    value_filters=4,
    games=60,
    train=("--optimizer", "sgd", "--rate", "0.02", "--batch", "2", "--save-every", "10", "--threads", "1"),
    sl=("--steps", "20", "--validate-every", "10"),
    rl=("--updates", "4", "--games", "8", "--pool-every", "2", "--check-every", "2", "--check-games", "4"),
    decisive=40,
    positions=40,
    held_out=20,
    value=("--steps", "20", "--validate-every", "10"),
    rolled_out=2,
    seconds=0.02,
    pair_games=2,
)


class InProcess:
    """A command of the command line, called in this process; only matches are child processes of their own."""

    def __init__(self, arguments, core, log, printed):
        words = arguments[arguments.index("gtp.cli") + 1 :]
        found = CliRunner().invoke(main, words)
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        self.returncode = found.exit_code
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


def test_rollouts_learn_sharper_from_drawn_moves_than_from_those_of_people(tmp_path):
    """What a network draws at temperature 1 is flatter than what plays well."""
    for people, temperature in ((), ["0.5"]), ((tmp_path,), []):
        rollout, tree = Way(tmp_path, TOUR, people, "cpu", 1).pattern_policies()
        assert [rollout.words[i + 1] for i, word in enumerate(rollout.words) if word == "--temperature"] == temperature
        assert "--temperature" not in tree.words


def test_every_stage_on_5x5(tmp_path, people, monkeypatch):
    """The whole way, its report, its player; and nothing is run again."""
    monkeypatch.setattr(runner, "start_child", InProcess)
    monkeypatch.setitem(presets.PRESETS, "tour", TINY)
    monkeypatch.setattr(stages, "PLAYERS", [player for player in PLAYERS if player.name in ("rvp", "v")])
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
        assert errors["positions"] >= 40 and 0 < errors["test"] < 4
    assert report["value"]["beside"].keys() >= {"network", "constant", "whole_games"}
    assert report["value"]["rollouts"].keys() >= {"network", "uniform", "rollout", "sl", "rl", "by_move"}
    players = report["ablation"]
    assert set(players) == {"rvp", "v"} and min(one["elo"] for one in players.values()) == 0
    assert all(one["interval"][0] < one["elo"] < one["interval"][1] for one in players.values() if one["elo"])
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 9 and "http" not in page
    settings = read_settings(out / "player.toml")
    assert settings["size"] == 5 and str(out) in settings["weights"] and str(out) in settings["patterns"]

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


def runs(tmp_path):
    """How often each program of a stage has been run."""
    return [len(path.read_text()) for path in sorted(tmp_path.glob("made-*"))]


@pytest.fixture
def programs(monkeypatch):
    """Commands are programs for Python, not for keima."""
    monkeypatch.setattr(engines, "PROGRAM", (sys.executable,))


def test_what_has_ended_is_not_run_again_and_what_follows_is(tmp_path, programs):
    stage, record = stage_of(tmp_path, "0", "0", "0"), Record(tmp_path / "alphago.json")
    assert run_stage(stage, record, 1, False, Observer()) and runs(tmp_path) == [1, 1, 1]
    read = Record.of(tmp_path)
    assert not run_stage(stage, read, 1, False, Observer()) and runs(tmp_path) == [1, 1, 1]
    assert read.spent(stage) == record.spent(stage) > 0
    read.ended.discard(stage.commands[1].text)
    assert run_stage(stage, read, 1, False, Observer()) and runs(tmp_path) == [1, 2, 2]
    assert run_stage(stage, read, 1, True, Observer()) and runs(tmp_path) == [2, 3, 3]


def test_a_command_that_fails_ends_the_way_there(tmp_path, programs):
    stage, record = stage_of(tmp_path, "0", "3", "0"), Record(tmp_path / "alphago.json")
    for _ in range(2):
        with pytest.raises(CommandFailed, match="status 3"):
            run_stage(stage, record, 1, False, Observer())
    assert runs(tmp_path) == [1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(("end", "by"), [("waits", signal.SIGINT), ("deaf", signal.SIGKILL)])
def test_a_signal_is_passed_on_once_and_a_second_one_kills(tmp_path, programs, interruptible, monkeypatch, end, by):
    """And whatever was interrupted has not ended."""
    (begun := tmp_path / "made-0").touch()
    started = []

    class Impatient(Observer):
        def waits(self):
            if begun.read_text() and (end == "deaf" or not asked):
                asked.append(os.kill(os.getpid(), signal.SIGINT))

    asked: list[None] = []
    monkeypatch.setattr(runner, "start_child", lambda *of: started.append(start_child(*of)) or started[-1])
    stage, record = stage_of(tmp_path, end, "0"), Record(tmp_path / "alphago.json")
    with pytest.raises(KeyboardInterrupt):
        run_stage(stage, record, 1, False, Impatient())
    assert [process.wait(10) for process in started] == [-by] and not record.ended
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_was_begun_with_other_files_does_not_go_on(tmp_path, programs):
    """The command itself does not see that a file has changed; what it makes would be of both."""
    stage, record = stage_of(tmp_path, "0"), Record(tmp_path / "alphago.json")
    (network := tmp_path / "network").write_text("one")
    stage = replace(stage, commands=(replace(stage.commands[0], made_from=(network,)),))
    for _ in range(2):
        run_stage(stage, record, 1, True, Observer())
    network.write_text("other")
    with pytest.raises(CommandFailed, match="begun with other files"):
        run_stage(stage, record, 1, True, Observer())
    assert runs(tmp_path) == [2]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems let children outlive their parent")
def test_a_way_that_is_killed_takes_its_command_along(tmp_path):
    """Otherwise the next one would work in the same folder beside it."""
    stage_of(tmp_path, "waits")
    code = (
        "import sys; from pathlib import Path; from bench.match import engines\n"
        "from bench.alphago.runner import Observer, Record, run_stage\n"
        "from tests.bench.small_stage import stage_of\n"
        "engines.PROGRAM = (sys.executable,); out = Path(sys.argv[1])\n"
        "run_stage(stage_of(out, 'waits'), Record(out / 'alphago.json'), (), False, Observer())"
    )
    kill_parent(code, tmp_path, tmp_path / "made-0")


def test_intervals_of_the_ablation_are_from_the_weakest(tmp_path):
    """Its own has no width, and two players are as far apart as their games say."""
    (folder := tmp_path / "rvp-vp").mkdir()
    names = {"first": "rvp", "second": "vp"}
    games = [GameRecord(k, "black", names, [f"A{k}"], winner=won) for k, won in enumerate(RESULTS, 1)]
    # One that repeats another says nothing.
    lines = [json.dumps(asdict(game)) for game in (*games, replace(games[0], game=99))]
    (folder / "games.jsonl").write_text("\n".join(lines) + "\n")
    players = _ablation(tmp_path)["ablation"]
    assert players["vp"]["interval"] == [0.0, 0.0] and players["vp"]["elo"] == 0.0
    rate = (RESULTS.count("first") + 0.5) / (len(RESULTS) + 1)
    half = Z_95 * ELO_SCALE / math.sqrt((len(RESULTS) + 1) * rate * (1 - rate))
    elo = players["rvp"]["elo"]
    assert players["rvp"]["interval"] == pytest.approx([elo - half, elo + half])


RESULTS = ["first"] * 30 + ["second"] * 10


def test_a_first_start_that_was_killed_leaves_a_folder_to_begin_in(tmp_path):
    for name in ("alphago.json.partial", "keima.lock"):
        (tmp_path / name).write_text("{")
    assert Record.of(tmp_path).ended == set()
    (tmp_path / "games").mkdir()  # of its first command, which was killed
    assert Record.of(tmp_path).ended == set()


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "photo.jpg").write_text("")
    found = CliRunner().invoke(main, ["alphago", "--preset", "tour", "--out", str(tmp_path)])
    assert found.exit_code == 1 and "expected a new or empty folder" in found.output
    (tmp_path / "alphago.json").write_text("[]")
    found = CliRunner().invoke(main, ["alphago", "--preset", "tour", "--out", str(tmp_path)])
    assert found.exit_code == 1 and "not the record of keima alphago" in found.output


def test_presets_by_name_and_by_board():
    assert chosen(None, None) is chosen(None, 9) is PRESETS["evening"]
    assert chosen(None, 7) is PRESETS["tour"] and chosen(None, 19) is PRESETS["published"]
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
    way = Way(Path("out"), PRESETS[name], (), "cpu", 1)
    made = [command for stage in all_stages(way) for command in stage.commands]
    assert len(made) >= 18
    for command in made:
        assert options_known(command.words), command.text
    assert not options_known(["data", "play", "default", "--no-such-option"])


def test_processes_share_the_positions_of_a_step(tmp_path):
    """Each took the whole batch: the published network would have learnt from four times the positions."""
    supervised = next(Way(tmp_path, PUBLISHED, (tmp_path,), "cuda", 1).supervised())
    shared = supervised.arguments(4)
    assert shared[: len(TORCHRUN) + 1] == [*TORCHRUN, "4"]
    assert shared[shared.index("--batch") + 1] == "64" and "--batch 256" in supervised.text
    assert supervised.arguments(1) == keima(*supervised.words)
    alone = next(Way(tmp_path, PUBLISHED, (tmp_path,), "cuda", 1).pattern_policies())
    assert alone.arguments(4) == keima(*alone.words)
    found = CliRunner().invoke(main, ["alphago", "--preset", "tour", "--processes", "3", "--out", str(tmp_path / "a")])
    assert found.exit_code == 1 and "--processes 3: cannot divide batches of 32" in found.output
    assert not (tmp_path / "a").exists()


def test_the_table_of_a_report_goes_between_the_marks(tmp_path):
    (report := tmp_path / "report.json").write_text(
        json.dumps({"size": 9, "filters": 32, "value_filters": 64, "rl_over_sl": counted(3, 1, 0)})
    )
    (page := tmp_path / "page.md").write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n")
    for _ in range(2):
        found = CliRunner().invoke(page_command, [str(report), str(page)])
        assert found.exit_code == 0, found.output
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| RL policy against the SL policy, both sampling | more than 80% | 75.0% [30.1%, 95.4%], 4 games |" in text
    page.write_text("no marks")
    assert CliRunner().invoke(page_command, [str(report), str(page)]).exit_code == 1


def test_errors_stand_on_the_papers_scale():
    errors = {"one_a_game": {"training": 0.5, "test": 0.6}, "whole_games": {"training": None, "test": 0.8}}
    rows = {row[0]: row[1:] for row in rows_of({"size": 9, "filters": 32, "value_filters": 64, "value": errors})}
    words = "Value network of {}: training and test error, half of (z - v)^2"
    assert rows[words.format("one position a game")] == ("0.226, 0.234", "0.250, 0.300")
    assert rows[words.format("whole games")] == ("0.19, 0.37", ", 0.400")


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
    way = Way(tmp_path, TOUR, (tmp_path,), "cpu", 1)
    *trained, evaluated = way.value_networks()
    chosen_by = {command.words[command.words.index("--validation") + 1] for command in trained}
    assert chosen_by == {str(way.selection)} and str(way.held_out_values) in evaluated.words
    drawn = {command.makes: command.words for command in way.value_data()}
    halves = [drawn[path.parent] for path in (way.selection, way.held_out_values)]
    positions, seeds = ([words[words.index(name) + 1] for words in halves] for name in ("--positions", "--seed"))
    assert sum(map(int, positions)) == TOUR.held_out and len(set(seeds)) == 2
    way.value.parent.mkdir()
    curve = [
        ("validation/value_mse", 100, 0.5),
        ("validation/seen/value_mse", 100, 0.4),
        ("validation/value_mse", 200, 0.6),
    ]
    lines = ["step,name,value", *(f"{step},{name},{value}" for name, step, value in curve)]
    (way.value.parent / "curves.csv").write_text("\n".join(lines) + "\n")
    way.evaluation.write_text(json.dumps({"beside": {"network": 0.55, "constant": 1.0}, "policy_rollouts": {}}))
    found = report_of(way, {})["value"]["one_a_game"]
    assert (found["step"], found["selection"], found["training"], found["test"]) == (100, 0.5, 0.4, 0.55)


def test_gnu_go_is_met_from_openings(tmp_path, monkeypatch):
    """The policy draws nothing, nor does GNU Go of one seed: four of 13 games were different."""
    monkeypatch.setattr(stages, "find_gnugo", lambda: "/usr/games/gnugo")
    drawn, match = list(Way(tmp_path, TOUR, (tmp_path,), "cpu", 1).supervised())[-2:]
    assert match.words[match.words.index("--openings") + 1] == str(drawn.makes)
    assert drawn.words[:2] == ("data", "play") and int(drawn.words[drawn.words.index("--games") + 1]) == 2


def test_charts_draw_what_there_is():
    assert line_chart("t", {"a": [], "b": []}, "x") == "" and interval_chart("t", [], "x") == ""
    drawn = line_chart("a < b", {"one": [(i, float(i * i)) for i in range(1000)], "flat": [(0, 2.0)]}, "step")
    assert drawn.count("<polyline") == 2 and "a &lt; b" in drawn
    for chart in (drawn, interval_chart("t", [("p", 10.0, -5.0, 20.0)], "Elo")):
        root = ElementTree.fromstring(chart)
        assert all(
            0 <= float(value) <= 460
            for item in root
            for name, value in item.attrib.items()
            if name in ("x", "x1", "cx")
        )
