"""Games in a real browser: by mouse, keyboard and touch, through reloads, a kill and two tabs."""

import re

import pytest

from tests.gtp.web.browsers import Server, answered, hinted, index_of, new_game

FAST = ("--visits", "1", "--size", "9")
MOST_MOVES = 200

pytestmark = pytest.mark.clients("chromium", "chromedriver")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose engine answers at once."""
    one = Server(tmp_path_factory.mktemp("games"), *FAST)
    yield one
    one.close()


def by_mouse(browser, index, size):
    """Play a move by the mouse; -1 = a pass."""
    browser.click("pass") if index < 0 else browser.point(index, size)


def by_keyboard(browser, index, size):
    """Play a move by the keyboard alone."""
    browser.key("p") if index < 0 else browser.type(index, size)


def by_touch(browser, index, size):
    """Play a move by taps, the first of which may only show the stone."""
    if index < 0:
        browser.click("pass")
        return
    browser.point(index, size)
    if browser.shows("confirm"):
        assert browser.run("return document.querySelectorAll('#board .pending').length;") == 1
        browser.point(index, size)


def whole_game(browser, plays, size):
    """Play a whole game against the engine by its own hints; returns the last state."""
    ask = (lambda: browser.key("h")) if plays is by_keyboard else lambda: browser.click("hint")
    for _ in range(MOST_MOVES):
        state = browser.state()
        if state["phase"] != "play":
            return state
        index = hinted(browser, ask, size)
        plays(browser, index, size)
        answered(browser, state["number"] + 2)
        assert browser.text("wrong") == ""
    raise AssertionError("the game has no end")


def check_end(browser, plays):
    """Accept the count, if there is one, and look at the result."""
    if browser.state()["phase"] == "scoring":
        browser.wait(lambda: re.search(r"\d", browser.text("count")), "the count")
        assert browser.shows("scoring")
        browser.click("accept")
        browser.wait(lambda: browser.state()["phase"] == "over")
    browser.wait(lambda: browser.shows("ended"))
    assert re.match(r"(Black|White) wins|The game is drawn", browser.text("count")), browser.text("count")
    assert browser.errors() == []


WAYS = {"mouse": (by_mouse, {}), "keyboard": (by_keyboard, {}),
        "touch": (by_touch, {"width": 390, "height": 844, "is_phone": True})}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_whole_game_on_9x9(server, browse, way):
    plays, options = WAYS[way]
    browser = browse(server.address, **options)
    new_game(browser, size="9", color="black")
    state = whole_game(browser, plays, 9)
    assert state["number"] > 20
    check_end(browser, plays)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_whole_game_on_19x19(server, browse, way):
    plays, options = WAYS[way]
    browser = browse(server.address, **options)
    new_game(browser, size="19", color="black")
    state = whole_game(browser, plays, 19)
    assert state["number"] > 100
    check_end(browser, plays)


def test_undo_takes_back_both_moves(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="black")
    for number, index in enumerate((40, 20), 1):
        browser.point(index, 9)
        answered(browser, 2 * number)
    browser.wait(lambda: browser.stones() == 4)
    browser.click("undo")
    browser.wait(lambda: browser.state()["number"] == 2 and browser.stones() == 2, "an undo")
    browser.key("z")
    browser.wait(lambda: browser.state()["number"] == 0 and browser.stones() == 0, "an undo by key")
    assert browser.errors() == []


def test_a_click_on_a_candidate_plays_though_it_is_drawn_anew(server, browse):
    """A browser makes no click where the element under the pressed button has gone."""
    browser = browse(server.address)
    new_game(browser, size="9", color="both")
    browser.click("candidates")
    browser.wait(lambda: browser.run("return document.querySelectorAll('#board .candidate').length;"), "candidates")
    best = browser.run("return document.querySelector('#lines b').textContent;")
    x, y = browser.place(index_of(best, 9), 9)
    press = {"x": x, "y": y, "button": "left", "clickCount": 1}
    browser.send("Input.dispatchMouseEvent", type="mousePressed", **press)
    browser.run("document.getElementById('candidates').click();")
    browser.wait(lambda: not browser.run("return document.querySelectorAll('#board .candidate').length;"))
    browser.send("Input.dispatchMouseEvent", type="mouseReleased", **press)
    browser.wait(lambda: browser.state()["board"][index_of(best, 9)] == "b", "the move")


def test_illegal_moves_say_why(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="both")
    browser.point(40, 9)
    browser.wait(lambda: browser.stones() == 1)
    browser.point(40, 9)
    browser.wait(lambda: browser.text("wrong"))
    assert "E5" in browser.text("wrong") or "stone" in browser.text("wrong")
    browser.type(41, 9)
    browser.wait(lambda: browser.stones() == 2 and not browser.text("wrong"))


def test_scoring_takes_dead_stones_and_lets_them_live(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="both")
    walls = [(row * 9 + column) for row in range(9) for column in (3, 5)]
    for number, index in enumerate([*walls, 2 * 9 + 7, 5 * 9 + 1], 1):
        browser.point(index, 9)
        browser.wait(lambda number=number: browser.state()["number"] == number)
    for _ in range(2):
        browser.key("p")
    browser.wait(lambda: browser.state()["phase"] == "scoring", "the scoring")
    browser.wait(lambda: browser.state()["count"], "the count")
    before = browser.state()
    browser.point(2 * 9 + 7, 9)
    browser.wait(lambda: browser.state()["dead"] != before["dead"], "another life")
    assert (25 in before["dead"]) != (25 in browser.state()["dead"])
    marks = browser.run("return document.querySelectorAll('#board .owner').length;")
    assert marks and browser.run("return document.querySelectorAll('#board .dead').length;") == len(
        browser.state()["dead"]
    )
    browser.click("continue")
    browser.wait(lambda: browser.state()["phase"] == "play" and browser.shows("acts"))
    assert browser.errors() == []


def test_the_keyboard_has_a_cursor_and_says_where_it_is(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="both")
    browser.run("document.getElementById('board').focus();")
    for name in ("ArrowLeft", "ArrowUp", "ArrowUp", "Enter"):
        browser.key(name)
    browser.wait(lambda: browser.state()["board"][2 * 9 + 3] == "b")
    assert browser.text("cursor-said") == "D7, empty"
    browser.wait(lambda: "Black D7" in browser.text("said"))
    browser.key("ArrowDown")
    browser.key("ArrowUp")
    assert browser.text("cursor-said") == "D7, black, last move"
    browser.key("Enter", shift=False)
    browser.wait(lambda: browser.text("wrong"))
    browser.key("h", shift=True)
    browser.key("2")
    assert browser.run("return [document.activeElement.id, document.activeElement.value];") == ["point", "H2"]
    assert browser.run("return document.querySelectorAll('#board .ghost').length;") == 1
    browser.key("Enter")
    browser.wait(lambda: browser.state()["board"][7 * 9 + 7] == "w")
    browser.key("ArrowLeft", shift=True)
    browser.wait(lambda: browser.state()["number"] == 1, "a step back")
    browser.wait(lambda: browser.text("said") == "Move 1: Black D7", "the step is said")
    browser.key("Escape")
    browser.key("Home")
    browser.wait(lambda: browser.state()["number"] == 0)
    browser.key("ArrowRight")
    browser.key("End")
    browser.wait(lambda: browser.state()["number"] == 2)
    browser.key("k")
    assert browser.run("return getComputedStyle(document.querySelector('#board .coordinates')).visibility;") == "hidden"


def test_variations_are_kept(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="both")
    for number, index in enumerate((40, 20, 60), 1):
        browser.point(index, 9)
        browser.wait(lambda number=number: browser.state()["number"] == number)
    browser.click("back")
    browser.wait(lambda: browser.state()["number"] == 2)
    browser.point(24, 9)
    browser.wait(lambda: browser.state()["number"] == 3 and browser.state()["board"][24] == "b")
    browser.click("back")
    browser.wait(lambda: browser.shows("branches"))
    names = browser.run("return Array.from(document.querySelectorAll('#branches button'), (one) => one.innerText);")
    assert sorted(name.split()[1] for name in names) == ["G3", "G7"]
    browser.driver.find_element("xpath", "//*[@id='branches']/button[contains(., 'G3')]").click()
    browser.wait(lambda: browser.state()["board"][60] == "b")
    assert browser.errors() == []


def test_names_of_a_record_are_text(server, browse):
    browser = browse(server.address)
    name = "<img src=x onerror=document.title='hurt'>"
    browser.wait(lambda: browser.state()["id"])
    if browser.shows("start"):
        new_game(browser, size="9", color="both")
    browser.click("open")
    browser.run("document.getElementById('pasted').value = arguments[0];",
                f"(;GM[1]SZ[9]PB[{name}]PW[<b>w</b>];B[ee];W[cc](;B[gg])(;B[cg]))")  # fmt: skip
    browser.driver.find_element("css selector", "#opening button.main").click()
    browser.wait(lambda: browser.state()["players"]["black"]["name"] == name, "the record")
    browser.wait(lambda: browser.run("return document.querySelector('#player-black .name').textContent;") == name)
    assert browser.run("return document.querySelectorAll('img, #players b b').length;") == 0
    assert browser.driver.title.endswith("Keima") and browser.errors() == []


def test_records_are_dropped_and_pasted(server, browse):
    browser = browse(server.address)
    give = """const data = new DataTransfer(), [name, text] = arguments, isDrop = name === 'drop';
    if (isDrop) data.items.add(new File([new TextEncoder().encode(text)], 'a.sgf')); else data.setData('text', text);
    const kind = isDrop ? DragEvent : ClipboardEvent, field = isDrop ? 'dataTransfer' : 'clipboardData';
    document.body.dispatchEvent(new kind(name, {[field]: data, bubbles: true, cancelable: true}));"""
    for name, player in (("drop", "Ōta"), ("paste", "Shūsaku")):
        browser.run(give, name, f"(;SZ[9]PB[{player}]PW[x];B[ee];W[cc])")
        browser.wait(lambda player=player: browser.state()["players"]["black"]["name"] == player, name)
    browser.wait(lambda: browser.stones() == 2 and browser.shows("take-on"))
    browser.click("take-on")
    browser.wait(lambda: browser.state()["players"]["white"]["engine"], "an engine for the other side")
    browser.point(60, 9)
    answered(browser, 4)
    assert browser.errors() == []


def test_the_panel_remembers_what_was_played(tmp_path, browse):
    server = Server(tmp_path / "games", "--visits", "1")
    try:
        browser = browse(server.address)
        for name, value in {"size": "9", "color": "both", "rules": "japanese"}.items():
            browser.set(name, value)
        # The first click is the first move.
        browser.point(40, 9)
        browser.wait(lambda: browser.state()["number"] == 1 and browser.stones() == 1)
        state = browser.state()
        assert (state["size"], state["rules"], state["komi"]) == (9, "japanese", 6.0)
        browser.driver.refresh()
        browser.wait(lambda: browser.stones() == 1)
        browser.click("new")
        fields = browser.run("return Object.fromEntries(new FormData(document.forms.start));")
        assert (fields["size"], fields["color"], fields["rules"]) == ("9", "both", "japanese")
        assert browser.errors() == []
    finally:
        server.close()


def test_a_reload_in_the_middle_of_a_move_loses_nothing(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="black", time="seconds", seconds="2")
    browser.point(40, 9)
    browser.wait(lambda: browser.state()["board"][40] == "b")
    browser.driver.refresh()
    answered(browser, 2)
    browser.wait(lambda: browser.stones() == 2)
    assert browser.state()["board"][40] == "b" and browser.errors() == []


def test_two_tabs_show_one_game(server, browse):
    browser = browse(server.address)
    new_game(browser, size="9", color="both")
    first = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    browser.open(server.address.partition("?")[0])
    assert not browser.shows("start") or browser.state()["number"] == 0
    browser.driver.switch_to.window(first)
    browser.point(40, 9)
    browser.wait(lambda: browser.stones() == 1)
    second = next(one for one in browser.driver.window_handles if one != first)
    browser.driver.switch_to.window(second)
    browser.wait(lambda: browser.stones() == 1, "the move in the other tab")
    browser.point(41, 9)
    browser.driver.switch_to.window(first)
    browser.wait(lambda: browser.stones() == 2, "the move in the first tab")
    # An action on a state that has passed is refused, and the page is brought up to date.
    answer = browser.driver.execute_async_script(
        "const done = arguments[0]; fetch('/api/play', {method: 'POST', headers: {'Content-Type': 'application/json'},"
        "body: JSON.stringify({point: 0, rev: 1})}).then((one) => done(one.status));"
    )
    assert answer == 409 and browser.state()["number"] == 2


def test_eight_tabs_and_two_windows_show_one_game(server, browse):
    """A browser has six connections to a server; a stream for each tab left none for moves."""
    browser = browse(server.address)
    new_game(browser, size="9", color="both")
    browser.point(60, 9)
    browser.wait(lambda: browser.stones() == 1)
    tabs, address = [browser.driver.current_window_handle], server.address.partition("?")[0]
    for kind in ["tab"] * 6 + ["window"]:
        browser.driver.switch_to.new_window(kind)
        browser.open(address)
        tabs.append(browser.driver.current_window_handle)
    stones = 1

    def move_in(tab, index):
        nonlocal stones
        browser.driver.switch_to.window(tab)
        browser.wait(lambda: browser.stones() == stones)
        browser.type(index, 9)
        stones += 1
        for other in tabs:
            browser.driver.switch_to.window(other)
            browser.wait(lambda: browser.stones() == stones, f"move {stones} in each tab")

    for index, tab in enumerate((tabs[7], tabs[0], tabs[3])):
        move_in(tab, index)
    browser.driver.switch_to.window(tabs[3])
    browser.driver.refresh()
    move_in(tabs[3], 20)
    for leaving in (3, 6):
        browser.driver.switch_to.window(tabs.pop(leaving))
        browser.driver.close()
        move_in(tabs[leaving - 1], 40 + leaving)
    browser.driver.switch_to.window(tabs[2])
    browser.click("candidates")
    for tab in (tabs[2], tabs[5]):
        browser.driver.switch_to.window(tab)
        browser.wait(lambda: browser.run("return document.querySelectorAll('#board .candidate').length;"), "candidates")
    browser.click("candidates")
    assert browser.errors() == []


def test_a_move_is_played_while_a_tab_connects_again(server, browse):
    """The page had forgotten the revision that it shows until the stream told it, at every change of tabs."""
    browser = browse(server.address)
    browser.send(
        "Page.addScriptToEvaluateOnNewDocument",
        source="const own = EventSource; window.streams = [];"
        "window.EventSource = class extends own { constructor(...given) { super(...given); streams.push(this); } };",
    )
    browser.driver.refresh()
    browser.wait(lambda: browser.state()["id"])
    new_game(browser, size="9", color="both")
    browser.run("streams.at(-1).dispatchEvent(new Event('open'));")
    browser.point(40, 9)
    browser.wait(lambda: browser.stones() == 1 or browser.text("wrong"))
    assert browser.text("wrong") == "" and browser.errors() == []


def test_tabs_without_locks_have_streams_of_their_own(server, browse):
    """A page that another machine serves without encryption."""
    browser = browse(server.address)
    tabs = [browser.driver.current_window_handle]
    for number in range(2):
        if number:
            browser.driver.switch_to.new_window("tab")
            tabs.append(browser.driver.current_window_handle)
        browser.send(
            "Page.addScriptToEvaluateOnNewDocument",
            source="Object.defineProperty(Navigator.prototype, 'locks', {value: undefined});"
            "window.channels = 0; window.BroadcastChannel = function () { window.channels++; };",
        )
        browser.open(server.address.partition("?")[0])
    browser.driver.switch_to.window(tabs[0])
    new_game(browser, size="9", color="both")
    browser.point(40, 9)
    for tab in tabs:
        browser.driver.switch_to.window(tab)
        browser.wait(lambda: browser.stones() == 1, "the move in each tab")
        assert browser.run("return channels;") == 0
    assert browser.errors() == []


def test_a_killed_server_goes_on_where_it_was(tmp_path, browse):
    server = Server(tmp_path / "games", *FAST)
    try:
        browser = browse(server.address)
        new_game(browser, size="9", color="black")
        browser.point(40, 9)
        answered(browser, 2)
        before = browser.state()
        server.kill()
        browser.wait(lambda: "Start keima play again" in browser.text("lost"), "the end is told")
        server.start()
        browser.wait(lambda: "started anew" in browser.text("lost"), "the new start is told")
        first = browser.driver.current_window_handle
        browser.driver.switch_to.new_window("tab")
        browser.open(server.address)
        browser.driver.close()
        browser.driver.switch_to.window(first)
        browser.wait(lambda: not browser.shows("lost"), "the page goes on by itself")
        browser.wait(lambda: browser.state()["board"] == before["board"] and browser.stones() == 2)
        browser.point(20, 9)
        answered(browser, 4)
    finally:
        server.close()
