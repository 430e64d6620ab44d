"""The tables of ``keima evaluate``, from the report of :func:`engine.evaluation.evaluation.evaluate_network`."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.table import Table

from engine.evaluation.rollout_values import COUNTS
from engine.evaluation.values import ROLLOUTS
from engine.train.metrics import STAGES
from gtp.cli.terminal import new_table

METRICS = {
    "top1": ("first choice", "{:.1%}"),
    "top5": ("among the first five", "{:.1%}"),
    "cross_entropy": ("cross-entropy, nats", "{:.3f}"),
    "value_mse": ("value MSE", "{:.3f}"),
    "constant_mse": ("of the best constant", "{:.3f}"),
    "value_accuracy": ("winner predicted", "{:.1%}"),
}
LABEL_METRICS = {
    "teacher_top1": ("same first choice", "{:.1%}"),
    "value_mse": ("value: mean squared error", "{:.3f}"),
    "score_mae": ("score: mean absolute error (points)", "{:.1f}"),
    "ownership_mse": ("ownership: mean squared error", "{:.3f}"),
}
ERRORS = {
    "beside": "Value MSE by moves played, beside other networks and the best constant",
    "policy_rollouts": f"Value MSE by moves played, beside {ROLLOUTS} rollouts by each policy",
}
GAME_COLUMNS = 10
LONGEST = 1000
"""A stage that ends later has no end."""


def tables_of(report: dict[str, Any]) -> Iterator[tuple[str, Table]]:
    """Everything a report holds, each table with its heading."""
    yield "Moves and results predicted; value MSE is the mean of (z - v)^2 with z = 1 or -1", _metrics(report)
    if "calibration" in report:
        yield f"Calibration of the value, off by {report['calibration_error']:.1%} in the mean", _calibration(report)
    if "rollouts" in report:
        yield "Value MSE by moves played, and that of 10, 100 and 1,000 rollouts", _by_move(report)
    elif "by_move" in report:
        yield "Value MSE by moves played", _by_move(report)
    for key, heading in ERRORS.items():
        if key in report:
            yield heading, _errors(report[key])
    if any(name.partition("/")[2].isdigit() for name in report):
        yield "Agreement with the teacher's labels", _labels(report)
    if "game" in report:
        game = report["game"]
        yield f"Black's win rate through game {game['number']}, {game['winner']}", _game(game)


def _metrics(report: dict[str, Any]) -> Table:
    """Policy and value by stage, with and without the ensemble."""
    several = report["symmetries"] > 1
    spans = [f"from {first}" if last > LONGEST else f"{first}-{last - 1}" for _, first, last in STAGES]
    stages = [f"{stage}\n{span}" for (stage, _, _), span in zip(STAGES, spans, strict=True)]
    table = new_table("", *(("symmetries",) if several else ()), "all", *stages)
    for name, (words, form) in METRICS.items():
        for prefix, count in (("plain/", 1), ("", report["symmetries"])):
            if prefix + name in report:
                keys = [prefix + name, *(f"{prefix}{name}/{stage}" for stage, _, _ in STAGES)]
                shown = (str(count),) if several else ()
                table.add_row(words, *shown, *(_shown(report, key, form) for key in keys))
    return table


def _shown(row: dict[str, Any], key: str, form: str) -> str:
    """A metric as text, empty where there is none."""
    return form.format(row[key]) if key in row else ""


def _calibration(report: dict[str, Any]) -> Table:
    """Win rates predicted and observed."""
    table = new_table("win rate", "predicted", "observed", "positions")
    for row in report["calibration"]:
        span = f"{row['from']:.0%}-{row['to']:.0%}"
        table.add_row(span, f"{row['predicted']:.1%}", f"{row['observed']:.1%}", f"{row['positions']:,}")
    return table


def _by_move(report: dict[str, Any]) -> Table:
    """The value through the game, beside rollouts on some of the positions."""
    whole, rolled = report.get("by_move", []), report.get("rollouts", {"by_move": []})
    sides = []
    if whole:
        total = report | {"positions": sum(row["positions"] for row in whole)}
        names = {"positions": "positions", "value_mse": "MSE", "value_accuracy": "winner\npredicted"}
        sides.append((whole, total, names))
    if rolled["by_move"]:
        names = {"positions": "rolled\nout", "network": "network"} | {str(count): f"{count:,}" for count in COUNTS}
        sides.append((rolled["by_move"], rolled, {key: name for key, name in names.items() if key in rolled}))
    table = new_table("moves", *(name for _, _, columns in sides for name in columns.values()))
    starts = {row["from"]: row["to"] for rows, _, _ in sides for row in rows}
    held = [({row["from"]: row for row in rows}, columns) for rows, _, columns in sides]
    for start, last in sorted(starts.items()):
        span = f"from {start}" if last is None else f"{start}-{last}"
        table.add_row(span, *(cell for rows, columns in held for cell in _cells(rows.get(start, {}), columns)))
    table.add_section()
    table.add_row("all", *(cell for _, total, columns in sides for cell in _cells(total, columns)))
    return table


def _cells(row: dict[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Cells of a row by moves."""
    forms = {"positions": "{:,}", "value_accuracy": "{:.1%}"}
    return (_shown(row, name, forms.get(name, "{:.3f}")) for name in names)


def _errors(errors: dict[str, Any]) -> Table:
    """Errors side by side; a row for each range of moves, and the whole."""
    columns = [name for name in errors if name != "by_move"]
    table = new_table("moves", *columns)
    for row in errors["by_move"]:
        span = f"from {row['from']}" if row["to"] is None else f"{row['from']}-{row['to']}"
        table.add_row(span, *_cells(row, columns))
    table.add_section()
    table.add_row("all", *_cells(errors, columns))
    return table


def _labels(report: dict[str, Any]) -> Table:
    """Agreement with a teacher by board size."""
    sizes = sorted({int(name.partition("/")[2]) for name in report if name.partition("/")[2].isdigit()})
    table = new_table("", *(f"{size}x{size}" for size in sizes))
    for name, (words, form) in LABEL_METRICS.items():
        if any(f"{name}/{size}" in report for size in sizes):
            table.add_row(words, *(_shown(report, f"{name}/{size}", form) for size in sizes))
    return table


def _game(game: dict[str, Any]) -> Table:
    """Black's win rate before each move of a game, ten to a row."""
    rates = [f"{(1 + value) / 2:.0%}" for value in game["value_black"]]
    table = new_table("moves", *(f"+{i}" for i in range(GAME_COLUMNS)))
    for start in range(0, len(rates), GAME_COLUMNS):
        table.add_row(str(start), *rates[start : start + GAME_COLUMNS])
    return table
