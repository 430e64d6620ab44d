"""What goes wrong in the middle of a search, or between two: its tree stays sound and keeps to its limits."""

import threading

import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.ownership import NodeOwnership
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import byte_count
from tests.go.positions import random_game
from tests.search.tree_tools import check_at_rest

WITH_OWNERS = Watcher(lambda report: None, ownership=True)


@pytest.fixture
def new_search():
    """Searches of a 9x9 board by a hash network."""
    servers = []

    def make(**options):
        servers.append(InferenceServer(HashNetwork(KEIMA.name), threads=1))
        search = Search(SearchOptions(threads=1, seed=1, **options), servers[-1], KEIMA)
        search.set_position(random_game(9, 8, seed=1).position)
        return search

    yield make
    for server in servers:
        server.close()


def test_playouts_are_taken_back_once_where_memory_for_owners_is_missing(new_search, monkeypatch):
    search, grow, calls = new_search(), NodeOwnership.grow, []

    def fails(self, rows):
        calls.append(rows)
        if len(calls) == 3:
            raise MemoryError("no memory")
        grow(self, rows)

    monkeypatch.setattr(NodeOwnership, "grow", fails)
    with pytest.raises(MemoryError):
        search.run(SearchLimits(200), watcher=WITH_OWNERS)
    assert search.in_flight() == 0
    check_at_rest(search.tree)
    assert search.run(SearchLimits(300)).visits == 300
    check_at_rest(search.tree)


def test_owners_are_kept_within_the_memory_of_the_tree(new_search, monkeypatch):
    limit = 2 << 20
    monkeypatch.setattr("engine.search.search.tree_bytes", lambda *_: limit)
    search = new_search()
    search.run(SearchLimits(20_000))
    assert byte_count(search.tree) > 0.9 * limit
    search.run(SearchLimits(20_000), watcher=WITH_OWNERS)
    assert search._shared.ownership is not None
    assert byte_count(search.tree) + search._shared.ownership.rows.nbytes <= 1.05 * limit


class Late(threading.Event):
    """An interrupt that is set just after its first ``is_set``."""

    def __init__(self, stop):
        super().__init__()
        self.stop = stop

    def is_set(self):
        if super().is_set():
            return True
        self.set()
        self.stop()
        return False


def test_a_stop_that_comes_while_a_run_begins_is_not_lost(new_search):
    search = new_search()
    report = search.run(SearchLimits(10**5, interrupt=Late(search.stop)))
    assert search._workers.stopping.is_set() and report.visits < 10**5
