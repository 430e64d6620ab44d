"""``keima train rollout|tree`` and ``keima evaluate rollout|tree``, and what they say of files that are no good."""

import json
import lzma

import numpy as np
import pytest
from click.testing import CliRunner

from engine.records.games import read_games, write_games
from engine.records.schema import join
from engine.rollout.model import load_patterns
from gtp.cli import main
from gtp.cli.patterns import _read
from tests.train.pattern_games import games_of_all_kinds, joined, random_game, staircase, write_shard
from weights import find_patterns


@pytest.fixture(scope="module")
def games():
    """Fights in a corner, fights all over the board, and one that goes on after a pass."""
    return games_of_all_kinds()


def keima(*words):
    """Run a command in this process; any exception it does not turn into a line is a failure."""
    response = CliRunner().invoke(main, [str(word) for word in words])
    assert response.exception is None or isinstance(response.exception, SystemExit), response.exception
    return response


@pytest.mark.parametrize("kind", ["rollout", "tree"])
def test_train_and_evaluate_from_games_to_figures(tmp_path, games, kind):
    (folder := tmp_path / "games").mkdir()
    for i in range(4):
        write_shard(folder / f"{i}.npz.xz", [*games[i : i + 5], staircase(60)])
    held_out, out = write_shard(tmp_path / "held.npz.xz", [staircase(60), games[-1]]), tmp_path / "policy.npz"
    read = read_games(held_out)
    assert read.moves.tolist() == [*staircase(60), *games[-1]] and read.offsets.tolist() == [0, 60, 120]

    response = keima("train", kind, "--games", folder, "--validation", held_out, "--out", out, "--shards", 3)
    assert response.exit_code == 0, response.output
    assert response.stdout.startswith("positions")
    model = load_patterns(out)
    assert model.kind == kind
    assert model.record["games"] == ["0.npz.xz", "1.npz.xz", "2.npz.xz"]

    response = keima("evaluate", kind, held_out, "--patterns", out, "--json")
    assert response.exit_code == 0, response.output
    figures = json.loads(response.stdout)
    assert list(figures)[:3] == ["positions", "top1", "log_likelihood"]
    # Weights are stored with half precision, so that a tie may break otherwise.
    assert figures["positions"] == model.record["validation"]["positions"] == 100
    assert figures["top1"] == pytest.approx(model.record["validation"]["top1"], abs=0.03)
    assert 0.2 < figures["top1"] < 1 and figures["log_likelihood"] > -5

    response = keima("evaluate", kind, held_out, "--positions", 30, "--json")
    assert response.exit_code == 0, response.output
    assert 20 <= json.loads(response.stdout)["positions"] <= 60


def test_a_temperature_divides_the_weights(tmp_path, games):
    """The figures are those of the policy that is written: as many first choices, another likelihood."""
    shard = write_shard(tmp_path / "games.npz.xz", [*games, staircase(60)])
    held_out = write_shard(tmp_path / "held.npz.xz", [staircase(60), games[-1]])
    found = {}
    for temperature in (1, 0.5):
        out = tmp_path / f"{temperature}.npz"
        words = ("--games", shard, "--validation", held_out, "--temperature", temperature, "--out", out)
        assert keima("train", "rollout", *words).exit_code == 0
        found[temperature] = load_patterns(out)
    np.testing.assert_array_equal(found[0.5].theta, 2 * found[1].theta)
    assert found[0.5].record["temperature"] == 0.5
    plain, sharp = (found[temperature].record["validation"] for temperature in (1, 0.5))
    assert sharp["top1"] == plain["top1"] and sharp["log_likelihood"] != plain["log_likelihood"]


@pytest.mark.parametrize("option", ["--rate", "--temperature"])
def test_a_number_that_is_none_is_refused(tmp_path, games, option):
    shard, held_out = (write_shard(tmp_path / f"{name}.npz.xz", games[:2]) for name in ("games", "held"))
    out = tmp_path / "policy.npz"
    response = keima("train", "rollout", "--games", shard, "--validation", held_out, "--out", out, option, "nan")
    said = f"'{option}': nan is not in the range more than 0.0, 100.0 or less"
    assert response.exit_code == 2 and said in response.output
    assert not out.exists()


