"""A node's moves before they are chosen: four bytes each, in a heap with the likeliest on top.

Nearly all nodes stay leaves, and of the others only a few moves are ever looked at. So the moves of a new node are not
sorted: a heap is built in linear time, and the next best move is taken off its top when selection asks for it.
"""

import math

import numpy as np

from engine.jit import kernel

PRIOR_STEPS = 2048.0
"""Priors are kept as -ln(prior) in steps of 1/2048: 0.02% precise, down to e^-32."""
MOST_STEPS = 65535.0
JITTER = 16
"""Equal priors are told apart by up to so many steps, less than 1%, where no move is to come first by its place."""


@kernel
def pack_candidate(surprise, point):
    """A candidate from -ln(prior) and its point: steps in the upper 16 bits, so that likelier moves are smaller."""
    steps = min(surprise * PRIOR_STEPS + 0.5, MOST_STEPS)
    return (np.uint32(steps) << np.uint32(16)) | np.uint32(point)


@kernel
def candidate_prior(candidate):
    """The prior of a candidate."""
    return math.exp(-np.float64(candidate >> np.uint32(16)) / PRIOR_STEPS)


@kernel
def candidate_point(candidate):
    """The point of a candidate."""
    return np.int64(candidate & np.uint32(0xFFFF))


@kernel
def _sift_down(values, start, hole, n, value):
    """Put a value where the hole is, or further down, smaller ones moving up."""
    child = 2 * hole + 1
    while child < n:
        if child + 1 < n and values[start + child + 1] < values[start + child]:
            child += 1
        if values[start + child] >= value:
            break
        values[start + hole] = values[start + child]
        hole = child
        child = 2 * hole + 1
    values[start + hole] = value


@kernel
def make_heap(values, start, n):
    """Turn ``n`` values (uint32) into a heap, the smallest first (Floyd, "Treesort 3", 1964)."""
    for i in range(n // 2 - 1, -1, -1):
        _sift_down(values, start, i, n, values[start + i])


@kernel
def take_top(values, start, n):
    """Take the smallest value off a heap of ``n`` and leave one of ``n - 1``."""
    top = values[start]
    _sift_down(values, start, 0, n - 1, values[start + n - 1])
    return top
