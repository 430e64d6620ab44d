"""Selection: down the tree by PUCT and virtual loss, a batch of leaves at a time. Threads: the tree's lock is held.

Virtual loss is never written into an edge's sums: ``in_flight`` counts the playouts under way through it, and
selection reads each as ``virtual_visits`` visits of a value ``virtual_loss`` below the edge's mean. Removing it is
therefore exact, and sums do not depend on the order of threads. With no loss, playouts under way count as visits alone
("watch the unobserved", Liu et al., 2020): they spread over the tree, and values stay as they are.

What selection must know of a node as a whole, its visits and its mean value, stands in the edge that leads to it, so
a step down reads the edges of one node once and nothing else.

Wide root noise, for analyses that look at more of the root's moves than a search for the best: the root's priors are
smoothed, P ** (1 / (1 + 4 w)) with the noise w, and each time that a move is selected half of the moves, drawn anew,
gain abs(w times a normal number) of value. Values stay as they are; only the distribution of visits changes. Source:
KataGo, ``wideRootNoise`` (``maybeApplyWideRootNoise``).
"""

import math
from typing import NamedTuple

import numpy as np

from engine.go.random import mix
from engine.search.leaves import KNOWN, MAX_DEPTH, NEW, ROLLED
from engine.search.priors import index_of_best, is_move, prior_of_best
from engine.search.tree import (
    AWAITED,
    EXPANDED,
    META_FULL,
    META_IN_FLIGHT,
    META_ROOT,
    META_ROOT_VISITS,
    NONE,
    PENDING,
    PROVISIONAL,
    TERMINAL,
    UNEXPANDED,
    add_edge,
    edge_visits,
    new_node,
)
from engine.search.values import edge_mean, root_lead, root_value
from engine.system.jit import inlined_kernel, kernel

C_PUCT_BASE = 500.0
"""Visits from which on c_puct grows noticeably, where it grows"""


class Tuning(NamedTuple):
    """The numbers of :class:`engine.config.SearchOptions` that the kernels read."""

    c_puct: float
    c_puct_growth: float
    fpu_reduction: float
    score_weight: float
    rollout_weight: float
    virtual_visits: int
    virtual_loss: float
    expand_after: int
    """rollouts through a leaf before it is expanded"""
    is_plain: bool
    """values are the network's alone: no rollouts, no part of the score"""
    value_weight: float = 0.0
    """how much less moves count that look worse (:mod:`engine.search.values`)"""
    wide_root_noise: float = 0.0
    """how far the search spreads over the root's moves (:mod:`engine.search.selection`)"""


class NodeStats(NamedTuple):
    """What selection knows of a node from the edge that leads to it; numbers are for the node's side to move."""

    mean: float
    """its mean value"""
    visits: int
    """visits below it, virtual ones counted"""
    lead: float
    """the root's mean lead in points: where the score's part of a value is 0"""
    points: float
    """the lead beyond that which counts half of ``score_weight``"""


@kernel
def _lead_utility(points, tuning, scale):
    """What a lead in points beyond the root's adds to a value: nearly linear at first, at most ``score_weight``."""
    return tuning.score_weight * points / (abs(points) + scale)


@inlined_kernel
def edge_worth(tree, edge, visits, stats, tuning):
    """Q of an edge with some completed visits, the score's part included.

    Args:
        stats: :class:`NodeStats` of the node that the edge leaves.
    """
    value = edge_mean(tree, edge, tuning.rollout_weight)
    if tuning.score_weight > 0.0:
        value += _lead_utility(tree.W_lead[edge] / visits - stats.lead, tuning, stats.points)
    return value


@kernel
def root_stats(tree, tuning, moves):
    """:class:`NodeStats` of the root.

    Args:
        moves: N*N + 1; leads count by the board's width.
    """
    mean = root_value(tree, tuning)
    lead = root_lead(tree) if tuning.score_weight > 0.0 else 0.0
    visits = tree.meta[META_ROOT_VISITS] - 1 + tuning.virtual_visits * tree.meta[META_IN_FLIGHT]
    return NodeStats(mean, visits, lead, math.sqrt(moves))


@kernel
def exploration(tuning, stats):
    """c_puct * sqrt(N) of a node, where c_puct may grow with N (AlphaZero, Methods, and KataGo's form of it)."""
    c_puct = tuning.c_puct
    if tuning.c_puct_growth > 0.0:
        c_puct += tuning.c_puct_growth * math.log(1.0 + stats.visits / C_PUCT_BASE)
    return c_puct * math.sqrt(max(stats.visits, 1))


