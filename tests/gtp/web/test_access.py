"""The page for everybody: contrast in both themes, names, ids, sizes of targets; checked by a script in the page."""

from pathlib import Path

import pytest

from tests.gtp.web.browsers import Browser, Server

CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")
PHONE = {"width": 360, "height": 740, "is_phone": True}
DIALOGS = ("keys", "resigning", "opening", "games")

pytestmark = pytest.mark.clients("chromium", "chromedriver")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("games"), "--visits", "1", "--size", "9")
    yield one
    one.close()


@pytest.mark.parametrize("size", [{}, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_left_out(server, tmp_path, theme, size):
    browser = Browser(tmp_path, **size)
    try:
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        browser.open(server.address)
        browser.run("document.getElementById('new').click(); document.getElementById('more').open = true;")
        faults = browser.run(CHECKS)
        browser.set("color", "both")
        browser.run("document.getElementById('start-play').click();")
        browser.wait(lambda: browser.shows("acts"))
        browser.run("document.getElementById('as-text').open = true;")
        for name in ("candidates", "ownership", "graph", "thinks"):
            browser.run("document.getElementById(arguments[0]).click();", name)
        browser.wait(lambda: browser.shows("lines") and browser.shows("thinking"), "candidates")
        faults += browser.run(CHECKS)
        for name in DIALOGS:
            browser.run("document.getElementById(arguments[0]).showModal();", name)
            faults += browser.run(CHECKS)
            browser.run("document.getElementById(arguments[0]).close();", name)
        browser.run("for (const id of ['candidates', 'ownership', 'thinks']) document.getElementById(id).click();")
        browser.wait(lambda: not any(browser.state()["help"].values()), "the end of the help")
        assert sorted(set(faults)) == []
    finally:
        browser.close()
