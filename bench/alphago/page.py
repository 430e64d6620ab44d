"""The report of a way for people: one page that needs nothing else, and the table that ``docs/alphago.md`` shows.

``python -m bench.alphago.page OUT/report.json docs/alphago.md`` writes the table of a finished way between the marks in
that file.
"""

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import click

from bench.alphago.results import report_of
from bench.alphago.stages import Way, all_stages
from engine.insight.charts import PAGE_STYLE, curves_of, interval_chart, line_chart
from engine.system.files import written_whole
from gtp.cli.terminal import one_line_errors

REPORT, PAGE, PLAYER = "report.json", "report.html", "player.toml"
MARKS = "<!-- ours -->", "<!-- end of ours -->"
FIGURE_2B = ("uniform", "rollout", "sl", "rl", "network", "constant")
"""Whose errors are drawn by moves played"""
Row = tuple[str, str, str]
"""What, the paper's figure, ours"""


def write_report(way: Way, seconds: dict[str, float]) -> None:
    """Write ``report.json``, ``report.html`` and, once all its parts are there, ``player.toml``.

    Args:
        seconds: what each stage took.
    Raises:
        ValueError, OSError: a file of a stage cannot be read, or these not be written.
    """
    report = report_of(way, seconds)
    files = {REPORT: json.dumps(report, indent=1) + "\n", PAGE: page_of(way, report)}
    if all(path.exists() for path in (way.sl, way.value, *way.patterns)):
        files[PLAYER] = player_of(way)
    for name, text in files.items():
        with written_whole(way.out / name) as part:
            part.write_text(text, encoding="utf-8")


