"""Candidate moves on a board, and the top of a search tree."""

import re
from pathlib import Path

import pytest

from engine.go.geometry import BLACK, WHITE
from engine.pictures.candidates import PERCENT_A_POINT, THRESHOLDS, Mark, candidates_on
from engine.pictures.trees import Drawn, drawn_tree

HELP = Path(__file__).resolve().parents[2] / "gtp" / "web" / "help.js"


@pytest.mark.parametrize(
    ("points", "win_rate", "text", "color"),
    [(0.0, 0.0, "0.0", 0), (0.19, 0.5, "0.2", 0), (0.2, 0.0, "0.2", 1), (4.0, 0.0, "4.0", 4), (12.4, 0.0, "12", 5),
     (None, 0.0, "0%", 0), (None, 0.05, "5%", 3), (None, 0.5, "50%", 5)],
)  # fmt: skip
def test_a_candidate_has_its_loss_and_a_colour(points, win_rate, text, color):
    mark = Mark(0, points, win_rate)
    assert (mark.text, mark.color) == (text, color)


def test_the_page_of_play_has_the_same_colours():
    text = HELP.read_text(encoding="utf-8")
    found = re.search(r"THRESHOLDS = \[(.*?)\]", text)[1]
    assert tuple(map(float, found.split(","))) == THRESHOLDS
    assert float(re.search(r"PERCENT_A_POINT = ([\d.]+)", text)[1]) == PERCENT_A_POINT


def test_the_best_candidate_is_the_largest():
    drawn = candidates_on([BLACK, *[0] * 23, WHITE], [Mark(6, 0.0, 0.0), Mark(7, 1.5, 0.1)], "title")
    assert drawn.count("var(--stone-") == 2 and "<title>title</title>" in drawn
    assert 'r="11" fill="var(--k0)"' in drawn and 'r="10" fill="var(--k3)"' in drawn


def test_a_parent_is_above_the_middle_of_its_children():
    nodes = [
        Drawn(-1, 0, "Black", 10, 1.0, 0.5, WHITE),
        Drawn(0, 1, "E5", 6, 0.6, 0.5, BLACK),
        Drawn(0, 1, "C3", 3, 0.3, 0.5, BLACK),
        Drawn(1, 2, "C3", 3, 0.3, 0.25, WHITE),
        Drawn(1, 2, "pass", 2, 0.2, 0.5, WHITE),
    ]
    places = [
        (float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawn_tree(nodes, "<x>"))
    ]
    assert places[1][0] == (places[3][0] + places[4][0]) / 2 and places[0][0] == (places[1][0] + places[2][0]) / 2
    assert places[3][0] < places[4][0] < places[2][0]
    assert [y for _, y in places] == sorted(y for _, y in places) and places[3][1] == places[4][1]
    assert "3 · 25%" in drawn_tree(nodes, "<x>") and "&lt;x&gt;" in drawn_tree(nodes, "<x>")
