"""The pages in docs/clients: their transcripts are what the engine says, and their options are options."""

import re
import shlex

import pytest

from gtp.cli.play import gtp
from tests.conftest import ROOT

PAGES = sorted((ROOT / "docs" / "clients").glob("*.md"))
CHANGING = {
    r"(\ninfo [^\n]*)+\n": " info ... ",
    r"\b[A-HJ-T](1\d|\d)\b": "VERTEX",
    r"\b(PASS|resign)\b": "VERTEX",
    r"\b[BW]\+\d+(\.5)?|= 0$": "SCORE",
    r"\b\d+\.\d{3}\b": "SECONDS",
}
"""What differs from run to run"""


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
