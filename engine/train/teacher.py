"""Labels for positions of real games from a stronger network, in the course of training.

The teacher sees each position under the same symmetry as the pupil, so its outputs need no symmetry undone. Any network
serves, with any encoder. It replaces, as far as it has the heads, the targets of a
:class:`engine.train.batches.TrainingBatch`: the policy; the value and its weight; score and ownership, if it has both,
and their weight. What it has no head for, and the opponent's reply, keeps the game's own target.
"""

import numpy as np

from engine.features.encoder import ENCODERS
from engine.inference.server import InferenceServer
from engine.nets.network import Network, softmax
from engine.records.games import Games
from engine.train.batches import TARGETS, BatchBuilder

MAX_BATCH = 256
REPLACED = frozenset({"policy", "value", "value_weight", "score", "ownership", "score_ownership_weight"})
"""Targets that a teacher with all heads gives: those that the game's own course would contradict beside its value"""
KEPT = frozenset({"reply"})
"""Those of the game's own course that contradict nothing"""


class Teacher:
    """A network whose outputs are targets, through an inference server of its own."""

    def __init__(self, network: Network, threads: int = 0, at_once: int = 0):
        """Start the server.

        Args:
            threads: evaluator threads on the CPU; 0 = one a core.
            at_once: positions that are asked for together and should be one batch, where these are more than usual.
        """
        unsaid = (REPLACED | KEPT) ^ TARGETS
        assert not unsaid, f"no word on what a teacher does about {', '.join(sorted(unsaid))}"
        self.spec = network.spec
        self.server = InferenceServer(network, threads=threads, max_batch=max(MAX_BATCH, at_once))
        self._builder = BatchBuilder(ENCODERS[self.spec.encoder])

    def close(self) -> None:
        """Stop the server."""
        self.server.close()

    def plays(self, size: int) -> bool:
        """Whether the teacher knows boards of this size."""
        return self.spec.plays(size)

    def targets(
        self, games: Games, rows: np.ndarray, plies: np.ndarray, rules: np.ndarray, symmetries: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Targets by the names of :class:`engine.train.batches.TrainingBatch`, from the network's outputs.

        Args:
            rows, plies, rules, symmetries: as for :meth:`engine.train.batches.BatchBuilder.encode`.
        Returns:
            fields as far as the network has the heads; the policy holds probabilities of the legal moves.
        Raises:
            RuntimeError: the network failed.
        Threads: any number at once.
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
            targets |= {"value": output.value, "value_weight": known}
        if output.score is not None and output.ownership is not None:
            targets |= {"score": output.score, "ownership": output.ownership, "score_ownership_weight": known}
        return targets
