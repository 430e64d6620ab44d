"""docs/options.md gives a reason for every option of search and play, and for nothing else."""

import re
from pathlib import Path

import pytest

from engine.config import REMOVED, PlayOptions, SearchOptions
from engine.config.declaration import sections

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)


def reasons() -> dict[str, list[tuple[str, str]]]:
    """Heading -> the options below it with their reasons."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {heading: ROW.findall(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def test_every_option_has_one_row_in_the_order_of_its_declaration():
    declared = {heading: [item.name for item in items] for heading, items in sections(SearchOptions)}
    (_, of_play), *others = sections(PlayOptions)
    declared["Play"] = [item.name for item in of_play]
    declared |= {heading: [item.name for item in items] for heading, items in others}
    assert {heading: [name for name, _ in rows] for heading, rows in reasons().items()} == declared


@pytest.mark.parametrize("rows", reasons().values(), ids=reasons())
def test_a_reason_names_a_paper_a_client_a_measurement_or_who_needs_it(rows):
    for name, reason in rows:
        assert re.search(r"Alpha(Go|Zero)|Gumbel|KataGo|clients/|lab/|keima|signature|Analyses", reason), name


def test_an_option_that_was_removed_has_no_row():
    assert not {name for rows in reasons().values() for name, _ in rows} & set(REMOVED)
