"""Scoring of finished games: comparisons, figures, errors."""

import json
import sys

import pytest
from click.testing import CliRunner

from bench.strength.endings import command, from_files, from_shard

WALLS = "".join(f";B[c{row}];W[e{row}];B[d{row}];W[f{row}]" for row in "abcdefghi")
"""Black has 18 points of territory, White 27"""
GAME = "(;GM[1]FF[4]SZ[9]KM[6.5]RU[Japanese]RE[{result}]" + WALLS + ";B[hh])"
REFEREE = """
import sys
for line in sys.stdin:
    number, words = line.split(maxsplit=1)
    answers = {"final_status_list dead": "H2 C1", "final_score": "W+16.5"}
    print(f"={number}", answers.get(words.strip(), ""), end="\\n\\n", flush=True)
    if words.strip() == "quit":
        break
"""


@pytest.fixture
def folder(tmp_path):
    for name, result in [("right", "W+16.5"), ("wrong", "B+0.5"), ("resigned", "B+R"), ("unknown", "?")]:
        (tmp_path / f"{name}.sgf").write_text(GAME.format(result=result))
    return tmp_path


def figures(*arguments):
    result = CliRunner().invoke(command, [str(word) for word in arguments])
    assert result.exit_code == 0, result.output
    return {row["name"]: row["value"] for row in map(json.loads, result.stdout.splitlines())}, result.stderr


def test_games_that_were_given_up_are_left_out(folder):
    games = {game.name.rsplit("/", 1)[-1]: game.lead_black for game in from_files((folder,))}
    assert games == {"right.sgf": -16.5, "unknown.sgf": None, "wrong.sgf": 0.5}


def test_records_and_a_referee_are_compared_with(folder):
    referee = folder / "referee.py"
    referee.write_text(REFEREE)
    found, shown = figures(folder, "--weights", "none", "--show", "--referee", f"{sys.executable} {referee}")
    assert found["endings/games"] == 3
    assert found["endings/winner"] == found["endings/margin"] == 50
    assert found["endings/groups"] == 1
    assert found["endings/boards"] == 0
    # One of 37 stones: H2 is dead for both, C1's chain for the referee alone.
    assert found["endings/stones"] == pytest.approx(100 * 36 / 37, abs=0.1)
    assert "wrong.sgf, ours W+16.5, record B+0.5, referee W+16.5, 1 of 37 stones disputed" in shown
    assert " 2 . . X X O O . x .\n 1 . . * X O O" in shown


@pytest.mark.parametrize(("words", "message"), [([], "nothing to score"), (["--referee", "no-such-engine"], "nothing")])
def test_without_games_one_line_says_what_is_expected(words, message):
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 1
    assert message in result.output and result.output.count("\n") == 1


@pytest.mark.shared
def test_counted_games_of_a_shard(shared_path):
    games = list(from_shard(shared_path / "data" / "validation.npz.xz", 3, 1))
    assert len(games) == 3 and all(game.lead_black % 1 == 0.5 for game in games)
