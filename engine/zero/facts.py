"""Metrics of an iteration of ``keima zero``: games, targets, and the network's outputs for the empty board."""

import math
from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS, encode
from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.geometry import BLACK, point_of, to_vertex
from engine.go.position import apply_rules, begin, new_position
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.network import softmax
from engine.records.games import LIMIT
from engine.records.search_rows import SearchRows, targets
from engine.selfplay.search_games import false_resignations

RESIGN_AT = -0.8
"""Resignation threshold of the metric ``games/false_resignations``; it has no effect on play"""


class EmptyBoard(NamedTuple):
    """Network outputs for the empty board, the mean over the eight symmetries."""

    policy: np.ndarray
    """float64[N*N + 1] in policy order: probabilities"""
    value: float
    """for Black, -1 to 1"""
    score: float
    """Black's lead in points before komi is subtracted; NaN = the network has no score head"""


def look_at_empty_board(server: InferenceServer, size: int, rules: str, komi: float) -> EmptyBoard:
    """Evaluate the empty board with Black to move.

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
    """The ``count`` most probable first moves with their probabilities, as text."""
    best = np.argsort(-board.policy)[:count]
    return ", ".join(f"{to_vertex(int(point_of(int(k), size)), size)} {board.policy[k]:.0%}" for k in best)


def facts_of_rows(rows: SearchRows) -> dict[str, float]:
    """Metrics of games and rows by name: game length, Black's win rate, entropy of policy targets (nats), and so on."""
    games, chosen = rows.games, targets(rows, np.arange(len(rows.game)))
    entropy = -(chosen * np.log(np.maximum(chosen, 1e-12))).sum(axis=1)
    would, wrong = false_resignations(rows, RESIGN_AT)
    found = {
        "games/moves": float(np.diff(games.offsets).mean()),
        "games/black_wins": float(((games.result + 1) / 2).mean()),
        "games/limit": float((games.ending == LIMIT).mean()),
        "games/margin": float(np.nanmean(games.margin)) if np.isfinite(games.margin).any() else 0.0,
        "rows/entropy": float(entropy.mean()),
    }
    if would:
        found["games/false_resignations"] = wrong / would
    return found


def facts_of_board(board: EmptyBoard) -> dict[str, float]:
    """Metrics of the empty board by name: value, score, entropy of the policy (nats), probabilities of centre and pass.

    On boards of even size the centre is one of the four central points.
    """
    policy = board.policy
    points = len(policy) - 1
    size = math.isqrt(points)
    found = {
        "empty/value": board.value,
        "empty/entropy": float(-(policy * np.log(np.maximum(policy, 1e-12))).sum()),
        "empty/centre": float(policy[(size // 2) * (size + 1)]),
        "empty/pass": float(policy[points]),
    }
    return found if np.isnan(board.score) else found | {"empty/score": board.score}
