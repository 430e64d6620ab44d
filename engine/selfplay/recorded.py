"""Positions of recorded games for labelling: one stream a board size, in a fixed order, bounded in memory.

Games of one board size are numbered through all files, each file shuffled by itself, so a number always means the same
game. Only the two files used last are in memory.
"""

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.records.games import Games, read_games

FILES_HELD = 2


class Taken(NamedTuple):
    """Positions of whole games of one file."""

    games: Games
    rows: np.ndarray
    """int64[B]: index into games"""
    plies: np.ndarray
    """int64[B]"""
    numbers: np.ndarray
    """int64[B]: the stream's number of each row's game"""


class RecordedGames:
    """The games of some shards that begin on the empty board with Black. Threads: any."""

    def __init__(self, files: Sequence[Path], seed: int, every: int):
        """Name the shards; they are read when they are needed.

        Args:
            every: one position in this many of a game is taken, beginning at a random one, unless only one of it is
                for learning (``position``).
        """
        self._files, self._seed, self._every = list(files), seed, every
        self._games = functools.lru_cache(FILES_HELD)(lambda file: read_games(self._files[file]))
        """a file's games, by its index"""
        self._orders: dict[tuple[int, int], np.ndarray] = {}
        self._starts: dict[int, list[int]] = {}
        self._lock = threading.Lock()

    def take(self, size: int, number: int, positions: int, games: int | None = None) -> Taken | None:
        """The positions of the games from ``number`` on, whole games until there are ``positions``; None = no more.

        Args:
            games: the most; None = any number.
        """
        with self._lock:
            file, index = self._place(size, number)
            if file == len(self._files):
                return None
            record, order = self._games(file), self._order(size, file)
            rows, plies, numbers, count = [], [], [], 0
            for row in order[index : index + games if games else None].tolist():
                of_game = self._plies(record, row, number)
                rows.append(np.full(len(of_game), row))
                plies.append(of_game)
                numbers.append(np.full(len(of_game), number))
                count, number = count + len(of_game), number + 1
                if count >= positions:
                    break
            return Taken(record, np.concatenate(rows), np.concatenate(plies), np.concatenate(numbers))

    def moves_of(self, size: int, number: int) -> np.ndarray:
        """uint16: all moves of a game."""
        with self._lock:
            file, index = self._place(size, number)
            games, row = self._games(file), self._order(size, file)[index]
            return games.moves[games.offsets[row] : games.offsets[row + 1]]

    def _plies(self, games: Games, row: int, number: int) -> np.ndarray:
        """The positions of a game that are taken, the one after its last move included unless it is over there; or its
        only one."""
        if games.position[row] >= 0:
            return np.array([games.position[row]], np.int64)
        moves = games.moves[games.offsets[row] : games.offsets[row + 1]]
        is_over = len(moves) > 1 and (moves[-2:] == games.size[row] ** 2).all()
        length = len(moves) - int(is_over)
        first = int(np.random.default_rng([self._seed, number]).integers(min(self._every, length + 1)))
        return np.arange(first, length + 1, self._every)

    def _place(self, size: int, number: int) -> tuple[int, int]:
        """File and place in its order; the file after the last one if there are fewer games."""
        starts = self._starts.setdefault(size, [0])
        while starts[-1] <= number and len(starts) <= len(self._files):
            starts.append(starts[-1] + len(self._order(size, len(starts) - 1)))
        file = int(np.searchsorted(starts, number, "right")) - 1
        return file, number - starts[file]

    def _order(self, size: int, file: int) -> np.ndarray:
        """int64: the games of one size in a file, shuffled."""
        if (size, file) not in self._orders:
            games = self._games(file)
            usable = np.flatnonzero((games.size == size) & games.starts_even())
            self._orders[size, file] = np.random.default_rng([self._seed, file]).permutation(usable)
        return self._orders[size, file]
