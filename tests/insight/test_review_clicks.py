"""The page of a review under mouse and keys in a real browser: layout, moves tried, the quiz, a server, the index."""

import json
import shutil
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from engine.go.geometry import BLACK
from engine.go.rules import rules_from
from engine.insight.review.index import entry_of, write_index
from engine.insight.review.turns import Candidate
from engine.insight.review.writing import page_of, served
from tests.insight.reviews import PLAYED, reviewed

webdriver = pytest.importorskip("selenium.webdriver")
pytestmark = pytest.mark.clients("chromium", "chromedriver")

LEADS = (0, 0, 0, 0, 0, -1, 0, -3, 4, -16, 0)
KO = b"(;SZ[9]KM[7]RU[Chinese]PB[Ann]PW[Ben];B[dd];W[ed];B[ce];W[fe];B[df];W[ef];B[ja];W[de])"
"""Black can take D5 by E5, which is a ko"""
KO = KO.replace(b"B[ja]", b"B[ia]")
DESKTOP, PHONE = (1280, 800), (360, 740)
CANDIDATE, STONE = ".candidate", "#board :is(#stones, .stones) > circle"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


class Page:
    """A page in the browser."""

    def __init__(self, browser, address, size=DESKTOP, theme="light"):
        self.browser = browser
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        # Without animations, so that nothing moves between the look for a point and the click on it.
        features = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
        media = {"features": [{"name": name, "value": value} for name, value in features.items()]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get_log("browser")
        browser.get(address)

    def run(self, script, *values):
        return self.browser.execute_script(script, *values)

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    @property
    def status(self):
        return " ".join(self.one("#status").get_attribute("textContent").split())

    @property
    def shown(self):
        """The buttons of the verdict that are shown."""
        return [button.text for button in self.all("#acts button") if button.is_displayed()]

    def click(self, vertex, size=9):
        """Click a point of the board."""
        column, row = "ABCDEFGHJ".index(vertex[0]), size - int(vertex[1:])
        box = self.run("const b = arguments[0].getBoundingClientRect(); return [b.width, b.height]", self.one("#board"))
        cell = box[0] / (size + 1)
        x, y = cell * (column + 1.5) - box[0] / 2, cell * (row + 1) - box[1] / 2
        chain = webdriver.ActionChains(self.browser, duration=0)
        chain.move_to_element_with_offset(self.one("#board"), int(x), int(y)).click().perform()

    def press(self, *keys):
        webdriver.ActionChains(self.browser, duration=0).send_keys(*keys).perform()

    def stones(self):
        """Fills of the stones."""
        return self.run(
            "return Array.from(document.querySelectorAll(arguments[0]), (c) => c.getAttribute('fill'))", STONE
        )

    def boxes(self, *selectors):
        """Left, top, right and bottom edge of elements in the window."""
        ask = "const b = arguments[0].getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]"
        return [self.run(ask, next(one for one in self.all(name) if one.is_displayed())) for name in selectors]

    def errors(self):
        """Errors of the page, of requests that its policy refuses too."""
        return [line["message"] for line in self.browser.get_log("browser") if line["level"] == "SEVERE"]


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the page of a review from a file."""

    def make(review=None, end="", **look):
        # A new name each time, since a browser does not load a page again for another end of its address.
        path = tmp_path / f"page-{len(list(tmp_path.iterdir()))}.html"
        path.write_text(page_of(review or reviewed(leads=LEADS)[0]), encoding="utf-8")
        return Page(browser, path.as_uri() + end, **look)

    return make


def test_the_first_screen_of_a_desktop_has_board_graphs_and_verdict_side_by_side(opened):
    page = opened()
    board, verdict, winrate, lead, controls, players = page.boxes(
        "#board", ".verdict", "#g-winrate", "#g-lead", ".bar", ".players"
    )
    for left, top, right, bottom in (board, verdict, winrate, lead, controls, players):
        assert left >= 0 and top >= 0 and right <= DESKTOP[0] and bottom <= DESKTOP[1], "within the screen"
    for box in (verdict, winrate, lead, players):
        assert box[0] >= board[2], "beside the board"
    assert board[2] - board[0] > 500


CUT_OFF = """return Array.from(document.querySelectorAll("header *, section *"), (e) => [e, e.getBoundingClientRect()])
  .filter(([e, b]) => b.width && !e.closest(".scroll, svg, .unseen") && (b.left < -1 || b.right > innerWidth + 1))
  .map(([e]) => e.outerHTML.slice(0, 80))"""
FONT_SIZES = """return Array.from(document.querySelectorAll("#board text, figure.graph svg text"))
  .filter((text) => text.getBoundingClientRect().width)
  .map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""


@pytest.mark.parametrize("size", [9, 19])
def test_on_a_phone_the_board_comes_first_and_everything_is_readable(opened, monkeypatch, size):
    monkeypatch.setattr("tests.insight.reviews.SIZE", size)
    page = opened(reviewed(PLAYED.replace(b"SZ[9]", b"SZ[%d]" % size), LEADS)[0], end="#m8", size=PHONE)
    board, verdict, graph = page.boxes("#board", ".verdict", "figure.graph")
    assert board[3] <= verdict[1] <= graph[1] and board[2] - board[0] == PHONE[0]
    assert page.run("return document.documentElement.scrollWidth") == PHONE[0]
    assert page.run(CUT_OFF) == []
    sizes = page.run(FONT_SIZES)
    assert len(sizes) > 2 * size and min(sizes) > 9, "pixels"


FAINT = """
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = color.map((x) => (x / 255 <= 0.03928 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const color = parts(getComputedStyle(element).backgroundColor);
      if (color.length < 4 || color[3] > 0.9) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const isText = (node) => node.nodeType === 3 && node.textContent.trim();
  const hasText = (element) => Array.from(element.childNodes).some(isText);
  return Array.from(document.querySelectorAll("body :not(svg, svg *)"))
    .filter((element) => element.getBoundingClientRect().width && hasText(element))
    .filter((element) => {
      const [one, two] = [light(parts(getComputedStyle(element).color).slice(0, 3)), light(behind(element))];
      return Math.max(one, two) / Math.min(one, two) < 4.5;
    }).map((element) => element.outerHTML.slice(0, 100));"""
NAMELESS = """return Array.from(document.querySelectorAll("a, button, input"))
  .filter((one) => !(one.ariaLabel || one.textContent.trim() || one.labels?.length)).map((one) => one.outerHTML)"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_stand_out_and_controls_have_names(opened, theme):
    """Contrast of 4.5 at least. Source: WCAG 2.2, success criteria 1.4.3 and 4.1.2"""
    page = opened(end="#m9", theme=theme)
    assert page.run(FAINT) == [] and page.run(NAMELESS) == []
    page.one("[data-quiz='1']").click()
    page.click("H8")
    assert page.run(FAINT) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_candidates_are_unlike_stones(opened, theme):
    page = opened(end="#m8", theme=theme)
    fills = page.run("return Array.from(document.querySelectorAll('.candidate'), (c) => getComputedStyle(c).fill)")
    stones = page.run(
        "return Array.from(document.querySelectorAll(arguments[0]), (c) => getComputedStyle(c).fill)", STONE
    )
    assert len(fills) == 2 and len(set(fills)) == 2 and not set(fills) & set(stones)
    for fill in fills:
        red, green, blue = (int(part) for part in fill[4:-1].split(","))
        assert max(red, green, blue) - min(red, green, blue) > 80, "a colour, not a grey"
    labels = [one.get_attribute("textContent") for one in page.all("#board .label")]
    assert labels[:2] == ["0.0", "1.0"], "points lost"


def test_dots_on_the_last_stones_say_what_they_lost(opened):
    page = opened(end="#m10")
    dots = [one.get_attribute("fill") for one in page.all("#board .loss")]
    assert dots == [f"var(--c{kind})" for kind in (2, 2, 3, 4, 5, 5)]


def test_moves_are_tried_with_captures_ko_and_suicide(opened):
    page = opened(reviewed(KO)[0], end="#m8")
    page.click("E5")
    assert page.status.startswith("Your line after move 8: Black E5. 1 captured. Not among the 2 moves")
    assert len(page.stones()) == 8 and page.shown == ["Pass", "Back to the game"]
    page.click("D5")
    assert page.status.endswith("Ko: the board would be as before.") and len(page.stones()) == 8
    page.click("J1")
    page.click("J9")
    assert page.status.startswith("Your line after move 8: Black E5 J1."), "a stone of the game"
    page.click("A1")
    page.click("D5")
    assert page.status.startswith("Your line after move 8: Black E5 J1 A1 D5. 1 captured."), "no ko any more"
    page.press(*[webdriver.Keys.ARROW_LEFT] * 3)
    assert page.status.startswith("Your line after move 8: Black E5. 1 captured.")
    page.press(webdriver.Keys.ARROW_RIGHT)
    assert page.status.startswith("Your line after move 8: Black E5 J1.")
    page.press(webdriver.Keys.ESCAPE)
    assert page.status.startswith("Move 8: White D5.") and page.shown == []
    surrounded = reviewed(b"(;SZ[9];B[ba];W[ee];B[ab];W[gg];B[cc])")[0]
    page = opened(surrounded, end="#m5")
    page.click("A9")
    assert page.status.endswith("Suicide: the stone would have no liberty.")
    # White's two stones in the corner are taken off by a second one, where the rules allow it.
    for rules, said in ((b"Chinese", "Suicide: the stone would have no liberty."), (b"NZ", "White A9.")):
        two = b"(;SZ[9]RU[%s]AW[ba]AB[ca][bb][ab];B[ee])" % rules
        page = opened(reviewed(two)[0], end="#m1")
        page.click("A9")
        assert said in page.status and len(page.stones()) == (5 if rules == b"Chinese" else 4)
    assert page.errors() == []


def test_a_candidate_shows_its_line_and_is_played_by_a_second_click(opened):
    page = opened(end="#m7")
    page.click("G7")
    assert page.status.endswith("Line: G7 G6 F7.") and len(page.stones()) == 10
    page.click("G7")
    assert page.status.startswith("Your line after move 7: White G7. The first choice.")
    page.press(webdriver.Keys.ESCAPE)
    page.click("H8")
    page.click("H8")
    known = "White H8. Excellent, as good as the first choice: after G7 W+3.0, after H8 W+4.0."
    assert page.status.startswith(f"Your line after move 7: {known}")
    field = page.one("#point")
    field.send_keys("c1\n")
    assert "White H8 C1." in page.status
    field.send_keys("k9\n")
    assert page.status.endswith("Type a point of the board, such as D4.")
    page.one("#t-pass").click()
    assert "White H8 C1 pass." in page.status


def test_without_marks_every_empty_point_is_tried(opened):
    page = opened(end="#m7")
    page.press("b")
    assert page.all(CANDIDATE) == [] and len(page.all("#lines button")) == 2
    page.click("G7")
    assert page.status.startswith("Your line after move 7: White G7.")


def test_a_line_is_shown_under_the_pointer_and_a_ghost_stone_elsewhere(opened):
    page = opened(end="#m7")
    before = len(page.stones())
    for vertex, stones, ghosts in (("G7", before + 3, 0), ("A1", before, 1), ("E5", before, 0)):
        column, row = "ABCDEFGHJ".index(vertex[0]), 9 - int(vertex[1])
        board = page.one("#board")
        cell = board.size["width"] / 10
        place = int(cell * (column + 1.5 - 5)), int(cell * (row + 1 - 5))
        webdriver.ActionChains(page.browser, duration=0).move_to_element_with_offset(board, *place).perform()
        assert (len(page.stones()), len(page.all("#board .ghost"))) == (stones, ghosts), vertex
    for element, stones in ((page.one("#lines button"), before + 3), (page.one("h1"), before)):
        webdriver.ActionChains(page.browser, duration=0).move_to_element(element).perform()
        assert len(page.stones()) == stones


def test_the_quiz_asks_for_the_players_mistakes(opened):
    review = reviewed(leads=LEADS)[0]
    page = opened(review)
    page.one("[data-quiz='1']").click()
    assert page.status == "Question 1 of 2, move 7: Black to move. Ann 2k lost 3.0 points here. Play a better move."
    assert (
        page.all(CANDIDATE) == []
        and page.all("#lines button") == []
        and page.shown == ["Show the answer", "End the quiz"]
    )
    page.click("H8")
    assert "H8: Good, loses 1.0 point: after G7 even, after H8 W+1.0." in page.status
    assert "First choice: G7. Black played B6, lost 3.0 points. After G7 even, after B6 W+3.0." in page.status
    assert len(page.all(CANDIDATE)) == 2 and page.shown == ["Next", "End the quiz"]
    page.press(webdriver.Keys.ENTER)
    assert page.status.startswith("Question 2 of 2, move 9: Black to move.")
    page.click("E5")
    assert page.status.endswith("There is a stone already."), "no answer"
    page.click("E6")
    assert "E6: The move played, lost 20.0 points. After G7 B+4.0, after E6 W+16.0." in page.status
    page.press(webdriver.Keys.ENTER)
    assert page.status.startswith("1 of 2 moves found.") and page.shown == ["End the quiz"]
    page.one("#t-leave").click()
    assert page.status.startswith("Move 8:")
    page.one("[data-quiz='2']").click()
    page.one("#t-answer").click()
    assert "First choice: G7." in page.status
    page.click("A1")
    assert page.status.startswith("Your line after move 7: White A1."), "after the answer moves may be tried"
    page.press(webdriver.Keys.ESCAPE)
    assert page.status.startswith("Question 1 of 2")
    page.press(webdriver.Keys.ARROW_LEFT)
    assert page.status.startswith("Move 6:"), "a step ends the quiz"
    assert page.errors() == []


def test_a_player_without_mistakes_has_no_quiz(opened):
    page = opened(reviewed()[0])
    assert not any(button.is_displayed() for button in page.all("[data-quiz]"))


@contextmanager
def serving(page, answer):
    """A server of one page; questions, as JSON, are appended to the list that it gives."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def reply(self, status, kind, data):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            is_page = self.path == "/"
            self.reply(200 if is_page else 404, "text/html; charset=utf-8", page.encode() if is_page else b"")

        def do_POST(self):
            text = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, self.headers["Content-Type"], json.loads(text)))
            status, found = answer(asked)
            self.reply(status, "application/json", json.dumps(found).encode())

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


