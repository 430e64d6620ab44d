"""``keima zero`` as a command: a run, its ladder and its page; killed outright, the same command goes on."""

import json
import math
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from engine.evaluation.elo import ELO_SCALE, Z_95
from engine.pictures.charts import line_chart
from engine.records.search_rows import read_search_rows
from engine.selfplay.search_match import Outcome
from engine.system.files import alone_in
from engine.train.curves import series_of
from engine.zero.ladder import GNUGO, RANDOM, Ladder, Match, name_of, read_ladder, standings
from engine.zero.options import RECIPES, LadderOptions, recipe_for
from engine.zero.page import _latest_numbers, board_picture, by_minutes, elo_chart
from gtp.cli import main
from gtp.cli.zero import RECIPE_ONLY, config_of
from tests.bench.parents import kill_parent

ROOT = Path(__file__).resolve().parents[2]
TINY = (
    "--size", "3", "--blocks", "1", "--channels", "8", "--first-rows", "80", "--rows", "40", "--batch", "16",
    "--visits", "8", "--fast-visits", "4", "--at-once", "4", "--threads", "1", "--device", "cpu",
)  # fmt: skip
# Nearly all of the time: how many matches there are does not depend on how busy the machine is.
LADDER = "ladder-games = 4\nladder-visits = 2\nladder-share = 0.9\n"


