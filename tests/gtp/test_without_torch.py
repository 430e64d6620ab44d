"""On a processor nothing that plays, analyses or reviews imports torch; what needs it says so in one line."""

import json
import subprocess
import sys

import pytest

from tests.rooms import ROOT

WITHOUT = (
    *(sys.executable, "-P", "-c"),
    "import sys\n"
    "class Torch:\n"
    "    def find_spec(self, name, *_):\n"
    "        if name == 'torch':\n"
    "            print('torch is asked for', file=sys.stderr)\n"
    "            raise ImportError('it is broken', name='torch')\n"
    "sys.meta_path.insert(0, Torch())\n"
    "from gtp.cli import main; main(sys.argv[1:])",
)
"""The command ``keima`` where torch cannot be imported"""
QUERY = {"id": "q", "moves": [["b", "E5"]], "rules": "chinese", "boardXSize": 9, "boardYSize": 9, "maxVisits": 5}


def ended(*words, text=""):
    return subprocess.run([*WITHOUT, *words], input=text, cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.fixture
def sgf(tmp_path):
    path = tmp_path / "game.sgf"
    path.write_text("(;GM[1]FF[4]SZ[9]KM[7];B[ee];W[gc];B[cg];W[gg])")
    return path


def test_keima_plays_without_torch(tiny_network):
    found = ended("gtp", "--weights", str(tiny_network), "--visits", "5", "--size", "9", text="genmove b\nquit\n")
    assert found.returncode == 0 and found.stdout.startswith("= ") and "torch" not in found.stderr, found.stderr


def test_keima_analyses_without_torch(tiny_network):
    found = ended("analysis", "--weights", str(tiny_network), text=json.dumps(QUERY) + "\n")
    answer = json.loads(found.stdout)
    assert answer["id"] == "q" and answer["moveInfos"] and "torch" not in found.stderr, found.stderr


def test_keima_reviews_without_torch(tiny_network, sgf, tmp_path):
    found = ended("review", str(sgf), "--weights", str(tiny_network), "--visits", "5", "--out", str(tmp_path / "out"))
    assert found.returncode == 0 and "torch" not in found.stderr, found.stderr


def test_networks_are_described_without_torch(tiny_network):
    found = ended("weights", "show", str(tiny_network))
    assert found.returncode == 0 and "multiply-adds" in found.stdout and "torch" not in found.stderr, found.stderr


@pytest.mark.parametrize("words", [["train", "dual"], ["gtp", "--device", "cuda"]])
def test_what_needs_torch_says_what_to_install(words, tiny_network):
    more = ["--weights", str(tiny_network)] if words[0] == "gtp" else []
    found = ended(*words, *more, text="genmove b\nquit\n")
    said = found.stderr.splitlines()[-1]
    assert found.returncode == 1 and "needs PyTorch" in said and said.endswith("expected: pip install torch")
    assert "Traceback" not in found.stderr
