"""The report of a run: ``report.json``, a self-contained page, and the settings file of the resulting player.

Results of stages that have not been run are left out. Start at :func:`write_report`.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from engine.alphago.stages import (
    EVALUATION,
    PATTERNS,
    PLAYERS,
    RESIGNATION,
    SEARCH,
    SL,
    VALUE,
    VALUE_KINDS,
    Plan,
    as_toml,
)
from engine.evaluation.elo import rated, weakest, wilson_interval, win_rate
from engine.pictures.charts import interval_chart, line_chart
from engine.pictures.pages import page
from engine.records.games import read_games
from engine.records.schema import join
from engine.records.shards import MANIFEST, SHARDS
from engine.rollout.model import load_patterns
from engine.system.files import written_whole
from engine.train.curves import Series, series_of

REPORT, PAGE, PLAYER = "report.json", "report.html", "player.toml"
LAST_QUARTER = 0.75
FIGURE_2B = ("uniform", "rollout", "sl", "rl", "network", "constant")
"""Names of the curves in the chart of errors by moves played, after the paper's Figure 2b"""
Row = tuple[str, str, str]
"""A row of the report's table: description, the paper's result, this run's result"""


def write_report(plan: Plan, seconds: dict[str, float]) -> None:
    """Write ``report.json``, ``report.html`` and, once the player's networks and policies exist, ``player.toml``.

    Args:
        seconds: durations by stage.
    Raises:
        ValueError, OSError: a file of a stage cannot be read, or a report not be written.
    """
    report = report_of(plan, seconds)
    files = {REPORT: json.dumps(report, indent=1) + "\n", PAGE: page_of(plan, report)}
    if all((plan.out / name).exists() for name in (SL, VALUE, *PATTERNS)):
        # Paths are relative to the file's folder.
        files[PLAYER] = (
            f"# AlphaGo as made by keima alphago, for {plan.preset.size}x{plan.preset.size}\n"
            f'weights = "{SL}+{VALUE}"\npatterns = "{"+".join(PATTERNS)}"\n'
            f"size = {plan.preset.size}\nkomi = {plan.preset.komi:g}\n{as_toml(SEARCH | RESIGNATION)}"
        )
    for name, text in files.items():
        with written_whole(plan.out / name) as part:
            part.write_text(text, encoding="utf-8")


def report_of(plan: Plan, seconds: dict[str, float]) -> dict[str, Any]:
    """All results so far by name, as JSON values.

    Args:
        seconds: durations by stage.
    Raises:
        ValueError: a file of a stage is damaged; one line.
        OSError: a file cannot be read.
    """
    out, preset = plan.out, plan.preset
    report: dict[str, Any] = {
        "size": preset.size, "komi": preset.komi, "filters": preset.filters, "value_filters": preset.value_filters,
        "seconds": seconds,
    }  # fmt: skip
    if built := _json(out / "games" / "set" / MANIFEST):
        report["games"] = {"games": built["games"]["train"], "positions": built["moves"]["train"]}
    if curves := series_of(out / "sl" / "curves.csv"):
        report["sl"] = _supervised(curves)
        report["sl"] |= _known(over_shipped_policy=outcomes_of(out / "sl" / "against-shipped"))
        if played := _json(out / "sl" / "against-gnugo" / "summary.json"):
            report["sl"]["over_gnugo"] = counted(*(played["all"][name] for name in ("won", "lost", "drawn", "games")))
    report["patterns"] = {
        Path(name).stem: load_patterns(out / name).record["validation"]["top1"]
        for name in PATTERNS if (out / name).exists()
    }  # fmt: skip
    if curves := series_of(out / "rl" / "curves.csv"):
        rates = {name.removeprefix("rl/"): points[-1][1] for name, points in curves.items() if "win_rate/" in name}
        report["rl"] = {"updates": int(max(points[-1][0] for points in curves.values()))} | rates
    games = {"rl_over_sl": "sampling", "rl_over_sl_greedy": "greedy"}
    report |= _known(**{key: outcomes_of(out / "rl" / name) for key, name in games.items()})
    value = {name: _value_errors((out / network).parent, out / data) for name, network, data, _ in VALUE_KINDS}
    if found := _json(out / EVALUATION):
        value |= {"beside": found["beside"], "rollouts": found["policy_rollouts"]}
        for name, key in (("one_a_game", "network"), ("whole_games", "whole_games")):
            value[name] = (value[name] or {}) | {"test": found["beside"].get(key)}
    return report | _known(value=_known(**value)) | _ablation(out / "ablation")


