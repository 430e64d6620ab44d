"""Selection: PUCT with virtual loss, a batch of leaves at a time. Threads: the tree's lock is held.

Virtual loss is never added to an edge's sums: ``in_flight`` counts the playouts in flight through the edge, and
selection reads each as ``virtual_visits`` visits with a value ``virtual_loss`` below the edge's mean. Removing the
virtual loss is therefore exact, and sums do not depend on the order of threads. With a loss of 0, playouts in flight
count as visits only ("watch the unobserved", Liu et al., 2020): playouts are distributed over the tree, and values do
not change.

A node's visits and mean value are read from the edge that leads to it, so a step down the tree reads the edges of one
node once.

Wide root noise makes analyses visit more of the root's moves. With the noise w, the root's priors are smoothed to
P ** (1 / (1 + 4 w)), and at each selection each move, with probability 1/2, has abs(w * a standard normal number) added
to its value. Stored values do not change, only the distribution of visits. Source: KataGo, ``wideRootNoise``
(``maybeApplyWideRootNoise``).
"""

import math
from typing import NamedTuple

import numpy as np

from engine.go.random import mix
from engine.search.leaves import IN_TREE, MAX_DEPTH, NEW, PRIORS, ROLLED, VALUED
from engine.search.priors import index_of_best, is_move, prior_of_best
from engine.search.tree import (
    AWAITED,
    EVALUATED,
    EXPANDED,
    IN_EVALUATION,
    META_FULL,
    META_IN_FLIGHT,
    META_ROOT,
    META_ROOT_VISITS,
    NONE,
    NOT_EVALUATED,
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


class Tuning(NamedTuple):
    """The values of :class:`engine.config.SearchOptions` that the kernels read."""

    c_puct: float
    fpu_reduction: float
    score_weight: float
    """maximum of the score utility, the term that leads add to values; above 0 only in self-play"""
    rollout_weight: float
    virtual_visits: int
    virtual_loss: float
    expand_after: int
    """number of rollouts through a leaf before it is expanded; its value is requested at the first"""
    is_plain: bool
    """values are the network's alone (no rollouts, no score utility), so that selection may take a faster loop"""
    value_weight: float = 0.0
    """exponent of the child weights (:mod:`engine.search.values`)"""
    wide_root_noise: float = 0.0
    """as KataGo's ``wideRootNoise`` (:mod:`engine.search.selection`)"""
    fpu_base: float = 1.0
    """factor of the parent's value in the first-play value: 1, or 0 for an even game"""
    root_c_puct: float = 0.0
    """exploration constant at the root; 0 = ``c_puct``"""
    root_c_permanent: float = 0.0
    """part of ``root_c_puct`` that grows with the square root of the root's visits (KataGo's
    ``humanSLCpuctPermanent``)"""


class NodeStats(NamedTuple):
    """What selection needs to know about a node; values are for the node's side to move."""

    mean: float
    """mean value of the node"""
    visits: int
    """visits of the node's edges together, including virtual visits"""
    lead: float
    """lead in points at which the score utility is 0: the root's mean lead, with the sign of the node's side to move"""
    half_points: float
    """number of points above ``lead`` at which the score utility is half of ``score_weight``"""


@kernel
def _lead_utility(points, tuning, half_points):
    """Score utility of a lead that is ``points`` above the root's: nearly linear near 0, less than ``score_weight``.

    Args:
        half_points: as in :class:`NodeStats`.
    """
    return tuning.score_weight * points / (abs(points) + half_points)


@inlined_kernel
def edge_worth(tree, edge, visits, stats, tuning):
    """Q of a visited edge for the player who chooses it, including the score utility.

    Args:
        visits: completed visits of the edge, at least 1.
        stats: :class:`NodeStats` of the edge's parent.
    """
    value = edge_mean(tree, edge, tuning.rollout_weight)
    if tuning.score_weight > 0.0:
        value += _lead_utility(tree.W_lead[edge] / visits - stats.lead, tuning, stats.half_points)
    return value


@kernel
def root_stats(tree, tuning, moves):
    """:class:`NodeStats` of the root.

    Args:
        moves: N*N + 1; ``half_points`` is its square root.
    """
    mean = root_value(tree, tuning)
    lead = root_lead(tree) if tuning.score_weight > 0.0 else 0.0
    visits = (
        tree.meta[META_ROOT_VISITS]
        - 1
        - tree.rolled[tree.meta[META_ROOT]]
        + tuning.virtual_visits * tree.meta[META_IN_FLIGHT]
    )
    return NodeStats(mean, visits, lead, math.sqrt(moves))


@kernel
def exploration(tuning, stats):
    """c_puct * sqrt(N), where N is the node's visits (at least 1): the factor of exploration for :func:`puct`."""
    return tuning.c_puct * math.sqrt(max(stats.visits, 1))


@kernel
def root_exploration(tuning, stats):
    """:func:`exploration` at the root, where the exploration constant may be another one and grow with the visits."""
    if tuning.root_c_puct == 0.0 and tuning.root_c_permanent == 0.0:
        return exploration(tuning, stats)
    root_of_visits = math.sqrt(max(stats.visits, 1))
    return (tuning.root_c_puct + tuning.root_c_permanent * root_of_visits) * root_of_visits


@inlined_kernel
def puct(value, prior, visits, virtual_visits, tuning, scale):
    """The PUCT score of a move: Q - virtual loss + c_puct * P * sqrt(N) / (1 + n).

    Args:
        value: Q of the move's completed visits, or the first-play value of an unvisited move.
        visits, virtual_visits: completed visits of the move, and virtual visits of its playouts in flight; n is their
            sum.
        scale: :func:`exploration` of the node.
    Source: AlphaGo, Methods, "Searching with policy and value networks".
    """
    n = visits + virtual_visits
    return value - tuning.virtual_loss * virtual_visits / max(n, 1) + scale * prior / (1 + n)


@kernel
def _puct_scores_of_network(n_v, w_v, in_flight, prior, tuning, unvisited, scale, scores):
    """:func:`_puct_scores` if ``tuning.is_plain``: one loop over arrays, which compilers vectorise."""
    for index in range(len(prior)):
        value = w_v[index] / max(n_v[index], 1) if n_v[index] > 0 else unvisited
        virtual_visits = tuning.virtual_visits * in_flight[index]
        scores[index] = puct(value, prior[index], n_v[index], virtual_visits, tuning, scale)


@kernel
def _puct_scores(tree, first, count, stats, tuning, unvisited, scale, scores):
    """Write the PUCT scores of a node's edges, rows first to first + count - 1.

    Args:
        unvisited: first-play value.
        scale: :func:`exploration` of the node.
        scores: float64[count or more], overwritten.
    """
    for index in range(count):
        edge = first + index
        done = edge_visits(tree, edge)
        value = edge_worth(tree, edge, done, stats, tuning) if done > 0 else unvisited
        virtual_visits = tuning.virtual_visits * tree.in_flight[edge]
        scores[index] = puct(value, tree.P[edge], done, virtual_visits, tuning, scale)


@inlined_kernel
def choose_edge(tree, node, stats, tuning, move_filter, is_filtered):
    """The edge of an expanded node with the largest PUCT score, added to the tree if the best move has no edge yet.

    The first-play value of an unvisited move is ``fpu_base`` times the node's mean value; at nodes other than the root,
    ``fpu_reduction * sqrt(sum of the priors of the node's edges)`` is subtracted. With a ``score_weight``, values
    include the score utility.

    Args:
        stats: :class:`NodeStats` of the node.
        move_filter: uint8[L] by point, 1 = allowed; read only if ``is_filtered``.
    Returns:
        int: NONE if the filter allows no move, or the pool of edges is full.
    """
    unvisited = tuning.fpu_base * stats.mean
    if node == tree.meta[META_ROOT]:
        scale = root_exploration(tuning, stats)
    else:
        unvisited -= tuning.fpu_reduction * math.sqrt(tree.edge_prior_mass[node])
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
        add_wide_noise(tree, first, count, tuning.wide_root_noise, scale, tuning.virtual_visits, scores)
    best: int | np.int64 = NONE
    best_score = -math.inf
    for index in range(count):
        if scores[index] > best_score and not (is_filtered and move_filter[tree.move[first + index]] == 0):
            best, best_score = first + index, scores[index]
    # Moves without an edge share one Q, so the likeliest of them has the largest score.
    while is_move(tree.best_without_edge[node]):
        top = tree.best_without_edge[node]
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
        # Adding an edge may have moved the node's block of edges.
        best = NONE if best == NONE else best - first + tree.first_edge[node]
        first = np.int64(tree.first_edge[node])
    return best


@kernel
def _least_visited(tree, move_filter):
    """The allowed root edge with the fewest visits, those in flight included; NONE if no move is allowed."""
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
    """:class:`NodeStats` of an edge's child, from ``stats`` of its parent."""
    node, visits = tree.child[edge], np.int64(edge_visits(tree, edge))
    mean = -edge_worth(tree, edge, visits, stats, tuning) if visits > 0 else float(tree.value[node])
    visits += tuning.virtual_visits * tree.in_flight[edge] - 1 - tree.rolled[node]
    return NodeStats(mean, visits, -stats.lead, stats.half_points)


@kernel
def select(tree, batch, wanted, tuning, move_filter, evenly):
    """Select up to ``wanted`` leaves from the root and mark their paths as in flight.

    The batch ends early at the first collision, that is at a leaf that is in flight already, in this batch or another.
    The colliding path is unmarked.

    Args:
        batch: rows 0 to wanted - 1 are overwritten.
        move_filter: uint8[D, L] by depth and point, 1 = allowed; from depth D on every move is allowed.
        evenly: at the root, take the allowed edge with the fewest visits instead of PUCT's; all allowed moves must have
            edges.
    Returns:
        int: number of leaves selected; 0 if the first path collides, a pool is full, or the root has no allowed move.
    """
    stats = root_stats(tree, tuning, batch.logits.shape[1])
    for i in range(wanted):
        if not _select_one(tree, batch, i, stats, tuning, move_filter, evenly):
            return i
        tree.meta[META_IN_FLIGHT] += 1
        visits = stats.visits + tuning.virtual_visits
        stats = NodeStats(stats.mean, visits, stats.lead, stats.half_points)
    return wanted


@inlined_kernel
def _select_one(tree, batch, i, stats, tuning, move_filter, evenly):
    """Select one leaf into row i of a batch.

    Returns:
        bool: False, with the path unmarked, if the leaf is in flight already, a pool is full or no move is allowed.
    """
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
    batch.is_backed_up[i] = 0
    state, evaluation = tree.state[node], tree.evaluation[node]
    if state == UNEXPANDED and depth > 0:
        # A leaf whose value is on its way waits for it: expanded now, it would be evaluated twice.
        has_few_rollouts = tree.N_r[edge] + tree.in_flight[edge] <= tuning.expand_after
        if has_few_rollouts or evaluation == IN_EVALUATION:
            batch.kind[i] = ROLLED
            if evaluation == NOT_EVALUATED and tuning.rollout_weight < 1.0:
                batch.kind[i] = VALUED
                tree.evaluation[node] = IN_EVALUATION
            return True
    if state in (UNEXPANDED, PROVISIONAL):
        tree.state[node] = PENDING if state == UNEXPANDED else AWAITED
        batch.kind[i] = PRIORS if evaluation == EVALUATED else NEW
        return True
    if state == TERMINAL or (state == EXPANDED and depth == MAX_DEPTH):
        batch.kind[i] = IN_TREE
        batch.value[i] = tree.value[node]
        batch.rollout[i] = tree.value[node]
        batch.lead[i] = tree.lead[node]
        return True
    unmark_path(tree, batch, i)
    return False


@kernel
def unmark_path(tree, batch, i):
    """Take row i's playout out of ``in_flight`` of its path's edges, which removes its virtual loss."""
    for d in range(batch.depth[i]):
        tree.in_flight[tree.first_edge[batch.node[i, d]] + batch.edge_index[i, d]] -= 1


UNIT = 2.0**-53
"""Factor that maps a 53-bit integer to a float from 0 to 1"""


@kernel
def smoothed(prior, wide_root_noise):
    """A root move's prior smoothed by wide root noise; the smoothed priors do not add up to 1."""
    return prior ** (1.0 / (1.0 + 4.0 * wide_root_noise))


@kernel
def bonus(tree, index, wide_root_noise):
    """Value bonus by wide root noise, at the next selection, for the move of the root's edge number ``index``.

    The bonus is a hash of the number of playouts started and of the index, so searches are reproducible.
    """
    begun = tree.meta[META_ROOT_VISITS] + tree.meta[META_IN_FLIGHT]
    word = mix(np.uint64((begun << 12) + index))
    if word & np.uint64(1):
        return 0.0
    other = mix(word)
    radius = math.sqrt(-2.0 * math.log(((word >> np.uint64(11)) + 1.0) * UNIT))
    return wide_root_noise * abs(radius * math.cos(2.0 * math.pi * (other >> np.uint64(11)) * UNIT))


@kernel
def add_wide_noise(tree, first, count, wide_root_noise, scale, virtual_visits, scores):
    """Add wide root noise to the PUCT scores of the root's edges.

    Args:
        first, count: first row and number of the root's edges.
        scale: :func:`exploration` of the root.
        virtual_visits: number of virtual visits of one playout in flight.
        scores: float64[count or more], added to.
    """
    for index in range(count):
        edge = first + index
        visits = edge_visits(tree, edge) + virtual_visits * tree.in_flight[edge]
        gain = smoothed(tree.P[edge], wide_root_noise) - tree.P[edge]
        scores[index] += scale * gain / (1 + visits) + bonus(tree, index, wide_root_noise)
