"""The network's value of the position after each move at the root, evaluated beside the running search.

Positions are evaluated as the search's leaves are (:mod:`engine.search.leaves`): under the same symmetries and with the
same result cache. So positions that the search knows cost nothing, positions evaluated here cost the search nothing
later, and the search's results do not change.
"""

from collections import deque
from collections.abc import Iterable

import numpy as np

from engine.features.symmetry import symmetry_table
from engine.go.board import META_SIZE
from engine.go.geometry import index_of
from engine.go.position import META_N_MOVES, META_TO_MOVE, Position, with_capacity
from engine.inference.cache import OwnershipCaches, new_cache
from engine.inference.slots import State
from engine.search.leaves import (
    NEW,
    UNSCORED,
    new_batch,
    prepare_for_network,
    score_finished_territory,
    take_results,
)
from engine.search.ownership import take_ownership
from engine.search.state import NetworkAccess, Setup

CAPACITY = 32
"""Maximum number of positions in one request"""


class Successors:
    """Evaluates the positions after moves, one request after the other. Threads: one, besides the search's."""

    def __init__(
        self, setup: Setup, network: NetworkAccess, root: Position, points: Iterable[int],
        caches: OwnershipCaches | None = None,
    ) -> None:  # fmt: skip
        """Allocate memory; evaluates nothing yet.

        Args:
            setup: of the search.
            network: the search's, with a value head.
            root: the position before the moves, as the search has it.
            points: the moves, legal and each once, in the order of evaluation.
            caches: those of a search that keeps ownership; None = the search keeps none.
        """
        self._setup, self._network = setup, network
        self._root, self._size = root, int(root.board.meta[META_SIZE])
        self._left = deque(points)
        encoder = network.encoder
        self._batch, self._scratch = new_batch(self._size, CAPACITY), encoder.new_scratch(self._size)
        self._request = network.server.new_request(self._size, CAPACITY, encoder.planes, encoder.globals)
        self._position = with_capacity(root, int(root.meta[META_N_MOVES]) + 1)
        # Without a policy head the cache also holds the search's own priors, which are unknown here.
        results = network.server.cache if caches is None else caches.results
        self._cache = results if network.has_policy else new_cache(1 << 20, self._size**2 + 1)
        self._owner_cache = caches.ownership if caches is not None and network.has_policy else None
        self._owners = np.zeros((CAPACITY, self._size**2), np.float32)
        self._count = 0
        """positions in the batch"""
        self.requested = 0
        """number of positions requested so far"""
        self.values = np.full(self._size**2 + 1, np.nan, np.float32)
        """float32[N*N + 1] in policy order: values so far, -1 to 1 for the root's side to move; nan = unknown"""

    def step(self, most: int) -> bool:
        """Take the outputs that have come; if none are outstanding, request further positions. Does not wait.

        Args:
            most: maximum number of positions to request now; at most CAPACITY are.
        Returns:
            bool: whether positions are left or outstanding.
        Raises:
            NetworkFailed: the network failed.
        """
        if self._count and self._request.done.is_set():
            self._take()
        if not self._count and self._left and most > 0:
            self._ask(min(most, CAPACITY, len(self._left)))
        return bool(self._count or self._left)

    def cancel(self) -> None:
        """Cancel the outstanding request, if there is one; no further step may follow."""
        self._left.clear()
        if self._count:
            self._network.server.cancel(self._request, running=True)

    def _ask(self, count: int) -> None:
        """Request the next ``count`` positions; take those that the cache has at once."""
        setup, server, batch, request = self._setup, self._network.server, self._batch, self._request
        batch.depth[:count], batch.kind[:count] = 1, NEW
        batch.move[:count, 0] = [self._left.popleft() for _ in range(count)]
        request.state = State.FILLING
        # root, position, batch, count; seed, random_symmetry, planes, globals
        leaves = (self._root, self._position, batch, count)
        inputs = (np.uint64(setup.options.seed), setup.options.random_symmetry, request.planes, request.globals)
        request.count = prepare_for_network(*leaves, self._cache, self._scratch, *inputs)
        if (batch.kind[:count] == UNSCORED).any():
            score_finished_territory(*leaves, setup.ownership_tables(), setup.options.seed)
        self._count = count
        self.requested += count
        if request.count:
            server.submit(request)
        else:
            self._take()

    def _take(self) -> None:
        """Take the outputs of the request, which is done."""
        server, request, batch, count = self._network.server, self._request, self._batch, self._count
        self._count = 0
        if request.count:
            server.wait(request)
        heads = server.spec.heads
        # policy, value, score; gives_policy, gives_score
        outputs = (request.policy, request.value, request.score, "policy" in heads, "score" in heads)
        take_results(batch, count, symmetry_table(self._size), *outputs, self._cache)
        if self._owner_cache is not None:
            # The search takes both of a position from its caches.
            ownership = request.ownership.reshape(len(request.ownership), -1)
            view = (self._root.meta[META_TO_MOVE], symmetry_table(self._size), ownership)
            take_ownership(batch, count, *view, self._owner_cache, self._owners)
        request.state = State.FREE
        for point, value in zip(batch.move[:count, 0].tolist(), batch.value[:count].tolist(), strict=True):
            self.values[index_of(point, self._size)] = -value
