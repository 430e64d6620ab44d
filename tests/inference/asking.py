"""Networks that wait, fail or break, and requests to ask them with."""

import queue
import threading

import numpy as np

from engine.inference.server import InferenceServer
from engine.inference.slots import State
from engine.nets.fakes import HashNetwork, UniformNetwork

PLANES, GLOBALS, SIZE = 3, 2, 5


class GatedNetwork(UniformNetwork):
    """A uniform network whose calls tell of their size when they come in, and stay until they are let out."""

    def __init__(self, batches_requests: bool = False):
        super().__init__("test")
        self.batches_requests = batches_requests
        self.entered: queue.Queue[int] = queue.Queue()
        self._gate = threading.Semaphore(0)

    def evaluate(self, planes, globals_):
        self.entered.put(len(planes))
        assert self._gate.acquire(timeout=20)
        return super().evaluate(planes, globals_)

    def next_entered(self) -> int:
        """Size of the next call to come in, which may be a moment away."""
        return self.entered.get(timeout=20)

    def let_out(self, calls: int = 1000) -> None:
        """Let so many calls end, those to come included."""
        self._gate.release(calls)


class FailingNetwork(UniformNetwork):
    """Fails with the given error, or returns numbers that are none from one of its heads."""

    def __init__(self, error: Exception | None, head: str = "value"):
        super().__init__("test")
        self.error, self.head = error, head

    def evaluate(self, planes, globals_):
        if self.error is not None:
            raise self.error
        output = super().evaluate(planes, globals_)
        return output._replace(**{self.head: getattr(output, self.head) + float("nan")})


def request_of(server: InferenceServer, count: int, seed: int = 0):
    """A filled request."""
    request = server.new_request(SIZE, 8, PLANES, GLOBALS)
    rng = np.random.default_rng(seed)
    request.state = State.FILLING
    request.planes[:] = rng.integers(0, 2, request.planes.shape)
    request.globals[:] = rng.normal(0, 1, request.globals.shape)
    request.count = count
    return request


def submitted(server: InferenceServer, *counts: int, alone: bool = False) -> list:
    """Requests of so many positions each, in the queue."""
    requests = [request_of(server, count, seed) for seed, count in enumerate(counts)]
    for request in requests:
        request.alone = alone
        server.submit(request)
    return requests


def wait_for(server: InferenceServer, requests: list) -> None:
    """Until all are done."""
    for request in requests:
        server.wait(request)


class Breaking(HashNetwork):
    """A device that works for some calls and then no more; all its evaluators' calls count."""

    def __init__(self, calls: int = 0, error: Exception | None = None):
        super().__init__("test")
        self.batches_requests = True
        self._left = calls
        self._error = error or RuntimeError("an illegal memory access\nwas encountered")

    def evaluate(self, planes, globals_):
        self._left -= 1
        if self._left < 0:
            raise self._error
        return super().evaluate(planes, globals_)
