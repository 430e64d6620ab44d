"""How much each move counts in its node's value: less where visits were spent on a move that looks worse.

The mean over all playouts below a node is too low where PUCT has to look at moves that turn out badly. So a move's
weight is its visits times F(z) ** value_weight, F being Student's distribution with three degrees of freedom and z how
far its value lies above the mean of all, by a deviation of sqrt(1 / (1.5 sqrt(visits))).

Visits and what selection makes of them stay as they are; the sums of values along a playout's path are written anew,
from below. Source: KataGo, ``valueWeightExponent`` (``recomputeNodeStats``). Threads: the tree's lock is held.
"""

import math

from engine.search.pools import META_ROOT
from engine.search.values import node_value
from engine.system.jit import kernel

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
