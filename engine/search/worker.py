"""One search thread: the loop that turns leaves into visits.

:meth:`Worker.run` repeats these steps, on several batches in turn so that neither it nor the evaluators wait:

1. :meth:`Worker._select`: lock; select K leaves, marking their paths as in flight; unlock
2. :meth:`Worker._open`: replay each path on the worker's own position, count finished games, list moves, probe the
   cache, encode the misses straight into the slots of a request; submit it
3. :meth:`Worker._score_finished`: under territory rules, find out which stones are dead in finished games
4. :meth:`Worker._roll_out`: roll out from these leaves, if rollouts count
5. :meth:`Worker._open_early`: open them with placeholder priors, if the network is not waited for; now the next batch
   starts
6. :meth:`Worker._collect`: wait for the oldest batch; bring its results home, rank the moves
7. :meth:`Worker._back_up`: lock; expand, back up, unmark the paths; unlock

Each step is one kernel call for the whole batch: Python never touches a leaf. Batches end in the order they began, so
one worker alone grows the same tree every time.

:class:`Workers` starts the workers of a search together, watches them and ends them together. An evaluation that runs
when a search is stopped, or that has not returned by its deadline, cannot be stopped; the search ends without it, its
playouts are taken back, and its request is left to the evaluator.
"""

import enum
import math
import threading
import time
from collections import deque
from collections.abc import Callable

import numpy as np

from engine.features.symmetry import symmetry_table
from engine.go.position import META_N_MOVES, META_TO_MOVE, Position, new_position
from engine.go.random import seed_state
from engine.inference.cache import Cache
from engine.inference.server import InferenceServer, NetworkFailed
from engine.inference.slots import Request, State
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.policy import new_weights
from engine.rollout.softmax import new_candidates
from engine.search.alphago_2016 import adapted, back_up_rollouts_early, open_with_placeholders
from engine.search.backup import complete, release
from engine.search.leaves import (
    FINISHED,
    MAX_DEPTH,
    UNSCORED,
    new_batch,
    prepare,
    prepare_by_patterns,
    prepare_for_network,
    rank_moves,
    roll_out,
    roll_out_by_policy,
    score_finished_territory,
    shuffle_moves,
    take_results,
    tree_policy_priors,
)
from engine.search.owners import finished_owners, keep_owners, take_owners
from engine.search.selection import select
from engine.search.state import Run, Setup, SharedTree
from engine.search.stoppers import UNLIMITED, playouts_allowed
from engine.search.tree import EDGE_CLASSES, META_FULL, META_IN_FLIGHT, META_ROOT_VISITS, reserve
from engine.search.values import weigh_paths
from engine.system import one_line

BATCH_SECONDS = 0.02
"""Where a run is urgent, a batch is kept to what the network evaluates in this time."""
GPU_LEAVES = 384
"""Leaves in flight before a GPU: one batch that it computes, one that waits, and as much on the way home."""
EDGES_A_BATCH = 2 << (EDGE_CLASSES - 1)
"""Edge rows kept free before selecting: the longest run moving to a new place, and shorter ones besides."""


class _Outcome(enum.Enum):
    """How an attempt to start a batch ended."""

    STARTED = enum.auto()
    COLLIDED = enum.auto()
    STOPPED = enum.auto()


class _Flight:
    """A batch and, with a network, the request that its misses travel in."""

    def __init__(self, setup: Setup, size: int):
        self.batch = new_batch(size, setup.batch, setup.value_bias > 0.0)
        self.count = 0
        self.owners = np.zeros((0, size * size), np.float32)
        """float32[K, N*N]: the leaves' owners where they are kept, else empty"""
        self.request = self._new_request(setup, size)

    @staticmethod
    def _new_request(setup: Setup, size: int) -> Request | None:
        """Slots for a batch; None without a network."""
        if setup.network is None:
            return None
        server, encoder = setup.network
        request = server.new_request(size, setup.batch, encoder.planes, encoder.globals)
        # Alone in its evaluation: results then do not depend on what else happens to be waiting.
        request.alone = setup.n_workers == 1
        return request

    def empty(self, setup: Setup, size: int) -> None:
        """Make room for the next batch; a request that an evaluator still has is left to it."""
        if self.request is None:
            return
        if self.request.state in (State.QUEUED, State.RUNNING):
            self.request = self._new_request(setup, size)
        else:
            # Else the next run's watcher, which may look before it is submitted anew, finds an old failure.
            self.request.error = None


