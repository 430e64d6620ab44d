"""Benchmarks of encoders, networks, searches, bulk games and training: names, units, skipped boards, errors."""

import numpy as np
import pytest
import torch

from bench.speed import features, inference, library, rollouts, search, selfplay, training
from bench.speed.gpu import matrix_rate
from bench.speed.subjects import NETWORKS, shape_of
from engine.features.encoder import ENCODERS
from engine.go.geometry import point_of
from engine.go.position import META_TO_MOVE, is_legal_move, new_position, play_move
from engine.nets.architectures.registry import make
from engine.nets.files.read import multiply_adds
from engine.nets.layers import Drawn
from engine.nets.model import model_of
from tests.bench.lines import figures, refusal

QUICK = ("--device", "cpu", "--seconds", "0.01", "--repeats", "1", "--threads", "2")
SELFPLAY_UNITS = {
    "/alone": "evaluations/s", "": "evaluations/s", "/share": "ratio", "/games": "games/s", "/search": "evaluations/s",
    "/search/share": "ratio", "/search/games": "games/s", "/search/rows": "rows/s",
}  # fmt: skip


def test_every_encoder_has_a_figure_on_every_board():
    found = figures(features.command, "--seconds", "0.01", "--repeats", "1")
    assert list(found) == [f"features/{name}/{size}" for size in (19, 9) for name in ENCODERS]
    assert all(line["unit"] == "us" and line["value"] > 0 for line in found.values())


def test_every_network_board_and_batch_has_a_figure():
    networks = ("--network", "keima-6x64", "--network", "default", "--batch", "1", "--batch", "3", "--bits", "32")
    found = figures(inference.command, *QUICK, *networks)
    names = [f"{name}/{size}/{batch}" for name in ("keima-6x64", "default") for size in (19, 9) for batch in (1, 3)]
    assert list(found) == names
    assert all(line["unit"] == "evaluations/s" and line["value"] > 0 for line in found.values())


def test_every_call_of_every_library_has_a_figure(monkeypatch):
    monkeypatch.setattr(library, "find_spec", lambda name: name != "sente")
    found = figures(library.command, "--repeats", "1", "--size", "5")
    calls = {"keima": ("play", "legal_moves", "copy", "undo"), "sgfmill": ("play", "legal_moves", "copy")}
    assert list(found) == [f"{call}/5/{name}" for name, names in calls.items() for call in names]
    assert all(line["unit"] == "us" and line["value"] > 0 for line in found.values())


def test_libraries_list_the_same_moves():
    """But for the pass, which sgfmill does not list, and the ko, which it does not forbid."""
    moves = library.random_game(9)
    (_, ours), (_, theirs) = (library.call_times(library.LIBRARIES[name], 9, moves) for name in ("keima", "sgfmill"))
    assert len(ours) == len(moves) == 57
    assert all(0 <= their - (our - 1) <= 1 for our, their in zip(ours, theirs, strict=True))


def test_boards_that_a_network_does_not_play_are_left_out():
    assert figures(inference.command, *QUICK, "--network", "keima-6x64", "--size", "5", "--batch", "1") == {}


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        (features.command, ["--size", "1"], "1 is not in the range 2<=x<=25"),
        (rollouts.command, ["--size", "1"], "1 is not in the range 2<=x<=25"),
        (rollouts.command, ["--repeats", "0"], "0 is not in the range"),
        (rollouts.command, ["--seconds", "never"], "'never' is not a valid number"),
        (rollouts.command, ["--games", "3"], "No such option"),
        (inference.command, ["--device", "abacus"], "unknown device 'abacus'"),
        (inference.command, ["--bits", "8"], "'8' is not one of"),
        (search.command, ["--seconds", "1"], "No such option"),
    ],
)
def test_a_bad_option_is_one_clear_line(command, options, message):
    assert message in refusal(command, *options)


@pytest.mark.parametrize("name", NETWORKS)
def test_operations_are_two_for_each_weight_and_point_it_is_used_on(name):
    network = make(*shape_of(name), Drawn(1))
    counted = 0
    for layer in model_of(network).modules():
        if isinstance(layer, torch.nn.Conv2d):
            counted += 2 * 361 * layer.weight.numel()
        elif isinstance(layer, torch.nn.Linear):
            counted += 2 * layer.weight.numel()
    assert 2 * multiply_adds(network, 19) == counted


def test_a_processor_multiplies_matrices():
    assert matrix_rate(torch.device("cpu"), 16, 1) > 0


def test_every_figure_of_searches_is_told(monkeypatch):
    for name, value in {"NULL_VISITS": 200, "VISITS": 3, "POSITIONS": 2, "ALONE_S": 0.02}.items():
        monkeypatch.setattr(search, name, value)
    found = figures(search.command, "--repeats", "1")
    alone = [f"{name}/alone" for name in search.FIGURES if name.startswith(("net6x96", "default"))]
    evaluations = [f"{name}/evaluations" for name in search.FIGURES]
    assert set(found) == {*search.FIGURES, *evaluations, *alone, "node_bytes/19"}
    assert all(found[name]["unit"] == "visits/s" and found[name]["value"] > 0 for name in search.FIGURES)
    assert 500 < found["node_bytes/19"]["value"] < 1638


def test_games_in_bulk_have_figures_on_every_board():
    options = ("--device", "cpu", "--seconds", "0.3", "--repeats", "1", "--threads", "1", "--at-once", "2")
    found = figures(selfplay.command, *options, "--network", "keima-4x48", "--size", "9")
    units = {name: line["unit"] for name, line in found.items()}
    assert units == {f"keima-4x48/9{end}": of for end, of in SELFPLAY_UNITS.items()}
    assert all(line["value"] > 0 for line in found.values() if line["unit"] not in ("games/s", "rows/s"))


def test_games_made_for_the_bench_of_training_are_legal():
    games = training.made_games()
    for g in range(len(games.size)):
        position = new_position(19)
        for move in games.moves[games.offsets[g] : games.offsets[g + 1]]:
            point = int(point_of(np.int64(move), 19))
            assert is_legal_move(position, point, position.meta[META_TO_MOVE])
            play_move(position, point, position.meta[META_TO_MOVE])


def test_training_has_a_figure_for_data_steps_and_threads():
    options = ("--network", "keima-6x64", "--batch", "2", "--seconds", "0.05", "--repeats", "2", "--device", "cpu")
    found = figures(training.command, *options)
    assert found["batches/keima-2/19"]["unit"] == found["step/keima-6x64/2"]["unit"] == "positions/s"
    assert len(found) == 3 and all(one["value"] > 0 for one in found.values())
