"""One server for many tests: a start costs a second."""

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
