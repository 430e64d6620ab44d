"""The search tree as flat arrays: its fields, its growth, and the allocation and release of rows.

Two pools of rows, each an array per field:

* *nodes*: one position each, reached by one path from the root, with the priors of its unexpanded moves, two bytes each
  (:mod:`engine.search.priors`);
* *edges*: for each node the moves selected so far, with their statistics. Moves are first selected in the order of
  their priors (all unvisited moves have one first-play value), so the next edge is always for the likeliest unexpanded
  move, and selection considers only that one.

Most nodes are leaves without edges, so a node costs 769 bytes on 19x19, most of it priors, and 54 for the edge that
leads to it. Pools grow in place (``ndarray.resize``), so they grow only while the tree's lock is held, and no view of
a field outlives that lock. Released rows wait in free lists: one of nodes, and one of edge runs for each power of two.
If a list is empty, a longer run is split.

When the root advances (:func:`advance_root`), the nodes outside its subtree are only marked as dropped. Their rows are
reclaimed one node at a time when new rows are needed, so a search never waits for a cleanup.

A node's life::

    UNEXPANDED  -> PENDING      selected as a leaf; one worker owns it
    PENDING     -> EXPANDED     evaluated, its moves stored
    PENDING     -> TERMINAL     the game has ended there; value and score are exact
    PENDING     -> UNEXPANDED   released without a result
    PENDING     -> AWAITED      its moves stored with placeholder priors until the network answers
    AWAITED     -> EXPANDED     the network's priors and value replace the placeholders
    AWAITED     -> PROVISIONAL  released without a result; the placeholders stay
    PROVISIONAL -> AWAITED      selected as a leaf again

Playouts pass through AWAITED nodes as through EXPANDED ones, and may add edges to them.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.go.geometry import PASS, on_board_points
from engine.search.priors import GONE, NO_MOVE, index_of_best, likeliest, prior_of, prior_of_best
from engine.system.arrays import Field, allocate, fields_of
from engine.system.jit import inlined_kernel, kernel

UNEXPANDED, PENDING, PROVISIONAL, AWAITED, EXPANDED, TERMINAL = range(6)
NONE = -1

META_ROOT, META_ROOT_VISITS, META_IN_FLIGHT, META_FULL, META_USED_NODES = range(5)
"""Indices into ``Tree.meta``: the root's node and its visits, leaves in flight, 1 = a row was refused, nodes in use"""
META_N_NODES, META_N_EDGES = range(5, 7)
"""Indices into ``Tree.meta``: rows ever used of each pool"""
META_FREE_NODE, META_DROPPED, META_FREE_EDGES = range(7, 10)
"""Indices into ``Tree.meta``: heads of lists; those of free edge runs start at META_FREE_EDGES, one per power of two"""
EDGE_CLASSES = 11
"""Edge runs hold 1 to 1024 edges, enough for the 626 moves of the largest board."""
META_FIELDS = META_FREE_EDGES + EDGE_CLASSES


