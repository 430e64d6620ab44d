"""Reading the tree: what edges and nodes are worth, which moves lead, the main line.

An edge's value mixes two averages, of network values and of rollout results (AlphaGo, Methods, "Searching with
policy and value networks")::

    Q = (1 - lambda) * W_v / N_v + lambda * W_r / N_r

A side without any result leaves the word to the other. A completed playout adds one to N_v, to N_r or to both, so
the visits of an edge are ``max(N_v, N_r)``. Threads: the tree's lock is held.
"""

from engine.search.pools import META_ROOT, NONE
from engine.search.tree import edge_visits
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
