"""Ratings of the players in folders of matches: table and chart."""

import json
from dataclasses import asdict
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from bench.match.elo import command, results_in
from bench.match.folder import GameRecord
from engine.evaluation.elo import rated, unconnected
from engine.pictures.charts import interval_chart


def _line(first, second, winner, moves=()):
    record = GameRecord(1, "black", {"first": first, "second": second}, [*moves], winner=winner)
    return json.dumps(asdict(record)) + "\n"


def test_results_of_folders_count_draws_half_and_unfinished_games_not(tmp_path):
    lines = [_line("a", "b", "first"), _line("b", "a", "first"), _line("a", "b", "draw"), _line("a", "b", None)]
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "games.jsonl").write_text("".join(lines))
    folders = [tmp_path / "one", tmp_path / "two", tmp_path / "one" / ".." / "two"]
    assert results_in(folders) == {("a", "b"): 3.0, ("b", "a"): 3.0}, "a folder counts once"


def test_a_repeated_game_counts_once_in_all_folders_together(tmp_path):
    lines = [_line("a", "b", "first", ["A1"]), _line("a", "b", "first", ["A1"]), _line("b", "a", "first", ["A1"])]
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "games.jsonl").write_text("".join(lines))
    assert results_in([tmp_path / "one", tmp_path / "two"]) == {("a", "b"): 1.0, ("b", "a"): 1.0}


def test_players_whom_no_chain_of_games_connects_are_not_rated_together(tmp_path):
    assert unconnected({("a", "b"): 1.0, ("b", "c"): 0.0}) is None and unconnected({}) is None
    assert unconnected({("a", "b"): 1.0, ("c", "d"): 1.0}) == ("a", "c")
    (tmp_path / "games.jsonl").write_text(_line("a", "b", "first") + _line("c", "d", "first"))
    answer = CliRunner().invoke(command, [str(tmp_path)])
    assert answer.exit_code == 1 and "no chain of games connects 'a' and 'c'" in answer.output


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([{"size": 9}, {"size": 19}], "games of different boards: "),
        ([{"size": 19, "handicap": 4}, {"size": 19}], "games with 4 handicap stones cannot be rated"),
        ([["size"], {}], "not the settings of a match"),
    ],
)
def test_matches_that_cannot_be_rated_together_are_refused(tmp_path, settings, message):
    """Twenty of forty with four stones, and a match on 9x9, made the stronger one equal."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, one in zip(folders, settings, strict=True):
        folder.mkdir()
        (folder / "match.json").write_text(json.dumps(one))
        (folder / "games.jsonl").write_text(_line("a", "b", "first") + _line("b", "a", "first"))
    answer = CliRunner().invoke(command, list(map(str, folders)))
    assert answer.exit_code == 1 and message in answer.output and answer.output.count("\n") == 1
    (folders[0] / "match.json").unlink()
    assert CliRunner().invoke(command, list(map(str, folders))).exit_code == 0


def test_the_program_prints_one_line_a_player(tmp_path):
    (tmp_path / "games.jsonl").write_text(_line("strong", "weak", "first") * 9 + _line("strong", "weak", "second"))
    answer = CliRunner().invoke(command, [str(tmp_path)])
    assert answer.exit_code == 0
    assert [line.split()[-1] for line in answer.output.splitlines()] == ["strong", "weak"]
    assert "9.0 of 10" in answer.output


def test_ratings_count_from_the_reference_and_stand_in_a_picture(tmp_path):
    """A file of its own: names are inside it however long they are."""
    (tmp_path / "games.jsonl").write_text(_line("a network < 1", "weak", "first") * 9 + _line("weak", "other", "first"))
    picture = tmp_path / "ratings.svg"
    answer = CliRunner().invoke(command, [str(tmp_path), "--reference", "weak", "--picture", str(picture)])
    assert answer.exit_code == 0, answer.output
    lines = {line.split(" ")[-1]: line for line in answer.output.splitlines()}
    assert lines["weak"].split()[:3] == ["+0", "[+0,", "+0]"]
    strong, *_ = rated(results_in([tmp_path]), "weak")
    assert f"{strong.elo:+.0f} [{strong.low:+.0f}, {strong.high:+.0f}]" in lines["1"]
    root = ElementTree.fromstring(picture.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {item.text: item for item in root if item.text}
    assert float(texts["a network < 1"].get("x")) > 6 * len("a network < 1")
    chart = interval_chart("", [("first " * 9, 0.0, -1.0, 1.0), ("n" * 36, 0.0, -1.0, 1.0)], "")
    for item in ElementTree.fromstring(chart).iter("{http://www.w3.org/2000/svg}text"):
        if item.text and item.text.startswith(("first", "nn")):
            assert float(item.get("x")) >= 6 * len(item.text) > 200
    (tmp_path / "games.jsonl").write_text(_line("a", "b", None))
    empty = CliRunner().invoke(command, [str(tmp_path), "--picture", str(picture)])
    assert empty.exit_code == 1 and empty.output == "Error: none of these games has a winner yet\n"
    (tmp_path / "games.jsonl").write_text(_line("a network < 1", "weak", "first") + _line("weak", "other", "first"))
    refused = CliRunner().invoke(command, [str(tmp_path), "--reference", "nobody"])
    assert refused.exit_code == 1 and refused.output == (
        "Error: no games of 'nobody', expected one of a network < 1, other, weak\n"
    )


@pytest.mark.parametrize("text", ["no json\n", "[]\n", '{"winner": "first"}\n'])
def test_a_damaged_file_is_named_in_one_line(tmp_path, text):
    (tmp_path / "games.jsonl").write_text(text)
    answer = CliRunner().invoke(command, [str(tmp_path)])
    assert answer.exit_code == 1
    assert answer.output.count("\n") == 1
    assert "games.jsonl: line 1" in answer.output
