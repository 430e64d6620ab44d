"""A search: one tree over one game's current position, its workers, and when to start, stop and keep what was found.

Read :mod:`engine.search.worker` for the loop itself. A search belongs to one front end: one thread calls
:meth:`Search.run` and :meth:`Search.set_position`, any thread may call :meth:`Search.stop`,
:meth:`Search.in_flight` and :meth:`Search.report`.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import numpy as np

from engine.config import SearchOptions
from engine.features.encoder import Encoder
from engine.go.board import META_SIZE
from engine.go.geometry import BLACK, PASS, cell_count, other
from engine.go.position import META_HANDICAP, META_N_MOVES, META_TO_MOVE, Position, new_position, with_capacity
from engine.inference.server import InferenceServer
from engine.rollout.model import Patterns
from engine.rollout.ownership import rollout_ownership
from engine.rollout.policy import Tables
from engine.search.gumbel import SequentialHalving
from engine.search.move_filter import has_barred_visits, marks
from engine.search.pools import EXPANDED, FULL, IN_FLIGHT, NONE, ROOT, ROOT_VISITS, USED_NODES, Tree
from engine.search.report import Report, Watcher, moves_in, new_root_table, read_root
from engine.search.root import best_first
from engine.search.root_priors import (
    ask_all_symmetries,
    average_ownership,
    average_policy,
    mix_noise,
    replace_root_priors,
)
from engine.search.stoppers import Decided, Interrupt, MemoryFull, Stopper, TimeLimit, VisitLimit
from engine.search.tree import advance_root, clear, follow, new_tree
from engine.search.tuning import cache_mib, move_choice, new_tuning, resolved
from engine.search.values import node_value, root_lead
from engine.search.worker import Shared, Worker

OWNERSHIP_ROLLOUTS = 200
WAKE_S = 1.0
"""How long the thread that runs a search waits at most: timed waits alone let signals through everywhere."""
RETRY_S = 0.01
"""How soon a report is tried again before any move has a visit"""


class Search:
    """See the module's text. The network, if there is one, belongs to the server; the search only uses it."""

    def __init__(
        self,
        options: SearchOptions,
        server: InferenceServer | None,
        encoder: Encoder | None,
        patterns: Patterns | None = None,
        owner_tables: Callable[[], Tables | None] | None = None,
    ):
        """Make a search without a position; :meth:`set_position` comes next.

        Args:
            server: evaluates positions; None = no network: rollouts alone, on any board.
            encoder: the one that ``server.spec.encoder`` names; None without a server.
            patterns: policies for rollouts, and for priors where no network has spoken; None = both uniform.
            owner_tables: gives the rollout policy that says which stones are dead where a game ends, and whose the
                points are if the network does not; asked when that is needed. None = that of ``patterns``.
        Raises:
            ValueError: neither the network nor patterns give priors.
        """
        if server is not None and not server.spec.has_policy and patterns is None:
            raise ValueError(f"network {server.spec.name} has no policy: it cannot play without learnt patterns")
        options = resolved(options, server)
        mixes = server is not None and options.rollout_weight > 0.0
        placeholders = options.placeholder_priors and server is not None and patterns is not None
        size = server.spec.min_size if server else 9
        self._shared = Shared(
            tree=new_tree(size, options.transpositions),
            tuning=new_tuning(options, server, patterns),
            batch=options.batch,
            ramp=options.ramp,
            policy_temperature=options.policy_temperature,
            seed=options.seed,
            limit_bytes=(options.memory - (cache_mib(options) if server else 0)) << 20,
            server=server,
            encoder=encoder,
            patterns=patterns,
            owner_tables=owner_tables or (lambda: patterns.tables if patterns else None),
            placeholders=placeholders,
            turns=options.random_symmetry,
            async_values=options.async_values and placeholders and mixes,
            adapts=options.adaptive_expansion and mixes,
            reply_chance=options.reply_chance,
            n_workers=options.threads,
            root=new_position(size, 1),
            allowed=np.ones((1, cell_count(size)), np.uint8),
        )
        self._options = options
        self._rng = np.random.default_rng(options.seed)
        self._is_root_ready = False
        self._stop = threading.Event()
        self._finished = threading.Event()
        self._busy = threading.Lock()
        self._evaluations_before = 0
        self._make_workers()

    def _make_workers(self) -> None:
        """Working memory for the root's board size."""
        size = int(self._shared.root.board.meta[META_SIZE])
        self._shared.allowed = np.ones((1, cell_count(size)), np.uint8)
        self._never_barred = np.ones(cell_count(size), np.uint8)
        """uint8[L] by point: root moves that every search of this tree was free to choose"""
        self._workers = [Worker(self._shared, index) for index in range(self._shared.n_workers)]

    def set_position(self, position: Position) -> None:
        """Search this position from now on.

        What is known of it is kept when it is the old one or follows from it by moves; otherwise the tree and the
        random numbers begin anew. The race of sequential halving, which needs all of its visits, always does after a
        move. The position is copied.

        Raises:
            ValueError: the network does not play this board size.
            RuntimeError: a search is running.
        """
        shared = self._shared
        size = int(position.board.meta[META_SIZE])
        if shared.server is not None:
            spec = shared.server.spec
            if not spec.min_size <= size <= spec.max_size:
                raise ValueError(
                    f"network {spec.name} plays boards of {spec.min_size} to {spec.max_size}, not {size}x{size}"
                )
        with self._not_running():
            moves = _moves_since(shared.root, position)
            # What was barred below the old root would be so at other depths of the new one.
            fits = moves is not None and (not moves or (len(shared.allowed) == 1 and not self._options.gumbel))
            kept = fits and self._descend(moves)
            resized = size != int(shared.root.board.meta[META_SIZE])
            shared.root = with_capacity(position, int(position.meta[META_N_MOVES]))
            if resized:
                shared.tree = new_tree(size, self._options.transpositions)
                self._make_workers()
            for worker in self._workers:
                worker.make_room()
            if not kept:
                self._begin_anew()

    @contextmanager
    def _not_running(self) -> Iterator[None]:
        """Keep runs and changes of the position apart."""
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("a search is running")
        try:
            yield
        finally:
            self._busy.release()

    def warm_up(self) -> None:
        """Compile what only a search that is cut short calls."""
        self._workers[0].warm_up()

    def clear(self) -> None:
        """Forget the tree of the current position; the random numbers begin anew."""
        with self._not_running():
            self._begin_anew()

    def _begin_anew(self) -> None:
        self._clear_tree()
        for worker in self._workers:
            worker.restart()

    def _clear_tree(self) -> None:
        clear(self._shared.tree)
        self._is_root_ready = False
        self._never_barred[:] = 1

    def _descend(self, moves: list[int]) -> bool:
        """Make the node after these moves the root; False if it is unknown or has no moves."""
        tree = self._shared.tree
        node, edges = int(tree.meta[ROOT]), []
        for move in moves:
            edges.append(follow(tree, node, move))
            if edges[-1] == NONE or tree.child[edges[-1]] == NONE:
                return False
            node = int(tree.child[edges[-1]])
        if tree.state[node] != EXPANDED:
            return False
        with self._shared.changed:
            for edge in edges:
                advance_root(tree, edge)
                self._is_root_ready = False
                self._never_barred[:] = 1
        return True

    def run(
        self,
        visits: int = 0,
        seconds: float = 0.0,
        hard_seconds: float = 0.0,
        watcher: Watcher | None = None,
        interrupt: threading.Event | None = None,
        allowed: Collection[int] | None = None,
        avoid: Collection[int] = (),
        barred: np.ndarray | None = None,
        stop_when_decided: bool = False,
        ownership: bool = False,
    ) -> Report:
        """Search the current position; blocks until a limit is reached or :meth:`stop` is called.

        Args:
            visits: stop when the root has so many, those kept from earlier searches included; 0 = no limit.
            seconds: stop after so long; 0 = no limit.
            hard_seconds: if more, the limit as long as the choice is unsettled.
            watcher: who gets snapshots in this thread.
            interrupt: stop once it is set; unlike :meth:`stop` it may come before the run.
            allowed: the only points to play at the root (PASS among them if wanted); None = every legal move.
            avoid: points not to play at the root.
            barred: bool[D, L] by depth and point: moves not to play at the root and below it; a node must keep one.
            stop_when_decided: stop as soon as the leading move cannot be overtaken within the limits.
            ownership: let the final report say who owns what.
        Returns:
            Report: holds at least one move unless ``allowed`` and ``avoid`` leave none.
        Raises:
            ValueError: nothing given that would end the search.
            RuntimeError: the network failed, or a search is running already.
        """
        if visits <= 0 and seconds <= 0.0 and interrupt is None:
            raise ValueError("a search needs a limit: visits, seconds or an interrupt")
        with self._not_running():
            shared = self._shared
            shared.stoppers = self._stoppers(visits, seconds, hard_seconds, interrupt, stop_when_decided)
            # Without any limit somebody waits for the end to be quick.
            shared.timed = seconds > 0.0 or visits <= 0
            shared.started_s = time.perf_counter()
            self._allow(marks(shared.allowed.shape[1], allowed, avoid, barred))
            shared.visits_before = int(shared.tree.meta[ROOT_VISITS])
            shared.tree.meta[FULL] = 0
            shared.error = None
            self._evaluations_before = shared.server.evaluations if shared.server else 0
            self._stop.clear()
            self._prepare_root(visits)
            hurried = interrupt.is_set if interrupt else None
            owners = self.ownership_black(hurried) if watcher and watcher.ownership else None
            try:
                self._work(max(seconds, hard_seconds), watcher, owners)
                if ownership and owners is None:
                    owners = self.ownership_black(hurried)
                return self.report(owners, watcher.fewest_moves if watcher else 0)
            finally:
                shared.halving = None

    def _stoppers(
        self, visits: int, seconds: float, hard_seconds: float, interrupt: threading.Event | None, decided: bool
    ) -> list[Stopper]:
        """What ends a run with these arguments of :meth:`run`."""
        stoppers: list[Stopper] = [Interrupt(self._stop), MemoryFull()]
        if interrupt is not None:
            stoppers.append(Interrupt(interrupt))
        if visits > 0:
            stoppers.append(VisitLimit(visits))
        if seconds > 0.0:
            stoppers.append(TimeLimit(seconds, hard_seconds))
        if decided and not self._options.gumbel:
            stoppers.append(Decided(visits, seconds, hard_seconds))
        return stoppers

    def _allow(self, allowed: np.ndarray) -> None:
        """Choose among these moves from now on: uint8[D, L] by depth and point."""
        shared = self._shared
        below, shared.allowed = shared.allowed[1:], allowed
        lifted = allowed[0] > self._never_barred
        # A pass is barred and allowed from move to move; where it may be played, it needs no head start.
        lifted[PASS] = False
        if lifted.any() or has_barred_visits(shared.tree, allowed[0]) or not np.array_equal(below, allowed[1:]):
            # Visits of moves that may not be played would count towards the limits and colour the values above, and
            # moves that could not be visited would never make up for it.
            self._clear_tree()
        self._never_barred &= allowed[0]

    def _prepare_root(self, visits: int) -> None:
        """Do what the options want done to the root before a search."""
        shared, options, tree = self._shared, self._options, self._shared.tree
        changes_priors = not self._is_root_ready and (options.root_noise > 0.0 or options.root_symmetries == "8")
        if not changes_priors and not options.gumbel:
            return
        if tree.state[tree.meta[ROOT]] != EXPANDED:
            limits, shared.stoppers = shared.stoppers, [Interrupt(self._stop), VisitLimit(1)]
            self._work(0.0, None, None)
            shared.stoppers = limits
        if tree.state[tree.meta[ROOT]] != EXPANDED:
            return
        if changes_priors:
            self._change_priors()
        left = visits - int(tree.meta[ROOT_VISITS])
        if options.gumbel and left > 0:
            race = (options.gumbel, left, options.rollout_weight, options.gumbel_noise, self._rng)
            with shared.changed:
                shared.halving = SequentialHalving(tree, shared.allowed, *race)

    def _change_priors(self) -> None:
        """Average the root's priors over all symmetries and mix noise in, as far as options say so."""
        shared, options, server = self._shared, self._options, self._shared.server
        if options.root_symmetries == "8" and server is not None and server.spec.has_policy:
            policy = average_policy(ask_all_symmetries(server, shared.encoder, shared.root))
            with shared.changed:
                replace_root_priors(shared.tree, shared.root, policy, options.policy_temperature)
        if options.root_noise > 0.0:
            with shared.changed:
                mix_noise(shared.tree, options.root_noise, self._rng)
        self._is_root_ready = True

    def _work(self, seconds: float, watcher: Watcher | None, owners: np.ndarray | None) -> None:
        """Run the workers to their end, reporting meanwhile; they are joined even if a report's reader fails."""
        self._finished.clear()
        self._working = len(self._workers)
        threads = [
            threading.Thread(target=self._run_worker, args=(worker,), name=f"search-{index}", daemon=True)
            for index, worker in enumerate(self._workers)
        ]
        for thread in threads:
            thread.start()
        started_s = self._shared.started_s
        deadline_s = started_s + seconds if seconds > 0.0 else math.inf
        due_s = math.inf if watcher is None else started_s + (watcher.first_s or watcher.interval_s)
        try:
            while not self._finished.wait(min(WAKE_S, max(0.0, min(due_s, deadline_s) - time.perf_counter()))):
                if time.perf_counter() >= deadline_s:
                    self.stop()
                    break
                if time.perf_counter() >= due_s:
                    due_s = self._tell(watcher, owners, due_s)
        finally:
            if not self._finished.is_set():
                self.stop()
            for thread in threads:
                thread.join()
        if self._shared.error is not None:
            raise self._shared.error

    def _tell(self, watcher: Watcher, owners: np.ndarray | None, due_s: float) -> float:
        """Give a watcher its report, if a move has a visit by now; returns when the next one is due."""
        if self._shared.tree.meta[ROOT_VISITS] < 2:
            return time.perf_counter() + RETRY_S
        watcher.on_report(self.report(owners, watcher.fewest_moves))
        return max(due_s + watcher.interval_s, time.perf_counter())

    def _run_worker(self, worker: Worker) -> None:
        """A worker's thread; the last one to end says so."""
        try:
            worker.run()
        finally:
            with self._shared.changed:
                self._working -= 1
                if self._working == 0:
                    self._finished.set()

    def stop(self) -> None:
        """End the run in progress soon; without one, nothing happens. Threads: any."""
        self._stop.set()
        for worker in self._workers:
            worker.cancel()

    @property
    def tree(self) -> Tree:
        """The tree itself, for those who measure it. Threads: no search may be running."""
        return self._shared.tree

    def in_flight(self) -> int:
        """Playouts under way; 0 whenever no search runs. Threads: any."""
        return int(self._shared.tree.meta[IN_FLIGHT])

    def report(self, ownership_black: np.ndarray | None = None, fewest_moves: int = 0) -> Report:
        """A snapshot of the tree; during a run, of the moment. Threads: any.

        Args:
            ownership_black: handed on.
            fewest_moves: as in :class:`Watcher`.
        """
        shared = self._shared
        tree, tuning = shared.tree, shared.tuning
        has_scores = shared.uses_rollouts or shared.network_scores
        table, fewest = new_root_table(int(shared.root.board.meta[META_SIZE])), max(1, fewest_moves)
        with shared.changed:
            visits = int(tree.meta[ROOT_VISITS])
            race = shared.halving.order() if shared.halving else None
            visited, count = read_root(tree, tuning, shared.allowed[0], fewest, table)
            value = float(node_value(tree, tree.meta[ROOT], tuning.rollout_weight))
            score = float(root_lead(tree)) if has_scores else None
            nodes = int(tree.meta[USED_NODES])
        moves = moves_in(table, visited, count, fewest, has_scores)
        evaluations = shared.server.evaluations - self._evaluations_before if shared.server else 0
        return Report(
            visits=visits,
            playouts_this_run=visits - shared.visits_before,
            seconds=time.perf_counter() - shared.started_s,
            value_stm=value,
            score_stm=score,
            moves=best_first(moves, move_choice(self._options, shared.server), race),
            ownership_black=ownership_black,
            tree_nodes=nodes,
            evaluations=evaluations,
        )

    def ownership_black(self, hurried: Callable[[], bool] | None = None) -> np.ndarray:
        """Who will own the points of the current position: by the network, all symmetries averaged, or by rollouts.

        Args:
            hurried: see :func:`engine.search.root_priors.ask_all_symmetries`.
        Returns:
            float32[N*N] in policy order, 1 = Black's, -1 = White's.
        Threads: no search may be running.
        """
        shared = self._shared
        root, server = shared.root, shared.server
        if server is None or not server.spec.has_ownership:
            return rollout_ownership(root.board, shared.owner_tables(), OWNERSHIP_ROLLOUTS, shared.seed)
        ownership = average_ownership(ask_all_symmetries(server, shared.encoder, root, hurried))
        return ownership if root.meta[META_TO_MOVE] == BLACK else -ownership

    def close(self) -> None:
        """End a run in progress and wait for it. The server is not touched."""
        self.stop()
        with self._busy:
            pass


def _moves_since(old: Position, new: Position) -> list[int] | None:
    """The moves that lead from one position to the other; None if it does not follow from it.

    Moves must alternate, since the tree knows no others.
    """
    n, m = int(old.meta[META_N_MOVES]), int(new.meta[META_N_MOVES])
    if m < n or len(old.board.buffer) != len(new.board.buffer):
        return None
    same = (
        np.array_equal(old.rules, new.rules)
        and old.meta[META_HANDICAP] == new.meta[META_HANDICAP]
        and np.array_equal(old.hashes[: n + 1], new.hashes[: n + 1])
        and np.array_equal(old.moves[:n], new.moves[:n])
        and np.array_equal(old.colors[:n], new.colors[:n])
    )
    first = int(old.meta[META_TO_MOVE])
    colors = np.where(np.arange(m - n + 1) % 2 == 0, first, other(first))
    if not same or colors[-1] != new.meta[META_TO_MOVE] or not np.array_equal(colors[:-1], new.colors[n:m]):
        return None
    return [int(move) for move in new.moves[n:m]]
