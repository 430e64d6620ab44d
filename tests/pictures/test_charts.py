"""Charts as SVG, and drawings as files of their own."""

import io
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from engine.go.geometry import BLACK, EMPTY
from engine.pictures.boards import diagram
from engine.pictures.charts import (
    GAME_LEFT,
    GAME_WIDTH,
    GAME_WIDTH_OF_PHONES,
    HEIGHT,
    WIDTH,
    game_chart,
    interval_chart,
    line_chart,
    side_by_side,
)
from engine.pictures.drawing import COLORS, DARK, LIGHT, png, size_of, stand_alone


def test_charts_draw_what_there_is():
    assert line_chart("t", {"a": [], "b": []}, "x") == "" and interval_chart("t", [], "x") == ""
    drawn = line_chart("a < b", {"one": [(i, float(i * i)) for i in range(1000)], "flat": [(0, 2.0)]}, "step")
    assert drawn.count('fill="none"') == 2 and "a &lt; b" in drawn
    assert drawn.count("<circle") == 1, "a single point is seen"
    for chart in (drawn, interval_chart("t", [("p", 10.0, -5.0, 20.0)], "Elo")):
        for item in ElementTree.fromstring(chart).iter():
            assert all(0 <= float(item.get(name, 0)) <= WIDTH for name in ("x", "cx"))


def test_points_that_are_no_numbers_are_left_out():
    """The curves of a training that diverged."""
    values = [(0, 1.0), (1, float("inf")), (2, float("nan")), (3, 2.0)]
    assert line_chart("t", {"a": values}, "x") == line_chart("t", {"a": [values[0], values[3]]}, "x") != ""
    assert line_chart("t", {"a": values[1:3]}, "x") == ""


def test_values_outside_the_range_are_drawn_on_its_edge():
    drawn = line_chart("t", {"a": [(0, -5.0), (1, 0.5), (2, 5.0)]}, "x", (0, 1))
    heights = [float(item.get("cy")) for item in ElementTree.fromstring(drawn).findall("{*}circle")]
    assert heights == [224.0, 126.0, 28.0]
    game = game_chart("t", 2, (0, 100), ((0, "W"), (50, "50%"), (100, "B")), [(0, -50.0), (2, 150.0)])
    assert "M48.0 132.0L634.0 8.0" in game


def test_the_longest_label_of_a_lead_is_not_cut():
    """Widths of DejaVu Sans, one of the widest, in parts of the size."""
    width = 11 * sum({"W": 0.99, "+": 0.84}.get(letter, 0.64) for letter in "W+361")
    assert width <= GAME_LEFT - 4


def test_long_names_have_legends_of_fewer_columns():
    short, long = (line_chart("t", {f"{i}{name}": [(0, 1.0)] for i in range(3)}, "x") for name in ("", "n" * 40))
    assert size_of(short)[1] == HEIGHT < size_of(long)[1]
    both = side_by_side([short, "", long, short])
    places = [(item.get("x"), item.get("y")) for item in ElementTree.fromstring(both).findall("{*}svg")]
    assert places == [("0", "0"), (str(WIDTH), "0"), ("0", f"{size_of(long)[1]:g}")]


def test_every_colour_of_a_drawing_stands_in_its_file():
    chart = line_chart("t", {str(i): [(0, float(i))] for i in range(9)}, "x")
    board = diagram([BLACK] + [EMPTY] * 24, "", [7], BLACK, 8)
    bars = game_chart("t", 6, (-1, 1), ((1, "B"), (0, "0"), (-1, "W")), [(0, 0.0)], [(n, 1.0, n) for n in range(6)])
    for drawn in (chart, board, bars):
        assert set(re.findall(r"var\(--([\w-]+)\)", drawn)) <= COLORS.keys()
        root = ElementTree.fromstring(stand_alone(drawn).encode())
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and LIGHT in root[0].text and DARK in root[0].text


def test_a_png_shows_what_the_svg_shows():
    image = pytest.importorskip("matplotlib.image")
    drawn = diagram([BLACK] + [EMPTY] * 24, "")
    pixels = image.imread(io.BytesIO(png(side_by_side([drawn]))))
    height, width = pixels.shape[:2]
    assert (width, height) == (2 * WIDTH, 2 * 144)
    assert pixels[48, 72, :3] == pytest.approx(
        [int(COLORS["stone-b"][k : k + 2], 16) / 255 for k in (1, 3, 5)], abs=0.01
    )
    assert pixels[60, 10, :3] == pytest.approx([int(COLORS["board"][k : k + 2], 16) / 255 for k in (1, 3, 5)], abs=0.01)


def test_labels_of_the_x_axis_may_be_given():
    drawn = line_chart("t", {"a": [(0, 1.0), (1, 2.0), (2, 3.0)]}, "x", x_marks=[(0, "2026-01"), (2, "2026-03")])
    assert re.findall(r">(2026-..)<", drawn) == ["2026-01", "2026-03"]


@pytest.mark.parametrize("last", [1, 30, 90, 200, 400])
def test_a_chart_for_a_phone_has_room_for_its_labels(last):
    """They are at least three letters apart; dots lie on the curve."""
    marks = ((1, "B"), (0, "0"), (-1, "W"))
    for width in (GAME_WIDTH, GAME_WIDTH_OF_PHONES):
        drawn = game_chart("t", last, (-1, 1), marks, [(0, 0.0), (last, 1.0)], dots=[(last, 1.0, 4)], width=width)
        assert size_of(drawn) == (width, 150)
        labels = [(float(x), text) for x, text in re.findall(r'<text x="([\d.]+)" y="146"[^>]*>(\d+)<', drawn)]
        gaps = [after - before for (before, _), (after, _) in pairwise(labels)]
        assert labels[0][1] == "0" and all(gap >= 33 for gap in gaps)
        place = f'cx="{width - 6:.1f}" cy="8.0" r="4" fill="var(--k4)"'
        assert f'<circle data-move="{last}" {place}/>' in drawn
