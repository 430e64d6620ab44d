"""The search tree as flat arrays: what is stored, how it grows, and how rows are used again.

Two pools of rows, each an array per field:

* *nodes*: one position each, reached by one path from the root, with the priors of its unchosen moves, two
  bytes each (:mod:`engine.search.unchosen`);
* *edges*: for each node the moves chosen so far, with their statistics. Moves are first chosen in the order of their
  priors (all unvisited moves have one first-play value), so the next edge is always for the likeliest unchosen move,
  and selection never looks past it.

Most nodes are leaves with no edges at all, so a node costs 769 bytes on 19x19, most of it priors, and 54 for the edge
that leads to it. Pools grow in place (``ndarray.resize``), therefore only while the tree's lock is held, and no view of
a field is kept beyond that lock.

When the root moves on (:func:`advance_root`), what is left behind is only marked as dropped: its rows come back one
node at a time when new rows are wanted, so no search ever waits for a tree to be cleaned up.

A node's life::

    UNEXPANDED  -> PENDING      selected as a leaf; one worker owns it
    PENDING     -> EXPANDED     evaluated, its moves stored
    PENDING     -> TERMINAL     the game has ended there; value and score are exact
    PENDING     -> UNEXPANDED   released without a result
    PENDING     -> AWAITED      its moves stored with placeholder priors; the network has yet to answer
    AWAITED     -> EXPANDED     the network's priors and value in place of the placeholders
    AWAITED     -> PROVISIONAL  released without a result; the placeholders stay
    PROVISIONAL -> AWAITED      selected as a leaf once more

Playouts pass through AWAITED nodes as through EXPANDED ones, and may already have given them edges.
"""

from typing import NamedTuple

import numpy as np

UNEXPANDED, PENDING, PROVISIONAL, AWAITED, EXPANDED, TERMINAL = range(6)
NONE = -1

META_ROOT, META_ROOT_VISITS, META_IN_FLIGHT, META_FULL, META_USED_NODES = range(5)
"""Indices into ``Tree.meta``: the root's node and its visits, leaves in flight, 1 = a row was refused, nodes in use"""
META_N_NODES, META_N_EDGES = range(5, 7)
"""Further indices: rows ever used of each pool"""
META_FREE_NODE, META_DROPPED, META_FREE_EDGES = range(7, 10)
"""And the heads of lists; those of free edge runs start at META_FREE_EDGES, one per power of two."""
EDGE_CLASSES = 11
"""Edge runs hold 1 to 1024 edges: 626 moves on the largest board fit."""
META_FIELDS = META_FREE_EDGES + EDGE_CLASSES


