"""keima match: whole matches between processes, files, resuming, and errors of one line."""

import json
import os
import pickle
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench.match.command import command
from bench.match.folder import GameRecord, MatchFolder, read_openings
from bench.match.gtp_client import EngineDied, EngineGarbled, EngineTimeout
from bench.match.play import MatchError
from engine.go.geometry import from_vertex, to_vertex
from engine.go.sgf import read_sgf
from engine.records.games import Games, write_games
from gtp.cli.terminal import INTERRUPTED

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "tests" / "data" / "gtp_engine.py"


def engine(*options: str) -> str:
    """Command line of the test engine."""
    words = [sys.executable, str(ENGINE), *options]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


SETTINGS = {"size": 5, "rules": "chinese", "komi": 7.5}
FIRST, SECOND = engine("--seed", "1"), engine("--seed", "2")


def run(*options: str, first: str = FIRST, second: str = SECOND):
    """Run the command in this process."""
    return CliRunner().invoke(command, ["--first", first, "--second", second, "--size", "5", *options])


def test_a_match_from_the_first_game_to_the_last_and_on(tmp_path):
    folder, figures = tmp_path / "match", tmp_path / "figures.json"
    options = ["--sgf", str(folder), "--json", str(figures), "--first-name", "A", "--second-name", "B"]
    answer = run("--games", "2", *options)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.startswith("A against B: 5x5, komi 7.5, chinese rules\n")
    assert json.loads(figures.read_text())["all"]["games"] == 2
    before = (folder / "games.jsonl").read_text()
    # A third game that was being written when the machine went down is played again.
    (folder / "games.jsonl").write_text(before + '{"game": 3, "fi')
    answer = run("--games", "4", *options, "--concurrency", "2")
    assert answer.exit_code == 0, answer.output
    lines = (folder / "games.jsonl").read_text().splitlines()
    assert "\n".join(lines[:2]) + "\n" == before
    assert sorted(json.loads(line)["game"] for line in lines) == [1, 2, 3, 4]
    assert [json.loads(line)["first_color"] for line in sorted(lines)] == ["black", "white"] * 2
    assert json.loads(figures.read_text())["all"]["games"] == 4
    for line in lines:
        record = json.loads(line)
        game = read_sgf((folder / f"game-{record['game']:04d}.sgf").read_bytes())
        assert [point for _, point in game.moves] == [from_vertex(vertex, 5) for vertex in record["moves"]]
        assert game.result == record["result"]
    # Nothing is missing any more, so nothing is played and the same table comes at once.
    assert run("--games", "4", *options).stdout == answer.stdout
    answer = run("--games", "4", *options, "--komi", "0.5")
    assert answer.exit_code == 1
    assert "begun with komi 7.5, not 0.5" in answer.stderr


def test_an_engine_that_crashed_plays_again():
    answer = run("--games", "2", first=engine("crash"))
    assert answer.exit_code == 0, answer.output
    assert "ends: 2 by breakdown" in answer.stdout
    assert "game 2, first: breakdown: engine ended with status 1" in answer.stdout


def test_a_sequential_test_ends_the_match_and_knows_it_later(tmp_path):
    """Three lost games are enough to refuse 300 Elo; no fourth one is kept."""
    options = ["--games", "50", "--sgf", str(tmp_path), "--sprt", "0", "300", "--json", str(tmp_path / "all.json")]
    for more in ([], ["--concurrency", "3"]):
        answer = run(*options, *more, first=engine("crash"))
        assert answer.exit_code == 0, answer.output
        assert "SPRT, 0 against 300 Elo: 0 Elo accepted (LLR -3.5" in answer.stdout
        assert len((tmp_path / "games.jsonl").read_text().splitlines()) == 3
    assert json.loads((tmp_path / "all.json").read_text())["sprt"]["accepted"] == 0
    assert run("--games", "3", "--sgf", str(tmp_path), first=engine("crash")).exit_code == 0


def test_games_in_progress_at_the_decision_are_dropped(tmp_path):
    words = ("--games", "50", "--sgf", str(tmp_path), "--sprt", "0", "300", "--concurrency", "3")
    answer = run(*words, first=engine("crash"))
    assert answer.exit_code == 0, answer.output
    assert 3 <= len((tmp_path / "games.jsonl").read_text().splitlines()) <= 5


