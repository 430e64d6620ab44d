"""Searches within their time and memory, stopped, or with a network that fails: nothing is left in flight."""

import random
import threading
import time

import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import PASS
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import byte_count
from engine.search.worker import Worker
from tests.clock import stop_the_machines
from tests.go.positions import random_game
from tests.search.networks import CostlyNetwork
from tests.search.tree_tools import check_at_rest


class GatedNetwork(HashNetwork):
    """A hash network that begins its n-th call and then waits until it may go on."""

    def __init__(self, calls: int):
        super().__init__(KEIMA.name)
        self.calls, self.begun, self.gate = calls, threading.Event(), threading.Event()

    def evaluate(self, planes, globals_):
        self.calls -= 1
        if self.calls == 0:
            self.begun.set()
            self.gate.wait()
        return super().evaluate(planes, globals_)


class BrokenNetwork(HashNetwork):
    """A hash network that fails from its n-th call on, until it is mended."""

    def __init__(self, works: int):
        super().__init__(KEIMA.name)
        self.works = works

    def evaluate(self, planes, globals_):
        self.works -= 1
        if self.works < 0:
            raise ValueError("out of order")
        return super().evaluate(planes, globals_)


@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("cost", [0.0, 0.002, 0.02])
def test_time_is_kept_also_with_a_slow_network(monkeypatch, seconds, cost):
    clock = stop_the_machines(monkeypatch)
    with InferenceServer(CostlyNetwork(cost, clock), threads=1) as server:
        search = Search(SearchOptions(threads=1, batch=64), server, KEIMA)
        search.set_position(random_game(9, 0, 0).position)
        search.run(SearchLimits(visits=3))
        report = search.run(SearchLimits(soft_s=seconds))
        # The last looks at the clock take a little.
        assert 0.5 * seconds < report.seconds < seconds + 0.02 and report.moves
        assert search.in_flight() == 0


def test_a_search_without_any_time_still_knows_a_move(hash_server):
    search = Search(SearchOptions(threads=2), hash_server, KEIMA)
    search.set_position(random_game(9, 0, 0).position)
    report = search.run(SearchLimits(soft_s=1e-6))
    assert report.visits >= 1 and report.moves


def test_stopping_takes_waiting_work_back():
    """What an evaluator holds is finished, what waits for one is not begun."""
    network = GatedNetwork(calls=20)
    with InferenceServer(network, threads=1) as server:
        search = Search(SearchOptions(threads=1, batch=4), server, KEIMA)
        search.set_position(random_game(9, 0, 0).position)
        thread = threading.Thread(target=search.run, args=[SearchLimits(visits=10**6)])
        thread.start()
        network.begun.wait()
        while server.waiting == 0:
            time.sleep(0.001)
        search.stop()
        network.gate.set()
        thread.join()
        assert network.calls == 0
        assert search.in_flight() == 0
        check_at_rest(search.tree)


def test_many_short_searches_stopped_at_random_times(hash_server):
    rng = random.Random(5)
    searches = [
        Search(SearchOptions(threads=3, rollout_weight=weight, virtual_visits=2, virtual_loss=1.0), hash_server, KEIMA)
        for weight in (0.0, 0.5)
    ] + [Search(SearchOptions(threads=2), None, None)]
    game = random_game(7, 0, 0)
    for _ in range(12):
        threads = []
        for search in searches:
            search.set_position(game.position)
            threads.append(threading.Thread(target=search.run, args=[SearchLimits(visits=10**6)]))
            threads[-1].start()
        for search in rng.sample(searches, len(searches)):
            time.sleep(rng.random() * 0.03)
            while threads[searches.index(search)].is_alive():
                # A stop before the run has begun has no effect, so it is repeated.
                search.stop()
                time.sleep(0.002)
        for search, thread in zip(searches, threads, strict=True):
            thread.join()
            assert search.in_flight() == 0
            check_at_rest(search.tree)
        game.play(game.to_move, searches[0].report().moves[0].point)


def test_a_failing_network_ends_the_search_in_an_error_and_leaves_the_tree_sound():
    for threads in (1, 3):
        network = BrokenNetwork(works=20)
        with InferenceServer(network, threads=2) as server:
            search = Search(SearchOptions(threads=threads), server, KEIMA)
            search.set_position(random_game(7, 0, 0).position)
            with pytest.raises(RuntimeError, match="network hash: out of order"):
                search.run(SearchLimits(visits=1000))
            check_at_rest(search.tree)
            network.works = 10**9
            assert search.run(SearchLimits(visits=500)).visits == 500
            check_at_rest(search.tree)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failure_ends_one_run_and_is_not_found_again_by_the_next(monkeypatch, threads):
    """The watcher may look at a batch before it is submitted."""
    network, submit, seen = BrokenNetwork(works=20), Worker._prepare, list[BaseException | None]()

    def look_first(worker, flight):
        seen.append(worker.failure())
        submit(worker, flight)

    with InferenceServer(network, threads=2) as server:
        search = Search(SearchOptions(threads=threads), server, KEIMA)
        search.set_position(random_game(7, 0, 0).position)
        with pytest.raises(RuntimeError, match="out of order"):
            search.run(SearchLimits(visits=1000))
        network.works = 10**9
        monkeypatch.setattr(Worker, "_prepare", look_first)
        search.run(SearchLimits(visits=500))
    assert len(seen) > 20 and not any(seen)


def test_a_closed_server_is_an_error_not_a_hang(hash_server):
    search = Search(SearchOptions(threads=2), hash_server, KEIMA)
    search.set_position(random_game(7, 0, 0).position)
    hash_server.close()
    with pytest.raises(RuntimeError, match="closed"):
        search.run(SearchLimits(visits=10))
    assert search.in_flight() == 0


@pytest.fixture
def small_search(hash_server, monkeypatch):
    """A search whose tree may take a megabyte."""
    monkeypatch.setattr("engine.search.search.tree_bytes", lambda *_: 1 << 20)
    return Search(SearchOptions(threads=1), hash_server, KEIMA)


def test_memory_stays_within_its_limit_and_the_search_ends(small_search):
    search = small_search
    search.set_position(random_game(9, 0, 0).position)
    report = search.run(SearchLimits(visits=10**6))
    assert 1000 < report.visits < 10**5
    assert 0.85 * (1 << 20) < byte_count(search.tree) <= 1 << 20
    check_at_rest(search.tree)
    assert search.run(SearchLimits(visits=10**6)).moves[0].point == report.moves[0].point


def test_a_game_of_400_moves_does_not_grow_memory(small_search):
    search, limit = small_search, 1 << 20
    game = random_game(9, 0, 0)
    for move in range(400):
        search.set_position(game.position)
        if move == 200:
            assert byte_count(search.tree) <= limit
        report = search.run(SearchLimits(visits=60))
        game.play(game.to_move, report.moves[0].point if report.moves[0].point != PASS else report.moves[-1].point)
    assert byte_count(search.tree) <= limit
    assert search.in_flight() == 0