@inlined_kernel
def puct(value, prior, visits, virtual_visits, tuning, scale):
    """The PUCT score of a move: Q + c_puct * P * sqrt(N) / (1 + n), less the virtual loss of what is under way.

    (AlphaGo, Methods, "Searching with policy and value networks"; virtual loss as in the module's text.)

    Args:
        value: Q of the move's completed visits, or what an unvisited move counts as.
        visits, virtual_visits: completed ones, and those that stand for playouts under way.
        scale: :func:`exploration` of the node.
    """
    n = visits + virtual_visits
    return value - tuning.virtual_loss * virtual_visits / max(n, 1) + scale * prior / (1 + n)


@kernel
def _puct_scores_of_network(n_v, w_v, in_flight, prior, tuning, unvisited, scale, scores):
    """:func:`_puct_scores` where values are the network's alone: one loop that compilers turn into vector code."""
    for slot in range(len(prior)):
        value = w_v[slot] / max(n_v[slot], 1) if n_v[slot] > 0 else unvisited
        virtual_visits = tuning.virtual_visits * in_flight[slot]
        scores[slot] = puct(value, prior[slot], n_v[slot], virtual_visits, tuning, scale)


@kernel
def _puct_scores(tree, first, count, stats, tuning, unvisited, scale, scores):
    """Write the PUCT scores of a node's edges, whatever their values are made of."""
    for slot in range(count):
        edge = first + slot
        done = edge_visits(tree, edge)
        value = edge_worth(tree, edge, done, stats, tuning) if done > 0 else unvisited
        virtual_visits = tuning.virtual_visits * tree.in_flight[edge]
        scores[slot] = puct(value, tree.P[edge], done, virtual_visits, tuning, scale)


@inlined_kernel
def choose_edge(tree, node, stats, tuning, move_filter, is_filtered):
    """The edge of an expanded node that PUCT prefers, made if it is the first choice of its move.

    An unvisited move takes as Q the node's mean value, below the root lessened by ``fpu_reduction * sqrt(prior mass of
    the edges)``. With a ``score_weight``, leads in points add to all values.

    Args:
        stats: :class:`NodeStats` of the node.
        move_filter: uint8[L] by point, 1 = may be chosen; read only where ``is_filtered``.
    Returns:
        int: NONE if the filter leaves no move, or the pool of edges is full.
    """
    unvisited = stats.mean
    if node != tree.meta[META_ROOT]:
        unvisited -= tuning.fpu_reduction * math.sqrt(tree.expanded_prior_mass[node])
    scale = exploration(tuning, stats)
    first, count, scores = np.int64(tree.first_edge[node]), np.int64(tree.n_edges[node]), tree.puct_scores
    if tuning.is_plain:
        _puct_scores_of_network(
            tree.N_v[first : first + count], tree.W_v[first : first + count], tree.in_flight[first : first + count],
            tree.P[first : first + count], tuning, unvisited, scale, scores,
        )  # fmt: skip
    else:
        _puct_scores(tree, first, count, stats, tuning, unvisited, scale, scores)
    is_wide = tuning.wide_root_noise > 0.0 and node == tree.meta[META_ROOT]
    if is_wide:
        widen(tree, first, count, tuning.wide_root_noise, scale, tuning.virtual_visits, scores)
    best: int | np.int64 = NONE
    best_score = -math.inf
    for slot in range(count):
        if scores[slot] > best_score and not (is_filtered and move_filter[tree.move[first + slot]] == 0):
            best, best_score = first + slot, scores[slot]
    # Moves without an edge all have the same Q, and none a larger prior than the likeliest of them.
    while is_move(tree.best_unexpanded[node]):
        top = tree.best_unexpanded[node]
        is_excluded = is_filtered and move_filter[tree.point[index_of_best(top)]] == 0
        prior, gain = np.float64(prior_of_best(top)), 0.0
        if is_wide:
            prior = smoothed(prior, tuning.wide_root_noise)
            gain = bonus(tree, tree.n_edges[node], tuning.wide_root_noise)
        if not is_excluded and unvisited + scale * prior + gain <= best_score:
            break
        edge = add_edge(tree, node)
        if edge == NONE:
            tree.meta[META_FULL] = 1
            break
        if not is_excluded:
            return edge
        # The run of edges may have moved.
        best = NONE if best == NONE else best - first + tree.first_edge[node]
        first = np.int64(tree.first_edge[node])
    return best


