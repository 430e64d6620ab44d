"""Pictures of hidden layers: bytes, scales and messages."""

import base64

import numpy as np
import pytest

from engine.features.encoder import ENCODERS, inputs
from engine.go.game import Game
from engine.go.geometry import BLACK, from_vertex
from engine.insight.layers import layers, picture_of
from engine.insight.raw_outputs import raw_network
from weights import find_network


def bytes_of(reply):
    """A reply's picture, uint8[C, N, N]."""
    shape = reply["channels"], reply["size"], reply["size"]
    return np.frombuffer(base64.b64decode(reply["picture"]), np.uint8).reshape(shape)


def test_zero_is_the_middle_of_a_symmetric_scale():
    largest, picture = picture_of(np.array([[-2.0, -1.0, 0.0], [0.5, 1.0, 4.0]], np.float32))
    assert largest == 4.0
    assert picture.tolist() == [[64, 96, 128], [144, 160, 255]]
    assert picture_of(np.zeros((1, 2, 2), np.float32))[1].tolist() == [[[128, 128], [128, 128]]]


def test_a_layer_is_what_the_network_computes_in_the_orientation_of_the_board():
    game, path = Game(9), find_network("default")
    game.play(BLACK, from_vertex("C8", 9))
    first = layers(path, game.position)
    assert first["layer"] == first["layers"][0] == "input planes" and first["scale"] == [-1.0, 1.0]
    planes, globals_ = inputs(ENCODERS[raw_network(path).spec.encoder], [game.position])
    np.testing.assert_array_equal(bytes_of(first) == 255, planes[0] == 1.0)
    assert any((values == 255).sum() == 1 and values[1, 2] == 255 for values in bytes_of(first))
    for name in first["layers"][1:]:
        reply = layers(path, game.position, name)
        values = raw_network(path).trace(planes, globals_).layers[name][0]
        low, high = reply["scale"]
        assert low == -high and reply["channels"] == len(values)
        assert name in reply["about"] and f"{len(values)} channels" in reply["about"]
        np.testing.assert_allclose((bytes_of(reply).astype(float) - 128) / 127 * high, values, atol=0.51 * high / 127)


def test_both_of_alphagos_networks_are_looked_into():
    reply = layers(find_network("alphago-9"), Game(9).position, "value.layers.11")
    assert reply["channels"] == 64 and {name.split(".")[0] for name in reply["layers"]} == {"policy", "value"}


def test_what_cannot_be_shown_is_one_line():
    assert layers(None, Game(9).position) == {"layers": [], "missing": "no network plays here"}
    small = "network alphago-9-sl+alphago-9-value plays boards of 9 alone, not 13"
    assert layers(find_network("alphago-9"), Game(13).position) == {"layers": [], "missing": small}
    with pytest.raises(ValueError, match=r"^no layer 'blocks.99' in network default, expected one of input planes, "):
        layers(find_network("default"), Game(9).position, "blocks.99")
