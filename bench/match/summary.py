"""The statistics of a match: JSON for programs, a table for people."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench.match.play import scores_alike
from bench.match.record import ROLES, GameRecord, different
from bench.match.sprt import BOUND, Hypotheses, SequentialTest
from engine.evaluation.elo import elo_difference, win_rate


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
    return {
        "settings": settings,
        "names": records[0].names if records else {},
        "all": tally(records),
        "as_black": tally([record for record in records if record.first_color == "black"]),
        "as_white": tally([record for record in records if record.first_color == "white"]),
        "sprt": _tested(records, sprt) if sprt else None,
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
            elo = f"{_elo(row['elo']):>6}  [{_elo(row['elo_low'])}, {_elo(row['elo_high'])}]"
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


def _tested(records: Sequence[GameRecord], sprt: Hypotheses) -> dict[str, float | None]:
    """What a sequential test says of some games in the order in which they ended."""
    test = SequentialTest(sprt, records)
    return {"elo0": sprt.low, "elo1": sprt.high, "llr": test.llr, "accepted": test.accepted}


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


def _elo(value: float) -> str:
    return f"{value:+.0f}" if math.isfinite(value) else ("+inf" if value > 0 else "-inf")