FOUND = {
    "visits": 120, "winrateBlack": 0.25, "leadBlack": -7.5, "owners": "+" * 81,
    "moves": [
        {"i": 40 - 9, "visits": 80, "prior": 0.5, "winrateBlack": 0.26, "leadBlack": -7.0, "lost": 0.0, "pv": [31, 22]},
        {"i": -1, "visits": 3, "prior": 0.1, "winrateBlack": 0.2, "leadBlack": -9.0, "lost": 2.0, "pv": []},
    ],
}  # fmt: skip


def wait_for(page, text):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page.browser, 60).until(lambda browser: text in page.status)


def test_a_server_analyses_the_moves_that_are_tried(browser):
    review = reviewed(KO)[0]
    refused = {"error": "the engine is <busy>"}

    def answer(asked):
        return (503, refused) if len(asked) == 2 else (200, FOUND)

    with serving(served(page_of(review), "/api/analyse"), answer) as (address, asked):
        page = Page(browser, f"{address}#m8")
        page.click("A1")
        wait_for(page, "Analysed with 120 visits. Black 25.0%, W+7.5. White to move.")
        path, kind, question = asked[0]
        assert (path, kind) == ("/api/analyse", "application/json")
        assert question["size"] == 9 and question["komi"] == 7 and rules_from(question["rules"]).name == "chinese"
        assert (
            question["start"] == "0" * 81
            and question["moves"][0] == [BLACK, 30]
            and question["moves"][8:] == [[BLACK, 72]]
        )
        lines = [" ".join(one.text.split()) for one in page.all("#lines button")]
        assert lines[0] == "0.0 E6 Black 26.0%, W+7.0, 80 visits E6 E7"
        assert len(page.all(CANDIDATE)) == 1, "a pass has no place on the board"
        page.click("B1")
        wait_for(page, "Not analysed: the engine is <busy>")
        page.press(webdriver.Keys.ARROW_LEFT)
        wait_for(page, "Analysed with 120 visits.")
        assert len(asked) == 2, "an answer is kept"
        page.press(webdriver.Keys.ARROW_RIGHT)
        wait_for(page, "Black A1 B1. Analysed with 120 visits.")
        assert len(asked) == 3, "after an error it asks again"
        assert [line for line in page.errors() if "503" not in line and "favicon" not in line] == []


