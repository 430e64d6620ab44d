"""Expansion and backup of a batch of evaluated leaves. Threads: the tree's lock is held."""

from engine.search.leaves import FINISHED, KNOWN, NEW, ROLLED, ROLLOUT_BACKED_UP
from engine.search.selection import unmark_path
from engine.search.tree import (
    AWAITED,
    EXPANDED,
    META_IN_FLIGHT,
    META_ROOT_VISITS,
    PENDING,
    PROVISIONAL,
    TERMINAL,
    UNEXPANDED,
    replace_priors,
    store_moves,
)
from engine.search.value_bias import correct_leaf, corrects, learn_errors
from engine.system.jit import kernel


@kernel
def release(tree, batch, count):
    """Release the first ``count`` leaves of a batch without results."""
    for i in range(count):
        if batch.kind[i] not in (KNOWN, ROLLED):
            leaf = batch.leaf[i]
            if tree.state[leaf] in (PENDING, AWAITED):
                tree.state[leaf] = PROVISIONAL if tree.state[leaf] == AWAITED else UNEXPANDED
        if batch.kind[i] != ROLLOUT_BACKED_UP:
            unmark_path(tree, batch, i)
            tree.meta[META_IN_FLIGHT] -= 1


@kernel
def complete(tree, batch, count, weight, adds_value, adds_rollout):
    """Expand the first ``count`` leaves of a batch and back their values up.

    Args:
        weight: lambda.
        adds_value, adds_rollout: whether the leaves have network values, and rollout results.
    """
    for i in range(count):
        kind = batch.kind[i]
        gives_value = adds_value and kind != ROLLED
        if kind == NEW and corrects(tree):
            correct_leaf(tree, batch, i)
        result = _leaf_value(batch, i, weight, gives_value, adds_rollout)
        if kind not in (KNOWN, ROLLED) and tree.state[batch.leaf[i]] not in (EXPANDED, TERMINAL):
            _expand(tree, batch, i, result)
        if kind != ROLLOUT_BACKED_UP:
            unmark_path(tree, batch, i)
            tree.meta[META_IN_FLIGHT] -= 1
            tree.meta[META_ROOT_VISITS] += 1
        back_up_path(tree, batch, i, gives_value, adds_rollout and kind != ROLLOUT_BACKED_UP)
        if corrects(tree):
            learn_errors(tree, batch, i)
        _note_result(tree, batch, i, result)


@kernel
def _leaf_value(batch, i, weight, gives_value, gives_rollout):
    """Value of row i's leaf for its side to move, network and rollout mixed."""
    if gives_value and gives_rollout:
        return (1.0 - weight) * batch.value[i] + weight * batch.rollout[i]
    return float(batch.value[i]) if gives_value else float(batch.rollout[i])


@kernel
def _expand(tree, batch, i, result):
    """Store a leaf's value and, unless the game has ended there, its moves."""
    node = batch.leaf[i]
    tree.value[node] = result
    tree.lead[node] = batch.lead[i]
    if batch.kind[i] == FINISHED:
        tree.state[node] = TERMINAL
    elif tree.state[node] == AWAITED:
        replace_priors(tree, node, batch.prior_codes[i])
        tree.state[node] = EXPANDED
    else:
        store_moves(tree, node, batch.prior_codes[i])
        tree.state[node] = EXPANDED


@kernel
def back_up_path(tree, batch, i, adds_value, adds_rollout):
    """Add row i's results along its path; only here and in :func:`_note_result` values change sign."""
    sign = 1.0
    for d in range(batch.depth[i] - 1, -1, -1):
        sign = -sign
        edge = tree.first_edge[batch.node[i, d]] + batch.edge_index[i, d]
        if adds_value:
            tree.N_v[edge] += 1
            tree.W_v[edge] += sign * batch.value[i]
        if adds_rollout:
            tree.N_r[edge] += 1
            tree.W_r[edge] += sign * batch.rollout[i]


@kernel
def _note_result(tree, batch, i, result):
    """Add the squared result and the lead of a visit along row i's path."""
    square, lead = result * result, float(batch.lead[i])
    for d in range(batch.depth[i] - 1, -1, -1):
        lead = -lead
        edge = tree.first_edge[batch.node[i, d]] + batch.edge_index[i, d]
        tree.W_sq[edge] += square
        tree.W_lead[edge] += lead
