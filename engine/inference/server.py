"""The inference server: threads that evaluate whatever requests are waiting, for one search or many.

On the CPU there is one evaluator thread a core, each with its own batch and a single torch thread. One batch spread
over torch's OpenMP threads is no faster, and those threads spin: beside other busy threads they were measured up to
130 times slower. A GPU has two evaluators, so that its next batch is there before the last one ends; they merge what
waits, of all callers, and share one queue with the evaluators of other GPUs.

A device with nothing to do takes whatever waits. While one batch runs, the second is held back until it is worth it
(``WORTH``): a batch of two leaves, sent ahead because they came first, costs a GPU nearly as much as one of fifty.

No thread spins: evaluators wait on a condition, callers on their request's event. Where the server was given a way to
load the network again, requests survive their device (:meth:`InferenceServer._replace`); else an error reaches the
caller whose request it was as an exception from :meth:`InferenceServer.wait`.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch

from engine.config.declaration import core_count
from engine.inference.cache import new_cache, wipe
from engine.inference.device_batch import evaluate
from engine.inference.slots import Request, State
from engine.nets.compute.runner import new_runner
from engine.nets.network import NetArrays, Network
from engine.nets.notices import say_once

Reload = Callable[[torch.device], Network]
"""Loads the network on a device anew"""
SPEED_MEMORY = 0.8
"""Share of the old mean in the running mean of the time a position takes."""
FLIGHTS = 2
"""Batches in flight on a device that merges them"""
WORTH = 0.5
"""A batch joins another one on its device when it is at least this share of its size."""


@dataclass
class _Device:
    """A network where it runs; everything is guarded by the server's lock."""

    network: Network
    max_batch: int
    """falls when memory runs out"""
    running: list[int]
    """positions that each evaluator has in flight"""
    is_second: bool = False
    """its network has been loaded again once"""
    is_retired: bool = False
    repairing: threading.Lock = field(default_factory=threading.Lock)
    """held while a failure is dealt with"""


