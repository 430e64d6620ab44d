"""One search thread: the loop that turns leaves into visits.

:meth:`Worker.run` repeats these steps, on several batches in turn so that neither it nor the evaluators wait:

1. :meth:`Worker._select`: lock; select K leaves, marking their paths as in flight; unlock
2. :meth:`Worker._open`: replay each path on the worker's own position, count finished games, list moves, probe the
   cache, encode the misses straight into the slots of a request; submit it
3. :meth:`Worker._settle`: under territory rules, find out which stones are dead in finished games
4. :meth:`Worker._roll_out`: roll out from these leaves, if rollouts count
5. :meth:`Worker._place`: open them with placeholder priors, if the network is not waited for; now the next batch starts
6. :meth:`Worker._collect`: wait for the oldest batch; bring its results home, rank the moves
7. :meth:`Worker._back_up`: lock; expand, back up, unmark the paths; unlock

Each step is one kernel call for the whole batch: Python never touches a leaf. Batches end in the order they began, so
one worker alone grows the same tree every time.
"""

import enum
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.features.encoder import Encoder
from engine.features.symmetry import symmetry_table
from engine.go.board import META_SIZE
from engine.go.position import META_N_MOVES, Position, new_position
from engine.inference.server import InferenceServer
from engine.inference.slots import State
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.model import Patterns
from engine.rollout.policy import Tables, new_weights
from engine.rollout.random import seed_state
from engine.rollout.softmax import new_candidates
from engine.search.backup import complete, land, place, release
from engine.search.batch import MAX_DEPTH, UNSETTLED, new_batch
from engine.search.gumbel import SequentialHalving
from engine.search.leaves import (
    placeholder_priors,
    prepare,
    prepare_by_patterns,
    prepare_for_network,
    rank_moves,
    roll_out,
    roll_out_by_policy,
    settle_territory,
    shuffle_moves,
    take_results,
)
from engine.search.pools import EDGE_CLASSES, FULL, IN_FLIGHT, ROOT_VISITS, Tree
from engine.search.selection import Tuning, select
from engine.search.stoppers import RIVAL_SHARE, UNLIMITED, Progress, Stopper, allowance
from engine.search.tree import reserve
from engine.search.values import leaders, value_lead

BATCH_SECONDS = 0.02
"""Under a time limit a batch is kept to what the network evaluates in this time."""
GPU_LEAVES = 384
"""Leaves in flight before a GPU: one batch that it computes, one that waits, and as much on the way home."""
MOST_ROLLOUTS = 1000
"""The network is asked about a leaf after so many rollouts at the latest, whatever its load."""
EDGES_A_BATCH = 2 << (EDGE_CLASSES - 1)
"""Edge rows kept free before selecting: the longest run moving to a new place, and shorter ones besides."""


