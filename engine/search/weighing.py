"""How much each move counts in its node's value: less where visits were spent on a move that looks worse.

The mean over all playouts below a node is too low where PUCT has to look at moves that turn out badly. Two remedies,
each by an option, both after KataGo (``recomputeNodeStats``):

* *noise pruning*: moves are taken in the order of their priors. One with more than twice the visits that its prior
  earns, held against those before it, and a value below their mean keeps of the excess only exp(-gap / NOISE_SCALE).
* *value weights*: a move's weight is multiplied by F(z) ** value_weight, F being Student's distribution with three
  degrees of freedom and z how far its value lies above the mean of all, by a deviation of sqrt(1 / (1.5 sqrt(visits))).

Visits and what selection makes of them stay as they are; the sums of values along a playout's path are written anew,
from below. Threads: the tree's lock is held.
"""

import math

from engine.search.pools import EXPANDED, META_ROOT
from engine.search.values import node_value
from engine.system.jit import kernel

NOISE_SCALE = 0.15
"""Difference in value at which 1/e of the excess is kept (KataGo's noisePruneUtilityScale)"""
LENIENCY = 2.0
"""Multiple of the visits that a prior earns from which on they are an excess"""
LEAST_SHARE = 1e-4
"""Added to F(z), so that no move's weight is 0"""


@kernel
def _student(z):
    """Student's distribution function with three degrees of freedom."""
    x = z / math.sqrt(3.0)
    return 0.5 + (x / (1.0 + x * x) + math.atan(x)) / math.pi


@kernel
def weighted_value(tree, node, tuning):
    """Value of a node for its side to move: its own evaluation, weight 1, and its moves by their weights."""
    first, count, weights = tree.first_edge[node], tree.n_edges[node], tree.puct_scores
    total, values, priors = 0.0, 0.0, 0.0
    for slot in range(count):
        edge = first + slot
        visits, prior = tree.N_v[edge], tree.P[edge]
        weights[slot] = visits
        if visits == 0:
            continue
        value = tree.W_v[edge] / visits
        if tuning.noise_pruning and total > 0.0:
            gap, earned = values / total - value, LENIENCY * total * prior / priors
            if gap > 0.0 and visits > earned:
                weights[slot] = earned + (visits - earned) * math.exp(-gap / NOISE_SCALE)
        total += weights[slot]
        values += weights[slot] * value
        priors += max(prior, 1e-30)
    if tuning.value_weight > 0.0 and total > 0.0:
        mean, new_total, new_values = values / total, 0.0, 0.0
        for slot in range(count):
            if weights[slot] > 0.0:
                value = tree.W_v[first + slot] / tree.N_v[first + slot]
                z = (value - mean) * math.sqrt(1.5 * math.sqrt(weights[slot]))
                weight = weights[slot] * (_student(z) + LEAST_SHARE) ** tuning.value_weight
                new_total += weight
                new_values += weight * value
        values = total * new_values / new_total
    # A node with placeholder priors has no evaluation of its own yet.
    own = 1.0 if tree.state[node] == EXPANDED or total == 0.0 else 0.0
    return (own * tree.value[node] + values) / (own + total)


@kernel
def root_value(tree, tuning):
    """Value of the root for its side to move, with weights where they are asked for."""
    root = tree.meta[META_ROOT]
    return weighted_value(tree, root, tuning) if tuning.weighs else node_value(tree, root, tuning.rollout_weight)


@kernel
def weigh_paths(tree, batch, count, tuning):
    """Write the sums of values anew along the paths of a batch's first ``count`` rows, just backed up, from below."""
    for i in range(count):
        for d in range(batch.depth[i] - 1, 0, -1):
            edge = tree.first_edge[batch.node[i, d - 1]] + batch.edge_index[i, d - 1]
            tree.W_v[edge] = -tree.N_v[edge] * weighted_value(tree, batch.node[i, d], tuning)
