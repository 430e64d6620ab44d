"""The inference server: threads that evaluate whatever requests are waiting, for one search or many.

On the CPU there is one evaluator thread a core, each with its own batch and a single torch thread. One batch spread
over torch's OpenMP threads is no faster, and those threads spin: beside other busy threads they were measured up to
130 times slower. A GPU has two evaluators, so that its next batch is there before the last one ends; they merge what
waits, of all callers, and share one queue with the evaluators of other GPUs.

A device with nothing to do takes whatever waits. While one batch runs, the second is held back until it is worth it
(``WORTH``): a batch of two leaves, sent ahead because they came first, costs a GPU nearly as much as one of fifty.
Where the evaluators of the CPU serve many searches, each takes its share of what is in flight, and waits a moment for
it (``LINGER``): alone a position takes twice the time that it takes in a batch of eight, and while one evaluator has
all positions the other has none.

No thread spins: evaluators wait on a condition, callers on their request's event. Where the server was given a way to
load the network again, requests survive their device; else an error reaches the caller whose request it was as an
exception from :meth:`InferenceServer.wait`. An evaluation that has begun cannot be
stopped, but no caller has to wait for it: see :meth:`InferenceServer.abandon`.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import torch

from engine.config.declaration import core_count
from engine.inference.cache import OwnerCaches, new_cache, new_owner_caches, wipe
from engine.inference.device import Device, NotFinite, Pace, evaluate
from engine.inference.slots import Request, State
from engine.nets.compute.runner import new_runner
from engine.nets.network import NetArrays, Network
from engine.nets.notices import say_once
from engine.system import one_line

Reload = Callable[..., Network]
"""Loads the network anew on the device that is its argument; with ``reduced=False`` in 32 bits"""
FLIGHTS = 2
"""Batches in flight on a device that batches requests"""
WORTH = 0.5
"""A batch joins another one on its device when it is at least this share of its size."""

LINGER = 0.25
"""Of the time that a position takes: how long an evaluator of the CPU waits for its share"""
UNLIMITED = 1 << 30
"""Positions, where the time of one is not known yet"""
PREPARE_S = 600.0
"""What a device may take at most to prepare for a board size: an evaluator that hangs must not silence the engine."""
CLOSE_S = 10.0
"""How long the end waits for an evaluation that has begun."""


class NetworkFailed(RuntimeError):
    """A network gives no outputs; the message is one line and names it."""


class InferenceServer:
    """Evaluates requests on its own threads; use as a context manager, or call :meth:`close`.

    Constant after construction: ``spec``, ``cache``. What belongs to devices may change when one fails.

    Threads: any may call what is public at any time. ``waiting``, ``evaluations`` and ``pace`` are written under the
    server's lock; callers only read them.
    """

    def __init__(
        self, network: Network | Sequence[Network], cache_mib: int = 1, threads: int = 0, max_batch: int = 256,
        reload: Reload | None = None, shared: bool = False,
    ):  # fmt: skip
        """Start the evaluator threads.

        Args:
            network: or several copies of one network, each on a device of its own.
            cache_mib: memory of the result cache; the default effectively disables the cache.
            threads: evaluator threads on the CPU; 0 = one a core. A GPU always has two.
            max_batch: most positions in one call of the network.
            reload: used where a device fails; None = the failure of a device is an error of its requests.
            shared: many searches of small batches are served, so requests are merged on the CPU too, whether or not
                their callers would have each evaluated alone.
        """
        networks = list(network) if isinstance(network, Sequence) else [network]
        self.spec = networks[0].spec
        self.cache = new_cache(cache_mib << 20, self.spec.max_size**2 + 1)
        self._cache_mib = cache_mib
        self._owner_caches: OwnerCaches | None = None
        self._cpu_threads, self._max_batch = threads or core_count(), max_batch
        self._reload, self._shared = reload, shared
        self._queue: deque[Request] = deque()
        self.waiting = 0
        """positions that no evaluator has yet"""
        self._changed = threading.Condition()
        self._closed: Exception | None = None
        self.evaluations = 0
        """positions evaluated so far"""
        self.pace = Pace()
        self._shapes: list[tuple[int, int, int]] = []
        """boards that evaluators prepare for: size, planes, globals"""
        self._devices: list[Device] = []
        self._threads: list[threading.Thread] = []
        try:
            for one in networks:
                self._start(one)
        except BaseException as error:
            # A thread that could not be started: those that were must not wait for ever.
            self._end(RuntimeError(one_line(error)))
            raise

    def __enter__(self) -> "InferenceServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_request(self, size: int, capacity: int, planes: int, globals_: int) -> Request:
        """A request as :class:`engine.inference.slots.Request` makes it, page-locked where a GPU reads it."""
        pinned = any(device.network.device.type == "cuda" for device in self._devices)
        return Request(size, capacity, planes, globals_, pinned)

    def submit(self, request: Request) -> None:
        """Queue a filled request of ``request.count`` positions.

        Raises:
            NetworkFailed: the server is closed.
        """
        with self._changed:
            if self._closed is not None:
                raise NetworkFailed(str(self._closed))
            request.error = None
            request.cancelled = False
            request.done.clear()
            request.state = State.QUEUED
            self._queue.append(request)
            self.waiting += request.count
            if self.batches_requests or self._shared:
                self._changed.notify_all()
            else:
                self._changed.notify()

    def wait(self, request: Request, deadline_s: float = math.inf) -> None:
        """Block until a submitted request is done, its outputs may then be read, or ``cancelled``.

        Args:
            deadline_s: ``time.perf_counter`` from when on it is abandoned.
        Raises:
            NetworkFailed: the evaluation failed, or the server was closed first.
        """
        timeout_s = None if deadline_s == math.inf else max(0.0, deadline_s - time.perf_counter())
        if not request.done.wait(timeout_s):
            self.abandon(request)
        if request.error is not None and not request.cancelled:
            raise NetworkFailed(f"network {self.spec.name}: {one_line(request.error)}") from request.error

    def ask(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """Evaluate one batch and wait for it, where no slots are worth keeping.

        Args:
            planes: float32[B, C, N, N].
            globals_: float32[B, G].
        Returns:
            the heads that the network has.
        Raises:
            NetworkFailed: as for :meth:`submit` and :meth:`wait`.
        """
        request = self.new_request(planes.shape[2], len(planes), planes.shape[1], globals_.shape[1])
        request.state = State.FILLING
        request.planes[:], request.globals[:], request.count = planes, globals_, len(planes)
        self.submit(request)
        self.wait(request)
        return NetArrays(**{name: getattr(request, name) for name in self.spec.heads})

    def cancel(self, request: Request) -> None:
        """Take a request out of the queue if no evaluator has it yet; it is then done, with ``cancelled`` set."""
        with self._changed:
            if request.state is State.QUEUED:
                self._queue.remove(request)
                self.waiting -= request.count
                request.cancelled = True
                request.hand_back()

    def abandon(self, request: Request) -> None:
        """Cancel a request that may be running: its caller stops waiting at once, with ``cancelled`` set.

        Unless its state is ``DONE`` afterwards, an evaluator still writes to it, and it must not be used again.
        """
        self.cancel(request)
        with self._changed:
            if request.state is State.RUNNING:
                request.cancelled = True
                request.done.set()

    def positions_until(self, deadline_s: float) -> int:
        """Positions, each asked for by itself, that are evaluated by then if they are asked for now: an estimate.

        Args:
            deadline_s: ``time.perf_counter``.
        """
        with self._changed:
            one_s = self.seconds_per_evaluation
            if one_s <= 0.0 or deadline_s == math.inf:
                return UNLIMITED
            left_s, each = deadline_s - time.perf_counter(), round(one_s / self.pace.seconds_per_position)
            busy_s = [busy_s for device in self._devices for busy_s in device.busy_s(self.pace)]
            return max(0, sum(max(0, int((left_s - one) / one_s)) * each for one in busy_s) - self.waiting)

    def longest_call_s(self) -> float:
        """How long the longest of the calls of the network that run now has taken; 0 = none runs."""
        with self._changed:
            now_s = time.perf_counter()
            return max((now_s - begun_s for device in self._devices for begun_s in device.begun_s()), default=0.0)

    def warm_up(self, size: int, planes: int, globals_: int) -> None:
        """Prepare every evaluator for one board size and evaluate empty boards of it, before the clock starts.

        A GPU makes its graphs for all numbers of positions that it may get.
        """
        if self.batches_requests:
            with self._changed:
                self._shapes.append((size, planes, globals_))
                self._changed.notify_all()
                self._changed.wait_for(self._is_prepared, PREPARE_S)
        requests = [self.new_request(size, 1, planes, globals_) for _ in range(2 * self.evaluators)]
        for request in requests:
            request.count, request.alone = 1, True
            self.submit(request)
        deadline_s = time.perf_counter() + PREPARE_S
        for request in requests:
            self.wait(request, deadline_s)

    def forget(self) -> None:
        """Empty the result cache. Threads: any; what is being written meanwhile may stay."""
        for cache in (self.cache, *(self._owner_caches or ())):
            wipe(cache)

    def owner_caches(self) -> OwnerCaches:
        """The caches of searches that keep ownership; the first that asks has them made, as large as the other one."""
        with self._changed:
            if self._owner_caches is None:
                self._owner_caches = new_owner_caches(self._cache_mib << 20, self.spec.max_size**2 + 1)
            return self._owner_caches

    def close(self) -> None:
        """Stop the threads; waiting requests end in an error. An evaluator that hangs is left behind."""
        self._end(RuntimeError("the inference server is closed"))
        end_s = time.perf_counter() + CLOSE_S
        for thread in list(self._threads):
            thread.join(max(0.0, end_s - time.perf_counter()))

    # The devices and their evaluator threads.

    @property
    def network(self) -> Network:
        """The network, on the first of its devices."""
        return self._devices[0].network

    @property
    def batches_requests(self) -> bool:
        """Whether requests are merged into batches, as for a GPU; else each evaluator takes one at a time."""
        return self.network.batches_requests

    @property
    def evaluators(self) -> int:
        """Evaluator threads: requests that are evaluated at once."""
        return sum(len(device.running) for device in self._devices)

    @property
    def seconds_per_position(self) -> float:
        """Recent time one evaluator takes for one position; 0 before the first measurement."""
        return self.pace.seconds_per_position

    @property
    def seconds_per_evaluation(self) -> float:
        """Recent time in which a position that is asked for alone is evaluated: where requests are merged, a call's."""
        return self.pace.seconds_per_call if self.batches_requests else self.pace.seconds_per_position

    @property
    def max_batch(self) -> int:
        """Most positions in one call of the network; falls where a device runs out of memory."""
        return min(device.max_batch for device in self._devices)

    def _is_prepared(self) -> bool:
        """Whether all evaluators are ready for all boards, or no more will be. The lock is held."""
        ready = min(min(device.prepared) for device in self._devices)
        return self._closed is not None or ready == len(self._shapes)

    def _end(self, error: Exception) -> None:
        """Take no more requests and finish those that wait with an error."""
        with self._changed:
            self._closed = self._closed or error
            for request in self._queue:
                request.hand_back(error)
            self._queue.clear()
            self.waiting = 0
            self._changed.notify_all()

    def _start(self, network: Network) -> None:
        """Add a device and its evaluators."""
        evaluators = FLIGHTS if network.batches_requests else self._cpu_threads
        device = Device(network, self._max_batch, evaluators, [len(self._shapes)] * evaluators)
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

    def _run(self, device: Device, index: int) -> None:
        """One evaluator: take what waits, evaluate, signal; until the server is closed or the device given up."""
        if not device.network.batches_requests:
            torch.set_num_threads(1)
        served = runner = None
        while (requests := self._next(device, index)) is not None:
            network, error = device.network, None
            try:
                if runner is None or network is not served:
                    runner, served = new_runner(network), network
                if requests:
                    idle = partial(self._leave, device, index)
                    limit = evaluate(runner, requests, device.max_batch, idle)
                else:
                    limit = runner.prepare(*self._shapes[device.prepared[index]], device.max_batch)
                self._note_limit(device, limit)
            except Exception as caught:
                error = caught
            self._leave(device, index)
            if not requests:
                self._note_prepared(device, index)
                continue
            # A ValueError is the caller's fault, not the device's.
            if error and self._reload and network.batches_requests and not isinstance(error, ValueError):
                self._requeue(requests)
                self._replace(device, network, self._reload, error)
                continue
            # A call that failed says nothing of how long one takes.
            if error is None:
                count = sum(request.count for request in requests)
                self._note_speed(count, time.perf_counter() - device.since_s[index])
            with self._changed:
                for request in requests:
                    request.hand_back(error)

    def _next(self, device: Device, index: int) -> list[Request] | None:
        """Wait for requests and take them; none = there is a board size to prepare for, None = the end."""
        since_s = 0.0
        with self._changed:
            while not (self._closed or device.is_retired):
                if device.prepared[index] < len(self._shapes):
                    return []
                if not self._is_due(device):
                    since_s = 0.0
                    self._changed.wait()
                    continue
                most = self._share_of(device)
                since_s = since_s or time.perf_counter()
                left_s = since_s + LINGER * self.pace.seconds_per_position - time.perf_counter()
                if self._shared and not device.network.batches_requests and self.waiting < most and left_s > 0.0:
                    self._changed.wait(left_s)
                    continue
                requests = self._take(device, most)
                device.begin(index, sum(request.count for request in requests))
                return requests
            return None

    def _note_prepared(self, device: Device, index: int) -> None:
        """An evaluator is ready for one board size more; if something was wrong, its first batch will say so."""
        with self._changed:
            device.prepared[index] += 1
            self._changed.notify_all()

    def _is_due(self, device: Device) -> bool:
        """Whether a device should take what waits now. The lock is held."""
        if not self._queue or not device.network.batches_requests:
            return bool(self._queue)
        running = sum(device.running)
        return running == 0 or self.waiting >= min(WORTH * running, device.max_batch)

    def _share_of(self, device: Device) -> int:
        """Most positions for an evaluator to take now, but for those of a larger request. The lock is held."""
        if device.network.batches_requests:
            return device.max_batch
        in_flight = self.waiting + sum(device.running)
        return min(device.max_batch, -(-in_flight // device.evaluators))

    def _take(self, device: Device, most: int) -> list[Request]:
        """The next request, and where they are merged those of the same board size that fit. The lock is held.

        Args:
            most: positions.
        """
        first = self._queue.popleft()
        taken, total = [first], first.count
        if self._shared or (device.network.batches_requests and not first.alone):
            while self._queue:
                head = self._queue[0]
                if (head.alone and not self._shared) or head.size != first.size or total + head.count > most:
                    break
                taken.append(self._queue.popleft())
                total += head.count
        self.waiting -= total
        for request in taken:
            request.state = State.RUNNING
        return taken

    def _leave(self, device: Device, index: int) -> None:
        """An evaluator's batch has left the device, which others may be waiting for."""
        with self._changed:
            if device.running[index]:
                device.running[index] = 0
                if device.network.batches_requests and self._queue:
                    self._changed.notify_all()

    def _note_limit(self, device: Device, limit: int) -> None:
        """Keep to what the device's memory held."""
        if limit < device.max_batch:
            with self._changed:
                device.max_batch = min(device.max_batch, limit)
            say_once(f"{device.network.device} is out of memory: batches are smaller from now on")

    def _note_speed(self, count: int, seconds: float) -> None:
        """Count one batch, and let it change the mean time of a position."""
        with self._changed:
            self.evaluations += count
            self.pace.note(count, seconds)

    def _requeue(self, requests: Sequence[Request]) -> None:
        """Put requests back to where they were taken from."""
        with self._changed:
            if self._closed is None:
                for request in reversed(requests):
                    if request.cancelled:
                        request.hand_back()
                        continue
                    request.state = State.QUEUED
                    self._queue.appendleft(request)
                    self.waiting += request.count
            else:
                for request in requests:
                    request.hand_back(self._closed)
            self._changed.notify_all()

    def _replace(self, device: Device, network: Network, reload: Reload, error: Exception) -> None:
        """Load the network of a failed device again, once, and once more in 32 bits where 16 were too few; after that,
        continue with other devices or with the CPU.

        Args:
            network: the one that failed; another evaluator may have replaced it meanwhile.
            error: what went wrong.
        """
        with device.repairing:
            if device.network is not network or device.is_retired:
                return
            name, reason = network.device, one_line(error)
            loses_numbers = isinstance(error, NotFinite) and not device.is_exact
            if loses_numbers or not device.is_second:
                device.is_exact |= loses_numbers
                device.is_second |= not loses_numbers
                # Whatever goes wrong here, the device is given up, and its first failure is what counts.
                with suppress(Exception):
                    device.network = reload(name, reduced=False) if device.is_exact else reload(name)
                    bits = ", in 32 bits" if loses_numbers else ""
                    say_once(f"{name} failed ({reason}): its network has been loaded again{bits}")
                    return
            with self._changed:
                device.is_retired = True
                others = [str(one.network.device) for one in self._devices if not one.is_retired]
                if others:
                    self._devices = [one for one in self._devices if not one.is_retired]
                self._changed.notify_all()
            if others:
                say_once(f"{name} failed ({reason}): continuing with {' and '.join(others)}")
                return
            try:
                self._start(reload(torch.device("cpu")))
                say_once(f"{name} failed ({reason}): continuing with the CPU")
            except Exception as caught:
                self._end(RuntimeError(f"{name} failed ({reason}), and the CPU cannot continue ({one_line(caught)})"))
