"""Subtree value bias: correction of network values by the errors that the search finds after the same local moves.

A sequence of moves that the network overrates appears in many branches of a tree, and the search must refute it in each
of them. Positions with the same last two moves and the same stones around the last one share a *bucket*
(:func:`bucket_key`). A node's *error* is the mean value of its children, by visits, less the network's value of the
node. A bucket holds the weighted mean of its nodes' errors; weights grow with visits. The network's value of a node is
corrected by this mean times ``value_bias`` (KataGo's ``subtreeValueBiasFactor``), first when the node is new, then
after every playout through it. Only values change, not priors or exploration.

Source: KataGo, ``docs/KataGoMethods.md``, "Subtree Value Bias Correction". Threads: the tree's lock is held.
"""

import numpy as np

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE, META_STRIDE
from engine.go.geometry import BORDER, EMPTY, PASS
from engine.go.position import META_N_MOVES, META_TO_MOVE
from engine.go.random import mix
from engine.search.tree import NONE
from engine.system.jit import kernel

EXPONENT = 0.85
"""A node's weight is its visits to this power (KataGo's ``subtreeValueBiasWeightExponent``)."""
REACH = 2
"""Largest distance, in rows and in columns, between the last move and a point that the key covers: 5x5 points"""


@kernel
def bucket_key(position):
    """Hash (uint64) whose low bits are a position's bucket.

    The hash covers the side to move, the last two moves and the ko point; unless the last move was a pass, also the
    colours of the 5x5 points around it, with chains in atari distinct from others.
    """
    board, meta = position.board, position.meta
    size, stride, played = board.meta[META_SIZE], board.meta[META_STRIDE], meta[META_N_MOVES]
    last = np.int64(position.moves[played - 1] if played > 0 else PASS)
    before = np.int64(position.moves[played - 2] if played > 1 else PASS)
    ko = board.meta[META_KO_POINT] if board.meta[META_KO_COLOR] == meta[META_TO_MOVE] else 0
    key = mix(np.uint64((((before << 16) ^ last) << 16) ^ (ko << 2) ^ meta[META_TO_MOVE]))
    if last == PASS:
        return key
    row, column = last // stride, last % stride
    stones = np.uint64(0)
    for r in range(row - REACH, row + REACH + 1):
        for c in range(column - REACH, column + REACH + 1):
            state: int | np.int64 = 2 * BORDER
            if 1 <= r <= size and 1 <= c <= size:
                point = r * stride + c
                color = np.int64(board.color[point])
                state = 2 * color + (1 if color != EMPTY and board.libs[board.head[point]] == 1 else 0)
            stones = stones * np.uint64(7) + np.uint64(state)
    return mix(key ^ stones)


@kernel
def corrects(tree):
    """Whether this tree's values are corrected by subtree value bias."""
    return len(tree.bias_sum) > 0


@kernel
def _correction(tree, bucket):
    """The correction (float32) that is added to the network's value of a bucket's nodes; 0 for an empty bucket."""
    weight = tree.bias_weight[bucket]
    # An empty bucket holds rounding errors.
    return np.float32(tree.bias_share[0] * tree.bias_sum[bucket] / weight) if weight > 0.01 else np.float32(0.0)


@kernel
def correct_leaf(tree, batch, i):
    """Put row i's leaf, just evaluated, into its bucket with weight 0, and correct ``batch.value[i]``; the root gets no
    bucket.
    """
    if batch.depth[i] == 0:
        return
    leaf, bucket = batch.leaf[i], np.int64(batch.bucket_key[i] & np.uint64(len(tree.bias_sum) - 1))
    tree.bucket[leaf] = bucket
    tree.entered_error[leaf] = tree.entered_weight[leaf] = 0.0
    tree.network_value[leaf] = batch.value[i]
    batch.value[i] = min(1.0, max(-1.0, batch.value[i] + _correction(tree, bucket)))


@kernel
def learn_errors(tree, batch, i):
    """Update the errors of the nodes on row i's path after its backup, and correct the nodes' values again.

    The change of a node's value, and of the value's square, is added to the sums of all edges above the node.
    """
    shift, squares = 0.0, 0.0
    for d in range(batch.depth[i] - 1, 0, -1):
        node = batch.node[i, d]
        edge = tree.first_edge[batch.node[i, d - 1]] + batch.edge_index[i, d - 1]
        shift = -shift
        tree.W_v[edge] -= shift
        tree.W_sq[edge] += squares
        bucket, below = tree.bucket[node], tree.N_v[edge] - 1
        if bucket == NONE or below < 1:
            continue
        own = float(tree.value[node])
        error = (-tree.W_v[edge] - own) / below - tree.network_value[node]
        weight = np.float32(below**EXPONENT)
        weighted = np.float32(weight * error)
        tree.bias_sum[bucket] += weighted - tree.entered_error[node]
        tree.bias_weight[bucket] += weight - tree.entered_weight[node]
        tree.entered_error[node], tree.entered_weight[node] = weighted, weight
        tree.value[node] = min(1.0, max(-1.0, tree.network_value[node] + _correction(tree, bucket)))
        new = float(tree.value[node])
        tree.W_v[edge] -= new - own
        tree.W_sq[edge] += new * new - own * own
        shift += new - own
        squares += new * new - own * own
