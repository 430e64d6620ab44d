"""A node's moves before they are chosen: one prior for each policy index, two bytes each, and the likeliest of them.

Nearly all nodes stay leaves, and of the others only a few moves are ever looked at. So moves are neither sorted nor
even listed: a node knows its likeliest move, and when that is chosen the next one is found by a pass over the row,
which compilers turn into vector code.
"""

import math

import numpy as np

from engine.jit import kernel

PRIOR_STEPS = 2048.0
"""Priors are kept as -ln(prior) in steps of 1/2048: 0.02% precise, down to e^-32."""
GONE = 65535
"""In place of the steps: not a move here, or one that has been chosen"""
MOST_STEPS = 65534.0
JITTER = 16
"""Equal priors are told apart by up to so many steps, less than 1%, where no move is to come first by its place."""
NO_MOVE = np.uint32(0xFFFFFFFF)
"""What is the likeliest before there are moves"""
INDEX_MASK = np.uint32(0xFFFF)
HALF_WORD = np.uint32(16)


@kernel
def to_steps(surprise):
    """Steps of -ln(prior), uint16."""
    return np.uint16(min(surprise * PRIOR_STEPS + 0.5, MOST_STEPS))


@kernel
def prior_of(steps):
    """The prior that so many steps stand for."""
    return math.exp(-np.float64(steps) / PRIOR_STEPS)


@kernel
def likeliest(steps):
    """The move with the fewest steps, of several the first: its steps in the upper 16 bits, its index in the lower.

    Args:
        steps: uint16[A]. If all are GONE, so is the answer (:func:`is_move`).
    """
    best = NO_MOVE
    for index in range(len(steps)):
        best = min(best, (np.uint32(steps[index]) << HALF_WORD) | np.uint32(index))
    return best


@kernel
def is_move(top):
    """Whether what :func:`likeliest` found is a move."""
    return (top >> HALF_WORD) != GONE


@kernel
def index_in(top):
    """Policy index of what :func:`likeliest` found."""
    return np.int64(top & INDEX_MASK)


@kernel
def prior_in(top):
    """Prior of what :func:`likeliest` found."""
    return prior_of(top >> HALF_WORD)
