"""The page of input planes names the planes of the encoders."""

import re
from itertools import pairwise

from engine.features import alphago, keima
from tests.conftest import ROOT


def rows_of(heading):
    """First and last plane of each row of the table below a heading of the page."""
    text = (ROOT / "docs" / "planes.md").read_text("utf-8").partition(f"## {heading}")[2].partition("\n## ")[0]
    found = re.findall(r"^\| [^|]+ \| (\d+)(?:-(\d+))? \|", text, re.MULTILINE)
    return [(int(first), int(last or first)) for first, last in found]


def test_the_tables_list_every_plane_once_and_in_order():
    ours = [keima.ON_BOARD, keima.OWN, keima.LIBERTIES, keima.RECENT, keima.FORBIDDEN, keima.SENSIBLE, keima.CAPTURE,
            keima.SELF_ATARI, keima.AFTER, keima.LADDER_CAPTURE]  # fmt: skip
    theirs = sorted([*alphago.FIRST_PLANE, alphago.ONES, alphago.ZEROS, alphago.BLACK_TO_MOVE])
    of_pages = rows_of("AlphaGo's"), rows_of("Our own")
    for rows, firsts, planes in zip(of_pages, (theirs, ours), (alphago.VALUE_PLANES, keima.PLANES), strict=True):
        assert [first for first, _ in rows] == firsts
        assert all(last + 1 == first for (_, last), (first, _) in pairwise(rows)) and rows[-1][1] == planes - 1
