"""Errors of values side by side on the same positions: a network's, a constant's, other networks', rollouts'.

Source: AlphaGo, Figure 2b: the error of the value network through the game beside that of rollouts of four policies.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from engine.evaluation.calibration import MOVES, by_move
from engine.go.geometry import BLACK
from engine.records.games import Games

Progressed = Callable[[float], None]
"""Called with the number of positions done since the last call"""
Estimate = Callable[[Games, np.ndarray, np.ndarray, Progressed], np.ndarray]
"""Values for the side to move, float64[P], of positions: game (int64[P]) and moves played (int64[P])"""
ROLLOUTS = 100
"""Of a position by each policy, as published"""
NETWORK, CONSTANT = "network", "constant"
OWN_NAMES = frozenset({"positions", "from", "to", "by_move", "rollouts", NETWORK, CONSTANT})
"""What a table of errors says itself"""
MOVES_OF_ROWS = ((9, 5), (13, 10))
"""Largest board and moves of a row by move number; on larger boards as everywhere else"""


def constant_values(games: Games, rows: np.ndarray, plies: np.ndarray, result: np.ndarray) -> np.ndarray:
    """The best that always says the same of Black: the mean of what happened, for the side to move.

    Args:
        rows, plies: int64[P].
        result: float64[P]: for the side to move; no NaN.
    Returns:
        float64[P].
    """
    sign = np.where((plies % 2 == 0) == (games.first[rows] == BLACK), 1.0, -1.0)
    return sign * (sign * result).mean()


def errors_beside(
    games: Games, rows: np.ndarray, plies: np.ndarray, result: np.ndarray, values: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Means of (z - v)^2 by name, over all positions and by move number.

    Args:
        rows, plies: int64[P].
        result: float64[P]: 1 or -1 for the side to move.
        values: float64[P] by name; those with NaN are left out. A constant's are added.
    Returns:
        ``positions``, the errors by name, and ``by_move`` with the same in each row.
    """
    known = {name: array for name, array in values.items() if not np.isnan(array).any()}
    known[CONSTANT] = constant_values(games, rows, plies, result)
    errors = {name: (result - array) ** 2 for name, array in known.items()}
    largest = int(games.size[rows].max())
    moves = next((moves for size, moves in MOVES_OF_ROWS if largest <= size), MOVES)
    means = {name: float(error.mean()) for name, error in errors.items()}
    return {"positions": len(rows)} | means | {"by_move": by_move(plies, errors, moves)}
