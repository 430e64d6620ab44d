"""What self-play does to a root and learns from it: exploration that is forced, and policy targets without it.

Sources: AlphaGo Zero (Methods, "Self-play": noise at the root, moves by visit counts); Wu, "Accelerating Self-Play
Learning in Go", 2019 (arXiv 1902.10565), section 3.2: forced playouts and policy target pruning; appendix D: the root's
policy temperature. Threads: the tree is the caller's alone.
"""

import math

import numpy as np

from engine.go.geometry import index_of
from engine.go.random import next_unit
from engine.search.priors import GONE, prior_of, to_prior_code
from engine.search.selection import edge_worth, exploration, puct, root_stats
from engine.search.tree import META_ROOT, META_ROOT_VISITS, NONE, replace_priors
from engine.system.jit import kernel


@kernel
def read_priors(tree, size, priors):
    """The priors of the root, which must be expanded: float64[N*N + 1] in policy order, overwritten; 0 = no move."""
    root = tree.meta[META_ROOT]
    for index in range(len(priors)):
        code = tree.prior_codes[root, index]
        priors[index] = 0.0 if code == GONE else prior_of(code)
    first = np.int64(tree.first_edge[root])
    for edge in range(first, first + tree.n_edges[root]):
        priors[index_of(np.int64(tree.move[edge]), size)] = tree.P[edge]


@kernel
def write_priors(tree, priors, codes):
    """Give the root's moves their priors anew; uint16[N*N + 1] is overwritten. See :func:`read_priors`."""
    for index in range(len(priors)):
        codes[index] = GONE if priors[index] <= 0.0 else to_prior_code(-math.log(priors[index]))
    replace_priors(tree, tree.meta[META_ROOT], codes)


@kernel
def temper(priors, temperature):
    """P ** (1 / temperature), normalised, in place: float64[A]."""
    total = 0.0
    for index in range(len(priors)):
        if priors[index] > 0.0:
            priors[index] = priors[index] ** (1.0 / temperature)
            total += priors[index]
    for index in range(len(priors)):
        priors[index] /= total


@kernel
def _normal(state):
    """A standard normal variable, by Box and Muller."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next_unit(state)))
    return radius * math.cos(2.0 * math.pi * next_unit(state))


@kernel
def draw_gamma(state, shape):
    """A gamma variable of scale 1. Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.

    Args:
        state: uint64[4], random state.
        shape: above 0; below 1 by their remark on such shapes.
    """
    factor = 1.0
    if shape < 1.0:
        factor = (1.0 - next_unit(state)) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(state)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(1.0 - next_unit(state)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return factor * d * v


@kernel
def mix_dirichlet(priors, share, concentration, state, noise):
    """P = (1 - share) * P + share * noise, in place, over the moves that have a prior.

    Args:
        priors: float64[A].
        concentration: sum of the noise's parameters, which are the same for every move.
        state: uint64[4], random state.
        noise: float64[A], overwritten.
    """
    count = 0
    for index in range(len(priors)):
        count += priors[index] > 0.0
    total = 0.0
    for index in range(len(priors)):
        noise[index] = draw_gamma(state, concentration / count) if priors[index] > 0.0 else 0.0
        total += noise[index]
    if total <= 0.0:
        return
    for index in range(len(priors)):
        priors[index] = (1.0 - share) * priors[index] + share * noise[index] / total


@kernel
def _forced_visits(tree, edge, factor):
    """sqrt(factor * P * N): visits that an edge of the root is forced to have once it has one."""
    return math.sqrt(factor * tree.P[edge] * (tree.meta[META_ROOT_VISITS] - 1))


@kernel
def forced_edge(tree, factor):
    """The first edge of the root that has visits, but fewer than are forced; NONE if there is none."""
    root = tree.meta[META_ROOT]
    first = np.int64(tree.first_edge[root])
    for edge in range(first, first + tree.n_edges[root]):
        if 0 < tree.N_v[edge] < _forced_visits(tree, edge, factor):
            return edge
    return NONE


@kernel
def visit_target(tree, size, tuning, factor, visits):
    """Visits of the root's moves without those that only the forcing explains; returns the sum.

    From every move but the most visited one up to as many visits are taken as were forced, while its PUCT score stays
    below that of the most visited one; a move that is left with one has none.

    Args:
        factor: of the forced playouts; 0 = nothing is taken.
        visits: float64[N*N + 1] in policy order, overwritten.
    """
    root = tree.meta[META_ROOT]
    first, best = np.int64(tree.first_edge[root]), NONE
    end = first + tree.n_edges[root]
    for edge in range(first, end):
        if tree.N_v[edge] > 0 and (best == NONE or tree.N_v[edge] > tree.N_v[best]):
            best = edge
    visits[:] = 0.0
    if best == NONE:
        return 0.0
    stats = root_stats(tree, tuning, len(visits))
    scale = exploration(tuning, stats)
    bar = puct(edge_worth(tree, best, tree.N_v[best], stats, tuning), tree.P[best], tree.N_v[best], 0, tuning, scale)
    total = 0.0
    for edge in range(first, end):
        kept = np.int64(tree.N_v[edge])
        if kept > 0 and edge != best and factor > 0.0:
            worth = edge_worth(tree, edge, kept, stats, tuning)
            least = kept - np.int64(_forced_visits(tree, edge, factor))
            while kept > 0 and kept > least and puct(worth, tree.P[edge], kept - 1, 0, tuning, scale) < bar:
                kept -= 1
            if kept == 1:
                kept = np.int64(0)
        visits[index_of(np.int64(tree.move[edge]), size)] = kept
        total += kept
    return total
