"""``keima picture``: files of each kind, and errors in one line."""

from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from engine.insight.position_pictures import KINDS
from gtp.cli import main

GAME = b"(;SZ[9]KM[7];B[ee];W[ec];B[gd];W[dg])"


@pytest.fixture
def draw(tmp_path, monkeypatch):
    """Runs the command in a folder with a game; says its status and what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "game.sgf").write_bytes(GAME)

    def run(*words):
        answer = CliRunner().invoke(main, ["picture", "game.sgf", "--weights", "small", "--visits", "20", *words])
        return answer.exit_code, answer.output

    return run


def test_every_kind_is_a_file_beside_the_game(draw, tmp_path):
    words = [word for kind in KINDS if kind != "q-rollouts" for word in ("--kind", kind)]
    status, said = draw(*words, "--move", "2")
    assert status == 0, said
    for kind in KINDS:
        path = tmp_path / f"game-{kind}.svg"
        assert path.exists() == (kind != "q-rollouts")
        if path.exists():
            root = ElementTree.fromstring(path.read_bytes())
            # The figure's six boards stand on one sheet.
            assert len(root.findall("{*}svg")) == (6 if kind == "figure5" else 1)


def test_rollouts_are_drawn_where_the_search_has_them(draw, tmp_path):
    status, said = draw("--kind", "q-rollouts", "--out", "q.svg")
    assert status == 1 and "q-rollouts: no rollouts in this search: --rollout-weight 0.5 adds them" in said
    status, said = draw("--kind", "q-rollouts", "--out", "q.svg", "--rollout-weight", "0.5")
    assert status == 0 and (tmp_path / "q.svg").exists()


def test_a_picture_as_png(draw, tmp_path):
    pytest.importorskip("matplotlib")
    assert draw("--kind", "policy", "--out", "p.png")[0] == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words, reason", [
    (("--out", "a.gif"), "a.gif: expected a file name that ends in .svg or .png"),
    (("--out", "a.svg", "--kind", "pv", "--kind", "policy"), "--out is one file, 2 pictures are wanted"),
    (("--move", "9"), "move 9 of a game of 4 moves"),
    (("--kind", "layers", "--layer", "nose"), "no layer 'nose' in network small, expected one of input planes, "),
])  # fmt: skip
def test_wrong_words_are_refused_in_one_line(draw, words, reason):
    status, said = draw(*words)
    assert status == 1 and reason in said and "Traceback" not in said
