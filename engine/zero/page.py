"""The page of a run: ``index.html``, a self-contained file that reloads itself, with numbers, curves and the empty
board; and ``curves.svg`` with the most important curves."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.evaluation.elo import Rated
from engine.pictures.boards import board, circle, label
from engine.pictures.charts import interval_chart, line_chart, side_by_side
from engine.pictures.drawing import stand_alone
from engine.pictures.pages import page
from engine.system.files import written_whole
from engine.train.curves import Series, series_of
from engine.zero.facts import first_moves
from engine.zero.ladder import GNUGO, RANDOM, Match, standings
from engine.zero.loop import Zero
from engine.zero.networks import NETWORK

PAGE, PICTURE = "index.html", "curves.svg"
RELOAD_S = 30
RATED_SHOWN = 12
CHARTS = (
    ("Rows in all, and in the window", {"rows": "zero/rows", "window": "zero/window"}),
    ("Samples per row", {"samples": "zero/samples_per_row"}),
    ("Games per second of self-play", {"games/s": "zero/games_per_s"}),
    ("Loss of the policy, entropy of its targets (nats)", {"policy": "train/policy", "targets": "rows/entropy"}),
    ("Losses of value, ownership, score", {
        "value": "train/value", "ownership": "train/ownership", "score": "train/score",
    }),
    ("Empty board: policy", {"centre": "empty/centre", "pass": "empty/pass"}),
    ("Empty board: entropy of the policy (nats)", {"entropy": "empty/entropy"}),
    ("Empty board: value for Black", {"value": "empty/value"}),
    ("Empty board: score for Black, komi of self-play (points)", {"score": "empty/score", "komi": "zero/komi"}),
    ("Moves per game", {"moves": "games/moves"}),
    ("Games that Black won, and that reached the move limit", {"Black": "games/black_wins", "limit": "games/limit"}),
    ("False resignations at value -0.8", {"share": "games/false_resignations"}),
    ("Seconds of a turn", {"self-play": "zero/play_s", "training": "zero/train_s"}),
)  # fmt: skip
"""Charts of the page: title, and names of the metrics by label of the curve"""
OF_PICTURE = (
    "Empty board: score for Black, komi of self-play (points)", "Empty board: value for Black", "Empty board: policy",
    "Losses of value, ownership, score", "Loss of the policy, entropy of its targets (nats)",
)  # fmt: skip
"""Titles of the charts in ``curves.svg``, after the Elo chart"""


def write_page(zero: Zero, matches: list[Match], status: str) -> None:
    """Write ``index.html`` and, once there are metrics, ``curves.svg``, each atomically.

    Args:
        status: current phase of the run and its progress.
    Raises:
        OSError: a file cannot be written.
    """
    curves, players, size = series_of(zero.out / "curves.csv"), standings(matches), zero.config.play.size
    charts = {
        title: line_chart(title, {name: by_minutes(curves, key) for name, key in names.items()}, "minutes")
        for title, names in CHARTS
    }
    elo, shown = elo_chart(players, curves), players[-RATED_SHOWN:]
    intervals = [(one.name.removeprefix("network "), *_of(one)) for one in shown]
    rated = interval_chart("Elo and 95% interval (random player = 0)", intervals, "Elo")
    text = page(
        Path(__file__).parent / "zero.html", size=size, status=status, time=time.strftime("%Y-%m-%d %H:%M:%S"),
        numbers=_latest_numbers(zero, curves, players), charts=[rated, elo, *charts.values()], reload_s=RELOAD_S,
        matches=matches[::-1][: 4 * RATED_SHOWN], settings=zero.config.settings, network=zero.out / NETWORK,
        board=None if zero.board is None else board_picture(zero.board.policy, size),
    )  # fmt: skip
    files = {PAGE: text}
    if curves:
        files[PICTURE] = stand_alone(side_by_side([elo, *(charts[title] for title in OF_PICTURE)]))
    for name, text in files.items():
        with written_whole(zero.out / name) as part:
            part.write_text(text, encoding="utf-8")


def _latest_numbers(zero: Zero, curves: Series, players: list[Rated]) -> Iterator[tuple[str, str]]:
    """Rows of the page's table with the latest numbers: names and values."""

    def latest(name: str) -> float:
        return curves[name][-1][1] if name in curves else 0.0

    yield "turn, network", f"{zero.turn.number}, {zero.turn.network}"
    yield "time", f"{zero.seconds / 60:.1f} minutes"
    yield "rows, games", f"{latest('zero/rows'):,.0f} of {latest('zero/games'):,.0f} games"
    yield "window, samples per row", f"{latest('zero/window'):,.0f} rows, {latest('zero/samples_per_row'):.2f}"
    yield "games per second", f"{latest('zero/games_per_s'):.1f}"
    if zero.board is not None:
        komi = zero.config.play.komi
        yield "first moves", first_moves(zero.board, zero.config.play.size)
        yield "empty board", f"value {zero.board.value:+.2f} at komi {komi:g}, score {zero.board.score:+.1f}"
    for one in [one for one in players if one.name not in (RANDOM, GNUGO)][-1:]:
        yield "newest Elo (random player = 0)", f"{one.name}: {one.elo:.0f} ({one.low:.0f} to {one.high:.0f})"


def by_minutes(curves: Series, name: str) -> list[tuple[float, float]]:
    """Points of a metric's curve by minutes of the run instead of steps."""
    minutes = dict(curves.get("zero/minutes", []))
    return [(minutes[step], value) for step, value in curves.get(name, []) if step in minutes]


def elo_chart(players: list[Rated], curves: Series) -> str:
    """Chart of the networks' Elo by minutes of the run, with 95% intervals; GNU Go is a horizontal line."""
    minutes = dict(curves.get("zero/minutes", []))
    series: dict[str, list[tuple[float, float]]] = {"Elo": [], "low": [], "high": []}
    for one in players:
        if one.name not in (RANDOM, GNUGO) and (at := minutes.get(float(one.name.split()[-1]))) is not None:
            for name, value in zip(series, _of(one), strict=True):
                series[name].append((at, value))
    level = [one.elo for one in players if one.name == GNUGO]
    if level and series["Elo"]:
        series["GNU Go"] = [(series["Elo"][k][0], level[0]) for k in (0, -1)]
    return line_chart("Elo by small searches (random player = 0)", series, "minutes")


def _of(one: Rated) -> tuple[float, float, float]:
    return one.elo, one.low, one.high


def board_picture(policy: np.ndarray, size: int) -> str:
    """Picture of an empty board with the probabilities of the first moves in percent, as SVG.

    Args:
        policy: float64[N*N + 1] in policy order.
    """
    shares, most = policy[:-1].tolist(), max(float(policy[:-1].max()), 1e-9)
    shown = {index: share for index, share in enumerate(shares) if share >= 0.005}
    drawn = [
        circle(index, size, 11.5, f'fill="var(--s0)" opacity="{share / most:.2f}"')
        + label(index, size, f"{100 * share:.0f}", "var(--stone-w)")
        for index, share in shown.items()
    ]
    return board(size, "".join(drawn), "Probabilities of the first moves, in percent")
