"""The pictures of how the engine thinks in a real browser: panels, tree, layers; fixed numbers, no server."""

import base64
import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import engine.pictures
import gtp.web
from engine.go.geometry import EMPTY
from engine.pictures.panels import numbers_board

SCRIPTS, PAGE = Path(engine.pictures.__file__).parent, Path(gtp.web.__file__).parent
SIZE, WAIT_S = 9, 300.0
BOARD = "." * 30 + "bw" + "." * 49
THINKING = {
    "toMove": "white",
    "values": {"text": "toy", "points": [[0, 0.41], [40, 0.56], [41, 0.55], [80, 0.1], [-1, 0.2]]},
    "qValue": {"text": "toy", "points": [[40, 0.5], [41, 0.52], [39, 0.3699]]},
    "qRollout": {"text": "", "points": [], "missing": "no rollouts: <b>start</b> them"},
    "policy": {"text": "toy", "points": [[40, 0.6], [41, 0.3], [-1, 0.08], [39, 0.019], [2, 0.0009], [3, 0.003]]},
    "visits": {"text": "100 visits", "points": [[40, 0.2], [41, 0.8]]},
    "line": {"text": "", "points": [], "moves": [41, 40, -1, 41, 39]},
    "best": {"values": 40, "qValue": 41, "policy": 40, "visits": 41, "line": 41},
    "tree": [
        {
            "move": 41, "color": "w", "N": 1080, "P": 0.3, "Q": 0.52,
            "children": [{"move": -1, "color": "b", "N": 20, "P": 0.1, "Q": 0.48, "children": []}],
        },
        {"move": 40, "color": "w", "N": 20, "P": 0.6, "Q": 0.5, "children": []},
    ],
}  # fmt: skip
PICTURE = np.full((3, SIZE, SIZE), 128, np.uint8)
PICTURE[0, 0, 0], PICTURE[1, 8, 8], PICTURE[2] = 255, 1, 160
LAYER = {
    "layers": ["a", "b"], "layer": "b", "channels": 3, "size": SIZE, "scale": [-2.5, 2.5],
    "about": "network <i>toy</i>, layer b", "picture": base64.b64encode(PICTURE.tobytes()).decode(),
}  # fmt: skip
ACT = """
const seen = window.seen, here = document.getElementById("here");
const figures = () => [...here.querySelectorAll(".panel")];
const labels = () => figures().map((one) => one.querySelector("[role=img]").getAttribute("aria-label"));
const notes = () => figures().map((one) => one.querySelector("p").textContent);
const texts = (n, layer) => [...figures()[n].querySelectorAll(`.${layer} text`)].map((one) => one.textContent);
const count = (n, layer, what) => figures()[n].querySelectorAll(`.${layer} ${what}`).length;
const pictures = newThinking(here, SIZE);
seen.empty = labels();
pictures.show(THINKING, BOARD, "white");
seen.labels = labels(); seen.notes = notes();
seen.numbers = [0, 1, 3, 4].map((n) => texts(n, "marks"));
seen.squares = [0, 1, 2, 3, 4].map((n) => count(n, "owners", "rect"));
seen.rings = figures().map((one) => one.querySelectorAll('.marks circle[stroke="var(--ring)"]').length);
seen.stones = figures().map((one) => one.querySelectorAll(".stones circle").length);
seen.drawn = figures().map((one) => [".owners", ".marks"].map((name) => one.querySelector(name).innerHTML));
seen.line = texts(5, "marks");
const stones = [...figures()[5].querySelectorAll(".marks circle[fill^='var']")];
seen.lineColors = stones.map((one) => one.getAttribute("fill"));
seen.tree = [...here.querySelectorAll(".lines-tree li")].map((one) =>
  [...one.firstElementChild.children].map((cell) => cell.textContent).join(" "));
seen.nested = here.querySelectorAll(".lines-tree ul ul > li").length;
seen.bar = here.querySelector(".lines-tree li li i").style.width;

// A second result of the same board: late, and only where something changes.
const held = figures().map((one) => [one.querySelector(".stones").firstChild, one.querySelector(".marks").firstChild]);
const next = structuredClone(THINKING);
next.visits.points = [[40, 0.7], [41, 0.3]]; next.best.visits = 40;
for (let n = 0; n < 50; n++) pictures.show(next, BOARD, "white");
seen.early = labels()[4];

pictures.showLayer(LAYER);
const canvas = here.querySelector("canvas"), pen = canvas.getContext("2d");
const pixel = (x, y) => Array.from(pen.getImageData(x, y, 1, 1).data);
seen.canvas = [canvas.width, canvas.height, pixel(0, 0), pixel(18, 8), pixel(1, 1), pixel(20, 4), pixel(9, 3)];
seen.caption = here.querySelector(".layer figcaption").textContent;
const box = canvas.getBoundingClientRect(), at = (x, y) => ({
  clientX: box.left + (box.width * (x + 0.5)) / canvas.width,
  clientY: box.top + (box.height * (y + 0.5)) / canvas.height });
canvas.dispatchEvent(new PointerEvent("pointermove", at(18, 8)));
seen.pointed = here.querySelector(".layer figcaption").textContent;
canvas.dispatchEvent(new PointerEvent("pointerleave"));
seen.left = here.querySelector(".layer figcaption").textContent;

pictures.showLayer({ layers: [], missing: "no network" });
seen.missing = [here.querySelector(".layer figcaption").textContent, canvas.hidden];

const title = here.querySelector(".panel-title"), svg = here.querySelector(".panel svg");
const small = [svg.viewBox.baseVal.width, title.getAttribute("aria-pressed")];
title.click();
seen.wide = [...small, svg.viewBox.baseVal.width, title.getAttribute("aria-pressed")];
title.click();
seen.html = here.querySelectorAll("b b, i i, p b, figcaption i").length;
seen.ids = here.querySelectorAll("[id]").length;
setTimeout(() => {
  seen.late = labels()[4];
  seen.kept = figures().map((one, n) =>
    [one.querySelector(".stones").firstChild === held[n][0], one.querySelector(".marks").firstChild === held[n][1]]);
  seen.fits = here.scrollWidth <= here.clientWidth;
  seen.columns = getComputedStyle(here.querySelector(".panels")).gridTemplateColumns.split(" ").length;
  pictures.show({ ...THINKING, tree: undefined, values: undefined }, "b" + BOARD.slice(1), "white");
  seen.parts = [figures().filter((one) => !one.hidden).length, here.querySelector(".lines-tree").hidden];
  pictures.clear();
  seen.cleared = [labels()[1], figures().map((one) => one.querySelectorAll("rect, circle[stroke]").length)];
  const found = document.createElement("pre");
  found.id = "found"; found.textContent = JSON.stringify(seen); document.body.append(found);
}, 600);
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What the browser saw, 340 points wide."""
    folder = tmp_path_factory.mktemp("thinking")
    style = (SCRIPTS / "page.css").read_text("utf-8") + (PAGE / "thinking.css").read_text("utf-8")
    watch = "window.seen = {errors: []}; addEventListener('error', (e) => seen.errors.push(e.message));"
    given = "".join(
        f"const {name} = {json.dumps(value)};"
        for name, value in (("SIZE", SIZE), ("BOARD", BOARD), ("THINKING", THINKING), ("LAYER", LAYER))
    ).replace("</", "<\\/")
    page = (
        f'<!DOCTYPE html><html lang="en"><style>{style}#here{{width:340px}}</style><body><div id="here"></div>'
        f"<script>{watch}{(SCRIPTS / 'board.js').read_text('utf-8')}</script>"
        f'<script type="module">{(PAGE / "thinking.js").read_text("utf-8")}{given}{ACT}</script></body></html>'
    )
    (folder / "page.html").write_text(page, encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'user'}"]
    words += ["--virtual-time-budget=5000", "--dump-dom", (folder / "page.html").as_uri()]
    answer = subprocess.run(
        [str(shutil.which("chromium")), *words], capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', answer.stdout, re.DOTALL)
    assert found, answer.stdout[-500:]
    return json.loads(unescape(found[1]))


pytestmark = pytest.mark.clients("chromium")


def test_panels_say_their_best_moves(seen):
    assert seen["errors"] == []
    assert seen["empty"][0] == "a, Value network: nothing yet."
    assert seen["labels"] == [
        "a, Value network: E5 56%, F5 55%, A9 41%.",
        "b, Tree, by values: F5 52%, E5 50%, D5 37%.",
        "c, Tree, by rollouts: no rollouts: <b>start</b> them.",
        "d, Policy network: E5 60%, F5 30%, pass 8%.",
        "e, Visits: F5 80%, E5 20%.",
        "f, Principal variation: F5 E5 pass F5 D5.",
    ]
    assert seen["notes"][0].endswith("without search (toy)") and seen["notes"][3].endswith("(toy); pass 8%")


def test_boards_show_numbers_in_percent_a_circle_and_the_stones(seen):
    assert seen["numbers"] == [["56", "55"], ["52", "50"], ["60", "30", "2"], ["80", "20"]]
    # A9 is too bad to be coloured; a share below one in a thousand is left out, one below half a percent has no number.
    assert seen["squares"] == [2, 2, 0, 4, 2]
    assert seen["rings"] == [1, 1, 0, 1, 1, 1] and seen["stones"] == [2] * 6
    assert seen["line"] == ["1", "2", "5"], "a pass has no stone, and a point keeps its first number"
    assert seen["lineColors"] == ["var(--stone-w)", "var(--stone-b)", "var(--stone-w)"]


@pytest.mark.parametrize("n", range(5))
def test_squares_numbers_and_circles_are_those_of_python(seen, n):
    """The words and numbers of the elements; browsers order attributes as they were written."""
    name, is_rate = ["values", "qValue", "qRollout", "policy", "visits"][n], n < 3
    best = THINKING["best"].get(name, -1)
    drawn = str(numbers_board([EMPTY] * SIZE**2, THINKING[name]["points"], best, is_rate, ""))
    python = drawn.partition("</g>")[2].removesuffix("</svg>")
    squares, marks = (re.sub(r"></(rect|circle)>", "/>", text) for text in seen["drawn"][n])
    assert elements(squares + marks) == elements(python)


def elements(drawn):
    """The tag, text and attributes of each SVG element, numbers rounded as they are drawn."""
    root = ElementTree.fromstring(f"<g>{drawn}</g>")
    return [(one.tag, one.text, {name: rounded(value) for name, value in one.attrib.items()}) for one in root]


def rounded(value):
    return round(float(value), 1) if re.fullmatch(r"-?[\d.]+", value) else value


def test_the_tree_is_a_nested_list(seen):
    assert seen["tree"] == ["F5 1,080 30% 52%", "pass 20 10% 48%", "E5 20 60% 50%"]
    assert seen["nested"] == 1 and seen["bar"].startswith("1.85")


def test_results_are_drawn_a_few_times_a_second_and_only_what_changes(seen):
    assert seen["early"] == "e, Visits: F5 80%, E5 20%." and seen["late"] == "e, Visits: E5 70%, F5 30%."
    assert seen["kept"] == [[True, n != 4] for n in range(6)]


def test_a_layer_is_orange_above_zero_and_blue_below(seen):
    width, height, high, low, zero, middle, gap = seen["canvas"]
    assert (width, height) == (29, 9)
    assert high == [232, 89, 12, 255] and low == [47, 127, 209, 255] and zero[3] == 0
    assert middle[:3] == pytest.approx([232, 89, 12], abs=2) and 100 < middle[3] < 160 and gap[:3] == [128] * 3
    assert seen["caption"] == seen["left"] == "network <i>toy</i>, layer b. Orange is above 0, blue below."
    assert seen["missing"] == ["no network", True]
    assert seen["pointed"] == "b, channel 2 of 3, J1: -2.5"


def test_panels_grow_fit_a_phone_and_hold_no_foreign_html(seen):
    small, is_small, wide, is_wide = seen["wide"]
    assert small < wide and (is_small, is_wide) == ("false", "true")
    assert seen["html"] == 0 and seen["ids"] == 0
    assert seen["fits"] and seen["columns"] >= 1
    assert seen["parts"] == [5, True]
    assert seen["cleared"][0] == "b, Tree, by values: nothing yet." and set(seen["cleared"][1]) == {1}
