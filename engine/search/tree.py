"""The search tree as flat arrays: what is stored, how it grows, and how a chosen subtree is kept.

Three pools of rows, each an array per field:

* *nodes*: one position each, reached by one path from the root (a tree, not a graph: superko depends on the path);
* *candidates*: for each expanded node the run of its moves, sorted by prior, best first, four bytes each;
* *edges*: for each node the candidates chosen so far, with their statistics. Candidates are first chosen in the
  order of their priors (all unvisited moves have one first-play value), so edge k of a node belongs to its
  candidate k, and selection never looks past the first unvisited candidate.

Most nodes are leaves with no edges at all, so a node costs about 1.6 KiB on 19x19, nearly all of it candidates.
A child's row always comes after its parent's. Rows are only added during a search; :func:`keep_subtree` slides the
kept ones together between searches. Pools grow in place (``ndarray.resize``), therefore only while the tree's lock
is held, and nobody keeps a view of a field beyond that lock.

A node's life::

    UNEXPANDED  -> PENDING      selected as a leaf; one worker owns it
    PENDING     -> EXPANDED     evaluated, its moves stored
    PENDING     -> TERMINAL     the game has ended there; value and score are exact
    PENDING     -> UNEXPANDED   released without a result, or evaluated when memory was full
    PENDING     -> AWAITED      its moves stored with placeholder priors; the network has yet to answer
    AWAITED     -> EXPANDED     the network's priors and value in place of the placeholders
    AWAITED     -> PROVISIONAL  released without a result; the placeholders stay
    PROVISIONAL -> AWAITED      selected as a leaf once more

Playouts pass through AWAITED nodes as through EXPANDED ones, and may already have given them edges.
"""

import math
from typing import NamedTuple

import numpy as np

from engine.jit import kernel

UNEXPANDED, PENDING, PROVISIONAL, AWAITED, EXPANDED, TERMINAL = range(6)
NONE = -1

N_NODES, N_EDGES, N_CANDIDATES, ROOT_VISITS, IN_FLIGHT, FULL, FREE_RUNS = range(7)
"""Indices into ``Tree.meta``; the lists of free edge runs start at FREE_RUNS, one per power of two."""
RUN_CLASSES = 11
"""Edge runs hold 1 to 1024 edges: 626 moves on the largest board fit."""
META_FIELDS = FREE_RUNS + RUN_CLASSES
ROOT = 0

PRIOR_STEPS = 2048.0
"""Candidate priors are kept as -ln(prior) in steps of 1/2048: 0.02% precise, down to e^-32."""
MOST_GROWTH = 64 << 20
"""Bytes a pool grows by at most, so that no growth holds the lock for more than some 20 ms."""


class Tree(NamedTuple):
    """All rows of one search tree; the root is node 0."""

    meta: np.ndarray
    """int64[META_FIELDS]: rows in use per pool, visits of the root, leaves in flight, FULL (1 = a row was refused)"""

    state: np.ndarray
    """uint8[nodes]: UNEXPANDED, PENDING, PROVISIONAL, AWAITED, EXPANDED or TERMINAL"""
    value: np.ndarray
    """float32[nodes]: the node's own evaluation, -1 to 1 for its side to move; 0 before, AWAITED its parent's"""
    score: np.ndarray
    """float32[nodes]: the same in points"""
    first_edge: np.ndarray
    """int32[nodes]: where its run of edges starts; NONE without edges"""
    n_edges: np.ndarray
    """int16[nodes]: edges in use"""
    edge_room: np.ndarray
    """int16[nodes]: length of the run, a power of two; 0 without edges"""
    first_candidate: np.ndarray
    """int64[nodes]: where its candidates start; NONE before expansion. The cell before holds the node's number."""
    n_candidates: np.ndarray
    """int16[nodes]: its candidates"""
    moved: np.ndarray
    """int32[nodes]: working memory of :func:`keep_subtree`"""

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
    W_s: np.ndarray
    """float64[edges]: sum of leads in points, one a visit, for the player who chose the edge"""
    in_flight: np.ndarray
    """int32[edges]: playouts under way through the edge; each weighs as ``virtual_loss`` lost visits"""
    child: np.ndarray
    """int32[edges]: the node behind, NONE before the first visit; in a free run the next free run"""
    move: np.ndarray
    """int16[edges]: the point played, PASS = 0"""
    owner: np.ndarray
    """int32[edges]: at a run's first edge its node, or minus the run's length where it is free"""

    candidate: np.ndarray
    """uint32[candidates]: -ln(prior) * PRIOR_STEPS in the upper 16 bits, the point in the lower; runs ascend"""


