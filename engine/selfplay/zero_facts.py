"""What a turn of the loop is measured by: its games, its targets, and the empty board as the network sees it."""

import math

import numpy as np

from engine.records.games import LIMIT
from engine.records.search_rows import SearchRows, targets
from engine.selfplay.empty_board import EmptyBoard
from engine.selfplay.search_games import false_resignations

RESIGN_AT = -0.8
"""Value at which resignations are counted for people; it resigns nothing by itself"""


def facts_of_rows(rows: SearchRows) -> dict[str, float]:
    """Of some games and rows: moves a game, who won, entropy of the targets (nats), false resignations."""
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
    """Of the empty board: value, score, entropy of the policy (nats), probability of the centre and of a pass.

    On an even board the centre is one of the four points around it.
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
