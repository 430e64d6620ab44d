"""Panels: heat, ownership and layers as SVG and PNG."""

import io
from base64 import b64decode
from xml.etree import ElementTree

import numpy as np
import pytest

from engine.go.geometry import BLACK, EMPTY, WHITE
from engine.pictures.drawing import png, stand_alone
from engine.pictures.panels import hot, layer_drawing, line_board, numbers_board, ownership_board, panel


def test_shares_are_hot_by_their_root_and_small_ones_cold():
    found = hot([(3, 0.16), (1, 0.64), (7, 0.0009), (-1, 0.2)], is_rate=False)
    assert [(index, number) for index, number, _ in found] == [(1, 0.64), (-1, 0.2), (3, 0.16)]
    assert [heat for _, _, heat in found] == pytest.approx([1.0, 0.5590, 0.5], abs=1e-4)


def test_win_rates_are_hot_by_their_distance_from_the_best():
    found = hot([(0, 0.50), (1, 0.44), (2, 0.30)], is_rate=True)
    assert [index for index, _, _ in found] == [0, 1], "0.30 is 15 points below the best"
    assert found[1][2] == pytest.approx(1 - 0.06 / 0.15)
    assert hot([], is_rate=True) == []


def test_a_board_has_numbers_in_percent_and_one_ring():
    drawn = ElementTree.fromstring(numbers_board([BLACK] + [EMPTY] * 24, [(6, 0.556), (7, 0.55)], 6, True, "a < b"))
    assert [one.text for one in drawn.findall("{*}text")] == ["56", "55"]
    assert len(drawn.findall("{*}circle[@stroke='var(--ring)']")) == 1
    assert drawn.find("{*}title").text == "a < b"
    assert "var(--ring)" not in numbers_board([EMPTY] * 25, [], -1, False, "")


def test_a_line_has_numbered_stones():
    drawn = ElementTree.fromstring(line_board([EMPTY] * 25, [6, -1, 7], WHITE, ""))
    assert [one.text for one in drawn.findall("{*}text")] == ["1", "3"]
    assert line_board([EMPTY] * 25, [], BLACK, "").count("<circle") == 0


def test_owners_are_below_living_stones_and_above_dead_ones():
    colors, owners = [EMPTY] * 25, [0.0] * 25
    colors[0], owners[0], owners[1] = WHITE, 0.81, -0.05
    kinds = [one.tag.rpartition("}")[2] for one in ElementTree.fromstring(ownership_board(colors, owners, ""))]
    assert kinds[-2:] == ["circle", "rect"], "a dead stone"
    owners[0] = -0.81
    kinds = [one.tag.rpartition("}")[2] for one in ElementTree.fromstring(ownership_board(colors, owners, ""))]
    assert kinds[-2:] == ["rect", "circle"], "a living one; the point of unclear ownership has no square"


def test_a_layer_is_a_picture_in_the_drawing():
    """The pixels of the PNG, read by matplotlib, which has another reader."""
    image = pytest.importorskip("matplotlib.image")
    picture = np.full((3, 2, 2), 128, np.uint8)
    picture[0, 0, 0], picture[1, 1, 1] = 255, 1
    drawn = layer_drawing(picture, 128, 127, "layer < 3")
    (element,) = ElementTree.fromstring(drawn).findall("{*}image")
    pixels = np.rint(255 * image.imread(io.BytesIO(b64decode(element.get("href").partition(",")[2])))).astype(int)
    assert pixels.shape == (2, 8, 3)
    assert pixels[0, 0].tolist() == [232, 89, 12] and pixels[1, 4].tolist() == [47, 127, 209]
    assert pixels[1, 0].tolist() == [255] * 3 and pixels[0, 2].tolist() == [190] * 3


def test_a_panel_is_a_file_in_both_forms():
    pytest.importorskip("matplotlib")
    inner = layer_drawing(np.full((2, 5, 5), 128, np.uint8), 128, 127, "")
    drawn = panel(inner, "Layer <3>", "2 channels")
    assert ElementTree.fromstring(stand_alone(drawn).encode()).findall("{*}text")[0].text == "Layer <3>"
    assert png(drawn).startswith(b"\x89PNG")