POOLS = {
    "nodes": (
        "state",
        "value",
        "score",
        "first_edge",
        "n_edges",
        "edge_room",
        "first_candidate",
        "n_candidates",
        "moved",
    ),
    "edges": ("P", "N_v", "W_v", "N_r", "W_r", "W_s", "in_flight", "child", "move", "owner"),
    "candidates": ("candidate",),
}
KINDS = {
    **dict.fromkeys(("state",), np.uint8),
    **dict.fromkeys(("value", "score", "P"), np.float32),
    **dict.fromkeys(("first_edge", "moved", "N_v", "N_r", "in_flight", "child", "owner"), np.int32),
    **dict.fromkeys(("n_edges", "edge_room", "n_candidates", "move"), np.int16),
    **dict.fromkeys(("meta", "first_candidate"), np.int64),
    **dict.fromkeys(("W_v", "W_r", "W_s"), np.float64),
    "candidate": np.uint32,
}
FIRST_ROWS = {"nodes": 256, "edges": 1024, "candidates": 16384}


def new_tree() -> Tree:
    """A tree of one unexpanded root, with little room."""
    rows = {field: FIRST_ROWS[pool] for pool, names in POOLS.items() for field in names}
    rows["meta"] = META_FIELDS
    tree = Tree(*(np.zeros(rows[field], KINDS[field]) for field in Tree._fields))
    clear(tree)
    return tree


def byte_count(tree: Tree) -> int:
    """Memory the tree occupies."""
    return sum(array.nbytes for array in tree)


def reserve(tree: Tree, nodes: int, edges: int, candidates: int, limit: int) -> bool:
    """Make room for so many more rows of each pool.

    Args:
        limit: bytes the whole tree may take.
    Returns:
        bool: False when the limit refused some of it; the pools are usable as they are.
    Threads: the tree's lock is held.
    """
    used = (int(tree.meta[N_NODES]), int(tree.meta[N_EDGES]), int(tree.meta[N_CANDIDATES]))
    wanted = (used[0] + nodes, used[1] + edges, used[2] + candidates)
    if wanted[0] <= len(tree.state) and wanted[1] <= len(tree.P) and wanted[2] <= len(tree.candidate):
        return True
    grown = [_grow(tree, pool, rows, limit) for pool, rows in zip(POOLS, wanted, strict=True)]
    return all(grown)


