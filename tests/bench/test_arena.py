"""The arena: options of sides, pairs with one opening, resumed matches, errors of one line."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.strength import arena, regret, sides
from bench.strength.arena import command
from bench.strength.sides import side_from
from engine.config import SearchOptions
from engine.evaluation.elo import elo_difference
from engine.system.executor import LocalExecutor
from tests.conftest import ROOT

OPENING = 8
"""Opening moves; with fewer, some 3% of pairs share their opening with another pair."""


@pytest.fixture
def in_process(monkeypatch):
    """Games are played in this process, not in children: a start costs seconds."""
    monkeypatch.setattr(arena, "Processes", lambda count: LocalExecutor())


@pytest.fixture
def play(tiny_network):
    """Plays a little match of the engine against itself."""

    def play(folder, games, *more):
        words = ["--first", "name=broad c-puct=3", "--second", "name=plain visits=2", "--visits", "4", "--size", "7"]
        options = ["--weights", str(tiny_network), "--komi", "9", "--at-once", "4", "--opening-moves", str(OPENING)]
        return CliRunner().invoke(command, [*words, *options, "--sgf", str(folder), "--games", str(games), *more])

    return play


def test_a_side_is_made_of_words():
    side = side_from("batch=4 move-choice=visits fpu-reduction=0.5 random-symmetry=false visits=7", "default", 100)
    expected = {"threads": 1, "batch": 4, "move_choice": "visits", "fpu_reduction": 0.5, "random_symmetry": False}
    assert side.options == SearchOptions(**expected)
    assert (side.visits, side.weights) == (7, "default")
    assert side_from("name=x weights=small", "default", 100).weights == "small"


def examples(program):
    """The arguments with which pages and help texts call the arena or the regret."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for text in (command.help, regret.command.help, *(page.read_text(encoding="utf-8") for page in pages)):
        found = re.findall(rf"python -m bench\.strength\.{program} ([^`\n]+)", text.replace("\\\n", " "))
        yield from map(shlex.split, found)


def test_examples_compare_sides_that_differ(monkeypatch):
    """An option's default against that default measures nothing."""
    monkeypatch.setattr(sides, "find_network", Path)

    def player(text):
        return replace(side_from(text, "default", 200), name="")

    of_arena = [command.make_context("arena", words).params for words in examples("arena")]
    of_regret = [regret.command.make_context("regret", words).params["options"] for words in examples("regret")]
    assert len(of_arena) >= 2 and len(of_regret) >= 2
    for players in [(one["first"], one["second"]) for one in of_arena] + of_regret:
        assert len({player(text) for text in players}) == len(players), players


@pytest.mark.parametrize(
    "words, message",
    [
        ("batsch=4", "'batsch=4': expected OPTION=VALUE"),
        ("batch=many", 'batch is "many", expected a whole number'),
        ("expand-after=-1", "expand-after is -1, expected 0 to 10000"),
        ("uniform-rollouts=yes", 'uniform-rollouts is "yes", expected true or false'),
        ("seed=5", "'seed=5': has no effect here"),
        ("wide-root-noise=1", "'wide-root-noise=1': has no effect here"),
        ("visits=0", "visits=0: expected at least 1"),
        ("weights=nowhere", "unknown network 'nowhere'"),
    ],
)
def test_what_a_side_cannot_be_is_said_in_one_line(words, message):
    result = CliRunner().invoke(command, ["--first", words])
    assert result.exit_code == 1
    assert message in result.output and result.output.count("\n") == 1


def test_the_words_of_a_side_add_up():
    """The second ``--first`` must not replace the first one."""
    words = ["--first", "visits=7 batch=2", "--first", "name=small", "--second", "visits=9"]
    given = command.make_context("arena", words).params
    assert (given["first"], given["second"]) == ("visits=7 batch=2 name=small", "visits=9")


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("words, is_said", [("name=twin", True), ("name=other c-puct=2", False)])
def test_sides_that_are_the_same_are_said_to_be(tiny_network, words, is_said):
    options = ["--weights", str(tiny_network), "--visits", "2", "--size", "7", "--games", "1", "--opening-moves", "2"]
    result = CliRunner().invoke(command, ["--second", words, *options])
    assert result.exit_code == 0 and ("the two sides differ in their names alone" in result.output) == is_said


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("words", ["name=still random-symmetry=false", "name=mixed rollout-weight=0.5"])
def test_sides_that_share_no_evaluations_play_each_other(tiny_network, words):
    options = ["--weights", str(tiny_network), "--visits", "2", "--size", "7", "--games", "1", "--opening-moves", "2"]
    result = CliRunner().invoke(command, ["--first", words, "--second", "name=plain", *options])
    assert result.exit_code == 0, result.output
    assert " against plain: 7x7" in result.output


def test_a_match_is_played_in_pairs_with_one_opening_and_goes_on_where_it_stopped(play, tmp_path):
    assert play(tmp_path / "match", 3).exit_code == 0
    figures = tmp_path / "figures.json"
    result = play(tmp_path / "match", 4, "--json", str(figures))
    assert result.exit_code == 0, result.output
    assert "broad against plain: 7x7, komi 9, tromp-taylor rules" in result.output
    assert "slowest move" not in result.output and "time in all" not in result.output
    lines = (tmp_path / "match" / "games.jsonl").read_text().splitlines()
    records = {record["game"]: record for record in map(json.loads, lines)}
    assert sorted(records) == [1, 2, 3, 4] and len(lines) == 4
    for odd, even in ((1, 2), (3, 4)):
        assert records[odd]["moves"][:OPENING] == records[even]["moves"][:OPENING]
        assert (records[odd]["first_color"], records[even]["first_color"]) == ("black", "white")
    assert records[1]["moves"][:OPENING] != records[3]["moves"][:OPENING]
    assert all(record["winner"] in ("first", "second", "draw") for record in records.values())
    found = json.loads(figures.read_text())["all"]
    assert found["games"] == 4
    assert found["elo"] is None or found["elo"] == pytest.approx(elo_difference(found["rate"]))


@pytest.mark.usefixtures("in_process")
def test_a_pair_that_was_cut_in_two_keeps_its_opening(play, tmp_path):
    """An opening drawn again may differ, since the cache may have another symmetry of a position."""
    assert play(tmp_path / "match", 1).exit_code == 0
    games = tmp_path / "match" / "games.jsonl"
    record = json.loads(games.read_text())
    unlikely = ["A1", "G7", "A3", "G5", "A5", "G3", "A7", "G1"]
    games.write_text(json.dumps(record | {"moves": unlikely + record["moves"][OPENING:]}) + "\n")
    assert play(tmp_path / "match", 2).exit_code == 0
    assert json.loads(games.read_text().splitlines()[1])["moves"][:OPENING] == unlikely


@pytest.mark.usefixtures("in_process")
def test_a_sequential_test_ends_the_match(play, tmp_path):
    """One decided game is enough to decide between these hypotheses."""
    result = play(tmp_path, 30, "--sprt", "-1000", "1000")
    assert result.exit_code == 0, result.output
    assert re.search(r"SPRT, -1000 against 1000 Elo: -?1000 Elo accepted", result.output)
    lines = (tmp_path / "games.jsonl").read_text()
    assert 1 <= lines.count("\n") < 30
    assert play(tmp_path, 30, "--sprt", "-1000", "1000").exit_code == 0
    assert (tmp_path / "games.jsonl").read_text() == lines
