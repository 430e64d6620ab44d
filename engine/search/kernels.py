"""Selection, expansion and backup on the tree: the three kernels of Monte Carlo tree search.

Every function here expects the tree's lock to be held; each handles a whole batch of leaves, so the lock is short.

An edge's value mixes two averages, of network values and of rollout results (AlphaGo, Methods, "Searching with
policy and value networks")::

    Q = (1 - lambda) * W_v / N_v + lambda * W_r / N_r

A side without any result leaves the word to the other. A completed playout adds one to N_v, to N_r or to both, so
the visits of an edge are ``max(N_v, N_r)``. Virtual loss is never written into these sums: ``in_flight`` counts the
playouts under way through an edge, and selection reads each as ``virtual_loss`` lost visits on both sides. Taking
it back is therefore exact, and sums do not depend on the order of threads.
"""

import math
from typing import NamedTuple

from engine.jit import kernel
from engine.search.batch import FINISHED, KNOWN, MAX_DEPTH, NEW
from engine.search.tree import (
    AWAITED,
    EXPANDED,
    FULL,
    IN_FLIGHT,
    NONE,
    PENDING,
    PROVISIONAL,
    ROOT,
    ROOT_VISITS,
    TERMINAL,
    UNEXPANDED,
    add_edges,
    candidate_point,
    candidate_prior,
    edge_visits,
    new_node,
    replace_priors,
    store_candidates,
)


class Tuning(NamedTuple):
    """The numbers of :class:`engine.config.SearchOptions` that the kernels read."""

    c_puct: float
    fpu_reduction: float
    rollout_weight: float
    virtual_loss: int


@kernel
def edge_sum(tree, edge, weight):
    """Visits times Q of an edge, virtual loss left out; 0 for an unvisited one."""
    n_v, n_r = tree.N_v[edge], tree.N_r[edge]
    if n_r == 0:
        return tree.W_v[edge]
    if n_v == 0:
        return tree.W_r[edge]
    return max(n_v, n_r) * ((1.0 - weight) * tree.W_v[edge] / n_v + weight * tree.W_r[edge] / n_r)


@kernel
def _lossy_value(tree, edge, weight, loss):
    """Q of an edge when ``loss`` more visits are pretended lost on both sides; visits + loss > 0."""
    n_v, n_r = tree.N_v[edge], tree.N_r[edge]
    if n_v == 0 and n_r == 0:
        return -1.0
    q_v = (tree.W_v[edge] - loss) / (n_v + loss)
    q_r = (tree.W_r[edge] - loss) / (n_r + loss)
    if n_r == 0:
        return q_v
    if n_v == 0:
        return q_r
    return (1.0 - weight) * q_v + weight * q_r


@kernel
def node_value(tree, node, weight):
    """Mean value of a node for its side to move: its own evaluation and everything below it."""
    visits, total = 1, float(tree.value[node])
    for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
        visits += edge_visits(tree, edge)
        total += edge_sum(tree, edge, weight)
    return total / visits


