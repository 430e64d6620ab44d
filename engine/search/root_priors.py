"""What is done to the root's priors before a search: noise for variety, all eight symmetries for exactness."""

import math
from collections.abc import Callable

import numpy as np

from engine.features import encoder as encoders
from engine.features.encoder import Encoder
from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.board import META_SIZE
from engine.go.position import Position
from engine.inference.server import InferenceServer
from engine.inference.slots import Request
from engine.jit import kernel
from engine.search.leaves import list_moves
from engine.search.pools import META_ROOT, Tree
from engine.search.priors import rank
from engine.search.tree import replace_priors
from engine.search.unchosen import GONE, likeliest, prior_of, to_prior_code

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


def evaluate_all_symmetries(
    server: InferenceServer, encoder: Encoder, position: Position, is_interrupted: Callable[[], bool] | None = None
) -> dict[int, Request]:  # fmt: skip
    """The network's outputs for a position in all eight symmetries, by symmetry; each is row 0 of its request.

    Args:
        is_interrupted: asked after each evaluation; once it is true, those not yet begun are left out.
    Raises:
        RuntimeError: the network failed.
    """
    size = int(position.board.meta[META_SIZE])
    scratch = encoder.new_scratch(size)
    # One request each: all evaluators share the work, and a slow network can be stopped half-way.
    asked = {s: server.new_request(size, 1, encoder.planes, encoder.globals) for s in range(SYMMETRIES)}
    for symmetry, request in asked.items():
        encoders.encode(position, symmetry, scratch, request.planes[0], request.globals[0])
        request.count = 1
        server.submit(request)
    for request in asked.values():
        server.wait(request)
        if is_interrupted is not None and is_interrupted():
            for other in asked.values():
                server.cancel(other)
    return {symmetry: request for symmetry, request in asked.items() if not request.cancelled}


def average_policy(outputs: dict[int, Request]) -> np.ndarray:
    """Logs of the mean move probabilities over some symmetries, float32[N*N + 1] in policy order."""
    logits = np.stack([one.policy[0][symmetry_table(one.size)[s]] for s, one in outputs.items()]).astype(np.float64)
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return np.log(probabilities.mean(axis=0) + 1e-30).astype(np.float32)


def average_ownership(outputs: dict[int, Request]) -> np.ndarray:
    """Mean ownership over some symmetries, float32[N*N] in policy order, 1 = the mover's."""
    owners = [one.ownership[0].reshape(-1)[symmetry_table(one.size)[s, :-1]] for s, one in outputs.items()]
    return np.stack(owners).mean(axis=0, dtype=np.float64).astype(np.float32)


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
