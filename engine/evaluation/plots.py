"""Plots of an evaluation's metrics, as PNG; they need matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.evaluation.values import ROLLOUTS
from engine.train.curves import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MISSING = "plots need matplotlib: pip install matplotlib beside Keima"


def check_plots(folder: Path) -> None:
    """Make the folder for plots, before hours go into what they show.

    Raises:
        ValueError: without matplotlib, or where there can be no such folder; one line.
    """
    try:
        new_figure()
        folder.mkdir(parents=True, exist_ok=True)
    except ImportError as error:
        raise ValueError(MISSING) from error
    except OSError as error:
        raise ValueError(f"{folder}: cannot be a folder for plots ({error.strerror})") from error


def write_plots(report: dict[str, Any], folder: Path) -> list[Path]:
    """Draw a report of :func:`engine.evaluation.evaluation.evaluate_network`, one PNG a subject; returns the files."""
    written = []
    for name, needs, draw in (
        ("calibration", {"calibration"}, _draw_calibration),
        ("histogram", {"histogram"}, _draw_histogram),
        ("by-move", {"by_move", "rollouts"}, _draw_by_move),
        ("errors", {"beside", "policy_rollouts"}, _draw_errors),
        ("game", {"game"}, _draw_game),
    ):
        if needs & report.keys():
            written.append(folder / f"{name}.png")
            save_figure(draw(report), written[-1])
    return written


def _draw_calibration(report: dict[str, Any]) -> "Figure":
    """Reliability: how often positions of a predicted win rate were won."""
    rows, figure = report["calibration"], new_figure()
    panel, total = figure.axes[0], sum(row["positions"] for row in report["calibration"])
    panel.bar(
        [(row["from"] + row["to"]) / 2 for row in rows], [row["positions"] / total for row in rows], 0.09,
        color="0.85", label="share of positions",
    )  # fmt: skip
    panel.plot((0, 1), (0, 1), "k--", linewidth=1, label="perfect")
    panel.plot([row["predicted"] for row in rows], [row["observed"] for row in rows], "o-", label="network")
    panel.set(title="calibration of the value", xlabel="predicted win rate", ylabel="observed win rate")
    panel.set(xlim=(0, 1), ylim=(0, 1))
    return figure


def _draw_histogram(report: dict[str, Any]) -> "Figure":
    """The value's outputs in positions that were won and lost."""
    held, figure = report["histogram"], new_figure()
    for name in ("won", "lost"):
        figure.axes[0].stairs(held[name], held["edges"], fill=True, alpha=0.5, label=f"the side to move {name}")
    figure.axes[0].set(title="outputs of the value", xlabel="value for the side to move", ylabel="positions")
    return figure


def _draw_by_move(report: dict[str, Any]) -> "Figure":
    """Error and accuracy of the value through the game, beside rollouts."""
    figure, rolled, all_rows = new_figure(1, 2), report.get("rollouts"), report.get("by_move", [])
    error, accuracy = figure.axes
    _draw_column(error, all_rows, "value_mse", "network")
    if rolled:
        _draw_column(error, rolled["by_move"], "network", f"network, {rolled['positions']:,} of the positions")
        for name in filter(str.isdigit, rolled):
            _draw_column(error, rolled["by_move"], name, f"{int(name):,} rollouts, the same positions")
    _draw_column(accuracy, all_rows, "value_accuracy", "network")
    error.set(title="error of the value", xlabel="moves played", ylabel="mean of (z - v)², z = ±1", ylim=(0, None))
    accuracy.set(title="accuracy of the value", xlabel="moves played", ylabel="winner predicted")
    return figure


def _draw_errors(report: dict[str, Any]) -> "Figure":
    """AlphaGo's Figure 2b: errors of values by moves played, the network's beside others and rollouts of policies."""
    tables = {"beside": "", "policy_rollouts": f", mean of {ROLLOUTS} rollouts by each policy"}
    shown = [(report[key], words) for key, words in tables.items() if key in report]
    figure = new_figure(1, len(shown))
    for panel, (table, words) in zip(figure.axes, shown, strict=True):
        for name in table:
            if name not in ("positions", "by_move"):
                _draw_column(panel, table["by_move"], name, f"{name}, {table[name]:.3f} in all")
        panel.set(title=f"{table['positions']:,} positions{words}", xlabel="moves played", ylim=(0, None))
        panel.set(ylabel="mean of (z - v)², z = ±1")
    return figure


def _draw_column(panel: Any, rows: list[dict[str, Any]], name: str, label: str) -> None:
    """A column of a table by moves as a curve, at the middles of its rows; the last row is open."""
    known = [row for row in rows if name in row]
    if known:
        middles = [row["from"] if row["to"] is None else (row["from"] + row["to"] + 1) / 2 for row in known]
        panel.plot(middles, [row[name] for row in known], ".-", label=label)


def _draw_game(report: dict[str, Any]) -> "Figure":
    """Black's win rate through one game."""
    game, figure = report["game"], new_figure()
    rates = (1 + np.asarray(game["value_black"])) / 2
    figure.axes[0].plot(np.arange(len(rates)), rates)
    figure.axes[0].axhline(0.5, color="k", linewidth=0.5)
    figure.axes[0].set(
        title=f"game {game['number']}, {game['winner']}", xlabel="moves played", ylabel="Black's win rate"
    )
    figure.axes[0].set(ylim=(0, 1))
    return figure
