"""Metrics of a network's value: calibration, histogram, errors by move number, and comparison with baselines.

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
"""Number of equal ranges of the win rate in the table of :func:`reliability`"""
HISTOGRAM_BINS = 20
MOVES = 20
"""Default number of moves in a row of :func:`by_move`"""
LAST_ROW = 300
"""Ply at which the last, open-ended row of :func:`by_move` begins"""


def reliability(found: PositionMetrics) -> list[dict[str, float]]:
    """Reliability table: predicted win rates, (v + 1) / 2 for the side to move, against observed ones.

    Returns:
        a row for each of ten equal ranges of the predicted rate that has positions: ``from``, ``to``, the means
        ``predicted`` and ``observed``, and the number of ``positions``.
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
    """Expected calibration error of a :func:`reliability` table: mean |predicted - observed|, weighted by positions."""
    total = sum(row["positions"] for row in rows)
    return sum(row["positions"] * abs(row["predicted"] - row["observed"]) for row in rows) / total


def histogram(found: PositionMetrics) -> dict[str, list]:
    """Histogram of the value: ``edges`` of bins, and by bin the numbers of positions that the side to move ``won`` and
    ``lost``.
    """
    rate, won = _win_rates(found)
    edges = np.linspace(-1.0, 1.0, HISTOGRAM_BINS + 1)
    counts = {name: np.histogram(2 * rate[chosen] - 1, edges)[0] for name, chosen in (("won", won), ("lost", ~won))}
    return {"edges": np.round(edges, 6).tolist()} | {name: count.tolist() for name, count in counts.items()}


def _win_rates(found: PositionMetrics) -> tuple[np.ndarray, np.ndarray]:
    """Predicted win rate (float64) and whether the side to move won (bool), of the positions where both are known."""
    known = ~np.isnan(found.value) & ~np.isnan(found.result)
    return (found.value[known] + 1.0) / 2.0, found.result[known] > 0


def by_move(ply: np.ndarray, columns: Mapping[str, np.ndarray], moves: int = MOVES) -> list[dict[str, Any]]:
    """Means by move number, over ranges of plies.

    Args:
        ply: int64[P]: moves before each position.
        columns: by name, the quantities to average, float64[P]; NaN = unknown.
        moves: number of plies in a row.
    Returns:
        a row for each range that has known entries: ``from``, ``to`` (the last ply; None = open-ended),
        ``positions`` with any known entry, and by name the mean of the known entries, if there are any.
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
Estimate = Callable[[Games, np.ndarray, np.ndarray, int, Progressed], np.ndarray]
"""Estimates values for the side to move, float64[P], from games, game indices (int64[P]), plies (int64[P]) and a number
of rollouts"""
ROLLOUTS = 100
"""Number of rollouts of each policy from a position, as in AlphaGo's Figure 2b"""
NETWORK, CONSTANT = "network", "constant"
OWN_NAMES = frozenset({"positions", "from", "to", "by_move", "rollouts", "ms", NETWORK, CONSTANT})
"""Keys of a report or table of errors, which no baseline may have as its name"""
MOVES_OF_ROWS = ((9, 5), (13, 10))
"""(largest board size, plies in a row of :func:`by_move`); ``MOVES`` for larger boards"""


def constant_values(games: Games, rows: np.ndarray, plies: np.ndarray, result: np.ndarray) -> np.ndarray:
    """The constant prediction with the least squared error: Black's mean result, seen by each side to move.

    Args:
        rows, plies: int64[P]: each position's game, and the number of moves before it.
        result: float64[P]: for the side to move; no NaN.
    Returns:
        float64[P]: Black's mean result where Black is to move, else minus that.
    """
    sign = np.where((plies % 2 == 0) == (games.first[rows] == BLACK), 1.0, -1.0)
    return sign * (sign * result).mean()


def errors_beside(
    games: Games, rows: np.ndarray, plies: np.ndarray, result: np.ndarray, values: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Mean squared errors (z - v)^2 of several value estimates, over all positions and by move number.

    Args:
        rows, plies: int64[P]: each position's game, and the number of moves before it.
        result: float64[P]: z, 1 or -1 for the side to move.
        values: by name, v for the side to move, float64[P]; estimates with any NaN are omitted.
    Returns:
        ``positions``, the error of each estimate and of ``constant`` (:func:`constant_values`) by name, and
        ``by_move`` with these errors in each row.
    """
    known = {name: array for name, array in values.items() if not np.isnan(array).any()}
    known[CONSTANT] = constant_values(games, rows, plies, result)
    errors = {name: (result - array) ** 2 for name, array in known.items()}
    largest = int(games.size[rows].max())
    moves = next((moves for size, moves in MOVES_OF_ROWS if largest <= size), MOVES)
    return error_table(plies, errors, moves)


def error_table(plies: np.ndarray, errors: Mapping[str, np.ndarray], moves: int = MOVES) -> dict[str, Any]:
    """Table of errors (float64[P] by name): ``positions``, the mean errors by name, and the rows of :func:`by_move`."""
    means = {name: float(error.mean()) for name, error in errors.items()}
    return {"positions": len(plies)} | means | {"by_move": by_move(plies, errors, moves)}