def _grow(tree: Tree, pool: str, wanted: int, limit: int) -> bool:
    """Double a pool that holds fewer rows than wanted, by at most MOST_GROWTH and a sixteenth of the limit."""
    fields = [getattr(tree, name) for name in POOLS[pool]]
    have, row = len(fields[0]), sum(field.itemsize for field in fields)
    if wanted <= have:
        return True
    most = have + min(MOST_GROWTH, limit // 16) // row
    left = have + (limit - byte_count(tree)) // row
    rows = min(max(wanted, min(2 * have, most)), left)
    if rows < wanted:
        return False
    # The first field tells the capacity, so it grows last: if memory runs out on the way, nothing is written beyond.
    for field in reversed(fields):
        field.resize(rows, refcheck=False)
    return True


@kernel
def clear(tree):
    """Drop everything but an unexpanded root."""
    meta = tree.meta
    meta[:] = 0
    meta[FREE_RUNS:] = NONE
    new_node(tree, UNEXPANDED)


@kernel
def new_node(tree, state):
    """Take a node row; returns its number, NONE if the pool is full."""
    node = tree.meta[N_NODES]
    if node == len(tree.state):
        return NONE
    tree.meta[N_NODES] = node + 1
    tree.state[node] = state
    tree.value[node] = 0.0
    tree.score[node] = 0.0
    tree.first_edge[node] = NONE
    tree.n_edges[node] = 0
    tree.edge_room[node] = 0
    tree.first_candidate[node] = NONE
    tree.n_candidates[node] = 0
    return node


@kernel
def pack_candidate(surprise, point):
    """A candidate from -ln(prior) and its point."""
    steps = min(surprise * PRIOR_STEPS + 0.5, 65535.0)
    return (np.uint32(steps) << np.uint32(16)) | np.uint32(point)


@kernel
def candidate_prior(candidate):
    """The prior of a candidate."""
    return math.exp(-np.float64(candidate >> np.uint32(16)) / PRIOR_STEPS)


@kernel
def candidate_point(candidate):
    """The point of a candidate."""
    return np.int64(candidate & np.uint32(0xFFFF))


@kernel
def store_candidates(tree, node, candidates, count):
    """Give a node its moves; False if the pool is full.

    Args:
        candidates: uint32[>= count], ascending.
    """
    start = tree.meta[N_CANDIDATES]
    if start + count + 1 > len(tree.candidate):
        return False
    tree.candidate[start] = np.uint32(node)
    for i in range(count):
        tree.candidate[start + 1 + i] = candidates[i]
    tree.meta[N_CANDIDATES] = start + count + 1
    tree.first_candidate[node] = start + 1
    tree.n_candidates[node] = count
    return True


@kernel
def replace_priors(tree, node, candidates):
    """Give a node's moves other priors, from candidates of the same moves.

    Moves that have an edge keep their places at the front, the others follow by prior.

    Args:
        candidates: uint32[>= the node's number of candidates], ascending.
    """
    first, edges, n_edges = tree.first_candidate[node], tree.first_edge[node], tree.n_edges[node]
    write = first + n_edges
    for i in range(tree.n_candidates[node]):
        candidate, held = candidates[i], NONE
        for slot in range(n_edges):
            if tree.move[edges + slot] == candidate_point(candidate):
                held = slot
        if held == NONE:
            tree.candidate[write] = candidate
            write += 1
        else:
            tree.candidate[first + held] = candidate
            tree.P[edges + held] = candidate_prior(candidate)


@kernel
def _take_run(tree, run_class):
    """A run of ``2 ** run_class`` edges, used before or new; NONE if the pool is full."""
    meta = tree.meta
    first = meta[FREE_RUNS + run_class]
    if first != NONE:
        meta[FREE_RUNS + run_class] = tree.child[first]
        return first
    first = meta[N_EDGES]
    if first + (1 << run_class) > len(tree.P):
        return NONE
    meta[N_EDGES] = first + (1 << run_class)
    return first


@kernel
def _copy_edge(tree, target, source):
    """Copy one edge's statistics and move."""
    tree.P[target] = tree.P[source]
    tree.N_v[target] = tree.N_v[source]
    tree.W_v[target] = tree.W_v[source]
    tree.N_r[target] = tree.N_r[source]
    tree.W_r[target] = tree.W_r[source]
    tree.W_s[target] = tree.W_s[source]
    tree.in_flight[target] = tree.in_flight[source]
    tree.child[target] = tree.child[source]
    tree.move[target] = tree.move[source]


@kernel
def _widen(tree, node):
    """Move a node's edges to a run twice as long (the first holds two); False if the pool is full."""
    room = tree.edge_room[node]
    run_class = 1
    while (1 << run_class) <= room:
        run_class += 1
    first = _take_run(tree, run_class)
    if first == NONE:
        return False
    old = tree.first_edge[node]
    for slot in range(tree.n_edges[node]):
        _copy_edge(tree, first + slot, old + slot)
    if room > 0:
        tree.owner[old] = -room
        tree.child[old] = tree.meta[FREE_RUNS + run_class - 1]
        tree.meta[FREE_RUNS + run_class - 1] = old
    tree.owner[first] = node
    tree.first_edge[node] = first
    tree.edge_room[node] = 1 << run_class
    return True


@kernel
def add_edges(tree, node, count):
    """Give an expanded node edges for its first ``count`` candidates; False if the pool is full."""
    for slot in range(tree.n_edges[node], count):
        if slot == tree.edge_room[node] and not _widen(tree, node):
            return False
        edge = tree.first_edge[node] + slot
        candidate = tree.candidate[tree.first_candidate[node] + slot]
        tree.P[edge] = candidate_prior(candidate)
        tree.N_v[edge] = 0
        tree.W_v[edge] = 0.0
        tree.N_r[edge] = 0
        tree.W_r[edge] = 0.0
        tree.W_s[edge] = 0.0
        tree.in_flight[edge] = 0
        tree.child[edge] = NONE
        tree.move[edge] = candidate_point(candidate)
        tree.n_edges[node] = slot + 1
    return True


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
def keep_subtree(tree, node, visits):
    """Make ``node`` the root and give back all rows outside its subtree.

    Args:
        visits: completed playouts through the node, its own evaluation included.
    Threads: the tree's lock is held and nothing is in flight.
    """
    meta, moved = tree.meta, tree.moved
    n_nodes = meta[N_NODES]
    for i in range(n_nodes):
        moved[i] = NONE
    moved[node] = ROOT
    kept = 0
    for i in range(node, n_nodes):
        if moved[i] != NONE:
            moved[i] = kept
            kept += 1
            for edge in range(tree.first_edge[i], tree.first_edge[i] + tree.n_edges[i]):
                if tree.child[edge] != NONE:
                    moved[tree.child[edge]] = ROOT
    _slide_candidates(tree)
    _slide_edges(tree)
    for i in range(node, n_nodes):
        to = moved[i]
        if to != NONE:
            tree.state[to] = tree.state[i]
            tree.value[to] = tree.value[i]
            tree.score[to] = tree.score[i]
            tree.first_edge[to] = tree.first_edge[i]
            tree.n_edges[to] = tree.n_edges[i]
            tree.edge_room[to] = tree.edge_room[i]
            tree.first_candidate[to] = tree.first_candidate[i]
            tree.n_candidates[to] = tree.n_candidates[i]
    meta[N_NODES] = kept
    meta[ROOT_VISITS] = visits
    meta[FULL] = 0


@kernel
def _slide_candidates(tree):
    """Close the gaps between the candidates of kept nodes (``moved`` is not NONE)."""
    read, write = 0, 0
    while read < tree.meta[N_CANDIDATES]:
        node = np.int64(tree.candidate[read])
        length = tree.n_candidates[node] + 1
        if tree.moved[node] != NONE:
            tree.candidate[write] = np.uint32(tree.moved[node])
            for i in range(1, length):
                tree.candidate[write + i] = tree.candidate[read + i]
            tree.first_candidate[node] = write + 1
            write += length
        read += length
    tree.meta[N_CANDIDATES] = write


@kernel
def _slide_edges(tree):
    """Close the gaps between the edge runs of kept nodes and renumber their children; no free runs remain."""
    read, write = 0, 0
    while read < tree.meta[N_EDGES]:
        node = tree.owner[read]
        if node < 0:
            read -= node
            continue
        room = np.int64(tree.edge_room[node])
        if tree.moved[node] != NONE:
            for slot in range(tree.n_edges[node]):
                _copy_edge(tree, write + slot, read + slot)
                if tree.child[write + slot] != NONE:
                    tree.child[write + slot] = tree.moved[tree.child[write + slot]]
            tree.first_edge[node] = write
            tree.owner[write] = tree.moved[node]
            write += room
        read += room
    tree.meta[N_EDGES] = write
    tree.meta[FREE_RUNS:] = NONE
