"""The pages in docs/clients: their transcripts are what the engine says, and their options are options."""

import json
import re
import shlex

import pytest

from gtp.cli.play import gtp
from tests.conftest import ROOT

PAGES = sorted((ROOT / "docs" / "clients").glob("*.md"))
CHANGING = {
    r"(\ninfo [^\n]*)+\n": " info ... ",
    r"\n\{[^\n]*\}\n": " {...} ",
    r"\b[A-HJ-T](1\d|\d)\b": "VERTEX",
    r"\b(PASS|resign)\b": "VERTEX",
    r"\b[BW]\+\d+(\.5)?|= 0$": "SCORE",
    r"\b\d+\.\d{3}\b": "SECONDS",
}
"""What differs from run to run"""
OGS_CLOCKS = {
    "simple": {"per_move_time_range"},
    "byoyomi": {"main_time_range", "period_time_range", "periods_range"},
    "fischer": {"initial_time_range", "max_time_range", "time_increment_range"},
}
"""What gtp2ogs wants to know of each clock. Source: gtp2ogs 9.0.1, schema/Config.schema.json"""


def form(reply):
    """A reply without what its search has found."""
    for pattern, word in CHANGING.items():
        reply = re.sub(pattern, word, reply)
    return reply


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_transcripts_are_what_the_engine_says(engine, page):
    (block,) = re.findall(r"```gtp\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = block.splitlines()
    assert len(lines) >= 10
    for sent, expected in zip(lines[::2], lines[1::2], strict=True):
        assert sent.startswith("< ") and expected.startswith("> ")
        assert form(engine.ask(sent[2:])) == form(expected[2:]), sent
        if "genmove" in sent:
            # The page's game goes on, not this one.
            assert engine.ask("undo") == "="
            color = re.search(r"genmove\w* (\w+)", sent)[1]
            assert engine.ask(f"play {color} {expected.split()[-1]}") == "="


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_the_options_that_are_shown_exist(page):
    text = re.sub(r'", "', " ", page.read_text(encoding="utf-8")).replace("\n--", " --")
    shown = re.findall(r"keima(?:\.exe)? gtp((?: --?[^\s`\"\]]+(?: [^\s`\"\]\\-][^\s`\"\]]*)?)+)", text)
    for options in shown:
        if "--help" in options:
            continue
        gtp.make_context("gtp", shlex.split(re.sub(r"\bFILE\b", "none", options)), resilient_parsing=False)


def test_the_configuration_of_gtp2ogs_is_complete():
    """It refuses a clock without all its ranges, and plays three games at once at speeds that are left out."""
    text = (ROOT / "docs" / "clients" / "ogs.md").read_text(encoding="utf-8")
    block = re.search(r"```\n(\{.*?)```", text, re.DOTALL)[1]
    # JSON5: keys without quotation marks, and commas behind the last.
    config = json.loads(re.sub(r",(\s*[}\]])", r"\1", re.sub(r"([{,]\s*)(\w+):", r'\1"\2":', block)))
    speeds = {speed: config[f"allowed_{speed}_settings"] for speed in ("live", "rapid", "correspondence")}
    assert speeds["live"].pop("concurrent_games") == 1
    assert [speeds["rapid"], speeds["correspondence"]] == [None, None]
    assert {name: set(clock) for name, clock in speeds["live"].items()} == OGS_CLOCKS
    assert config["allowed_board_sizes"] == [9, 13, 19]
