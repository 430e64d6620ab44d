"""The page in a real browser: keys, touch, graphs, thresholds, without an error and without asking for anything."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

from engine.insight.review.writing import page_of
from tests.insight.reviews import reviewed

LEADS = (0, 0, 0, 0, 0, -1, 0, -3, 4, -16, 0)
WAIT_S = 300.0
WATCH = """<script>
window.seen = {errors: [], violations: []};
addEventListener("error", (e) => seen.errors.push(String(e.message)));
document.addEventListener("securitypolicyviolation", (e) => seen.violations.push(e.blockedURI));
console.error = (...words) => seen.errors.push(words.join(" "));
</script>"""
ACT = """<script>
(() => {
  const $ = (id) => document.getElementById(id);
  const status = () => $("status").textContent.replace(/\\s+/g, " ").trim();
  const key = (name, on = document.body) => on.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
  const pointer = (on, kind, x, y, buttons = 0) => on.dispatchEvent(
    new PointerEvent(kind, {clientX: x, clientY: y, bubbles: true, buttons}));
  const board = $("board"), box = () => board.getBoundingClientRect();
  const tap = (column, row) => {
    const b = box(), x = b.left + b.width * 24 * (column + 1.5) / 240, y = b.top + b.height * 24 * (row + 1) / 240;
    pointer(board, "pointerdown", x, y); pointer(board, "pointerup", x, y);
  };
  const stones = () => board.querySelectorAll(".stones circle").length;
  seen.start = status();
  key("ArrowRight"); key("ArrowRight"); seen.right = [status(), stones()];
  key("ArrowLeft"); seen.left = status();
  key("End", board); seen.end = [status(), stones()];
  key("Home", board); key("n"); seen.blamed = status();
  key("1"); seen.line = [status(), stones()];
  key("Escape"); key("o"); seen.owners = $("t-owners").getAttribute("aria-pressed");
  const b = box();
  pointer(board, "pointerdown", b.left + 200, b.top + 50); pointer(board, "pointerup", b.left + 100, b.top + 55);
  seen.swiped = status();
  tap(6, 2); seen.tapped = document.querySelector("#lines button").getAttribute("aria-pressed");
  key("Escape"); tap(4, 4); seen.stone = status();
  const graph = Array.from(document.querySelectorAll("svg[data-left]")).find((one) => one.clientWidth);
  const g = graph.getBoundingClientRect();
  pointer(graph, "pointerdown", g.right - 2, g.top + 20, 1); seen.graph = status();
  location.hash = "#b9";
  const input = document.querySelectorAll("#thresholds input")[4];
  const bars = () => $("g-loss").querySelector('[data-move="8"]').getAttribute("fill");
  seen.before = [bars(), document.querySelector('#moves [data-move="8"] .kind').textContent];
  input.value = "5"; input.dispatchEvent(new Event("change", {bubbles: true}));
  seen.after = [bars(), document.querySelector('#moves [data-move="8"] .kind').textContent,
    document.querySelector('#kinds [data-color="2"][data-kind="5"]').textContent];
  input.value = "0"; input.dispatchEvent(new Event("change", {bubbles: true})); seen.wrong = !$("t-wrong").hidden;
  $("theme").click(); seen.theme = document.documentElement.dataset.theme;
  seen.label = board.getAttribute("aria-label");
  setTimeout(() => {
    seen.hash = status();
    key("Home", board); document.querySelector('a[href="#b9"]').click(); seen.again = status();
    const slider = $("slider");
    slider.focus(); key("b", slider); seen.best = $("t-best").getAttribute("aria-pressed");
    document.querySelectorAll("#lines button")[1].focus(); key("ArrowLeft", document.activeElement);
    seen.focus = document.activeElement === document.querySelectorAll("#lines button")[1];
    key("ArrowLeft"); key("ArrowLeft"); seen.point = status();
    seen.wide = document.documentElement.scrollWidth <= innerWidth;
    const found = document.createElement("pre");
    found.id = "found"; found.textContent = JSON.stringify(seen); document.body.append(found);
  }, 200);
})();
</script>"""


@pytest.mark.clients("chromium")
def test_the_page_does_what_it_says_in_a_browser(tmp_path):
    page = page_of(reviewed(leads=LEADS)[0])
    page = page.replace("<title>", WATCH + "<title>", 1).replace("</body>", ACT + "</body>")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'user'}"]
    words += ["--window-size=390,844", "--virtual-time-budget=5000", "--dump-dom", (tmp_path / "page.html").as_uri()]
    answer = subprocess.run(
        [str(shutil.which("chromium")), *words], capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', answer.stdout, re.DOTALL)
    assert found, answer.stdout[-500:]
    seen = json.loads(unescape(found[1]))
    assert seen["errors"] == [] and seen["violations"] == []
    assert seen["start"] == "The start of the game. Black 50.0%, even. Black to move."
    assert seen["right"][0].startswith("Move 2: White C5. Excellent,") and seen["right"][1] == 2
    assert seen["left"].startswith("Move 1: Black E5.")
    assert seen["end"][0].startswith("Move 10: White F3.") and seen["end"][1] == 10
    assert seen["blamed"].startswith("Move 7: Black B6. Inaccuracy, lost 3.0 points. After G7 even, after B6 W+3.0.")
    assert seen["line"][0].endswith("Line: G7 G6 F7.") and seen["line"][1] == 10
    assert seen["owners"] == "true"
    assert seen["swiped"].startswith("Move 8: White D4.")
    assert seen["tapped"] == "true"
    assert seen["stone"].startswith("Move 1: Black E5.")
    assert seen["graph"].startswith("Move 10:")
    assert seen["before"] == ["var(--k4)", "mistake"] and seen["after"] == ["var(--k5)", "blunder", "2"]
    assert seen["wrong"] is True and seen["theme"] in ("light", "dark")
    assert seen["label"].startswith("Board of 9 by 9. Move 10:")
    assert seen["hash"].startswith("Move 8: White D4.")
    assert seen["again"].startswith("Move 8: White D4."), "a link works where the address is its own already"
    assert seen["best"] == "false", "letters are no input of the slider"
    assert seen["focus"] is True, "a step takes nobody off the list"
    assert seen["point"].startswith("Move 5: Black D5. Good, lost 1.0 point.")
    assert seen["wide"] is True, "a phone need not scroll sideways"
