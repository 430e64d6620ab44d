"""A search: one tree for the current position of one game, its workers, its runs and its reports.

:mod:`engine.search.worker` has the search loop. One thread calls :meth:`Search.run` and :meth:`Search.set_position`;
any thread may call :meth:`Search.stop`, :meth:`Search.in_flight` and :meth:`Search.report`.

If the next position follows from the current one by moves, its subtree is kept (:func:`moves_since`,
:func:`edges_along`).
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.config import SearchOptions
from engine.features.encoder import Encoder
from engine.go.board import META_SIZE
from engine.go.geometry import BLACK, PASS, cell_count, other
from engine.go.position import META_HANDICAP, META_N_MOVES, META_TO_MOVE, Position, new_position
from engine.inference.server import InferenceServer, NetworkFailed
from engine.nets.notices import say_once
from engine.rollout.model import Patterns
from engine.rollout.ownership import rollout_ownership
from engine.rollout.policy import Tables
from engine.search.choosing import RootPolicy, add_dirichlet_noise, best_first, replace_root_priors
from engine.search.endings import RootEnding, is_near_end
from engine.search.move_filter import EVERY_MOVE, MoveFilter, has_excluded_visits
from engine.search.ownership import NO_OWNERSHIP, NodeOwnership
from engine.search.report import Report, Watcher, moves_in, new_root_table, read_root
from engine.search.root_targets import read_priors
from engine.search.snapshot import Snapshot, read_tree
from engine.search.state import Run, Setup, SharedTree
from engine.search.stoppers import Interrupt, SearchLimits, VisitLimit
from engine.search.successors import Successors
from engine.search.symmetries import SymmetricEvaluation
from engine.search.tree import (
    EXPANDED,
    META_FULL,
    META_IN_FLIGHT,
    META_ROOT,
    META_ROOT_VISITS,
    META_USED_NODES,
    NONE,
    Tree,
    advance_root,
    byte_count,
    clear,
    follow,
)
from engine.search.tree_top import TreeTop, new_tree_top, read_top
from engine.search.tuning import move_choice, new_setup, new_tuning, resolved, root_symmetries, tree_bytes
from engine.search.values import root_lead, root_value
from engine.search.worker import FIRST_S, Workers


def edges_along(tree: Tree, moves: list[int]) -> list[int] | None:
    """The edges (rows) from the root that play these moves one after the other.

    None if an edge or its node is missing, or the last node is not expanded.
    """
    node, edges = int(tree.meta[META_ROOT]), []
    for move in moves:
        edge = follow(tree, node, move)
        if edge == NONE or tree.child[edge] == NONE:
            return None
        edges.append(edge)
        node = int(tree.child[edge])
    return edges if tree.state[node] == EXPANDED else None


def moves_since(old: Position, new: Position) -> list[int] | None:
    """The moves that lead from an old position to a new one, colours alternating, [] if they are equal.

    None if there are no such moves: history, rules or handicap differ.
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


OWNERSHIP_ROLLOUTS = 200
"""Number of rollouts that estimate ownership if the network does not"""
RETRY_S = 0.01
"""Interval at which a report is retried before any move has a visit"""
SYMMETRIES_SHARE = 0.25
"""Maximum share of a search's time for ownership, and for the root's policy under all symmetries, before the search"""
OWNERSHIP_S = 3.0
"""Maximum time to estimate ownership before a search without a time limit"""
LEAST_S = 0.15
"""A search with less time than this does not estimate ownership."""


