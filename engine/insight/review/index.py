"""The index of reviewed games: a table that can be sorted, with final positions, and both accuracies over time."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from engine.go.geometry import BLACK, WHITE
from engine.insight.review.review import NOTHING, Review
from engine.pictures.boards import thumbnail
from engine.pictures.charts import line_chart
from engine.pictures.pages import page
from engine.system.files import written_whole

INDEX = "index.html"
DATE = re.compile(r"\d{4}(-\d\d){0,2}")
"""The date of a game at the beginning of SGF's DT: year, month and day, as far as they are known"""
DATE_MARKS = 5
"""Maximum number of dates below the chart of accuracies"""
FEWEST_GAMES = 2
"""Minimum number of games for the chart of accuracies"""


class IndexEntry(NamedTuple):
    """A reviewed game's row in the index."""

    page: str
    """file name of its page"""
    name: str
    date: str
    """``2026-05-03``, ``2026-05`` or ``2026``; empty = unknown"""
    players: tuple[str, str]
    """name and rank of Black and of White"""
    names: tuple[str, str]
    """names without ranks; empty = unknown"""
    size: int
    moves: int
    result: str
    accuracies: tuple[float | None, float | None]
    """accuracy of Black and of White; None = unknown"""
    worst: str
    """text of the move of the largest consequence"""
    consequence: float
    """its consequence; 0 if no move lost more than the noise"""
    picture: str
    """SVG of the final position"""


def entry_of(review: Review) -> IndexEntry:
    """A review's entry in the index."""
    summary, record = review.summary, review.game.record
    lessons = [move for color in (BLACK, WHITE) for move in summary.lessons[color][:1]]
    worst = max(lessons, key=lambda move: move.consequence, default=None)
    date = DATE.match(record.details.get("DT", "").strip())
    last = len(review.moves)
    return IndexEntry(
        f"{review.name}.html",
        review.name,
        date[0] if date else "",
        (review.player(BLACK), review.player(WHITE)),
        (record.details.get("PB", "").strip(), record.details.get("PW", "").strip()),
        review.size,
        last,
        record.result,
        (summary.whole[BLACK].accuracy, summary.whole[WHITE].accuracy),
        f"move {worst.number}, {review.words(worst)}: {review.amount(worst.counted)}" if worst else NOTHING,
        worst.consequence if worst else 0.0,
        thumbnail(review.game.colors(last), f"The board after move {last}"),
    )


def write_index(path: Path, entries: Sequence[IndexEntry]) -> None:
    """Write the index of games, the newest first.

    Raises:
        OSError: the file cannot be written; the message names it.
    """
    games = sorted(entries, key=lambda entry: entry.date, reverse=True)
    with written_whole(path) as part:
        text = page(Path(__file__).parent / "games.html", games=games, chart=accuracy_chart(entries))
        part.write_text(text, encoding="utf-8")


def accuracy_chart(entries: Sequence[IndexEntry]) -> str:
    """Both accuracies over the games in order of their dates; empty for fewer than ``FEWEST_GAMES`` games.

    If one player plays at least half of the games, the curves are this player's and that of the opponents, over this
    player's games; else Black's and White's.
    """
    known = sorted((entry for entry in entries if None not in entry.accuracies), key=lambda entry: entry.date)
    player = main_player(known)
    if player:
        known = [entry for entry in known if player in entry.names]
    if len(known) < FEWEST_GAMES:
        return ""
    firsts = [entry.names.index(player) if player else 0 for entry in known]
    pairs = [
        (entry.accuracies[at] or 0.0, entry.accuracies[1 - at] or 0.0) for entry, at in zip(known, firsts, strict=True)
    ]
    series = {
        name: [(n, pair[k]) for n, pair in enumerate(pairs)]
        for k, name in enumerate((player, "opponents") if player else ("Black", "White"))
    }
    step = -(-len(known) // DATE_MARKS)
    marks = [(n, known[n].date[: len("2026-05")] or NOTHING) for n in range(0, len(known), step)]
    return line_chart("Accuracy", series, "games by date", (0, 100), marks)


def main_player(entries: Sequence[IndexEntry]) -> str:
    """Name of the player of most games; empty if the name plays less than half of them, or fewer than two."""
    names = Counter(name for entry in entries for name in set(entry.names) if name)
    name, count = max(names.items(), key=lambda item: item[1], default=("", 0))
    return name if count >= max(2, len(entries) / 2) else ""
