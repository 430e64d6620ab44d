"""``keima review`` with a network made of hashes: files, what is kept of earlier runs, and errors in one line."""

import json
import os
import sys

import pytest
from click.testing import CliRunner

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS
from engine.insight.analyses import Analyses
from engine.nets.fakes import HashNetwork
from engine.play.factory import Parts, new_server
from gtp.cli.review import review, thresholds_of
from gtp.startup import Analysing

GAME = b"(;SZ[5]KM[0]PB[Ann]C[ours];B[bb];W[dd];B[bd];W[db];B[cc])"
OPTIONS = ("--weights", "none", "--visits", "10")


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Runs the command in an empty folder; says what it printed."""
    parts = Parts(
        SearchOptions(threads=1, seed=7, memory=64), [HashNetwork("keima-1")], None, ENCODERS["keima-1"], None
    )
    searched = []

    def load(options, network, device):
        run.options = options
        server = new_server(parts, shared=True)
        analyses = Analyses(parts, server, 2)
        submit = analyses.submit
        analyses.submit = lambda jobs: (searched.append(len(jobs)), submit(jobs))
        return Analysing(analyses, server, 2)

    monkeypatch.setattr("gtp.cli.review.load_analysing", load)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "game.sgf").write_bytes(GAME)

    def run(*words):
        searched.clear()
        answer = CliRunner().invoke(review, [*OPTIONS, *words])
        return answer.exit_code, answer.output, sum(searched)

    return run


def test_a_game_becomes_a_page_and_a_record(command, tmp_path):
    status, said, searched = command("game.sgf", "--out", "out", "--json")
    assert (status, searched) == (0, 6) and "out/game.html" in said.replace("\\", "/")
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == [".analysis", "game.html", "game.json", "game.sgf"]
    assert json.loads((out / "game.json").read_text(encoding="utf-8"))["visits"] == 10
    record = (out / "game.sgf").read_bytes()
    assert b"SBKV" in record and b"C[ours" in record


def test_the_same_command_again_searches_nothing_and_writes_the_same(command, tmp_path):
    command("game.sgf", "--out", "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("game.*")}
    assert command("game.sgf", "--out", "out")[2] == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("game.*")} == before
    assert command("out/game.sgf", "--out", "out")[2] == 0, "a reviewed record holds the same game"
    assert (tmp_path / "out/game.sgf").read_bytes() == before["game.sgf"]


def test_reviews_lie_beside_the_first_game_unless_a_folder_is_named(command, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/other.sgf").write_bytes(GAME)
    for words, page in ((["deep/other.sgf"], "deep/reviews/other.html"), (["deep"], "deep/reviews/other.html"),
                        (["game.sgf", "deep"], "reviews/index.html")):  # fmt: skip
        status, said, _ = command(*words)
        assert (status, said.strip().splitlines()[-1].replace("\\", "/")) == (0, page)
        assert (tmp_path / page).exists()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(command, tmp_path):
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked/game.sgf").write_bytes(GAME)
    (tmp_path / "locked").chmod(0o500)
    status, said, _ = command("locked/game.sgf")
    assert status == 1 and "expected a folder to write into, see --out" in said


def test_no_file_that_is_not_a_reviews_is_written_over(command, tmp_path):
    """Pages, JSON and pictures of the user's own in the folder of reviews, not only games."""
    (tmp_path / "other.sgf").write_bytes(GAME.replace(b"cc", b"ca"))
    (tmp_path / "out").mkdir()
    own = {
        "game.html": b"<title>My film: review</title>",
        "other-winrate.svg": b"<svg/>",
        "index.html": b"<title>Hello</title>",
    }
    for name, data in own.items():
        (tmp_path / "out" / name).write_bytes(data)
    for _ in range(2):
        status, said, _ = command("game.sgf", "other.sgf", "--out", "out", "--svg", "--json")
        assert status == 0 and "index-review.html" in said
        assert {name: (tmp_path / "out" / name).read_bytes() for name in own} == own
        pages = sorted(path.name for path in (tmp_path / "out").glob("*.html"))
        assert pages == ["game-review.html", "game.html", "index-review.html", "index.html", "other-review.html"]
    (tmp_path / "out/game.json").write_bytes(b"{}")
    (tmp_path / "out/game.html").unlink()
    command("game.sgf", "--out", "out", "--json")
    assert (tmp_path / "out/game.json").read_bytes() == b"{}"


