"""What runs of self-play in several tests have in common."""

import json
from pathlib import Path

from engine.go.rules import RULE_SETS
from engine.records.games import Games, read_games
from engine.selfplay.bulk import MANIFEST, BulkPlay
from engine.selfplay.game_distribution import GameDistribution, Komi


def distribution(komi: float, rules: str = "tromp-taylor") -> GameDistribution:
    """The same rules and komi in every game, and moves drawn at temperature 1."""
    return GameDistribution(((RULE_SETS[rules], 1.0),), ((Komi(komi, komi), 1.0),), ((1.0, 1.0),))


def run_bulk(
    bulk: BulkPlay, wanted: int, at_once: int, groups: int, stop_after: int | None = None, whole_games: bool = False
) -> BulkPlay:
    """Run it to its end, or stop it from outside.

    Args:
        wanted: games, or positions with ``whole_games``.
        stop_after: number of games at which it is stopped.
    """

    def report() -> None:
        if stop_after is not None and bulk.games >= stop_after:
            bulk.stop()

    run = bulk.run_positions if whole_games else bulk.run
    run(wanted, at_once=at_once, groups=groups, report=report, every_s=0.001)
    bulk.close()
    return bulk


def kept(out: Path) -> list[Games]:
    """All games of a folder in bulk, by shard."""
    shards = json.loads((out / MANIFEST).read_text())["shards"]
    return [read_games(out / shard["file"]) for shard in shards]
