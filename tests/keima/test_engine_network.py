"""The network and the pictures of an engine."""

import numpy as np
import pytest

import keima


@pytest.fixture(scope="module")
def engine():
    with keima.Engine("small", seed=1, threads=1) as engine:
        yield engine


def test_the_network_of_an_engine_is_that_of_its_name(engine):
    board = keima.Board(9, moves="E5 C3")
    engine.analyse(board, keima.Limit(visits=4))
    with keima.Network("small") as network:
        expected, found = network.evaluate(board), engine.network.evaluate(board)
    np.testing.assert_allclose(found.policy, expected.policy, atol=1e-3)
    assert found.win_rate.black == pytest.approx(expected.win_rate.black, abs=1e-3)
    assert engine.network.name == engine.name == "small"
    engine.network.close()
    assert engine.play(board, keima.Limit(visits=4)).move, "the engine's network stays open"


def test_pictures_are_those_of_the_command(engine):
    board = keima.Board(9, moves="E5 C3")
    for kind in ("policy", "figure5", "layers"):
        assert engine.picture(board, kind, visits=8).startswith("<svg")
    with pytest.raises(ValueError, match="kind is 'nose', expected one of value"):
        engine.picture(board, "nose")
    with pytest.raises(ValueError, match="no layer 'nose' in network small"):
        engine.picture(board, "layers", layer="nose")


def test_without_a_network_there_is_none():
    with (
        keima.Engine("none", seed=1, threads=1) as engine,
        pytest.raises(ValueError, match="the engine has no network"),
    ):
        _ = engine.network
    with pytest.raises(ValueError, match="the engine is closed"):
        _ = engine.network
