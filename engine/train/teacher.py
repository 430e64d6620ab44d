"""Online distillation: a teacher network labels positions of recorded games during training.

The teacher sees each position under the same symmetry as the student, so its outputs need no inverse symmetry. It may
have any architecture and encoder. Its outputs replace targets of a :class:`engine.train.batches.TrainingBatch`: the
policy; the value and its weight; score and ownership, if it has both heads, and their weight. The opponent's reply,
and targets for which the teacher lacks a head, are still those of the game.
"""

import numpy as np

from engine.features.encoder import ENCODERS
from engine.inference.server import InferenceServer
from engine.nets.network import Network, softmax
from engine.records.games import Games
from engine.train.batches import BatchBuilder

MAX_BATCH = 256


class Teacher:
    """A network whose outputs are training targets, evaluated by its own inference server."""

    def __init__(self, network: Network, threads: int = 0, at_once: int = 0):
        """Start the inference server.

        Args:
            threads: evaluator threads on the CPU; 0 = one a core.
            at_once: maximum number of positions in a call of :meth:`targets`, which the server evaluates as one batch.
        """
        self.spec = network.spec
        self.server = InferenceServer(network, threads=threads, max_batch=max(MAX_BATCH, at_once))
        self._builder = BatchBuilder(ENCODERS[self.spec.encoder])

    def close(self) -> None:
        """Stop the inference server."""
        self.server.close()

    def plays(self, size: int) -> bool:
        """Whether the teacher plays boards of this size."""
        return self.spec.plays(size)

    def targets(
        self, games: Games, rows: np.ndarray, plies: np.ndarray, rules: np.ndarray, symmetries: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Targets by the names of :class:`engine.train.batches.TrainingBatch`, from the network's outputs.

        Args:
            rows, plies, rules, symmetries: as for :meth:`engine.train.batches.BatchBuilder.encode`.
        Returns:
            the targets for which the network has heads, with their weights; in the policy only legal moves have
            probability.
        Raises:
            RuntimeError: the network failed.
        Threads: any.
        """
        size = int(games.size[rows[0]])
        legal = np.empty((len(rows), size * size + 1), bool)
        planes, globals_, _ = self._builder.encode(games, rows, plies, rules, symmetries, legal)
        output = self.server.ask(planes, globals_)
        known = np.ones(len(rows), np.float32)
        targets = {}
        if output.policy is not None:
            targets["policy"] = softmax(np.where(legal, output.policy, -np.inf)).astype(np.float32)
        if output.value is not None:
            targets |= {"value": output.value, "value_known": known}
        if output.score is not None and output.ownership is not None:
            targets |= {"score": output.score, "ownership": output.ownership, "score_ownership_weight": known}
        return targets