class Tree(NamedTuple):
    """All rows of one search tree; A = N*N + 1 policy entries, L the longest run of edges.

    ``buckets`` is a power of two with value bias correction (:mod:`engine.search.value_bias`), else 0.
    """

    meta: Annotated[np.ndarray, "int64[META_FIELDS]"]
    """counts, and heads of the free lists (NONE = empty)"""

    state: Annotated[np.ndarray, "uint8[nodes]"]
    """UNEXPANDED, PENDING, PROVISIONAL, AWAITED, EXPANDED or TERMINAL"""
    value: Annotated[np.ndarray, "float32[nodes]"]
    """the node's own evaluation, -1 to 1 for its side to move; 0 if unevaluated, its parent's value while AWAITED"""
    lead: Annotated[np.ndarray, "float32[nodes]"]
    """the node's own lead in points, for its side to move"""
    expanded_prior_mass: Annotated[np.ndarray, "float32[nodes]"]
    """sum of the priors of its edges"""
    first_edge: Annotated[np.ndarray, "int32[nodes]"]
    """first row of its run of edges; NONE without edges"""
    n_edges: Annotated[np.ndarray, "int16[nodes]"]
    """edges in use"""
    edge_room: Annotated[np.ndarray, "int16[nodes]"]
    """length of the run, a power of two; 0 without edges"""
    best_unexpanded: Annotated[np.ndarray, "uint32[nodes]"]
    """the likeliest move without an edge (:func:`engine.search.priors.likeliest`); NO_MOVE before expansion"""
    prior_codes: Annotated[np.ndarray, "uint16[nodes, A]"]
    """codes of the priors of the moves without an edge, by policy index; undefined before expansion"""
    next: Annotated[np.ndarray, "int32[nodes]"]
    """next node in the list of free or of dropped nodes"""
    bucket: Annotated[np.ndarray, "int32[nodes]"]
    """value bias bucket (:mod:`engine.search.value_bias`); NONE without one"""
    network_value: Annotated[np.ndarray, "float32[nodes]"]
    """with a bucket, the network's value; ``value`` is the corrected one"""
    entered_error: Annotated[np.ndarray, "float32[nodes]"]
    """with a bucket, the node's weighted error in the bucket's sum"""
    entered_weight: Annotated[np.ndarray, "float32[nodes]"]
    """with a bucket, the node's weight in the bucket's sum"""

    P: Annotated[np.ndarray, "float32[edges]"]
    """prior"""
    N_v: Annotated[np.ndarray, "int32[edges]"]
    """network values (or exact results) backed up through the edge"""
    W_v: Annotated[np.ndarray, "float64[edges]"]
    """sum of the N_v values, for the player who chose the edge"""
    N_r: Annotated[np.ndarray, "int32[edges]"]
    """rollout results (or exact results) backed up through the edge"""
    W_r: Annotated[np.ndarray, "float64[edges]"]
    """sum of the N_r results, for the player who chose the edge"""
    W_sq: Annotated[np.ndarray, "float64[edges]"]
    """sum of squared results, network and rollout mixed, one a visit"""
    W_lead: Annotated[np.ndarray, "float64[edges]"]
    """sum of leads in points, one a visit, for the player who chose the edge"""
    in_flight: Annotated[np.ndarray, "int32[edges]"]
    """playouts in flight through the edge"""
    child: Annotated[np.ndarray, "int32[edges]"]
    """the child node, NONE before the first visit; in a free run the next free run"""
    move: Annotated[np.ndarray, "int16[edges]"]
    """the point played, PASS = 0"""

    point: Annotated[np.ndarray, "int16[A]"]
    """the point of each policy index, PASS = 0"""
    puct_scores: Annotated[np.ndarray, "float64[L]"]
    """working memory of selection"""
    bias_sum: Annotated[np.ndarray, "float64[buckets]"]
    """sum of the weighted errors of a bucket's nodes"""
    bias_weight: Annotated[np.ndarray, "float64[buckets]"]
    """sum of the weights of a bucket's nodes"""
    bias_share: Annotated[np.ndarray, "float64[1]"]
    """subtree value bias factor"""


POOLS = {
    pool: [name for name, field in fields_of(Tree).items() if isinstance(field, Field) and field.shape[0] == pool]
    for pool in ("nodes", "edges")
}
"""Names of the fields of each pool"""
FIRST_ROWS = {"nodes": 256, "edges": 4096}


def byte_count(tree: Tree) -> int:
    """Memory of the tree's arrays."""
    return sum(array.nbytes for array in tree)


def used_bytes(tree: Tree) -> int:
    """Memory of the rows ever used, including released ones."""
    used = dict(zip(POOLS, (META_N_NODES, META_N_EDGES), strict=True))
    return sum(int(tree.meta[used[pool]]) * row_bytes(tree, pool) for pool in POOLS)


def row_bytes(tree: Tree, pool: str) -> int:
    """Memory of one row of a pool."""
    return sum(getattr(tree, name)[:1].nbytes for name in POOLS[pool])


BUCKETS = 1 << 16
"""Value bias buckets (:mod:`engine.search.value_bias`); keys with equal low bits share one."""
MOST_GROWTH = 16 << 20
"""Largest growth of a pool in bytes, so that it holds the lock for at most some 20 ms"""


def new_tree(size: int, value_bias: float = 0.0) -> Tree:
    """A tree of one unexpanded root, with few rows.

    Args:
        size: board size.
        value_bias: subtree value bias factor (:mod:`engine.search.value_bias`); 0 = no correction.
    """
    buckets = BUCKETS if value_bias > 0.0 else 0
    longest = 1 << (EDGE_CLASSES - 1)
    tree = allocate(Tree, **FIRST_ROWS, A=size * size + 1, L=longest, buckets=buckets)
    tree.point[:] = (*on_board_points(size), PASS)
    tree.bias_share[0] = value_bias
    clear(tree)
    return tree


