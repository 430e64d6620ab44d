"""Kinds of games in a real browser: clocks, loss on time, handicap; and the page's sound and theme."""

import re

import pytest

from tests.gtp.web.browsers import Server, answered, new_game

LISTEN = """window.knocks = 0;
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (...given) { window.knocks++; return start.apply(this, given); };"""

pytestmark = pytest.mark.clients("chromium", "chromedriver")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose engine answers at once."""
    one = Server(tmp_path_factory.mktemp("games"), "--visits", "1", "--size", "9")
    yield one
    one.close()


def seconds(text):
    """The time of a clock's text."""
    minutes, rest = re.match(r"(\d+):(\d\d)", text).groups()
    return 60 * int(minutes) + int(rest)


def test_one_clock_runs_and_the_other_stands(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="both", time="periods", minutes="10", periods="3", periodSeconds="20")
    browser.wait(lambda: seconds(browser.clock("black")) < 599, "Black's time")
    assert browser.clock("black").endswith("+ 3×20 s") and browser.clock("white") == "10:00 + 3×20 s"
    browser.point(40, 9)
    browser.wait(lambda: browser.state()["clock"]["white"]["running"])
    left = browser.clock("black")
    browser.wait(lambda: seconds(browser.clock("white")) < 599, "White's time")
    assert browser.clock("black") == left and not browser.state()["clock"]["black"]["running"]
    browser.driver.refresh()
    browser.wait(lambda: browser.stones() == 1 and browser.clock("black") == left, "the clocks after a reload")
    assert seconds(browser.clock("white")) < 600 and browser.errors() == []


def test_the_page_counts_periods_by_itself(server, browse):
    """No state comes while a player thinks."""
    browser = browse(server.address)
    new_game(browser, size="9", color="both", time="periods", minutes="0.02", periods="3", periodSeconds="600")
    browser.wait(lambda: browser.clock("black").startswith("9:"), "the first period")
    assert browser.clock("black").endswith("+ 2×600 s") and browser.clock("white") == "0:01 + 3×600 s"
    browser.point(40, 9)
    browser.wait(lambda: browser.state()["clock"]["black"]["inPeriod"] and browser.stones() == 1)
    assert browser.clock("black") == "10:00 + 2×600 s", "a move within a period keeps it"
    assert browser.errors() == []


def test_the_last_period_ends_in_a_loss_on_time(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="black", time="periods", minutes="0.02", periods="2", periodSeconds="2")
    browser.wait(lambda: browser.clock("black").endswith("last period"), "the last period")
    browser.wait(lambda: browser.state()["phase"] == "over", "the flag")
    browser.wait(lambda: browser.shows("ended"))
    assert browser.state()["result"] == "W+T" and browser.text("count").startswith("White wins on time.")
    assert browser.clock("black") == "0:00, last period"
    browser.click("again")
    browser.wait(lambda: browser.shows("start"))
    assert browser.errors() == []


def test_an_increment_is_added_after_a_move(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="black", time="increment", minutes="10", increment="600")
    assert browser.clock("black").endswith("+ 600 s")
    browser.point(40, 9)
    answered(browser, 2)
    browser.wait(lambda: seconds(browser.clock("black")) > 1100 and seconds(browser.clock("white")) > 1100)
    assert browser.errors() == []


def test_the_engine_thinks_for_its_seconds_a_move(tmp_path, browse):
    server = Server(tmp_path / "games", "--size", "9")
    try:
        browser = browse(server.address)
        about = "return document.querySelector('#player-white .about').innerText;"
        new_game(browser, size="9", color="black", level="max", time="seconds", seconds="3600")
        assert browser.clock("black") == browser.clock("white") == ""
        browser.point(40, 9)
        browser.wait(lambda: browser.run(about) == "thinking…" and browser.stones() == 1, "the engine's thinking")
        assert browser.run("return document.getElementById('resign').disabled;")
        browser.point(41, 9)
        browser.wait(lambda: browser.text("wrong") == "It is Keima's turn.")
        browser.click("undo")
        browser.wait(lambda: browser.state()["number"] == 0 and browser.run(about) != "thinking…", "an undo")
        new_game(browser, size="9", color="black", time="seconds", seconds="0.2")
        browser.point(40, 9)
        answered(browser, 2)
        assert browser.errors() == []
    finally:
        server.close()