def played(folder):
    """Numbers of the games in all shards of a run."""
    shards = json.loads((folder / "rows" / "rows.json").read_text())["shards"]
    return [n for shard in shards for n in read_search_rows(folder / "rows" / shard["file"]).games.number.tolist()]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run that was killed in training, and then went on to its third network; what it had, and what it said."""
    out = tmp_path_factory.mktemp("zero") / "run"
    (recipe := out.with_name("recipe.toml")).write_text(LADDER)
    command = [sys.executable, "-P", "-m", "gtp.cli", "zero", "--out", str(out), *TINY, "--recipe", str(recipe)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        while not is_in_training(out):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    reported = played(out)
    found = CliRunner().invoke(main, ["zero", "--out", str(out), "--turns", "3"])
    assert found.exit_code == 0 and found.stdout == "", found.output
    return out, reported, found.stderr


def is_in_training(out):
    """Whether a run is in the second half of its second turn."""
    path = out / "zero.json"
    turn = json.loads(path.read_text())["turn"] if path.exists() else {"number": 0}
    return turn["number"] >= 1 and turn["phase"] == "train"


def test_kills_lose_no_game_of_a_shard_and_double_none(killed):
    out, reported, _ = killed
    numbers = played(out)
    assert len(numbers) == len(set(numbers))
    assert numbers[: len(reported)] == reported
    assert len(numbers) > len(reported) > 0
    steps = [step for step, _ in series_of(out / "curves.csv")["zero/rows"]]
    assert steps == sorted(set(steps))


def test_a_run_says_how_it_learns_and_what_its_ladder_comes_to(killed):
    *_, said = killed
    assert said.count("training in ") == 1 and " thread" in said
    assert "ladder: network " in said and " = 0" in said


def test_a_run_that_goes_on_needs_its_folder_alone(killed):
    out, _, told = killed
    settings = json.loads((out / "zero.json").read_text())["settings"]
    assert (settings["loop"]["first_rows"], settings["loop"]["batch"], settings["play"]["visits"]) == (80, 16, 8)
    assert "the same command resumes" in told and str(out / "network.safetensors") in told


def test_the_page_shows_the_run(killed):
    out, *_ = killed
    page = (out / "index.html").read_text().replace("http://www.w3.org/2000/svg", "the name of SVG is no address")
    assert "http://" not in page and "https://" not in page and "stopped" in page
    pictures = page.count("<svg")
    assert pictures >= 12
    for start in range(pictures):
        text = page.split("<svg")[start + 1].split("</svg>")[0]
        ElementTree.fromstring(f"<svg{text}</svg>")
    for words in ("Elo", "Samples per row", "First moves", "loop.first_rows = 80"):
        assert words in page
    picture = ElementTree.parse(out / "curves.svg").getroot()
    assert picture.tag.endswith("svg") and len(picture.findall("{*}svg")) == 6


def test_the_ladder_plays_random_moves_and_earlier_networks(killed):
    out, *_ = killed
    matches = read_ladder(out / "ladder.jsonl")
    assert matches[0].second == RANDOM and all(match.outcome.games == 4 for match in matches)
    pairs = [(match.first, match.second) for match in matches]
    assert len(pairs) == len(set(pairs))
    # A kill may leave half a line.
    with (out / "ladder.jsonl").open("a") as file:
        file.write('{"first": "network 9", "sec')
    assert read_ladder(out / "ladder.jsonl") == matches
    # The next match is no part of it.
    ladder = Ladder(out, LadderOptions())
    ladder._enter(MATCHES[0])
    assert read_ladder(out / "ladder.jsonl") == ladder.matches == [*matches, MATCHES[0]]


@pytest.mark.parametrize("line", ["no json", "[]", '{"first": "network 1", "second": "random", "seconds": 1}'])
def test_a_damaged_ladder_is_one_line_and_stays_as_it_is(tmp_path, line):
    """It used to be left out, and the next match wrote the file without it."""
    ladder = Ladder(tmp_path, LadderOptions())
    ladder._enter(MATCHES[0])
    text = (tmp_path / "ladder.jsonl").read_text() + f"{line}\n"
    (tmp_path / "ladder.jsonl").write_text(text)
    with pytest.raises(ValueError, match=r"ladder.jsonl: line 2 is not a match of a ladder"):
        Ladder(tmp_path, LadderOptions())
    assert (tmp_path / "ladder.jsonl").read_text() == text


def test_a_second_process_is_told_that_the_folder_is_in_use(killed):
    with alone_in(killed[0]):
        found = CliRunner().invoke(main, ["zero", "--out", str(killed[0])])
    assert found.exit_code == 1 and "the folder is locked by another process" in found.stderr


@pytest.mark.parametrize("name", ["blocks", "channels"])
def test_a_start_has_a_shape_of_its_own(name):
    found = CliRunner().invoke(main, ["zero", "--out", "nowhere", "--start", "default", f"--{name}", "2", "--dry-run"])
    assert (
        found.exit_code == 1 and f"--{name} is the shape of a new network, expected none with --start" in found.stderr
    )


def dry_run(*words):
    """The settings that a run would have, by their names in Python."""
    found = CliRunner().invoke(main, ["zero", "--out", "nowhere", *map(str, words), "--dry-run"])
    assert found.exit_code == 0, found.output
    assert not Path("nowhere").exists()
    return {key.replace("-", "_"): value for key, value in tomllib.loads(found.stdout).items()}


def test_size_alone_chooses_a_recipe():
    for size, largest in ((3, 5), (5, 5), (6, 7), (9, 9), (10, 13), (25, 19)):
        assert RECIPES[largest].items() <= recipe_for(size).items()
    assert all(abs(recipe_for(size)["komi"]) <= size**2 for size in range(2, 26)), "both sides can win"
    for size in RECIPES:
        assert (recipe_for(size) | {"size": size}).items() <= dry_run("--size", size).items()


def test_settings_given_override_those_of_a_file_and_the_file_those_of_the_board_size(tmp_path):
    (file := tmp_path / "mine.toml").write_text("rate = 0.1\nvisits = 98\nwindow = 77\nchannels = 8\nsize = 5\n")
    found = dry_run("--recipe", file, "--rate", "0.01", "--visits", "99")
    names = ("rate", "visits", "window", "fast_visits", "channels", "blocks", "size")
    assert [found[name] for name in names] == [0.01, 99, 77, 12, 8, 4, 5]


def test_the_published_recipe_is_that_of_19x19():
    found = dry_run("--recipe", "published")
    assert found["size"] == 19 and found["network"] == "alphago-zero" and found["visits"] == 1600
    assert found["drop_at"] == [400_000, 600_000] and found["value_loss"] == "mse"
    answer = CliRunner().invoke(main, ["zero", "--out", "nowhere", "--recipe", "publisht"])
    assert answer.exit_code == 1 and "no such file, expected a TOML file or published" in answer.output


def test_a_recipe_that_was_printed_is_the_same_recipe(tmp_path):
    words = ["zero", "--out", "nowhere", "--size", "7", "--dry-run"]
    (file := tmp_path / "mine.toml").write_text(CliRunner().invoke(main, words).stdout)
    assert dry_run("--recipe", file) == dry_run("--size", "7")


def test_a_setting_of_an_earlier_name_is_read_and_its_option_names_the_new_one(tmp_path):
    (file := tmp_path / "old.toml").write_text("policy-temperature = 1.3\n")
    assert dry_run("--recipe", file)["target_temperature"] == 1.3
    before = {"settings": {"play": {"policy_temperature": 1.2}}, "shape": {"blocks": 1}}
    assert config_of(9, {}, before).play.target_temperature == 1.2
    found = CliRunner().invoke(main, ["zero", "--out", "nowhere", "--policy-temperature", "1.3"])
    assert found.exit_code == 2 and "was renamed: use --target-temperature" in found.output


@pytest.mark.parametrize("line", ["ladder-games = 1", "no-such = 2", "steps = 3", "ladder_games = 40"])
def test_a_recipe_with_a_wrong_line_is_refused_in_one_line(tmp_path, line):
    (file := tmp_path / "mine.toml").write_text(line)
    found = CliRunner().invoke(main, ["zero", "--out", "nowhere", "--recipe", str(file)])
    assert found.exit_code == 1 and found.output.count("\n") == 1 and line.split()[0] in found.output


@pytest.mark.parametrize("name", sorted(RECIPE_ONLY))
def test_settings_that_are_no_options_any_more_say_where_they_are(name):
    key = name.replace("_", "-")
    found = CliRunner().invoke(main, ["zero", "--out", "nowhere", f"--{key}", "1"])
    assert found.exit_code == 2
    assert f"--{key} is a setting of the recipe: write {key} = VALUE into a file for --recipe" in found.output


def test_help_shows_a_good_dozen_options_and_says_where_the_others_are():
    text = CliRunner().invoke(main, ["zero", "--help"]).output
    assert 12 <= len(re.findall(r"^  --", text, re.MULTILINE)) <= 15 and "--dry-run prints" in " ".join(text.split())


MATCHES = [
    Match(name_of(100), RANDOM, Outcome(30, 0, 10), 1.0),
    Match(name_of(200), RANDOM, Outcome(39, 0, 1), 1.0),
    Match(name_of(200), name_of(100), Outcome(30, 2, 8), 1.0),
    Match(name_of(200), GNUGO, Outcome(1, 0, 9), 1.0),
]


def test_elo_counts_from_random_moves():
    players = {one.name: one for one in standings(MATCHES)}
    assert players[RANDOM].elo == 0
    assert 100 < players[name_of(100)].elo < players[name_of(200)].elo < players[GNUGO].elo
    assert all(one.low < one.elo < one.high for name, one in players.items() if name != RANDOM)
    assert standings([]) == []


def test_intervals_of_elo_are_from_random_moves():
    """Of two players: the interval of their difference, not that of one from the mean of both."""
    random, network = standings(MATCHES[:1])
    assert (random.low, random.elo, random.high) == (0.0, 0.0, 0.0)
    # One drawn game is added.
    rate = 30.5 / 41
    assert network.elo == pytest.approx(ELO_SCALE * math.log(rate / (1 - rate)))
    half = Z_95 * ELO_SCALE / math.sqrt(41 * rate * (1 - rate))
    assert (network.low, network.high) == pytest.approx((network.elo - half, network.elo + half))


def test_without_random_moves_elo_counts_from_the_weakest():
    weakest, *others = sorted(standings(MATCHES[2:]), key=lambda one: one.elo)
    assert (weakest.name, weakest.low, weakest.elo, weakest.high) == (name_of(100), 0.0, 0.0, 0.0)
    assert all(one.low < one.elo < one.high for one in others)


def test_the_newest_rating_is_a_networks():
    """The last to come may be GNU Go."""
    zero = SimpleNamespace(turn=SimpleNamespace(number=2, network=200), seconds=60.0, board=None)
    players = standings(MATCHES)
    assert players[-1].name == GNUGO
    assert dict(_latest_numbers(zero, {}, players))["newest Elo (random player = 0)"].startswith(f"{name_of(200)}: ")
    assert "newest Elo (random player = 0)" not in dict(_latest_numbers(zero, {}, []))


def test_curves_are_drawn_over_minutes():
    curves = {"zero/minutes": [(100.0, 1.5), (200.0, 3.0)], "empty/value": [(100.0, 0.1), (200.0, 0.2), (300.0, 0.3)]}
    assert by_minutes(curves, "empty/value") == [(1.5, 0.1), (3.0, 0.2)]
    assert "GNU Go" in elo_chart(standings(MATCHES), curves)
    assert elo_chart([], {}) == line_chart("", {}, "") == ""


def test_the_board_shows_moves_that_are_probable():
    import numpy as np

    policy = np.zeros(26)
    policy[[12, 3]] = 0.9, 0.1
    picture = board_picture(policy, 5)
    ElementTree.fromstring(picture)
    assert picture.count("<circle") == 2 and ">90<" in picture


class FakeZero:
    """A run of some time whose networks are there."""

    def __init__(self, step, seconds):
        self.seconds, self.learner, self.networks = seconds, type("Learner", (), {"step": step}), self

    def path(self, step):
        return Path(__file__)


def test_the_opponents_are_random_moves_the_last_rated_and_one_half_as_old(tmp_path):
    ladder = Ladder(tmp_path, LadderOptions())
    assert [name for name, _ in ladder._opponents(FakeZero(100, 10.0))] == [RANDOM]
    ladder.matches = [Match(name_of(step), RANDOM, Outcome(30, 0, 10), 1.0) for step in (100, 200, 300)]
    assert [name for name, _ in ladder._opponents(FakeZero(400, 10.0))] == [RANDOM, name_of(300), name_of(200)]
    ladder.matches.append(Match(name_of(350), RANDOM, Outcome(40, 0, 0), 1.0))
    assert [name for name, _ in ladder._opponents(FakeZero(400, 10.0))] == [name_of(350), name_of(200)]


def test_a_ladder_without_a_share_plays_nothing(tmp_path):
    """It played once, since no time had been spent on it."""
    ladder = Ladder(tmp_path, LadderOptions(ladder_share=0.0, gnugo_share=0.0))
    zero = SimpleNamespace(learner=SimpleNamespace(step=100), seconds=60.0, is_stopped=False, out=tmp_path)
    zero.match = None  # none is to be asked for
    ladder(zero, tmp_path / "new")
    assert ladder.matches == []


@pytest.mark.parametrize("outcome", [Outcome(3, 0, 1), None])
def test_a_match_of_the_ladder_counts_for_the_new_network(tmp_path, outcome):
    """And is said; and is not entered where it was stopped."""
    asked, told, ladder = [], [], Ladder(tmp_path, LadderOptions(ladder_visits=8, ladder_games=4))
    progress = SimpleNamespace(at=lambda *_: None, say=told.append)
    zero = SimpleNamespace(progress=progress, match=lambda *of: asked.append(of) or outcome)
    new, old = tmp_path / "new", tmp_path / "old"
    for name, opponent in ((RANDOM, None), (name_of(100), old)):
        ladder._play(zero, name_of(200), new, name, opponent)
    assert asked == [((new, None), (8, 1), 4), ((new, old), (8, 8), 4)]
    expected = [(name_of(200), name, outcome) for name in (RANDOM, name_of(100)) if outcome]
    assert [(match.first, match.second, match.outcome) for match in ladder.matches] == expected
    assert read_ladder(tmp_path / "ladder.jsonl") == ladder.matches
    words = [f"ladder: network 200 against {name}: 3 won, 0 drawn, 1 lost; Elo " for name in (RANDOM, name_of(100))]
    assert [line.split("Elo ")[0] + "Elo " for line in told] == (words if outcome else [])
    assert all(line.endswith("random = 0") for line in told)


KILLED = """
import sys
from pathlib import Path
from types import SimpleNamespace as Made

from engine.system import programs
from engine.zero import ladder
from engine.zero.options import LadderOptions

out = Path(sys.argv[1])
code = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
programs.PROGRAM = (sys.executable, "-c", code, str(out / "begun"))
play, progress = Made(size=3, komi=2.0), Made(at=lambda *_: None)
zero = Made(config=Made(play=play), progress=progress, is_stopped=False)
ladder.Ladder(out, LadderOptions())._play_gnugo(zero, "network 1", out / "1", out / "gnugo", "gnugo")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems let children outlive their parent")
def test_a_run_that_is_killed_takes_its_match_along(tmp_path):
    """Otherwise the next one would begin it a second time, in the same folder."""
    kill_parent(KILLED, tmp_path, tmp_path / "begun")
