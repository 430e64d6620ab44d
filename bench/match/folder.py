"""A match on disk: its settings, one line a finished game, one SGF a game; and how it goes on after a stop.

``match.json`` holds the settings, ``games.jsonl`` a :class:`bench.match.play.GameRecord` a line, ``game-0001.sgf`` the
games. A game is written when it is over: SGF first, then its line, so every line has its SGF. A last line cut short by
a crash is dropped and its game played again.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.match.play import GameRecord
from engine.go.game import Game
from engine.go.sgf import write_sgf


class MatchFolder:
    """Finished games of one match, on disk or, without a path, in memory only."""

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        """Open a folder, new or from an earlier run of the same match.

        Args:
            settings: all that must not change between runs; JSON values.
        Raises:
            ValueError: the folder holds another match, or something that is none; one line.
        """
        self.records: list[GameRecord] = []
        self._path = path
        if path is None:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._check_settings(path / "match.json", settings)
            self._read_games(path / "games.jsonl")
        except OSError as error:
            raise ValueError(f"{error.filename or path}: {error.strerror}") from error

    @property
    def is_kept(self) -> bool:
        """Whether games outlive this process."""
        return self._path is not None

    def add(self, record: GameRecord, game: Game) -> None:
        """Keep a finished game."""
        self.records.append(record)
        if self._path is None:
            return
        names = {record.first_color: record.names["first"]}
        names["white" if record.first_color == "black" else "black"] = record.names["second"]
        text = write_sgf(game, black=names["black"], white=names["white"], result=record.result)
        (self._path / f"game-{record.game:04d}.sgf").write_text(text, encoding="utf-8", newline="\n")
        with (self._path / "games.jsonl").open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(asdict(record)) + "\n")

    def finished(self) -> set[int]:
        """Numbers of the games that are over."""
        return {record.game for record in self.records}

    def _check_settings(self, path: Path, settings: dict[str, Any]) -> None:
        """Write the settings of a new match; compare those of an old one."""
        if not path.exists():
            path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
            return
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            changed = [key for key in {**before, **settings} if before.get(key) != settings.get(key)]
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: not the settings of a match") from error
        if changed:
            what = ", ".join(f"{key} was {before.get(key)!r} and is {settings.get(key)!r}" for key in changed)
            raise ValueError(f"{path.parent} holds a match with other settings: {what}; choose another folder")

    def _read_games(self, path: Path) -> None:
        """Read the finished games, and cut off a last line that is not whole."""
        if not path.exists():
            return
        whole, _, rest = path.read_text(encoding="utf-8").rpartition("\n")
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                self.records.append(GameRecord(**json.loads(line)))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}: line {number} is no result of a match") from error
        if rest:
            path.write_text(whole + "\n" if whole else "", encoding="utf-8", newline="\n")
