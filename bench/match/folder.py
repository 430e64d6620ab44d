"""A match on disk: records of games, the folder of a match and how it resumes, openings.

``match.json`` holds the settings that must be the same in every run of ``keima match`` or of the arena,
``games.jsonl`` one :class:`GameRecord` a line, ``game-0001.sgf`` and so on the games as SGF. The table and the SGFs
need the settings ``size``, ``komi``, ``rules``, ``time`` and, if any, ``handicap``; other settings are only compared
with those of the next run. A game is written when it is over, first its SGF, then its line, so every line has its SGF.
A game whose line is incomplete is played again.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any

from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, point_of
from engine.go.points import color_word
from engine.go.rules import rules_named
from engine.go.sgf import read_sgf, write_sgf
from engine.records.archive import SHARD_FILE
from engine.records.games import read_games
from engine.system.files import written_whole
from engine.system.run_folder import add_line, open_manifest, read_lines

SETTINGS = "match.json"
ROLES = ("first", "second")
COLORS = color_word(BLACK), color_word(WHITE)
SECONDS = int | float
KINDS: dict[str, type | UnionType] = {
    "names": str, "scores": str, "slowest_s": SECONDS, "spent_s": SECONDS, "overrun_s": SECONDS, "stray_lines": int
}  # fmt: skip
"""Field of a record that is a dictionary -> type of its values; the keys are str, as in JSON"""


@dataclass
class GameRecord:
    """One game of a match: a line of ``games.jsonl``. Dictionaries have the keys "first" and "second"."""

    game: int
    """counted from 1"""
    first_color: str
    """"black" or "white\""""
    names: dict[str, str]
    moves: list[str]
    """vertices, oldest first, without handicap stones"""
    opening: int = 0
    """number of opening moves, with which ``moves`` begins"""
    result: str = "?"
    """result, written as in SGF's property RE"""
    winner: str | None = None
    """"first", "second", "draw", or None for a game without a result"""
    reason: str = ""
    detail: str = ""
    scores: dict[str, str] = field(default_factory=dict)
    """answers to ``final_score`` of both players and the referee (key "referee"); instead of one, "failed: " and why"""
    slowest_s: dict[str, float] = field(default_factory=dict)
    """longest time for a move, in seconds; empty if moves were not timed, as are ``spent_s`` and ``overrun_s``"""
    spent_s: dict[str, float] = field(default_factory=dict)
    """total time of all moves, in seconds"""
    overrun_s: dict[str, float] = field(default_factory=dict)
    """largest overstepping of the clock in seconds, tolerated or not"""
    stray_lines: dict[str, int] = field(default_factory=dict)
    """number of lines on standard output outside GTP answers"""

    @property
    def key(self) -> tuple[str, ...]:
        """Players, colours and moves: games with equal keys are repetitions of one game."""
        return (*(self.names[role] for role in ROLES), self.first_color, *self.moves)

    def role(self, color: int) -> str:
        """Role of the player of a colour: "first" or "second"."""
        return "first" if color_word(color) == self.first_color else "second"

    def begin_timing(self) -> None:
        """Set all times to 0, which marks the game as timed."""
        self.slowest_s, self.spent_s, self.overrun_s = (dict.fromkeys(ROLES, 0.0) for _ in range(3))

    def decide(self, winner: int | None, result: str) -> None:
        """Set winner and result.

        Args:
            winner: colour; None = a draw.
            result: written as in SGF's property RE.
        """
        self.winner, self.result = "draw" if winner is None else self.role(winner), result


def different(records: Iterable[GameRecord]) -> list[GameRecord]:
    """Records without those that repeat an earlier game move by move. Games without moves are all kept.

    Deterministic engines repeat their games, and a repetition is no further evidence of strength.
    """
    found: dict[object, GameRecord] = {}
    for number, record in enumerate(records):
        found.setdefault(record.key if record.moves else number, record)
    return list(found.values())


def record_line(record: GameRecord) -> str:
    """A record as a line of ``games.jsonl``, without the newline."""
    return json.dumps(asdict(record))


def read_record(line: bytes) -> GameRecord:
    """Parse a line of ``games.jsonl``.

    Raises:
        ValueError, TypeError, RecursionError: the line is not a valid record.
    """
    record = GameRecord(**json.loads(line.decode()))
    _check(record)
    return record


def read_records(path: Path) -> list[GameRecord]:
    """Records of a ``games.jsonl``, without an incomplete last line; none if the file does not exist.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not a valid record; one line naming it.
    """
    return read_lines(path, read_record, "result of a match")