def test_an_engine_that_ends_at_the_score_loses_and_plays_again():
    answer = run("--games", "2", first=engine("faint"))
    assert answer.exit_code == 0, answer.output
    assert "ends: 2 by breakdown" in answer.stdout
    assert "game 2, first: breakdown: engine ended with status 1 at 'final_score'; last words: cannot" in answer.stdout


def test_a_match_that_its_cluster_leaves_ends_with_what_it_has(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no actor is left")

    monkeypatch.setattr("bench.match.runner.Scoreboard.play", fail)
    ended = CliRunner().invoke(command, ["--first", FIRST, "--second", SECOND, "--size", "5", "--games", "2"])
    assert ended.exit_code == 1 and "match stopped: no actor is left" in ended.output
    assert "no game was finished" in ended.output


@pytest.mark.skipif(sys.platform == "win32", reason="sends the signal of a POSIX terminal")
def test_openings_are_read_from_shards_too(tmp_path):
    """As keima data play draws them."""
    moves = np.array([0, 24, 12, 3, 4, 25], np.uint16)
    games = Games(size=np.full(2, 5), offsets=np.array([0, 3, 6]), moves=moves, result=np.ones(2, np.int8))
    write_games(tmp_path / "games-00000.npz.xz", games)
    expected = [("A5", "E1", "C3"), ("D5", "E5", "pass")]
    for most in (0, 2):
        found = read_openings(tmp_path, 5, most)
        assert [tuple(to_vertex(point, 5) for point in one) for one in found] == [one[: most or 3] for one in expected]
    with pytest.raises(ValueError, match="expected even games on 9x9"):
        read_openings(tmp_path, 9, 0)


def test_an_interrupted_match_keeps_its_games_and_goes_on(tmp_path, interruptible):
    words = [sys.executable, "-m", "bench.match.command", "--first", FIRST, "--second", SECOND, "--size", "5"]
    words += ["--games", "9000", "--sgf", str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline().startswith("game 1: ")
        os.kill(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, errors
    assert "the same command resumes" in errors
    assert output.startswith("Random 1 (first) against Random 1 (second): 5x5")
    assert "Traceback" not in errors
    games = len((tmp_path / "games.jsonl").read_text().splitlines())
    assert 1 <= games == len(list(tmp_path.glob("*.sgf")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--komi", "7.3"], "komi is 7.3"),
        (["--rules", "checkers"], "checkers"),
        (["--time", "soon"], "expected S, M"),
        (["--size", "26"], "26"),
        (["--sprt", "20", "0"], "20 and 0: expected two Elo differences within 2000 of 0"),
        (["--first", ""], "empty command line"),
        (["--first", "no-such-engine"], "cannot start 'no-such-engine'"),
        (["--openings", "."], "no file *.sgf"),
        (["--handicap", "1"], "invalid number of stones"),
        (["--handicap", "2", "--openings", "."], "expected one of them"),
    ],
)
def test_a_mistake_is_named(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = run(*options)
    assert answer.exit_code != 0
    assert message in answer.stderr.replace("\n", " ")
    assert "Traceback" not in answer.stderr


def test_an_engine_that_never_starts_ends_the_match():
    answer = run(second=engine("deaf"))
    assert answer.exit_code == 1
    assert "match stopped: engine ended with status 1 at 'name'; last words: will not start" in answer.stderr


def test_nobody_wins_by_an_engine_that_never_starts(tmp_path):
    """With names each game was lost by it, in a match of no moves; and its folder was for no other engine."""
    named = ["--first-name", "A", "--second-name", "B", "--sgf", str(tmp_path / "match"), "--games", "2"]
    answer = run(*named, second=engine("deaf"))
    assert answer.exit_code == 1
    assert "match stopped: engine ended with status 1 at 'name'; last words: will not start" in answer.stderr
    assert run(*named).exit_code == 0


@pytest.mark.parametrize("names", [[], ["--first-name", "A"]])
def test_an_engine_that_ends_behind_its_score_plays_the_next_game(names):
    answer = run("--games", "3", *names, first=engine("leaver"))
    assert answer.exit_code == 0, answer.output
    assert "breakdown" not in answer.output and "ends: 3 by score" in answer.stdout


def test_openings_are_read_up_to_a_number_of_moves(tmp_path):
    (tmp_path / "a.sgf").write_text("(;GM[1]SZ[9];B[ee];W[cc];B[gg])")
    (tmp_path / "b.sgf").write_text("(;GM[1]SZ[9];B[cc])")
    points = [from_vertex(vertex, 9) for vertex in ("E5", "C7", "G3")]
    assert read_openings(tmp_path, 9, 0) == (tuple(points), (points[1],))
    assert read_openings(tmp_path, 9, 2) == (tuple(points[:2]), (points[1],))
    with pytest.raises(ValueError, match=r"a\.sgf: expected an even game on 13x13"):
        read_openings(tmp_path, 13, 0)


@pytest.mark.parametrize(
    "text", ["(;GM[1]SZ[9];W[ee])", "(;GM[1]SZ[9]AB[cc];B[ee])", "(;GM[1]SZ[9]HA[2]AB[cc][gg];W[ee])", "no"]
)
def test_what_is_no_opening(tmp_path, text):
    (tmp_path / "x.sgf").write_text(text)
    with pytest.raises(ValueError, match=r"x\.sgf"):
        read_openings(tmp_path, 9, 0)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("match.json", "no json", "not a manifest of this command"),
        ("match.json", "[]", "not a manifest of this command"),
        ("games.jsonl", "{}\n", "line 1 is not a result"),
        ("games.jsonl", "[1]\n", "line 1 is not a result"),
    ],
)
def test_a_damaged_folder_is_named(tmp_path, name, text, message):
    MatchFolder(tmp_path, {"komi": 7.5})
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        MatchFolder(tmp_path, {"komi": 7.5})
    assert name in str(caught.value)


def test_without_a_folder_games_stay_in_memory():
    folder = MatchFolder(None, {})
    folder.add(GameRecord(1, "black", {"first": "A", "second": "B"}, []))
    assert folder.missing(2) == [2]
    assert not folder.is_kept


def test_ray_plays_the_rest_of_a_match_and_a_match_goes_on_without_it(tmp_path):
    """Actors start engines of their own; one of them breaks down in the midst of a game, which the engine loses."""
    pytest.importorskip("ray")
    for games, more in (
        (2, []), (5, ["--ray", "local", "--actors", "2"]), (6, []),
    ):  # fmt: skip
        answer = run("--games", str(games), "--sgf", str(tmp_path), *more, first=engine("crash"))
        assert answer.exit_code == 0, answer.output
        assert answer.stdout.startswith("Random 1 (first) against Random 1 (second): 5x5")
        assert f"ends: {games} by breakdown" in answer.stdout
    lines = [json.loads(line) for line in (tmp_path / "games.jsonl").read_text().splitlines()]
    assert sorted(line["game"] for line in lines) == [1, 2, 3, 4, 5, 6]
    assert len(list(tmp_path.glob("game-*.sgf"))) == 6


def test_no_cluster_is_one_line():
    pytest.importorskip("ray")
    answer = run("--ray", "127.0.0.1:1")
    assert answer.exit_code == 1 and "no Ray at 127.0.0.1:1" in answer.stderr


@pytest.mark.parametrize("kind", [MatchError, EngineDied, EngineTimeout, EngineGarbled])
def test_what_ends_a_match_arrives_from_another_process(kind):
    error = pickle.loads(pickle.dumps(kind("cannot start 'it'")))
    assert type(error) is kind and str(error) == "cannot start 'it'"


def test_a_game_that_comes_twice_counts_once(tmp_path):
    folder, names = MatchFolder(tmp_path, SETTINGS), {"first": "A", "second": "B"}
    assert folder.add(GameRecord(1, "black", names, ["C3"], winner="first"))
    assert not folder.add(GameRecord(1, "black", names, ["C2"], winner="second"))
    again = MatchFolder(tmp_path, SETTINGS)
    assert [record.winner for record in again.records] == ["first"]


@pytest.mark.clients
def test_gnu_go_beats_a_random_player_and_both_agree_on_the_score(gnugo):
    gnu = f"{gnugo} --mode gtp --level 1 --chinese-rules"
    answer = run("--games", "2", "--referee", gnu, first=gnu)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.splitlines()[2].split()[:4] == ["all", "2", "2", "0"]
