"""Wide root noise: an analysis that looks at more of the root's moves than one that seeks the best.

People who analyse want to know of many moves what they are worth. At the root priors are smoothed, P ** (1 / (1 + 4 w))
with the noise w, and each time that a move is chosen half of the moves, drawn anew, gain |w times a normal number| of
value. What moves are worth is as ever; only which of them are visited changes.

Source: KataGo, ``wideRootNoise`` (``maybeApplyWideRootNoise``). Threads: the tree's lock is held.
"""

import math

import numpy as np

from engine.go.splitmix import mix
from engine.search.pools import META_IN_FLIGHT, META_ROOT_VISITS
from engine.system.jit import kernel

UNIT = 2.0**-53
"""What a number of 53 bits is divided by to lie between 0 and 1"""


@kernel
def smoothed(prior, wide_root_noise):
    """A prior of the root as selection sees it; they do not add up to 1."""
    return prior ** (1.0 / (1.0 + 4.0 * wide_root_noise))


@kernel
def bonus(tree, slot, wide_root_noise):
    """What the root's move in a slot gains in the choice of the next playout.

    The drawing is a function of the playouts begun and of the slot, so a search is repeated by its seed.
    """
    begun = tree.meta[META_ROOT_VISITS] + tree.meta[META_IN_FLIGHT]
    word = mix(np.uint64((begun << 12) + slot))
    if word & np.uint64(1):
        return 0.0
    other = mix(word)
    radius = math.sqrt(-2.0 * math.log(((word >> np.uint64(11)) + 1.0) * UNIT))
    return wide_root_noise * abs(radius * math.cos(2.0 * math.pi * (other >> np.uint64(11)) * UNIT))


@kernel
def widen(tree, first, count, wide_root_noise, scale, virtual_visits, scores):
    """Change the PUCT scores of the root's edges.

    Args:
        first, count: its edges.
        scale: :func:`engine.search.selection.exploration` of the root.
        virtual_visits: of a playout under way.
        scores: float64[count or more].
    """
    for slot in range(count):
        edge = first + slot
        visits = max(tree.N_v[edge], tree.N_r[edge]) + virtual_visits * tree.in_flight[edge]
        gain = smoothed(tree.P[edge], wide_root_noise) - tree.P[edge]
        scores[slot] += scale * gain / (1 + visits) + bonus(tree, slot, wide_root_noise)
