"""The server: every request is answered once, errors reach the one who asked, and nothing hangs."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.inference.server import InferenceServer
from engine.inference.slots import State
from engine.nets.fakes import HashNetwork, UniformNetwork
from engine.nets.network import NetOutput

PLANES, GLOBALS, SIZE = 3, 2, 5


class GatedNetwork(UniformNetwork):
    """A uniform network that waits at a gate and remembers the sizes of its batches."""

    def __init__(self):
        super().__init__("test")
        self.gate = threading.Event()
        self.batches: list[int] = []

    def evaluate(self, planes, globals_):
        self.gate.wait(10)
        self.batches.append(len(planes))
        return super().evaluate(planes, globals_)


class FailingNetwork(UniformNetwork):
    """Fails with the given error, or returns numbers that are none."""

    def __init__(self, error: Exception | None):
        super().__init__("test")
        self.error = error

    def evaluate(self, planes, globals_):
        if self.error is not None:
            raise self.error
        output = super().evaluate(planes, globals_)
        return NetOutput(output.policy, output.value + float("nan"), output.score, output.ownership)


def request_of(server: InferenceServer, count: int, seed: int = 0):
    """A filled request."""
    request = server.new_request(SIZE, 8, PLANES, GLOBALS)
    rng = np.random.default_rng(seed)
    request.state = State.FILLING
    request.planes[:] = rng.integers(0, 2, request.planes.shape)
    request.globals[:] = rng.normal(0, 1, request.globals.shape)
    request.count = count
    return request


def test_asking_gives_the_heads_there_are_as_arrays():
    network = HashNetwork("test")
    rng = np.random.default_rng(1)
    planes = rng.integers(0, 2, (4, PLANES, SIZE, SIZE)).astype(np.float32)
    globals_ = rng.normal(0, 1, (4, GLOBALS)).astype(np.float32)
    expected = network.evaluate(torch.from_numpy(planes), torch.from_numpy(globals_))
    network.spec = replace(network.spec, has_value=False, has_score=False)
    with InferenceServer(network, cache_mib=1, threads=1) as server:
        output = server.ask(planes, globals_)
    np.testing.assert_array_equal(output.policy, expected.policy.numpy())
    np.testing.assert_array_equal(output.ownership, expected.ownership.numpy())
    assert output.value is None and output.score is None
    with InferenceServer(FailingNetwork(None), cache_mib=1, threads=1) as server, pytest.raises(RuntimeError):
        server.ask(planes, globals_)


def test_outputs_are_the_networks_own_whatever_is_batched_with_them():
    network = HashNetwork("test")
    with InferenceServer(network, cache_mib=1, threads=2) as server:
        requests = [request_of(server, 1 + seed % 8, seed) for seed in range(20)]
        for request in requests:
            server.submit(request)
        for request in requests:
            server.wait(request)
            direct = network.evaluate(request.tensors["planes"], request.tensors["globals"])
            n = request.count
            assert np.array_equal(request.policy[:n], direct.policy.numpy()[:n])
            assert np.array_equal(request.value[:n], direct.value.numpy()[:n])
            assert np.array_equal(request.score[:n], direct.score.numpy()[:n])
            assert np.array_equal(request.ownership[:n], direct.ownership.numpy()[:n])
            assert request.state is State.DONE
        assert server.evaluations == sum(request.count for request in requests)
        assert server.seconds_per_position > 0


def test_many_callers_at_once_all_get_their_answers():
    with InferenceServer(HashNetwork("test"), cache_mib=1, threads=2) as server:
        failures = []

        def call(seed: int) -> None:
            request = request_of(server, 3, seed)
            for _ in range(50):
                server.submit(request)
                server.wait(request)
                direct = server.network.evaluate(request.tensors["planes"][:3], request.tensors["globals"][:3])
                if not np.array_equal(request.value[:3], direct.value.numpy()):
                    failures.append(seed)

        threads = [threading.Thread(target=call, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures


def test_waiting_requests_are_merged_where_the_device_likes_it():
    network = GatedNetwork()
    with InferenceServer(network, cache_mib=1, threads=1, max_batch=10) as server:
        server.merges = True
        requests = [request_of(server, count) for count in (1, 4, 4, 4, 2)]
        requests[4].alone = True
        for request in requests:
            server.submit(request)
            if request is requests[0]:
                time.sleep(0.05)
        network.gate.set()
        for request in requests:
            server.wait(request)
    assert network.batches == [1, 8, 4, 2]


@pytest.mark.parametrize(
    ("error", "words"),
    [(ValueError("bad weather\nand more"), "network uniform: bad weather"), (None, "no numbers")],
)
def test_an_error_reaches_the_caller_and_the_server_goes_on(error, words):
    network = FailingNetwork(error)
    with InferenceServer(network, cache_mib=1, threads=1) as server:
        for _ in range(2):
            request = request_of(server, 2)
            server.submit(request)
            with pytest.raises(RuntimeError, match=words) as caught:
                server.wait(request)
            assert "\n" not in str(caught.value)


def test_a_batch_too_large_for_the_device_is_halved():
    class SmallMemory(GatedNetwork):
        def evaluate(self, planes, globals_):
            self.gate.wait(10)
            if len(planes) > 4:
                raise torch.OutOfMemoryError("out of memory")
            return super().evaluate(planes, globals_)

    network = SmallMemory()
    with InferenceServer(network, cache_mib=1, threads=1, max_batch=100) as server:
        server.merges = True
        requests = [request_of(server, 2) for _ in range(9)]
        for request in requests:
            server.submit(request)
            if request is requests[0]:
                time.sleep(0.05)
        network.gate.set()
        for request in requests:
            server.wait(request)
        assert server.max_batch <= 4
    assert max(network.batches) <= 4 and sum(network.batches) == 18


def test_a_waiting_request_can_be_cancelled_a_running_one_not():
    network = GatedNetwork()
    with InferenceServer(network, cache_mib=1, threads=1) as server:
        running, waiting = request_of(server, 1), request_of(server, 1)
        server.submit(running)
        time.sleep(0.05)
        server.submit(waiting)
        server.cancel(running)
        server.cancel(waiting)
        server.wait(waiting)
        assert waiting.cancelled and not running.done.is_set()
        network.gate.set()
        server.wait(running)
        assert not running.cancelled and network.batches == [1]


def test_closing_ends_waiting_requests_in_an_error_and_refuses_new_ones():
    network = GatedNetwork()
    server = InferenceServer(network, cache_mib=1, threads=1)
    running, waiting = request_of(server, 1), request_of(server, 1)
    server.submit(running)
    time.sleep(0.05)
    server.submit(waiting)
    threading.Timer(0.1, network.gate.set).start()
    server.close()
    server.wait(running)
    with pytest.raises(RuntimeError, match="closed"):
        server.wait(waiting)
    with pytest.raises(RuntimeError, match="closed"):
        server.submit(waiting)


def test_warming_up_evaluates_once_or_more():
    with InferenceServer(UniformNetwork("test"), cache_mib=1, threads=2) as server:
        server.warm_up(SIZE, PLANES, GLOBALS)
        assert server.evaluations == 4
