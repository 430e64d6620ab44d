"""Win rates, intervals and ratings against values that are known in closed form or from a slow search."""

import json
import math
from dataclasses import asdict
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bench.charts import interval_chart
from bench.match.elo import (
    Z_95,
    command,
    elo_difference,
    rated,
    rating_errors,
    ratings,
    results_in,
    unconnected,
    wilson_interval,
)
from bench.match.folder import GameRecord


def expected_rate(difference):
    """Win rate that an Elo difference predicts."""
    return 1 / (1 + 10 ** (-difference / 400))


@pytest.mark.parametrize(
    ("wins", "games", "low", "high"),
    [
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (9, 12, 0.4677, 0.9111),
        (500, 1000, 0.4691, 0.5309),
    ],
)
def test_wilson_interval_matches_published_values(wins, games, low, high):
    assert wilson_interval(wins, games) == pytest.approx((low, high), abs=2e-4)


def test_no_games_tell_nothing():
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_wilson_interval_holds_the_rate_of_games_that_all_ended_alike():
    for games in range(1, 200):
        for rate in (0.0, 1.0):
            low, high = wilson_interval(rate * games, games)
            assert 0.0 <= low <= rate <= high <= 1.0


@given(st.integers(1, 500), st.floats(0, 1))
def test_wilson_interval_ends_where_the_rate_is_z_deviations_off(games, share):
    wins = share * games
    rate = wins / games
    for bound in wilson_interval(wins, games):
        deviation = math.sqrt(bound * (1 - bound) / games)
        assert abs(bound - rate) == pytest.approx(Z_95 * deviation, abs=1e-6) or bound in (0.0, 1.0)


@pytest.mark.parametrize(
    ("rate", "elo"), [(0.5, 0.0), (10 / 11, 400.0), (0.64, 99.95), (0.0, -math.inf), (1.0, math.inf)]
)
def test_elo_difference_of_a_rate(rate, elo):
    assert elo_difference(rate) == pytest.approx(elo, abs=0.01)
    assert expected_rate(elo) == pytest.approx(rate, abs=1e-5)


def test_ratings_of_two_players_are_those_of_their_rate():
    found = ratings({("a", "b"): 74.5, ("b", "a"): 24.5})
    assert list(found) == ["a", "b"]
    assert found["a"] - found["b"] == pytest.approx(elo_difference(0.75))
    assert sum(found.values()) == pytest.approx(0.0)


def test_ratings_recover_the_strengths_that_made_the_results():
    strengths = {"a": 150.0, "b": 20.0, "c": -30.0, "d": -140.0}
    wins = {
        (one, two): 1e6 * expected_rate(strengths[one] - strengths[two])
        for one in strengths
        for two in strengths
        if one != two
    }
    assert ratings(wins) == pytest.approx(strengths, abs=0.01)


def test_ratings_stay_finite_without_a_loss():
    found = ratings({("a", "b"): 20.0, ("b", "c"): 20.0})
    assert all(math.isfinite(value) for value in found.values())
    assert list(found) == ["a", "b", "c"]


def test_ratings_of_nobody():
    assert ratings({}) == {}


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
    for item in ElementTree.fromstring(chart).iter("text"):
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


@pytest.fixture(scope="module")
def matches():
    """Ratings of three players in a chain, 200 games a pair, drawn anew many times from the same strengths."""
    true, drawn = {"a": 100.0, "b": 0.0, "c": -100.0}, np.random.default_rng(1)
    found = []
    for _ in range(400):
        wins = {}
        for first, second in (("a", "b"), ("b", "c")):
            won = float(drawn.binomial(200, expected_rate(true[first] - true[second])))
            wins |= {(first, second): won, (second, first): 200.0 - won}
        found.append(ratings(wins))
    return found, wins


def test_errors_of_ratings_are_those_of_repeated_matches(matches):
    found, wins = matches
    errors = rating_errors(wins)
    for name, error in errors.items():
        assert error == pytest.approx(np.std([one[name] for one in found]), rel=0.15), name
    assert errors["b"] < errors["a"]
    assert rating_errors({}) == {}


@pytest.mark.parametrize("reference", ["a", "b", "c"])
def test_errors_of_differences_are_those_of_repeated_matches(matches, reference):
    """The end of a chain is known worse from the other end than from the mean of all."""
    found, wins = matches
    errors = rating_errors(wins, reference)
    assert errors.pop(reference) == 0.0
    for name, error in errors.items():
        assert error == pytest.approx(np.std([one[name] - one[reference] for one in found]), rel=0.15), name