@kernel
def choose_slot(tree, node, tuning, allowed):
    """The candidate of an expanded node that PUCT prefers.

    score = Q + c_puct * P * sqrt(sum of visits) / (1 + visits). An unvisited move takes as Q the node's mean value,
    below the root lessened by ``fpu_reduction * sqrt(prior mass visited)``.

    Args:
        allowed: uint8[L], by point: at the root, moves that may be chosen; nowhere else looked at.
    Returns:
        int: its index, possibly one without an edge yet; NONE if no candidate is allowed.
    """
    first, n_edges = tree.first_edge[node], tree.n_edges[node]
    loss = tuning.virtual_loss
    total, visits, value_sum, mass = 0, 1, float(tree.value[node]), 0.0
    for edge in range(first, first + n_edges):
        real = edge_visits(tree, edge)
        total += real + loss * tree.in_flight[edge]
        visits += real
        value_sum += edge_sum(tree, edge, tuning.rollout_weight)
        if real + tree.in_flight[edge] > 0:
            mass += tree.P[edge]
    unvisited = value_sum / visits
    if node != ROOT:
        unvisited -= tuning.fpu_reduction * math.sqrt(mass)
    scale = tuning.c_puct * math.sqrt(max(total, 1))
    best, best_score = NONE, -math.inf
    for slot in range(n_edges):
        edge = first + slot
        if node == ROOT and allowed[tree.move[edge]] == 0:
            continue
        pretended = loss * tree.in_flight[edge]
        weight = edge_visits(tree, edge) + pretended
        value = unvisited
        if weight > 0:
            value = _lossy_value(tree, edge, tuning.rollout_weight, pretended)
        score = value + scale * tree.P[edge] / (1 + weight)
        if score > best_score:
            best, best_score = slot, score
    # The candidates behind have the same Q and no larger prior than the next one.
    for slot in range(n_edges, tree.n_candidates[node]):
        candidate = tree.candidate[tree.first_candidate[node] + slot]
        if node != ROOT or allowed[candidate_point(candidate)] != 0:
            if unvisited + scale * candidate_prior(candidate) > best_score:
                best = slot
            break
    return best


@kernel
def select(tree, batch, wanted, tuning, allowed):
    """Walk down from the root to up to ``wanted`` leaves and put each in flight.

    A batch ends early at the first collision: a leaf that is being evaluated already, in this batch or another. That
    path is taken back.

    Args:
        batch: rows 0 to wanted - 1 are overwritten.
        allowed: uint8[L]: moves the root may choose, by point.
    Returns:
        int: leaves selected; 0 at an immediate collision, at the memory limit, or when no root move is allowed.
    """
    for i in range(wanted):
        if not _select_one(tree, batch, i, tuning, allowed):
            return i
        tree.meta[IN_FLIGHT] += 1
    return wanted


@kernel
def _select_one(tree, batch, i, tuning, allowed):
    """Select one leaf into row i; False, with its path taken back, when there is none to be had."""
    node, depth = ROOT, 0
    while tree.state[node] in (EXPANDED, AWAITED) and depth < MAX_DEPTH:
        slot = choose_slot(tree, node, tuning, allowed)
        if slot == NONE:
            break
        if slot >= tree.n_edges[node] and not add_edges(tree, node, slot + 1):
            tree.meta[FULL] = 1
            break
        edge = tree.first_edge[node] + slot
        if tree.child[edge] == NONE:
            child = new_node(tree, UNEXPANDED)
            if child == NONE:
                tree.meta[FULL] = 1
                break
            tree.child[edge] = child
        batch.node[i, depth] = node
        batch.slot[i, depth] = slot
        batch.move[i, depth] = tree.move[edge]
        tree.in_flight[edge] += 1
        depth += 1
        node = tree.child[edge]
    batch.depth[i] = depth
    batch.leaf[i] = node
    state = tree.state[node]
    if state in (UNEXPANDED, PROVISIONAL):
        tree.state[node] = PENDING if state == UNEXPANDED else AWAITED
        batch.kind[i] = NEW
        return True
    if state == TERMINAL or (state == EXPANDED and depth == MAX_DEPTH):
        batch.kind[i] = KNOWN
        batch.value[i] = tree.value[node]
        batch.rollout[i] = tree.value[node]
        batch.score[i] = tree.score[node]
        return True
    _leave_path(tree, batch, i)
    return False


@kernel
def _leave_path(tree, batch, i):
    """Take the virtual loss of row i back."""
    for d in range(batch.depth[i]):
        tree.in_flight[tree.first_edge[batch.node[i, d]] + batch.slot[i, d]] -= 1


@kernel
def release(tree, batch, count):
    """Give up the first ``count`` leaves of a batch without a result."""
    for i in range(count):
        _leave_path(tree, batch, i)
        if batch.kind[i] != KNOWN:
            placed = tree.state[batch.leaf[i]] == AWAITED
            tree.state[batch.leaf[i]] = PROVISIONAL if placed else UNEXPANDED
        tree.meta[IN_FLIGHT] -= 1