def reserve(tree: Tree, nodes: int, edges: int, limit: int) -> bool:
    """Grow the pools, if they have fewer unused rows than wanted.

    Args:
        nodes, edges: unused rows wanted.
        limit: memory limit of the whole tree, in bytes.
    Returns:
        bool: False if the limit refused some growth; the pools stay usable, and released rows are reused.
    Threads: the tree's lock is held.
    """
    wanted = (int(tree.meta[META_N_NODES]) + nodes, int(tree.meta[META_N_EDGES]) + edges)
    if wanted[0] <= len(tree.state) and wanted[1] <= len(tree.P):
        return True
    grown = [_grow(tree, pool, rows, limit) for pool, rows in zip(POOLS, wanted, strict=True)]
    return all(grown)


def _grow(tree: Tree, pool: str, wanted: int, limit: int) -> bool:
    """Double a pool that holds fewer rows than wanted, by at most MOST_GROWTH and a sixteenth of the limit."""
    fields = [getattr(tree, name) for name in POOLS[pool]]
    have, row = len(fields[0]), row_bytes(tree, pool)
    if wanted <= have:
        return True
    most = have + min(MOST_GROWTH, limit // 16) // row
    left = have + (limit - byte_count(tree)) // row
    # Numbers of rows are int32.
    rows = min(max(wanted, min(2 * have, most)), left, (1 << 31) - 1)
    if rows < wanted:
        return False
    # The first field's length is the capacity, so it grows last: after a failed allocation no row lies out of bounds.
    for field in reversed(fields):
        field.resize((rows, *field.shape[1:]), refcheck=False)
    return True


@kernel
def clear(tree):
    """Reset the tree to an unexpanded root."""
    meta = tree.meta
    meta[:] = 0
    meta[META_FREE_NODE:] = NONE
    forget_errors(tree)
    meta[META_ROOT] = new_node(tree, UNEXPANDED)


@inlined_kernel
def new_node(tree, state):
    """Allocate a node; returns its row, NONE if the pool is full."""
    meta = tree.meta
    if meta[META_FREE_NODE] == NONE:
        reclaim(tree)
    node = meta[META_FREE_NODE]
    if node != NONE:
        meta[META_FREE_NODE] = tree.next[node]
    else:
        node = meta[META_N_NODES]
        if node == len(tree.state):
            return NONE
        meta[META_N_NODES] = node + 1
    meta[META_USED_NODES] += 1
    tree.state[node] = state
    tree.value[node] = 0.0
    tree.lead[node] = 0.0
    tree.expanded_prior_mass[node] = 0.0
    tree.first_edge[node] = NONE
    tree.n_edges[node] = 0
    tree.edge_room[node] = 0
    tree.best_unexpanded[node] = NO_MOVE
    tree.bucket[node] = NONE
    return node


@kernel
def store_moves(tree, node, codes):
    """Store the priors of a node's moves, none of which has an edge.

    Args:
        codes: uint16[A], prior codes (:mod:`engine.search.priors`).
    """
    for index in range(len(codes)):
        tree.prior_codes[node, index] = codes[index]
    tree.best_unexpanded[node] = likeliest(codes)


@kernel
def replace_priors(tree, node, codes):
    """Replace the priors of a node's moves; edges stay.

    Args:
        codes: uint16[A] of the same moves.
    """
    row, first, mass = tree.prior_codes[node], np.int64(tree.first_edge[node]), 0.0
    for index in range(len(row)):
        row[index] = codes[index]
        for edge in range(first, first + tree.n_edges[node]):
            if tree.move[edge] == tree.point[index]:
                tree.P[edge] = prior_of(row[index])
                mass += tree.P[edge]
                row[index] = GONE
    tree.expanded_prior_mass[node] = mass
    tree.best_unexpanded[node] = likeliest(row)


@kernel
def _edge_class(room):
    """Number of the free list for a run of edges: the base-2 logarithm of its length."""
    run_class = 0
    while (1 << run_class) < room:
        run_class += 1
    return run_class


@kernel
def _take_edges(tree, run_class):
    """Allocate a run of ``2 ** run_class`` edges; returns its first row, NONE if the pool is full."""
    meta = tree.meta
    for _ in range(2):
        for longer in range(run_class, EDGE_CLASSES):
            first = meta[META_FREE_EDGES + longer]
            if first != NONE:
                meta[META_FREE_EDGES + longer] = tree.child[first]
                while longer > run_class:
                    longer -= 1
                    _free_edges(tree, first + (1 << longer), longer)
                return first
        if not reclaim(tree):
            break
    first = meta[META_N_EDGES]
    if first + (1 << run_class) > len(tree.P):
        return NONE
    meta[META_N_EDGES] = first + (1 << run_class)
    return first


@kernel
def _free_edges(tree, first, run_class):
    """Release a run of edges."""
    tree.child[first] = tree.meta[META_FREE_EDGES + run_class]
    tree.meta[META_FREE_EDGES + run_class] = first


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
        tree.W_sq[target] = tree.W_sq[source]
        tree.W_lead[target] = tree.W_lead[source]
        tree.in_flight[target] = tree.in_flight[source]
        tree.child[target] = tree.child[source]
        tree.move[target] = tree.move[source]
    if room > 0:
        _free_edges(tree, old, run_class - 1)
    tree.first_edge[node] = first
    tree.edge_room[node] = 1 << run_class
    return True


@inlined_kernel
def add_edge(tree, node):
    """Add an edge for an expanded node's likeliest move without one, which must exist; NONE if the pool is full."""
    n_edges = np.int64(tree.n_edges[node])
    if n_edges == tree.edge_room[node] and not _widen(tree, node):
        return NONE
    top = tree.best_unexpanded[node]
    tree.prior_codes[node, index_of_best(top)] = GONE
    tree.best_unexpanded[node] = likeliest(tree.prior_codes[node])
    edge = tree.first_edge[node] + n_edges
    tree.P[edge] = prior_of_best(top)
    tree.N_v[edge] = 0
    tree.W_v[edge] = 0.0
    tree.N_r[edge] = 0
    tree.W_r[edge] = 0.0
    tree.W_sq[edge] = 0.0
    tree.W_lead[edge] = 0.0
    tree.in_flight[edge] = 0
    tree.child[edge] = NONE
    tree.move[edge] = tree.point[index_of_best(top)]
    tree.expanded_prior_mass[node] += tree.P[edge]
    tree.n_edges[node] = n_edges + 1
    return edge


@kernel
def edge_visits(tree, edge):
    """Completed playouts through an edge: each adds to one side or to both."""
    return max(tree.N_v[edge], tree.N_r[edge])


@kernel
def follow(tree, node, move):
    """The edge of a node that plays a move, NONE if there is none."""
    for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
        if tree.move[edge] == move:
            return edge
    return NONE


@kernel
def advance_root(tree, edge):
    """Make the child of a root edge the new root; nodes outside its subtree are dropped.

    Threads: the tree's lock is held and nothing is in flight.
    """
    meta = tree.meta
    old, root = meta[META_ROOT], np.int64(tree.child[edge])
    meta[META_ROOT_VISITS] = edge_visits(tree, edge)
    # Cut the edge, so that reclaiming the old root leaves the new one alone.
    tree.child[edge] = NONE
    meta[META_ROOT] = root
    meta[META_FULL] = 0
    _drop(tree, old)


@kernel
def _drop(tree, node):
    """Add an unreachable node to the list of dropped nodes."""
    tree.next[node] = tree.meta[META_DROPPED]
    tree.meta[META_DROPPED] = node


@kernel
def reclaim(tree):
    """Release one dropped node with its edges and drop its children; False if there is none."""
    meta = tree.meta
    node = meta[META_DROPPED]
    if node == NONE:
        return False
    meta[META_DROPPED] = tree.next[node]
    first = np.int64(tree.first_edge[node])
    for edge in range(first, first + tree.n_edges[node]):
        if tree.child[edge] != NONE:
            _drop(tree, tree.child[edge])
    if tree.edge_room[node] > 0:
        _free_edges(tree, first, _edge_class(tree.edge_room[node]))
    leave_bucket(tree, node)
    tree.next[node] = meta[META_FREE_NODE]
    meta[META_FREE_NODE] = node
    meta[META_USED_NODES] -= 1
    return True


@kernel
def forget_errors(tree):
    """Empty all value bias buckets."""
    tree.bias_sum[:] = 0.0
    tree.bias_weight[:] = 0.0


@kernel
def leave_bucket(tree, node):
    """Subtract a released node's error and weight from its value bias bucket."""
    bucket = tree.bucket[node]
    if bucket != NONE:
        tree.bias_sum[bucket] -= tree.entered_error[node]
        tree.bias_weight[bucket] -= tree.entered_weight[node]
        tree.bucket[node] = NONE
