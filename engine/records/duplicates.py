"""Detection of duplicate games, up to the eight symmetries, and assignment of games to training, validation and test.

A game's *fingerprint* is a hash of its setup stones and first moves, taken from the image of the game (under the eight
symmetries) that is first in lexicographic order. A prefix of that image is also the first image of the game's prefix,
so one comparison of the eight images gives the fingerprints of all prefixes.
"""

import functools
import hashlib

import numpy as np

from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.random import GOLDEN, mixed
from engine.records.games import Games

OPENING = 40
"""Games that agree in this number of first moves (shorter games: in all moves) go to the same split"""
WHOLE, OPENING_KEY, BEGINNING = range(3)
"""Columns of :func:`fingerprints`: whole game, first ``OPENING`` moves, first ``beginning`` moves"""
SPLITS = ("train", "validation", "test")


@functools.cache
def _table(size: int) -> np.ndarray:
    """uint16[8, size * size + 1]: :func:`symmetry_table` in big-endian order, so that bytes sort as the numbers do."""
    return symmetry_table(size).astype(">u2")


def fingerprints(games: Games, beginning: int) -> np.ndarray:
    """Three fingerprints of each game, equal for games that are duplicates up to a symmetry.

    Args:
        beginning: number of first moves in the third fingerprint.
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
    """uint64[G]: each game's key for :func:`split_of`: the fingerprint of its opening.

    Games that only lead to a position that a search reached (:meth:`Games.are_reached`) get a hash of their number
    instead, so that all positions from one game share a split: these may be shorter than an opening or differ in it.
    """
    is_of_game = games.are_reached() & (games.number >= 0)
    return np.where(is_of_game, mixed(games.number.astype(np.uint64)), keys[:, OPENING_KEY])


def first_of_each(keys: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """bool[G]: whether a game is the longest with its key (uint64[G]); of equally long ones, the first.

    Args:
        lengths: int64[G]: moves of each game.
    """
    order = np.lexsort((-lengths, keys))
    is_first = np.zeros(len(keys), bool)
    is_first[order[np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))]] = True
    return is_first


def split_of(keys: np.ndarray, seed: int, validation_share: float, test_share: float) -> np.ndarray:
    """uint8[G]: the split of each game, an index into ``SPLITS``, from its key (:func:`split_keys`).

    The split depends on key, seed and shares alone, so a game keeps its split when other games are added.
    """
    # Keys are hashes already; this mixes the seed in.
    words = mixed(keys + np.uint64((seed - 1) * int(GOLDEN) & (1 << 64) - 1))
    share = (words >> np.uint64(11)).astype(np.float64) / 2**53
    return np.where(share < test_share, 2, np.where(share < test_share + validation_share, 1, 0)).astype(np.uint8)
