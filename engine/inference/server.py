"""The inference server: threads that evaluate whatever requests are waiting, for one search or many.

On the CPU there is one evaluator thread a core, each with its own batch and a single torch thread. One batch spread
over torch's OpenMP threads is no faster, and those threads spin: beside other busy threads they were measured up to
130 times slower. On a GPU one thread merges waiting requests into batches and keeps the device fed.

Nobody spins: evaluators wait on a condition, callers on their request's event. An error in an evaluator reaches the
caller whose request it was as an exception from :meth:`InferenceServer.wait`.
"""

import os
import threading
import time
from collections import deque

import numpy as np
import torch

from engine.inference.cache import new_cache, wipe
from engine.inference.slots import Request, State
from engine.nets.network import NetOutput, Network

SPEED_MEMORY = 0.8
"""Share of the old figure in the running mean of the time a position takes."""


class InferenceServer:
    """Evaluates requests on its own threads; use as a context manager, or call :meth:`close`.

    Constant after construction: ``network``, ``spec``, ``cache``, ``evaluators``, ``max_batch``.
    """

    def __init__(self, network: Network, cache_mib: int = 256, threads: int = 0, max_batch: int = 256):
        """Start the evaluator threads.

        Args:
            cache_mib: memory of the result cache.
            threads: evaluator threads on the CPU; 0 = one a core. A GPU always has one.
            max_batch: most positions in one call of the network, when requests are merged.
        """
        self.network = network
        self.spec = network.spec
        self.merges = network.device.type != "cpu"
        self.evaluators = 1 if self.merges else threads or core_count()
        self.max_batch = max_batch
        self.cache = new_cache(cache_mib << 20, network.spec.max_size**2 + 1)
        self._queue: deque[Request] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._evaluations = 0
        self._seconds_per_position = 0.0
        self._threads = [
            threading.Thread(target=self._run, name=f"evaluator-{i}", daemon=True) for i in range(self.evaluators)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "InferenceServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def evaluations(self) -> int:
        """Positions evaluated so far."""
        return self._evaluations

    @property
    def waiting(self) -> int:
        """Requests that no evaluator has yet."""
        return len(self._queue)

    @property
    def seconds_per_position(self) -> float:
        """Recent time one evaluator takes for one position; 0 before the first measurement."""
        return self._seconds_per_position

    def new_request(self, size: int, capacity: int, planes: int, globals_: int) -> Request:
        """Slots for a caller; see :class:`engine.inference.slots.Request`."""
        return Request(size, capacity, planes, globals_, pinned=self.network.device.type == "cuda")

    def submit(self, request: Request) -> None:
        """Queue a filled request of ``request.count`` positions.

        Raises:
            RuntimeError: the server is closed.
        """
        with self._changed:
            if self._closed:
                raise RuntimeError("the inference server is closed")
            request.error = None
            request.cancelled = False
            request.done.clear()
            request.state = State.QUEUED
            self._queue.append(request)
            self._changed.notify()

    def wait(self, request: Request) -> None:
        """Block until a submitted request is done; its outputs may then be read.

        Raises:
            RuntimeError: the evaluation failed, or the server was closed first.
        """
        request.done.wait()
        if request.error is not None:
            raise RuntimeError(f"network {self.spec.name}: {_one_line(request.error)}") from request.error

    def ask(self, planes: np.ndarray, globals_: np.ndarray) -> NetOutput:
        """Evaluate one batch and wait for it, where no slots are worth keeping.

        Args:
            planes: float32[B, C, N, N].
            globals_: float32[B, G].
        Returns:
            arrays instead of tensors; None where the network has no such head.
        Raises:
            RuntimeError: as for :meth:`submit` and :meth:`wait`.
        """
        request = self.new_request(planes.shape[2], len(planes), planes.shape[1], globals_.shape[1])
        request.state = State.FILLING
        request.planes[:], request.globals[:], request.count = planes, globals_, len(planes)
        self.submit(request)
        self.wait(request)
        heads = {name: getattr(request, name) for name in NetOutput._fields}
        return NetOutput(**{name: head for name, head in heads.items() if getattr(self.spec, f"has_{name}")})

    def cancel(self, request: Request) -> None:
        """Take a request out of the queue if no evaluator has it yet; it is then done, with ``cancelled`` set."""
        with self._changed:
            if request.state is State.QUEUED:
                self._queue.remove(request)
                request.cancelled = True
                _finish(request)

    def warm_up(self, size: int, planes: int, globals_: int) -> None:
        """Evaluate empty boards of one size on every evaluator, so that compilation falls before the clock starts."""
        requests = [self.new_request(size, 1, planes, globals_) for _ in range(2 * self.evaluators)]
        for request in requests:
            request.count, request.alone = 1, True
            self.submit(request)
        for request in requests:
            self.wait(request)

    def forget(self) -> None:
        """Empty the result cache. Threads: no search may be running."""
        wipe(self.cache)

    def close(self) -> None:
        """Stop the threads; waiting requests end in an error."""
        with self._changed:
            self._closed = True
            left = list(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        for request in left:
            _finish(request, RuntimeError("the inference server was closed"))
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        """One evaluator: take what waits, evaluate, signal; until closed."""
        if not self.merges:
            torch.set_num_threads(1)
        while True:
            with self._changed:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                requests = self._take()
            begin = time.perf_counter()
            try:
                self._evaluate(requests)
                error = None
            except Exception as caught:
                error = caught
            self._note_speed(sum(request.count for request in requests), time.perf_counter() - begin)
            for request in requests:
                _finish(request, error)

    def _take(self) -> list[Request]:
        """The next request, and on a GPU more of the same board size up to ``max_batch``. The lock is held."""
        first = self._queue.popleft()
        taken, total = [first], first.count
        while self.merges and not first.alone and self._queue:
            head = self._queue[0]
            if head.alone or head.size != first.size or total + head.count > self.max_batch:
                break
            taken.append(self._queue.popleft())
            total += head.count
        for request in taken:
            request.state = State.RUNNING
        return taken

    def _evaluate(self, requests: list[Request]) -> None:
        """Run the network on the requests' positions; halve the batch where the GPU's memory refuses it."""
        try:
            self._call_network(requests)
        except torch.OutOfMemoryError:
            if len(requests) == 1:
                raise
            torch.cuda.empty_cache()
            middle = len(requests) // 2
            self.max_batch = max(1, sum(request.count for request in requests[:middle]))
            self._evaluate(requests[:middle])
            self._evaluate(requests[middle:])

    def _call_network(self, requests: list[Request]) -> None:
        """One call of the network, inputs gathered from the requests' slots and outputs spread over them."""
        device = self.network.device
        inputs = []
        for name in ("planes", "globals"):
            parts = [request.tensors[name][: request.count].to(device, non_blocking=True) for request in requests]
            inputs.append(parts[0] if len(parts) == 1 else torch.cat(parts))
        output = self.network.evaluate(*inputs)
        for name, outputs in output._asdict().items():
            if outputs is None:
                continue
            start = 0
            for request in requests:
                target = request.tensors[name][: request.count]
                target.copy_(outputs[start : start + request.count], non_blocking=True)
                start += request.count
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()
        for request in requests:
            # A sum is finite only if all its terms are; one pass without a temporary array.
            total = request.value[: request.count].sum() + request.policy[: request.count].sum()
            if not abs(total) < float("inf"):
                raise RuntimeError("its outputs are no numbers")

    def _note_speed(self, count: int, seconds: float) -> None:
        """Fold one batch into the running figures."""
        with self._changed:
            self._evaluations += count
            old, new = self._seconds_per_position, seconds / count
            self._seconds_per_position = SPEED_MEMORY * old + (1.0 - SPEED_MEMORY) * new if old else new


def _finish(request: Request, error: Exception | None = None) -> None:
    """Hand a request back to its caller."""
    request.error = error
    request.state = State.DONE
    request.done.set()


def core_count() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one_line(error: Exception) -> str:
    """The first line of an error's text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