def test_help_lists_the_options_of_a_review_and_the_others_are_accepted(command):
    context = review.make_context("review", [], resilient_parsing=True)
    listed = [option for option in review.get_params(context) if option.get_help_record(context)]
    assert len(listed) <= 15
    assert command("game.sgf", "--c-puct", "2.5")[0] == 0 and command.options.c_puct == 2.5


def test_a_shipped_player_brings_its_options(command):
    command("game.sgf", "--out", "out", "--weights", "alphago-9")
    assert command.options.rollout_weight == 0.5


def test_several_games_get_an_index_and_what_is_broken_is_named(command, tmp_path):
    (tmp_path / "other.sgf").write_bytes(GAME.replace(b"cc", b"ca"))
    (tmp_path / "broken.sgf").write_bytes(b"(;SZ[5]")
    status, said, _ = command(".", "--out", "out")
    assert status == 1 and "broken.sgf: SGF:" in said
    index = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert 'href="game.html"' in index and 'href="other.html"' in index
    assert "broken" not in index


def test_no_game_is_written_over(command, tmp_path):
    """A file of several games, reviewed where it lies, held the first alone; a game of the same name was gone."""
    (tmp_path / "game.sgf").write_bytes(GAME + GAME.replace(b"cc", b"ca") + b"(;SZ[5];B[cc];W[cc])")
    before = (tmp_path / "game.sgf").read_bytes()
    for _ in range(2):
        assert command("game.sgf", "--out", ".")[0] == 1
        assert command(".", "--out", ".")[0] == 1
    assert (tmp_path / "game.sgf").read_bytes() == before
    names = sorted(path.name for path in tmp_path.glob("*.sgf"))
    assert names == ["game-2.sgf", "game-review.sgf", "game.sgf"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/game.sgf").write_bytes(GAME)
    command("in/game.sgf", "--out", ".")
    assert (tmp_path / "game.sgf").read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes")
def test_names_that_are_no_text_or_long_become_names(command, tmp_path):
    for name in (b"\xb0\xa1.sgf", "長".encode() * 82 + b".sgf"):
        (tmp_path / os.fsdecode(name)).write_bytes(GAME)
    status, said, _ = command(".", "--out", "out", "--json", "--svg")
    assert status == 0, said
    assert len(list((tmp_path / "out").glob("*.sgf"))) == 3


def test_rules_that_are_not_known_are_named_with_their_file(command, tmp_path):
    (tmp_path / "other.sgf").write_bytes(GAME.replace(b"SZ[5]", b"SZ[5]RU[Martian]"))
    status, said, _ = command("other.sgf", "--out", "out")
    assert status == 0 and "other: unknown rules 'Martian': reviewed under chinese rules" in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("none.sgf", "--out", "out"), "none.sgf"),
        (("game.sgf", "--out", "game.sgf"), "game.sgf"),
        (("game.sgf", "--out", "out", "--thresholds", "1,2,3"), "expected 5 rising losses in points"),
        (("game.sgf", "--out", "out", "--rules", "mine"), "no rules are called 'mine'"),
        (("game.sgf", "--out", "out", "--komi", "7.3"), "7.3"),
        (("game.sgf", "--out", "out", "--weights", "nothing.bin"), "nothing.bin"),
    ],
)
def test_wrong_input_is_one_clear_line(command, words, reason):
    status, said, _ = command(*words)
    assert status != 0 and reason in said and "Traceback" not in said


def test_thresholds_are_five_losses_that_rise():
    assert thresholds_of("0.2,0.6,1.2,4,10") == (0.2, 0.6, 1.2, 4.0, 10.0)
    for text in ("", "1", "5,4,3,2,1", "0,1,2,3,4", "a,b,c,d,e", "1,2,3,4,nan", "1,2,3,4,inf"):
        with pytest.raises(ValueError, match="expected 5 rising losses"):
            thresholds_of(text)
