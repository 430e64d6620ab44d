"""The record of one game of a match: a line of ``games.jsonl``, written and read."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from engine.go.geometry import BLACK, WHITE

ROLES = ("first", "second")
COLOR_WORDS = {BLACK: "black", WHITE: "white"}


@dataclass
class GameRecord:
    """How one game went; what ``games.jsonl`` holds. Dictionaries have the keys "first" and "second"."""

    game: int
    """counted from 1"""
    first_color: str
    """"black" or "white\""""
    names: dict[str, str]
    moves: list[str]
    """vertices, oldest first, without handicap stones"""
    opening: int = 0
    """the number of these that were given, not chosen"""
    result: str = "?"
    """as SGF's property RE"""
    winner: str | None = None
    """"first", "second", "draw", or None for a game without a result"""
    reason: str = ""
    detail: str = ""
    scores: dict[str, str] = field(default_factory=dict)
    """each engine's ``final_score``, the referee's too; the error where one refused or broke down"""
    slowest_s: dict[str, float] = field(default_factory=dict)
    """empty where moves are not timed, as are the next two"""
    spent_s: dict[str, float] = field(default_factory=dict)
    overrun_s: dict[str, float] = field(default_factory=dict)
    """the worst overstepping of a clock, forgiven or not"""
    stray_lines: dict[str, int] = field(default_factory=dict)
    """lines on standard output that were no GTP"""

    def role(self, color: int) -> str:
        """Whether a colour is the match's "first" or "second" player."""
        return "first" if COLOR_WORDS[color] == self.first_color else "second"

    def begin_timing(self) -> None:
        """Enter that moves are timed, none so far."""
        self.slowest_s, self.spent_s, self.overrun_s = (dict.fromkeys(ROLES, 0.0) for _ in range(3))

    def decide(self, winner: int | None, result: str) -> None:
        """Enter the winner's colour, None for a draw, and the result as SGF's property RE."""
        self.winner, self.result = "draw" if winner is None else self.role(winner), result


def read_records(path: Path) -> list[GameRecord]:
    """All whole lines of a ``games.jsonl``.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is no record; one line naming it.
    """
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines(), 1):
        try:
            records.append(GameRecord(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: line {number} is no result of a match") from error
    return records