class Tree(NamedTuple):
    """All rows of one search tree; A = N*N + 1 policy entries."""

    meta: np.ndarray
    """int64[META_FIELDS]: counts, and the first rows of the lists of rows to be used again (NONE = empty)"""

    state: np.ndarray
    """uint8[nodes]: UNEXPANDED, PENDING, PROVISIONAL, AWAITED, EXPANDED or TERMINAL"""
    value: np.ndarray
    """float32[nodes]: the node's own evaluation, -1 to 1 for its side to move; 0 before, AWAITED its parent's"""
    lead: np.ndarray
    """float32[nodes]: the same in points"""
    expanded_prior_mass: np.ndarray
    """float32[nodes]: sum of the priors of its edges"""
    first_edge: np.ndarray
    """int32[nodes]: where its run of edges starts; NONE without edges"""
    n_edges: np.ndarray
    """int16[nodes]: edges in use"""
    edge_room: np.ndarray
    """int16[nodes]: length of the run, a power of two; 0 without edges"""
    best_unexpanded: np.ndarray
    """uint32[nodes]: the likeliest move without an edge (:func:`engine.search.unchosen.likeliest`), NO_MOVE at first"""
    prior_codes: np.ndarray
    """uint16[nodes, A]: codes of the priors of the moves without an edge, by policy index; nothing before expansion"""
    next: np.ndarray
    """int32[nodes]: in the list of free or of dropped nodes the next one"""
    bucket: np.ndarray
    """int32[nodes]: where values are corrected (:mod:`engine.search.value_bias`), its bucket; NONE without"""
    network_value: np.ndarray
    """float32[nodes]: there, what the network said; ``value`` is the corrected one"""
    entered_error: np.ndarray
    """float32[nodes]: there, the weighted error that it has entered in its bucket"""
    entered_weight: np.ndarray
    """float32[nodes]: and the weight"""

    P: np.ndarray
    """float32[edges]: prior"""
    N_v: np.ndarray
    """int32[edges]: evaluations by the network (or exact results) backed up through the edge"""
    W_v: np.ndarray
    """float64[edges]: their sum, for the player who chose the edge"""
    N_r: np.ndarray
    """int32[edges]: rollout results (or exact results) backed up through the edge"""
    W_r: np.ndarray
    """float64[edges]: their sum, for the player who chose the edge"""
    W_sq: np.ndarray
    """float64[edges]: sum of squared results, network and rollout mixed, one a visit"""
    W_lead: np.ndarray
    """float64[edges]: sum of leads in points, one a visit, for the player who chose the edge"""
    in_flight: np.ndarray
    """int32[edges]: playouts under way through the edge"""
    child: np.ndarray
    """int32[edges]: the node behind, NONE before the first visit; in a free run the next free run"""
    move: np.ndarray
    """int16[edges]: the point played, PASS = 0"""

    point: np.ndarray
    """int16[A]: the point of each policy index, PASS = 0"""
    puct_scores: np.ndarray
    """float64[1 << (EDGE_CLASSES - 1)]: working memory of selection"""
    bias_sum: np.ndarray
    """float64[buckets, a power of two]: where values are corrected, sum of the nodes' weighted errors; else empty"""
    bias_weight: np.ndarray
    """float64[buckets]: sum of their weights"""
    bias_share: np.ndarray
    """float64[1]: share of a bucket's mean error by which values are corrected"""


POOLS = {
    "nodes": (
        *("state", "value", "lead", "expanded_prior_mass", "next"),
        *("first_edge", "n_edges", "edge_room", "best_unexpanded", "prior_codes"),
        *("bucket", "network_value", "entered_error", "entered_weight"),
    ),
    "edges": ("P", "N_v", "W_v", "N_r", "W_r", "W_sq", "W_lead", "in_flight", "child", "move"),
}
KINDS = {
    **dict.fromkeys(("state",), np.uint8),
    **dict.fromkeys(("value", "lead", "expanded_prior_mass", "P"), np.float32),
    **dict.fromkeys(("network_value", "entered_error", "entered_weight"), np.float32),
    **dict.fromkeys(("first_edge", "next", "N_v", "N_r", "in_flight", "child"), np.int32),
    "bucket": np.int32,
    **dict.fromkeys(("n_edges", "edge_room", "move", "point"), np.int16),
    **dict.fromkeys(("W_v", "W_r", "W_sq", "W_lead", "puct_scores"), np.float64),
    **dict.fromkeys(("bias_sum", "bias_weight", "bias_share"), np.float64),
    "prior_codes": np.uint16,
    "best_unexpanded": np.uint32,
    "meta": np.int64,
}
FIRST_ROWS = {"nodes": 256, "edges": 4096}


def byte_count(tree: Tree) -> int:
    """Memory the tree occupies."""
    return sum(array.nbytes for array in tree)


def used_bytes(tree: Tree) -> int:
    """Memory of the rows ever used, those waiting to be used again included."""
    used = dict(zip(POOLS, (META_N_NODES, META_N_EDGES), strict=True))
    return sum(int(tree.meta[used[pool]]) * row_bytes(tree, pool) for pool in POOLS)


def row_bytes(tree: Tree, pool: str) -> int:
    """Memory of one row of a pool."""
    return sum(getattr(tree, name)[:1].nbytes for name in POOLS[pool])
