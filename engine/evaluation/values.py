"""Metrics of values: calibration, histogram, errors by move number, and comparison with baselines.

Source of the comparison: AlphaGo, Figure 2b, the error of the value network by move number beside that of rollouts of
four policies.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from engine.go.geometry import BLACK
from engine.records.games import Games
from engine.train.metrics import PositionMetrics

BINS = 10
"""Rows of the reliability table"""
HISTOGRAM_BINS = 20
MOVES = 20
"""Moves in a row of the table by move number"""
LAST_ROW = 300
"""First move of the last row, which is open-ended"""


def reliability(found: PositionMetrics) -> list[dict[str, float]]:
    """Predicted win rates, (v + 1) / 2 for the side to move, against observed ones.

    Returns:
        a row for each non-empty of ten equal ranges: ``from``, ``to``, the means ``predicted`` and ``observed``, and
        ``positions``.
    """
    rate, won = _win_rates(found)
    bins = np.clip((rate * BINS).astype(np.int64), 0, BINS - 1)
    return [
        {
            "from": row / BINS,
            "to": (row + 1) / BINS,
            "predicted": float(rate[bins == row].mean()),
            "observed": float(won[bins == row].mean()),
            "positions": int((bins == row).sum()),
        }
        for row in np.unique(bins).tolist()
    ]


def calibration_error(rows: list[dict[str, float]]) -> float:
    """Expected calibration error: mean distance of predicted and observed win rate, weighted by positions."""
    total = sum(row["positions"] for row in rows)
    return sum(row["positions"] * abs(row["predicted"] - row["observed"]) for row in rows) / total


def histogram(found: PositionMetrics) -> dict[str, list]:
    """Histogram of the value: ``edges`` of bins, and numbers of positions ``won`` and ``lost`` by the side to move."""
    rate, won = _win_rates(found)
    edges = np.linspace(-1.0, 1.0, HISTOGRAM_BINS + 1)
    counts = {name: np.histogram(2 * rate[chosen] - 1, edges)[0] for name, chosen in (("won", won), ("lost", ~won))}
    return {"edges": np.round(edges, 6).tolist()} | {name: count.tolist() for name, count in counts.items()}


def _win_rates(found: PositionMetrics) -> tuple[np.ndarray, np.ndarray]:
    """Predicted win rates, float64[P'], and whether the side to move won, bool[P'], of positions with both known."""
    known = ~np.isnan(found.value) & ~np.isnan(found.result)
    return (found.value[known] + 1.0) / 2.0, found.result[known] > 0


def by_move(ply: np.ndarray, columns: Mapping[str, np.ndarray], moves: int = MOVES) -> list[dict[str, Any]]:
    """Means by move number: rows with ``from``, ``to`` (None = the end of the game) and the means by name.

    Args:
        ply: int64[P].
        columns: float64[P] by name, NaN = unknown; a row omits a column without known entries, and has the number of
            ``positions`` with any known entry.
        moves: moves in a row.
    """
    some = ~np.isnan(list(columns.values())).all(axis=0)
    bins = np.minimum(ply, LAST_ROW) // moves
    rows = []
    for row in np.unique(bins[some]).tolist():
        inside, first = (bins == row) & some, row * moves
        last = first + moves - 1 if first < LAST_ROW else None
        means = {name: values[inside & ~np.isnan(values)] for name, values in columns.items()}
        rows.append(
            {"from": first, "to": last, "positions": int(inside.sum())}
            | {name: float(values.mean()) for name, values in means.items() if len(values)}
        )
    return rows


Progressed = Callable[[float], None]
"""Called with the number of positions done since the last call"""
Estimate = Callable[[Games, np.ndarray, np.ndarray, Progressed], np.ndarray]
"""Values for the side to move, float64[P], from games, game indices (int64[P]) and plies (int64[P])"""
ROLLOUTS = 100
"""Rollouts of each policy from a position, as published"""
NETWORK, CONSTANT = "network", "constant"
OWN_NAMES = frozenset({"positions", "from", "to", "by_move", "rollouts", NETWORK, CONSTANT})
"""Reserved names in a table of errors"""
MOVES_OF_ROWS = ((9, 5), (13, 10))
"""Largest board size, and moves in a row; ``MOVES`` for larger boards"""


def constant_values(games: Games, rows: np.ndarray, plies: np.ndarray, result: np.ndarray) -> np.ndarray:
    """The best constant value for Black, the mean result.

    Args:
        rows, plies: int64[P].
        result: float64[P]: for the side to move; no NaN.
    Returns:
        float64[P]: the constant, for the side to move.
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
        values: float64[P] by name; those with NaN are omitted, :func:`constant_values` added.
    Returns:
        ``positions``, the errors by name, and ``by_move`` with the errors in each row.
    """
    known = {name: array for name, array in values.items() if not np.isnan(array).any()}
    known[CONSTANT] = constant_values(games, rows, plies, result)
    errors = {name: (result - array) ** 2 for name, array in known.items()}
    largest = int(games.size[rows].max())
    moves = next((moves for size, moves in MOVES_OF_ROWS if largest <= size), MOVES)
    return error_table(plies, errors, moves)


def error_table(plies: np.ndarray, errors: Mapping[str, np.ndarray], moves: int = MOVES) -> dict[str, Any]:
    """``positions``, mean errors by name, and ``by_move`` with the mean errors in each row (:func:`by_move`)."""
    means = {name: float(error.mean()) for name, error in errors.items()}
    return {"positions": len(plies)} | means | {"by_move": by_move(plies, errors, moves)}
