"""A network's outputs without a search; for KataGo's networks they equal KataGo's own."""

import json

import numpy as np
import pytest

from engine.features.symmetry import INVERSE
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex
from engine.go.rules import rules_from
from engine.insight.raw_outputs import raw_evaluation
from engine.nets.raw import RawNetwork
from tests.references import rows
from weights import find_network

KATAGO = ("g170-b6c96-s175395328-d26788732", "b7c96h3tfrs-test5-cnorm", "b10c384h6nbttflrs")


def game_of(row) -> Game:
    """The game that a row of KataGo's outputs was made from."""
    size = row["boardsize"]
    game = Game(size, rules_from(json.dumps(row["rules_json"])), row["komi"])
    if row["handicap_stones"]:
        game.set_free_handicap([from_vertex(vertex, size) for vertex in row["handicap_stones"]])
    for color, vertex in row["moves"]:
        game.play({"B": BLACK, "W": WHITE}[color], from_vertex(vertex, size))
    return game


def to_move(row) -> int:
    return {"B": BLACK, "W": WHITE}[row["to_move"]]


@pytest.fixture(scope="module")
def load(shared_path):
    """From a network's name to the network, read once."""
    loaded = {}

    def load(name):
        if name not in loaded:
            loaded[name] = RawNetwork(shared_path / "nets" / f"{name}.bin.gz")
        return loaded[name]

    return load


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "step"),
    [
        (KATAGO[0], 1),
        (KATAGO[1], 2),
        (KATAGO[2], 8),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in KATAGO),
    ],
)
def test_katagos_networks_say_what_they_say_in_katago(load, shared_path, name, step):
    network = load(name)
    for row in rows(shared_path / "refs" / f"{name}.jsonl.gz")[::step]:
        game = game_of(row)
        assert game.to_move == to_move(row)
        found = raw_evaluation(network, game.position, 0, row["policyOptimism"])
        policy = np.array([*row["policy"], row["policyPass"]], np.float64)
        np.testing.assert_allclose(found.policy, policy, rtol=0, atol=5e-5, err_msg=str(row["id"]))
        np.testing.assert_allclose(found.ownership_white, row["ownership"], rtol=0, atol=5e-5)
        assert found.output.win == pytest.approx(row["whiteWin"], abs=5e-5)
        assert found.output.no_result == pytest.approx(row["noResult"], abs=5e-5)
        assert found.output.lead == pytest.approx(row["whiteLead"], abs=5e-3)
        assert found.output.score == pytest.approx(row["whiteScoreSelfplay"], abs=5e-3)


@pytest.mark.shared
def test_symmetries_are_numbered_as_in_katago_by_our_inverses(load, shared_path):
    network = load(KATAGO[0])
    for row in rows(shared_path / "refs" / f"sym_{KATAGO[0]}.jsonl.gz"):
        game = game_of(row)
        for view in row["symmetries"]:
            found = raw_evaluation(network, game.position, INVERSE[int(view["symmetry"])], row["policyOptimism"])
            policy = np.array([*view["policy"], view["policyPass"]], np.float64)
            np.testing.assert_allclose(found.policy, policy, rtol=0, atol=5e-5)
            assert found.output.win == pytest.approx(view["whiteWin"], abs=5e-5)


def test_our_own_network_speaks_for_white_whoever_moves():
    network = RawNetwork(find_network("default"))
    game = Game(9, komi=40.0)
    game.play(BLACK, from_vertex("E5", 9))
    white = raw_evaluation(network, game.position, 0, 0.0)
    game.play(WHITE, from_vertex("C3", 9))
    black = raw_evaluation(network, game.position, 3, 0.0)
    for found in (white, black):
        assert found.output.win > 0.8 and found.output.lead > 10.0
        assert found.output.win + found.output.loss == pytest.approx(1.0)
        assert np.nansum(found.policy) == pytest.approx(1.0)
    assert np.isnan(white.policy[4 * 9 + 4]) and np.isnan(white.policy).sum() == 1
    assert np.isnan(black.policy).sum() == 2
    assert white.ownership_white[4 * 9 + 4] < black.ownership_white[6 * 9 + 2]
