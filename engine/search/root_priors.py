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
from engine.search.pools import ROOT, Tree
from engine.search.priors import rank
from engine.search.tree import replace_priors
from engine.search.unchosen import GONE, likeliest, prior_of, to_steps

CONCENTRATION = 0.03 * 361
"""Sum of the parameters of the Dirichlet noise: AlphaGo Zero's 0.03 for each move of the empty board (Methods)"""


def mix_noise(tree: Tree, share: float, rng: np.random.Generator) -> None:
    """Mix Dirichlet noise into the priors of the root, which must be expanded.

    Threads: the tree's lock is held.
    """
    root = tree.meta[ROOT]
    count = int(tree.n_edges[root] + np.count_nonzero(tree.steps[root] != GONE))
    _mix(tree, rng.dirichlet(np.full(count, CONCENTRATION / count)), share)


@kernel
def _mix(tree, noise, share):
    """P = (1 - share) * P + share * noise, for the root's edges and its moves without one."""
    root = tree.meta[ROOT]
    first, n_edges, steps = tree.first_edge[root], tree.n_edges[root], tree.steps[root]
    tree.mass[root] = 0.0
    for i in range(n_edges):
        tree.P[first + i] = (1.0 - share) * tree.P[first + i] + share * noise[i]
        tree.mass[root] += tree.P[first + i]
    mixed = n_edges
    for index in range(len(steps)):
        if steps[index] != GONE:
            prior = (1.0 - share) * prior_of(steps[index]) + share * noise[mixed]
            steps[index] = to_steps(-math.log(prior))
            mixed += 1
    tree.top[root] = likeliest(steps)


def ask_all_symmetries(
    server: InferenceServer, encoder: Encoder, position: Position, hurried: Callable[[], bool] | None = None
) -> dict[int, Request]:  # fmt: skip
    """The network's answers to a position turned in all eight ways, by symmetry; each is row 0 of its request.

    Args:
        hurried: asked after each answer; once it says yes, answers that nobody has begun to compute are done without.
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
        if hurried is not None and hurried():
            for other in asked.values():
                server.cancel(other)
    return {symmetry: request for symmetry, request in asked.items() if not request.cancelled}


def average_policy(answers: dict[int, Request]) -> np.ndarray:
    """Logs of the mean move probabilities over some symmetries, float32[N*N + 1] in policy order."""
    logits = np.stack([one.policy[0][symmetry_table(one.size)[s]] for s, one in answers.items()]).astype(np.float64)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return np.log(chances.mean(axis=0) + 1e-30).astype(np.float32)


def average_ownership(answers: dict[int, Request]) -> np.ndarray:
    """Mean ownership over some symmetries, float32[N*N] in policy order, 1 = the mover's."""
    turned = [one.ownership[0].reshape(-1)[symmetry_table(one.size)[s, :-1]] for s, one in answers.items()]
    return np.mean(turned, axis=0, dtype=np.float64).astype(np.float32)


def replace_root_priors(tree: Tree, position: Position, policy: np.ndarray, temperature: float) -> None:
    """Give the moves of the root, which must be expanded, their priors anew.

    Args:
        position: at the root.
        policy: float32[N*N + 1], logits in policy order.
    Threads: the tree's lock is held.
    """
    moves = len(policy)
    listed, steps = np.zeros(moves, np.uint16), np.zeros(moves, np.uint16)
    surprise, chance = np.zeros(moves, np.float32), np.zeros(moves, np.float32)
    count = list_moves(position, listed)
    rank(listed, count, policy, temperature, surprise, chance, steps)
    replace_priors(tree, tree.meta[ROOT], steps)
