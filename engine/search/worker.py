"""One search thread: the loop that turns leaves into visits.

:meth:`Worker.run` repeats these steps. It keeps several batches in flight, so that neither it nor the evaluators wait:

1. :meth:`Worker._select`: lock; select K leaves, mark their paths as in flight; unlock
2. :meth:`Worker._prepare`: replay each path on the worker's own position, score finished games, list moves, probe the
   result cache, encode the misses into the slots of a request; submit it
3. :meth:`Worker._score_finished`: estimate dead stones in finished games under territory rules
4. :meth:`Worker._roll_out`: play a rollout from each leaf, if rollouts have a weight
5. :meth:`Worker._expand_early`: expand leaves with placeholder priors, if playouts may pass before the network answers
6. :meth:`Worker._collect`: wait for the oldest batch; copy its results, turn logits into priors
7. :meth:`Worker._back_up`: lock; expand, back up, unmark the paths; unlock

Steps 1 to 5 are repeated while a batch is idle; then the oldest batch in flight goes through steps 6 and 7. Kernels
work on whole batches: Python loops over leaves only where a game has ended. Batches are completed in the order in which
they were started, so a single worker grows the same tree every time.

A leaf's way to the network and back, in the order of calls:

a. ``search/selection.py``: ``select`` walks down to the leaf
b. ``search/leaves.py``: ``prepare_for_network`` replays the path (``replay``), looks the position up in the result
   cache (``probe`` in ``inference/cache.py``) and encodes a miss (``encode`` in ``features/encoder.py``) into a slot
c. ``inference/server.py``: ``submit`` queues the request (``Request`` in ``inference/slots.py``) with these slots
d. ``inference/server.py``: an evaluator thread (``_run_evaluator``) takes it (``_next``, ``_take``)
e. ``inference/device.py``: ``evaluate_requests`` forms batches (``split``)
f. ``nets/compute/runner.py``: ``Runner.run`` joins the inputs of a batch and calls ``Network.evaluate``
g. ``nets/compute/by_program.py``: ``ProgramNetwork.evaluate`` runs the network's program (``CompiledNetwork.run`` in
   ``nets/compute/program.py``); on a GPU ``nets/compute/by_torch.py``: ``TorchNetwork.evaluate_tensors``
h. ``inference/device.py``: ``copy_outputs`` writes the outputs into the slots
i. ``inference/server.py``: ``_run_evaluator`` calls ``Request.hand_back``, which ends the worker's ``wait``
j. ``search/leaves.py``: ``take_results`` copies the outputs from the slots into the batch and the result cache
   (``insert``); ``write_leaf_priors`` turns logits into priors (``write_codes`` in ``search/priors.py``)
k. ``search/backup.py``: ``complete`` expands the leaf and backs its value up

:class:`Workers` starts and ends the workers of a search together and watches them. A running evaluation cannot be
stopped. If it outlasts the search, its leaves are released and its request is left to the evaluator.
"""

import enum
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from engine.config import SearchOptions
from engine.features.symmetry import symmetry_table
from engine.go.position import META_N_MOVES, META_TO_MOVE, Position, new_position
from engine.go.random import seed_state
from engine.inference.cache import Cache
from engine.inference.server import InferenceServer, NetworkFailed
from engine.inference.slots import Request, State
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.policy import new_weights
from engine.rollout.softmax import new_candidates
from engine.search.alphago_2016 import adapted, back_up_rollouts_early, expand_with_placeholders, mechanisms
from engine.search.backup import complete, release
from engine.search.leaves import (
    FINISHED,
    MAX_DEPTH,
    UNSCORED,
    new_batch,
    prepare,
    prepare_by_patterns,
    prepare_for_network,
    roll_out,
    roll_out_by_policy,
    score_finished_territory,
    take_results,
    tree_policy_priors,
    write_equal_priors,
    write_leaf_priors,
)
from engine.search.ownership import finished_ownership, store_ownership, take_ownership
from engine.search.selection import select
from engine.search.state import Run, Setup, SharedTree
from engine.search.stoppers import UNLIMITED, playouts_allowed
from engine.search.tree import EDGE_CLASSES, META_FULL, META_IN_FLIGHT, META_ROOT_VISITS, reserve
from engine.search.values import weigh_paths
from engine.system import one_line

