"""The inference server: threads that evaluate whatever requests are waiting, for one search or many.

On the CPU there is one evaluator thread a core, each with its own batch and a single torch thread. One batch spread
over torch's OpenMP threads is no faster, and those threads spin: beside other busy threads they were measured up to
130 times slower. A GPU has two evaluators, so that its next batch is there before the last one ends; they merge what
waits, of all callers, and share one queue with the evaluators of other GPUs.

No thread spins: evaluators wait on a condition, callers on their request's event. Where the server was given a way to
load the network again, requests survive their device (:mod:`engine.inference.evaluators`); else an error reaches the
caller whose request it was as an exception from :meth:`InferenceServer.wait`. An evaluation that has begun cannot be
stopped, but no caller has to wait for it: see :meth:`InferenceServer.abandon`.
"""

import math
import time
from collections.abc import Sequence

import numpy as np

from engine.inference.cache import OwnerCaches, new_cache, new_owner_caches, wipe
from engine.inference.evaluators import Evaluators, Reload, finish
from engine.inference.slots import Request, State
from engine.nets.network import NetArrays, Network
from engine.system import one_line

UNLIMITED = 1 << 30
"""Positions, where the time of one is not known yet"""
PREPARE_S = 600.0
"""What a device may take at most to prepare for a board size: an evaluator that hangs must not silence the engine."""
CLOSE_S = 10.0
"""How long the end waits for an evaluation that has begun."""


class NetworkFailed(RuntimeError):
    """A network gives no outputs; the message is one line and names it."""


class InferenceServer(Evaluators):
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
            cache_mib: memory of the result cache; the default is as good as none, for those who ask for nothing twice.
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
        super().__init__(networks, threads, max_batch, reload, shared)

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
            if self.merges or self._shared:
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
        present = [name for name in NetArrays._fields if getattr(self.spec, f"has_{name}")]
        return NetArrays(**{name: getattr(request, name) for name in present})

    def cancel(self, request: Request) -> None:
        """Take a request out of the queue if no evaluator has it yet; it is then done, with ``cancelled`` set."""
        with self._changed:
            if request.state is State.QUEUED:
                self._queue.remove(request)
                self.waiting -= request.count
                request.cancelled = True
                finish(request)

    def abandon(self, request: Request) -> None:
        """Let go of a request, whoever has it: who waits for it goes on at once, with ``cancelled`` set.

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
        if self.merges:
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
