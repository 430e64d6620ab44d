"""Inputs of a few positions, to hold one way of evaluating a network against another."""

import numpy as np

from engine.features.encoder import ENCODERS, encode
from engine.go.geometry import on_board_points
from engine.go.position import META_TO_MOVE, legal_moves, new_position, play_move

STONES = (0.0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Moves played, as shares of the board's points"""
SEED = 1


def sample_inputs(encoder: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Planes and globals of positions from one game of random legal moves, always the same.

    Args:
        encoder: a name in ``ENCODERS``.
    Returns:
        float32[8, C, N, N] and float32[8, G].
    Raises:
        ValueError: no such encoder.
    """
    if encoder not in ENCODERS:
        raise ValueError(f"unknown encoder {encoder!r}, known are {', '.join(ENCODERS)}")
    chosen, rng = ENCODERS[encoder], np.random.default_rng(SEED)
    planes = np.zeros((len(STONES), chosen.planes, size, size), np.float32)
    globals_ = np.zeros((len(STONES), chosen.globals), np.float32)
    position, scratch = new_position(size), chosen.new_scratch(size)
    points, legal = on_board_points(size), np.zeros(size * size + 1, np.uint8)
    played = 0
    for row, share in enumerate(STONES):
        while played < round(share * size * size):
            legal_moves(position, position.meta[META_TO_MOVE], legal)
            here = np.flatnonzero(legal[:-1])
            play_move(position, int(points[rng.choice(here)]) if len(here) else 0, position.meta[META_TO_MOVE])
            played += 1
        encode(position, 0, scratch, planes[row], globals_[row])
    return planes, globals_
