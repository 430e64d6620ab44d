"""A node's moves before they are chosen: one prior for each policy index, two bytes each, and the likeliest of them.

Nearly all nodes stay leaves, and of the others only a few moves are ever looked at. So moves are neither sorted nor
even listed: a node knows its likeliest move, and when that is chosen the next one is found by a pass over the row,
which compilers turn into vector code.
"""

import math

import numpy as np

from engine.system.jit import kernel

CODES_PER_NAT = 2048.0
"""A prior's code is -ln(prior) in steps of 1/2048: 0.02% precise, down to e^-32."""
GONE = 65535
"""In place of a code: not a move here, or one that has been chosen"""
LAST_CODE = 65534.0
JITTER = 16
"""Equal priors are told apart by up to this many steps, less than 1%, where no move is to come first by its place."""
NO_MOVE = np.uint32(0xFFFFFFFF)
"""What is the likeliest before there are moves"""
INDEX_MASK = np.uint32(0xFFFF)
HALF_WORD = np.uint32(16)


@kernel
def to_prior_code(surprise):
    """The code of -ln(prior), uint16."""
    return np.uint16(min(surprise * CODES_PER_NAT + 0.5, LAST_CODE))


@kernel
def prior_of(code):
    """The prior that a code stands for."""
    return math.exp(-np.float64(code) / CODES_PER_NAT)


@kernel
def likeliest(codes):
    """The move with the smallest code, of several the first: its code in the upper 16 bits, its index in the lower.

    Args:
        codes: uint16[A]. If all are GONE, so is the answer (:func:`is_move`).
    """
    best = NO_MOVE
    for index in range(len(codes)):
        best = min(best, (np.uint32(codes[index]) << HALF_WORD) | np.uint32(index))
    return best


@kernel
def is_move(top):
    """Whether what :func:`likeliest` found is a move."""
    return (top >> HALF_WORD) != GONE


@kernel
def index_of_best(top):
    """Policy index of what :func:`likeliest` found."""
    return np.int64(top & INDEX_MASK)


@kernel
def prior_of_best(top):
    """Prior of what :func:`likeliest` found."""
    return prior_of(top >> HALF_WORD)