def player_of(way: Way) -> str:
    """A settings file for ``keima gtp --config``: the player that all parts make; paths begin at the file's folder."""
    weights, patterns = (
        "+".join(path.relative_to(way.out).as_posix() for path in paths)
        for paths in ((way.sl, way.value), way.patterns)
    )
    lines = [
        f"# AlphaGo as made by keima alphago, for {way.preset.size}x{way.preset.size}",
        f'weights = "{weights}"', f'patterns = "{patterns}"', "rollout-weight = 0.5",
        f"size = {way.preset.size}", f"komi = {way.preset.komi:g}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def rows_of(report: dict[str, Any]) -> Iterator[Row]:
    """The table of a report beside the paper; what a stage has not said stays empty."""
    sl, value = report.get("sl", {}), report.get("value", {})
    filters = f"{report['filters']}; value network {report.get('value_filters', report['filters'])}"
    yield "Board, filters of a layer", "19x19, 192", f"{report['size']}x{report['size']}, {filters}"
    games = report.get("games", {})
    yield "Positions that the SL policy learnt from", "28.4 million", _number(games.get("positions"))
    yield "SL policy: held-out moves that are its first choice", "55.4%", _percent(sl.get("top1"))
    yield "SL policy: held-out cross-entropy, nats", "", _plain(sl.get("cross_entropy"))
    yield "the same: fall over the last quarter of the run", "", _plain(sl.get("fall_over_last_quarter"))
    yield "SL policy against the shipped network's policy", "", _won(sl.get("over_shipped_policy"))
    yield "SL policy alone against GNU Go level 10", "", _won(sl.get("over_gnugo"))
    for kind, paper in (("rollout", "24.2%"), ("tree", "")):
        yield f"{kind.capitalize()} policy: first choices", paper, _percent(report.get("patterns", {}).get(kind))
    yield "RL policy against the SL policy, both sampling", "more than 80%", _won(report.get("rl_over_sl"))
    yield "the same, both greedy after some drawn moves", "", _won(report.get("rl_over_sl_greedy"))
    # The paper's errors seem to be half of (z - v)^2: its Figure 2b begins near 0.5 where the board is empty.
    for kind, words, paper in (
        ("one_a_game", "one position a game", "0.226, 0.234"), ("whole_games", "whole games", "0.19, 0.37"),
    ):  # fmt: skip
        errors = value.get(kind)
        ours = f"{_half(errors.get('training'))}, {_half(errors.get('test'))}" if errors else ""
        yield f"Value network of {words}: training and test error, half of (z - v)^2", paper, ours
    for key, words in (("constant", "a constant"), ("shipped", "the shipped network")):
        yield f"Test error of {words}, half of (z - v)^2", "", _half(value.get("beside", {}).get(key))
    for name, player in report.get("ablation", {}).items():
        low, high = player["interval"]
        ours = f"{player['elo']:.0f} [{low:.0f}, {high:.0f}]"
        yield f"Elo of {name}: {player['parts']}", str(player["paper_elo"]), ours


def markdown(report: dict[str, Any]) -> str:
    """The table in Markdown."""
    lines = ["| what | paper | ours |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows_of(report))])


def page_of(way: Way, report: dict[str, Any]) -> str:
    """The report as HTML with its charts inside."""
    parts = [f"<!doctype html><meta charset=utf-8><title>AlphaGo on {way.preset.size}x{way.preset.size}</title>"]
    parts.append(f"<style>{PAGE_STYLE}</style><h1>AlphaGo on {way.preset.size}x{way.preset.size}</h1>")
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows_of(report))
    parts.append(f"<table><tr><th></th><th>paper</th><th>ours</th></tr>{cells}</table><h2>Curves</h2>")
    parts += _charts(way, report)
    parts.append("<h2>Stages</h2>")
    for stage in all_stages(way):
        minutes = report["seconds"].get(stage.name, 0.0) / 60
        commands = escape("\n".join(command.text for command in stage.commands))
        parts.append(f"<h3>{stage.name}: {escape(stage.what)}, {minutes:.1f} minutes</h3><pre>{commands}</pre>")
    return "\n".join(parts) + "\n"


def _charts(way: Way, report: dict[str, Any]) -> Iterator[str]:
    """Everything that is drawn."""
    sl, rl = curves_of(way.sl.parent), curves_of(way.rl.parent)
    held_out = {"training": sl.get("train/policy", []), "held out": sl.get("validation/cross_entropy", [])}
    yield line_chart("SL policy: cross-entropy, nats", held_out, "step")
    win_rates = {name: rl.get(f"rl/win_rate/{name}", []) for name in ("start", "newest", "pool")}
    yield line_chart("RL policy: win rate against the start, the newest of the pool, all of it", win_rates, "update")
    for name, words in (("entropy", "entropy of a move, nats"), ("divergence", "divergence from the start, nats"),
                        ("moves", "moves of a game"), ("games_per_s", "games a second")):  # fmt: skip
        yield line_chart(f"RL policy: {words}", {name: rl.get(f"rl/{name}", [])}, "update")
    for name, folder, _ in way.value_kinds():
        curves = curves_of(folder)
        errors = {"training": "validation/seen/value_mse", "held out": "validation/value_mse"}
        series = {words: curves.get(key, []) for words, key in errors.items()}
        yield line_chart(f"Value network, {name.replace('_', ' ')}: (z - v)^2", series, "step")
    rows = report.get("value", {}).get("rollouts", {}).get("by_move", [])
    series = {name: [(row["from"], row[name]) for row in rows if name in row] for name in FIGURE_2B}
    yield line_chart("Figure 2b: (z - v)^2 by moves played, of values and of 100 rollouts", series, "moves played")
    players = report.get("ablation", {})
    ratings = [(name, one["elo"], *one["interval"]) for name, one in players.items()]
    yield interval_chart("Elo and 95% interval", ratings, "Elo")


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _half(error: float | None) -> str:
    return _plain(None if error is None else error / 2)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _won(found: dict[str, Any] | None) -> str:
    """Results of games in a cell."""
    if not found:
        return ""
    low, high = found["interval"]
    different = found["won"] + found["lost"] + found["drawn"]
    games = found.get("games", different)
    said = f"{games:,} games" if games == different else f"{games:,} games, {different:,} different"
    return f"{found['rate']:.1%} [{low:.1%}, {high:.1%}], {said}"


@click.command()
@click.argument("report", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("page", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def command(report: Path, page: Path) -> None:
    """Write the table of REPORT between the marks in PAGE."""
    with one_line_errors(KeyError):
        text = page.read_text(encoding="utf-8")
        before, first, rest = text.partition(MARKS[0])
        _, last, after = rest.partition(MARKS[1])
        if not (first and last):
            raise ValueError(f"{page}: expected the marks {MARKS[0]} and {MARKS[1]}")
        table = markdown(json.loads(report.read_text(encoding="utf-8")))
        with written_whole(page) as part:
            part.write_text(f"{before}{first}\n\n{table}\n\n{last}{after}", encoding="utf-8")


if __name__ == "__main__":
    command()