BATCH_SECONDS = 0.02
"""Longest expected evaluation time of a batch in an urgent run (``Run.is_urgent``)"""
GPU_LEAVES = 384
"""Minimum number of leaves that a search keeps in flight for a GPU: for one batch being computed, one in the queue and
one being selected or backed up"""
ASYNC_FLIGHTS = 16
"""Number of batches that a worker keeps in flight if values are backed up later than rollouts"""
EDGES_A_BATCH = 2 << (EDGE_CLASSES - 1)
"""Edge rows kept free before selection: room to move the longest block of edges, and shorter ones"""


class _Outcome(enum.Enum):
    """How an attempt to start a batch ended."""

    STARTED = enum.auto()
    BLOCKED = enum.auto()
    """no leaf selected now: all batches are in flight, the first path collided, or a row was refused"""
    STOPPED = enum.auto()
    """a stopper allows no playout, or no leaf can be selected although none is in flight"""


class _Flight:
    """A batch and, with a network, the request for its cache misses."""

    def __init__(self, setup: Setup, size: int):
        self.batch = new_batch(size, setup.options.batch, setup.value_bias > 0.0)
        self.count = 0
        self.ownership = np.zeros((0, size * size), np.float32)
        """float32[K, N*N]: the leaves' ownership, 1 = Black's; empty in a search that keeps none"""
        self.request = self._new_request(setup, size)

    @staticmethod
    def _new_request(setup: Setup, size: int) -> Request | None:
        """A request with a slot for each leaf of a batch; None without a network."""
        if setup.network is None:
            return None
        server, encoder = setup.network
        request = server.new_request(size, setup.options.batch, encoder.planes, encoder.globals)
        # A batch of its own: the results of a single worker then do not depend on other requests in the queue.
        request.alone = setup.options.threads == 1
        return request

    def reset(self, setup: Setup, size: int) -> None:
        """Make the flight usable again after a cancellation; a request that is still queued or running is replaced."""
        if self.request is None:
            return
        if self.request.state in (State.QUEUED, State.RUNNING):
            self.request = self._new_request(setup, size)
        else:
            # Else Workers._watch of the next run, which may look before the request is submitted, finds an old error.
            self.request.error = None


