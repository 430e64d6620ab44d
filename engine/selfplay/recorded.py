"""Recorded games to label: a stream for each board size, in a fixed order, in bounded memory.

Games of one board size are numbered through all files, each file shuffled separately, so a number always means the same
game. Only the two files used last are in memory.
"""

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.records.games import Games, read_games, select

FILES_HELD = 2


class Taken(NamedTuple):
    """A game and the positions sampled from it."""

    game: Games
    """one game alone"""
    plies: np.ndarray
    """int64[B], B >= 1: number of moves before each sampled position"""


class RecordedGames:
    """Games from shards: those that begin on the empty board with Black to move. Threads: any."""

    def __init__(self, files: Sequence[Path], seed: int, every: int):
        """Open the stream; shards are read when they are needed.

        Args:
            every: number of moves from one sampled position of a game to the next; the first one is random. A game
                whose field ``position`` restricts training to one position gives that one.
        """
        self._files, self._seed, self._every = list(files), seed, every
        self._games = functools.lru_cache(FILES_HELD)(lambda file: read_games(self._files[file]))
        """games of a file, by its index"""
        self._orders: dict[tuple[int, int], np.ndarray] = {}
        self._starts: dict[int, list[int]] = {}
        self._lock = threading.Lock()

    def take(self, size: int, number: int) -> Taken | None:
        """The game with a number and the positions sampled from it; the final position is eligible unless two passes
        ended the game. None = the shards have no further game.
        """
        game = self._game(size, number)
        if game is None:
            return None
        if game.position[0] >= 0:
            return Taken(game, game.position.astype(np.int64))
        is_over = len(game.moves) > 1 and (game.moves[-2:] == size**2).all()
        length = len(game.moves) - int(is_over)
        first = int(np.random.default_rng([self._seed, number]).integers(min(self._every, length + 1)))
        return Taken(game, np.arange(first, length + 1, self._every))

    def moves_of(self, size: int, number: int) -> np.ndarray:
        """uint16: all moves of a game that is in the shards."""
        game = self._game(size, number)
        assert game is not None, f"game {number} of {size}x{size} was there before"
        return game.moves

    def _game(self, size: int, number: int) -> Games | None:
        """The game with a number; None = the shards have no further game."""
        with self._lock:
            starts = self._starts.setdefault(size, [0])
            while starts[-1] <= number and len(starts) <= len(self._files):
                starts.append(starts[-1] + len(self._order(size, len(starts) - 1)))
            file = int(np.searchsorted(starts, number, "right")) - 1
            if file == len(self._files):
                return None
            return select(self._games(file), self._order(size, file)[[number - starts[file]]])

    def _order(self, size: int, file: int) -> np.ndarray:
        """int64: indices of a file's usable games of one board size, shuffled."""
        if (size, file) not in self._orders:
            games = self._games(file)
            usable = np.flatnonzero((games.size == size) & games.starts_even())
            self._orders[size, file] = np.random.default_rng([self._seed, file]).permutation(usable)
        return self._orders[size, file]
