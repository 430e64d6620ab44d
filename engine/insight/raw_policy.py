"""A network's outputs for a position, without a search, as people read them: White's, and in the order of the board."""

import functools
from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS, encode
from engine.features.symmetry import symmetry_table
from engine.go.board import META_SIZE
from engine.go.geometry import WHITE
from engine.go.position import META_TO_MOVE, Position, legal_moves
from engine.nets.network import softmax
from engine.nets.raw import RawNetwork, RawOutput
from engine.play.player import Player
from weights import NetworkPath


class RawEvaluation(NamedTuple):
    """A network's raw outputs; nan = it has no such head."""

    output: RawOutput
    """with win, loss, lead and score from White's view"""
    policy: np.ndarray
    """float64[N*N+1] in policy order, pass last: probabilities of the legal moves; nan = illegal"""
    ownership_white: np.ndarray
    """float64[N*N] in policy order, 1 = White's"""


def raw_evaluation(network: RawNetwork, position: Position, symmetry: int, optimism: float) -> RawEvaluation:
    """A network's outputs for a position shown under one symmetry (engine/features/symmetry.py).

    Args:
        optimism: see :meth:`engine.nets.raw.RawNetwork.ask`.
    Raises:
        ValueError: it does not play boards of this size; one line.
    """
    size = int(position.board.meta[META_SIZE])
    output = network.ask(*inputs(network.spec.encoder, position, symmetry), optimism)
    policy, ownership = np.full(size * size + 1, np.nan), np.full(size * size, np.nan)
    if output.policy is not None:
        policy = move_probabilities(output.policy, position, symmetry)
    white = position.meta[META_TO_MOVE] == WHITE
    if output.ownership is not None:
        home = symmetry_table(size)[symmetry][:-1]
        ownership = output.ownership.astype(np.float64).reshape(-1)[home] * (1.0 if white else -1.0)
    if not white:
        output = output._replace(win=output.loss, loss=output.win, lead=-output.lead, score=-output.score)
    return RawEvaluation(output, policy, ownership)


def evaluation_for(player: Player, color: int, symmetry: int, optimism: float) -> RawEvaluation:
    """:func:`raw_evaluation` of a player's position with a colour to move, by its network.

    Raises:
        ValueError: no network plays.
    """
    if player.network_path is None:
        raise ValueError("there is no network to ask")
    return raw_evaluation(_network(player.network_path), player.position_for(color), symmetry, optimism)


@functools.lru_cache(maxsize=1)
def _network(path: NetworkPath) -> RawNetwork:
    """Read once, when it is first wanted."""
    return RawNetwork(path)


def inputs(encoder_name: str, position: Position, symmetry: int) -> tuple[np.ndarray, np.ndarray]:
    """One position as a network sees it under one symmetry: planes float32[1, C, N, N] and globals float32[1, G]."""
    size, encoder = int(position.board.meta[META_SIZE]), ENCODERS[encoder_name]
    planes = np.zeros((1, encoder.planes, size, size), np.float32)
    globals_ = np.zeros((1, encoder.globals), np.float32)
    encode(position, symmetry, encoder.new_scratch(size), planes[0], globals_[0])
    return planes, globals_


def move_probabilities(logits: np.ndarray, position: Position, symmetry: int) -> np.ndarray:
    """Probabilities of the legal moves.

    Args:
        logits: float32[N*N+1] of the network, which saw the board under the symmetry; pass last.
    Returns:
        float64[N*N+1] in policy order; nan = illegal.
    """
    legal, found = np.zeros(len(logits), np.uint8), np.full(len(logits), np.nan)
    legal_moves(position, position.meta[META_TO_MOVE], legal)
    home = logits[symmetry_table(int(position.board.meta[META_SIZE]))[symmetry]]
    found[legal == 1] = softmax(home[None, legal == 1])[0]
    return found