def flights(workers: int, batch: int, evaluators: int, batches_requests: bool) -> int:
    """Batches that each of some workers keeps in flight before a network.

    Args:
        batch: leaves in each.
        evaluators, batches_requests: of the :class:`engine.inference.server.InferenceServer`.
    """
    at_once = workers * batch
    if at_once == 1:
        # A single leaf at a time, which is just that.
        return 1
    # One more than there are evaluators, so that none waits.
    least = max(2, 1 + -(-evaluators // workers))
    return max(least, -(-GPU_LEAVES // at_once)) if batches_requests else least


def _flights(setup: Setup) -> int:
    """Batches that each worker keeps in flight; without a network there is nothing to wait for."""
    if setup.network is None:
        return 1
    server = setup.network.server
    return flights(setup.n_workers, setup.batch, server.evaluators, server.batches_requests)


class Worker:
    """A worker's private memory, kept from run to run; :meth:`run` is its thread."""

    def __init__(self, setup: Setup, shared: SharedTree, size: int, index: int):
        """Memory for boards of one size; ``index`` tells the workers' random numbers apart."""
        self._setup = setup
        self._shared = shared
        self._size = size
        self._index = index
        self._scratch = setup.network.encoder.new_scratch(size) if setup.network else None
        self._idle = deque(_Flight(setup, size) for _ in range(_flights(setup)))
        self._flying: deque[_Flight] = deque()
        self._flights = tuple(self._idle)
        self._position = new_position(size, MAX_DEPTH)
        self._symmetries = symmetry_table(size)
        self._candidates = new_candidates(size)
        self._weights = new_weights(size)
        self.restart()

    def restart(self) -> None:
        """Begin the random numbers anew, for a tree that begins anew."""
        self._random = seed_state(self._setup.seed, self._index)
        self._replies = new_last_good_replies()

    def warm_up(self) -> None:
        """Give nothing up, which compiles how that is done. Threads: no search is running."""
        release(self._shared.tree, self._idle[0].batch, 0)

    def make_room(self, root: Position) -> None:
        """See to it that the worker's position can hold the root's game and a path."""
        moves = int(root.meta[META_N_MOVES]) + MAX_DEPTH + 1
        if len(self._position.moves) < moves:
            self._position = new_position(self._size, moves + MAX_DEPTH)

    def cancel(self) -> None:
        """Take this worker's waiting requests back, so that a stopped search ends soon. Threads: any."""
        if self._setup.network is not None:
            for flight in self._flights:
                if flight.request is not None:
                    self._setup.network.server.cancel(flight.request)

    def abandon(self) -> None:
        """Let go of this worker's requests, those too that are being evaluated: nothing is waited for. Threads: any."""
        if self._setup.network is not None:
            for flight in self._flights:
                if flight.request is not None:
                    self._setup.network.server.abandon(flight.request)

    def failure(self) -> BaseException | None:
        """What an evaluation failed by that this worker has not come to, since an older one hangs. Threads: any."""
        for request in [flight.request for flight in list(self._flying)]:
            if request is not None and request.done.is_set() and request.error is not None and not request.cancelled:
                return request.error
        return None

    def run(self, run: Run) -> None:
        """Work until a stopper says so; nothing is in flight afterwards, whatever happens."""
        shared = self._shared
        self._run = run
        try:
            while True:
                outcome = self._start() if self._idle else _Outcome.COLLIDED
                if outcome is _Outcome.STARTED and self._idle:
                    continue
                if self._flying:
                    self._finish()
                elif outcome is _Outcome.STOPPED:
                    return
                else:
                    # All leaves worth selecting are other workers'; a time-out guards against a lost wake-up.
                    with shared.lock:
                        shared.lock.wait(timeout=0.05)
        except BaseException as error:
            with shared.lock:
                shared.error = shared.error or error
        finally:
            self._abandon()

    def _start(self) -> _Outcome:
        """Steps 1 to 5 for one batch."""
        flight = self._idle[0]
        outcome = self._select(flight)
        if outcome is _Outcome.STARTED:
            self._flying.append(self._idle.popleft())
            self._open(flight)
            self._score_finished(flight)
            self._roll_out(flight)
            self._open_early(flight)
        return outcome

    def _select(self, flight: _Flight) -> _Outcome:
        """Step 1: leaves for a batch, as many as limits and room allow."""
        shared = self._shared
        with shared.lock:
            wanted = self._batch_size()
            if wanted == 0:
                return _Outcome.STOPPED
            wanted = min(wanted, self._room_in_flight())
            tree = shared.tree
            has_room = reserve(tree, wanted, EDGES_A_BATCH + wanted, shared.limit_bytes)
            if shared.owners is not None:
                # Here, where nothing is in flight yet: there may be no memory for it.
                shared.owners.grow(len(tree.state))
            count = select(tree, flight.batch, wanted, shared.tuning, self._run.move_filter, False)
            # With room left, a refused row only means that these leaves took more than usual: try again.
            refused = has_room and tree.meta[META_FULL] == 1
            if has_room:
                tree.meta[META_FULL] = 0
            if count == 0:
                return _Outcome.COLLIDED if refused or tree.meta[META_IN_FLIGHT] > 0 else _Outcome.STOPPED
        flight.count = count
        return _Outcome.STARTED

    def _open(self, flight: _Flight) -> None:
        """Step 2: what the leaves are, and a request for what the cache does not know."""
        setup, request, patterns = self._setup, flight.request, self._setup.patterns
        leaves = (self._run.root, self._position, flight.batch, flight.count)
        if setup.network is not None and request is not None:
            server = setup.network.server
            request.state = State.FILLING
            shown = (np.uint64(setup.seed), setup.random_symmetry, request.planes, request.globals)
            request.count = prepare_for_network(*leaves, self._cache(server), self._scratch, *shown)
            if request.count > 0:
                server.submit(request)
                if self._run.let_go.is_set():
                    server.abandon(request)
            if setup.mechanisms.adaptive_expansion:
                with self._shared.lock:
                    self._shared.tuning = adapted(self._shared.tuning, server.waiting == 0)
        elif patterns is not None:
            prepare_by_patterns(*leaves, self._candidates, patterns.numbers, patterns.theta)
        else:
            prepare(*leaves)

    def _score_finished(self, flight: _Flight) -> None:
        """Step 3: results of finished games whose dead stones have to be found."""
        batch, count, setup = flight.batch, flight.count, self._setup
        if (batch.kind[:count] == UNSCORED).any():
            score_finished_territory(self._run.root, self._position, batch, count, setup.owner_tables(), setup.seed)

    def _roll_out(self, flight: _Flight) -> None:
        """Step 4: a rollout from each leaf, if rollouts count."""
        setup, patterns = self._setup, self._setup.patterns
        if not setup.uses_rollouts:
            return
        leaves = (self._run.root, self._position, flight.batch, flight.count)
        game = (self._random, not setup.has_network_score)
        if patterns is None:
            roll_out(*leaves, *game)
        else:
            policy = (self._weights, patterns.tables, self._replies, setup.mechanisms.reply_probability)
            roll_out_by_policy(*leaves, *game, *policy, self._candidates.cell)

    def _open_early(self, flight: _Flight) -> None:
        """Step 5: the tree policy's priors, as placeholders that playouts may pass, or for good without a policy."""
        setup, shared, batch, count = self._setup, self._shared, flight.batch, flight.count
        has_no_policy = setup.network is not None and not setup.network.has_policy
        if setup.patterns is None or not (setup.mechanisms.placeholder_priors or has_no_policy):
            return
        if not (batch.request_row[:count] >= 0).any():
            return
        policy = (self._candidates, setup.patterns.numbers, setup.patterns.theta)
        tree_policy_priors(self._run.root, self._position, batch, count, *policy)
        if not setup.mechanisms.placeholder_priors:
            return
        with shared.lock:
            open_with_placeholders(shared.tree, batch, count, shared.tuning.rollout_weight)
            if setup.mechanisms.async_values:
                back_up_rollouts_early(shared.tree, batch, count)
            shared.lock.notify_all()

    def _batch_size(self) -> int:
        """Leaves to select now; 0 = stop. Threads: the lock is held."""
        network = self._setup.network
        if self._shared.error is not None or self._run.let_go.is_set():
            return 0
        progress = self._shared.progress(self._run, network)
        wanted = min(self._setup.batch, self._leaves_for(progress.visits))
        if self._run.is_urgent and network is not None and network.server.seconds_per_position > 0.0:
            wanted = min(wanted, max(1, int(BATCH_SECONDS / network.server.seconds_per_position)))
        wanted = min(wanted, playouts_allowed(self._run.stoppers, progress))
        if progress.visits + progress.in_flight == 0:
            # Whatever the budget, the root itself is evaluated: there is always a move to choose.
            wanted = 1
        return wanted

    def _leaves_for(self, visits: int) -> int:
        """Leaves a batch for a tree of this size: in a small one, leaves that are selected together are poor ones."""
        return 1 + visits // self._setup.visits_per_leaf if self._setup.visits_per_leaf else UNLIMITED

    def _room_in_flight(self) -> int:
        """Leaves that may be added to those in flight: one batch more, over all workers, than is being evaluated.

        Threads: the lock is held.
        """
        setup, meta = self._setup, self._shared.tree.meta
        at_once = 1 + (setup.network.server.evaluators if setup.network else setup.n_workers)
        return max(0, at_once * self._leaves_for(int(meta[META_ROOT_VISITS])) - int(meta[META_IN_FLIGHT]))

    def _finish(self) -> None:
        """Steps 6 and 7 for the oldest batch."""
        if not self._collect(self._flying[0]):
            self._release(self._flying.popleft())
            return
        # What is in the tree must not be taken back, whatever happens from here on.
        flight = self._flying.popleft()
        self._idle.append(flight)
        self._back_up(flight)

    def _collect(self, flight: _Flight) -> bool:
        """Step 6: values and priors of a batch; False if its request was cancelled or abandoned."""
        setup, batch, count, request = self._setup, flight.batch, flight.count, flight.request
        if setup.network is not None and request is not None:
            server = setup.network.server
            if request.count > 0:
                server.wait(request)
                if request.cancelled:
                    return False
            outputs = (request.policy, request.value, request.score)
            gives = ("policy" in server.spec.heads, setup.has_network_score)
            take_results(batch, count, self._symmetries, *outputs, *gives, self._cache(server))
            if self._shared.owners is not None:
                self._take_owners(flight, server, request)
            request.state = State.FREE
        if setup.network is None and setup.patterns is None:
            shuffle_moves(batch, count, self._random)
        else:
            rank_moves(batch, count, setup.policy_temperature)
        return True

    def _cache(self, server: InferenceServer) -> Cache:
        """The result cache; searches that keep ownership have their own."""
        return server.cache if self._shared.owners is None else server.owner_caches().results

    def _take_owners(self, flight: _Flight, server: InferenceServer, request: Request) -> None:
        """Who owns what at a batch's leaves."""
        batch, count, root = flight.batch, flight.count, self._run.root
        if len(flight.owners) < len(batch.kind):
            flight.owners = np.zeros((len(batch.kind), self._size**2), np.float32)
        answers = request.ownership.reshape(len(request.ownership), -1)
        to_move, cache = root.meta[META_TO_MOVE], server.owner_caches().owners
        take_owners(batch, count, to_move, self._symmetries, answers, cache, flight.owners)
        if (batch.kind[:count] == FINISHED).any():
            finished_owners(root, self._position, batch, count, flight.owners)

    def _back_up(self, flight: _Flight) -> None:
        """Step 7: what the batch has learnt, into the tree."""
        if self._run.ending is not None:
            self._run.ending.score_leaves(flight.batch, flight.count, flight.owners if len(flight.owners) else None)
        shared, adds = self._shared, (self._setup.network is not None, self._setup.uses_rollouts)
        with shared.lock:
            complete(shared.tree, flight.batch, flight.count, shared.tuning.rollout_weight, *adds)
            if shared.tuning.value_weight > 0.0:
                weigh_paths(shared.tree, flight.batch, flight.count, shared.tuning.value_weight)
            if shared.owners is not None:
                keep_owners(flight.batch, flight.count, flight.owners, shared.owners.rows)
            shared.lock.notify_all()

    def _release(self, flight: _Flight) -> None:
        """Give a batch up without results."""
        with self._shared.lock:
            release(self._shared.tree, flight.batch, flight.count)
            self._shared.lock.notify_all()
        flight.empty(self._setup, self._size)
        self._idle.append(flight)

    def _abandon(self) -> None:
        """Release whatever is still in flight after an error."""
        if self._flying:
            self.abandon()
        while self._flying:
            self._release(self._flying.popleft())


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
            with self._shared.lock:
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
