"""The folder of a match, of ``keima match`` and of the arena: settings, finished games, and how a match resumes.

``match.json`` holds the settings that must not change between runs, ``games.jsonl`` a
:class:`bench.match.record.GameRecord` a line, ``game-0001.sgf`` and so on the games. Of the settings the table and the
SGFs need ``size``, ``komi``, ``rules``, ``time`` and, where there is one, ``handicap``; the others are the runner's
own. A game is written when it is over: SGF first, then its line, so every line has its SGF. A game whose line was cut
short is played again.
"""

from pathlib import Path
from typing import Any

from bench.match.record import GameRecord, read_records, record_line
from engine.go.game import Game
from engine.go.geometry import from_vertex
from engine.go.rules import rules_named
from engine.go.sgf import write_sgf
from engine.system.files import written_whole
from engine.system.run_folder import add_line, open_manifest

SETTINGS = "match.json"


class MatchFolder:
    """Finished games of one match, on disk or, without a path, in memory only. Threads: one at a time."""

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        """Open a folder, new or from an earlier run of the same match.

        Args:
            settings: all that must not change between runs; JSON values.
        Raises:
            ValueError: the folder holds another match, or something else; one line.
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
        """Whether games outlive this process."""
        return self._path is not None

    def missing(self, games: int) -> list[int]:
        """Numbers, counted from 1, of the games still to be played."""
        finished = {record.game for record in self.records}
        return [number for number in range(1, games + 1) if number not in finished]

    def add(self, record: GameRecord) -> bool:
        """Keep a finished game, once; returns whether it is new."""
        if any(one.game == record.game for one in self.records):
            return False
        self.records.append(record)
        if self._path is not None:
            self._write(self._path, record)
        return True

    def _write(self, path: Path, record: GameRecord) -> None:
        """The files of a finished game."""
        one, two = record.names["first"], record.names["second"]
        black, white = (one, two) if record.first_color == "black" else (two, one)
        text = write_sgf(self._replayed(record), black=black, white=white, result=record.result)
        with written_whole(path / f"game-{record.game:04d}.sgf") as part:
            part.write_text(text, encoding="utf-8", newline="\n")
        add_line(path / "games.jsonl", record_line(record))

    def _replayed(self, record: GameRecord) -> Game:
        """The game of a record."""
        game = Game(self.settings["size"], rules_named(self.settings["rules"]), self.settings["komi"])
        if stones := self.settings.get("handicap"):
            game.fixed_handicap(stones)
        for vertex in record.moves:
            game.play(game.to_move, from_vertex(vertex, game.size))
        return game
