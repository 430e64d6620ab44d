"""Boards as SVG."""

from xml.etree import ElementTree

import pytest

from engine.go.geometry import BLACK, EMPTY, WHITE
from engine.pictures.boards import CELL, SHAPES, board, diagram, heat_map, mark, owners, thumbnail
from engine.pictures.drawing import COLORS, png, stand_alone


@pytest.mark.parametrize(("size", "count"), [(5, 0), (7, 4), (9, 5), (13, 9), (19, 9), (10, 4)])
def test_boards_have_their_star_points(size, count):
    assert board(size, "", "").count("<circle") == count


def test_a_line_is_numbered_on_stones_in_turns_and_the_move_played_is_marked():
    colors = [EMPTY] * 25
    colors[0] = BLACK
    drawn = diagram(colors, "a < b", [6, -1, 7, 6, 0], WHITE, 12)
    root = ElementTree.fromstring(drawn)
    texts = [text.text for text in root.findall("{*}text")]
    assert texts == ["1", "3"], "a pass has no stone, and a point that has one keeps it"
    fills = [one.get("fill") for one in root.findall("{*}circle")]
    assert fills == ["var(--stone-b)", "var(--stone-w)", "var(--stone-w)"]
    assert root.find("{*}title").text == "a < b" and "var(--k5)" in drawn
    ring = diagram(colors, "", [6], WHITE, 6)
    assert ring.count("<circle") == 3 and ring.count("<path") == 1, "a ring where the line has the move too"


def test_a_thumbnail_has_a_stone_for_each_colour_and_few_characters():
    colors = [EMPTY] * 361
    colors[0], colors[20], colors[360] = BLACK, WHITE, BLACK
    root = ElementTree.fromstring(thumbnail(colors, "the end"))
    stones = {path.get("stroke"): path.get("d") for path in root.findall("{*}path")[1:]}
    assert stones == {"var(--stone-b)": "M0.5 0.5h0M18.5 18.5h0", "var(--stone-w)": "M1.5 1.5h0"}
    assert root.find("{*}title").text == "the end" and root.get("viewBox") == "0 0 19 19"
    full = thumbnail([BLACK, WHITE] * 180 + [EMPTY], "")
    assert len(full) < len(diagram([BLACK, WHITE] * 180 + [EMPTY], "")) / 5
    assert thumbnail([EMPTY] * 4, "").count("<path") == 1


def rects(drawn):
    """Width, colour and opacity of the squares of a drawing."""
    found = ElementTree.fromstring(f"<g>{drawn}</g>").findall("rect")
    return [(float(one.get("width")), one.get("fill"), float(one.get("opacity"))) for one in found]


def test_a_heat_map_is_relative_to_the_largest_value():
    assert rects(heat_map([0.0, 0.2, 0.05, -1.0], 2)) == [
        (CELL - 2, "var(--heat)", 0.9),
        (CELL - 2, "var(--heat)", 0.45),
    ]
    assert rects(heat_map([0.0] * 4, 2)) == []


def test_owners_of_dead_stones_are_drawn_above_them():
    below, above = owners([1.0, -0.25, 0.05, 1.0], [EMPTY, EMPTY, EMPTY, WHITE], 2)
    assert rects(below) == [(20, "var(--stone-b)", 0.55), (10, "var(--stone-w)", 0.55)]
    assert rects(above) == [(11, "var(--stone-b)", 1.0)]
    assert rects(owners([1.0], [BLACK], 1)[0]) == [(20, "var(--stone-b)", 0.55)], "a living stone hides its own"


def test_marks_are_shapes_or_escaped_texts_in_a_colour_that_is_seen():
    for shape in SHAPES:
        assert "<text" not in mark(0, 9, EMPTY, shape) and 'stroke="var(--line)"' in mark(0, 9, EMPTY, shape)
    assert 'stroke="var(--stone-w)"' in mark(0, 9, BLACK, "cross") and "&lt;b&gt;" in mark(0, 9, EMPTY, "<b>")
    sizes = [float(ElementTree.fromstring(mark(0, 9, BLACK, text)).get("font-size")) for text in ("A", "123", "12.3%")]
    assert sizes == [11, 11, 8]


def test_a_diagram_has_all_its_layers():
    colors = [EMPTY] * 25
    colors[0], colors[1], colors[2] = BLACK, WHITE, BLACK
    drawn = diagram(
        colors,
        "",
        last=0,
        numbers={1: "7"},
        marks={2: "circle", 24: "A"},
        arrows=[(5, 24)],
        heat=[1.0] * 25,
        upon="<g/>",
    )
    root = ElementTree.fromstring(drawn)
    assert [text.text for text in root.findall("{*}text")] == ["7", "A"]
    rings = [one.get("stroke") for one in root.findall("{*}circle") if one.get("fill") == "none"]
    assert rings == ["var(--stone-w)", "var(--stone-w)"], "of the last move, and the mark"
    assert len(root.findall("{*}rect")) == 1 + 25 and len(root.findall("{*}g")) == 3 and drawn.endswith("<g/></svg>")
    hidden = diagram(colors, "", last=0, marks={0: "B"})
    assert 'fill="none" stroke="var(--stone-w)"' not in hidden, "a mark is shown in place of the last move's circle"


def test_a_picture_has_the_colours_of_both_themes_for_itself_alone(tmp_path):
    picture = stand_alone(diagram([BLACK] + [EMPTY] * 24, "", marks={0: "triangle"}, arrows=[(0, 9)]), 300)
    root = ElementTree.fromstring(picture)
    rules = root.find("{*}style").text.replace("}}", "}").split("{")
    assert rules[0] == "svg[data-keima]" and rules[1].endswith("@media(prefers-color-scheme:dark)")
    assert root.get("width") == "300" and root.get("data-keima") == "" and COLORS["board"] in picture
    assert picture._repr_svg_() == picture and repr(picture) == f"<Picture: {len(picture)} characters of SVG>"
    picture.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == picture
    pytest.importorskip("matplotlib")
    picture.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == png(picture)
