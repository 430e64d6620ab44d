"""Expansion and backup of a batch's evaluated leaves, and their release. Threads: the tree's lock is held."""

from engine.search.leaves import FINISHED, IN_TREE, NEW, PRIORS, ROLLED, VALUED
from engine.search.selection import unmark_path
from engine.search.tree import (
    AWAITED,
    EVALUATED,
    EXPANDED,
    IN_EVALUATION,
    META_IN_FLIGHT,
    META_ROOT_VISITS,
    NOT_EVALUATED,
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
    """Release the first ``count`` leaves of a batch, unexpanded and without results, and unmark their paths."""
    for i in range(count):
        if batch.kind[i] not in (IN_TREE, ROLLED):
            leaf = batch.leaf[i]
            if tree.state[leaf] in (PENDING, AWAITED):
                tree.state[leaf] = PROVISIONAL if tree.state[leaf] == AWAITED else UNEXPANDED
            if tree.evaluation[leaf] == IN_EVALUATION:
                tree.evaluation[leaf] = NOT_EVALUATED
        if batch.is_backed_up[i] == 0:
            unmark_path(tree, batch, i)
            tree.meta[META_IN_FLIGHT] -= 1


@kernel
def complete(tree, batch, count, rollout_weight, adds_value, adds_rollout):
    """Expand the first ``count`` leaves of a batch, unmark their paths (virtual loss) and back their values up.

    Args:
        rollout_weight: lambda (:mod:`engine.search.values`).
        adds_value, adds_rollout: whether the leaves have network values, and whether they have rollout results.
    """
    for i in range(count):
        kind, is_backed_up = batch.kind[i], batch.is_backed_up[i] == 1
        has_value = adds_value and kind != ROLLED
        if kind == NEW and corrects(tree):
            correct_leaf(tree, batch, i)
        result = _leaf_value(batch, i, rollout_weight, has_value, adds_rollout)
        # A finished game may be the leaf of several rows: a row selected for a rollout alone does not own its leaf.
        if kind not in (IN_TREE, ROLLED) and tree.state[batch.leaf[i]] not in (EXPANDED, TERMINAL):
            _enter_leaf(tree, batch, i, result)
        if not is_backed_up:
            unmark_path(tree, batch, i)
            tree.meta[META_IN_FLIGHT] -= 1
            tree.meta[META_ROOT_VISITS] += 1
            if kind in (ROLLED, VALUED):
                tree.rolled[batch.leaf[i]] += 1
        back_up_path(tree, batch, i, has_value and kind != PRIORS, adds_rollout and not is_backed_up)
        if corrects(tree):
            learn_errors(tree, batch, i)
        _note_result(tree, batch, i, result)


@kernel
def _leaf_value(batch, i, rollout_weight, gives_value, gives_rollout):
    """Value of row i's leaf for its side to move: the network's, the rollout's, or their weighted mean."""
    if gives_value and gives_rollout:
        return (1.0 - rollout_weight) * batch.value[i] + rollout_weight * batch.rollout[i]
    return float(batch.value[i]) if gives_value else float(batch.rollout[i])


@kernel
def _enter_leaf(tree, batch, i, result):
    """Store the value and lead of row i's leaf and, if it is to be expanded, its moves."""
    node = batch.leaf[i]
    tree.value[node] = result
    tree.lead[node] = batch.lead[i]
    if batch.kind[i] == FINISHED:
        tree.state[node] = TERMINAL
    elif batch.kind[i] == VALUED:
        tree.evaluation[node] = EVALUATED
    elif tree.state[node] == AWAITED:
        replace_priors(tree, node, batch.prior_codes[i])
        tree.state[node] = EXPANDED
    else:
        store_moves(tree, node, batch.prior_codes[i])
        tree.state[node] = EXPANDED


@kernel
def back_up_path(tree, batch, i, adds_value, adds_rollout):
    """Add row i's value, its rollout result, or both to each edge of its path, for the player who chose the edge."""
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
    """Add row i's squared result and its lead to each edge of its path, the lead for the player who chose the edge."""
    square, lead = result * result, float(batch.lead[i])
    for d in range(batch.depth[i] - 1, -1, -1):
        lead = -lead
        edge = tree.first_edge[batch.node[i, d]] + batch.edge_index[i, d]
        tree.W_sq[edge] += square
        tree.W_lead[edge] += lead
