"""The statistics of a match: JSON for programs, a table for people, and the sequential test that may end it.

The test is over as soon as its result is plain, which takes fewer games than a fixed number. Two Elo differences are
held against each other by the log-likelihood ratio (LLR) of all games so far. Every outcome's probability under each is
the likeliest one at that score, so that the share of draws need not be known. Without draws this is Wald's test of two
win rates.

Source: Wald 1945, "Sequential Tests of Statistical Hypotheses"; Van den Bergh, "A Practical Introduction to the GSPRT".
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.match.folder import ROLES, GameRecord, different
from bench.match.play import scores_alike
from engine.evaluation.elo import ELO_SCALE, elo_difference, win_rate

ERROR = 0.05
"""Probability of accepting either difference when the other one is true"""
BOUND = math.log((1.0 - ERROR) / ERROR)
"""LLR at which the higher difference is accepted, and below whose negative the lower one is"""
POINTS = {"second": 0.0, "draw": 0.5, "first": 1.0}
UNSEEN = 1e-3
"""Games that stand for none won or none lost, without which some scores could not be explained"""
ROUNDS = 60
"""Halvings of an interval of some units: to the precision of a float"""
MOST_ELO = 2000.0
"""The weaker player is expected to score one point in 100,000 games"""


@dataclass(frozen=True)
class Hypotheses:
    """Two Elo differences of the first player, of which one is to be accepted.

    Raises:
        ValueError: they are not in order, or beyond what games can tell; one line.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -MOST_ELO <= self.low < self.high <= MOST_ELO:
            within = f"within {MOST_ELO:g} of 0, the lower one first"
            raise ValueError(f"{self.low:g} and {self.high:g}: expected two Elo differences {within}")


class SequentialTest:
    """Counts games in the order in which they ended; what is accepted once stays accepted."""

    def __init__(self, hypotheses: Hypotheses, records: Iterable[GameRecord] = ()) -> None:
        self.hypotheses = hypotheses
        self.llr = 0.0
        self.accepted: float | None = None
        """Elo difference; None = not decided"""
        self._games = dict.fromkeys(POINTS, 0)
        self._seen: set[tuple[str, ...]] = set()
        for record in records:
            self.add(record)

    def add(self, record: GameRecord) -> None:
        """Count a game, but none without a result, none that was played before, and none after the decision.

        See :func:`bench.match.folder.different`.
        """
        if record.winner is None or self.accepted is not None or (record.moves and record.key in self._seen):
            return
        self._seen.add(record.key)
        self._games[record.winner] += 1
        self.llr = self._ratio()
        if abs(self.llr) >= BOUND:
            self.accepted = self.hypotheses.high if self.llr > 0 else self.hypotheses.low

    def as_json(self) -> dict[str, float | None]:
        """The hypotheses, and what the games say of them."""
        return {"elo0": self.hypotheses.low, "elo1": self.hypotheses.high, "llr": self.llr, "accepted": self.accepted}

    def _ratio(self) -> float:
        """The log-likelihood ratio of all games: above 0 where the higher difference explains them better."""
        counts = {POINTS[winner]: float(games) for winner, games in self._games.items() if games or winner != "draw"}
        counts = {points: games or UNSEEN for points, games in counts.items()}
        low, high = (likeliest(counts, _score_of(elo)) for elo in (self.hypotheses.low, self.hypotheses.high))
        return sum(games * math.log(high[points] / low[points]) for points, games in counts.items())


def likeliest(counts: dict[float, float], score: float) -> dict[float, float]:
    """Probabilities with a given mean under which some results are likeliest.

    They are ``share / (1 + t * (points - score))``; the multiplier t is where their mean is the score.

    Args:
        counts: points of a game -> games, more than 0; there are points on both sides of the score.
        score: mean points, between 0 and 1.
    Returns:
        points -> probability.
    """
    games = sum(counts.values())
    shares = {points: count / games for points, count in counts.items()}
    left, right = -1.0 / (max(shares) - score), 1.0 / (score - min(shares))
    for _ in range(ROUNDS):
        t = (left + right) / 2
        slope = sum(share * (points - score) / (1.0 + t * (points - score)) for points, share in shares.items())
        left, right = (t, right) if slope > 0 else (left, t)
    return {points: share / (1.0 + t * (points - score)) for points, share in shares.items()}


def _score_of(elo: float) -> float:
    """The expected points of a game at an Elo difference."""
    return 1.0 / (1.0 + math.exp(-elo / ELO_SCALE))


def tally(records: Sequence[GameRecord]) -> dict[str, Any]:
    """Counts and win rate of some games for the first engine; a draw counts as half a win, a repeated game once."""
    counted = different(records)
    winners = Counter(record.winner for record in counted)
    rate, low, high = win_rate(winners["first"], winners["second"], winners["draw"])
    return {
        "games": len(records),
        "different": len(counted),
        "won": winners["first"],
        "lost": winners["second"],
        "drawn": winners["draw"],
        "no_result": winners[None],
        "rate": rate,
        "rate_low": low,
        "rate_high": high,
        "elo": elo_difference(rate),
        "elo_low": elo_difference(low),
        "elo_high": elo_difference(high),
    }


