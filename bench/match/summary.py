"""Statistics of a match as JSON and as a table, and the sequential probability ratio test (SPRT) that may stop it.

The test compares two Elo differences by the log-likelihood ratio (LLR) of all games so far and stops when the LLR
leaves its bounds, which takes fewer games on average than a test of fixed length. Under each hypothesis the
probabilities of win, draw and loss are the maximum-likelihood ones with the mean score of that Elo difference, so the
share of draws need not be known. Without draws this is Wald's test of two win rates.

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
"""Probability of accepting either hypothesis when the other one is true"""
BOUND = math.log((1.0 - ERROR) / ERROR)
"""LLR at which the higher Elo difference is accepted; at -BOUND the lower one is"""
POINTS = {"second": 0.0, "draw": 0.5, "first": 1.0}
UNSEEN = 1e-3
"""Count that replaces 0 wins or 0 losses, with which :func:`likeliest` could not reach every mean score"""
ROUNDS = 60
"""Bisection steps for the Lagrange multiplier in :func:`likeliest`, enough for the precision of a float"""
MOST_ELO = 2000.0
"""Largest Elo difference of a hypothesis; the weaker player then expects 1 win in 100,000 games"""


@dataclass(frozen=True)
class Hypotheses:
    """Two Elo differences of the first player, one of which the test accepts.

    Raises:
        ValueError: not in order, or beyond ``MOST_ELO``; one line.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -MOST_ELO <= self.low < self.high <= MOST_ELO:
            within = f"within {MOST_ELO:g} of 0, the lower one first"
            raise ValueError(f"{self.low:g} and {self.high:g}: expected two Elo differences {within}")


class SequentialTest:
    """The SPRT over games in the order in which they ended; the first decision is final."""

    def __init__(self, hypotheses: Hypotheses, records: Iterable[GameRecord] = ()) -> None:
        self.hypotheses = hypotheses
        self.llr = 0.0
        self.accepted: float | None = None
        """accepted Elo difference; None = undecided"""
        self._games = dict.fromkeys(POINTS, 0)
        self._seen: set[tuple[str, ...]] = set()
        for record in records:
            self.add(record)

    def add(self, record: GameRecord) -> None:
        """Count a game, unless it has no result, repeats another (``GameRecord.key``) or follows the decision."""
        if record.winner is None or self.accepted is not None or (record.moves and record.key in self._seen):
            return
        self._seen.add(record.key)
        self._games[record.winner] += 1
        self.llr = self._ratio()
        if abs(self.llr) >= BOUND:
            self.accepted = self.hypotheses.high if self.llr > 0 else self.hypotheses.low

    def as_json(self) -> dict[str, float | None]:
        """Hypotheses, LLR and decision."""
        return {"elo0": self.hypotheses.low, "elo1": self.hypotheses.high, "llr": self.llr, "accepted": self.accepted}

    def _ratio(self) -> float:
        """Log-likelihood ratio of all games, above 0 if they are likelier under the higher Elo difference."""
        counts = {POINTS[winner]: float(games) for winner, games in self._games.items() if games or winner != "draw"}
        counts = {points: games or UNSEEN for points, games in counts.items()}
        scores = (1.0 / (1.0 + math.exp(-elo / ELO_SCALE)) for elo in (self.hypotheses.low, self.hypotheses.high))
        low, high = (likeliest(counts, score) for score in scores)
        return sum(games * math.log(high[points] / low[points]) for points, games in counts.items())


def likeliest(counts: dict[float, float], score: float) -> dict[float, float]:
    """Maximum-likelihood probabilities of the results of games under the constraint of a mean score.

    They are ``share / (1 + t * (points - score))``, with the Lagrange multiplier t at which their mean is the score.

    Args:
        counts: points of a game -> number of games, above 0; some points are below the score, some above.
        score: mean points of a game, between 0 and 1.
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


def tally(records: Sequence[GameRecord]) -> dict[str, Any]:
    """Counts, win rate and Elo of the first engine; a draw is half a win, a repeated game counts once."""
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
        sprt: hypotheses of the sequential test; None = no test.
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
    """The statistics as JSON; infinite Elo differences become null."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: finite(item) for key, item in value.items()}
        return None if isinstance(value, float) and math.isinf(value) else value

    return json.dumps(finite(summary), indent=2)


def render(summary: dict[str, Any]) -> str:
    """The table printed at the end of a match; win rates and Elo are the first engine's, with 95% intervals."""
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
        lines.append(f"final_score agreed in {summary['scores_alike']} of {summary['scores_compared']} games")
    for role in ROLES:
        if summary["stray_lines"][role]:
            lines.append(f"{role} wrote {summary['stray_lines'][role]} lines to standard output outside GTP answers")
    for fault in summary["faults"]:
        by = f", {fault['by']}" if fault["by"] else ""
        lines.append(f"game {fault['game']}{by}: {fault['reason']}: {fault['detail']}")
    return "\n".join(lines)


def _of_times(
    records: Sequence[GameRecord], name: str, combine: Callable[[Iterable[float]], float]
) -> dict[str, float | None]:
    """A statistic of the records' field ``name`` for each role: 0 without games, None if no game was timed."""
    seconds = {role: [times[role] for record in records if role in (times := getattr(record, name))] for role in ROLES}
    return {role: combine(seconds[role] or [0.0]) if seconds[role] or not records else None for role in ROLES}


def _culprit(record: GameRecord) -> str | None:
    """The role that lost by a fault; None if only the scores differ."""
    was_scored = record.reason in ("score", "move limit", "no score", "disagreement")
    return None if was_scored else {"first": "second", "second": "first"}.get(record.winner or "")
