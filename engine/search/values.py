"""Statistics read from the tree: values of edges and nodes, leading moves, the principal variation, child weights.

An edge's value mixes two averages, of network values and of rollout results (AlphaGo, Methods, "Searching with
policy and value networks")::

    Q = (1 - lambda) * W_v / N_v + lambda * W_r / N_r

If one of N_v and N_r is 0, Q is the average that exists. A completed playout adds one to N_v, to N_r or to both, so the
visits of an edge are ``max(N_v, N_r)``.

``value_weight`` (KataGo's ``valueWeightExponent``) down-weights children whose value is far below the mean of all
children: the mean over all playouts below a node is too low if PUCT has to explore bad moves. A child's weight is its
visits times F(z) ** value_weight. F is the distribution function of Student's t with three degrees of freedom, z the
child's value minus the mean, divided by a deviation of sqrt(1 / (1.5 sqrt(visits))). Visits and the rule of selection
do not change; the sums of values along a playout's path are recomputed from the leaf up. Source: KataGo,
``recomputeNodeStats``.

Threads: the tree's lock is held.
"""

import math

from engine.search.tree import META_ROOT, NONE, edge_visits
from engine.system.jit import kernel


@kernel
def edge_mean(tree, edge, rollout_weight):
    """Q of a visited edge for the player who chose it, without virtual loss; ``rollout_weight`` is lambda."""
    n_v, n_r = tree.N_v[edge], tree.N_r[edge]
    if n_r == 0:
        return tree.W_v[edge] / n_v
    if n_v == 0:
        return tree.W_r[edge] / n_r
    return (1.0 - rollout_weight) * tree.W_v[edge] / n_v + rollout_weight * tree.W_r[edge] / n_r


@kernel
def node_value(tree, node, rollout_weight):
    """Mean of a node's own evaluation and its edges' Q, weighted by visits (1 for the node), for its side to move."""
    visits, total = 1, float(tree.value[node])
    for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
        done = edge_visits(tree, edge)
        if done > 0:
            visits += done
            total += done * edge_mean(tree, edge, rollout_weight)
    return total / visits


@kernel
def root_lead(tree):
    """Mean lead in points at the root, over its own evaluation and all visits, for its side to move."""
    root = tree.meta[META_ROOT]
    visits, total = 1, float(tree.lead[root])
    for edge in range(tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]):
        visits += edge_visits(tree, edge)
        total += tree.W_lead[edge]
    return total / visits


@kernel
def most_visited(tree, node):
    """A node's most visited edge.

    Returns:
        tuple of three int: the edge's row, at equal visits the first, NONE if no edge has a visit; its visits; the
        visits of the second most visited edge.
    """
    best, first, second = NONE, 0, 0
    for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
        visits = edge_visits(tree, edge)
        if visits > first:
            best, first, second = edge, visits, first
        elif visits > second:
            second = visits
    return best, first, second


@kernel
def leaders(tree, rollout_weight, share):
    """Visits of the root's two most visited moves, and the value margin of the first.

    Args:
        rollout_weight: lambda.
        share: minimum visits of a rival, as a share of the most visited move's.
    Returns:
        tuple of two int and a float. The margin is the most visited move's value, for the side to move, minus the best
        rival's; -1 stands for the value of a missing rival. Without any visit the margin is 2.0.
    """
    root = tree.meta[META_ROOT]
    best, most, second = most_visited(tree, root)
    if best == NONE:
        return most, second, 2.0
    rival = -1.0
    for edge in range(tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]):
        visits = edge_visits(tree, edge)
        if edge != best and visits > 0 and visits >= share * most:
            rival = max(rival, edge_mean(tree, edge, rollout_weight))
    return most, second, edge_mean(tree, best, rollout_weight) - rival


@kernel
def main_line(tree, node, line, visits):
    """Write the principal variation from a node on; returns its length.

    Args:
        line, visits: int16[M] and int32[M]: its moves (points) and their visits; M limits the length.
    """
    length = 0
    while length < len(line):
        best, most, _ = most_visited(tree, node)
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
    """Distribution function of Student's t with three degrees of freedom, at z."""
    x = z / math.sqrt(3.0)
    return 0.5 + (x / (1.0 + x * x) + math.atan(x)) / math.pi


@kernel
def weighted_value(tree, node, value_weight):
    """Mean of a node's own evaluation, counted as one visit, and its children's weighted mean (module's docstring), for
    its side to move.
    """
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
    """Value of the root for its side to move: :func:`weighted_value` if ``tuning.value_weight`` is above 0, else
    :func:`node_value`.
    """
    root = tree.meta[META_ROOT]
    if tuning.value_weight > 0.0:
        return weighted_value(tree, root, tuning.value_weight)
    return node_value(tree, root, tuning.rollout_weight)


@kernel
def weigh_paths(tree, batch, count, value_weight):
    """Recompute W_v with child weights for the paths of a batch's first ``count`` rows, after their backup.

    Each path's edges are recomputed from the leaf's parent up; W_sq changes so that each edge's variance stays.
    """
    for i in range(count):
        for d in range(batch.depth[i] - 1, 0, -1):
            edge = tree.first_edge[batch.node[i, d - 1]] + batch.edge_index[i, d - 1]
            visits, before = tree.N_v[edge], tree.W_v[edge]
            if visits == 0:
                continue
            tree.W_v[edge] = -visits * weighted_value(tree, batch.node[i, d], value_weight)
            # The mean changes; the variance, from which confidence bounds are computed, stays.
            tree.W_sq[edge] += (tree.W_v[edge] * tree.W_v[edge] - before * before) / visits
