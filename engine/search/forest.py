"""Many small trees in one block of memory, one leaf in flight in each, so that one kernel call can walk through all.

A forest is a :class:`Tree`, and its leaves are a :class:`Batch`, of which every array has one more axis in front: the
number of the tree. :func:`tree_of` and :func:`leaf_of` give a row of them as views to the kernels of this room, which
know no forest. Room is fixed, and no values are corrected.
"""

import numpy as np

from engine.search.batch import Batch, new_batch
from engine.search.pools import POOLS, Tree
from engine.search.tree import new_tree
from engine.system.jit import kernel

EDGES_PER_VISIT = 4
"""A playout adds one edge at most; a run of edges has room for up to twice as many, beside the one it came from."""


def new_forest(size: int, trees: int, visits: int) -> tuple[Tree, Batch]:
    """Trees and their leaves, all zeros but for the moves' points: :func:`engine.search.tree.clear` begins a tree.

    Args:
        size: of the board.
        visits: of a root, those of a kept subtree included. A playout adds one node at most, and what is dropped is
            taken apart before a row is refused.
    """
    moves = size * size + 1
    rows = {"nodes": visits + 2, "edges": EDGES_PER_VISIT * visits + (2 << moves.bit_length())}
    lengths = {name: rows[pool] for pool, names in POOLS.items() for name in names}
    lengths["puct_scores"] = moves
    one = new_tree(size)
    shapes = [(lengths.get(name, len(array)), *array.shape[1:]) for name, array in zip(Tree._fields, one, strict=True)]
    forest = Tree(*(np.zeros((trees, *shape), array.dtype) for shape, array in zip(shapes, one, strict=True)))
    forest.point[:] = one.point
    return forest, Batch(*(np.zeros((trees, *array.shape), array.dtype) for array in new_batch(size, 1)))


@kernel
def tree_of(forest, row):
    """The tree of a row, as views."""
    return Tree(
        forest.meta[row],
        forest.state[row],
        forest.value[row],
        forest.lead[row],
        forest.expanded_prior_mass[row],
        forest.first_edge[row],
        forest.n_edges[row],
        forest.edge_room[row],
        forest.best_unexpanded[row],
        forest.prior_codes[row],
        forest.next[row],
        forest.bucket[row],
        forest.network_value[row],
        forest.entered_error[row],
        forest.entered_weight[row],
        forest.P[row],
        forest.N_v[row],
        forest.W_v[row],
        forest.N_r[row],
        forest.W_r[row],
        forest.W_sq[row],
        forest.W_lead[row],
        forest.in_flight[row],
        forest.child[row],
        forest.move[row],
        forest.point[row],
        forest.puct_scores[row],
        forest.bias_sum[row],
        forest.bias_weight[row],
        forest.bias_share[row],
    )


@kernel
def leaf_of(leaves, row):
    """The leaf in flight of a row's tree, as views: a batch of one."""
    return Batch(
        leaves.node[row],
        leaves.edge_index[row],
        leaves.move[row],
        leaves.depth[row],
        leaves.leaf[row],
        leaves.kind[row],
        leaves.captured[row],
        leaves.request_row[row],
        leaves.bucket_key[row],
        leaves.cache_key[row],
        leaves.symmetry[row],
        leaves.n_listed[row],
        leaves.listed[row],
        leaves.prior_codes[row],
        leaves.logits[row],
        leaves.value[row],
        leaves.rollout[row],
        leaves.lead[row],
        leaves.scratch[row],
    )
