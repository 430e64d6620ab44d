"""What the network says of one position under several symmetries: outside the tree, and within a deadline.

Evaluations that are not expected to end in time are not begun. One that is late, or in whose midst an interruption
comes, is abandoned: the mean is over those that there are by then.
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
    """Asks a network about single positions. Threads: one asks; :meth:`cancel` is for any."""

    def __init__(self, network: NetworkAccess) -> None:
        self._network = network
        self._asked: list[Request] = []

    def outputs(
        self, position: Position, deadline_s: float = math.inf, interrupt: threading.Event | None = None
    ) -> dict[int, Request]:
        """The network's outputs for a position, by symmetry; each is row 0 of its request.

        Args:
            deadline_s: ``time.perf_counter`` when they are to be there.
            interrupt: once it is set, nothing is waited for; :meth:`cancel` has to be called then.
        Returns:
            those that came in time, perhaps none.
        Raises:
            NetworkFailed: the network failed.
        """
        server, encoder = self._network
        size = int(position.board.meta[META_SIZE])
        scratch = encoder.new_scratch(size)
        count = min(SYMMETRIES, server.positions_until(deadline_s))
        # One request each: all evaluators share the work, and what has not begun can be taken back.
        asked = {s: server.new_request(size, 1, encoder.planes, encoder.globals) for s in range(count)}
        self._asked = list(asked.values())
        try:
            for symmetry, request in asked.items():
                encoders.encode(position, symmetry, scratch, request.planes[0], request.globals[0])
                request.count = 1
                server.submit(request)
            if interrupt is not None and interrupt.is_set():
                self.cancel()
            for request in self._asked:
                server.wait(request, deadline_s)
        finally:
            self.cancel()
        return {s: one for s, one in asked.items() if one.state is State.DONE and not one.cancelled}

    def cancel(self) -> None:
        """Let whoever asks go on with the outputs there are. Threads: any."""
        for request in self._asked:
            self._network.server.abandon(request)

    def policy(self, position: Position, deadline_s: float, interrupt: threading.Event | None) -> np.ndarray | None:
        """Logs of the mean move probabilities, float32[N*N + 1] in policy order; None if no output came in time.

        Args, errors: as of :meth:`outputs`.
        """
        outputs = self.outputs(position, deadline_s, interrupt)
        return average_policy(outputs) if outputs else None

    def ownership(self, position: Position, deadline_s: float, interrupt: threading.Event | None) -> np.ndarray | None:
        """Mean ownership, float32[N*N] in policy order, 1 = the mover's; None if no output came in time.

        Args, errors: as of :meth:`outputs`.
        """
        outputs = self.outputs(position, deadline_s, interrupt)
        return average_ownership(outputs) if outputs else None


def average_policy(outputs: dict[int, Request]) -> np.ndarray:
    """Logs of the mean move probabilities over some symmetries, float32[N*N + 1] in policy order."""
    probabilities = softmax(np.stack([one.policy[0][symmetry_table(one.size)[s]] for s, one in outputs.items()]))
    return np.log(probabilities.mean(axis=0) + 1e-30).astype(np.float32)


def average_ownership(outputs: dict[int, Request]) -> np.ndarray:
    """Mean ownership over some symmetries, float32[N*N] in policy order, 1 = the mover's."""
    owners = [one.ownership[0].reshape(-1)[symmetry_table(one.size)[s, :-1]] for s, one in outputs.items()]
    return np.stack(owners).mean(axis=0, dtype=np.float64).astype(np.float32)
