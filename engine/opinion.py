"""What a network says of a position without any search, turned the way people read it: from White's view, in order."""

from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS, encode, new_scratch
from engine.features.symmetry import turn_table
from engine.go.board import SIZE
from engine.go.geometry import WHITE
from engine.go.position import TO_MOVE, Position, legal_moves
from engine.nets.raw import RawNetwork, RawOutput


class Opinion(NamedTuple):
    """A network's raw outputs; nan = it has no such head."""

    said: RawOutput
    """with win, loss, lead and score from White's view"""
    policy: np.ndarray
    """float64[N*N+1] in policy order, pass last: probabilities of the legal moves; nan = illegal"""
    ownership_white: np.ndarray
    """float64[N*N] in policy order, 1 = White's"""


def raw_opinion(network: RawNetwork, position: Position, symmetry: int, optimism: float) -> Opinion:
    """Ask a network about a position shown in one symmetry (engine/features/symmetry.py).

    Args:
        optimism: see :meth:`engine.nets.raw.RawNetwork.ask`.
    Raises:
        ValueError: it does not play boards of this size; one line.
    """
    size, encoder = int(position.board.meta[SIZE]), ENCODERS[network.spec.encoder]
    planes = np.zeros((1, encoder.planes, size, size), np.float32)
    globals_ = np.zeros((1, encoder.globals), np.float32)
    encode(encoder.id, position, symmetry, new_scratch(size), planes[0], globals_[0])
    said = network.ask(planes, globals_, optimism)
    turned, moves = turn_table(size)[symmetry], size * size + 1
    policy, ownership = np.full(moves, np.nan), np.full(size * size, np.nan)
    if said.policy is not None:
        legal = np.zeros(moves, np.uint8)
        legal_moves(position, position.meta[TO_MOVE], legal)
        policy[legal == 1] = _softmax(said.policy.astype(np.float64)[turned][legal == 1])
    white = position.meta[TO_MOVE] == WHITE
    if said.ownership is not None:
        ownership = said.ownership.astype(np.float64).reshape(-1)[turned[:-1]] * (1.0 if white else -1.0)
    if not white:
        said = said._replace(win=said.loss, loss=said.win, lead=-said.lead, score=-said.score)
    return Opinion(said, policy, ownership)


def _softmax(logits: np.ndarray) -> np.ndarray:
    chances = np.exp(logits - logits.max())
    return chances / chances.sum()
