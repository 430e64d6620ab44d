"""Games in bulk by Ray's actors are those of one process, and a folder goes on with either."""

import json

import pytest
from click.testing import CliRunner

from engine.records.games import read_games
from engine.records.labels import read_labels
from gtp.cli import main

pytest.importorskip("ray")


def games_of(out):
    """Moves and results of all games in shards, by number."""
    found = {}
    for shard in json.loads((out / "games.json").read_text())["shards"]:
        games = read_games(out / shard["file"])
        for k, number in enumerate(games.number.tolist()):
            assert number not in found
            found[number] = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist(), int(games.result[k])
    return found


def test_actors_play_the_games_of_one_process(tiny_network, tmp_path):
    words = ["data", "play", str(tiny_network), "--size", "7", "--at-once", "4", "--limit", "30"]
    for out, games, more in (
        ("alone", 40, ()), ("both", 10, ()), ("both", 40, ("--ray", "local", "--actors", "1")),
    ):  # fmt: skip
        done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / out), "--games", str(games), *more])
        assert done.exit_code == 0 and done.stdout == "", done.output
    assert games_of(tmp_path / "both") == games_of(tmp_path / "alone")


def test_actors_label_what_is_missing(tiny_network, tmp_path):
    for number, moves in enumerate(("B[ee];W[cc];B[gg];W[cg];B[gc];W[ec]", "B[dd];W[ff];B[df];W[fd];B[ec];W[eg]")):
        (tmp_path / f"{number}.sgf").write_text(f"(;GM[1]FF[4]SZ[9]KM[7]RE[B+R];{moves})")
    words = ["data", "label", str(tmp_path), "--network", str(tiny_network), "--out", str(tmp_path / "out")]
    words += ["--recorded", "9=1", "--self-play", "7=10", "--every", "2", "--at-once", "2"]
    for positions, more in (("40", ()), ("200", ("--ray", "local", "--actors", "1"))):
        done = CliRunner().invoke(main, [*words, "--positions", positions, *more])
        assert done.exit_code == 0 and done.stdout == "", done.output
    assert len(list((tmp_path / "out").glob("labels-*.npz.xz"))) == 2
    keys = [key for path in (tmp_path / "out").glob("labels-*.npz.xz") for key in rows_of(path)]
    assert len(keys) >= 200 and len(set(keys)) == len(keys)


def rows_of(path):
    """Source, size, game and ply of every position of a shard of labels."""
    labels = read_labels(path)
    of_games = labels.source, labels.games.size, labels.games.number
    return list(zip(*(array[labels.game].tolist() for array in of_games), labels.ply.tolist(), strict=True))


def test_no_cluster_is_one_line(tiny_network, tmp_path):
    words = ["data", "play", str(tiny_network), "--size", "7", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*words, "--ray", "127.0.0.1:1"])
    assert done.exit_code != 0 and "no Ray at 127.0.0.1:1" in done.stderr