@dataclass
class Shared:
    """What the workers of one search have in common; fields are constant during a run unless they say otherwise."""

    tree: Tree
    """guarded by ``changed``"""
    tuning: Tuning
    batch: int
    """most leaves a batch"""
    ramp: int
    """visits of the root for which a batch takes one leaf more; 0 = no such limit"""
    policy_temperature: float
    seed: int
    limit_bytes: int
    """memory of the tree"""
    server: InferenceServer | None
    encoder: Encoder | None
    turns: bool
    """positions are shown to the network in random symmetries"""
    patterns: Patterns | None
    """rollout and tree policy; None = uniform rollouts, and without a network equal priors"""
    owner_tables: Callable[[], Tables | None]
    """gives the rollout policy that says who owns what; None = uniform rollouts do"""
    placeholders: bool
    """leaves open with the tree policy's priors while the network thinks"""
    async_values: bool
    """rollouts are backed up before the network's values are there; with placeholders"""
    adapts: bool
    """``tuning.expand_after`` follows the network's load; guarded by ``changed``"""
    reply_chance: float
    n_workers: int
    root: Position
    allowed: np.ndarray
    """uint8[D, L] by depth and point: moves that may be chosen at the root and, with more than one row, below it"""
    halving: SequentialHalving | None = None
    """how the root's moves are visited, in place of PUCT; guarded by ``changed``"""
    stoppers: Sequence[Stopper] = ()
    timed: bool = False
    """a time limit is in force"""
    started_s: float = 0.0
    """``time.perf_counter`` at the start of the run"""
    visits_before: int = 0
    """visits of the root at the start of the run"""
    changed: threading.Condition = field(default_factory=threading.Condition)
    """the tree's lock; notified when values have been backed up"""
    error: BaseException | None = None
    """the first failure of a worker; guarded by ``changed``"""

    @property
    def uses_rollouts(self) -> bool:
        """Whether leaves are rolled out: rollouts have a weight, or there is no network."""
        return self.server is None or self.tuning.rollout_weight > 0.0

    @property
    def network_scores(self) -> bool:
        """Whether leads in points come from the network, not from rollouts."""
        return self.server is not None and self.server.spec.has_score

    def progress(self) -> Progress:
        """Figures for the stoppers. Threads: the lock is held."""
        meta, server = self.tree.meta, self.server
        visits = int(meta[ROOT_VISITS])
        first, second = leaders(self.tree)
        return Progress(
            visits=visits,
            in_flight=int(meta[IN_FLIGHT]),
            playouts=visits - self.visits_before,
            elapsed_s=time.perf_counter() - self.started_s,
            best_visits=first,
            second_visits=second,
            value_lead=value_lead(self.tree, self.tuning.rollout_weight, RIVAL_SHARE),
            full=bool(meta[FULL]),
            seconds_per_playout=server.seconds_per_position / server.evaluators if server else 0.0,
        )


class _Outcome(enum.Enum):
    """How an attempt to start a batch ended."""

    STARTED = enum.auto()
    COLLIDED = enum.auto()
    STOPPED = enum.auto()


class _Flight:
    """A batch and, with a network, the request that its misses travel in."""

    def __init__(self, shared: Shared):
        size = int(shared.root.board.meta[META_SIZE])
        self.batch = new_batch(size, shared.batch)
        self.count = 0
        self.request = None
        if shared.server is not None:
            encoder = shared.encoder
            self.request = shared.server.new_request(size, shared.batch, encoder.planes, encoder.globals)
            # Alone in its evaluation: results then do not depend on what else happens to be waiting.
            self.request.alone = shared.n_workers == 1


