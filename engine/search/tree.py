"""The search tree as flat arrays: its fields, its growth, and the allocation and release of rows.

Two pools of rows, each an array per field:

* *nodes*: one position each, reached by one path from the root, with the priors of its moves without an edge, two bytes
  each (:mod:`engine.search.priors`);
* *edges*: for each node the moves selected so far, with their statistics, in one block of consecutive rows. Moves are
  first selected in the order of their priors, since all unvisited moves of a node have the same first-play value. So
  the next edge is always for the likeliest move without an edge, and of those selection considers only this one.

Most nodes are leaves without edges, so a node costs 769 bytes on 19x19, most of it priors, and 54 for the edge that
leads to it. Pools grow in place (``ndarray.resize``), so they grow only while the tree's lock is held, and no view of
a field outlives that lock. Released rows wait in free lists: one of nodes, and for each power of two one of blocks of
that many edges. If a list is empty, a longer block is split.

When the root advances (:func:`advance_root`), the nodes outside its subtree are only marked as dropped. Their rows are
reclaimed one node at a time when new rows are needed, so a search never waits for a cleanup.

A node's life::

    UNEXPANDED  -> PENDING      selected as a leaf; one worker owns it
    UNEXPANDED  -> TERMINAL     selected for a rollout alone, but the game has ended there
    PENDING     -> EXPANDED     evaluated, its moves stored
    PENDING     -> TERMINAL     the game has ended there; value and lead are exact
    PENDING     -> UNEXPANDED   released without a result
    PENDING     -> AWAITED      its moves stored with placeholder priors until the network answers
    AWAITED     -> EXPANDED     the network's priors and value replace the placeholders
    AWAITED     -> PROVISIONAL  released without a result; the placeholders stay
    PROVISIONAL -> AWAITED      selected as a leaf again

Playouts pass through AWAITED nodes as through EXPANDED ones, and may add edges to them. While ``expand_after`` keeps a
node UNEXPANDED, ``evaluation`` says whether its value has been backed up: NOT_EVALUATED -> IN_EVALUATION -> EVALUATED.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.go.geometry import PASS, on_board_points
from engine.search.priors import GONE, NO_MOVE, index_of_best, likeliest, prior_of, prior_of_best
from engine.system.arrays import Field, allocate, fields_of
from engine.system.jit import inlined_kernel, kernel

UNEXPANDED, PENDING, PROVISIONAL, AWAITED, EXPANDED, TERMINAL = range(6)
NOT_EVALUATED, IN_EVALUATION, EVALUATED = range(3)
NONE = -1

META_ROOT, META_ROOT_VISITS, META_IN_FLIGHT, META_FULL, META_USED_NODES = range(5)
"""Indices into ``Tree.meta``: row of the root; its visits; leaves in flight; 1 = a pool refused a row; nodes in use"""
META_N_NODES, META_N_EDGES = range(5, 7)
"""Indices into ``Tree.meta``: number of rows of each pool that were ever used, released ones included"""
META_FREE_NODE, META_DROPPED, META_FREE_EDGES = range(7, 10)
"""Indices into ``Tree.meta``: heads of the lists of free nodes, of dropped nodes and, from META_FREE_EDGES on, of free
blocks of edges, one for each power of two"""
EDGE_CLASSES = 11
"""Number of lengths of blocks of edges, 1 to 1024 by powers of two: enough for the 626 moves of the largest board"""
META_FIELDS = META_FREE_EDGES + EDGE_CLASSES


class Tree(NamedTuple):
    """All rows of one search tree; A = N*N + 1 policy entries, L = length of the longest block of edges.

    ``nodes`` and ``edges`` are the pools' numbers of rows. ``buckets`` is a power of two with value bias correction
    (:mod:`engine.search.value_bias`), else 0.
    """

    meta: Annotated[np.ndarray, "int64[META_FIELDS]"]
    """counts and heads of lists (NONE = empty), by the META constants"""

    state: Annotated[np.ndarray, "uint8[nodes]"]
    """UNEXPANDED, PENDING, PROVISIONAL, AWAITED, EXPANDED or TERMINAL"""
    evaluation: Annotated[np.ndarray, "uint8[nodes]"]
    """of a node evaluated before its expansion: NOT_EVALUATED, IN_EVALUATION (requested) or EVALUATED (backed up)"""
    rolled: Annotated[np.ndarray, "int32[nodes]"]
    """number of completed playouts that ended at the node without expanding it"""
    value: Annotated[np.ndarray, "float32[nodes]"]
    """the node's own evaluation, -1 to 1 for its side to move; 0 if unevaluated; while AWAITED, its parent's mean value
    for the same side"""
    lead: Annotated[np.ndarray, "float32[nodes]"]
    """the lead in points of the node's own evaluation, for its side to move"""
    edge_prior_mass: Annotated[np.ndarray, "float32[nodes]"]
    """sum of the priors of the node's edges"""
    first_edge: Annotated[np.ndarray, "int32[nodes]"]
    """first row of the node's block of edges; NONE without edges"""
    n_edges: Annotated[np.ndarray, "int16[nodes]"]
    """number of the node's edges"""
    edge_room: Annotated[np.ndarray, "int16[nodes]"]
    """length of the node's block of edges, a power of two; 0 without edges"""
    best_without_edge: Annotated[np.ndarray, "uint32[nodes]"]
    """the likeliest move without an edge, as from :func:`engine.search.priors.likeliest`; NO_MOVE before expansion"""
    prior_codes: Annotated[np.ndarray, "uint16[nodes, A]"]
    """codes of the priors of the moves without an edge, by policy index, else GONE; undefined before expansion"""
    next: Annotated[np.ndarray, "int32[nodes]"]
    """next node in the list of free nodes, or in that of dropped nodes; undefined for nodes in use"""
    bucket: Annotated[np.ndarray, "int32[nodes]"]
    """the node's value bias bucket (:mod:`engine.search.value_bias`); NONE = in no bucket"""
    network_value: Annotated[np.ndarray, "float32[nodes]"]
    """for a node in a bucket, the network's value; ``value`` is the corrected one"""
    entered_error: Annotated[np.ndarray, "float32[nodes]"]
    """for a node in a bucket, its weighted error as contained in ``bias_sum``"""
    entered_weight: Annotated[np.ndarray, "float32[nodes]"]
    """for a node in a bucket, its weight as contained in ``bias_weight``"""

    P: Annotated[np.ndarray, "float32[edges]"]
    """prior of the move"""
    N_v: Annotated[np.ndarray, "int32[edges]"]
    """number of network values (or exact results) backed up through the edge"""
    W_v: Annotated[np.ndarray, "float64[edges]"]
    """sum of the values counted by N_v, for the player who chose the edge"""
    N_r: Annotated[np.ndarray, "int32[edges]"]
    """number of rollout results (or exact results) backed up through the edge"""
    W_r: Annotated[np.ndarray, "float64[edges]"]
    """sum of the results counted by N_r, for the player who chose the edge"""
    W_sq: Annotated[np.ndarray, "float64[edges]"]
    """sum of the squared results of the visits, each a mixture of network value and rollout result"""
    W_lead: Annotated[np.ndarray, "float64[edges]"]
    """sum of the visits' leads in points, for the player who chose the edge"""
    in_flight: Annotated[np.ndarray, "int32[edges]"]
    """number of playouts in flight through the edge"""
    child: Annotated[np.ndarray, "int32[edges]"]
    """row of the child node, NONE before the first selection; in the first row of a free block, the first row of the
    next free block of this length"""
    move: Annotated[np.ndarray, "int16[edges]"]
    """the point played, PASS = 0"""

    point: Annotated[np.ndarray, "int16[A]"]
    """the point of each policy index, PASS = 0"""
    puct_scores: Annotated[np.ndarray, "float64[L]"]
    """working memory of selection: PUCT scores of a node's edges"""
    bias_sum: Annotated[np.ndarray, "float64[buckets]"]
    """for each value bias bucket, the sum of the weighted errors of its nodes"""
    bias_weight: Annotated[np.ndarray, "float64[buckets]"]
    """for each value bias bucket, the sum of the weights of its nodes"""
    bias_share: Annotated[np.ndarray, "float64[1]"]
    """factor from a bucket's mean error to the correction of a value (KataGo's ``subtreeValueBiasFactor``)"""


