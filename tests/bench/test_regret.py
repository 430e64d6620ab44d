"""Regret: values of differing moves, GTP engines as sides, positions from games, errors."""

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from bench.match.gtp_client import EngineRefused
from bench.strength.peer import Peer
from bench.strength.regret import Move, command, disputed, error_of_mean, positions_of, regrets
from tests.conftest import ROOT

SMALL = ["--positions", "3", "--deep", "24", "--visits", "6", "--komi", "9"]
ENGINE = ROOT / "tests" / "data" / "gtp_engine.py"


def peer(*words):
    """The random engine's command line."""
    return " ".join(map(str, (sys.executable, "-P", ENGINE, *words)))


def test_sides_are_compared_with_the_first_on_the_same_positions():
    result = CliRunner().invoke(command, ["", "name=broad c-puct=9", "--size", "7", *SMALL])
    assert result.exit_code == 0, result.output
    plain, broad = (json.loads(line) for line in result.stdout.splitlines())
    assert plain["name"] == "default" and plain["more_than_first"] == 0.0 and plain["same_move"] == 1.0
    assert broad["name"] == "broad"
    assert abs(broad["more_than_first"] - (broad["regret"] - plain["regret"])) < 3e-5


def test_another_engine_chooses_in_positions_of_games(tmp_path):
    # Stones here and there, so that nothing is decided.
    places = [divmod(37 * i % 81, 9) for i in range(0, 40)]
    moves = "".join(f";{'BW'[i % 2]}[{'abcdefghi'[x]}{'abcdefghi'[y]}]" for i, (x, y) in enumerate(places))
    (tmp_path / "a.sgf").write_text(f"(;GM[1]SZ[9]{moves})")
    result = CliRunner().invoke(command, ["", "--peer", peer(), "--games", str(tmp_path), *SMALL])
    assert result.exit_code == 0, result.output
    mine, other = (json.loads(line) for line in result.stdout.splitlines())
    assert other["games"] == 1 and other["error"] is None, "of one game nothing is known of others"
    assert other["name"] == peer() and other["same_move"] < 1.0 and other["regret"] + mine["regret"] > 0.0
    assert abs(other["more_than_first"] - (other["regret"] - mine["regret"])) < 3e-5


def test_a_folder_without_positions_is_refused_in_one_line(tmp_path):
    result = CliRunner().invoke(command, ["", "--games", str(tmp_path), *SMALL])
    assert result.exit_code == 1 and "no file *.sgf in this folder" in result.output
    (tmp_path / "a.sgf").write_text("(;GM[1]SZ[9];B[aa];W[bb])")
    result = CliRunner().invoke(command, ["", "--games", str(tmp_path), *SMALL])
    assert result.exit_code == 1 and result.output.endswith("no game has more than 7 moves\n")


def test_a_peer_that_resigns_is_told_apart_from_one_that_plays(tmp_path):
    program = tmp_path / "loser.py"
    program.write_text("for line in iter(input, ''): print('=' + line.split()[0], 'resign\\n', flush=True)\n")
    said = "loser.py: 'resign', expected a move"
    with Peer(f"{sys.executable} {program}", "chinese", 9, 7.0) as engine, pytest.raises(EngineRefused, match=said):
        engine.move([])


def test_regret_is_what_the_best_choice_is_worth_more():
    first, second = np.array([[1], [5], [7]]), np.array([[2], [5], [8]])
    moves = disputed([first, second])
    assert moves == [Move(0, 1), Move(0, 2), Move(2, 7), Move(2, 8)]
    worth = dict(zip(moves, (0.25, 0.5, -0.5, -1.0), strict=True))
    one, other = regrets(["one", "other"], [first, second], worth)
    assert one.of_positions.tolist() == [0.25, 0.0, 0.0] and one.same == 1.0
    assert other.of_positions.tolist() == [0.0, 0.0, 0.5] and other.same == pytest.approx(1 / 3)


def test_positions_leave_out_the_end_of_a_game():
    games = [tuple(range(100, 130)), tuple(range(3))]
    found, of_games = positions_of(games, 9, 20, 1)
    assert of_games == [0] * 20
    assert len(found) == 20 and all(one == list(games[0][: len(one)]) and 6 <= len(one) < 29 for one in found)


def test_positions_of_one_game_are_not_independent():
    """Ten copies of each of eight games' positions tell no more than one of each."""
    values = np.random.default_rng(1).normal(size=8)
    one = error_of_mean(values, range(8))
    assert one == pytest.approx(values.std(ddof=1) / 8**0.5)
    assert error_of_mean(np.repeat(values, 10), np.repeat(np.arange(8), 10)) == pytest.approx(one)
    assert error_of_mean(np.repeat(values, 10), range(80)) < one / 3
    assert error_of_mean(values, [3] * 8) is None
    games = [tuple(range(100, 130)), tuple(range(200, 230))]
    assert positions_of([*games, games[0]], 9, 6, 1)[1] == [0, 1, 0, 1, 0, 1], "a repeated game is one"


def test_an_option_that_is_none_is_refused_in_one_line():
    result = CliRunner().invoke(command, ["depth=3"])
    assert result.exit_code == 1
    assert "'depth=3': expected OPTION=VALUE" in result.output and result.output.count("\n") == 1
