"""The pages in docs/clients: their transcripts are what the engine says, and their options are options."""

import json
import re
import shlex

import pytest

from gtp.cli.gtp import gtp
from tests.conftest import ROOT
from tests.gtp.json_talk import Talk

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
PLAIN = {ROOT / "docs" / "clients" / f"{name}.md" for name in ("README", "katrain", "ogatak")}
"""Pages that show no options of ``keima gtp``"""


def form(reply):
    """A reply without what its search has found."""
    for pattern, word in CHANGING.items():
        reply = re.sub(pattern, word, reply)
    return reply


def transcript(page, kind):
    """The lines of a page's transcript; none where it has none of this kind."""
    blocks = re.findall(rf"```{kind}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) <= 1
    return blocks[0].splitlines() if blocks else []


GTP_PAGES = [page for page in PAGES if transcript(page, "gtp")]
JSON_PAGES = [page for page in PAGES if transcript(page, "analysis")]


def test_every_page_has_a_transcript():
    assert {*GTP_PAGES, *JSON_PAGES} == set(PAGES)


@pytest.mark.parametrize("page", JSON_PAGES, ids=lambda page: page.stem)
def test_transcripts_of_json_are_what_the_engine_says(page):
    """As far as keys and plain values: numbers of a search are left out on the page."""
    lines, talk = transcript(page, "analysis"), Talk()
    assert len(lines) >= 6
    try:
        for count, (sent, expected) in enumerate(zip(lines[::2], lines[1::2], strict=True), 1):
            assert sent.startswith("< ") and expected.startswith("> ")
            talk.engine.take(sent[2:])
            said = talk.lines(count)[-1]
            shown = json.loads(expected[2:].replace("[...]", "[]").replace("{...}", "{}"))
            assert list(said) == list(shown), "in KataGo's order"
            plain = {key: value for key, value in shown.items() if value not in ([], {}, "...")}
            assert {key: said[key] for key in plain} == plain
    finally:
        talk.engine.close()
        talk.server.close()


@pytest.mark.parametrize("page", GTP_PAGES, ids=lambda page: page.stem)
def test_transcripts_are_what_the_engine_says(engine, page):
    lines = transcript(page, "gtp")
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
    shown = re.findall(r"(?:keima(?:\.exe)? |`)gtp((?: --?[^\s`\"\]]+(?: [^\s`\"\]\\-][^\s`\"\]]*)?)+)", text)
    assert bool(shown) == (page not in PLAIN)
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
