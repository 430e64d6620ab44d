"""Plots of an evaluation's metrics as PNG, by matplotlib."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from engine.pictures.charts import Points, line_chart, side_by_side
from engine.pictures.drawing import check_png, png

ERROR = "mean of (z - v)², z = ±1"


def check_plots(folder: Path) -> None:
    """Create the folder for plots and check for matplotlib, so that both fail before hours of evaluation.

    Raises:
        ValueError: matplotlib is missing, or the folder cannot be created; one line.
    """
    check_png()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{folder}: cannot create the folder for plots ({error.strerror})") from error


def write_plots(report: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the report of :func:`engine.evaluation.evaluation.evaluate_network`, one PNG a topic; returns the paths."""
    written = []
    for name, needs, draw in (
        ("calibration", {"calibration"}, _calibration),
        ("histogram", {"histogram"}, _histogram),
        ("by-move", {"by_move", "rollouts"}, _by_move),
        ("errors", {"beside", "policy_rollouts"}, _errors),
        ("game", {"game"}, _game),
    ):
        if needs & report.keys():
            written.append(folder / f"{name}.png")
            written[-1].write_bytes(png(side_by_side(draw(report))))
    return written


def _calibration(report: dict[str, Any]) -> list[str]:
    """Chart of observed against predicted win rates, with the share of positions in each bin."""
    rows = report["calibration"]
    total = sum(row["positions"] for row in rows)
    shares = [(row[end], row["positions"] / total) for row in rows for end in ("from", "to")]
    series = {
        "observed": [(row["predicted"], row["observed"]) for row in rows],
        "perfect": [(0, 0), (1, 1)],
        "share of positions": shares,
    }
    return [line_chart("calibration of the value: win rates", series, "predicted win rate", (0, 1))]


def _histogram(report: dict[str, Any]) -> list[str]:
    """Histogram of the value, separately for positions that the side to move won and lost."""
    held, series = report["histogram"], {}
    for name in ("won", "lost"):
        steps = zip(pairwise(held["edges"]), held[name], strict=True)
        series[f"the side to move {name}"] = [(end, count) for ends, count in steps for end in ends]
    return [line_chart("outputs of the value: positions", series, "value for the side to move", (0, None))]


def _by_move(report: dict[str, Any]) -> list[str]:
    """Charts of the value's error and accuracy by move number, the error also of rollouts."""
    rows, rolled = report.get("by_move", []), report.get("rollouts")
    errors, accuracy = {"network": _column(rows, "value_mse")}, {"network": _column(rows, "value_accuracy")}
    if rolled:
        errors[f"network, {rolled['positions']:,} of the positions"] = _column(rolled["by_move"], "network")
        for name in filter(str.isdigit, rolled):
            errors[f"{int(name):,} rollouts, the same positions"] = _column(rolled["by_move"], name)
    return [
        line_chart(f"error of the value: {ERROR}", errors, "moves played", (0, None)),
        line_chart("accuracy of the value: winner predicted", accuracy, "moves played"),
    ]


def _errors(report: dict[str, Any]) -> list[str]:
    """Charts like AlphaGo's Figure 2b: errors by move number of networks' values and of rollouts by policies."""
    charts: list[str] = []
    for key in filter(report.__contains__, ("beside", "policy_rollouts")):
        table = report[key]
        names = [name for name in table if name not in ("positions", "by_move", "rollouts", "ms")]
        rollouts = f", {table['rollouts']:,} rollouts by each policy" if "rollouts" in table else ""
        series = {f"{name}, {table[name]:.3f} in all": _column(table["by_move"], name) for name in names}
        title = f"{ERROR}: {table['positions']:,} positions{rollouts}"
        charts.append(line_chart(title, series, "moves played", (0, None)))
    return charts


def _column(rows: list[dict[str, Any]], name: str) -> Points:
    """A column of a by-move table as a curve: each row at the middle of its moves, the open-ended last at its start."""
    return [
        (row["from"] if row["to"] is None else (row["from"] + row["to"] + 1) / 2, row[name])
        for row in rows
        if name in row
    ]


def _game(report: dict[str, Any]) -> list[str]:
    """Chart of Black's predicted win rate before each move of a game."""
    game = report["game"]
    rates = [(move, (1 + value) / 2) for move, value in enumerate(game["value_black"])]
    title = f"game {game['number']}, {game['winner']}: Black's win rate"
    return [line_chart(title, {"Black": rates, "even": [(0, 0.5), (len(rates) - 1, 0.5)]}, "moves played", (0, 1))]
