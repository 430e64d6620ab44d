"""What has been analysed of a game, kept line by line, so that a review that was killed goes on where it was.

The first line says what was analysed and how; the others are turns, in any order. A last line that is not whole is
dropped. A file whose first line says something else is begun anew.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.insight.review.turns import Turn, from_line, to_line

FORMAT = 1


class Store:
    """One game's turns on disk. Threads: the caller sees to it that one calls at a time.

    Several stores may have one file, where a game is reviewed twice in one run: each appends whole lines.
    """

    def __init__(self, folder: Path, subject: Mapping[str, Any]) -> None:
        """Open the file that belongs to a game and what it is analysed with, and read what is there.

        Args:
            subject: all that the numbers depend on; JSON.
        Raises:
            OSError: it cannot be read or written.
        """
        first = json.dumps({"format": FORMAT, **subject}, sort_keys=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{hashlib.sha256(first.encode()).hexdigest()[:24]}.jsonl"
        self.turns: dict[int, Turn] = {}
        data = self.path.read_bytes() if self.path.exists() else b""
        sound = self._read(data, first)
        if not sound:
            self.path.write_bytes(first.encode("ascii") + b"\n")
        elif sound < len(data):
            os.truncate(self.path, sound)
        self._file = self.path.open("ab")

    def _read(self, data: bytes, first: str) -> int:
        """Read the turns that are there; returns the bytes that are sound, 0 = none."""
        lines = data.split(b"\n")
        if lines[0] != first.encode() or len(lines) < 2:
            return 0
        sound = len(lines[0]) + 1
        for line in lines[1:-1]:
            try:
                turn = from_line(line.decode("ascii"))
            except ValueError:
                break
            self.turns[turn.number] = turn
            sound += len(line) + 1
        return sound

    def add(self, turn: Turn) -> None:
        """Keep a turn; it is in the hands of the system when this returns."""
        self.turns[turn.number] = turn
        self._file.write(to_line(turn).encode("ascii") + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