POOLS = {
    pool: [name for name, field in fields_of(Tree).items() if isinstance(field, Field) and field.shape[0] == pool]
    for pool in ("nodes", "edges")
}
"""For each pool, the names of its fields in :class:`Tree`"""
FIRST_ROWS = {"nodes": 256, "edges": 4096}
"""Number of rows of each pool in a new tree"""


def byte_count(tree: Tree) -> int:
    """Bytes allocated for the tree's arrays."""
    return sum(array.nbytes for array in tree)


def used_bytes(tree: Tree) -> int:
    """Bytes of the rows that were ever used, including released ones."""
    used = dict(zip(POOLS, (META_N_NODES, META_N_EDGES), strict=True))
    return sum(int(tree.meta[used[pool]]) * row_bytes(tree, pool) for pool in POOLS)


def row_bytes(tree: Tree, pool: str) -> int:
    """Bytes of one row of a pool, all its fields together."""
    return sum(getattr(tree, name)[:1].nbytes for name in POOLS[pool])


BUCKETS = 1 << 16
"""Number of value bias buckets (:mod:`engine.search.value_bias`), a power of two; a key's low bits are its bucket."""
MOST_GROWTH = 16 << 20
"""Bytes by which a pool grows at most at a time (unless more are needed at once), so that the lock is held for about 20
ms or less"""


