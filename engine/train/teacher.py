"""Labels for positions of real games from a stronger network, while training goes on.

The teacher sees each position turned as the pupil does, so its answers need no turning. Any network serves, with any
encoder; what it has no head for keeps the game's own target.
"""

from threading import local

import numpy as np

from engine.features.encoder import ENCODERS
from engine.inference.server import InferenceServer
from engine.nets.network import Network
from engine.records.games import Games
from engine.train.batches import BatchBuilder

MAX_BATCH = 256


class Teacher:
    """A network that judges batches of game positions, through an inference server of its own."""

    def __init__(self, network: Network, threads: int = 0):
        """Start the server.

        Args:
            threads: evaluator threads on the CPU; 0 = one a core.
        """
        self.spec = network.spec
        self._server = InferenceServer(network, cache_mib=1, threads=threads, max_batch=MAX_BATCH)
        self._own = local()

    def close(self) -> None:
        """Stop the server."""
        self._server.close()

    def plays(self, size: int) -> bool:
        """Whether the teacher knows boards of this size."""
        return self.spec.min_size <= size <= self.spec.max_size

    def judge(
        self, games: Games, rows: np.ndarray, plies: np.ndarray, rules: np.ndarray, turns: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Targets of a :class:`Batch`, by name, for the positions that :meth:`BatchBuilder.encode` makes of these.

        Probabilities are those of the legal moves. Threads: any number at once.
        """
        encoder, size = ENCODERS[self.spec.encoder], int(games.size[rows[0]])
        if not hasattr(self._own, "builder"):
            self._own.builder = BatchBuilder(encoder)
        legal = np.empty((len(rows), size * size + 1), bool)
        planes, globals_, _ = self._own.builder.encode(games, rows, plies, rules, turns, legal)
        output = self._server.ask(planes, globals_)
        known = np.ones(len(rows), np.float32)
        opinions = {}
        if output.policy is not None:
            opinions["policy"] = softmax(np.where(legal, output.policy, -np.inf))
        if output.value is not None:
            opinions |= {"value": output.value, "value_weight": known}
        if output.score is not None and output.ownership is not None:
            opinions |= {"score": output.score, "ownership": output.ownership, "area_weight": known}
        return opinions


def softmax(logits: np.ndarray) -> np.ndarray:
    """float64[B, A]: probabilities."""
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
