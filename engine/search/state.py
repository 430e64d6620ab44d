"""What the workers of one search have in common, by how long it lasts: the search, one run of it, and the tree.

The three never mix: :class:`Setup` is fixed when the search is made, a :class:`Run` when it begins, and everything in
:class:`SharedTree` changes while workers work and is guarded by its lock.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.features.encoder import Encoder
from engine.go.board import META_SIZE
from engine.go.position import META_N_MOVES, Position, count_none_beside_atari, with_capacity
from engine.inference.server import InferenceServer
from engine.rollout.model import Patterns
from engine.rollout.policy import Tables
from engine.search.alphago_2016 import Mechanisms
from engine.search.endings import RootEnding
from engine.search.owners import OwnerRows
from engine.search.selection import Tuning
from engine.search.stoppers import RIVAL_SHARE, Progress, Stopper
from engine.search.tree import META_FULL, META_IN_FLIGHT, META_ROOT_VISITS, Tree, new_tree
from engine.search.values import leaders, root_value, value_margin


class NetworkAccess(NamedTuple):
    """How a search asks its network."""

    server: InferenceServer
    encoder: Encoder
    """the one that ``server.spec.encoder`` names"""

    @property
    def has_policy(self) -> bool:
        """Whether the network gives priors."""
        return "policy" in self.server.spec.heads


@dataclass(frozen=True)
class Setup:
    """What is fixed for a search."""

    n_workers: int
    batch: int
    """most leaves a batch"""
    visits_per_leaf: int
    """visits of the root for which a batch takes one leaf more; 0 = no such limit"""
    limit_bytes: int
    """memory of the tree at first"""
    seed: int
    policy_temperature: float
    random_symmetry: bool
    """positions are shown to the network in random symmetries"""
    network: NetworkAccess | None
    """None = rollouts alone"""
    patterns: Patterns | None
    """rollout and tree policy; None = uniform rollouts, and without a network equal priors"""
    owner_tables: Callable[[], Tables | None]
    """gives the rollout policy that says who owns what; None = uniform rollouts do"""
    uses_rollouts: bool
    """leaves are rolled out: rollouts have a weight, or there is no network"""
    value_bias: float
    """share of their errors by which the network's values are corrected; 0 = not at all"""
    mechanisms: Mechanisms

    def new_tree(self, size: int) -> Tree:
        """A tree for boards of a size, with nothing but an unexpanded root."""
        return new_tree(size, self.value_bias)

    def new_root(self, position: Position) -> Position:
        """A copy of a position to be searched, in which points count as they did in the network's own games.

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
    def can_keep_owners(self) -> bool:
        """Whether the network says of each node who owns what: it does, and no node is there before it has spoken."""
        says = self.network is not None and "ownership" in self.network.server.spec.heads
        return says and self.patterns is None and not self.uses_rollouts

    @property
    def has_network_score(self) -> bool:
        """Whether leads in points come from the network, not from rollouts."""
        return self.network is not None and "score" in self.network.server.spec.heads

    @property
    def has_scores(self) -> bool:
        """Whether anything estimates leads in points."""
        return self.uses_rollouts or self.has_network_score


@dataclass(frozen=True)
class Run:
    """What is fixed for one run of a search."""

    root: Position
    """only read"""
    move_filter: NDArray[np.uint8]
    """uint8[D, L] by depth and point: 1 = may be chosen; deeper than D every move may"""
    stoppers: Sequence[Stopper]
    is_urgent: bool
    """batches are kept to what the network evaluates in a short time"""
    started_s: float
    """``time.perf_counter`` at the start"""
    deadline_s: float
    """when the run has ended, whatever it found; likewise, perhaps infinite"""
    first_deadline_s: float
    """the same, instead of ``deadline_s``, as long as the root has no evaluation"""
    let_go: threading.Event
    """evaluations that still run are not waited for any longer"""
    visits_before: int
    """visits of the root at the start"""
    evaluations_before: int
    """positions that the server had evaluated at the start"""
    ending: RootEnding | None
    """in an analysis, what ending the game at the root is worth; None = finished games are scored as in play"""


@dataclass
class SharedTree:
    """The tree and what changes with it. Threads: ``lock`` guards every field, and is itself never replaced."""

    tree: Tree
    memory_bytes: int
    """what the tree may take, with what it keeps of owners"""
    tuning: Tuning
    """of which ``expand_after`` follows the network's load, where the options say so"""
    owners: OwnerRows | None = None
    """who owns what at each node, where that is asked for"""
    error: BaseException | None = None
    """the first failure of a worker in this run"""
    lock: threading.Condition = field(default_factory=threading.Condition)
    """the lock; notified when values have been backed up"""

    @property
    def owner_bytes(self) -> int:
        """What is taken by who owns what at each node."""
        return int(self.owners.rows.nbytes) if self.owners is not None else 0

    @property
    def limit_bytes(self) -> int:
        """What the memory of a search leaves the tree's own arrays."""
        return self.memory_bytes - self.owner_bytes

    def progress(self, run: Run, network: NetworkAccess | None) -> Progress:
        """Where a run stands, for its stoppers. Threads: the lock is held."""
        meta = self.tree.meta
        visits = int(meta[META_ROOT_VISITS])
        server = network.server if network else None
        first, second = leaders(self.tree)
        return Progress(
            visits=visits,
            in_flight=int(meta[META_IN_FLIGHT]),
            playouts=visits - run.visits_before,
            elapsed_s=time.perf_counter() - run.started_s,
            best_visits=first,
            second_visits=second,
            value_margin=value_margin(self.tree, self.tuning.rollout_weight, RIVAL_SHARE),
            value=float(root_value(self.tree, self.tuning)) if visits else 0.0,
            full=bool(meta[META_FULL]),
            seconds_per_playout=server.seconds_per_position / server.evaluators if server else 0.0,
            seconds_per_evaluation=server.seconds_per_evaluation if server else 0.0,
        )