def test_handicap_on_the_usual_points(server, browse):
    browser = browse(server.address)
    new_game(browser, stones=4, size="9", color="white", handicap="4", handicapStones="fixed")
    assert [n for n, sign in enumerate(browser.state()["board"]) if sign == "b"] == [20, 24, 56, 60]
    assert browser.state()["toMove"] == "white" and browser.state()["komi"] == 0.5
    assert browser.run("return document.getElementById('undo').disabled;")
    browser.point(40, 9)
    answered(browser, 2)
    assert browser.state()["board"][40] == "w" and browser.errors() == []


def test_handicap_placed_by_hand(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="black", handicap="3", handicapStones="placed")
    browser.wait(lambda: browser.text("said") == "Place stone 1 of 3")
    browser.point(20, 9)
    browser.wait(lambda: browser.text("said") == "Place stone 2 of 3" and browser.stones() == 1)
    browser.point(20, 9)
    browser.wait(lambda: "empty points" in browser.text("wrong"), "a point that is taken")
    browser.key("p")
    assert browser.run("return document.getElementById('pass').disabled;")
    browser.type(60, 9)
    browser.wait(lambda: browser.text("said") == "Place stone 3 of 3" and browser.stones() == 2)
    browser.click("undo")
    browser.wait(lambda: browser.text("said") == "Place stone 2 of 3" and browser.stones() == 1, "an undo")
    browser.key("z")
    browser.wait(lambda: browser.text("said") == "Place stone 1 of 3" and browser.stones() == 0, "an undo by key")
    assert browser.run("return document.getElementById('undo').disabled;")
    for number, index in enumerate((20, 60, 24), 1):
        browser.driver.refresh()
        browser.wait(lambda number=number: browser.stones() == number - 1 and browser.shows("game"), "a reload")
        browser.point(index, 9)
        browser.wait(lambda number=number: browser.stones() >= number)
    answered(browser, 1)
    state = browser.state()
    assert [state["board"][index] for index in (20, 60, 24)] == ["b"] * 3 and state["board"].count("w") == 1
    assert browser.run("return document.getElementById('undo').disabled;"), "the player has made no move"
    assert len(browser.errors()) == 1, "the point that is taken"


def test_sound_is_switched_off_and_stays_off(server, browse):
    browser = browse(server.address)
    browser.send("Page.addScriptToEvaluateOnNewDocument", source=LISTEN)
    browser.driver.refresh()
    browser.wait(lambda: browser.state()["id"])
    new_game(browser, size="9", color="both")
    browser.point(40, 9)
    browser.wait(lambda: browser.stones() == 1)
    browser.wait(lambda: browser.run("return knocks;") > 0, "a stone's sound")
    browser.click("sound")
    assert browser.run("return document.getElementById('sound').ariaPressed;") == "false"
    before = browser.run("return knocks;")
    for number, index in enumerate((20, 60), 2):
        browser.point(index, 9)
        browser.wait(lambda number=number: browser.stones() == number)
    assert browser.run("return knocks;") == before
    browser.driver.refresh()
    browser.wait(lambda: browser.stones() == 3)
    assert browser.run("return document.getElementById('sound').ariaPressed;") == "false"
    browser.point(24, 9)
    browser.wait(lambda: browser.stones() == 4)
    assert browser.run("return knocks;") == 0
    browser.click("sound")
    browser.point(56, 9)
    browser.wait(lambda: browser.run("return knocks;") > 0, "a stone's sound")
    assert browser.errors() == []


def test_light_and_dark(server, browse):
    browser = browse(server.address)
    paper = "return getComputedStyle(document.body).backgroundColor;"
    light = browser.run(paper)
    assert browser.text("theme") == "Dark"
    browser.click("theme")
    dark = browser.run(paper)
    assert dark != light and browser.text("theme") == "Light"
    browser.driver.refresh()
    browser.wait(lambda: browser.state()["id"])
    assert browser.run(paper) == dark and browser.text("theme") == "Light"
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.run(paper) == dark
    browser.click("theme")
    assert browser.run(paper) == light, "the button prevails over the system"
    browser.run("localStorage.removeItem('keima.theme');")
    browser.driver.refresh()
    browser.wait(lambda: browser.state()["id"])
    assert browser.run(paper) == dark and browser.text("theme") == "Light", "the system's"
    assert browser.errors() == []
