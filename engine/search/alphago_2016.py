"""What only the AlphaGo of 2016 does, and only if it is asked to: mechanisms for a network that answers late.

Its network needed some milliseconds a position, so a leaf was opened at once with the tree policy's priors as
placeholders, its rollout was backed up before the network's value, and the network was asked about a leaf only after a
number of rollouts, which followed the network's load. Virtual losses lay on rollouts, and rollouts replied as the tree
had found best. Today's networks answer in less time than a rollout takes; the mechanisms are here for those who study
them, or run a large network on a slow device.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 2016, Methods,
"Searching with policy and value networks" and "Asynchronous policy and value MCTS (APV-MCTS)".
"""

from typing import NamedTuple

from engine.config import SearchOptions
from engine.search.backup import back_up_path
from engine.search.leaves import NEW, ROLLOUT_BACKED_UP
from engine.search.selection import Tuning, unmark_path
from engine.search.tree import AWAITED, META_IN_FLIGHT, META_ROOT_VISITS, PENDING, store_moves
from engine.search.values import node_value
from engine.system.jit import kernel

MOST_ROLLOUTS = 1000
"""The network is asked about a leaf after this number of rollouts at the latest, whatever its load."""


class Mechanisms(NamedTuple):
    """Which of them a search uses."""

    placeholder_priors: bool
    """leaves open with the tree policy's priors while the network evaluates them"""
    async_values: bool
    """rollouts are backed up before the network's values are there"""
    adaptive_expansion: bool
    """``Tuning.expand_after`` follows the network's load"""
    reply_probability: float
    """probability with which a rollout looks for a last good reply first"""


def mechanisms(options: SearchOptions, has_network: bool, has_patterns: bool) -> Mechanisms:
    """The mechanisms that the options ask for, as far as there are a network, patterns and rollouts to use them."""
    mixes = has_network and options.rollout_weight > 0.0
    placeholders = options.placeholder_priors and has_network and has_patterns
    return Mechanisms(
        placeholder_priors=placeholders,
        async_values=options.async_values and placeholders and mixes,
        adaptive_expansion=options.adaptive_expansion and mixes,
        reply_probability=options.reply_probability,
    )


def adapted(tuning: Tuning, is_idle: bool) -> Tuning:
    """A tuning that asks the network about more leaves while it is idle, about fewer while requests wait."""
    rollouts = max(0, tuning.expand_after - 1) if is_idle else min(MOST_ROLLOUTS, tuning.expand_after + 1)
    return tuning._replace(expand_after=rollouts)


@kernel
def open_with_placeholders(tree, batch, count, weight):
    """Open those of the first ``count`` leaves that the network was asked about, with the priors of the batch.

    Until the network answers such a node is worth what its parent is. The root waits: it is searched once known.

    Args:
        weight: lambda.
    Threads: the tree's lock is held.
    """
    for i in range(count):
        node, depth = batch.leaf[i], batch.depth[i]
        if batch.kind[i] != NEW or batch.request_row[i] < 0 or depth == 0 or tree.state[node] != PENDING:
            continue
        store_moves(tree, node, batch.prior_codes[i])
        tree.state[node] = AWAITED
        tree.value[node] = -node_value(tree, batch.node[i, depth - 1], weight)


@kernel
def back_up_rollouts_early(tree, batch, count):
    """Back up the rollouts of leaves that await the network; :func:`engine.search.backup.complete` adds its values.

    Threads: the tree's lock is held.
    """
    for i in range(count):
        if batch.kind[i] == NEW and tree.state[batch.leaf[i]] == AWAITED:
            batch.kind[i] = ROLLOUT_BACKED_UP
            unmark_path(tree, batch, i)
            tree.meta[META_IN_FLIGHT] -= 1
            tree.meta[META_ROOT_VISITS] += 1
            back_up_path(tree, batch, i, False, True)
