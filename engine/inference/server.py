"""The inference server: threads that evaluate queued requests, of one search or many.

On the CPU there is one evaluator thread for each core, with a batch of its own and a single thread. Splitting
one batch over torch's OpenMP threads is no faster, and those threads spin: next to other busy threads they were
measured up to 130 times slower. A GPU has two evaluators, so that its next batch is ready before the last one ends;
they merge waiting requests of all callers, and share one queue with the evaluators of other GPUs.

An idle GPU takes the waiting requests from the front of the queue: up to ``max_batch`` positions, of one board size, up
to the first request with ``alone`` set. While one batch runs, a second one waits until it is large enough (``WORTH``):
a batch of two leaves costs a GPU nearly as much as one of fifty. An evaluator of the CPU takes one request. On a server
with ``shared`` set, which serves many searches, it takes its share of the positions in flight instead, and waits
briefly for it (``LINGER``): a position alone takes twice the time that it takes in a batch of eight, and an evaluator
that took all requests would leave the others idle.

No thread spins: evaluators wait on a condition, callers on their request's event. If the server can reload the network,
the requests of a failed device are evaluated again; otherwise :meth:`InferenceServer.wait` raises the error. A running
evaluation cannot be stopped, but no caller has to wait for it: see :meth:`InferenceServer.cancel`.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from engine.config.declaration import core_count
from engine.inference.cache import OwnershipCaches, new_cache, wipe
from engine.inference.device import Device, NotFinite, Pace, evaluate_requests
from engine.inference.slots import Request, State
from engine.nets.compute.runner import new_runner
from engine.nets.network import NetArrays, Network
from engine.nets.notices import say_once
from engine.system import one_line

Reload = Callable[..., Network]
"""Loads the network again on the device given as its argument; in 32 bits if called with ``reduced=False``"""
GPU_EVALUATORS = 2
"""Number of evaluator threads of a device that merges requests into batches, such as a GPU"""
WORTH = 0.5
"""Minimum size of a second batch on a device, as a share of the running batch's size"""
LINGER = 0.25
"""Longest wait of a CPU evaluator for its share of the positions in flight, in mean times of one position"""
UNLIMITED = 1 << 30
"""Result of :meth:`InferenceServer.positions_until` without a deadline or before any time is known"""
PREPARE_S = 600.0
"""Longest wait for the evaluators' preparation for a board size, so that one that hangs does not block the engine"""
CLOSE_S = 10.0
"""Longest wait for running evaluations when the server is closed"""


class NetworkFailed(RuntimeError):
    """A network failed or does not answer; the message is one line and names it."""


