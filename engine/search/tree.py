"""Rows of the search tree: taking them, giving them back, and what a node's moves and edges are made of.

See :mod:`engine.search.pools` for what is stored. Rows that are given back wait in lists: nodes in one, runs of edges
by powers of two. A run that is wanted and not there is cut from a longer one; before a pool is extended, one dropped
node is taken apart.
"""

import numpy as np

from engine.go.geometry import PASS, on_board_points
from engine.search.pools import (
    EDGE_CLASSES,
    FIRST_ROWS,
    KINDS,
    META_DROPPED,
    META_FIELDS,
    META_FREE_EDGES,
    META_FREE_NODE,
    META_FULL,
    META_N_EDGES,
    META_N_NODES,
    META_ROOT,
    META_ROOT_VISITS,
    META_USED_NODES,
    NONE,
    POOLS,
    UNEXPANDED,
    Tree,
    byte_count,
    row_bytes,
)
from engine.search.unchosen import GONE, NO_MOVE, index_of_best, likeliest, prior_of, prior_of_best
from engine.search.value_bias import BUCKETS, forget_errors, leave_bucket
from engine.system.jit import inlined_kernel, kernel

MOST_GROWTH = 16 << 20
"""Bytes a pool grows by at most, so that no growth holds the lock for more than some 20 ms."""


def new_tree(size: int, value_bias: float = 0.0) -> Tree:
    """A tree of one unexpanded root, with little room.

    Args:
        size: of the board.
        value_bias: by which share of their errors the network's values are corrected (:mod:`engine.search.value_bias`);
            0 = not at all.
    """
    moves = size * size + 1
    shape: dict[str, int | tuple[int, int]] = {
        field: FIRST_ROWS[pool] for pool, names in POOLS.items() for field in names
    }
    shape |= {"meta": META_FIELDS, "puct_scores": 1 << (EDGE_CLASSES - 1)}
    shape |= {"prior_codes": (FIRST_ROWS["nodes"], moves), "point": moves}
    shape["bias_share"] = 1
    shape |= dict.fromkeys(("bias_sum", "bias_weight"), BUCKETS if value_bias > 0.0 else 0)
    tree = Tree(*(np.zeros(shape[field], KINDS[field]) for field in Tree._fields))
    tree.point[:] = (*on_board_points(size), PASS)
    tree.bias_share[0] = value_bias
    clear(tree)
    return tree


def reserve(tree: Tree, nodes: int, edges: int, limit: int) -> bool:
    """Make room for a number of further rows of each pool.

    Args:
        limit: bytes the whole tree may take.
    Returns:
        bool: False when the limit refused some of it; the pools are usable as they are, and used rows may come back.
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
    # The first field tells the capacity, so it grows last: if memory runs out on the way, nothing is written beyond.
    for field in reversed(fields):
        field.resize((rows, *field.shape[1:]), refcheck=False)
    return True


@kernel
def clear(tree):
    """Drop everything but an unexpanded root."""
    meta = tree.meta
    meta[:] = 0
    meta[META_FREE_NODE:] = NONE
    forget_errors(tree)
    meta[META_ROOT] = new_node(tree, UNEXPANDED)


@inlined_kernel
def new_node(tree, state):
    """Take a node row; returns its number, NONE if the pool is full."""
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
    """Give a node its moves, none of which has an edge.

    Args:
        codes: uint16[A], as :mod:`engine.search.unchosen` keeps priors.
    """
    for index in range(len(codes)):
        tree.prior_codes[node, index] = codes[index]
    tree.best_unexpanded[node] = likeliest(codes)


@kernel
def replace_priors(tree, node, codes):
    """Give a node's moves other priors; moves that have an edge keep it.

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
    """Give a run of edges back."""
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
    """Give an expanded node an edge for the likeliest move without one; returns it, NONE if the pool is full.

    The node must have such a move.
    """
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
    old, root = meta[META_ROOT], np.int64(tree.child[edge])
    meta[META_ROOT_VISITS] = edge_visits(tree, edge)
    # What is taken apart with the old root ends here.
    tree.child[edge] = NONE
    meta[META_ROOT] = root
    meta[META_FULL] = 0
    _drop(tree, old)


@kernel
def _drop(tree, node):
    """Put a node that nothing leads to any more on the list of dropped ones."""
    tree.next[node] = tree.meta[META_DROPPED]
    tree.meta[META_DROPPED] = node


@kernel
def reclaim(tree):
    """Take one dropped node apart: its rows become free, its children are dropped; False if there was none."""
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
