"""Boards as SVG."""

from xml.etree import ElementTree

import pytest

from engine.go.geometry import BLACK, EMPTY, WHITE
from engine.pictures.boards import board, diagram, thumbnail


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
