"""Choosing the move to play from what a search has found."""

import numpy as np

from engine.search.report import Report


def choose(report: Report, temperature: float = 0.0, rng: np.random.Generator | None = None) -> int:
    """The point to play.

    Args:
        temperature: 0 plays the most visited move (ties: the better value, then the larger prior); above, a move is
            drawn with probability proportional to visits ** (1 / temperature), or to priors before any visit.
        rng: needed for a temperature above 0.
    Raises:
        ValueError: the report holds no move.
    """
    if not report.moves:
        raise ValueError("no move to choose from")
    if temperature <= 0.0 or rng is None:
        return report.moves[0].point
    weights = np.array([move.visits for move in report.moves], np.float64)
    if not weights.any():
        weights = np.array([move.prior for move in report.moves], np.float64)
    # Relative to the largest, so that small temperatures do not overflow.
    weights = (weights / weights.max()) ** (1.0 / temperature)
    return report.moves[int(rng.choice(len(weights), p=weights / weights.sum()))].point
