"""The drawings of the scripts in a browser are those of Python."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from engine import pictures
from engine.pictures.boards import LAYERS, board, owners
from engine.pictures.charts import game_chart

HERE = Path(pictures.__file__).parent
SIZES = (2, 5, 7, 8, 9, 13, 19, 25)
RATES = [(0, 46.8), (1, 51.23), (3, 100.0), (7, 3.7), (61, 77.77)]
LEADS = [(0, -1.04), (2, 3.27), (150, 80.0)]
RATE_MARKS = ((0, "W"), (50, "50%"), (100, "B"))
LEAD_MARKS = ((15, "B+15"), (0, "0"), (-15, "W+15"))
CHARTS = (
    ("Win rate", 61, (0, 100), RATE_MARKS, RATES, 'id="g"'),
    ("Lead", 200, (-15, 15), LEAD_MARKS, LEADS, ""),
    ("Lead", 9, (-15, 15), LEAD_MARKS, [(4, 2.3)], ""),
    ("Lead", 0, (-15, 15), LEAD_MARKS, [], ""),
)
OWNED, COLORS = [1.0, -0.3, 0.05, 0.75, -1.0, 0.4, -0.11, 0.0, 0.9], [1, 0, 0, 2, 1, 0, 2, 0, 0]
ASK = """<script>
const shown = document.createElement("div");
shown.innerHTML = boardText(3);
const drawn = [%s.map((size) => boardText(size, "t", 'id="b"')), %s.map((words) => gameChart(...words)),
  newBoard(shown.firstChild, 3).owners(%s, %s)];
const found = document.createElement("pre");
found.id = "found"; found.textContent = JSON.stringify(drawn); document.body.append(found);
</script>"""
WAIT_S = 300.0


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The boards and charts of the scripts."""
    folder = tmp_path_factory.mktemp("scripts")
    text = "".join(
        f"<script>{(HERE / name).read_text(encoding='utf-8')}</script>" for name in ("board.js", "charts.js")
    )
    page = folder / "page.html"
    page.write_text(
        f"<body>{text}{ASK % tuple(map(json.dumps, (SIZES, CHARTS, OWNED, COLORS)))}</body>", encoding="utf-8"
    )
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'user'}", "--dump-dom"]
    answer = subprocess.run(
        [str(shutil.which("chromium")), *words, page.as_uri()],
        capture_output=True, text=True, timeout=WAIT_S, check=True,
    )  # fmt: skip
    found = re.search(r'<pre id="found">(.*?)</pre>', answer.stdout, re.DOTALL)
    assert found, answer.stdout[-500:]
    return json.loads(unescape(found[1]))


def parts(text):
    """The words of a drawing, and its numbers."""
    return re.sub(r"-?\d+(\.\d+)?", "#", " ".join(text.split())), [
        float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)
    ]


@pytest.mark.clients("chromium")
def test_boards_are_the_same(drawn):
    for size, text in zip(SIZES, drawn[0], strict=True):
        assert parts(text) == parts(board(size, LAYERS, "t", 'id="b"'))


@pytest.mark.clients("chromium")
def test_charts_are_the_same(drawn):
    """A tenth may differ, where two tenths are as near."""
    for (title, last, ys, marks, values, attributes), text in zip(CHARTS, drawn[1], strict=True):
        words, numbers = parts(game_chart(title, last, ys, marks, values, attributes=attributes))
        assert parts(text)[0] == words
        assert parts(text)[1] == pytest.approx(numbers, abs=0.11)


@pytest.mark.clients("chromium")
def test_owners_are_the_same(drawn):
    """Lengths are rounded to a tenth, and without an opacity a square is opaque."""
    for text, ours in zip(drawn[2], owners(OWNED, COLORS, 3), strict=True):
        words, numbers = parts(ours.replace(' opacity="1.00"', ""))
        assert parts(text.replace('".55"', '"0.55"'))[0] == words
        assert parts(text.replace('".55"', '"0.55"'))[1] == pytest.approx(numbers, abs=0.06)