@kernel
def place(tree, batch, count, weight):
    """Open those of the first ``count`` leaves that the network was asked about, with the priors in ``candidates``.

    Until the network answers such a node is worth what its parent is. The root waits: it is searched once known.
    (AlphaGo, Methods: "Searching with policy and value networks", placeholder priors of the tree policy.)
    """
    for i in range(count):
        node, depth = batch.leaf[i], batch.depth[i]
        if batch.kind[i] != NEW or batch.request_row[i] < 0 or depth == 0 or tree.state[node] != PENDING:
            continue
        if store_candidates(tree, node, batch.candidates[i], batch.n_candidates[i]):
            tree.state[node] = AWAITED
            tree.value[node] = -node_value(tree, batch.node[i, depth - 1], weight)


@kernel
def complete(tree, batch, count, tuning, adds_value, adds_rollout):
    """Expand the first ``count`` leaves of a batch and back their values up.

    Args:
        adds_value, adds_rollout: which sides these leaves have results for.
    """
    for i in range(count):
        if batch.kind[i] != KNOWN:
            _expand(tree, batch, i, tuning.rollout_weight, adds_value, adds_rollout)
        _leave_path(tree, batch, i)
        _back_up(tree, batch, i, adds_value, adds_rollout)
        tree.meta[IN_FLIGHT] -= 1


@kernel
def _expand(tree, batch, i, weight, adds_value, adds_rollout):
    """Settle the state of a leaf with its results; without room for its moves it stays unexpanded."""
    node = batch.leaf[i]
    if adds_value and adds_rollout:
        tree.value[node] = (1.0 - weight) * batch.value[i] + weight * batch.rollout[i]
    else:
        tree.value[node] = batch.value[i] if adds_value else batch.rollout[i]
    tree.score[node] = batch.score[i]
    if batch.kind[i] == FINISHED:
        tree.state[node] = TERMINAL
    elif tree.state[node] == AWAITED:
        replace_priors(tree, node, batch.candidates[i])
        tree.state[node] = EXPANDED
    elif store_candidates(tree, node, batch.candidates[i], batch.n_candidates[i]):
        tree.state[node] = EXPANDED
    else:
        tree.state[node] = UNEXPANDED
        tree.meta[FULL] = 1


@kernel
def _back_up(tree, batch, i, adds_value, adds_rollout):
    """Add row i's results along its path; the only place where values change sides."""
    tree.meta[ROOT_VISITS] += 1
    sign = 1.0
    for d in range(batch.depth[i] - 1, -1, -1):
        sign = -sign
        edge = tree.first_edge[batch.node[i, d]] + batch.slot[i, d]
        if adds_value:
            tree.N_v[edge] += 1
            tree.W_v[edge] += sign * batch.value[i]
        if adds_rollout:
            tree.N_r[edge] += 1
            tree.W_r[edge] += sign * batch.rollout[i]
        tree.W_s[edge] += sign * batch.score[i]


@kernel
def leaders(tree):
    """Visits of the two most visited moves at the root."""
    first, second = 0, 0
    for edge in range(tree.first_edge[ROOT], tree.first_edge[ROOT] + tree.n_edges[ROOT]):
        visits = edge_visits(tree, edge)
        if visits > first:
            first, second = visits, first
        elif visits > second:
            second = visits
    return first, second


@kernel
def main_line(tree, node, line):
    """Write the most visited moves from a node on into ``line`` (int16); returns their number."""
    length = 0
    while length < len(line):
        best, most = NONE, 0
        for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
            if edge_visits(tree, edge) > most:
                best, most = edge, edge_visits(tree, edge)
        if best == NONE:
            break
        line[length] = tree.move[best]
        length += 1
        node = tree.child[best]
    return length