class InferenceServer:
    """Evaluates requests on its own threads; use as a context manager, or call :meth:`close`.

    ``spec`` and ``cache`` are constant; the properties that describe devices may change when a device fails.

    Threads: any may call public methods. ``waiting``, ``evaluations`` and ``pace`` are written under the server's lock;
    callers only read them.
    """

    _ownership_caches: OwnershipCaches | None = None
    """made when a search keeps ownership for the first time"""

    def __init__(
        self, network: Network | Sequence[Network], cache_mib: int = 1, threads: int = 0, max_batch: int = 256,
        reload: Reload | None = None, shared: bool = False,
    ):  # fmt: skip
        """Start the evaluator threads.

        Args:
            network: one network, or copies of it on several devices.
            cache_mib: memory of the result cache; the default effectively disables the cache.
            threads: number of evaluator threads on the CPU; 0 = one for each core. A GPU always has two.
            max_batch: maximum number of positions in one call of the network.
            reload: reloads the network of a failed device; None = the requests of a failed device fail.
            shared: the server has many callers with small requests; evaluators merge them on the CPU too, and ignore
                ``Request.alone``.
        """
        networks = list(network) if isinstance(network, Sequence) else [network]
        self.spec = networks[0].spec
        self.cache = new_cache(cache_mib << 20, self.spec.max_size**2 + 1)
        self._cache_mib = cache_mib
        self._cpu_threads, self._max_batch = threads or core_count(), max_batch
        self._reload = reload
        self.shared = shared
        """as the argument; may be changed while no request is queued"""
        self._queue: deque[Request] = deque()
        self.waiting = 0
        """positions in the queue"""
        self._lock = threading.Condition()
        self._closed: Exception | None = None
        self.evaluations = 0
        """positions evaluated so far"""
        self.pace = Pace()
        self._shapes: list[tuple[int, int, int]] = []
        """input shapes for which evaluators prepare: board size, number of planes, number of global inputs"""
        self._devices: list[Device] = []
        self._threads: list[threading.Thread] = []
        try:
            for one in networks:
                self._start(one)
        except BaseException as error:
            # If one thread cannot be started, the others must end.
            self._end(RuntimeError(one_line(error)))
            raise

    def __enter__(self) -> "InferenceServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_request(self, size: int, capacity: int, planes: int, globals_: int) -> Request:
        """Allocate a request, in page-locked memory if a device is a CUDA GPU; arguments as for :class:`Request`."""
        pinned = any(device.network.device.startswith("cuda") for device in self._devices)
        return Request(size, capacity, planes, globals_, pinned)

    def submit(self, request: Request) -> None:
        """Queue a request whose first ``request.count`` slots are filled.

        Raises:
            NetworkFailed: the server is closed.
        """
        with self._lock:
            if self._closed is not None:
                raise NetworkFailed(str(self._closed))
            request.error = None
            request.cancelled = False
            request.done.clear()
            request.state = State.QUEUED
            self._queue.append(request)
            self.waiting += request.count
            if self.batches_requests or self.shared:
                self._lock.notify_all()
            else:
                self._lock.notify()

    def wait(self, request: Request, deadline_s: float = math.inf) -> None:
        """Block until a submitted request is done. Its outputs can then be read, unless ``request.cancelled`` is set.

        Args:
            deadline_s: ``time.perf_counter`` at which this call cancels the request.
        Raises:
            NetworkFailed: the evaluation failed, or the server was closed before it began.
        """
        timeout_s = None if deadline_s == math.inf else max(0.0, deadline_s - time.perf_counter())
        if not request.done.wait(timeout_s):
            self.cancel(request, running=True)
        if request.error is not None and not request.cancelled:
            raise NetworkFailed(f"network {self.spec.name}: {one_line(request.error)}") from request.error

    def ask(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """Evaluate one batch of positions in a new request, and wait for its outputs.

        Args:
            planes: float32[B, C, N, N].
            globals_: float32[B, G].
        Returns:
            the outputs of the network's heads, B rows each.
        Raises:
            NetworkFailed: as for :meth:`submit` and :meth:`wait`.
        """
        request = self.new_request(planes.shape[2], len(planes), planes.shape[1], globals_.shape[1])
        request.state = State.FILLING
        request.planes[:], request.globals[:], request.count = planes, globals_, len(planes)
        self.submit(request)
        self.wait(request)
        return NetArrays(**{name: getattr(request, name) for name in self.spec.heads})

    def cancel(self, request: Request, running: bool = False) -> None:
        """Remove a request from the queue, so that it is done, with ``cancelled`` set; other requests stay as they are.

        Args:
            running: cancel a running request too: ``cancelled`` is set and its caller's wait ends at once. While its
                state is still ``RUNNING``, an evaluator writes to it, and it must not be reused.
        """
        with self._lock:
            if request.state is State.QUEUED:
                self._queue.remove(request)
                self.waiting -= request.count
                request.cancelled = True
                request.hand_back()
            elif running and request.state is State.RUNNING:
                request.cancelled = True
                request.done.set()

    def positions_until(self, deadline_s: float) -> int:
        """Estimate how many positions, submitted now in a request each, would be evaluated by a deadline.

        Args:
            deadline_s: ``time.perf_counter``.
        """
        with self._lock:
            one_s = self.seconds_per_evaluation
            if one_s <= 0.0 or deadline_s == math.inf:
                return UNLIMITED
            left_s, each = deadline_s - time.perf_counter(), round(one_s / self.pace.seconds_per_position)
            busy_s = [busy_s for device in self._devices for busy_s in device.busy_s(self.pace)]
            return max(0, sum(max(0, int((left_s - one) / one_s)) * each for one in busy_s) - self.waiting)

    def longest_call_s(self) -> float:
        """Seconds since the start of the oldest running call of the network; 0 if no call is running."""
        with self._lock:
            now_s = time.perf_counter()
            return max((now_s - begun_s for device in self._devices for begun_s in device.begun_s()), default=0.0)

    def warm_up(self, size: int, planes: int, globals_: int) -> None:
        """Prepare every evaluator for one board size, and evaluate some inputs of zeros.

        On a GPU, CUDA graphs for all batch sizes are captured.

        Args:
            size: board size.
            planes, globals_: number of planes and of global inputs.
        Raises:
            NetworkFailed: the network failed.
        """
        if self.batches_requests:
            with self._lock:
                self._shapes.append((size, planes, globals_))
                self._lock.notify_all()
                self._lock.wait_for(self._is_prepared, PREPARE_S)
        requests = [self.new_request(size, 1, planes, globals_) for _ in range(2 * self.evaluators)]
        for request in requests:
            request.count, request.alone = 1, True
            self.submit(request)
        deadline_s = time.perf_counter() + PREPARE_S
        for request in requests:
            self.wait(request, deadline_s)

    def forget(self) -> None:
        """Empty the caches. Threads: any; entries written meanwhile may stay."""
        for cache in (self.cache, *(self._ownership_caches or ())):
            wipe(cache)

    def ownership_caches(self) -> OwnershipCaches:
        """The caches of searches that keep ownership, allocated at the first call, each half as large as ``cache``."""
        with self._lock:
            if self._ownership_caches is None:
                half = self._cache_mib << 19, self.spec.max_size**2 + 1
                self._ownership_caches = OwnershipCaches(new_cache(*half), new_cache(*half))
            return self._ownership_caches

    @property
    def ownership_cache_bytes(self) -> int:
        """Memory limit of :meth:`ownership_caches` together; 0 = they have not been made."""
        return self._cache_mib << 20 if self._ownership_caches is not None else 0

    def close(self) -> None:
        """Stop the threads; queued requests fail. A running evaluation has ``CLOSE_S`` to end."""
        self._end(RuntimeError("the inference server is closed"))
        end_s = time.perf_counter() + CLOSE_S
        for thread in list(self._threads):
            thread.join(max(0.0, end_s - time.perf_counter()))

    # The devices and their evaluator threads.

    @property
    def network(self) -> Network:
        """The network on the first device."""
        return self._devices[0].network

    @property
    def batches_requests(self) -> bool:
        """Whether requests are merged, as for a GPU; else an evaluator takes one at a time if not ``shared``."""
        return self.network.batches_requests

    @property
    def evaluators(self) -> int:
        """Number of evaluator threads, which is the maximum number of concurrent calls of the network."""
        return sum(len(device.running) for device in self._devices)

    @property
    def seconds_per_evaluation(self) -> float:
        """Mean time of a position on the CPU; of a whole call if requests are merged; 0 before the first call."""
        return self.pace.seconds_per_call if self.batches_requests else self.pace.seconds_per_position

    @property
    def max_batch(self) -> int:
        """Maximum number of positions in one call of the network; lowered when a device runs out of memory."""
        return min(device.max_batch for device in self._devices)

    def _is_prepared(self) -> bool:
        """Whether all evaluators have prepared for all shapes, or the server is closed. Threads: the lock is held."""
        prepared = min(min(device.prepared) for device in self._devices)
        return self._closed is not None or prepared == len(self._shapes)

    def _end(self, error: Exception) -> None:
        """Close the server for new requests, and end the queued ones with an error."""
        with self._lock:
            self._closed = self._closed or error
            for request in self._queue:
                request.hand_back(error)
            self._queue.clear()
            self.waiting = 0
            self._lock.notify_all()

    def _start(self, network: Network) -> None:
        """Add a network's device and start its evaluators, unless the server is closed."""
        evaluators = GPU_EVALUATORS if network.batches_requests else self._cpu_threads
        device = Device(network, self._max_batch, evaluators, [len(self._shapes)] * evaluators)
        with self._lock:
            if self._closed is not None:
                return
            # Retired devices stay in the list until their replacement is added here.
            self._devices = [*(one for one in self._devices if not one.is_retired), device]
            for index in range(evaluators):
                name = f"evaluator-{network.device}-{index}"
                thread = threading.Thread(target=self._run_evaluator, args=(device, index), name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _run_evaluator(self, device: Device, index: int) -> None:
        """Body of an evaluator's thread, until the server is closed or the device retired."""
        served = runner = None
        while (requests := self._next(device, index)) is not None:
            network, error = device.network, None
            try:
                if runner is None or network is not served:
                    runner, served = new_runner(network), network
                if requests:
                    idle = partial(self._mark_idle, device, index)
                    limit = evaluate_requests(runner, requests, device.max_batch, idle)
                else:
                    limit = runner.prepare(*self._shapes[device.prepared[index]], device.max_batch)
                self._lower_limit(device, limit)
            except Exception as caught:
                error = caught
            self._mark_idle(device, index)
            if not requests:
                with self._lock:
                    # Counts as prepared even after an error, which the first batch of this shape will raise again.
                    device.prepared[index] += 1
                    self._lock.notify_all()
                continue
            # A ValueError means wrong inputs, not a failed device.
            if error and self._reload and network.batches_requests and not isinstance(error, ValueError):
                self._requeue(requests)
                self._replace(device, network, self._reload, error)
                continue
            with self._lock:
                if error is None:
                    count = sum(request.count for request in requests)
                    self.evaluations += count
                    self.pace.note(count, time.perf_counter() - device.since_s[index])
                for request in requests:
                    request.hand_back(error)

    def _next(self, device: Device, index: int) -> list[Request] | None:
        """Wait for the evaluator's next task.

        Returns:
            requests taken from the queue; [] = prepare for the next shape; None = end the thread.
        """
        since_s = 0.0
        with self._lock:
            while not (self._closed or device.is_retired):
                if device.prepared[index] < len(self._shapes):
                    return []  # Prepare for the next shape.
                if not self._is_due(device):
                    since_s = 0.0
                    self._lock.wait()
                    continue
                most = self._share_of(device)
                since_s = since_s or time.perf_counter()
                left_s = since_s + LINGER * self.pace.seconds_per_position - time.perf_counter()
                if self.shared and not device.network.batches_requests and self.waiting < most and left_s > 0.0:
                    self._lock.wait(left_s)
                    continue
                requests = self._take(device, most)
                device.begin(index, sum(request.count for request in requests))
                return requests
            return None  # End the thread.

    def _is_due(self, device: Device) -> bool:
        """Whether an idle evaluator of the device should take requests now. Threads: the lock is held."""
        if not self._queue:
            return False
        if not device.network.batches_requests:
            return True
        running = sum(device.running)
        return running == 0 or self.waiting >= min(WORTH * running, device.max_batch)

    def _share_of(self, device: Device) -> int:
        """Maximum number of positions for an evaluator to take now; a single request may have more.

        Threads: the lock is held.
        """
        if device.network.batches_requests:
            return device.max_batch
        in_flight = self.waiting + sum(device.running)
        return min(device.max_batch, -(-in_flight // device.evaluators))

    def _take(self, device: Device, most: int) -> list[Request]:
        """Take the first request of the queue and, if requests are merged, those that follow with the same board size.

        Args:
            most: maximum number of positions in merged requests together.
        Threads: the lock is held.
        """
        first = self._queue.popleft()
        taken, total = [first], first.count
        if self.shared or (device.network.batches_requests and not first.alone):
            while self._queue:
                head = self._queue[0]
                if (head.alone and not self.shared) or head.size != first.size or total + head.count > most:
                    break
                taken.append(self._queue.popleft())
                total += head.count
        self.waiting -= total
        for request in taken:
            request.state = State.RUNNING
        return taken

    def _mark_idle(self, device: Device, index: int) -> None:
        """Record that an evaluator's batch is done, and wake evaluators that waited for it to end (:meth:`_is_due`)."""
        with self._lock:
            if device.running[index]:
                device.running[index] = 0
                if device.network.batches_requests and self._queue:
                    self._lock.notify_all()

    def _lower_limit(self, device: Device, limit: int) -> None:
        """Lower ``device.max_batch`` to a limit, which is lower after the device ran out of memory."""
        if limit < device.max_batch:
            with self._lock:
                device.max_batch = min(device.max_batch, limit)
            say_once(f"{device.network.device} is out of memory: batches are smaller from now on")

    def _requeue(self, requests: Sequence[Request]) -> None:
        """Put requests back to the front of the queue, in their order; cancelled ones are done instead."""
        with self._lock:
            for request in reversed(requests):
                if request.cancelled or self._closed is not None:
                    request.hand_back(self._closed)
                    continue
                request.state = State.QUEUED
                self._queue.appendleft(request)
                self.waiting += request.count
            self._lock.notify_all()

    def _replace(self, device: Device, network: Network, reload: Reload, error: Exception) -> None:
        """Reload the network of a failed device, or continue with the other devices or with the CPU.

        It is reloaded in 32 bits after the first NaN or infinite outputs, and once after any other failure. After that
        the device is retired.

        Args:
            network: the network that failed; nothing is done if another evaluator has replaced it meanwhile.
            reload: loads a network again on a device.
            error: the failure.
        """
        with device.repairing:
            if device.network is not network or device.is_retired:
                return
            name, reason = network.device, one_line(error)
            loses_numbers = isinstance(error, NotFinite) and not device.is_exact
            if loses_numbers or not device.is_second:
                device.is_exact |= loses_numbers
                device.is_second |= not loses_numbers
                # If reloading fails too, the device is retired, and its first failure is reported.
                with suppress(Exception):
                    device.network = reload(name, reduced=False) if device.is_exact else reload(name)
                    bits = ", in 32 bits" if loses_numbers else ""
                    say_once(f"{name} failed ({reason}): its network has been loaded again{bits}")
                    return
            with self._lock:
                device.is_retired = True
                others = [one.network.device for one in self._devices if not one.is_retired]
                if others:
                    self._devices = [one for one in self._devices if not one.is_retired]
                self._lock.notify_all()
            if others:
                say_once(f"{name} failed ({reason}): continuing with {' and '.join(others)}")
                return
            try:
                self._start(reload("cpu"))
                say_once(f"{name} failed ({reason}): continuing with the CPU")
            except Exception as caught:
                self._end(RuntimeError(f"{name} failed ({reason}), and the CPU cannot continue ({one_line(caught)})"))
