"""Optional mechanisms of the AlphaGo of 2016, for networks that are slow compared with rollouts.

Its network needed some milliseconds for a position. So a leaf was evaluated at its first visit but expanded only after
a number of rollouts, which grew with the network's load; it was expanded at once with the tree policy's priors as
placeholders, and rollouts were backed up before the network's values. Virtual losses applied to rollouts, and rollouts
used the tree's best replies. Today's networks are faster than a rollout; the mechanisms serve the player as published,
studies, or large networks on slow devices.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 2016, Methods,
"Searching with policy and value networks" and "Asynchronous policy and value MCTS (APV-MCTS)".
"""

from typing import NamedTuple

from engine.config import SearchOptions
from engine.search.backup import back_up_path
from engine.search.leaves import NEW, PRIORS, ROLLED, VALUED
from engine.search.selection import Tuning, unmark_path
from engine.search.tree import AWAITED, META_IN_FLIGHT, META_ROOT_VISITS, PENDING, store_moves
from engine.search.values import node_value
from engine.system.jit import kernel

MOST_ROLLOUTS = 1000
"""Maximum to which adaptive expansion raises ``Tuning.expand_after``, the rollouts before a leaf is expanded"""


class Mechanisms(NamedTuple):
    """Which of the mechanisms a search uses."""

    placeholder_priors: bool
    """leaves are expanded with the tree policy's priors while the network evaluates them"""
    async_values: bool
    """a leaf's rollout is backed up before the network's value of the leaf"""
    adaptive_expansion: bool
    """``Tuning.expand_after`` rises while requests wait for the network, and falls while none waits"""
    reply_probability: float
    """probability that a rollout tries a last good reply first"""


def mechanisms(options: SearchOptions, has_network: bool, has_patterns: bool) -> Mechanisms:
    """The mechanisms that the options enable and for which the search has the network, patterns and rollouts needed."""
    mixes = has_network and options.rollout_weight > 0.0
    placeholders = options.placeholder_priors and has_network and has_patterns
    return Mechanisms(
        placeholder_priors=placeholders,
        async_values=options.async_values and placeholders and mixes,
        adaptive_expansion=options.adaptive_expansion and mixes,
        reply_probability=options.reply_probability,
    )


def adapted(tuning: Tuning, is_idle: bool) -> Tuning:
    """The tuning with ``expand_after`` lowered by 1 if no request waits for the network (``is_idle``), else raised."""
    rollouts = max(0, tuning.expand_after - 1) if is_idle else min(MOST_ROLLOUTS, tuning.expand_after + 1)
    return tuning._replace(expand_after=rollouts)


@kernel
def expand_with_placeholders(tree, batch, count, rollout_weight):
    """Expand those of the first ``count`` leaves that are to be expanded, with ``batch.prior_codes`` as placeholders.

    Until the network answers, such a node has its parent's value. The root is not expanded early.

    Args:
        rollout_weight: lambda (:mod:`engine.search.values`).
    Threads: the tree's lock is held.
    """
    for i in range(count):
        node, depth = batch.leaf[i], batch.depth[i]
        if batch.kind[i] not in (NEW, PRIORS) or depth == 0 or tree.state[node] != PENDING:
            continue
        store_moves(tree, node, batch.prior_codes[i])
        tree.state[node] = AWAITED
        tree.value[node] = -node_value(tree, batch.node[i, depth - 1], rollout_weight)


@kernel
def back_up_rollouts_early(tree, batch, count):
    """Back up the rollouts of a batch's leaves that need not wait for the network, and unmark their paths.

    :func:`engine.search.backup.complete` adds the network's values later.

    Threads: the tree's lock is held.
    """
    for i in range(count):
        is_expanded = batch.kind[i] in (NEW, PRIORS) and tree.state[batch.leaf[i]] == AWAITED
        if is_expanded or batch.kind[i] in (ROLLED, VALUED):
            batch.is_backed_up[i] = 1
            if not is_expanded:
                tree.rolled[batch.leaf[i]] += 1
            unmark_path(tree, batch, i)
            tree.meta[META_IN_FLIGHT] -= 1
            tree.meta[META_ROOT_VISITS] += 1
            back_up_path(tree, batch, i, False, True)
