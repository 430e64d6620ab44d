"""The server: every request is answered once, errors reach the one who asked, and nothing hangs."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.inference.server import InferenceServer
from engine.inference.slots import State
from engine.nets import notices
from engine.nets.fakes import HashNetwork, UniformNetwork
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


def test_asking_gives_the_heads_there_are_as_arrays():
    network = HashNetwork("test")
    rng = np.random.default_rng(1)
    planes = rng.integers(0, 2, (4, PLANES, SIZE, SIZE)).astype(np.float32)
    globals_ = rng.normal(0, 1, (4, GLOBALS)).astype(np.float32)
    expected = network.evaluate(planes, globals_)
    network.spec = replace(network.spec, heads=("policy", "ownership"))
    with InferenceServer(network, threads=1) as server:
        output = server.ask(planes, globals_)
    np.testing.assert_array_equal(output.policy, expected.policy)
    np.testing.assert_array_equal(output.ownership, expected.ownership)
    assert output.value is None and output.score is None
    with InferenceServer(FailingNetwork(None), threads=1) as server, pytest.raises(RuntimeError):
        server.ask(planes, globals_)


def test_outputs_are_the_networks_own_whatever_is_batched_with_them():
    network = HashNetwork("test")
    with InferenceServer(network, threads=2) as server:
        requests = [request_of(server, 1 + seed % 8, seed) for seed in range(20)]
        for request in requests:
            server.submit(request)
        for request in requests:
            server.wait(request)
            direct = network.evaluate(request.planes, request.globals)
            n = request.count
            assert np.array_equal(request.policy[:n], direct.policy[:n])
            assert np.array_equal(request.value[:n], direct.value[:n])
            assert np.array_equal(request.score[:n], direct.score[:n])
            assert np.array_equal(request.ownership[:n], direct.ownership[:n])
            assert request.state is State.DONE
        assert server.evaluations == sum(request.count for request in requests)
        assert server.pace.seconds_per_position > 0


def test_many_callers_at_once_all_get_their_answers():
    with InferenceServer(HashNetwork("test"), threads=2) as server:
        failures = []

        def call(seed: int) -> None:
            request = request_of(server, 3, seed)
            for _ in range(50):
                server.submit(request)
                server.wait(request)
                direct = server.network.evaluate(request.planes[:3], request.globals[:3])
                if not np.array_equal(request.value[:3], direct.value):
                    failures.append(seed)

        threads = [threading.Thread(target=call, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures


def test_waiting_requests_are_merged_where_the_device_likes_it():
    network = GatedNetwork(batches_requests=True)
    with InferenceServer(network, max_batch=10) as server:
        requests = submitted(server, 1)
        assert network.next_entered() == 1
        requests += submitted(server, 4)
        assert network.next_entered() == 4
        requests += submitted(server, 4, 4, 3) + submitted(server, 2, alone=True)
        network.let_out()
        assert {network.next_entered() for _ in range(3)} == {8, 3, 2}
        wait_for(server, requests)


def test_a_server_that_many_searches_share_merges_their_requests_on_any_device():
    network = GatedNetwork(batches_requests=False)
    with InferenceServer(network, threads=1, max_batch=10, shared=True) as server:
        requests = submitted(server, 1)
        assert network.next_entered() == 1
        requests += submitted(server, 4, 2, alone=True) + submitted(server, 3, 3)
        network.let_out()
        assert [network.next_entered() for _ in range(2)] == [9, 3]
        wait_for(server, requests)


def test_evaluators_that_many_searches_share_take_their_share_of_what_is_in_flight():
    network = GatedNetwork(batches_requests=False)
    with InferenceServer(network, threads=2, shared=True) as server:
        requests = submitted(server, 1, 1)
        assert network.next_entered() == network.next_entered() == 1
        requests += submitted(server, *[1] * 8)
        network.let_out(1)
        assert network.next_entered() == 5, "half of the nine that wait or run"
        network.let_out()
        wait_for(server, requests)


def test_an_evaluator_that_many_searches_share_waits_a_moment_for_its_share():
    """Alone a position takes as long as two of a batch."""
    network = GatedNetwork(batches_requests=False)
    with InferenceServer(network, threads=2, shared=True) as server:
        requests = submitted(server, 5)
        assert network.next_entered() == 5
        server.pace.seconds_per_position = 1e6
        requests += submitted(server, 1)
        time.sleep(0.1)  # An evaluator that does not wait takes it now.
        requests += submitted(server, 1, 1, 1, 1)
        assert network.next_entered() == 5
        network.let_out()
        wait_for(server, requests)


def test_boards_of_other_sizes_travel_apart():
    network = GatedNetwork(batches_requests=True)
    with InferenceServer(network) as server:
        requests = submitted(server, 1, 1, alone=True)
        assert network.next_entered() == network.next_entered() == 1
        other = server.new_request(SIZE + 1, 3, PLANES, GLOBALS)
        other.count = 3
        requests += [*submitted(server, 4, 1), other]
        server.submit(other)
        network.let_out()
        assert sorted(network.next_entered() for _ in range(2)) == [3, 5]
        wait_for(server, requests)


def test_a_device_that_merges_is_never_without_a_batch_while_anybody_waits():
    network = GatedNetwork(batches_requests=True)
    stop = threading.Event()

    def call(server: InferenceServer, seed: int) -> None:
        request = request_of(server, 4, seed)
        while not stop.is_set():
            server.submit(request)
            server.wait(request)

    with InferenceServer(network, max_batch=8) as server:
        callers = [threading.Thread(target=call, args=(server, seed)) for seed in range(4)]
        for caller in callers:
            caller.start()
        network.next_entered()
        for _ in range(20):
            # A second batch comes in while the first, which has not been let out, is still there.
            network.next_entered()
            network.let_out(1)
        stop.set()
        network.let_out()
        for caller in callers:
            caller.join()


def test_a_batch_is_held_back_until_it_is_worth_the_call_but_not_from_an_idle_device():
    network = GatedNetwork(batches_requests=True)
    with InferenceServer(network) as server:
        requests = submitted(server, 8)
        assert network.next_entered() == 8
        requests += submitted(server, 2, 1, 1)
        assert network.next_entered() == 4
        network.let_out(2)
        wait_for(server, requests)
        requests = submitted(server, 8)
        assert network.next_entered() == 8
        requests += submitted(server, 1)
        network.let_out(1)
        assert network.next_entered() == 1
        network.let_out()
        wait_for(server, requests)


class SmallMemory(HashNetwork):
    """Holds four positions."""

    def __init__(self):
        super().__init__("test")
        self.batches_requests = True
        self.batches: list[int] = []

    def evaluate(self, planes, globals_):
        if len(planes) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.batches.append(len(planes))
        return super().evaluate(planes, globals_)


def is_answered(request) -> bool:
    """Whether a request holds what the hash network says."""
    count = request.count
    direct = HashNetwork("test").evaluate(request.planes[:count], request.globals[:count])
    return all(np.array_equal(getattr(request, name)[:count], head) for name, head in direct._asdict().items())


def test_a_batch_too_large_for_the_device_is_halved_until_it_fits(capfd):
    notices.say.cache_clear()
    network = SmallMemory()
    with InferenceServer(network, max_batch=100) as server:
        requests = submitted(server, 7, 2, 8, 1, 3, 8, 8)
        wait_for(server, requests)
        assert all(map(is_answered, requests))
        assert server.max_batch <= 4
        assert sum(network.batches) == 37
    assert capfd.readouterr().err == "cpu is out of memory: batches are smaller from now on\n"


class Reload:
    """Hands out networks one after another; an exception is raised instead."""

    def __init__(self, *networks):
        self.networks = list(networks)
        self.exact = []
        """whether 32 bits were asked for, each time"""

    def __call__(self, device: torch.device, reduced: bool | None = None):
        self.exact.append(reduced is False)
        network = self.networks.pop(0)
        if isinstance(network, Exception):
            raise network
        return network


@pytest.mark.parametrize(
    ("networks", "line", "batches_requests"),
    [
        ([Breaking(1000)], "its network has been loaded again", True),
        ([RuntimeError("no such device"), HashNetwork("test")], "continuing with the CPU", False),
        ([Breaking(2), HashNetwork("test")], "continuing with the CPU", False),
    ],
)
def test_a_device_that_fails_is_replaced_and_nothing_is_lost(networks, line, batches_requests, capfd):
    notices.say.cache_clear()
    reload = Reload(*networks)
    with InferenceServer(Breaking(3), threads=3, max_batch=4, reload=reload) as server:
        requests = submitted(server, *range(1, 9))
        wait_for(server, requests)
        assert all(map(is_answered, requests))
        assert server.evaluations == sum(range(1, 9))
        assert server.batches_requests == batches_requests and server.evaluators == (2 if batches_requests else 3)
        assert not reload.networks
    said = capfd.readouterr().err.splitlines()
    assert said[-1] == f"cpu failed (an illegal memory access): {line}"
    assert len(said) == (2 if len(networks) == 2 and isinstance(networks[0], Breaking) else 1)


class LosesNumbers(HashNetwork):
    """A fake device whose outputs are no numbers, as 16 bits give them where they are too few."""

    def __init__(self):
        super().__init__("test")
        self.batches_requests = True

    def evaluate(self, planes, globals_):
        output = super().evaluate(planes, globals_)
        return output._replace(score=np.full_like(output.value, np.nan))


def test_a_device_whose_numbers_are_lost_goes_on_in_32_bits(capfd):
    notices.say.cache_clear()
    reload = Reload(Breaking(1000))
    with InferenceServer(LosesNumbers(), max_batch=4, reload=reload) as server:
        requests = submitted(server, 2, 3)
        wait_for(server, requests)
        assert all(map(is_answered, requests))
    assert reload.exact == [True]
    said = "cpu failed (its outputs (score) are NaN or infinite): its network has been loaded again, in 32 bits"
    assert capfd.readouterr().err.splitlines() == [said]


def test_a_device_that_has_failed_otherwise_may_lose_its_numbers_too():
    notices.say.cache_clear()
    reload = Reload(LosesNumbers(), Breaking(1000))
    with InferenceServer(Breaking(0), max_batch=4, reload=reload) as server:
        requests = submitted(server, 2, 3)
        wait_for(server, requests)
        assert all(map(is_answered, requests)) and server.batches_requests
    assert reload.exact == [False, True]


def test_where_no_device_is_left_every_caller_is_told():
    reload = Reload(RuntimeError("lost"), ValueError("the file is gone"))
    with InferenceServer(Breaking(0), reload=reload) as server:
        (request,) = submitted(server, 2)
        with pytest.raises(RuntimeError, match=r"memory access\), and the CPU cannot continue \(the file is gone\)"):
            server.wait(request)
        with pytest.raises(RuntimeError, match="cannot continue"):
            server.submit(request)


def test_other_devices_take_over_from_one_that_is_lost(capfd):
    notices.say.cache_clear()
    reload = Reload(RuntimeError("lost"))
    with InferenceServer([Breaking(1), Breaking(1000)], max_batch=4, reload=reload) as server:
        while reload.networks:
            requests = submitted(server, 4, 4, 4, 4)
            wait_for(server, requests)
            assert all(map(is_answered, requests))
    assert "continuing with cpu\n" in capfd.readouterr().err


def test_a_callers_mistake_is_not_the_devices():
    reload = Reload()
    with InferenceServer(Breaking(0, ValueError("wrong planes")), reload=reload) as server:
        (request,) = submitted(server, 1)
        with pytest.raises(RuntimeError, match="wrong planes"):
            server.wait(request)


def test_a_waiting_request_can_be_cancelled_a_running_one_not():
    network = GatedNetwork()
    with InferenceServer(network, threads=1) as server:
        running, waiting = request_of(server, 1), request_of(server, 1)
        server.submit(running)
        network.next_entered()
        server.submit(waiting)
        server.cancel(running)
        server.cancel(waiting)
        server.wait(waiting)
        assert waiting.cancelled and not running.done.is_set()
        network.let_out()
        server.wait(running)
        assert not running.cancelled and network.entered.empty()


def test_closing_ends_waiting_requests_in_an_error_and_refuses_new_ones():
    network = GatedNetwork()
    server = InferenceServer(network, threads=1)
    running, waiting = request_of(server, 1), request_of(server, 1)
    server.submit(running)
    network.next_entered()
    server.submit(waiting)
    threading.Timer(0.1, network.let_out).start()
    server.close()
    server.wait(running)
    with pytest.raises(RuntimeError, match="closed"):
        server.wait(waiting)
    with pytest.raises(RuntimeError, match="closed"):
        server.submit(waiting)


def test_warming_up_evaluates_once_or_more():
    with InferenceServer(UniformNetwork("test"), threads=2) as server:
        server.warm_up(SIZE, PLANES, GLOBALS)
        assert server.evaluations == 4
