"""Duplicate games, up to the eight symmetries, and the assignment of games to splits.

A game's *fingerprint* is a hash of its setup stones and first moves, under the symmetry whose image of the game comes
first in lexicographic order. A prefix of that image is also the first image of the prefix, so one comparison of the
eight images gives the fingerprints of all prefixes.
"""

import functools
import hashlib

import numpy as np

from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.random import GOLDEN, mixed
from engine.records.games import Games

OPENING = 40
"""Games that share this number of first moves belong to one split; of shorter games all moves count"""
WHOLE, OPENING_KEY, BEGINNING = range(3)
"""Columns of :func:`fingerprints`"""
SPLITS = ("train", "validation", "test")


@functools.cache
def _table(size: int) -> np.ndarray:
    """uint16[8, size * size + 1], big-endian, so that its bytes sort as its numbers."""
    return symmetry_table(size).astype(">u2")


def fingerprints(games: Games, beginning: int) -> np.ndarray:
    """Hashes that identify duplicates.

    Args:
        beginning: the number of moves in the third column.
    Returns:
        uint64[G, 3]: of the whole game without final passes, of its first ``OPENING`` moves, and of its first
        ``beginning`` moves, each with board size, setup stones and first colour. Passes before the only position for
        training (``Games.position``) are kept, since they change that position.
    """
    keys = np.zeros((len(games.size), 3), np.uint64)
    for game, size in enumerate(games.size.tolist()):
        moves = games.moves[games.offsets[game] : games.offsets[game + 1]]
        stones = games.setup[games.setup_offsets[game] : games.setup_offsets[game + 1]]
        played = np.flatnonzero(moves != size * size)
        moves = moves[: max(int(played[-1]) + 1 if len(played) else 0, int(games.position[game]))]
        table = _table(size)
        images = np.sort(2 * table[:, stones >> 1] + (stones & 1), axis=1).astype(">u2"), table[:, moves]
        first = min(images[0][s].tobytes() + images[1][s].tobytes() for s in range(SYMMETRIES))
        kind = bytes((size, int(games.first[game]), len(stones) & 255, len(stones) >> 8))
        for column, count in enumerate((len(moves), OPENING, beginning)):
            digest = hashlib.blake2b(kind + first[: 2 * (len(stones) + count)], digest_size=8)
            keys[game, column] = int.from_bytes(digest.digest(), "big")
    return keys


def split_keys(games: Games, keys: np.ndarray) -> np.ndarray:
    """uint64[G]: keys of :func:`split_of`, the fingerprint of each game's opening.

    Positions that searches reached (:meth:`Games.are_reached`) have a hash of their game's number: they may be shorter
    than an opening, or differ within it.
    """
    is_of_game = games.are_reached() & (games.number >= 0)
    return np.where(is_of_game, mixed(games.number.astype(np.uint64)), keys[:, OPENING_KEY])


def first_of_each(keys: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """bool[G]: whether a game is the longest of its key, the first of equally long ones."""
    order = np.lexsort((-lengths, keys))
    is_first = np.zeros(len(keys), bool)
    is_first[order[np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))]] = True
    return is_first


def split_of(keys: np.ndarray, seed: int, validation_share: float, test_share: float) -> np.ndarray:
    """Split of each game by its :func:`split_keys`: uint8[G], index into ``SPLITS``.

    The split depends on key and seed alone, so a game keeps it when others are added.
    """
    # Keys are hashes already; this mixes the seed in.
    words = mixed(keys + np.uint64((seed - 1) * int(GOLDEN) & (1 << 64) - 1))
    share = (words >> np.uint64(11)).astype(np.float64) / 2**53
    return np.where(share < test_share, 2, np.where(share < test_share + validation_share, 1, 0)).astype(np.uint8)
