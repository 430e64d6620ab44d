"""The evaluator threads of the inference server: they take what waits, evaluate it and signal.

A device with nothing to do takes whatever waits. While one batch runs, the second is held back until it is worth it
(``WORTH``): a batch of two leaves, sent ahead because they came first, costs a GPU nearly as much as one of fifty.
Where the evaluators of the CPU serve many searches, each takes its share of what is in flight, and waits a moment for
it (``LINGER``): alone a position takes twice the time that it takes in a batch of eight, and while one evaluator has
all positions the other has none.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import torch

from engine.config.declaration import core_count
from engine.inference.device import Device, Pace
from engine.inference.device_batch import NotFinite, evaluate
from engine.inference.slots import Request, State
from engine.nets.compute.runner import new_runner
from engine.nets.network import Network
from engine.nets.notices import say_once
from engine.system import one_line

Reload = Callable[..., Network]
"""Loads the network anew on the device that is its argument; with ``reduced=False`` in 32 bits"""
FLIGHTS = 2
"""Batches in flight on a device that merges them"""
WORTH = 0.5
"""A batch joins another one on its device when it is at least this share of its size."""

LINGER = 0.25
"""Of the time that a position takes: how long an evaluator of the CPU waits for its share"""


class Evaluators:
    """Threads that call a network, on one device or several. Threads: one starts and ends them."""

    def __init__(
        self, networks: Sequence[Network], threads: int, max_batch: int, reload: Reload | None, shared: bool
    ) -> None:
        """Start them; arguments as of :class:`engine.inference.server.InferenceServer`."""
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
    def seconds_per_position(self) -> float:
        """Recent time one evaluator takes for one position; 0 before the first measurement."""
        return self.pace.seconds_per_position

    @property
    def seconds_per_evaluation(self) -> float:
        """Recent time in which a position that is asked for alone is evaluated: where requests are merged, a call's."""
        return self.pace.seconds_per_call if self.merges else self.pace.seconds_per_position

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
                finish(request, error)
            self._queue.clear()
            self.waiting = 0
            self._changed.notify_all()

    def _start(self, network: Network) -> None:
        """Add a device and its evaluators."""
        evaluators = FLIGHTS if network.merges else self._cpu_threads
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
        if not device.network.merges:
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
            if error and self._reload and network.merges and not isinstance(error, ValueError):
                self._requeue(requests)
                self._replace(device, network, self._reload, error)
                continue
            # A call that failed says nothing of how long one takes.
            if error is None:
                count = sum(request.count for request in requests)
                self._note_speed(count, time.perf_counter() - device.since_s[index])
            with self._changed:
                for request in requests:
                    finish(request, error)

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
                if self._shared and not device.network.merges and self.waiting < most and left_s > 0.0:
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
        if not self._queue or not device.network.merges:
            return bool(self._queue)
        running = sum(device.running)
        return running == 0 or self.waiting >= min(WORTH * running, device.max_batch)

    def _share_of(self, device: Device) -> int:
        """Most positions for an evaluator to take now, but for those of a larger request. The lock is held."""
        if device.network.merges:
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
        if self._shared or (device.network.merges and not first.alone):
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
                if device.network.merges and self._queue:
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
                        finish(request)
                        continue
                    request.state = State.QUEUED
                    self._queue.appendleft(request)
                    self.waiting += request.count
            else:
                for request in requests:
                    finish(request, self._closed)
            self._changed.notify_all()

    def _replace(self, device: Device, network: Network, reload: Reload, error: Exception) -> None:
        """Load the network of a failed device again, once, and once more in 32 bits where 16 were too few; after that,
        go on with other devices or with the CPU.

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
                say_once(f"{name} failed ({reason}): going on with {' and '.join(others)}")
                return
            try:
                self._start(reload(torch.device("cpu")))
                say_once(f"{name} failed ({reason}): going on with the CPU")
            except Exception as caught:
                self._end(RuntimeError(f"{name} failed ({reason}), and the CPU cannot go on ({one_line(caught)})"))


def finish(request: Request, error: Exception | None = None) -> None:
    """Hand a request back to its caller. Threads: the server's lock is held, since an abandoned one is used again."""
    request.error = error
    request.state = State.DONE
    request.done.set()
