"""Statistics of game records that can be added up over shards."""

from collections import Counter
from typing import Any

import numpy as np

from engine.records.games import ENDINGS, Games
from engine.records.sgf_values import rank_text

SHOWN = 6
"""Maximum number of entries in a cell of a table"""


def overview(games: Games) -> dict[str, Any]:
    """Statistics of games by name: a number, or a dict with the number of games for each value of a property.

    ``first_date`` and ``last_date`` are yyyymmdd, None if no date is known; ``ranks`` counts players.
    """
    even = games.starts_even()
    handicap = (games.handicap > 0) & ~even
    dates = games.date[games.date > 0]
    winner = {1: "black", -1: "white"}
    outcome = [winner.get(result) or ("drawn" if margin == 0 else "none")
               for result, margin in zip(games.result.tolist(), games.margin.tolist(), strict=True)]  # fmt: skip
    return {
        "games": len(games.size),
        "moves": len(games.moves),
        "sizes": _counts(games.size.tolist()),
        "begins": _counts(np.select([even, handicap], ["even", "handicap"], "another position").tolist()),
        "handicaps": _counts(games.handicap[games.handicap > 0].tolist()),
        "komi": _counts("?" if np.isnan(komi) else f"{komi:g}" for komi in games.komi.tolist()),
        "winners": _counts(outcome),
        "endings": _counts(ENDINGS[ending] for ending in games.ending.tolist()),
        "with_margin": int(np.isfinite(games.margin).sum()),
        "counted_by_territory": int(games.territory.sum()),
        "first_date": int(dates.min()) if len(dates) else None,
        "last_date": int(dates.max()) if len(dates) else None,
        "dates_unknown": len(games.size) - len(dates),
        "ranks": _counts(rank_text(rank) for rank in np.concatenate([games.rank_black, games.rank_white]).tolist()),
    }


def _counts(values) -> dict[str, int]:
    """Number of occurrences of each value (as a string), most frequent first."""
    return {str(value): count for value, count in Counter(values).most_common()}


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The :func:`overview` of two sets of games together, from their overviews."""
    whole: dict[str, Any] = {}
    for name, value in one.items():
        more = other[name]
        if name in ("first_date", "last_date"):
            known = [date for date in (value, more) if date is not None]
            choose = min if name == "first_date" else max
            whole[name] = choose(known) if known else None
        elif isinstance(value, dict):
            whole[name] = dict((Counter(value) + Counter(more)).most_common())
        else:
            whole[name] = value + more
    return whole


def cell(value: Any) -> str:
    """Text of a value of :func:`overview` in a table; of a dict the ``SHOWN`` most frequent entries, one a line."""
    if value is None:
        return "?"
    if not isinstance(value, dict):
        return str(value)
    lines = [f"{name}: {count}" for name, count in list(value.items())[:SHOWN]]
    hidden = len(value) - len(lines)
    return "\n".join(lines + ([f"... {hidden} more"] if hidden else []))
