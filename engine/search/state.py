"""The state that the workers of one search share, in a class for each lifetime.

:class:`Setup` is fixed when the search is made, a :class:`Run` when a run begins. Everything in :class:`SharedTree`
may change during a run and is guarded by its lock.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.config import SearchOptions
from engine.features.encoder import Encoder
from engine.go.board import META_SIZE
from engine.go.position import META_N_MOVES, Position, count_none_beside_atari, with_capacity
from engine.inference.server import InferenceServer
from engine.rollout.model import Patterns
from engine.rollout.policy import Tables
from engine.search.alphago_2016 import Mechanisms
from engine.search.endings import RootEnding
from engine.search.ownership import NodeOwnership
from engine.search.selection import Tuning
from engine.search.stoppers import RIVAL_SHARE, Progress, Stopper
from engine.search.tree import META_FULL, META_IN_FLIGHT, META_ROOT_VISITS, Tree, new_tree
from engine.search.values import leaders, root_value


class NetworkAccess(NamedTuple):
    """The network of a search: its server and its encoder."""

    server: InferenceServer
    encoder: Encoder
    """the encoder that ``server.spec.encoder`` names"""

    @property
    def has_policy(self) -> bool:
        """Whether the network has a policy head, for priors."""
        return "policy" in self.server.spec.heads


@dataclass(frozen=True)
class Setup:
    """The constants of a search."""

    options: SearchOptions
    """the options with device-dependent defaults filled in (:func:`engine.search.tuning.resolved`)"""
    network: NetworkAccess | None
    """None = positions are evaluated by rollouts alone"""
    patterns: Patterns | None
    """rollout policy and tree policy; None = uniformly random rollouts, and without a network equal priors"""
    ownership_tables: Callable[[], Tables | None]
    """returns the rollout policy that estimates ownership; a result of None = uniformly random rollouts"""
    uses_rollouts: bool
    """a rollout is played from each leaf: rollouts have a weight, or there is no network"""
    value_bias: float
    """subtree value bias factor (:mod:`engine.search.value_bias`); 0 = no correction"""
    mechanisms: Mechanisms

    def new_tree(self, size: int) -> Tree:
        """A tree of one unexpanded root, for a board size."""
        return new_tree(size, self.value_bias)

    def new_root(self, position: Position) -> Position:
        """A copy of a position to be searched, with the scoring rules of the network's training games.

        Raises:
            ValueError: the network does not play this board size.
        """
        root = with_capacity(position, int(position.meta[META_N_MOVES]))
        if self.network is not None:
            self.network.server.spec.check_sizes((int(position.board.meta[META_SIZE]),))
            if not self.network.encoder.counts_beside_atari:
                count_none_beside_atari(root)
        return root

    @property
    def can_keep_ownership(self) -> bool:
        """Whether every node can have the network's ownership.

        The network must have the head, and no node may be expanded or evaluated without the network.
        """
        has_head = self.network is not None and "ownership" in self.network.server.spec.heads
        return has_head and self.patterns is None and not self.uses_rollouts

    @property
    def has_network_score(self) -> bool:
        """Whether the network has a score head, so that leads in points come from it and not from rollouts."""
        return self.network is not None and "score" in self.network.server.spec.heads

    @property
    def has_scores(self) -> bool:
        """Whether anything estimates leads in points."""
        return self.uses_rollouts or self.has_network_score


@dataclass(frozen=True)
class Run:
    """The constants of one run of a search."""

    root: Position
    """the root's position; only read"""
    move_filter: NDArray[np.uint8]
    """uint8[D, L] by depth and point: 1 = may be chosen; from depth D on every move may"""
    stoppers: Sequence[Stopper]
    is_urgent: bool
    """batches are limited to what the network evaluates in a short time (``BATCH_SECONDS``)"""
    started_s: float
    """``time.perf_counter`` at the start"""
    deadline_s: float
    """latest ``time.perf_counter`` at which the run ends; may be infinite"""
    first_deadline_s: float
    """replaces ``deadline_s`` while the root has no evaluation"""
    cancelled: threading.Event
    """set when all requests of the run are to be cancelled, running ones too"""
    visits_before: int
    """visits of the root at the start"""
    evaluations_before: int
    """positions that the server had evaluated at the start"""
    ending: RootEnding | None
    """in an analysis, the root's final score, which replaces the result of games that end by passes at the root; None =
    such games are scored as in play"""


@dataclass
class SharedTree:
    """The tree and the state that changes with it. Threads: ``lock``, which is never replaced, guards every field."""

    tree: Tree
    memory_bytes: int
    """memory limit of the tree and its nodes' ownership together"""
    tuning: Tuning
    """what the kernels read; with the option ``adaptive_expansion``, ``expand_after`` follows the network's load"""
    ownership: NodeOwnership | None = None
    """ownership of each node; None in searches that do not keep it"""
    error: BaseException | None = None
    """the first failure of a worker in this run"""
    lock: threading.Condition = field(default_factory=threading.Condition)
    """the lock; notified when leaves may have become selectable: after backups, early expansions and releases"""

    @property
    def ownership_bytes(self) -> int:
        """Bytes of the nodes' ownership."""
        return int(self.ownership.rows.nbytes) if self.ownership is not None else 0

    @property
    def limit_bytes(self) -> int:
        """Memory limit of the tree's own arrays, without ownership."""
        return self.memory_bytes - self.ownership_bytes

    def progress(self, run: Run, network: NetworkAccess | None) -> Progress:
        """The state of a run as its stoppers see it. Threads: the lock is held."""
        meta = self.tree.meta
        visits = int(meta[META_ROOT_VISITS])
        server = network.server if network else None
        first, second, margin = leaders(self.tree, self.tuning.rollout_weight, RIVAL_SHARE)
        return Progress(
            visits=visits,
            in_flight=int(meta[META_IN_FLIGHT]),
            playouts=visits - run.visits_before,
            elapsed_s=time.perf_counter() - run.started_s,
            best_visits=first,
            second_visits=second,
            value_margin=margin,
            value=float(root_value(self.tree, self.tuning)) if visits else 0.0,
            full=bool(meta[META_FULL]),
            seconds_per_playout=server.pace.seconds_per_position / server.evaluators if server else 0.0,
            seconds_per_evaluation=server.seconds_per_evaluation if server else 0.0,
        )