def summarise(
    records: Sequence[GameRecord], settings: dict[str, Any], sprt: Hypotheses | None = None
) -> dict[str, Any]:  # fmt: skip
    """All statistics of a match.

    Args:
        sprt: what a sequential test decides between; None = no test.
    """
    alike = [same for record in records if (same := scores_alike(record)) is not None]
    test = SequentialTest(sprt, records) if sprt else None
    return {
        "settings": settings,
        "names": records[0].names if records else {},
        "all": tally(records),
        "as_black": tally([record for record in records if record.first_color == "black"]),
        "as_white": tally([record for record in records if record.first_color == "white"]),
        "sprt": test.as_json() if test else None,
        "different_games": len(different(records)),
        "reasons": dict(Counter(record.reason for record in records).most_common()),
        "scores_compared": len(alike),
        "scores_alike": sum(alike),
        "moves": sum(len(record.moves) for record in records),
        "slowest_s": _of_times(records, "slowest_s", max),
        "spent_s": _of_times(records, "spent_s", lambda seconds: round(sum(seconds), 1)),
        "overrun_s": _of_times(records, "overrun_s", max),
        "stray_lines": {role: sum(record.stray_lines.get(role, 0) for record in records) for role in ROLES},
        "faults": [
            {"game": record.game, "by": _culprit(record), "reason": record.reason, "detail": record.detail}
            for record in records
            if record.detail
        ],
    }


def to_json(summary: dict[str, Any]) -> str:
    """The statistics as JSON; infinite Elo differences become null, since JSON has no infinity."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: finite(item) for key, item in value.items()}
        return None if isinstance(value, float) and math.isinf(value) else value

    return json.dumps(finite(summary), indent=2)


def render(summary: dict[str, Any]) -> str:
    """The table a match ends with; rates and Elo are the first engine's, with their 95% intervals."""
    settings, names = summary["settings"], summary["names"]
    total = summary["all"]
    if not total["games"]:
        return "no game was finished"
    size = settings["size"]
    under = f"{size}x{size}, komi {settings['komi']:g}, {settings['rules']} rules"
    lines = [
        f"{names['first']} against {names['second']}: {under}",
        f"{'':10}{'games':>7}{'won':>6}{'lost':>6}{'drawn':>7}{'none':>6}  {'win rate':<26}{'Elo difference'}",
    ]
    for label, key in (("all", "all"), ("as Black", "as_black"), ("as White", "as_white")):
        row = summary[key]
        counts = f"{row['different']:7}{row['won']:6}{row['lost']:6}{row['drawn']:7}{row['no_result']:6}"
        if row["different"] > row["no_result"]:
            rate = f"{row['rate']:6.1%}  [{row['rate_low']:.1%}, {row['rate_high']:.1%}]"
            elo = f"{row['elo']:>+6.0f}  [{row['elo_low']:+.0f}, {row['elo_high']:+.0f}]"
            counts += f"  {rate:<26}{elo}"
        lines.append(f"{label:10}{counts}".rstrip())
    if test := summary["sprt"]:
        accepted = "undecided" if test["accepted"] is None else f"{test['accepted']:g} Elo accepted"
        ratio = f"LLR {test['llr']:+.2f}, bounds {-BOUND:.2f} and {BOUND:+.2f}"
        lines.append(f"SPRT, {test['elo0']:g} against {test['elo1']:g} Elo: {accepted} ({ratio})")
    if total["different"] < total["games"]:
        lines.append(f"{total['games']} games, {total['different']} different: a repeated game counts once")
    ends = ", ".join(f"{count} by {reason}" for reason, count in summary["reasons"].items())
    slowest, spent, overrun = summary["slowest_s"], summary["spent_s"], summary["overrun_s"]
    lines.append(f"ends: {ends}; {summary['different_games']} different games, {summary['moves']} moves")
    if None not in slowest.values():
        lines.append(f"slowest move: first {slowest['first']:.2f} s, second {slowest['second']:.2f} s")
        lines.append(f"time in all: first {spent['first']:.1f} s, second {spent['second']:.1f} s")
    if any(settings["time"].values()) and None not in overrun.values():
        lines.append(f"clocks overstepped by at most: first {overrun['first']:.2f} s, second {overrun['second']:.2f} s")
    if summary["scores_compared"]:
        lines.append(f"same score from everyone asked: {summary['scores_alike']} of {summary['scores_compared']} games")
    for role in ROLES:
        if summary["stray_lines"][role]:
            lines.append(f"{role} wrote {summary['stray_lines'][role]} lines to standard output that were no GTP")
    for fault in summary["faults"]:
        by = f", {fault['by']}" if fault["by"] else ""
        lines.append(f"game {fault['game']}{by}: {fault['reason']}: {fault['detail']}")
    return "\n".join(lines)


def _of_times(
    records: Sequence[GameRecord], name: str, combine: Callable[[Iterable[float]], float]
) -> dict[str, float | None]:
    """One number of all games' times for each role, 0 without games; None where none of them was timed."""
    seconds = {role: [times[role] for record in records if role in (times := getattr(record, name))] for role in ROLES}
    return {role: combine(seconds[role] or [0.0]) if seconds[role] or not records else None for role in ROLES}


def _culprit(record: GameRecord) -> str | None:
    """The role that lost by a fault of its own; None where only scores differ."""
    was_scored = record.reason in ("score", "move limit", "no score", "disagreement")
    return None if was_scored else {"first": "second", "second": "first"}.get(record.winner or "")
