"""Boards as SVG."""

from xml.etree import ElementTree

import pytest

from engine.go.geometry import BLACK, EMPTY, WHITE
from engine.pictures.boards import board, diagram


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
