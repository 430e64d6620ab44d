"""The user's games: SGF files in the data folder, known to the page by their ids."""

import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from engine.go.points import PASS
from engine.go.sgf import read_sgf
from engine.system.files import written_whole

ID = re.compile(r"[0-9]{8}-[0-9]{6}(-[0-9]{1,4})?")
"""Pattern of a game's id, which is its file's name without ``.sgf``: date, time of the start, and a number if needed"""
MAX_LISTED = 500


@dataclass(frozen=True)
class Listed:
    """A game in the list."""

    id: str
    date: str
    black: str
    white: str
    size: int
    result: str
    moves: int


class Games:
    """The files of a folder. Threads: one caller."""

    def __init__(self, folder: Path) -> None:
        """Create the folder if it is missing.

        Raises:
            OSError: the folder cannot be created.
        """
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / "keima.lock", timeout=0)
        self.is_alone = True
        """whether no other process plays in this folder; else games of the folder are not continued, but copied"""
        try:
            self._lock.acquire()
        except Timeout:
            self.is_alone = False
        self._known: dict[str, tuple[float, Listed]] = {}
        """id -> time of the file's last change, and its row in the list"""

    def close(self) -> None:
        """Let other processes continue the folder's games."""
        self._lock.release()

    def new_id(self) -> str:
        """The id of a new game, whose empty file is created."""
        base = time.strftime("%Y%m%d-%H%M%S")
        for name in [base, *(f"{base}-{number}" for number in range(2, 10000))]:
            with suppress(FileExistsError):
                (self.folder / f"{name}.sgf").touch(exist_ok=False)
                return name
        raise OSError(f"{self.folder}: no free name for a game")

    def write(self, name: str, data: bytes) -> None:
        """Write a game; once this returns, a crash or a power failure does not lose it.

        Raises:
            OSError: the file cannot be written; the old one stays.
        """
        with written_whole(self.path(name)) as part:
            part.write_bytes(data)

    def read(self, name: str) -> bytes:
        """The file of a game.

        Raises:
            ValueError: there is no game with this id.
        """
        try:
            return self.path(name).read_bytes()
        except OSError as error:
            raise ValueError(f"no game {name} in the list") from error

    def remove_if_empty(self, name: str) -> None:
        """Remove the file of a game that was never written."""
        path = self.path(name)
        with suppress(OSError):
            if path.stat().st_size == 0:
                path.unlink()

    def list_json(self) -> list[dict[str, Any]]:
        """The games as the page's list shows them, the latest first, :data:`MAX_LISTED` at most.

        Files that cannot be read are left out.
        """
        names = sorted((path.stem for path in self.folder.glob("*.sgf") if ID.fullmatch(path.stem)), reverse=True)
        found = [self._listed(name) for name in names[:MAX_LISTED]]
        return [asdict(row) | {"players": {"black": row.black, "white": row.white}} for row in found if row is not None]

    def latest(self) -> str | None:
        """The id of the game that was changed last; None = there is no game."""
        paths = [path for path in self.folder.glob("*.sgf") if ID.fullmatch(path.stem)]
        changed = [(path.stat().st_mtime, path.stem) for path in paths if path.stat().st_size]
        return max(changed)[1] if changed else None

    def _listed(self, name: str) -> Listed | None:
        path = self.path(name)
        try:
            changed = path.stat().st_mtime
            if name not in self._known or self._known[name][0] != changed:
                game = read_sgf(path.read_bytes())
                moves = sum(point != PASS for stage in game.earlier for _, point in stage.moves)
                moves += sum(point != PASS for _, point in game.moves)
                date = f"{name[:4]}-{name[4:6]}-{name[6:8]} {name[9:11]}:{name[11:13]}"
                row = Listed(name, date, game.details.get("PB", ""), game.details.get("PW", ""), game.size,
                             game.result, moves)  # fmt: skip
                self._known[name] = changed, row
            return self._known[name][1]
        except (OSError, ValueError):
            return None

    def path(self, name: str) -> Path:
        """The file of an id.

        Raises:
            ValueError: not an id.
        """
        if not ID.fullmatch(name):
            raise ValueError("no such game, expected the id of a game in the list")
        return self.folder / f"{name}.sgf"
