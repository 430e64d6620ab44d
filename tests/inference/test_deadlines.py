"""The server and time: what is not waited for, how much a deadline allows, what is prepared before a clock runs."""

import queue
import threading

import pytest

import engine.inference.server
from engine.inference.server import CLOSE_S, InferenceServer, NetworkFailed
from engine.inference.slots import State
from engine.nets import notices
from engine.nets.compute.runner import PlainRunner
from engine.nets.fakes import HashNetwork, UniformNetwork
from tests.clock import stop_the_machines
from tests.inference.asking import (
    GLOBALS,
    PLANES,
    SIZE,
    Breaking,
    FailingNetwork,
    GatedNetwork,
    request_of,
    submitted,
    wait_for,
)


def test_a_running_request_is_not_waited_for_beyond_a_deadline():
    """What the evaluator still has of it reaches nobody: the next request gets its own answer."""
    network = GatedNetwork()
    with InferenceServer(network, threads=1) as server:
        late = request_of(server, 1)
        server.submit(late)
        network.next_entered()
        server.wait(late, deadline_s=0.0)
        assert late.cancelled and late.state is State.RUNNING
        other = request_of(server, 2)
        server.submit(other)
        network.let_out()
        server.wait(other)
        assert late.state is State.DONE and not other.cancelled
        # In time is in time, whenever it is asked for.
        server.wait(other, deadline_s=0.0)
        assert not other.cancelled


def test_an_abandoned_request_wakes_who_waits_for_it():
    network = GatedNetwork()
    with InferenceServer(network, threads=1) as server:
        running, waiting = submitted(server, 1, 1)
        network.next_entered()
        waiters = [threading.Thread(target=server.wait, args=[one], daemon=True) for one in (running, waiting)]
        for waiter in waiters:
            waiter.start()
        server.cancel(running, running=True)
        server.cancel(waiting, running=True)
        for waiter in waiters:
            waiter.join(20)
            assert not waiter.is_alive()
        assert running.cancelled and waiting.cancelled
        assert (running.state, waiting.state) == (State.RUNNING, State.DONE)
        network.let_out()


@pytest.mark.parametrize("head", ["policy", "value", "score", "ownership"])
def test_numbers_that_are_none_are_an_error_whichever_head_gives_them(head):
    """Ownership of no numbers once made every position settled, and so a pass."""
    with InferenceServer(FailingNetwork(None, head), threads=1) as server:
        (request,) = submitted(server, 1)
        with pytest.raises(NetworkFailed, match=f"network uniform: its outputs \\({head}\\) are NaN or infinite"):
            server.wait(request)


def test_how_much_is_evaluated_by_a_deadline_follows_recent_times_and_what_runs(monkeypatch):
    network = GatedNetwork()
    with InferenceServer(network, threads=2) as server:
        clock = stop_the_machines(monkeypatch, look_s=0.0)
        assert server.positions_until(clock() + 1e-9) > 10**6, "nothing is known yet"
        server.pace.note(4, 4.0)
        assert [server.positions_until(clock() + s) for s in (0.9, 1.1, 3.5)] == [0, 2, 6]
        requests = submitted(server, 4)
        network.next_entered()
        assert [server.positions_until(clock() + s) for s in (3.9, 5.1)] == [3, 6]
        clock.advance(100.0)
        assert server.longest_call_s() == 100.0
        assert [server.positions_until(clock() + s) for s in (3.9, 99.9, 101.1)] == [3, 99, 102], "it hangs"
        requests += submitted(server, 1, 1)
        network.next_entered()
        assert server.positions_until(clock() + 3.1) == 1, "one runs, one waits"
        network.let_out()
        wait_for(server, requests)


def test_a_call_that_failed_says_nothing_of_how_long_one_takes():
    with InferenceServer(FailingNetwork(ValueError("refused at once")), threads=1) as server:
        server.pace.note(1, 2.0)
        (request,) = submitted(server, 1)
        with pytest.raises(NetworkFailed, match="refused at once"):
            server.wait(request)
        assert (server.pace.seconds_per_position, server.pace.seconds_per_call, server.evaluations) == (2.0, 2.0, 0)


def test_the_end_waits_no_longer_for_two_evaluators_that_hang_than_for_one(monkeypatch):
    network, given_s = GatedNetwork(), []
    server = InferenceServer(network, threads=2)
    submitted(server, 1, 1)
    for _ in range(2):
        network.next_entered()
    clock = stop_the_machines(monkeypatch, look_s=0.0)

    def hangs(thread, timeout_s):
        given_s.append(timeout_s)
        clock.advance(timeout_s)

    monkeypatch.setattr(threading.Thread, "join", hangs)
    server.close()
    monkeypatch.undo()
    assert given_s == [CLOSE_S, 0.0]
    network.let_out()
    server.close()


class Preparing(PlainRunner):
    """Notes in which thread it has prepared for what; has no memory for more than 100 positions."""

    prepared = queue.Queue()

    def prepare(self, size, planes, globals_, most):
        self.prepared.put((threading.current_thread().name, size, planes, globals_, most))
        return min(most, 100)


def test_a_gpus_evaluators_each_prepare_for_a_board_before_it_is_played_on(monkeypatch, capfd):
    """Graphs that are captured when a batch first needs them are captured on the clock."""
    notices.say.cache_clear()
    monkeypatch.setattr(engine.inference.server, "new_runner", Preparing)
    network = HashNetwork("test")
    network.batches_requests = True
    with InferenceServer(network, max_batch=256) as server:
        for size in (SIZE, SIZE + 1):
            server.warm_up(size, PLANES, GLOBALS)
            made = [Preparing.prepared.get(timeout=20) for _ in range(2)]
            assert {name for name, *_ in made} == {"evaluator-cpu-0", "evaluator-cpu-1"}
            assert {tuple(rest[:3]) for _, *rest in made} == {(size, PLANES, GLOBALS)}
        assert Preparing.prepared.empty() and server.max_batch == 100
    assert "out of memory" in capfd.readouterr().err


def test_a_device_that_cannot_prepare_says_so_at_its_first_batch(monkeypatch):
    def refuses(runner, *board):
        raise RuntimeError("no graphs today")

    monkeypatch.setattr(PlainRunner, "prepare", refuses)
    with InferenceServer(Breaking(0)) as server, pytest.raises(NetworkFailed, match="illegal memory"):
        server.warm_up(SIZE, PLANES, GLOBALS)


def test_evaluators_that_were_started_before_one_could_not_be_are_ended(monkeypatch):
    start, started = threading.Thread.start, []

    def starts_one(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts_one)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        InferenceServer(UniformNetwork("test"), threads=3)
    started[0].join(20)
    assert not started[0].is_alive()
