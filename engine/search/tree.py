"""Rows of the search tree: taking them, giving them back, and what a node's moves and edges are made of.

See :mod:`engine.search.pools` for what is stored. Rows that are given back wait in lists: nodes in one, runs of edges
by powers of two, runs of candidates by multiples of CANDIDATE_STEP. A run that is wanted and not there is cut from a
longer one; before a pool is extended, one dropped node is taken apart.
"""

import numpy as np

from engine.jit import kernel
from engine.search.candidates import candidate_point, candidate_prior, make_heap, take_top
from engine.search.pools import (
    CANDIDATE_CLASSES,
    CANDIDATE_STEP,
    DROPPED,
    EDGE_CLASSES,
    FIRST_ROWS,
    FREE_CANDIDATES,
    FREE_EDGES,
    FREE_NODE,
    FULL,
    KINDS,
    META_FIELDS,
    N_CANDIDATES,
    N_EDGES,
    N_NODES,
    NONE,
    POOLS,
    ROOT,
    ROOT_VISITS,
    UNEXPANDED,
    USED_NODES,
    Tree,
)


def new_tree() -> Tree:
    """A tree of one unexpanded root, with little room."""
    rows = {field: FIRST_ROWS[pool] for pool, names in POOLS.items() for field in names}
    rows["meta"] = META_FIELDS
    tree = Tree(*(np.zeros(rows[field], KINDS[field]) for field in Tree._fields))
    clear(tree)
    return tree


@kernel
def clear(tree):
    """Drop everything but an unexpanded root."""
    meta = tree.meta
    meta[:] = 0
    meta[FREE_NODE:] = NONE
    meta[ROOT] = new_node(tree, UNEXPANDED)


@kernel
def new_node(tree, state):
    """Take a node row; returns its number, NONE if the pool is full."""
    meta = tree.meta
    if meta[FREE_NODE] == NONE:
        reclaim(tree)
    node = meta[FREE_NODE]
    if node != NONE:
        meta[FREE_NODE] = tree.next[node]
    else:
        node = meta[N_NODES]
        if node == len(tree.state):
            return NONE
        meta[N_NODES] = node + 1
    meta[USED_NODES] += 1
    tree.state[node] = state
    tree.value[node] = 0.0
    tree.score[node] = 0.0
    tree.mass[node] = 0.0
    tree.first_edge[node] = NONE
    tree.n_edges[node] = 0
    tree.edge_room[node] = 0
    tree.first_candidate[node] = NONE
    tree.n_candidates[node] = 0
    return node


@kernel
def store_candidates(tree, node, candidates, count):
    """Give a node its moves; False if the pool is full.

    Args:
        candidates: uint32[>= count], a heap.
    """
    start = _take_candidates(tree, _candidate_class(count))
    if start == NONE:
        return False
    for i in range(count):
        tree.candidate[start + i] = candidates[i]
    tree.first_candidate[node] = start
    tree.n_candidates[node] = count
    return True


@kernel
def replace_priors(tree, node, candidates):
    """Give a node's moves other priors, from candidates of the same moves; moves that have an edge keep it."""
    start, edges, n_edges = tree.first_candidate[node], tree.first_edge[node], tree.n_edges[node]
    kept = 0
    mass = 0.0
    for i in range(tree.n_candidates[node]):
        candidate, held = candidates[i], NONE
        for edge in range(edges, edges + n_edges):
            if tree.move[edge] == candidate_point(candidate):
                held = edge
        if held == NONE:
            tree.candidate[start + kept] = candidate
            kept += 1
        else:
            tree.P[held] = candidate_prior(candidate)
            mass += tree.P[held]
    tree.mass[node] = mass
    make_heap(tree.candidate, start, kept)


@kernel
def _candidate_class(count):
    """Which free list a run of so many candidates belongs to."""
    return (count - 1) // CANDIDATE_STEP


@kernel
def _take_candidates(tree, run_class):
    """A run of candidates: one given back, the front of a longer one, or a new one; NONE if the pool is full."""
    meta = tree.meta
    for _ in range(2):
        for longer in range(run_class, CANDIDATE_CLASSES):
            start = meta[FREE_CANDIDATES + longer]
            if start != NONE:
                meta[FREE_CANDIDATES + longer] = _linked(tree.candidate[start])
                if longer > run_class:
                    _free_candidates(tree, start + (run_class + 1) * CANDIDATE_STEP, longer - run_class - 1)
                return start
        if not reclaim(tree):
            break
    start = meta[N_CANDIDATES]
    if start + (run_class + 1) * CANDIDATE_STEP > len(tree.candidate):
        return NONE
    meta[N_CANDIDATES] = start + (run_class + 1) * CANDIDATE_STEP
    return start


@kernel
def _linked(word):
    """The run that a free run's first word names."""
    return np.int64(word) - 1


@kernel
def _free_candidates(tree, start, run_class):
    """Give a run of candidates back."""
    tree.candidate[start] = np.uint32(tree.meta[FREE_CANDIDATES + run_class] + 1)
    tree.meta[FREE_CANDIDATES + run_class] = start


