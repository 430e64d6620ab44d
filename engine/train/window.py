"""Which rows of self-play a step sees: a window over the newest ones, which grows by a power law of all there are.

A batch is a pure function of (seed, step) and the rows of the window; so a run that knows which shards its window had
resumes with the same batches. Sources: Wu, "Accelerating Self-Play Learning in Go", 2019 (arXiv 1902.10565), appendix
C; KataGo's ``python/shuffle.py``.
"""

import numpy as np

from engine.features.encoder import Encoder
from engine.records.search_rows import SearchRows
from engine.train.batches import BatchBuilder, TrainingBatch


def window_rows(rows: int, scale: int, exponent: float, slope: float) -> int:
    """Rows of the window when there are ``rows`` in all: all up to a scale, then a power law.

    Args:
        scale: c; rows up to which all are in the window.
        exponent: alpha, of the power law.
        slope: beta: how many of each new row the window grows by at the scale.
    Source: c * (1 + beta * ((N / c) ** alpha - 1) / alpha), Wu 2019, appendix C.
    """
    if rows <= scale:
        return rows
    return min(rows, round(scale * (1.0 + slope * ((rows / scale) ** exponent - 1.0) / exponent)))


def newest(counts: list[int], wanted: int) -> int:
    """How many of the newest shards hold a number of rows; all where they are too few.

    Args:
        counts: rows of each shard, oldest first.
    """
    total = 0
    for k, count in enumerate(reversed(counts)):
        if total >= wanted:
            return k
        total += count
    return len(counts)


class WindowBatches:
    """Batches of the rows of one window, each row as often as its weight says, under a random symmetry."""

    def __init__(self, encoder: Encoder, rows: SearchRows, batch: int, seed: int) -> None:
        """Take the rows.

        Raises:
            ValueError: no row has any weight.
        """
        self._builder, self._rows, self._batch, self._seed = BatchBuilder(encoder), rows, batch, seed
        self._mass = np.cumsum(rows.weight, dtype=np.float64)
        if not len(self._mass) or self._mass[-1] <= 0.0:
            raise ValueError("no rows to learn from")

    def batch_at(self, step: int) -> TrainingBatch:
        """The batch of one step. Threads: any."""
        rng = np.random.default_rng([self._seed, step])
        drawn = np.searchsorted(self._mass, rng.random(self._batch) * self._mass[-1], "right")
        which = np.minimum(drawn, len(self._mass) - 1)
        symmetries = rng.integers(0, 8, self._batch)
        return self._builder.from_search_rows(self._rows, which, symmetries)
