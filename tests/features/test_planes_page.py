"""The page of input planes, and the names of planes and global values, name those of the encoders."""

import re
from itertools import pairwise

import pytest

from engine.features import alphago, keima
from engine.features.encoder import ENCODERS, inputs
from engine.go.game import Game
from tests.conftest import ROOT


def rows_of(heading):
    """Feature, first and last plane of each row of the table below a heading of the page."""
    text = (ROOT / "docs" / "planes.md").read_text("utf-8").partition(f"## {heading}")[2].partition("\n## ")[0]
    found = re.findall(r"^\| ([^|]+) \| (\d+)(?:-(\d+))? \|", text, re.MULTILINE)
    return [(feature, int(first), int(last or first)) for feature, first, last in found]


def test_the_tables_list_every_plane_once_and_in_order():
    ours = [keima.ON_BOARD, keima.OWN, keima.LIBERTIES, keima.RECENT, keima.FORBIDDEN, keima.SENSIBLE, keima.CAPTURE,
            keima.SELF_ATARI, keima.AFTER, keima.LADDER_CAPTURE]  # fmt: skip
    theirs = sorted([*alphago.FIRST_PLANE, alphago.ONES, alphago.ZEROS, alphago.BLACK_TO_MOVE])
    of_pages = rows_of("AlphaGo's"), rows_of("Our own")
    for rows, firsts, planes in zip(of_pages, (theirs, ours), (alphago.VALUE_PLANES, keima.PLANES), strict=True):
        assert [first for _, first, _ in rows] == firsts
        assert all(last + 1 == first for (*_, last), (_, first, _) in pairwise(rows)) and rows[-1][2] == planes - 1


def test_planes_have_the_names_of_the_page():
    for heading, names in (("AlphaGo's", alphago.PLANE_NAMES), ("Our own", keima.PLANE_NAMES)):
        for feature, first, last in rows_of(heading):
            assert {name.partition(":")[0] for name in names[first : last + 1]} == {feature}


@pytest.mark.parametrize("name", ENCODERS)
def test_every_plane_and_global_value_has_a_name_of_its_own(name):
    encoder = ENCODERS[name]
    for names, count in ((encoder.plane_names, encoder.planes), (encoder.global_names, encoder.globals)):
        assert len({*names}) == len(names) == count


def test_boards_before_are_named_in_their_order():
    """The first stone is on the own planes of every board since it was played, seen by its own side."""
    game = Game(9)
    for point in (11, 15, 61, 65):
        game.play(game.to_move, point)
    for name, first in (("zero-17", "own stones: now"), ("leela-18", "own stones: now")):
        planes, _ = inputs(ENCODERS[name], [game.position])
        shown = [one for one, plane in zip(ENCODERS[name].plane_names, planes[0], strict=True) if plane.any()]
        assert shown[0] == first and {"own stones: 3 moves ago", "opponent's stones: 2 moves ago"} <= {*shown}
        assert "own stones: 4 moves ago" not in shown and "opponent's stones: 3 moves ago" not in shown
        assert "Black to move" in shown and "White to move" not in shown