def new_tree(size: int, value_bias: float = 0.0) -> Tree:
    """Make a tree of one unexpanded root, with ``FIRST_ROWS`` rows.

    Args:
        size: board size.
        value_bias: KataGo's ``subtreeValueBiasFactor`` (:mod:`engine.search.value_bias`); 0 = no correction.
    """
    buckets = BUCKETS if value_bias > 0.0 else 0
    longest = 1 << (EDGE_CLASSES - 1)
    tree = allocate(Tree, **FIRST_ROWS, A=size * size + 1, L=longest, buckets=buckets)
    tree.point[:] = (*on_board_points(size), PASS)
    tree.bias_share[0] = value_bias
    clear(tree)
    return tree


def reserve(tree: Tree, nodes: int, edges: int, limit: int) -> bool:
    """Grow each pool that has fewer rows never used than wanted.

    Args:
        nodes, edges: numbers of rows wanted that were never used.
        limit: memory limit of the whole tree, in bytes.
    Returns:
        bool: False if the limit prevented that; the pools stay usable, and released rows are reused.
    Threads: the tree's lock is held.
    """
    wanted = (int(tree.meta[META_N_NODES]) + nodes, int(tree.meta[META_N_EDGES]) + edges)
    if wanted[0] <= len(tree.state) and wanted[1] <= len(tree.P):
        return True
    grown = [_grow(tree, pool, rows, limit) for pool, rows in zip(POOLS, wanted, strict=True)]
    return all(grown)


def _grow(tree: Tree, pool: str, wanted: int, limit: int) -> bool:
    """Grow a pool that has fewer rows than wanted.

    It grows to twice its rows, but by at most MOST_GROWTH and a sixteenth of the limit unless more are wanted.

    Returns:
        bool: False, and the pool unchanged, if the limit does not allow the wanted number.
    """
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
    """Release all nodes and edges, empty the value bias buckets and make a new unexpanded root."""
    meta = tree.meta
    meta[:] = 0
    meta[META_FREE_NODE:] = NONE
    forget_errors(tree)
    meta[META_ROOT] = new_node(tree, UNEXPANDED)


@inlined_kernel
def new_node(tree, state):
    """Allocate a node in a state, without edges; returns its row, NONE if the pool is full."""
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
    tree.evaluation[node] = NOT_EVALUATED
    tree.rolled[node] = 0
    tree.value[node] = 0.0
    tree.lead[node] = 0.0
    tree.edge_prior_mass[node] = 0.0
    tree.first_edge[node] = NONE
    tree.n_edges[node] = 0
    tree.edge_room[node] = 0
    tree.best_without_edge[node] = NO_MOVE
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
    tree.best_without_edge[node] = likeliest(codes)


