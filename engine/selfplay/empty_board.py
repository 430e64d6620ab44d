"""What a network says of the empty board: its first moves, the value and the score."""

from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS, encode
from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.geometry import BLACK, point_of, to_vertex
from engine.go.position import apply_rules, begin, new_position
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.network import softmax


class EmptyBoard(NamedTuple):
    """Outputs, the mean over the eight symmetries."""

    policy: np.ndarray
    """float64[N*N + 1] in policy order: probabilities"""
    value: float
    """for Black, -1 to 1"""
    score: float
    """Black's points more than White's, the komi not counted; NaN = the network has no such head"""


def look_at_empty_board(server: InferenceServer, size: int, rules: str, komi: float) -> EmptyBoard:
    """Ask about the empty board with Black to move.

    Raises:
        NetworkFailed: the evaluation failed.
    """
    encoder, position = ENCODERS[server.spec.encoder], new_position(size)
    apply_rules(position, RULE_SETS[rules], komi)
    begin(position, BLACK)
    planes = np.zeros((SYMMETRIES, encoder.planes, size, size), np.float32)
    globals_ = np.zeros((SYMMETRIES, encoder.globals), np.float32)
    scratch = encoder.new_scratch(size)
    for symmetry in range(SYMMETRIES):
        encode(position, symmetry, scratch, planes[symmetry], globals_[symmetry])
    found = server.ask(planes, globals_)
    assert found.policy is not None and found.value is not None
    policy = softmax(np.take_along_axis(found.policy, symmetry_table(size).astype(np.int64), axis=1)).mean(axis=0)
    score = np.nan if found.score is None else float(found.score.mean()) + komi
    return EmptyBoard(policy, float(found.value.mean()), score)


def first_moves(board: EmptyBoard, size: int, count: int = 3) -> str:
    """The likeliest first moves with their probabilities, in words."""
    best = np.argsort(-board.policy)[:count]
    return ", ".join(f"{to_vertex(int(point_of(int(k), size)), size)} {board.policy[k]:.0%}" for k in best)
