"""The record of one game of a match: a line of ``games.jsonl``, written and read."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import UnionType

from engine.go.geometry import BLACK, WHITE
from engine.go.notation import color_word
from engine.system.run_folder import read_lines

ROLES = ("first", "second")
COLORS = color_word(BLACK), color_word(WHITE)


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

    @property
    def key(self) -> tuple[str, ...]:
        """Who played which moves with which colour: games that have it in common are one."""
        return (*(self.names[role] for role in ROLES), self.first_color, *self.moves)

    def role(self, color: int) -> str:
        """Whether a colour is the match's "first" or "second" player."""
        return "first" if color_word(color) == self.first_color else "second"

    def begin_timing(self) -> None:
        """Enter that moves are timed, none so far."""
        self.slowest_s, self.spent_s, self.overrun_s = (dict.fromkeys(ROLES, 0.0) for _ in range(3))

    def decide(self, winner: int | None, result: str) -> None:
        """Enter the winner's colour, None for a draw, and the result as SGF's property RE."""
        self.winner, self.result = "draw" if winner is None else self.role(winner), result


def different(records: Iterable[GameRecord]) -> list[GameRecord]:
    """Some games without those that repeat an earlier one move by move; games that ended before a move all stay.

    Engines that draw nothing at random repeat their games: the second time they are no evidence.
    """
    found: dict[object, GameRecord] = {}
    for number, record in enumerate(records):
        found.setdefault(record.key if record.moves else number, record)
    return list(found.values())


def record_line(record: GameRecord) -> str:
    """A record as a line of ``games.jsonl``, without its end."""
    return json.dumps(asdict(record))


def read_record(line: bytes) -> GameRecord:
    """The record of a line.

    Raises:
        ValueError, TypeError, RecursionError: it is none.
    """
    record = GameRecord(**json.loads(line.decode()))
    _check(record)
    return record


def read_records(path: Path) -> list[GameRecord]:
    """All whole lines of a ``games.jsonl``; none where there is no file.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is no record; one line naming it.
    """
    return read_lines(path, read_record, "result of a match")


def _check(record: GameRecord) -> None:
    """Refuse a record whose fields are of other kinds than they should be.

    Raises:
        ValueError: they are.
    """
    texts = (record.result, record.reason, record.detail)
    times = (record.slowest_s, record.spent_s, record.overrun_s)
    if not (
        _is_count(record.game, 1)
        and record.first_color in COLORS
        and _is_map(record.names, str)
        and set(record.names) == set(ROLES)
        and isinstance(record.moves, list)
        and all(isinstance(text, str) for text in (*record.moves, *texts))
        and _is_count(record.opening, 0)
        and record.winner in (*ROLES, "draw", None)
        and _is_map(record.scores, str)
        and all(_is_map(seconds, int | float) for seconds in times)
        and _is_map(record.stray_lines, int)
    ):
        raise ValueError


def _is_count(value: object, least: int) -> bool:
    """Whether a value is a whole number from some number on."""
    return type(value) is int and value >= least


def _is_map(value: object, kind: type | UnionType) -> bool:
    """Whether a value is a dictionary of values of a kind; JSON's keys are text."""
    return isinstance(value, dict) and all(isinstance(one, kind) for one in value.values())
