"""Servers and browsers of many tests: a start costs a second."""

import re

import pytest

from tests.gtp.web.served import Tab, ready, serving


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """Port of a server that plays by rollouts alone."""
    with serving(tmp_path_factory.mktemp("data")) as (_, port):
        Tab(port).enter().wait(ready)
        yield port


@pytest.fixture
def tab(port):
    """A tab with a session, on an empty 9x9 board where both colours are the player's."""
    tab = Tab(port).enter()
    tab.post("new", size=9, rules="chinese", komi=7.5, color="both", handicap=0, seconds=0)
    return tab


@pytest.fixture
def browse(tmp_path):
    """Browsers that are closed at the end, and that asked nobody but the server."""
    from tests.gtp.web.browsers import Browser

    found = []

    def start(address, **options):
        browser = Browser(tmp_path / f"user{len(found)}", **options)
        found.append(browser)
        browser.open(address)
        return browser

    yield start
    addresses = [url for browser in found for url in browser.requests()]
    for browser in found:
        browser.close()
    assert not [url for url in addresses if not re.match(r"http://127\.0\.0\.1:\d+/|data:|chrome", url)]
