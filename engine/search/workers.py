"""The workers of a search: started together, watched while they work, and ended together.

An evaluation that runs when a search is stopped, or is not there by its deadline, cannot be stopped, but the search
ends without it: its playouts are taken back, and its request is left to the evaluator.
"""

import math
import threading
import time
from collections.abc import Callable

from engine.inference.server import InferenceServer, NetworkFailed
from engine.search.pools import META_IN_FLIGHT, META_ROOT_VISITS
from engine.search.state import Run, Setup, SharedTree
from engine.search.worker import Worker
from engine.system.errors import one_line

WAKE_S = 1.0
"""How long the thread that runs a search waits at most: timed waits alone let signals through everywhere."""
PATIENCE_S, PATIENCE_SHARE = 0.02, 0.1
"""How long evaluations that run when a search is stopped are waited for, and the most of it as a share of the search's
time; on a machine that is fast enough they are worth it."""
FIRST_S = 0.5
"""How long a stopped search still waits for the evaluation of its root, without which there is no move"""
HANG_S, HANG_CALLS = 60.0, 10.0
"""A search ends in an error when nothing has come of it for ``HANG_S``, because a call of the network takes longer than
that and than ``HANG_CALLS`` usual ones."""


class Workers:
    """The workers of a search, for one board size. Threads: one calls :meth:`work`; :meth:`stop` is for any."""

    def __init__(self, setup: Setup, shared: SharedTree, size: int) -> None:
        self.each = [Worker(setup, shared, size, index) for index in range(setup.n_workers)]
        self.stopping = threading.Event()
        """the run in progress is to end"""
        self._setup, self._shared = setup, shared
        self._working = 0
        self._finished = threading.Event()
        self._woken = threading.Event()
        """set by what :meth:`work` waits for"""

    def work(self, run: Run, due_s: float = math.inf, tell: Callable[[float], float] | None = None) -> None:
        """Run the workers to their end; they end too if one cannot be started, or ``tell`` fails.

        Args:
            due_s: ``time.perf_counter`` when ``tell`` is to be called; given this, it returns when it is due next.
        Raises:
            NetworkFailed: it did, or does not answer.
        """
        self._finished.clear()
        self._woken.clear()
        self._working, threads = len(self.each), list[threading.Thread]()
        try:
            for index, worker in enumerate(self.each):
                name = f"search-{index}"
                threads.append(threading.Thread(target=self._run, args=(worker, run), name=name, daemon=True))
                threads[-1].start()
            self._watch(run, due_s, tell)
        finally:
            if not self._finished.is_set():
                self.stop()
                self._let_go(run)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        if self._shared.error is not None:
            raise self._shared.error

    def _run(self, worker: Worker, run: Run) -> None:
        """A worker's thread; the last one to end says so."""
        try:
            worker.run(run)
        finally:
            with self._shared.changed:
                self._working -= 1
                if self._working == 0:
                    self._finished.set()
                    self._woken.set()

    def _watch(self, run: Run, due_s: float, tell: Callable[[float], float] | None) -> None:
        """Wait for the end of a run, or for what ends it; report meanwhile."""
        server = self._setup.network.server if self._setup.network else None
        meta, known, since_s = self._shared.tree.meta, (-1, 0), 0.0
        # Where a call hung before, the other evaluators need no more than their usual time to show that they work.
        patience_s = WAKE_S if server is not None and _hangs(server) else HANG_S
        while not (self._finished.is_set() or self.stopping.is_set()):
            # Other evaluations may hang, of other workers or older ones of the same.
            if self._shared.error is not None:
                return
            for error in (worker.failure() for worker in self.each):
                if error is not None and server is not None:
                    raise NetworkFailed(f"network {server.spec.name}: {one_line(error)}") from error
            now_s = time.perf_counter()
            end_s = run.deadline_s if meta[META_ROOT_VISITS] > 0 else run.first_deadline_s
            if now_s >= end_s:
                return
            if tell is not None and now_s >= due_s:
                due_s = tell(due_s)
                continue
            found = (int(meta[META_ROOT_VISITS]), server.evaluations if server else 0)
            if found != known or not meta[META_IN_FLIGHT]:
                known, since_s = found, now_s
            elif server is not None and now_s - since_s > patience_s and _hangs(server):
                raise NetworkFailed(f"network {server.spec.name}: no answer for {now_s - since_s:.0f} s")
            self._woken.wait(max(0.0, min(WAKE_S, due_s - now_s, end_s - now_s)))

    def _let_go(self, run: Run) -> None:
        """Wait a moment for evaluations that run, then no longer."""
        patience_s = min(PATIENCE_S, PATIENCE_SHARE * (run.deadline_s - run.started_s))
        if self._shared.tree.meta[META_ROOT_VISITS] == 0:
            patience_s = max(patience_s, min(FIRST_S, run.first_deadline_s - time.perf_counter()))
        self._finished.wait(patience_s)
        run.let_go.set()
        for worker in self.each:
            worker.abandon()

    def stop(self) -> None:
        """End the run in progress soon; without one, nothing happens. Threads: any."""
        self.stopping.set()
        self._woken.set()
        for worker in self.each:
            worker.cancel()


def _hangs(server: InferenceServer) -> bool:
    """Whether it is the network that nothing comes of; a kernel that is compiled takes its time too."""
    return server.longest_call_s() > max(HANG_S, HANG_CALLS * server.pace.seconds_per_call)
