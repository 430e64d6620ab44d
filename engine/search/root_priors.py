"""What is done to the root's priors before a search: noise for variety, the mean of all symmetries for exactness."""

import math

import numpy as np

from engine.go.position import Position
from engine.search.leaves import list_moves
from engine.search.pools import META_ROOT, Tree
from engine.search.priors import rank
from engine.search.tree import replace_priors
from engine.search.unchosen import GONE, likeliest, prior_of, to_prior_code
from engine.system.jit import kernel

CONCENTRATION = 0.03 * 361
"""Sum of the parameters of the Dirichlet noise: AlphaGo Zero's 0.03 for each move of the empty board (Methods)"""


def add_dirichlet_noise(tree: Tree, share: float, rng: np.random.Generator) -> None:
    """Mix Dirichlet noise into the priors of the root, which must be expanded.

    Threads: the tree's lock is held.
    """
    root = tree.meta[META_ROOT]
    count = int(tree.n_edges[root] + np.count_nonzero(tree.prior_codes[root] != GONE))
    _mix(tree, rng.dirichlet(np.full(count, CONCENTRATION / count)), share)


@kernel
def _mix(tree, noise, share):
    """P = (1 - share) * P + share * noise, for the root's edges and its moves without one."""
    root = tree.meta[META_ROOT]
    first, n_edges, codes = tree.first_edge[root], tree.n_edges[root], tree.prior_codes[root]
    tree.expanded_prior_mass[root] = 0.0
    for i in range(n_edges):
        tree.P[first + i] = (1.0 - share) * tree.P[first + i] + share * noise[i]
        tree.expanded_prior_mass[root] += tree.P[first + i]
    mixed = n_edges
    for index in range(len(codes)):
        if codes[index] != GONE:
            prior = (1.0 - share) * prior_of(codes[index]) + share * noise[mixed]
            codes[index] = to_prior_code(-math.log(prior))
            mixed += 1
    tree.best_unexpanded[root] = likeliest(codes)


def replace_root_priors(tree: Tree, position: Position, policy: np.ndarray, temperature: float) -> None:
    """Give the moves of the root, which must be expanded, their priors anew.

    Args:
        position: at the root.
        policy: float32[N*N + 1], logits in policy order.
    Threads: the tree's lock is held.
    """
    moves = len(policy)
    listed, codes = np.zeros(moves, np.uint16), np.zeros(moves, np.uint16)
    surprise, likelihood = np.zeros(moves, np.float32), np.zeros(moves, np.float32)
    count = list_moves(position, listed)
    rank(listed, count, policy, temperature, surprise, likelihood, codes)
    replace_priors(tree, tree.meta[META_ROOT], codes)