def _known(**values: Any) -> dict[str, Any]:
    """The arguments that are neither None nor empty, by name."""
    return {name: value for name, value in values.items() if value}


def _json(path: Path) -> Any:
    """The content of a JSON file; None if there is no such file.

    Raises:
        ValueError: the file is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from error


def counted(won: int, lost: int, drawn: int, games: int = 0) -> dict[str, Any]:
    """Results of games for the report: counts without duplicate games, win rate and its 95% interval.

    Args:
        games: number of games played, including duplicates; 0 = there were no duplicates.
    """
    rate, *interval = win_rate(won, lost, drawn)
    games = games or won + lost + drawn
    return {"won": won, "lost": lost, "drawn": drawn, "games": games, "rate": rate, "interval": interval}


def outcomes_of(folder: Path) -> dict[str, Any] | None:
    """Results of the first of two networks in a folder of bulk games (:func:`counted`); None without a finished shard.

    Raises:
        ValueError: a shard is damaged; one line.
    """
    shards = sorted(folder.rglob(SHARDS))
    if not shards:
        return None
    games = join([read_games(path) for path in shards])
    is_black = games.number % 2 == 0
    moves = (games.moves[start:end].tobytes() for start, end in pairwise(games.offsets.tolist()))
    rows = list({key: row for row, key in enumerate(zip(is_black.tolist(), moves, strict=True))}.values())
    results = (np.where(is_black, 1, -1) * games.result)[rows]
    won, lost, drawn = (int((results == sign).sum()) for sign in (1, -1, 0))
    return counted(won, lost, drawn, len(is_black))


def _supervised(curves: Series) -> dict[str, Any]:
    """Final validation metrics of supervised learning, and the fall of its cross-entropy over the last quarter."""
    entropy = curves.get("validation/cross_entropy", [])
    found = {name: curves[f"validation/{name}"][-1][1] for name in ("top1", "cross_entropy") if entropy}
    if len(entropy) > 1:
        last = entropy[-1][0]
        before = [value for step, value in entropy if step <= LAST_QUARTER * last] or [entropy[0][1]]
        found["fall_over_last_quarter"] = before[-1] - entropy[-1][1]
    return found | ({"steps": int(entropy[-1][0])} if entropy else {})


def _value_errors(folder: Path, training: Path) -> dict[str, Any] | None:
    """Errors (z - v)^2 of a value network at the selected step, on selection and training positions, and the number of
    its training positions; None without a validation."""
    curves = series_of(folder / "curves.csv")
    tested, trained = (curves.get(f"validation/{key}value_mse", []) for key in ("", "seen/"))
    if not tested:
        return None
    step, error = min(tested, key=lambda point: point[1])
    found = {"step": int(step), "selection": error, "training": dict(trained).get(step)}
    # One shard at a time: all positions of a run take gigabytes.
    parts = map(read_games, sorted(training.rglob(SHARDS)))
    if positions := sum(int((games.position >= 0).sum()) or len(games.moves) for games in parts):
        found["positions"] = positions
    return found


def _ablation(folder: Path) -> dict[str, Any]:
    """Elo of the players with 95% intervals (the weakest = 0), and results of the pairs; empty without games."""
    wins: dict[tuple[str, str], float] = {}
    pairs: dict[str, Any] = {}
    for path in sorted(folder.glob("*/summary.json")):
        played, (first, second) = _json(path)["all"], path.parent.name.split("-")
        points = [played["won"] + 0.5 * played["drawn"], played["lost"] + 0.5 * played["drawn"]]
        # An interrupted match may have no game yet.
        wins |= {(first, second): points[0], (second, first): points[1]} if any(points) else {}
        interval = list(wilson_interval(points[0], int(sum(points))))
        pairs[path.parent.name] = {"points": points, "interval": interval}
    if not wins:
        return {}
    found = {one.name: one for one in rated(wins, weakest(wins))}
    players = {
        player.name: {
            "parts": player.parts, "elo": found[player.name].elo,
            "interval": [found[player.name].low, found[player.name].high],
            "games": sum(count for pair, count in wins.items() if player.name in pair), "paper_elo": player.paper_elo,
        }
        for player in PLAYERS if player.name in found
    }  # fmt: skip
    return {"ablation": players, "ablation_pairs": pairs}


def rows_of(report: dict[str, Any]) -> Iterator[Row]:
    """The rows of the table that compares the run with the paper; a missing result is an empty string."""
    sl, value = report.get("sl", {}), report.get("value", {})
    filters = f"{report['filters']}; value network {report.get('value_filters', report['filters'])}"
    yield "Board, filters of a layer", "19x19, 192", f"{report['size']}x{report['size']}, {filters}"
    games = report.get("games", {})
    yield "SL policy: training positions", "28.4 million", _number(games.get("positions"))
    yield "SL policy: accuracy on held-out moves", "55.4%", _percent(sl.get("top1"))
    yield "SL policy: held-out cross-entropy, nats", "", _plain(sl.get("cross_entropy"))
    yield "SL policy: fall of it over the last quarter of the run", "", _plain(sl.get("fall_over_last_quarter"))
    yield "SL policy against the shipped network's policy", "", _won(sl.get("over_shipped_policy"))
    yield "SL policy alone against GNU Go level 10", "", _won(sl.get("over_gnugo"))
    for kind, paper in (("rollout", "24.2%"), ("tree", "")):
        yield f"{kind.capitalize()} policy: accuracy", paper, _percent(report.get("patterns", {}).get(kind))
    yield "RL policy against the SL policy, both sampling", "more than 80%", _won(report.get("rl_over_sl"))
    yield "RL policy against the SL policy, both greedy after drawn moves", "", _won(report.get("rl_over_sl_greedy"))
    # The paper's errors seem to be half of (z - v)^2: its Figure 2b begins near 0.5 on the empty board.
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


def page_of(plan: Plan, report: dict[str, Any]) -> str:
    """The report as a self-contained HTML page with charts."""
    minutes = {name: seconds / 60 for name, seconds in report["seconds"].items()}
    return page(
        Path(__file__).parent / "alphago.html", size=plan.preset.size, rows=rows_of(report),
        charts=_charts(plan, report), stages=plan.stages(), minutes=minutes,
    )  # fmt: skip


def _charts(plan: Plan, report: dict[str, Any]) -> Iterator[str]:
    """The charts of the page, as SVG."""
    sl, rl = series_of(plan.out / "sl" / "curves.csv"), series_of(plan.out / "rl" / "curves.csv")
    held_out = {"training": sl.get("train/policy", []), "held out": sl.get("validation/cross_entropy", [])}
    yield line_chart("SL policy: cross-entropy, nats", held_out, "step")
    win_rates = {name: rl.get(f"rl/win_rate/{name}", []) for name in ("start", "newest", "pool")}
    yield line_chart("RL policy: win rate against the start, the newest of the pool, all of it", win_rates, "update")
    for name, words in (("entropy", "entropy of a move, nats"), ("divergence", "divergence from the start, nats"),
                        ("moves", "moves of a game"), ("games_per_s", "games a second")):  # fmt: skip
        yield line_chart(f"RL policy: {words}", {name: rl.get(f"rl/{name}", [])}, "update")
    for name, network, *_ in VALUE_KINDS:
        curves = series_of((plan.out / network).with_name("curves.csv"))
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
    """Results of :func:`counted` as a cell of the table: win rate, its interval, games; empty without results."""
    if not found:
        return ""
    low, high = found["interval"]
    different = found["won"] + found["lost"] + found["drawn"]
    games = found.get("games", different)
    said = f"{games:,} games" if games == different else f"{games:,} games, {different:,} different"
    return f"{found['rate']:.1%} [{low:.1%}, {high:.1%}], {said}"