def _flights(shared: Shared) -> int:
    """Batches that each worker keeps in flight."""
    server, at_once = shared.server, shared.n_workers * shared.batch
    if server is None or at_once == 1:
        # Nothing to wait for; or a single leaf at a time, which is just that.
        return 1
    # One more than there are evaluators, so that none waits.
    least = max(2, 1 + -(-server.evaluators // shared.n_workers))
    return max(least, -(-GPU_LEAVES // at_once)) if server.merges else least


class Worker:
    """A worker's private memory, kept from run to run; :meth:`run` is its thread."""

    def __init__(self, shared: Shared, index: int):
        self._shared = shared
        self._size = int(shared.root.board.meta[META_SIZE])
        self._index = index
        self._scratch = shared.encoder.new_scratch(self._size) if shared.encoder else None
        self._idle = deque(_Flight(shared) for _ in range(_flights(shared)))
        self._flying: deque[_Flight] = deque()
        self._flights = tuple(self._idle)
        self._position = new_position(self._size, MAX_DEPTH)
        self._turned = symmetry_table(self._size)
        self._candidates = new_candidates(self._size)
        self._weights = new_weights(self._size)
        self.restart()

    def restart(self) -> None:
        """Begin the random numbers anew, for a tree that begins anew."""
        self._random = seed_state(self._shared.seed, self._index)
        self._replies = new_last_good_replies()

    def warm_up(self) -> None:
        """Give nothing up, which compiles how that is done. Threads: no search is running."""
        release(self._shared.tree, self._idle[0].batch, 0)

    def make_room(self) -> None:
        """See to it that the worker's position can hold the root's game and a path."""
        moves = int(self._shared.root.meta[META_N_MOVES]) + MAX_DEPTH + 1
        if len(self._position.moves) < moves:
            self._position = new_position(self._size, moves + MAX_DEPTH)

    def cancel(self) -> None:
        """Take this worker's waiting requests back, so that a stopped search ends soon. Threads: any."""
        if self._shared.server is not None:
            for flight in self._flights:
                self._shared.server.cancel(flight.request)

    def run(self) -> None:
        """Work until a stopper says so; nothing is in flight afterwards, whatever happens."""
        shared = self._shared
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
                    with shared.changed:
                        shared.changed.wait(timeout=0.05)
        except BaseException as error:
            with shared.changed:
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
            self._settle(flight)
            self._roll_out(flight)
            self._place(flight)
        return outcome

    def _select(self, flight: _Flight) -> _Outcome:
        """Step 1: leaves for a batch, as many as limits and room allow."""
        shared = self._shared
        with shared.changed:
            wanted = self._batch_size()
            if wanted == 0:
                return _Outcome.STOPPED
            wanted = min(wanted, self._room_in_flight())
            if shared.halving is not None:
                wanted = min(wanted, shared.halving.allowance())
            meta = shared.tree.meta
            has_room = reserve(shared.tree, wanted, EDGES_A_BATCH + wanted, shared.limit_bytes)
            evenly = shared.halving is not None
            allowed = shared.halving.allowed if evenly else shared.allowed
            count = select(shared.tree, flight.batch, wanted, shared.tuning, allowed, evenly)
            # With room left, a refused row only means that these leaves took more than usual: try again.
            refused = has_room and meta[FULL] == 1
            if has_room:
                meta[FULL] = 0
            if count == 0:
                return _Outcome.COLLIDED if refused or meta[IN_FLIGHT] > 0 else _Outcome.STOPPED
        flight.count = count
        return _Outcome.STARTED

    def _open(self, flight: _Flight) -> None:
        """Step 2: what the leaves are, and a request for what the cache does not know."""
        shared, server, patterns = self._shared, self._shared.server, self._shared.patterns
        leaves = (shared.root, self._position, flight.batch, flight.count)
        if server is not None:
            request = flight.request
            request.state = State.FILLING
            request.count = prepare_for_network(
                *leaves,
                server.cache,
                self._scratch,
                np.uint64(shared.seed),
                shared.turns,
                request.planes,
                request.globals,
            )
            if request.count > 0:
                server.submit(request)
            if shared.adapts:
                self._adapt()
        elif patterns is not None:
            prepare_by_patterns(*leaves, self._candidates, patterns.numbers, patterns.theta)
        else:
            prepare(*leaves)

    def _settle(self, flight: _Flight) -> None:
        """Step 3: results of finished games whose dead stones have to be found."""
        shared, batch, count = self._shared, flight.batch, flight.count
        if (batch.kind[:count] == UNSETTLED).any():
            settle_territory(shared.root, self._position, batch, count, shared.owner_tables(), shared.seed)

    def _roll_out(self, flight: _Flight) -> None:
        """Step 4: a rollout from each leaf, if rollouts count."""
        shared, patterns = self._shared, self._shared.patterns
        if not shared.uses_rollouts:
            return
        leaves = (shared.root, self._position, flight.batch, flight.count)
        game = (self._random, not shared.network_scores)
        if patterns is None:
            roll_out(*leaves, *game)
        else:
            policy = (self._weights, patterns.tables, self._replies, shared.reply_chance)
            roll_out_by_policy(*leaves, *game, *policy, self._candidates.cell)

    def _place(self, flight: _Flight) -> None:
        """Step 5: the tree policy's priors, as placeholders that playouts may pass, or for good without a policy."""
        shared, batch, count = self._shared, flight.batch, flight.count
        has_no_policy = shared.server is not None and not shared.server.spec.has_policy
        if not (shared.placeholders or has_no_policy):
            return
        asked = batch.request_row[:count] >= 0
        if not asked.any():
            return
        placeholder_priors(
            shared.root, self._position, batch, count, self._candidates, shared.patterns.numbers, shared.patterns.theta
        )
        if not shared.placeholders:
            return
        with shared.changed:
            place(shared.tree, batch, count, shared.tuning.rollout_weight)
            if shared.async_values:
                land(shared.tree, batch, count)
            shared.changed.notify_all()

    def _adapt(self) -> None:
        """Ask the network about more leaves while it has nothing to do, about fewer while requests pile up."""
        shared = self._shared
        with shared.changed:
            tuning, idle = shared.tuning, shared.server.waiting == 0
            wanted = max(0, tuning.expand_after - 1) if idle else min(MOST_ROLLOUTS, tuning.expand_after + 1)
            shared.tuning = tuning._replace(expand_after=wanted)

    def _batch_size(self) -> int:
        """Leaves to select now; 0 = stop. Threads: the lock is held."""
        shared = self._shared
        if shared.error is not None:
            return 0
        progress = shared.progress()
        wanted = min(shared.batch, self._ramp(progress.visits))
        if shared.timed and shared.server is not None and shared.server.seconds_per_position > 0.0:
            wanted = min(wanted, max(1, int(BATCH_SECONDS / shared.server.seconds_per_position)))
        wanted = min(wanted, allowance(shared.stoppers, progress))
        if progress.visits + progress.in_flight == 0:
            # Whatever the budget, the root itself is evaluated: there is always a move to choose.
            wanted = 1
        return wanted

    def _ramp(self, visits: int) -> int:
        """Leaves a batch that a tree of so many visits bears: in a small one, leaves chosen together are poor ones."""
        return 1 + visits // self._shared.ramp if self._shared.ramp else UNLIMITED

    def _room_in_flight(self) -> int:
        """Leaves that may be added to those in flight: of all workers as many as one batch more than is evaluated.

        Threads: the lock is held.
        """
        shared, meta = self._shared, self._shared.tree.meta
        at_once = 1 + (shared.server.evaluators if shared.server else shared.n_workers)
        return max(0, at_once * self._ramp(int(meta[ROOT_VISITS])) - int(meta[IN_FLIGHT]))

    def _finish(self) -> None:
        """Steps 6 and 7 for the oldest batch."""
        flight = self._flying[0]
        if self._collect(flight):
            self._back_up(flight)
            self._idle.append(self._flying.popleft())
        else:
            self._release(self._flying.popleft())

    def _collect(self, flight: _Flight) -> bool:
        """Step 6: values and priors of a batch; False if its request was cancelled."""
        shared, server = self._shared, self._shared.server
        batch, count, request = flight.batch, flight.count, flight.request
        if server is not None:
            if request.count > 0:
                server.wait(request)
                if request.cancelled:
                    return False
            outputs = (request.policy, request.value, request.score)
            gives = (server.spec.has_policy, shared.network_scores)
            take_results(batch, count, self._turned, *outputs, *gives, server.cache)
            request.state = State.FREE
        if server is None and shared.patterns is None:
            shuffle_moves(batch, count, self._random)
        else:
            rank_moves(batch, count, shared.policy_temperature)
        return True

    def _back_up(self, flight: _Flight) -> None:
        """Step 7: what the batch has learnt, into the tree."""
        shared, adds = self._shared, (self._shared.server is not None, self._shared.uses_rollouts)
        with shared.changed:
            complete(shared.tree, flight.batch, flight.count, shared.tuning.rollout_weight, *adds)
            shared.changed.notify_all()

    def _release(self, flight: _Flight) -> None:
        """Give a batch up without results."""
        with self._shared.changed:
            release(self._shared.tree, flight.batch, flight.count)
            self._shared.changed.notify_all()
        self._idle.append(flight)

    def _abandon(self) -> None:
        """Release whatever is still in flight after an error."""
        self.cancel()
        while self._flying:
            flight = self._flying.popleft()
            if flight.request is not None and flight.request.state in (State.QUEUED, State.RUNNING):
                flight.request.done.wait()
            self._release(flight)
