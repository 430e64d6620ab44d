"""Evaluations of one position under several symmetries, outside the tree and within a deadline.

Evaluations that are not expected to end before the deadline are not started. At the deadline or an interruption
unfinished evaluations are cancelled, and the mean is taken over the finished ones.
"""

import math
import threading

import numpy as np

from engine.features import encoder as encoders
from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.board import META_SIZE
from engine.go.position import Position
from engine.inference.slots import Request, State
from engine.nets.network import softmax
from engine.search.state import NetworkAccess


class SymmetricEvaluation:
    """Evaluates single positions under several symmetries. Threads: one at a time; any may call :meth:`cancel`."""

    def __init__(self, network: NetworkAccess) -> None:
        self._network = network
        self._requests: list[Request] = []

    def outputs(
        self,
        position: Position,
        deadline_s: float = math.inf,
        interrupt: threading.Event | None = None,
        most: int = SYMMETRIES,
    ) -> dict[int, Request]:
        """The network's outputs for a position under each symmetry.

        Args:
            deadline_s: ``time.perf_counter`` at which waiting for outputs ends.
            interrupt: if it is set before this call, outputs are not waited for. To interrupt this call later, call
                :meth:`cancel` too.
            most: maximum number of symmetries.
        Returns:
            by symmetry, the requests with outputs (in slot 0) that were evaluated in time, perhaps none.
        Raises:
            NetworkFailed: the network failed.
        """
        server, encoder = self._network
        size = int(position.board.meta[META_SIZE])
        scratch = encoder.new_scratch(size)
        count = min(most, server.positions_until(deadline_s))
        # One request for each symmetry: all evaluators share the work, and waiting requests can be cancelled.
        requests = self._requests = [server.new_request(size, 1, encoder.planes, encoder.globals) for _ in range(count)]
        try:
            for symmetry, request in enumerate(requests):
                encoders.encode(position, symmetry, scratch, request.planes[0], request.globals[0])
                request.count = 1
                server.submit(request)
            if interrupt is not None and interrupt.is_set():
                self.cancel()
            for request in requests:
                server.wait(request, deadline_s)
        finally:
            self.cancel()
        return {s: one for s, one in enumerate(requests) if one.state is State.DONE and not one.cancelled}

    def cancel(self) -> None:
        """Make a call of :meth:`outputs` in progress return at once with the finished outputs. Threads: any."""
        for request in self._requests:
            self._network.server.cancel(request, running=True)

    def policy(self, position: Position, deadline_s: float, interrupt: threading.Event | None) -> np.ndarray | None:
        """Logarithms of the move probabilities averaged over symmetries, float32[N*N + 1] in policy order.

        None if no output came in time. Arguments and errors are as for :meth:`outputs`.
        """
        outputs = self.outputs(position, deadline_s, interrupt)
        logits = [one.policy[0][symmetry_table(one.size)[s]] for s, one in outputs.items()]
        return np.log(softmax(np.stack(logits)).mean(axis=0) + 1e-30).astype(np.float32) if logits else None

    def ownership(self, position: Position, deadline_s: float, interrupt: threading.Event | None) -> np.ndarray | None:
        """Ownership averaged over symmetries, float32[N*N] in policy order, 1 = the side to move's.

        None if no output came in time. Arguments and errors are as for :meth:`outputs`.
        """
        outputs = self.outputs(position, deadline_s, interrupt)
        found = [one.ownership[0].reshape(-1)[symmetry_table(one.size)[s, :-1]] for s, one in outputs.items()]
        return np.stack(found).mean(axis=0, dtype=np.float64).astype(np.float32) if found else None