@kernel
def replace_priors(tree, node, codes):
    """Replace the priors of a node's moves, also in the node's edges, which stay.

    Args:
        codes: uint16[A], prior codes of the same moves.
    """
    row, first, mass = tree.prior_codes[node], np.int64(tree.first_edge[node]), 0.0
    for index in range(len(row)):
        row[index] = codes[index]
        for edge in range(first, first + tree.n_edges[node]):
            if tree.move[edge] == tree.point[index]:
                tree.P[edge] = prior_of(row[index])
                mass += tree.P[edge]
                row[index] = GONE
    tree.edge_prior_mass[node] = mass
    tree.best_without_edge[node] = likeliest(row)


@kernel
def _edge_class(room):
    """Class of a block of edges, which numbers its free list: the base-2 logarithm of its length ``room``."""
    block_class = 0
    while (1 << block_class) < room:
        block_class += 1
    return block_class


@kernel
def _take_edges(tree, block_class):
    """Allocate a block of ``2 ** block_class`` edges; returns its first row, NONE if the pool is full."""
    meta = tree.meta
    for _ in range(2):
        for longer in range(block_class, EDGE_CLASSES):
            first = meta[META_FREE_EDGES + longer]
            if first != NONE:
                meta[META_FREE_EDGES + longer] = tree.child[first]
                while longer > block_class:
                    longer -= 1
                    _free_edges(tree, first + (1 << longer), longer)
                return first
        if not reclaim(tree):
            break
    first = meta[META_N_EDGES]
    if first + (1 << block_class) > len(tree.P):
        return NONE
    meta[META_N_EDGES] = first + (1 << block_class)
    return first


@kernel
def _free_edges(tree, first, block_class):
    """Release the block of ``2 ** block_class`` edges that begins at row ``first``."""
    tree.child[first] = tree.meta[META_FREE_EDGES + block_class]
    tree.meta[META_FREE_EDGES + block_class] = first


@kernel
def _lengthen(tree, node):
    """Move a node's edges to a block twice as long (the first block has length 2); False if the pool is full."""
    room = tree.edge_room[node]
    block_class = 1 if room == 0 else _edge_class(room) + 1
    first = _take_edges(tree, block_class)
    if first == NONE:
        return False
    old = tree.first_edge[node]
    for index in range(tree.n_edges[node]):
        target, source = first + index, old + index
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
        _free_edges(tree, old, block_class - 1)
    tree.first_edge[node] = first
    tree.edge_room[node] = 1 << block_class
    return True


@inlined_kernel
def add_edge(tree, node):
    """Add an edge for an expanded node's likeliest move without one; returns its row, NONE if the pool is full.

    The node must have such a move.
    """
    n_edges = np.int64(tree.n_edges[node])
    if n_edges == tree.edge_room[node] and not _lengthen(tree, node):
        return NONE
    top = tree.best_without_edge[node]
    tree.prior_codes[node, index_of_best(top)] = GONE
    tree.best_without_edge[node] = likeliest(tree.prior_codes[node])
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
    tree.edge_prior_mass[node] += tree.P[edge]
    tree.n_edges[node] = n_edges + 1
    return edge


@kernel
def edge_visits(tree, edge):
    """Number of completed playouts through an edge: each adds 1 to N_v, to N_r or to both."""
    return max(tree.N_v[edge], tree.N_r[edge])


@kernel
def follow(tree, node, move):
    """The row of a node's edge that plays a move (a point); NONE if the node has no such edge."""
    for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
        if tree.move[edge] == move:
            return edge
    return NONE


@kernel
def advance_root(tree, edge):
    """Make the child of the root's edge ``edge`` the new root; nodes outside the child's subtree are dropped.

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
    """Add a node that is no longer reachable from the root to the list of dropped nodes."""
    tree.next[node] = tree.meta[META_DROPPED]
    tree.meta[META_DROPPED] = node


@kernel
def reclaim(tree):
    """Release one dropped node with its edges, and drop its children; False if no node is dropped."""
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