class Search:
    """The search of one game, see the module's docstring. :meth:`close` does not close the server."""

    def __init__(
        self, options: SearchOptions, server: InferenceServer | None, encoder: Encoder | None,
        patterns: Patterns | None = None, ownership_tables: Callable[[], Tables | None] | None = None,
    ):  # fmt: skip
        """Make a search; :meth:`set_position` must be called before the first run.

        Args:
            server: evaluates positions; None = rollouts alone, on any board size.
            encoder: the encoder that ``server.spec.encoder`` names; None without a server.
            patterns: the rollout policy and the tree policy, which gives priors without a network; None = both uniform.
            ownership_tables: returns the rollout policy that estimates dead stones at the end of a game, and ownership
                if the network has no such head; called when it is needed. None = the rollout policy of ``patterns``.
        Raises:
            ValueError: the network has no policy head, and there are no patterns.
        """
        options = resolved(options, server)
        self._setup = new_setup(options, server, encoder, patterns, ownership_tables)
        size = server.spec.min_size if server else 9
        tree, tuning = self._setup.new_tree(size), new_tuning(options, server, patterns)
        self._shared = SharedTree(tree, tree_bytes(options, server), tuning)
        self._root = new_position(size, 1)
        self._rng = np.random.default_rng(options.seed)
        self._is_root_ready = False
        self._symmetric = SymmetricEvaluation(self._setup.network) if self._setup.network else None
        self._busy = threading.Lock()
        self._make_workers()

    def _make_workers(self) -> None:
        """Allocate the workers for the root's board size."""
        size = int(self._root.board.meta[META_SIZE])
        started_s, never_s = time.perf_counter(), math.inf
        every_move = np.ones((1, cell_count(size)), np.uint8)
        self._run = Run(self._root, every_move, (), False, started_s, never_s, never_s, threading.Event(), 0, 0, None)
        """the run in progress, or else the latest one"""
        self._never_excluded = np.ones(cell_count(size), np.uint8)
        """uint8[L] by point: 1 = a move at the root that no run has excluded since the root was set or cleared"""
        self._workers = Workers(self._setup, self._shared, size)

    def set_position(self, position: Position) -> Position:
        """Set the position to be searched by the next runs.

        The tree is kept if the position equals the old one, or follows from it by moves that the tree contains,
        unless the last run's move filter reached below the root; otherwise tree and random numbers are reset.

        Returns:
            Position: the copy that is searched, with the scoring rules of the network's training games; only read.
        Raises:
            ValueError: the network does not play this board size.
            RuntimeError: a run is in progress.
        """
        size, root = int(position.board.meta[META_SIZE]), self._setup.new_root(position)
        with self._not_running():
            moves = moves_since(self._root, root)
            # A filter that holds below the old root would apply at other depths below the new one.
            fits = not moves or len(self._run.move_filter) == 1
            kept = moves is not None and fits and self._descend(moves)
            resized = size != int(self._root.board.meta[META_SIZE])
            self._root = root
            if resized:
                self._shared.tree = self._setup.new_tree(size)
                self._make_workers()
            for worker in self._workers.each:
                worker.make_room(self._root)
            if not kept:
                self._reset()
        return root

    @contextmanager
    def _not_running(self) -> Iterator[None]:
        """Keep other runs and changes of the position out; RuntimeError during a run."""
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("a search is running")
        try:
            yield
        finally:
            self._busy.release()

    def warm_up(self) -> None:
        """Compile the kernel that only an interrupted search calls."""
        self._workers.each[0].warm_up()

    def clear(self) -> None:
        """Clear the tree, so that the current position is searched anew, and reset the random numbers."""
        with self._not_running():
            self._reset()

    def release(self) -> None:
        """Replace the tree by an empty one, which frees its memory."""
        with self._not_running():
            with self._shared.lock:
                self._shared.tree = self._setup.new_tree(int(self._root.board.meta[META_SIZE]))
            self._reset()

    def _reset(self) -> None:
        self._shared.ownership = None
        self._clear_tree()
        for worker in self._workers.each:
            worker.restart()

    def _clear_tree(self) -> None:
        with self._shared.lock:
            clear(self._shared.tree)
        self._is_root_ready = False
        self._never_excluded[:] = 1

    def _descend(self, moves: list[int]) -> bool:
        """Make the node after these moves the root; False if the tree lacks the node or the node is not expanded."""
        edges = edges_along(self._shared.tree, moves)
        if edges is None:
            return False
        with self._shared.lock:
            for edge in edges:
                advance_root(self._shared.tree, edge)
                self._is_root_ready = False
                self._never_excluded[:] = 1
        return True

    def run(
        self, limits: SearchLimits, moves: MoveFilter = EVERY_MOVE, watcher: Watcher | None = None,
        ownership: bool = False, wide_root_noise: float = 0.0, ending: RootEnding | None = None,
        policy: RootPolicy | None = None,
    ) -> Report:  # fmt: skip
        """Search the current position; blocks until a limit is reached or :meth:`stop` is called.

        Args:
            moves: which moves the search may choose, at the root and below it.
            watcher: receives reports, in this thread.
            ownership: the final report contains ownership.
            wide_root_noise: as KataGo's ``wideRootNoise`` (:mod:`engine.search.selection`).
            ending: for analyses, the root's final score (:mod:`engine.search.endings`).
            policy: replaces the priors of the root, which no run without it has searched.
        Returns:
            Report: with at least one move, unless the filter excludes all root moves. It has no visits and no moves if
            ``first_s`` passed or :meth:`stop` was called before the network evaluated the root.
        Raises:
            NetworkFailed: the network failed or does not answer; the tree is kept.
            RuntimeError: a run is in progress already.
        """
        with self._not_running():
            root_size = int(self._root.board.meta[META_SIZE])
            keeps = watcher is not None and watcher.ownership and self._keep_ownership()
            self._begin_run(limits, moves.table(root_size, int(self._root.meta[META_TO_MOVE])), ending)
            c_puct, c_permanent = policy[1:] if policy else (0.0, 0.0)
            self._shared.tuning = self._shared.tuning._replace(
                wide_root_noise=float(wide_root_noise), root_c_puct=float(c_puct), root_c_permanent=float(c_permanent)
            )
            self._prepare_root(limits, policy)
            is_wanted = ownership or (watcher is not None and watcher.ownership and not keeps)
            ownership_black = self._ownership_within(limits) if is_wanted else None
            self._work(self._run, watcher, ownership_black)
            return self.report(ownership_black, watcher.fewest_moves if watcher else 0, keeps)

    def _keep_ownership(self) -> bool:
        """Have each node's ownership kept from now on; a tree without ownership is replaced by a new one.

        Returns:
            False if the search cannot keep ownership (:attr:`engine.search.state.Setup.can_keep_ownership`).
        """
        network = self._setup.network if self._setup.can_keep_ownership else None
        if network is not None and self._shared.ownership is None:
            # Its caches are part of the memory.
            network.server.ownership_caches()
            most = tree_bytes(self._setup.options, network.server)
            self._shared.memory_bytes = min(self._shared.memory_bytes, most)
            # A new tree: a large one would leave no memory for ownership.
            self._shared.tree = self._setup.new_tree(int(self._root.board.meta[META_SIZE]))
            self._clear_tree()
            self._shared.ownership = NodeOwnership(len(self._shared.tree.point) - 1)
        return network is not None

    def _begin_run(
        self, limits: SearchLimits, move_filter: NDArray[np.uint8], ending: RootEnding | None
    ) -> None:  # fmt: skip
        """Make ``_run`` (:class:`Run`) with these limits and this filter; clear the tree if it does not fit them."""
        # This order loses no interruption: an interrupting thread sets the interrupt first and then calls stop.
        self._workers.stopping.clear()
        started_s, network = time.perf_counter(), self._setup.network
        deadline_s = started_s + limits.longest_s if limits.longest_s else math.inf
        first_s = limits.first_s or math.inf
        if limits.interrupt is not None and limits.interrupt.is_set():
            first_s = min(first_s, FIRST_S)
        self._filter_moves(move_filter)
        if (self._run.ending is None) != (ending is None) and is_near_end(self._root):
            # Finished games have other values in an analysis than in play.
            self._clear_tree()
        self._run = Run(
            root=self._root,
            move_filter=move_filter,
            stoppers=tuple(limits.stoppers(self._workers.stopping)),
            is_urgent=limits.is_urgent,
            started_s=started_s,
            deadline_s=deadline_s,
            first_deadline_s=started_s + first_s,
            cancelled=threading.Event(),
            visits_before=int(self._shared.tree.meta[META_ROOT_VISITS]),
            evaluations_before=network.server.evaluations if network else 0,
            ending=ending,
        )
        self._shared.tree.meta[META_FULL] = 0
        self._shared.error = None

    def _filter_moves(self, move_filter: NDArray[np.uint8]) -> None:
        """Clear the tree if its visits do not fit the next run's filter.

        Args:
            move_filter: uint8[D, L] by depth and point, 1 = allowed.
        """
        lifted = move_filter[0] > self._never_excluded
        # The pass is excluded and allowed again from move to move; it may catch up.
        lifted[PASS] = False
        is_same_below = np.array_equal(self._run.move_filter[1:], move_filter[1:])
        if lifted.any() or has_excluded_visits(self._shared.tree, move_filter[0]) or not is_same_below:
            # Visits of excluded moves would count towards the limits and bias the values above; moves excluded until
            # now would hardly catch up.
            self._clear_tree()
        self._never_excluded &= move_filter[0]

    def _prepare_root(self, limits: SearchLimits, policy: RootPolicy | None) -> None:
        """If there is a policy, or the options ask for noise or all symmetries, evaluate the root and change its
        priors, once per root."""
        options, tree = self._setup.options, self._shared.tree
        is_asked = policy is not None or options.root_noise > 0.0 or root_symmetries(options) > 1
        if self._is_root_ready or not is_asked:
            return
        if tree.state[tree.meta[META_ROOT]] != EXPANDED:
            self._work(replace(self._run, stoppers=(Interrupt(self._workers.stopping), VisitLimit(1))), None, None)
        if tree.state[tree.meta[META_ROOT]] != EXPANDED:
            return
        if policy is None:
            self._change_priors(limits)
        else:
            with self._shared.lock:
                replace_root_priors(tree, self._root, policy.logits, 1.0)
            self._is_root_ready = True

    def _change_priors(self, limits: SearchLimits) -> None:
        """Average the expanded root's priors over all symmetries and add noise, as the options ask."""
        shared, options, network = self._shared, self._setup.options, self._setup.network
        if root_symmetries(options) > 1 and self._symmetric is not None and network is not None and network.has_policy:
            deadline_s = time.perf_counter() + SYMMETRIES_SHARE * limits.longest_s if limits.longest_s else math.inf
            policy = self._symmetric.policy(self._root, deadline_s, limits.interrupt)
            if policy is None:
                # Interrupted or out of time: the next run of this position tries again.
                return
            with shared.lock:
                replace_root_priors(shared.tree, self._root, policy, options.policy_temperature)
        if options.root_noise > 0.0:
            with shared.lock:
                add_dirichlet_noise(shared.tree, options.root_noise, self._rng)
        self._is_root_ready = True

    def _work(self, run: Run, watcher: Watcher | None, ownership_black: np.ndarray | None) -> None:
        """Run the workers to their end, and send reports to the watcher meanwhile."""
        if watcher is None:
            self._workers.work(run)
            return

        owners_due_s = -math.inf

        def report(due_s: float) -> float:
            nonlocal owners_due_s
            now_s = time.perf_counter()
            if self._shared.tree.meta[META_ROOT_VISITS] < 2:
                return now_s + RETRY_S
            keeps = watcher.ownership and now_s >= owners_due_s
            if keeps:
                owners_due_s = now_s + watcher.ownership_s
            watcher.on_report(self.report(ownership_black, watcher.fewest_moves, keeps))
            return max(due_s + watcher.interval_s, time.perf_counter())

        self._workers.work(run, run.started_s + (watcher.first_s or watcher.interval_s), report)

    def stop(self) -> None:
        """Stop the run in progress, if there is one. Threads: any."""
        self._workers.stop()
        if self._symmetric is not None:
            self._symmetric.cancel()

    @property
    def tree(self) -> Tree:
        """The tree's arrays, for measurements. Threads: no run may be in progress."""
        return self._shared.tree

    def in_flight(self) -> int:
        """Number of playouts in flight; 0 between runs. Threads: any."""
        return int(self._shared.tree.meta[META_IN_FLIGHT])

    def report(self, ownership_black: np.ndarray | None = None, fewest_moves: int = 0, keeps: bool = False) -> Report:
        """A snapshot of the tree. Threads: any, also during a run, but not during :meth:`set_position`.

        Args:
            ownership_black: float[N*N], the report's ownership if the tree gives none.
            fewest_moves: as in :class:`Watcher`.
            keeps: the report contains the mean ownership over the tree, for each move too, if nodes keep ownership.
        """
        shared, setup, run = self._shared, self._setup, self._run
        server = setup.network.server if setup.network else None
        tree, tuning = shared.tree, shared.tuning
        table, fewest = new_root_table(int(self._root.board.meta[META_SIZE])), max(1, fewest_moves)
        policy = None
        with shared.lock:
            visits = int(tree.meta[META_ROOT_VISITS])
            if tree.state[tree.meta[META_ROOT]] == EXPANDED:
                policy = np.zeros(len(table.point))
                read_priors(tree, math.isqrt(len(policy)), policy)
            visited, count = read_root(tree, tuning, run.move_filter[0], fewest, table)
            value = float(root_value(tree, tuning))
            score = float(root_lead(tree)) if setup.has_scores else None
            nodes = int(tree.meta[META_USED_NODES])
            own_lead = float(tree.lead[tree.meta[META_ROOT]]) if setup.has_network_score and visits else None
            sums = shared.ownership.add_up(tree) if keeps and shared.ownership and visits else None
        owners = NO_OWNERSHIP if sums is None else sums.means()
        moves = moves_in(table, visited, count, fewest, setup.has_scores)
        # Copies of a hundred moves would take a third of a report's time.
        moves = owners.given_to(moves) if owners.moves else moves
        return Report(
            visits=visits,
            playouts_this_run=visits - run.visits_before,
            seconds=time.perf_counter() - run.started_s,
            value_stm=value,
            score_stm=score,
            moves=best_first(moves, move_choice(setup.options, server)),
            ownership_black=ownership_black if owners.black is None else owners.black,
            tree_nodes=nodes,
            evaluations=server.evaluations - run.evaluations_before if server else 0,
            has_values=server is not None and "value" in server.spec.heads,
            ownership_stdev=owners.stdev,
            network_score_stm=own_lead,
            policy=policy,
        )

    @property
    def setup(self) -> Setup:
        """The constants of the search. Threads: any."""
        return self._setup

    @property
    def root(self) -> Position:
        """The position that is searched; only read. Threads: any, but not during :meth:`set_position`."""
        return self._root

    def top(self) -> tuple[TreeTop, int, int]:
        """A snapshot of the top of the tree, as :func:`engine.search.tree_top.read_top` fills it.

        Returns:
            the arrays, the number of moves and the number of positions in them.
        Threads: as for :meth:`report`.
        """
        shared, top = self._shared, new_tree_top(int(self._root.board.meta[META_SIZE]))
        with shared.lock:
            moves, rows = read_top(shared.tree, shared.tuning.rollout_weight, top)
        return top, moves, rows

    def snapshot(self) -> Snapshot:
        """A copy of all visited nodes. Threads: as for :meth:`report`; the search waits meanwhile."""
        shared, to_move = self._shared, int(self._root.meta[META_TO_MOVE])
        with shared.lock:
            return read_tree(shared.tree, shared.tuning, to_move)

    def successors(self, points: Iterable[int]) -> Successors | None:
        """Evaluations of the positions after moves at the root, beside a run; None without the network's values.

        Args:
            points: legal moves, each once, in the order of evaluation.
        Threads: as for :meth:`report`; the result is of use until :meth:`set_position`.
        """
        network = self._setup.network
        if network is None or "value" not in network.server.spec.heads:
            return None
        caches = network.server.ownership_caches() if self._shared.ownership is not None else None
        return Successors(self._setup, network, self._root, points, caches)

    def _ownership_within(self, limits: SearchLimits) -> np.ndarray | None:
        """:meth:`ownership_black` within a run's limits; None if the run has less than ``LEAST_S``."""
        if 0.0 < limits.longest_s < LEAST_S:
            return None
        time_s = SYMMETRIES_SHARE * limits.longest_s if limits.longest_s else OWNERSHIP_S
        return self.ownership_black(time.perf_counter() + time_s, limits.interrupt)

    def ownership_black(self, deadline_s: float = math.inf, interrupt: threading.Event | None = None) -> np.ndarray:
        """Ownership of the current position by :meth:`network_ownership_black`, or if that gives None by rollouts.

        Args:
            deadline_s, interrupt: as for :meth:`network_ownership_black`; rollouts too end at the deadline.
        Returns:
            float32[N*N] in policy order, 1 = Black's, -1 = White's.
        Threads: no run may be in progress.
        """
        found = self.network_ownership_black(deadline_s, interrupt)
        if found is not None:
            return found
        tables, seed = self._setup.ownership_tables(), self._setup.options.seed
        return rollout_ownership(self._root.board, tables, OWNERSHIP_ROLLOUTS, seed, deadline_s)

    def network_ownership_black(
        self, deadline_s: float = math.inf, interrupt: threading.Event | None = None, of: Position | None = None
    ) -> np.ndarray | None:
        """Ownership by the network, averaged over the symmetries whose evaluation ends before the deadline.

        A failure of the network is printed on standard error, and not raised.

        Args:
            deadline_s, interrupt: as for :meth:`engine.search.symmetries.SymmetricEvaluation.outputs`.
            of: a position of the same size; None = the current one.
        Returns:
            float32[N*N] in policy order, 1 = Black's, -1 = White's; None without an output of the network.
        Threads: no run may be in progress.
        """
        network = self._setup.network
        if network is None or self._symmetric is None or "ownership" not in network.server.spec.heads:
            return None
        try:
            position = self._root if of is None else of
            found = self._symmetric.ownership(position, deadline_s, interrupt)
        except NetworkFailed as error:
            say_once(str(error))
            return None
        return found if found is None or position.meta[META_TO_MOVE] == BLACK else -found

    @property
    def memory_bytes(self) -> int:
        """Bytes allocated for the tree, including ownership. Threads: any."""
        return byte_count(self._shared.tree) + self._shared.ownership_bytes

    def limit_memory(self, most_bytes: int) -> None:
        """Set the memory limit of the tree and its ownership; a larger tree does not shrink. Threads: any."""
        self._shared.memory_bytes = most_bytes

    @property
    def is_full(self) -> bool:
        """Whether the tree reached its memory limit in the latest run."""
        return bool(self._shared.tree.meta[META_FULL])

    def close(self) -> None:
        """Stop the run in progress, if there is one, and wait for its end. The server stays open."""
        self.stop()
        with self._busy:
            pass