def _check(record: GameRecord) -> None:
    """Check the types and values of a record's fields.

    Raises:
        ValueError: a field is invalid.
    """
    maps = {name: getattr(record, name) for name in KINDS}
    if not (
        all(type(count) is int and count >= least for count, least in ((record.game, 1), (record.opening, 0)))
        and record.first_color in COLORS
        and isinstance(record.moves, list)
        and all(isinstance(text, str) for text in (*record.moves, record.result, record.reason, record.detail))
        and record.winner in (*ROLES, "draw", None)
        and all(isinstance(found, dict) for found in maps.values())
        and all(isinstance(value, KINDS[name]) for name, found in maps.items() for value in found.values())
        and set(record.names) == set(ROLES)
    ):
        raise ValueError


class MatchFolder:
    """Finished games of one match, on disk or, without a path, in memory only. Threads: one at a time."""

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        """Open a folder, new or from an earlier run of the same match.

        Args:
            settings: JSON values that must be the same in every run.
        Raises:
            ValueError: the folder holds another match, or is not a match's folder; one line.
        """
        self.records: list[GameRecord] = []
        self.settings = settings
        self._path = path
        if path is None:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
            self.records = read_records(path / "games.jsonl")
            open_manifest(path / SETTINGS, settings, is_begun=bool(self.records))
        except OSError as error:
            raise ValueError(f"{error.filename or path}: {error.strerror}") from error

    @property
    def is_kept(self) -> bool:
        """Whether games are written to disk."""
        return self._path is not None

    def missing(self, games: int) -> list[int]:
        """Numbers of the games still to be played, out of games 1 to ``games``."""
        finished = {record.game for record in self.records}
        return [number for number in range(1, games + 1) if number not in finished]

    def add(self, record: GameRecord) -> bool:
        """Add a finished game; returns False if a game of this number is there already."""
        if any(one.game == record.game for one in self.records):
            return False
        self.records.append(record)
        if self._path is not None:
            self._write(self._path, record)
        return True

    def _write(self, path: Path, record: GameRecord) -> None:
        """Write the SGF and the line of a finished game."""
        one, two = record.names["first"], record.names["second"]
        black, white = (one, two) if record.first_color == "black" else (two, one)
        text = write_sgf(self._replayed(record), black=black, white=white, result=record.result)
        with written_whole(path / f"game-{record.game:04d}.sgf") as part:
            part.write_text(text, encoding="utf-8", newline="\n")
        add_line(path / "games.jsonl", record_line(record))

    def _replayed(self, record: GameRecord) -> Game:
        """Replay a record onto a board."""
        game = Game(self.settings["size"], rules_named(self.settings["rules"]), self.settings["komi"])
        if stones := self.settings.get("handicap"):
            game.fixed_handicap(stones)
        for vertex in record.moves:
            game.play(game.to_move, from_vertex(vertex, game.size))
        return game


def read_openings(path: Path, size: int, most_moves: int) -> tuple[tuple[int, ...], ...]:
    """Openings: the first moves of every SGF in a folder, then of every game in its shards, files in order of names.

    Args:
        most_moves: moves of each opening; 0 = the whole game.
    Returns:
        Points of each opening, Black's first.
    Raises:
        ValueError: no SGF or shard there, another board size, setup stones, or colours that do not alternate from Black
            on.
    """
    files, shards = sorted(path.glob("*.sgf")), sorted(path.glob(f"*{SHARD_FILE}"))
    if not files and not shards:
        raise ValueError(f"{path}: no file *.sgf in this folder, and no shard of games")
    in_shards = [opening for shard in shards for opening in _in_shard(shard, size, most_moves)]
    return (*(_in_sgf(file, size, most_moves) for file in files), *in_shards)


def _in_shard(file: Path, size: int, most_moves: int) -> Iterator[tuple[int, ...]]:
    """The opening of every game of a shard; arguments and errors as for :func:`read_openings`."""
    games = read_games(file)
    if not (games.starts_even() & (games.size == size)).all():
        raise ValueError(f"{file}: expected even games on {size}x{size} with Black to begin")
    for start, end in pairwise(games.offsets.tolist()):
        moves = games.moves[start : min(end, start + most_moves) if most_moves else end].tolist()
        yield tuple(int(point_of(move, size)) for move in moves)


def _in_sgf(file: Path, size: int, most_moves: int) -> tuple[int, ...]:
    """The opening of an SGF file's game; arguments and errors as for :func:`read_openings`."""
    try:
        found = read_sgf(file.read_bytes())
        moves = found.to_game().moves()[: most_moves or None]
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error
    in_turn = all(color == (BLACK, WHITE)[i % 2] for i, (color, _) in enumerate(moves))
    if found.size != size or found.black or found.white or not in_turn:
        raise ValueError(f"{file}: expected an even game on {size}x{size} with Black to begin")
    return tuple(point for _, point in moves)
