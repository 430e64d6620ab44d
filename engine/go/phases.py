"""Phases of a game, by the share of the board's points that moves have been played on."""

import numpy as np

PHASES = ("opening", "middle game", "endgame")
PHASE_KEYS = tuple(name.partition(" ")[0] for name in PHASES)
"""The phases in names of metrics, which have no spaces: opening, middle, endgame"""
PHASE_ENDS = (0.14, 0.40)
"""Number of moves at which each phase but the last ends, as a share of the board's points: 50 and 144 on 19x19, 11 and
32 on 9x9. Source: KaTrain's report"""


def phase_of(number: int | np.ndarray, size: int | np.ndarray) -> np.ndarray:
    """The phase of a game at moves with these numbers (from 1), indices into :data:`PHASES`: int64, as broadcast."""
    share = np.asarray(number) / np.square(size)
    return np.searchsorted(PHASE_ENDS, share, "left")
