"""Reading the tree: values of edges and nodes, leading moves, the principal variation, weights of moves.

An edge's value mixes two averages, of network values and of rollout results (AlphaGo, Methods, "Searching with
policy and value networks")::

    Q = (1 - lambda) * W_v / N_v + lambda * W_r / N_r

A side without any result does not count. A completed playout adds one to N_v, to N_r or to both, so the visits of an
edge are ``max(N_v, N_r)``.

With ``value_weight`` (KataGo's ``valueWeightExponent``) a move that looks worse than the others counts less in its
node's value. The mean over all playouts below a node is too low where PUCT has to look at moves that turn out badly. So
a move's weight is its visits times F(z) ** value_weight, F being Student's distribution with three degrees of freedom
and z how far its value lies above the mean of all, by a deviation of sqrt(1 / (1.5 sqrt(visits))). Visits and selection
stay as they are; the sums of values along a playout's path are recomputed from below. Source: KataGo,
``recomputeNodeStats``.

Threads: the tree's lock is held.
"""

import math

from engine.search.tree import META_ROOT, NONE, edge_visits
from engine.system.jit import kernel


@kernel
def edge_mean(tree, edge, weight):
    """Q of a visited edge, virtual loss left out."""
    n_v, n_r = tree.N_v[edge], tree.N_r[edge]
    if n_r == 0:
        return tree.W_v[edge] / n_v
    if n_v == 0:
        return tree.W_r[edge] / n_r
    return (1.0 - weight) * tree.W_v[edge] / n_v + weight * tree.W_r[edge] / n_r


@kernel
def node_value(tree, node, weight):
    """Mean value of a node for its side to move: its own evaluation and everything below it."""
    visits, total = 1, float(tree.value[node])
    for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
        done = edge_visits(tree, edge)
        if done > 0:
            visits += done
            total += done * edge_mean(tree, edge, weight)
    return total / visits


@kernel
def root_lead(tree):
    """Mean lead at the root in points for its side to move."""
    root = tree.meta[META_ROOT]
    visits, total = 1, float(tree.lead[root])
    for edge in range(tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]):
        visits += edge_visits(tree, edge)
        total += tree.W_lead[edge]
    return total / visits


@kernel
def leaders(tree):
    """Visits of the two most visited moves at the root."""
    first, second = 0, 0
    root = tree.meta[META_ROOT]
    for edge in range(tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]):
        visits = edge_visits(tree, edge)
        if visits > first:
            first, second = visits, first
        elif visits > second:
            second = visits
    return first, second


@kernel
def value_margin(tree, weight, share):
    """How much better the most visited move at the root is than the best of those with ``share`` of its visits.

    Returns:
        float: difference of their values for the side to move, negative where another move looks better. A missing
        rival counts as value -1; 2.0 before any visit.
    """
    root = tree.meta[META_ROOT]
    first, end = tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]
    best, most = NONE, 0
    for edge in range(first, end):
        if edge_visits(tree, edge) > most:
            best, most = edge, edge_visits(tree, edge)
    if best == NONE:
        return 2.0
    rival = -1.0
    for edge in range(first, end):
        visits = edge_visits(tree, edge)
        if edge != best and visits > 0 and visits >= share * most:
            rival = max(rival, edge_mean(tree, edge, weight))
    return edge_mean(tree, best, weight) - rival


@kernel
def main_line(tree, node, line, visits):
    """Write the most visited moves from a node on (int16) and their visits (int32); returns how many they are."""
    length = 0
    while length < len(line):
        best, most = NONE, 0
        for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
            if edge_visits(tree, edge) > most:
                best, most = edge, edge_visits(tree, edge)
        if best == NONE:
            break
        line[length], visits[length] = tree.move[best], most
        length += 1
        node = tree.child[best]
    return length


LEAST_SHARE = 1e-4
"""Added to F(z), so that no move's weight is 0"""


@kernel
def _student(z):
    """Student's distribution function with three degrees of freedom."""
    x = z / math.sqrt(3.0)
    return 0.5 + (x / (1.0 + x * x) + math.atan(x)) / math.pi


@kernel
def weighted_value(tree, node, value_weight):
    """Value of a node for its side to move: its own evaluation, weight 1, and its moves by their weights."""
    first, end = tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]
    visits, values = 0, 0.0
    for edge in range(first, end):
        visits += tree.N_v[edge]
        values += tree.W_v[edge]
    if visits == 0:
        return float(tree.value[node])
    mean, total, weighted = values / visits, 0.0, 0.0
    for edge in range(first, end):
        if tree.N_v[edge] > 0:
            value = tree.W_v[edge] / tree.N_v[edge]
            z = (value - mean) * math.sqrt(1.5 * math.sqrt(tree.N_v[edge]))
            weight = tree.N_v[edge] * (_student(z) + LEAST_SHARE) ** value_weight
            total += weight
            weighted += weight * value
    return (tree.value[node] + visits * weighted / total) / (1 + visits)


@kernel
def root_value(tree, tuning):
    """Value of the root for its side to move, with weights where they are asked for."""
    root = tree.meta[META_ROOT]
    if tuning.value_weight > 0.0:
        return weighted_value(tree, root, tuning.value_weight)
    return node_value(tree, root, tuning.rollout_weight)


@kernel
def weigh_paths(tree, batch, count, value_weight):
    """Write the sums of values anew along the paths of a batch's first ``count`` rows, just backed up, from below."""
    for i in range(count):
        for d in range(batch.depth[i] - 1, 0, -1):
            edge = tree.first_edge[batch.node[i, d - 1]] + batch.edge_index[i, d - 1]
            visits, before = tree.N_v[edge], tree.W_v[edge]
            if visits == 0:
                continue
            tree.W_v[edge] = -visits * weighted_value(tree, batch.node[i, d], value_weight)
            # The mean moves, the results' spread about it stays: the bound of a move's value rests on that.
            tree.W_sq[edge] += (tree.W_v[edge] * tree.W_v[edge] - before * before) / visits
