"""What a way has come to, read from the folders of its stages: ``report.json``, and what is drawn on the report page.

A stage that has not been run leaves its part out. Start at :func:`report_of`.
"""

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench.alphago.stages import PLAYERS, Way
from bench.charts import Series, curves_of
from bench.match.elo import rated, results_in, weakest, wilson_interval, win_rate
from bench.match.record import read_records
from bench.match.summary import tally
from engine.records.games import Games, read_games
from engine.records.schema import join
from engine.records.shards import MANIFEST, every_shard_file
from engine.rollout.model import load_patterns

LAST_QUARTER = 0.75


def report_of(way: Way, seconds: dict[str, float]) -> dict[str, Any]:
    """Everything that is known by now, by name; JSON values.

    Args:
        seconds: what each stage took.
    Raises:
        ValueError: a file of a stage is damaged; one line naming it.
        OSError: a file cannot be read.
    """
    preset = way.preset
    report: dict[str, Any] = {
        "size": preset.size, "komi": preset.komi, "filters": preset.filters, "value_filters": preset.value_filters,
        "seconds": seconds,
    }  # fmt: skip
    built = way.out / "games" / "set" / MANIFEST
    if built.exists():
        found = json.loads(built.read_text(encoding="utf-8"))
        report["games"] = {"games": found["games"]["train"], "positions": found["moves"]["train"]}
    if curves := curves_of(way.sl.parent):
        report["sl"] = _supervised(curves) | _matches(way.sl.parent)
    report["patterns"] = {
        path.stem: load_patterns(path).record["validation"]["top1"] for path in way.patterns if path.exists()
    }
    if curves := curves_of(way.rl.parent):
        rates = {name.removeprefix("rl/"): points[-1][1] for name, points in curves.items() if "win_rate/" in name}
        report["rl"] = {"updates": int(max(points[-1][0] for points in curves.values()))} | rates
    for name, key in (("sampling", "rl_over_sl"), ("greedy", "rl_over_sl_greedy")):
        if found := outcomes_of(way.rl.parent / name):
            report[key] = found
    value = {name: _value_errors(folder, data) for name, folder, data in way.value_kinds()}
    if way.evaluation.exists():
        found = json.loads(way.evaluation.read_text(encoding="utf-8"))
        value |= {"beside": found["beside"], "rollouts": found["policy_rollouts"]}
        for name, key in (("one_a_game", "network"), ("whole_games", "whole_games")):
            value[name] = (value[name] or {}) | {"test": found["beside"].get(key)}
    if any(value.values()):
        report["value"] = {name: part for name, part in value.items() if part}
    return report | _ablation(way.out / "ablation")


def games_in(folder: Path) -> Games | None:
    """The games of all shards of a folder; None where there are none."""
    shards = list(every_shard_file(folder)) if folder.is_dir() else []
    return join([read_games(path) for path in shards]) if shards else None


def counted(won: int, lost: int, drawn: int, games: int = 0) -> dict[str, Any]:
    """Results of different games as the report has them.

    Args:
        games: those that were played, the ones that repeat another included; 0 = no more than these.
    """
    rate, *interval = win_rate(won, lost, drawn)
    games = games or won + lost + drawn
    return {"won": won, "lost": lost, "drawn": drawn, "games": games, "rate": rate, "interval": interval}


def outcomes_of(folder: Path) -> dict[str, Any] | None:
    """Games of two networks in bulk, as the first one lived through them; None where there are none. A repeated one
    counts once."""
    games = games_in(folder)
    if games is None:
        return None
    is_black = games.number % 2 == 0
    moves = (games.moves[start:end].tobytes() for start, end in pairwise(games.offsets.tolist()))
    rows = list({key: row for row, key in enumerate(zip(is_black.tolist(), moves, strict=True))}.values())
    results = (np.where(is_black, 1, -1) * games.result)[rows]
    won, lost, drawn = (int((results == sign).sum()) for sign in (1, -1, 0))
    return counted(won, lost, drawn, len(is_black))


def _supervised(curves: Series) -> dict[str, Any]:
    """Where supervised learning has come to, and how far it still fell."""
    entropy = curves.get("validation/cross_entropy", [])
    found = {name: curves[f"validation/{name}"][-1][1] for name in ("top1", "cross_entropy") if entropy}
    if len(entropy) > 1:
        last = entropy[-1][0]
        before = [value for step, value in entropy if step <= LAST_QUARTER * last] or [entropy[0][1]]
        found["fall_over_last_quarter"] = before[-1] - entropy[-1][1]
    return found | ({"steps": int(entropy[-1][0])} if entropy else {})


def _matches(folder: Path) -> dict[str, Any]:
    """Games of the SL policy against others."""
    found = {"over_shipped_policy": outcomes_of(folder / "against-shipped")}
    if (folder / "against-gnugo" / "summary.json").exists():
        total = tally(read_records(folder / "against-gnugo" / "games.jsonl"))
        found["over_gnugo"] = counted(total["won"], total["lost"], total["drawn"], total["games"])
    return {name: value for name, value in found.items() if value}


def _value_errors(folder: Path, training: Path) -> dict[str, Any] | None:
    """Errors (z - v)^2 of a value network at the step that was chosen, and how many positions it learnt from; what is
    known of other positions than it was chosen by, the report's ``test``, is in the evaluation."""
    curves = curves_of(folder)
    tested, trained = (curves.get(f"validation/{key}value_mse", []) for key in ("", "seen/"))
    if not tested:
        return None
    step, error = min(tested, key=lambda point: point[1])
    found = {"step": int(step), "selection": error, "training": dict(trained).get(step)}
    # A shard at a time: all positions of a whole way are gigabytes.
    parts = map(read_games, every_shard_file(training) if training.is_dir() else ())
    if positions := sum(int((games.position >= 0).sum()) or len(games.moves) for games in parts):
        found["positions"] = positions
    return found


def _ablation(folder: Path) -> dict[str, Any]:
    """Elo of the players with 95% intervals, the weakest at 0, and the results of the pairs; empty without games."""
    played = sorted(path.parent for path in folder.glob("*/games.jsonl"))
    wins = results_in(played)
    if not wins:
        return {}
    found = {one.name: one for one in rated(wins, weakest(wins))}
    players = {
        player.name: {
            "parts": player.parts, "elo": found[player.name].elo,
            "interval": [found[player.name].low, found[player.name].high],
            "games": _games_of(player.name, wins), "paper_elo": player.paper_elo,
        }
        for player in PLAYERS if player.name in found
    }  # fmt: skip
    pairs = {path.name: _pair(path.name.split("-"), wins) for path in played}
    return {"ablation": players, "ablation_pairs": pairs}


def _games_of(name: str, wins: dict[tuple[str, str], float]) -> float:
    return sum(count for pair, count in wins.items() if name in pair)


def _pair(names: Iterable[str], wins: dict[tuple[str, str], float]) -> dict[str, Any]:
    """Points of two players in their games, and the interval of the first one's rate."""
    first, second = names
    points = wins.get((first, second), 0.0), wins.get((second, first), 0.0)
    return {"points": list(points), "interval": list(wilson_interval(points[0], int(sum(points))))}
