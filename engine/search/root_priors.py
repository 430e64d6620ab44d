"""What is done to the root's priors before a search: noise for variety, all eight symmetries for exactness."""

import math

import numpy as np

from engine.features import encoder as encoders
from engine.features.encoder import Encoder, Scratch
from engine.features.symmetry import SYMMETRIES, turn_table
from engine.go.board import SIZE
from engine.go.position import Position
from engine.inference.server import InferenceServer
from engine.inference.slots import Request
from engine.jit import kernel
from engine.search.candidates import candidate_point, candidate_prior, make_heap, pack_candidate
from engine.search.evaluate import list_moves
from engine.search.pools import ROOT, Tree
from engine.search.priors import rank
from engine.search.tree import replace_priors

CONCENTRATION = 0.03 * 361
"""Sum of the parameters of the Dirichlet noise: AlphaGo Zero's 0.03 for each move of the empty board (Methods)"""


def mix_noise(tree: Tree, share: float, rng: np.random.Generator) -> None:
    """Mix Dirichlet noise into the priors of the root, which must be expanded.

    Threads: the tree's lock is held.
    """
    count = int(tree.n_candidates[tree.meta[ROOT]])
    _mix(tree, rng.dirichlet(np.full(count, CONCENTRATION / count)), share)


@kernel
def _mix(tree, noise, share):
    """P = (1 - share) * P + share * noise, for the root's edges and its moves without one."""
    root = tree.meta[ROOT]
    first, n_edges, heap = tree.first_edge[root], tree.n_edges[root], tree.first_candidate[root]
    tree.mass[root] = 0.0
    for i in range(n_edges):
        tree.P[first + i] = (1.0 - share) * tree.P[first + i] + share * noise[i]
        tree.mass[root] += tree.P[first + i]
    waiting = tree.n_candidates[root] - n_edges
    for i in range(waiting):
        candidate = tree.candidate[heap + i]
        prior = (1.0 - share) * candidate_prior(candidate) + share * noise[n_edges + i]
        tree.candidate[heap + i] = pack_candidate(-math.log(prior), candidate_point(candidate))
    make_heap(tree.candidate, heap, waiting)


def ask_all_symmetries(server: InferenceServer, encoder: Encoder, position: Position, scratch: Scratch) -> Request:
    """The network's answers to a position turned in all eight ways; row s of the request is symmetry s.

    Raises:
        RuntimeError: the network failed.
    """
    size = int(position.board.meta[SIZE])
    request = server.new_request(size, SYMMETRIES, encoder.planes, encoder.globals)
    for symmetry in range(SYMMETRIES):
        planes, globals_ = request.planes[symmetry], request.globals[symmetry]
        encoders.encode(encoder.id, position, symmetry, scratch, planes, globals_)
    request.count = SYMMETRIES
    server.submit(request)
    server.wait(request)
    return request


def average_policy(answers: Request) -> np.ndarray:
    """Logs of the mean move probabilities over all symmetries, float32[N*N + 1] in policy order."""
    turned = turn_table(answers.size)
    logits = np.stack([answers.policy[s][turned[s]] for s in range(SYMMETRIES)]).astype(np.float64)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return np.log(chances.mean(axis=0) + 1e-30).astype(np.float32)


def replace_root_priors(tree: Tree, position: Position, policy: np.ndarray, temperature: float) -> None:
    """Give the moves of the root, which must be expanded, their priors anew.

    Args:
        position: at the root.
        policy: float32[N*N + 1], logits in policy order.
    Threads: the tree's lock is held.
    """
    moves = len(policy)
    listed, candidates = np.zeros(moves, np.uint32), np.zeros(moves, np.uint32)
    surprise, chance = np.zeros(moves, np.float32), np.zeros(moves, np.float32)
    count = list_moves(position, listed)
    rank(listed, count, policy, temperature, surprise, chance, candidates)
    replace_priors(tree, tree.meta[ROOT], candidates)