@kernel
def _least_visited(tree, move_filter):
    """The root's edge with the fewest visits of those the filter leaves, in flight ones counted; NONE without any."""
    root = tree.meta[META_ROOT]
    best, fewest = NONE, 0
    first = np.int64(tree.first_edge[root])
    for edge in range(first, first + tree.n_edges[root]):
        visits = edge_visits(tree, edge) + tree.in_flight[edge]
        if move_filter[tree.move[edge]] and (best == NONE or visits < fewest):
            best, fewest = edge, visits
    return best


@inlined_kernel
def _stats_below(tree, edge, stats, tuning):
    """The stats of the node behind an edge, from that of the node before it."""
    node, visits = tree.child[edge], np.int64(edge_visits(tree, edge))
    mean = -edge_worth(tree, edge, visits, stats, tuning) if visits > 0 else float(tree.value[node])
    visits += tuning.virtual_visits * tree.in_flight[edge] - 1
    return NodeStats(mean, visits, -stats.lead, stats.points)


@kernel
def select(tree, batch, wanted, tuning, move_filter, evenly):
    """Walk down from the root to up to ``wanted`` leaves and put each in flight.

    A batch ends early at the first collision: a leaf that is being evaluated already, in this batch or another. That
    path is taken back.

    Args:
        batch: rows 0 to wanted - 1 are overwritten.
        move_filter: uint8[D, L] by depth and point, 1 = may be chosen; deeper than D every move may.
        evenly: the root visits the moves of its filter, which all have edges, in turn instead of by PUCT.
    Returns:
        int: leaves selected; 0 at an immediate collision, at the memory limit, or when the root has no move to choose.
    """
    stats = root_stats(tree, tuning, batch.logits.shape[1])
    for i in range(wanted):
        if not _select_one(tree, batch, i, stats, tuning, move_filter, evenly):
            return i
        tree.meta[META_IN_FLIGHT] += 1
        visits = stats.visits + tuning.virtual_visits
        stats = NodeStats(stats.mean, visits, stats.lead, stats.points)
    return wanted


@inlined_kernel
def _select_one(tree, batch, i, stats, tuning, move_filter, evenly):
    """Select one leaf into row i; False, with its path taken back, when there is none to be had."""
    node, depth, edge = tree.meta[META_ROOT], 0, NONE
    while tree.state[node] in (EXPANDED, AWAITED) and depth < MAX_DEPTH:
        if evenly and depth == 0:
            edge = _least_visited(tree, move_filter[0])
        else:
            is_filtered = depth < len(move_filter)
            edge = choose_edge(tree, node, stats, tuning, move_filter[depth if is_filtered else 0], is_filtered)
        if edge == NONE:
            break
        if tree.child[edge] == NONE:
            child = new_node(tree, UNEXPANDED)
            if child == NONE:
                tree.meta[META_FULL] = 1
                break
            tree.child[edge] = child
        batch.node[i, depth] = node
        batch.edge_index[i, depth] = edge - tree.first_edge[node]
        batch.move[i, depth] = tree.move[edge]
        depth += 1
        node = np.int64(tree.child[edge])
        stats = _stats_below(tree, edge, stats, tuning)
        tree.in_flight[edge] += 1
    batch.depth[i] = depth
    batch.leaf[i] = node
    state = tree.state[node]
    if state == UNEXPANDED and depth > 0 and tree.N_r[edge] + tree.in_flight[edge] <= tuning.expand_after:
        batch.kind[i] = ROLLED
        return True
    if state in (UNEXPANDED, PROVISIONAL):
        tree.state[node] = PENDING if state == UNEXPANDED else AWAITED
        batch.kind[i] = NEW
        return True
    if state == TERMINAL or (state == EXPANDED and depth == MAX_DEPTH):
        batch.kind[i] = KNOWN
        batch.value[i] = tree.value[node]
        batch.rollout[i] = tree.value[node]
        batch.lead[i] = tree.lead[node]
        return True
    unmark_path(tree, batch, i)
    return False


@kernel
def unmark_path(tree, batch, i):
    """Take the marks "in flight" off the path of row i."""
    for d in range(batch.depth[i]):
        tree.in_flight[tree.first_edge[batch.node[i, d]] + batch.edge_index[i, d]] -= 1


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