def test_a_page_that_no_server_marks_asks_nothing(browser):
    with serving(page_of(reviewed(KO)[0]), lambda asked: (200, FOUND)) as (address, asked):
        page = Page(browser, f"{address}#m8")
        page.click("A1")
        assert "served by keima play, it is analysed" in page.status
        page.run("return new Promise((done) => setTimeout(done, 500))")
        assert asked == []


def test_names_are_text_where_the_script_writes_them(opened):
    hostile = reviewed(KO.replace(b"PB[Ann]", b"PB[<img src=x onerror=alert(1)>]"), LEADS)[0]
    page = opened(hostile)
    page.one("[data-quiz='1']").click()
    assert "<img src=x onerror=alert(1)> lost" in page.status and page.all("#status img") == []


def test_the_index_is_sorted_by_its_columns(browser, tmp_path):
    entry = entry_of(reviewed(leads=LEADS)[0])
    games = [
        entry._replace(name=name, date=date, accuracies=(accuracy, None), moves=moves)
        for name, date, accuracy, moves in (
            ("b", "2026-02-01", 9.0, 100),
            ("a", "2026-01-01", 80.0, 20),
            ("c", "", None, 3),
        )
    ]
    write_index(tmp_path / "index.html", games)
    page = Page(browser, (tmp_path / "index.html").as_uri())

    def order():
        return "".join(one.text for one in page.all("tbody th"))

    assert order() == "bac", "by date"
    columns = {
        "game": ("ascending", "abc"), "moves": ("descending", "bac"), "Black's accuracy": ("descending", "abc"),
        "date": ("descending", "bac"),
    }  # fmt: skip
    for heading, (first, names) in columns.items():
        button = next(one for one in page.all("thead button") if one.text == heading)
        for wanted in (names, names[::-1]):
            button.click()
            assert order() == wanted
        (sorted_by,) = page.all("thead [aria-sort]")
        second = {"ascending": "descending", "descending": "ascending"}[first]
        assert (sorted_by.get_attribute("aria-sort"), sorted_by.text[:4]) == (second, heading[:4])
    phone = Page(browser, (tmp_path / "index.html").as_uri(), size=PHONE)
    assert phone.run("return document.documentElement.scrollWidth") == PHONE[0]
    assert phone.errors() == []


def test_more_candidates_than_are_listed_answer_the_quiz(opened):
    """The seventh candidate has no line in the page, but a value."""
    review = reviewed(leads=LEADS)[0]
    turn = review.turns[6]
    points = [one.point for one in turn.moves]
    free = [point for point in (11, 12, 13, 14, 15) if point not in points]
    turn.moves.extend(Candidate(point, 1, 0.46, -4.0, 0.01, [point, 31]) for point in free)
    page = opened(review)
    page.one("[data-quiz='1']").click()
    page.click("E9")
    assert "E9: Mistake, loses 4.0 points" in page.status