@kernel
def _edge_class(room):
    """Which free list a run of edges belongs to: the logarithm of its length."""
    run_class = 0
    while (1 << run_class) < room:
        run_class += 1
    return run_class


@kernel
def _take_edges(tree, run_class):
    """A run of ``2 ** run_class`` edges, used before or new; NONE if the pool is full."""
    meta = tree.meta
    for _ in range(2):
        for longer in range(run_class, EDGE_CLASSES):
            first = meta[FREE_EDGES + longer]
            if first != NONE:
                meta[FREE_EDGES + longer] = tree.child[first]
                while longer > run_class:
                    longer -= 1
                    _free_edges(tree, first + (1 << longer), longer)
                return first
        if not reclaim(tree):
            break
    first = meta[N_EDGES]
    if first + (1 << run_class) > len(tree.P):
        return NONE
    meta[N_EDGES] = first + (1 << run_class)
    return first


@kernel
def _free_edges(tree, first, run_class):
    """Give a run of edges back."""
    tree.child[first] = tree.meta[FREE_EDGES + run_class]
    tree.meta[FREE_EDGES + run_class] = first


@kernel
def _widen(tree, node):
    """Move a node's edges to a run twice as long (the first holds two); False if the pool is full."""
    room = tree.edge_room[node]
    run_class = 1 if room == 0 else _edge_class(room) + 1
    first = _take_edges(tree, run_class)
    if first == NONE:
        return False
    old = tree.first_edge[node]
    for slot in range(tree.n_edges[node]):
        target, source = first + slot, old + slot
        tree.P[target] = tree.P[source]
        tree.N_v[target] = tree.N_v[source]
        tree.W_v[target] = tree.W_v[source]
        tree.N_r[target] = tree.N_r[source]
        tree.W_r[target] = tree.W_r[source]
        tree.S[target] = tree.S[source]
        tree.W_s[target] = tree.W_s[source]
        tree.in_flight[target] = tree.in_flight[source]
        tree.child[target] = tree.child[source]
        tree.move[target] = tree.move[source]
    if room > 0:
        _free_edges(tree, old, run_class - 1)
    tree.first_edge[node] = first
    tree.edge_room[node] = 1 << run_class
    return True


@kernel
def add_edge(tree, node):
    """Give an expanded node an edge for the likeliest move without one; returns it, NONE if the pool is full.

    The node must have such a move.
    """
    n_edges = np.int64(tree.n_edges[node])
    if n_edges == tree.edge_room[node] and not _widen(tree, node):
        return NONE
    candidate = take_top(tree.candidate, tree.first_candidate[node], tree.n_candidates[node] - n_edges)
    edge = tree.first_edge[node] + n_edges
    tree.P[edge] = candidate_prior(candidate)
    tree.N_v[edge] = 0
    tree.W_v[edge] = 0.0
    tree.N_r[edge] = 0
    tree.W_r[edge] = 0.0
    tree.S[edge] = 0.0
    tree.W_s[edge] = 0.0
    tree.in_flight[edge] = 0
    tree.child[edge] = NONE
    tree.move[edge] = candidate_point(candidate)
    tree.mass[node] += tree.P[edge]
    tree.n_edges[node] = n_edges + 1
    return edge


@kernel
def edge_visits(tree, edge):
    """Completed playouts through an edge: each adds to one side or to both."""
    return max(tree.N_v[edge], tree.N_r[edge])


@kernel
def follow(tree, node, move):
    """The edge of a node that plays a move, NONE if it was never chosen."""
    for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
        if tree.move[edge] == move:
            return edge
    return NONE


@kernel
def advance_root(tree, edge):
    """Make the node behind an edge of the root the new root; what is outside its subtree is dropped.

    Threads: the tree's lock is held and nothing is in flight.
    """
    meta = tree.meta
    old, root, visits = meta[ROOT], np.int64(tree.child[edge]), np.int64(edge_visits(tree, edge))
    tree.child[edge] = NONE
    _drop(tree, old)
    meta[ROOT] = root
    meta[ROOT_VISITS] = visits
    meta[FULL] = 0


@kernel
def _drop(tree, node):
    """Put a node that nothing leads to any more on the list of dropped ones."""
    tree.next[node] = tree.meta[DROPPED]
    tree.meta[DROPPED] = node


@kernel
def reclaim(tree):
    """Take one dropped node apart: its rows become free, its children dropped; False if there was none."""
    meta = tree.meta
    node = meta[DROPPED]
    if node == NONE:
        return False
    meta[DROPPED] = tree.next[node]
    first = np.int64(tree.first_edge[node])
    for edge in range(first, first + tree.n_edges[node]):
        if tree.child[edge] != NONE:
            _drop(tree, tree.child[edge])
    if tree.edge_room[node] > 0:
        _free_edges(tree, first, _edge_class(tree.edge_room[node]))
    if tree.n_candidates[node] > 0:
        _free_candidates(tree, tree.first_candidate[node], _candidate_class(tree.n_candidates[node]))
    tree.next[node] = meta[FREE_NODE]
    meta[FREE_NODE] = node
    meta[USED_NODES] -= 1
    return True
