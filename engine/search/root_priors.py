"""What is done to the root's priors before a search: noise for variety, the mean of all symmetries for exactness."""

import math

import numpy as np

from engine.go.position import Position
from engine.search.leaves import list_moves
from engine.search.pools import META_ROOT, Tree
from engine.search.priors import rank
from engine.search.root_targets import read_priors, write_priors
from engine.search.tree import replace_priors

CONCENTRATION = 0.03 * 361
"""Sum of the parameters of the Dirichlet noise: AlphaGo Zero's 0.03 for each move of the empty board (Methods)"""


def add_dirichlet_noise(tree: Tree, share: float, rng: np.random.Generator) -> None:
    """Mix Dirichlet noise into the priors of the root, which must be expanded.

    Threads: the tree's lock is held.
    """
    moves = len(tree.point)
    priors, codes = np.zeros(moves), np.zeros(moves, np.uint16)
    read_priors(tree, math.isqrt(moves), priors)
    there = priors > 0.0
    noise = rng.dirichlet(np.full(there.sum(), CONCENTRATION / there.sum()))
    priors[there] = (1.0 - share) * priors[there] + share * noise
    write_priors(tree, priors, codes)


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
