"""Measures of values: calibration, a histogram of outputs, errors by move number, and errors side by side.

Source of the comparison with others: AlphaGo, Figure 2b: the error of the value network through the game beside that of
rollouts of four policies.
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
"""Moves of a row of the table by moves"""
LAST_ROW = 300
"""From here on all positions share the last row."""


def reliability(found: PositionMetrics) -> list[dict[str, float]]:
    """The win rate predicted, (v + 1) / 2 for the side to move, beside the one observed.

    Returns:
        a row for each of ten equal ranges that occur: ``from``, ``to``, the means ``predicted`` and ``observed``, and
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
    """Mean distance between predicted and observed win rate, ranges weighted by their positions."""
    total = sum(row["positions"] for row in rows)
    return sum(row["positions"] * abs(row["predicted"] - row["observed"]) for row in rows) / total


def histogram(found: PositionMetrics) -> dict[str, list]:
    """How often the value took which outputs: ``edges`` of ranges, positions ``won`` and ``lost`` by the mover."""
    rate, won = _win_rates(found)
    edges = np.linspace(-1.0, 1.0, HISTOGRAM_BINS + 1)
    counts = {name: np.histogram(2 * rate[chosen] - 1, edges)[0] for name, chosen in (("won", won), ("lost", ~won))}
    return {"edges": np.round(edges, 6).tolist()} | {name: count.tolist() for name, count in counts.items()}


def _win_rates(found: PositionMetrics) -> tuple[np.ndarray, np.ndarray]:
    """Predicted win rates float64[P'] and whether it was won bool[P'], where both are known."""
    known = ~np.isnan(found.value) & ~np.isnan(found.result)
    return (found.value[known] + 1.0) / 2.0, found.result[known] > 0


def by_move(ply: np.ndarray, columns: Mapping[str, np.ndarray], moves: int = MOVES) -> list[dict[str, Any]]:
    """Means by move number: a row for each 20 moves that occur, ``from`` and ``to`` (None = the end of the game).

    Args:
        ply: int64[P].
        columns: float64[P] by name, NaN = unknown; a row leaves out a column that is unknown throughout, and has the
            number of ``positions`` where any is known.
        moves: of a row, where they are not 20.
    """
    some = np.zeros(len(ply), bool)
    for values in columns.values():
        some |= ~np.isnan(values)
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
    return error_table(plies, errors, moves)


def error_table(plies: np.ndarray, errors: Mapping[str, np.ndarray], moves: int = MOVES) -> dict[str, Any]:
    """``positions``, the means of errors by name, and ``by_move`` with the same in each row (:func:`by_move`)."""
    means = {name: float(error.mean()) for name, error in errors.items()}
    return {"positions": len(plies)} | means | {"by_move": by_move(plies, errors, moves)}