def flights(options: SearchOptions, evaluators: int, batches_requests: bool) -> int:
    """Number of batches that each worker of a search with a network keeps in flight.

    Args:
        options: resolved.
        evaluators, batches_requests: attributes of the :class:`engine.inference.server.InferenceServer`.
    """
    has_late_values = mechanisms(options, True, not options.uniform_rollouts).async_values
    leaves = options.threads * options.batch
    if leaves == 1 and not has_late_values:
        return 1
    # Over all workers, at least one batch more than there are evaluators, so that no evaluator waits. With late values
    # a worker plays rollouts while its requests wait, so it begins more batches.
    least = max(ASYNC_FLIGHTS if has_late_values else 2, 1 + -(-evaluators // options.threads))
    return max(least, -(-GPU_LEAVES // leaves)) if batches_requests else least


class Worker:
    """A search thread's private memory, kept from run to run; :meth:`run` is the body of the thread."""

    def __init__(self, setup: Setup, shared: SharedTree, size: int, index: int):
        """Allocate memory for boards of one size.

        Args:
            size: board size N.
            index: the worker's number in its search; with the option ``seed`` it seeds the random numbers.
        """
        self._setup = setup
        self._shared = shared
        self._size = size
        self._index = index
        server = setup.network.server if setup.network else None
        count = flights(setup.options, server.evaluators, server.batches_requests) if server else 1
        self._scratch = setup.network.encoder.new_scratch(size) if setup.network else None
        self._idle = deque(_Flight(setup, size) for _ in range(count))
        self._flying: deque[_Flight] = deque()
        self._flights = tuple(self._idle)
        self._position = new_position(size, MAX_DEPTH)
        self._symmetries = symmetry_table(size)
        self._candidates = new_candidates(size)
        self._weights = new_weights(size)
        self.restart()

    def restart(self) -> None:
        """Reset the random numbers and the last good replies when the tree is cleared."""
        self._random = seed_state(self._setup.options.seed, self._index)
        self._replies = new_last_good_replies()

    def warm_up(self) -> None:
        """Compile the kernel ``release`` by a call for 0 leaves. Threads: no search is running."""
        release(self._shared.tree, self._idle[0].batch, 0)

    def make_room(self, root: Position) -> None:
        """Enlarge the worker's position if it cannot hold the root's moves and ``MAX_DEPTH`` moves below the root."""
        moves = int(root.meta[META_N_MOVES]) + MAX_DEPTH + 1
        if len(self._position.moves) < moves:
            self._position = new_position(self._size, moves + MAX_DEPTH)

    def cancel(self, running: bool = False) -> None:
        """Cancel this worker's queued requests.

        Args:
            running: cancel running requests too (:meth:`engine.inference.server.InferenceServer.cancel`).
        Threads: any.
        """
        if self._setup.network is not None:
            for request in self._requests(self._flights):
                self._setup.network.server.cancel(request, running)

    @staticmethod
    def _requests(batches: Iterable[_Flight]) -> Iterator[Request]:
        """The requests of these batches; without a network there are none."""
        return (flight.request for flight in batches if flight.request is not None)

    def failure(self) -> BaseException | None:
        """The error of a failed request of this worker, even while the worker waits for an older one; None without.

        Threads: any.
        """
        for request in self._requests(list(self._flying)):
            if request.done.is_set() and request.error is not None and not request.cancelled:
                return request.error
        return None

    def run(self, run: Run) -> None:
        """Search until a stopper ends the run.

        An error is stored in ``SharedTree.error``, not raised. When this returns, the worker has nothing in flight.
        """
        shared = self._shared
        self._run = run
        try:
            while True:
                outcome = self._start() if self._idle else _Outcome.BLOCKED
                if outcome is _Outcome.STARTED and self._idle:
                    continue
                if self._flying:
                    self._complete_oldest()
                elif outcome is _Outcome.STOPPED:
                    return
                else:
                    # Other workers evaluate all leaves worth selecting; a timeout guards against a lost wake-up.
                    with shared.lock:
                        shared.lock.wait(timeout=0.05)
        except BaseException as error:
            with shared.lock:
                shared.error = shared.error or error
        finally:
            if self._flying:
                self.cancel(running=True)
            while self._flying:
                self._release(self._flying.popleft())

    def _start(self) -> _Outcome:
        """Start one batch: steps 1 to 5. An idle batch must exist."""
        flight = self._idle[0]
        outcome = self._select(flight)
        if outcome is _Outcome.STARTED:
            self._flying.append(self._idle.popleft())
            self._prepare(flight)
            self._score_finished(flight)
            self._roll_out(flight)
            self._expand_early(flight)
        return outcome

    def _select(self, flight: _Flight) -> _Outcome:
        """Step 1: select the leaves of a batch, up to the number that stoppers and memory allow."""
        shared = self._shared
        with shared.lock:
            wanted = self._batch_size()
            if wanted == 0:
                return _Outcome.STOPPED
            wanted = min(wanted, self._room_in_flight())
            tree = shared.tree
            has_room = reserve(tree, wanted, EDGES_A_BATCH + wanted, shared.limit_bytes)
            if shared.ownership is not None:
                # Before selection: if the allocation fails, nothing of this batch is in flight yet.
                shared.ownership.grow(len(tree.state))
            evenly = False
            count = select(tree, flight.batch, wanted, shared.tuning, self._run.move_filter, evenly)
            # If the pools may still grow, a refused row only means that these leaves took more than usual: try again.
            refused = has_room and tree.meta[META_FULL] == 1
            if has_room:
                tree.meta[META_FULL] = 0
            if count == 0:
                return _Outcome.BLOCKED if refused or tree.meta[META_IN_FLIGHT] > 0 else _Outcome.STOPPED
        flight.count = count
        return _Outcome.STARTED

    def _prepare(self, flight: _Flight) -> None:
        """Step 2: determine each leaf's kind and moves, and request the evaluations that the cache lacks."""
        setup, request, patterns = self._setup, flight.request, self._setup.patterns
        # root, position, batch, count
        leaves = (self._run.root, self._position, flight.batch, flight.count)
        if setup.network is not None and request is not None:
            server, options = setup.network.server, setup.options
            request.state = State.FILLING
            # seed, random_symmetry, planes, globals_
            inputs = (np.uint64(options.seed), options.random_symmetry, request.planes, request.globals)
            request.count = prepare_for_network(*leaves, self._cache(server), self._scratch, *inputs)
            if setup.mechanisms.adaptive_expansion:
                with self._shared.lock:
                    self._shared.tuning = adapted(self._shared.tuning, server.waiting == 0)
            if request.count > 0:
                server.submit(request)
                if self._run.cancelled.is_set():
                    server.cancel(request, running=True)
        elif patterns is not None:
            prepare_by_patterns(*leaves, self._candidates, patterns.numbers, patterns.theta)
        else:
            prepare(*leaves)

    def _score_finished(self, flight: _Flight) -> None:
        """Step 3: score the finished games of a batch whose dead stones are unknown (territory rules)."""
        batch, count, setup = flight.batch, flight.count, self._setup
        if (batch.kind[:count] == UNSCORED).any():
            tables, seed = setup.ownership_tables(), setup.options.seed
            score_finished_territory(self._run.root, self._position, batch, count, tables, seed)

    def _roll_out(self, flight: _Flight) -> None:
        """Step 4: play a rollout from each leaf, if rollouts have a weight."""
        setup, patterns = self._setup, self._setup.patterns
        if not setup.uses_rollouts:
            return
        # root, position, batch, count; state, gives_score
        leaves = (self._run.root, self._position, flight.batch, flight.count)
        game = (self._random, not setup.has_network_score)
        if patterns is None:
            roll_out(*leaves, *game)
        else:
            # weights, tables, replies, reply_probability
            policy = (self._weights, patterns.tables, self._replies, setup.mechanisms.reply_probability)
            roll_out_by_policy(*leaves, *game, *policy, self._candidates.cell)

    def _expand_early(self, flight: _Flight) -> None:
        """Step 5: write the tree policy's priors for the leaves that are to be expanded.

        If the network has no policy head, these priors are final. With the option ``placeholder_priors`` the leaves are
        expanded at once, and a network's policy later replaces the priors.
        """
        setup, shared, batch, count = self._setup, self._shared, flight.batch, flight.count
        has_no_policy = setup.network is not None and not setup.network.has_policy
        if setup.patterns is None or not (setup.mechanisms.placeholder_priors or has_no_policy):
            return
        if not (setup.mechanisms.placeholder_priors or (batch.request_slot[:count] >= 0).any()):
            return
        # moves, numbers, theta, temperature
        patterns, temperature = setup.patterns, setup.options.policy_temperature
        policy = (self._candidates, patterns.numbers, patterns.theta, temperature)
        tree_policy_priors(self._run.root, self._position, batch, count, *policy)
        if not setup.mechanisms.placeholder_priors:
            return
        with shared.lock:
            expand_with_placeholders(shared.tree, batch, count, shared.tuning.rollout_weight)
            if setup.mechanisms.async_values:
                back_up_rollouts_early(shared.tree, batch, count)
            shared.lock.notify_all()

    def _batch_size(self) -> int:
        """Number of leaves to select now; 0 = end the run. Threads: the lock is held."""
        network = self._setup.network
        if self._shared.error is not None or self._run.cancelled.is_set():
            return 0
        progress = self._shared.progress(self._run, network)
        wanted = min(self._setup.options.batch, self._leaves_for(progress.visits))
        if self._run.is_urgent and network is not None and network.server.pace.seconds_per_position > 0.0:
            wanted = min(wanted, max(1, int(BATCH_SECONDS / network.server.pace.seconds_per_position)))
        wanted = min(wanted, playouts_allowed(self._run.stoppers, progress))
        # The root is evaluated even if the stoppers allow no playout: a search must find a move.
        return 1 if progress.visits + progress.in_flight == 0 else wanted

    def _leaves_for(self, visits: int) -> int:
        """Maximum number of leaves in a batch when the root has these visits.

        In a small tree the later leaves of a large batch are poor ones, since they are selected without the results of
        the first.
        """
        per_leaf = self._setup.options.visits_per_leaf
        return 1 + visits // per_leaf if per_leaf else UNLIMITED

    def _room_in_flight(self) -> int:
        """Number of leaves that may be selected now.

        Over all workers, the leaves in flight are limited to one batch more than there are evaluators.

        Threads: the lock is held.
        """
        setup, meta = self._setup, self._shared.tree.meta
        batches = 1 + (setup.network.server.evaluators if setup.network else setup.options.threads)
        return max(0, batches * self._leaves_for(int(meta[META_ROOT_VISITS])) - int(meta[META_IN_FLIGHT]))

    def _complete_oldest(self) -> None:
        """Steps 6 and 7 for the oldest batch in flight; if its request was cancelled, its leaves are released."""
        if not self._collect(self._flying[0]):
            self._release(self._flying.popleft())
            return
        # No longer in flight: an error during the backup must not release these leaves as well.
        flight = self._flying.popleft()
        self._idle.append(flight)
        self._back_up(flight)

    def _collect(self, flight: _Flight) -> bool:
        """Step 6: wait for a batch's evaluations, and write its values and priors.

        Returns:
            False if the request was cancelled.
        Raises:
            NetworkFailed: the evaluation failed.
        """
        setup, batch, count, request = self._setup, flight.batch, flight.count, flight.request
        if setup.network is not None and request is not None:
            server = setup.network.server
            if request.count > 0:
                server.wait(request)
                if request.cancelled:
                    return False
            # policy, value, score; gives_policy, gives_score
            outputs = (request.policy, request.value, request.score)
            gives = ("policy" in server.spec.heads, setup.has_network_score)
            take_results(batch, count, self._symmetries, *outputs, *gives, self._cache(server))
            if self._shared.ownership is not None:
                self._take_ownership(flight, server, request)
            request.state = State.FREE
        if setup.network is None and setup.patterns is None:
            write_equal_priors(batch, count, self._random)
        else:
            write_leaf_priors(batch, count, setup.options.policy_temperature)
        return True

    def _cache(self, server: InferenceServer) -> Cache:
        """The server's result cache, or in a search that keeps ownership the one of ``ownership_caches``."""
        return server.cache if self._shared.ownership is None else server.ownership_caches().results

    def _take_ownership(self, flight: _Flight, server: InferenceServer, request: Request) -> None:
        """Write the ownership of a batch's leaves into ``flight.ownership``."""
        batch, count, root = flight.batch, flight.count, self._run.root
        if len(flight.ownership) < len(batch.kind):
            flight.ownership = np.zeros((len(batch.kind), self._size**2), np.float32)
        outputs = request.ownership.reshape(len(request.ownership), -1)
        to_move, cache = root.meta[META_TO_MOVE], server.ownership_caches().ownership
        take_ownership(batch, count, to_move, self._symmetries, outputs, cache, flight.ownership)
        if (batch.kind[:count] == FINISHED).any():
            finished_ownership(root, self._position, batch, count, flight.ownership)

    def _back_up(self, flight: _Flight) -> None:
        """Step 7: expand the batch's leaves, back their values up and unmark their paths."""
        if self._run.ending is not None:
            ownership = flight.ownership if len(flight.ownership) else None
            self._run.ending.score_leaves(flight.batch, flight.count, ownership)
        # adds_value, adds_rollout
        shared, adds = self._shared, (self._setup.network is not None, self._setup.uses_rollouts)
        with shared.lock:
            complete(shared.tree, flight.batch, flight.count, shared.tuning.rollout_weight, *adds)
            if shared.tuning.value_weight > 0.0:
                weigh_paths(shared.tree, flight.batch, flight.count, shared.tuning.value_weight)
            if shared.ownership is not None:
                store_ownership(flight.batch, flight.count, flight.ownership, shared.ownership.rows)
            shared.lock.notify_all()

    def _release(self, flight: _Flight) -> None:
        """Release a batch's leaves without results; the batch is idle afterwards."""
        with self._shared.lock:
            release(self._shared.tree, flight.batch, flight.count)
            self._shared.lock.notify_all()
        flight.reset(self._setup, self._size)
        self._idle.append(flight)


WAKE_S = 1.0
"""Longest single wait of the thread in :meth:`Workers.work`; on some platforms only waits with a timeout let signals
through"""
PATIENCE_S, PATIENCE_SHARE = 0.02, 0.1
"""Longest wait of a stopped search for running evaluations: this many seconds, and this share of the run's time limit;
the smaller one holds"""
FIRST_S = 0.5
"""Longest wait of a stopped search for the evaluation of its root, without which it has no move"""
HANG_S, HANG_CALLS = 60.0, 10.0
"""A search fails after ``HANG_S`` seconds without progress if a running call of the network has also taken longer than
``HANG_S`` and longer than ``HANG_CALLS`` times the mean call."""


class Workers:
    """The workers of a search, for one board size. Threads: one calls :meth:`work`; any may call :meth:`stop`."""

    def __init__(self, setup: Setup, shared: SharedTree, size: int) -> None:
        self.each = [Worker(setup, shared, size, index) for index in range(setup.options.threads)]
        self.stopping = threading.Event()
        """set to end the run in progress"""
        self._setup, self._shared = setup, shared
        self._working = 0
        self._ended = threading.Event()
        """set when the last worker has ended"""
        self._woken = threading.Event()
        """wakes :meth:`work`: the workers have ended, or the run is stopped"""

    def work(self, run: Run, due_s: float = math.inf, report: Callable[[float], float] | None = None) -> None:
        """Start the workers' threads and wait until all have ended; they end early if ``report`` raises an error.

        Args:
            due_s: ``time.perf_counter`` of the first call of ``report``.
            report: called in this thread with the time at which the call was due; returns the time of its next call.
        Raises:
            NetworkFailed: the network failed or does not answer.
            BaseException: the first error of a worker, of ``report`` or of starting a thread.
        """
        self._ended.clear()
        self._woken.clear()
        self._working, threads = len(self.each), list[threading.Thread]()
        try:
            for index, worker in enumerate(self.each):
                name = f"search-{index}"
                threads.append(threading.Thread(target=self._thread, args=(worker, run), name=name, daemon=True))
                threads[-1].start()
            self._watch(run, due_s, report)
        finally:
            if not self._ended.is_set():
                self.stop()
                self._cancel_running(run)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        if self._shared.error is not None:
            raise self._shared.error

    def _thread(self, worker: Worker, run: Run) -> None:
        """Body of a worker's thread; the last worker to end sets ``_ended`` and ``_woken``."""
        try:
            worker.run(run)
        finally:
            with self._shared.lock:
                self._working -= 1
                if self._working == 0:
                    self._ended.set()
                    self._woken.set()

    def _watch(self, run: Run, due_s: float, report: Callable[[float], float] | None) -> None:
        """Wait until the run ends, is stopped, fails or passes its deadline; call ``report`` whenever it is due.

        Raises:
            NetworkFailed: an evaluation failed or hangs.
        """
        server = self._setup.network.server if self._setup.network else None
        meta, known, since_s = self._shared.tree.meta, (-1, 0), 0.0
        # If a call hangs since an earlier run, one second shows whether other evaluators still make progress.
        patience_s = WAKE_S if server is not None and _hangs(server) else HANG_S
        while not (self._ended.is_set() or self.stopping.is_set()):
            # A failed worker or evaluation ends the run even while other evaluations hang.
            if self._shared.error is not None:
                return
            for error in (worker.failure() for worker in self.each):
                if error is not None and server is not None:
                    raise NetworkFailed(f"network {server.spec.name}: {one_line(error)}") from error
            now_s = time.perf_counter()
            end_s = run.deadline_s if meta[META_ROOT_VISITS] > 0 else run.first_deadline_s
            if now_s >= end_s:
                return
            if report is not None and now_s >= due_s:
                due_s = report(due_s)
                continue
            counts = (int(meta[META_ROOT_VISITS]), server.evaluations if server else 0)
            if counts != known or not meta[META_IN_FLIGHT]:
                known, since_s = counts, now_s
            elif server is not None and now_s - since_s > patience_s and _hangs(server):
                raise NetworkFailed(f"network {server.spec.name}: no answer for {now_s - since_s:.0f} s")
            self._woken.wait(max(0.0, min(WAKE_S, due_s - now_s, end_s - now_s)))

    def _cancel_running(self, run: Run) -> None:
        """Wait for running evaluations (``PATIENCE_S``, ``FIRST_S``), then cancel all requests of the run."""
        patience_s = min(PATIENCE_S, PATIENCE_SHARE * (run.deadline_s - run.started_s))
        if self._shared.tree.meta[META_ROOT_VISITS] == 0:
            patience_s = max(patience_s, min(FIRST_S, run.first_deadline_s - time.perf_counter()))
        self._ended.wait(patience_s)
        run.cancelled.set()
        for worker in self.each:
            worker.cancel(running=True)

    def stop(self) -> None:
        """Stop the run in progress, if there is one, and cancel queued requests. Threads: any."""
        self.stopping.set()
        self._woken.set()
        for worker in self.each:
            worker.cancel()


def _hangs(server: InferenceServer) -> bool:
    """Whether a running call of the network has taken longer than ``HANG_S`` and ``HANG_CALLS`` mean calls.

    A search without progress alone proves nothing: it may be compiling a kernel.
    """
    return server.longest_call_s() > max(HANG_S, HANG_CALLS * server.pace.seconds_per_call)
