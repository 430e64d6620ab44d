"""Online distillation: a teacher network labels positions of recorded games during training.

The teacher sees each position under the same symmetry as the student, or its outputs are averaged over several
symmetries; it may have any architecture and encoder. Its outputs replace targets of a
:class:`engine.train.batches.TrainingBatch`: the policy; the value and its weight; score and ownership, if it has both
heads, and their weight. The opponent's reply, and targets for which the teacher lacks a head, are still those of the
game.
"""

import numpy as np

from engine.config import TrainOptions
from engine.config.declaration import no_branch
from engine.features.encoder import ENCODERS
from engine.features.symmetry import SYMMETRIES
from engine.inference.server import InferenceServer
from engine.nets.network import Network, softmax
from engine.records.games import Games
from engine.train.batches import BatchBuilder, moves_under_symmetries

MAX_BATCH = 256


def symmetries_of(options: TrainOptions) -> int:
    """The number of symmetries over which a teacher's outputs are averaged, 1 or 8."""
    numbers = {"1": 1, "8": SYMMETRIES}
    if options.teacher_symmetries not in numbers:
        raise no_branch("teacher_symmetries", options.teacher_symmetries)
    return numbers[options.teacher_symmetries]


class Teacher:
    """A network whose outputs are training targets, evaluated by its own inference server."""

    def __init__(self, network: Network, threads: int = 0, at_once: int = 0, symmetries: int = 1):
        """Start the inference server.

        Args:
            threads: evaluator threads on the CPU; 0 = one a core.
            at_once: maximum number of positions in a call of :meth:`targets`, which the server evaluates as one batch.
            symmetries: number of symmetries over which outputs are averaged, 8, or 1 = the student's symmetry alone.
        """
        self._symmetries = symmetries
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
        size, count = int(games.size[rows[0]]), len(rows)
        table, found = moves_under_symmetries(size), dict[str, np.ndarray]()
        views = [symmetries] if self._symmetries == 1 else [np.full(count, view) for view in range(SYMMETRIES)]
        for view in views:
            for name, values in self._outputs(games, rows, plies, rules, view, size).items():
                # From the view's orientation to the student's, by way of symmetry 0.
                if values.ndim > 1:
                    moves = slice(None, values.shape[1])
                    straight = np.take_along_axis(values, table[view, moves], axis=1)
                    values = np.empty_like(straight)
                    np.put_along_axis(values, table[symmetries, moves], straight, axis=1)
                found[name] = found.get(name, 0.0) + values / len(views)
        targets, known = {name: values.astype(np.float32) for name, values in found.items()}, np.ones(count, np.float32)
        if "value" in targets:
            targets["value_known"] = known
        if "ownership" in targets:
            targets["ownership"] = targets["ownership"].reshape(count, size, size)
            targets["score_ownership_weight"] = known
        return targets

    def _outputs(
        self, games: Games, rows: np.ndarray, plies: np.ndarray, rules: np.ndarray, view: np.ndarray, size: int
    ) -> dict[str, np.ndarray]:
        """The network's outputs under the symmetries ``view`` (int64[B]), for the heads that give targets.

        Returns:
            ``policy`` [B, N*N+1], probabilities of legal moves; ``value`` and ``score`` [B]; ``ownership`` [B, N*N].
        """
        legal = np.empty((len(rows), size * size + 1), bool)
        planes, globals_, _ = self._builder.encode(games, rows, plies, rules, view, legal)
        output, found = self.server.ask(planes, globals_), {}
        if output.policy is not None:
            found["policy"] = softmax(np.where(legal, output.policy, -np.inf))
        if output.value is not None:
            found["value"] = output.value
        if output.score is not None and output.ownership is not None:
            found |= {"score": output.score, "ownership": output.ownership.reshape(len(rows), -1)}
        return found
