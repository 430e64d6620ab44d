"""The levels that the page offers, and the adaptive opponent's rank from game to game."""

import json
from contextlib import suppress
from pathlib import Path

from engine.config import ADAPTIVE, FULL, RANKS
from engine.play import levels
from engine.system.files import written_whole
from weights import NetworkPath

FILE = "adaptive.json"
KEPT = 20
"""Number of results that the file keeps"""


class Ranks:
    """The levels of a network, and the adaptive opponent. Threads: one caller."""

    def __init__(self, network: NetworkPath | None, folder: Path) -> None:
        """Read the adaptive opponent's rank; a missing or damaged file counts as none.

        Args:
            folder: of the user's games.
        """
        self._network, self._path = network, folder / FILE
        self._adaptive = levels.Adaptive()
        with suppress(OSError, ValueError, KeyError, TypeError):
            saved = json.loads(self._path.read_text(encoding="utf-8"))
            if saved["level"] in RANKS:
                self._adaptive.level = saved["level"]
                self._adaptive.results = [bool(one) for one in saved["results"]]

    def names(self, size: int) -> list[str]:
        """Names of the levels on a board size, the weakest first, then ``max`` and ``auto``; ``max`` alone if the
        network has no levels.
        """
        names = list(levels.names(size))
        if len(names) == 1:
            return [FULL]
        try:
            levels.check_network(names[0], self._network)
        except ValueError:
            return [FULL]
        return [*names, ADAPTIVE]

    def played(self, level: str, size: int) -> str:
        """The rank at which a level plays, or ``max``."""
        return levels.nearest(self._adaptive.level if level == ADAPTIVE else level, size)

    def fitting(self, level: str, size: int) -> str:
        """The level of a board size that is nearest to a level of any board size."""
        names = self.names(size)
        if level in names:
            return level
        nearest = levels.nearest(level, size) if level != ADAPTIVE else FULL
        return nearest if nearest in names else FULL

    def about(self, level: str, size: int) -> str:
        """A level with its scale, for people."""
        return levels.described(self.played(level, size), size)

    def note(self, engine_won: bool, size: int) -> str:
        """Take the result of a game of the adaptive opponent; returns a line that tells its next level.

        Raises:
            OSError: the level cannot be saved.
        """
        text = self._adaptive.note(engine_won, size)
        with written_whole(self._path, is_shared=True) as part:
            saved = {"level": self._adaptive.level, "results": self._adaptive.results[-KEPT:]}
            part.write_text(json.dumps(saved), encoding="utf-8")
        return text