class InferenceServer:
    """Evaluates requests on its own threads; use as a context manager, or call :meth:`close`.

    Constant after construction: ``spec``, ``cache``. What belongs to devices may change when one fails.

    Threads: any may call what is public at any time, but :meth:`forget`. ``waiting``, ``evaluations`` and
    ``seconds_per_position`` are written under the server's lock; callers only read them.
    """

    def __init__(
        self, network: Network | Sequence[Network], cache_mib: int = 256, threads: int = 0, max_batch: int = 256,
        reload: Reload | None = None, shared: bool = False,
    ):  # fmt: skip
        """Start the evaluator threads.

        Args:
            network: or several copies of one network, each on a device of its own.
            cache_mib: memory of the result cache.
            threads: evaluator threads on the CPU; 0 = one a core. A GPU always has two.
            max_batch: most positions in one call of the network.
            reload: used where a device fails; None = the failure of a device is an error of its requests.
            shared: many searches of small batches are served, so requests are merged on the CPU too, whether or not
                their callers would have each evaluated alone.
        """
        networks = list(network) if isinstance(network, Sequence) else [network]
        self.spec = networks[0].spec
        self.cache = new_cache(cache_mib << 20, self.spec.max_size**2 + 1)
        self._cpu_threads = threads or core_count()
        self._max_batch = max_batch
        self._reload = reload
        self._shared = shared
        self._queue: deque[Request] = deque()
        self.waiting = 0
        """positions that no evaluator has yet"""
        self._changed = threading.Condition()
        self._closed: Exception | None = None
        self.evaluations = 0
        """positions evaluated so far"""
        self.seconds_per_position = 0.0
        """recent time one evaluator takes for one position; 0 before the first measurement"""
        self._devices: list[_Device] = []
        self._threads: list[threading.Thread] = []
        for one in networks:
            self._start(one)

    def __enter__(self) -> "InferenceServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def network(self) -> Network:
        """The network, on the first of its devices."""
        return self._devices[0].network

    @property
    def merges(self) -> bool:
        """Whether requests are merged into batches, as for a GPU; else each evaluator takes one at a time."""
        return self.network.merges

    @property
    def evaluators(self) -> int:
        """Evaluator threads: requests that are evaluated at once."""
        return sum(len(device.running) for device in self._devices)

    @property
    def max_batch(self) -> int:
        """Most positions in one call of the network; falls where a device runs out of memory."""
        return min(device.max_batch for device in self._devices)

    def new_request(self, size: int, capacity: int, planes: int, globals_: int) -> Request:
        """A request as :class:`engine.inference.slots.Request` makes it, page-locked where a GPU reads it."""
        pinned = any(device.network.device.type == "cuda" for device in self._devices)
        return Request(size, capacity, planes, globals_, pinned)

    def submit(self, request: Request) -> None:
        """Queue a filled request of ``request.count`` positions.

        Raises:
            RuntimeError: the server is closed.
        """
        with self._changed:
            if self._closed is not None:
                raise RuntimeError(str(self._closed))
            request.error = None
            request.cancelled = False
            request.done.clear()
            request.state = State.QUEUED
            self._queue.append(request)
            self.waiting += request.count
            self._changed.notify(self.evaluators if self.merges else 1)

    def wait(self, request: Request) -> None:
        """Block until a submitted request is done; its outputs may then be read.

        Raises:
            RuntimeError: the evaluation failed, or the server was closed first.
        """
        request.done.wait()
        if request.error is not None:
            raise RuntimeError(f"network {self.spec.name}: {_one_line(request.error)}") from request.error

    def ask(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """Evaluate one batch and wait for it, where no slots are worth keeping.

        Args:
            planes: float32[B, C, N, N].
            globals_: float32[B, G].
        Returns:
            the heads that the network has.
        Raises:
            RuntimeError: as for :meth:`submit` and :meth:`wait`.
        """
        request = self.new_request(planes.shape[2], len(planes), planes.shape[1], globals_.shape[1])
        request.state = State.FILLING
        request.planes[:], request.globals[:], request.count = planes, globals_, len(planes)
        self.submit(request)
        self.wait(request)
        present = [name for name in NetArrays._fields if getattr(self.spec, f"has_{name}")]
        return NetArrays(**{name: getattr(request, name) for name in present})

    def cancel(self, request: Request) -> None:
        """Take a request out of the queue if no evaluator has it yet; it is then done, with ``cancelled`` set."""
        with self._changed:
            if request.state is State.QUEUED:
                self._queue.remove(request)
                self.waiting -= request.count
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
        self._end(RuntimeError("the inference server is closed"))
        for thread in list(self._threads):
            thread.join()

    def _end(self, error: Exception) -> None:
        """Take no more requests and finish those that wait with an error."""
        with self._changed:
            self._closed = self._closed or error
            left = list(self._queue)
            self._queue.clear()
            self.waiting = 0
            self._changed.notify_all()
        for request in left:
            _finish(request, error)

    def _start(self, network: Network) -> None:
        """Add a device and its evaluators."""
        evaluators = FLIGHTS if network.merges else self._cpu_threads
        device = _Device(network, self._max_batch, [0] * evaluators)
        with self._changed:
            if self._closed is not None:
                return
            # Where it replaces one that failed, there is never a moment without any.
            self._devices = [*(one for one in self._devices if not one.is_retired), device]
            for index in range(evaluators):
                name = f"evaluator-{network.device}-{index}"
                thread = threading.Thread(target=self._run, args=(device, index), name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _run(self, device: _Device, index: int) -> None:
        """One evaluator: take what waits, evaluate, signal; until the server is closed or the device given up."""
        if not device.network.merges:
            torch.set_num_threads(1)
        served = runner = None
        while requests := self._next(device, index):
            begin, network, error = time.perf_counter(), device.network, None
            try:
                if runner is None or network is not served:
                    runner, served = new_runner(network), network
                idle = partial(self._leave, device, index)
                self._note_limit(device, evaluate(runner, requests, device.max_batch, idle))
            except Exception as caught:
                error = caught
            self._leave(device, index)
            # A ValueError is the caller's fault, not the device's.
            if error and self._reload and network.merges and not isinstance(error, ValueError):
                self._requeue(requests)
                self._replace(device, network, self._reload, _one_line(error))
                continue
            self._note_speed(sum(request.count for request in requests), time.perf_counter() - begin)
            for request in requests:
                _finish(request, error)

    def _next(self, device: _Device, index: int) -> list[Request]:
        """Wait for requests and take them; empty = the end."""
        with self._changed:
            while not (self._closed or device.is_retired or self._is_due(device)):
                self._changed.wait()
            if self._closed or device.is_retired:
                return []
            requests = self._take(device)
            device.running[index] = sum(request.count for request in requests)
            return requests

    def _is_due(self, device: _Device) -> bool:
        """Whether a device should take what waits now. The lock is held."""
        if not self._queue or not device.network.merges:
            return bool(self._queue)
        running = sum(device.running)
        return running == 0 or self.waiting >= min(WORTH * running, device.max_batch)

    def _take(self, device: _Device) -> list[Request]:
        """The next request, and where they are merged all of the same board size that fit. The lock is held."""
        first = self._queue.popleft()
        taken, total = [first], first.count
        if self._shared or (device.network.merges and not first.alone):
            while self._queue:
                head = self._queue[0]
                if (
                    (head.alone and not self._shared)
                    or head.size != first.size
                    or total + head.count > device.max_batch
                ):
                    break
                taken.append(self._queue.popleft())
                total += head.count
        self.waiting -= total
        for request in taken:
            request.state = State.RUNNING
        return taken

    def _leave(self, device: _Device, index: int) -> None:
        """An evaluator's batch has left the device, which others may be waiting for."""
        with self._changed:
            if device.running[index]:
                device.running[index] = 0
                if device.network.merges and self._queue:
                    self._changed.notify_all()

    def _note_limit(self, device: _Device, limit: int) -> None:
        """Keep to what the device's memory held."""
        if limit < device.max_batch:
            with self._changed:
                device.max_batch = min(device.max_batch, limit)
            say_once(f"{device.network.device} is out of memory: batches are smaller from now on")

    def _note_speed(self, count: int, seconds: float) -> None:
        """Count one batch, and let it change the mean time of a position."""
        with self._changed:
            self.evaluations += count
            old, new = self.seconds_per_position, seconds / count
            self.seconds_per_position = SPEED_MEMORY * old + (1.0 - SPEED_MEMORY) * new if old else new

    def _requeue(self, requests: Sequence[Request]) -> None:
        """Put requests back to where they were taken from."""
        with self._changed:
            if self._closed is None:
                for request in reversed(requests):
                    request.state = State.QUEUED
                    self._queue.appendleft(request)
                    self.waiting += request.count
                self._changed.notify_all()
                return
        for request in requests:
            _finish(request, self._closed)

    def _replace(self, device: _Device, network: Network, reload: Reload, reason: str) -> None:
        """Load the network of a failed device again, once; after that, go on with other devices or with the CPU.

        Args:
            network: the one that failed; another evaluator may have replaced it meanwhile.
        """
        with device.repairing:
            if device.network is not network or device.is_retired:
                return
            name = network.device
            if not device.is_second:
                device.is_second = True
                # Whatever goes wrong here, the device is given up, and its first failure is what counts.
                with suppress(Exception):
                    device.network = reload(network.device)
                    say_once(f"{name} failed ({reason}): its network has been loaded again")
                    return
            with self._changed:
                device.is_retired = True
                others = [str(one.network.device) for one in self._devices if not one.is_retired]
                if others:
                    self._devices = [one for one in self._devices if not one.is_retired]
                self._changed.notify_all()
            if others:
                say_once(f"{name} failed ({reason}): going on with {' and '.join(others)}")
                return
            try:
                self._start(reload(torch.device("cpu")))
                say_once(f"{name} failed ({reason}): going on with the CPU")
            except Exception as caught:
                self._end(RuntimeError(f"{name} failed ({reason}), and the CPU cannot go on ({_one_line(caught)})"))


def _finish(request: Request, error: Exception | None = None) -> None:
    """Hand a request back to its caller."""
    request.error = error
    request.state = State.DONE
    request.done.set()


def _one_line(error: Exception) -> str:
    """The first line of an error's text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