@pytest.fixture
def bad_files(tmp_path, games):
    """Files that are no shard, no policy, or not all of it."""
    whole = write_shard(tmp_path / "whole.npz.xz", games[:1])
    inside = lzma.decompress(whole.read_bytes())
    (tmp_path / "text.npz.xz").write_text("(;GM[1])")
    (tmp_path / "cut.npz.xz").write_bytes(whole.read_bytes()[:-60])
    (tmp_path / "cut-inside.npz.xz").write_bytes(lzma.compress(inside[: len(inside) // 2]))
    with lzma.open(tmp_path / "labels.npz.xz", "wb") as file:
        np.savez(file, value=np.zeros(1))
    policy = find_patterns("rollout").read_bytes()
    (tmp_path / "cut.npz").write_bytes(policy[: len(policy) // 2])
    np.savez(tmp_path / "other.npz", header=np.frombuffer(b'{"format": "other"}', np.uint8))
    (tmp_path / "rollout.npz").write_bytes(policy)
    return tmp_path


SHARD_FAULTS = [
    ("missing.npz.xz", 2, "does not exist"),
    ("text.npz.xz", 1, "not a readable .npz.xz shard"),
    ("cut.npz.xz", 1, "not a readable .npz.xz shard"),
    ("cut-inside.npz.xz", 1, "not a readable .npz.xz shard"),
    ("labels.npz.xz", 1, "not a shard of games, it lacks"),
]


def check_one_line(response, status, name, message):
    """One line that names the file and the fault."""
    errors = [line for line in response.stderr.splitlines() if line.startswith("Error: ")]
    assert response.exit_code == status and response.stdout == "", response.output
    assert len(errors) == 1 and name in errors[0] and message in errors[0]


@pytest.mark.parametrize(("name", "status", "message"), SHARD_FAULTS)
def test_games_that_cannot_be_read_are_one_clear_line(bad_files, name, status, message):
    bad, whole, out = bad_files / name, bad_files / "whole.npz.xz", bad_files / "out.npz"
    check_one_line(keima("evaluate", "rollout", bad), status, name, message)
    for learnt_from, held_out in ((bad, whole), (whole, bad)):
        response = keima("train", "tree", "--games", learnt_from, "--validation", held_out, "--out", out)
        check_one_line(response, status, name, message)
    assert not out.exists()


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("rollout", "missing.npz", "unknown pattern policy"),
        ("rollout", "cut.npz", "not a readable pattern policy"),
        ("rollout", "other.npz", "format 'other', expected 'keima-patterns-1'"),
        ("rollout", "whole.npz.xz", "not a readable pattern policy"),
        ("tree", "rollout.npz", "a rollout policy, expected a tree policy"),
    ],
)
def test_a_policy_that_cannot_be_read_is_one_clear_line(bad_files, kind, name, message):
    response = keima("evaluate", kind, bad_files / "whole.npz.xz", "--patterns", bad_files / name)
    check_one_line(response, 1, name, message)


def test_training_without_games_is_one_clear_line(bad_files):
    """The shard to measure on is never learnt from, even if it is all there is."""
    whole, out = bad_files / "whole.npz.xz", bad_files / "out.npz"
    response = keima("train", "rollout", "--games", whole, "--validation", whole, "--out", out)
    check_one_line(response, 1, "held out for validation", "no other shards to train on")


def test_games_on_other_boards_or_from_set_up_stones_are_left_out(tmp_path):
    plain = joined([random_game(1, 9, 20), random_game(2, 9, 20)])
    white_first = joined([random_game(3, 9, 20)])._replace(first=np.array([2], np.uint8))
    small = joined([[3, 4, 5]])._replace(size=np.array([9]))
    one_position = joined([random_game(4, 9, 20)])._replace(position=np.array([7], np.int16))
    write_games(tmp_path / "mixed.npz.xz", join([white_first, one_position, plain, small]))
    games = _read(tmp_path / "mixed.npz.xz", 19)
    assert games.moves.tolist() == plain.moves.tolist()
    write_games(tmp_path / "small.npz.xz", small)
    with pytest.raises(ValueError, match="no complete game on 19x19 that begins on the empty board"):
        _read(tmp_path / "small.npz.xz", 19)


@pytest.mark.parametrize("kind", ["rollout", "tree"])
def test_a_smaller_board_is_learnt_by_its_own_games(tmp_path, kind):
    """A game of 9x9 by heart; games of other boards in the same shard are left out."""
    size = 9
    game = [(1 + ply % 2 + 3 * (ply // 18)) * size + ply % 18 // 2 for ply in range(36)]
    small = joined([game] * 30)._replace(size=np.full(30, size))
    write_games(tmp_path / "games.npz.xz", join([small, joined([staircase(60)] * 5)]))
    command = ("train", kind, "--games", tmp_path / "games.npz.xz", "--validation", tmp_path / "games.npz.xz")
    assert keima(*command, "--out", tmp_path / "none.npz", "--size", 13).exit_code == 1
    write_games(tmp_path / "held.npz.xz", small)
    command = (*command[:-1], tmp_path / "held.npz.xz", "--out", tmp_path / "policy.npz")
    response = keima(*command, "--size", size)
    assert response.exit_code == 0, response.output
    assert load_patterns(tmp_path / "policy.npz").record["positions"] == 30 * len(game)
    response = keima(
        "evaluate", kind, tmp_path / "games.npz.xz", "--patterns", tmp_path / "policy.npz", "--size", size, "--json"
    )
    assert json.loads(response.stdout)["positions"] == 30 * len(game)
    assert json.loads(response.stdout)["top1"] > 0.85
