"""Networks that answer late, never or with an error: the search ends all the same, and its tree stays sound."""

import threading

import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.inference.server import InferenceServer, NetworkFailed
from engine.nets.fakes import HashNetwork
from engine.search import worker
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from tests.clock import stop_the_machines
from tests.go.positions import random_game
from tests.search.networks import CostlyNetwork
from tests.search.tree_tools import check_at_rest

STUCK_S = 60.0
"""Far longer than anything here takes; a thread that is alive after it never ends"""
COMPANY_S = 0.1
"""How long a call stays for another one to come; on a busy machine it is missed more often, and the next call stays"""


class HangingNetwork(HashNetwork):
    """A hash network whose calls from the n-th on stay until they are let out."""

    def __init__(self, works: int):
        super().__init__(KEIMA.name)
        self.works, self.hanging, self.gate = works, threading.Event(), threading.Event()
        self.counting = threading.Lock()
        """Two evaluators call at once, and each call is the n-th alone"""

    def works_still(self):
        """How many calls after this one work; negative: this one does not."""
        with self.counting:
            self.works -= 1
            return self.works

    def evaluate(self, planes, globals_):
        return self.answer(self.works_still(), planes, globals_)

    def answer(self, still, planes, globals_):
        if still < 0:
            self.hanging.set()
            assert self.gate.wait(2 * STUCK_S)
        return super().evaluate(planes, globals_)


@pytest.fixture
def hanging():
    """A search on a 9x9 board whose network hangs after some calls; at the end all calls are let out."""
    servers, networks = [], []

    def make(works, threads=1, **options):
        networks.append(HangingNetwork(works))
        servers.append(InferenceServer(networks[-1], threads=2))
        search = Search(SearchOptions(threads=threads, **options), servers[-1], KEIMA)
        search.set_position(random_game(9, 8, seed=1).position)
        return search, networks[-1]

    yield make
    for network, server in zip(networks, servers, strict=True):
        network.gate.set()
        server.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_time_ends_a_search_whose_network_hangs_and_late_answers_change_nothing(hanging, threads):
    search, network = hanging(20, threads)
    report = search.run(SearchLimits(visits=10**6, soft_s=0.3))
    assert report.moves and search.in_flight() == 0
    check_at_rest(search.tree)
    network.works = 10**9
    network.gate.set()
    visits = report.visits
    assert search.run(SearchLimits(visits=visits + 300)).visits == visits + 300
    check_at_rest(search.tree)


def test_without_a_root_there_is_no_move_but_there_is_an_end(hanging):
    search, network = hanging(0)
    report = search.run(SearchLimits(soft_s=600.0, first_s=0.01))
    assert (report.visits, report.moves) == (0, [])
    network.works = 10**9
    network.gate.set()
    assert search.run(SearchLimits(visits=50)).visits == 50
    check_at_rest(search.tree)


@pytest.mark.parametrize("works", [0, 20])
@pytest.mark.parametrize("options", [{}, {"root_symmetries": "8"}, {"root_noise": 0.1}], ids=str)
def test_a_stop_does_not_wait_for_the_network(hanging, works, options):
    search, network = hanging(works, **options)
    thread = threading.Thread(target=search.run, args=[SearchLimits(visits=10**6)], daemon=True)
    thread.start()
    assert network.hanging.wait(STUCK_S)
    search.stop()
    thread.join(STUCK_S)
    assert not thread.is_alive() and search.in_flight() == 0
    check_at_rest(search.tree)


def test_an_interruption_before_a_search_does_not_wait_for_its_root(hanging):
    search, _ = hanging(0)
    interrupted = threading.Event()
    interrupted.set()
    assert search.run(SearchLimits(interrupt=interrupted)).moves == []


def test_a_search_without_an_end_is_one_when_the_network_hangs(hanging, monkeypatch):
    monkeypatch.setattr(worker, "HANG_S", 0.05)
    monkeypatch.setattr(worker, "WAKE_S", 0.02)
    search, network = hanging(30)
    with pytest.raises(NetworkFailed, match="network hash: no answer for"):
        search.run(SearchLimits(visits=10**6))
    check_at_rest(search.tree)
    monkeypatch.undo()
    network.works = 10**9
    network.gate.set()
    assert search.run(SearchLimits(visits=200)).visits == 200
    check_at_rest(search.tree)


class HalfBroken(HangingNetwork):
    """Of two calls at once, from the n-th on, the older one hangs and the newer one fails.

    A call that stays alone is answered: a search whose only good leaf is being evaluated asks for no second one.
    """

    def __init__(self, works: int):
        super().__init__(works)
        self.company, self.older_waits = threading.Event(), False

    def answer(self, still, planes, globals_):
        if still >= 0:
            return super().answer(still, planes, globals_)
        with self.counting:
            if self.older_waits:
                self.company.set()
                raise ValueError("out of order")
            self.older_waits = True
        self.company.wait(COMPANY_S)
        with self.counting:
            self.older_waits = self.company.is_set()
        return super().answer(-1 if self.older_waits else 0, planes, globals_)


@pytest.mark.parametrize(("works", "threads"), [(5, 1), (30, 3)])
def test_an_error_does_not_wait_for_an_evaluation_that_hangs(works, threads):
    network = HalfBroken(works)
    with InferenceServer(network, threads=2) as server:
        search = Search(SearchOptions(threads=threads, seed=1), server, KEIMA)
        search.set_position(random_game(9, 8, seed=1).position)
        with pytest.raises(NetworkFailed, match="out of order"):
            search.run(SearchLimits(visits=10**6, soft_s=600.0))
        assert search.in_flight() == 0
        check_at_rest(search.tree)
        network.gate.set()


def test_workers_that_were_started_before_one_could_not_be_are_ended(monkeypatch):
    """They once searched on behind the error, and no search could follow."""
    search = Search(SearchOptions(threads=3, seed=1), None, None)
    search.set_position(random_game(7, 4, seed=1).position)
    start = threading.Thread.start

    def fails(thread):
        if thread.name == "search-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", fails)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        search.run(SearchLimits(visits=10**9))
    assert search.in_flight() == 0
    check_at_rest(search.tree)
    monkeypatch.undo()
    visits = search.report().visits
    assert search.run(SearchLimits(visits=visits + 50)).visits == visits + 50


@pytest.mark.parametrize(("cost", "seconds", "visits"), [(0.4, 1.5, 3), (0.4, 1.15, 2), (1.5, 5.0, 3)])
def test_no_evaluation_is_begun_that_cannot_come_back_in_time(monkeypatch, cost, seconds, visits):
    clock = stop_the_machines(monkeypatch, look_s=1e-5)
    with InferenceServer(CostlyNetwork(cost, clock), threads=1) as server:
        search = Search(SearchOptions(threads=1, batch=64), server, KEIMA)
        server.pace.note(1, cost)
        search.set_position(random_game(9, 0, 0).position)
        report = search.run(SearchLimits(soft_s=seconds))
        assert report.visits == visits
        assert report.seconds < seconds
