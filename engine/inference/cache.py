"""The result cache: network outputs by position key, in a fixed number of bytes, read and written without a lock.

Four-way set associative; the oldest entry of a set is replaced. An entry's first word is its key XOR a checksum of all
its other words, so an entry torn by two concurrent writers reads as a different key, which is a miss (Hyatt & Mann, "A
lockless transposition table implementation for parallel search", 2002). Policies are stored with the symmetry undone,
not masked for legality. Keys are made by :func:`engine.features.encoder.cache_key`.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.system.arrays import allocate
from engine.system.jit import kernel

WAYS = 4
"""Entries in a set"""
LOGIT_STEPS = 512.0
"""Logits are stored as int16 in steps of 1/512, from -64 to 64; finer than float16 above 2."""
KEY, VALUES, LOGITS = range(3)
"""Indices of an entry's words: key XOR checksum; value and score; the first word of logits, four to a word"""


class Cache(NamedTuple):
    """The entries of a result cache: R entries of W words, in R / WAYS sets."""

    words: Annotated[np.ndarray, "uint64[R, W]"]
    """the entries; first word 0 = empty"""
    stamps: Annotated[np.ndarray, "uint32[R]"]
    """value of ``clock`` when the entry was written"""
    clock: Annotated[np.ndarray, "uint32[1]"]
    """number of insertions so far; approximate, since threads may insert at the same time"""


def new_cache(byte_limit: int, max_moves: int) -> Cache:
    """Make an empty cache, whose memory pages the operating system allocates only when entries are written.

    Args:
        byte_limit: memory limit; the cache has at least one set.
        max_moves: policy entries of a position on the largest board, N*N + 1.
    """
    words = LOGITS + (max_moves + 3) // 4
    sets = max(1, byte_limit // (WAYS * (words * 8 + 4)))
    return allocate(Cache, R=sets * WAYS, W=words)


class OwnershipCaches(NamedTuple):
    """The two caches of searches that keep each node's ownership."""

    results: Cache
    """policy, value and score"""
    ownership: Cache
    """ownership, scaled by :mod:`engine.search.ownership`, in place of logits"""


CHECKSUM_START = np.uint64(0x9E3779B97F4A7C15)
"""Checksum of no words"""


@kernel
def _checksum_with(checksum: np.uint64, word: np.uint64) -> np.uint64:
    """Extend a checksum by one word; the rotation makes it depend on the order of the words."""
    return ((checksum << np.uint64(5)) | (checksum >> np.uint64(59))) ^ word


@kernel
def _holds(cache: Cache, row: int, key: np.uint64, last: int) -> bool:
    """Whether the entry in a row has this key and an intact checksum; ``last`` is the number of words in use."""
    if cache.words[row, KEY] == 0:
        return False
    checksum = CHECKSUM_START
    for i in range(VALUES, last):
        checksum = _checksum_with(checksum, cache.words[row, i])
    return bool(cache.words[row, KEY] ^ checksum == key)


@kernel
def _set_of(cache: Cache, key: np.uint64) -> np.int64:
    """First row of the set in which a key is stored."""
    sets = np.uint64(cache.words.shape[0] // WAYS)
    return np.int64(((key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)) % sets) * WAYS


@kernel
def probe(cache: Cache, key: np.uint64, moves: int, logits: np.ndarray) -> tuple[bool, np.float32, np.float32]:
    """Look a position up.

    Args:
        key: uint64, of position and board size.
        moves: N*N + 1.
        logits: float32[>= moves], written on a hit.
    Returns:
        whether the position was found; its value and its score in points, both for the side to move.
    Threads: any number, concurrently with :func:`insert`.
    """
    first = _set_of(cache, key)
    last = LOGITS + (moves + 3) // 4
    for row in range(first, first + WAYS):
        if not _holds(cache, row, key, last):
            continue
        # Another thread may write meanwhile: the checksum must be that of the words actually copied.
        values = cache.words[row, VALUES]
        checksum = _checksum_with(CHECKSUM_START, values)
        for i in range(LOGITS, last):
            word = cache.words[row, i]
            checksum = _checksum_with(checksum, word)
            at = 4 * (i - LOGITS)
            for k in range(min(4, moves - at)):
                logits[at + k] = np.int16((word >> np.uint64(16 * k)) & np.uint64(0xFFFF)) / LOGIT_STEPS
        if cache.words[row, KEY] ^ checksum == key:
            value = np.uint32(values & np.uint64(0xFFFFFFFF)).view(np.float32)
            return True, value, np.uint32(values >> np.uint64(32)).view(np.float32)
    return False, np.float32(0.0), np.float32(0.0)


@kernel
def _step_of(logit: float) -> np.int64:
    """A logit in steps of 1 / LOGIT_STEPS, rounded and clipped to int16."""
    return np.int64(max(-32767.0, min(32767.0, round(logit * LOGIT_STEPS))))


@kernel
def as_stored(logits: np.ndarray) -> None:
    """Round logits (float32, in place) to the values that :func:`probe` would return, so that hits and misses give the
    same search.
    """
    for i in range(len(logits)):
        logits[i] = _step_of(logits[i]) / LOGIT_STEPS


@kernel
def insert(cache: Cache, key: np.uint64, moves: int, logits: np.ndarray, value: float, score: float) -> None:
    """Store a result in place of the set's entry with the same key, an empty entry or the oldest one.

    Args:
        key: uint64, of position and board size.
        moves: N*N + 1.
        logits: float32[>= moves], symmetry undone, pass last.
        value, score: for the side to move; the score in points.
    Threads: any number, concurrently with :func:`probe`.
    """
    first = _set_of(cache, key)
    last = LOGITS + (moves + 3) // 4
    chosen = first
    for row in range(first, first + WAYS):
        if cache.words[row, KEY] == 0 or _holds(cache, row, key, last):
            chosen = row
            break
        if np.int32(cache.stamps[row] - cache.stamps[chosen]) < 0:
            chosen = row
    cache.clock[0] += np.uint32(1)
    cache.stamps[chosen] = cache.clock[0]
    # The checksum is that of the words to write, not of words read back: another thread may be writing to this row.
    word = np.uint64(np.float32(value).view(np.uint32)) | (
        np.uint64(np.float32(score).view(np.uint32)) << np.uint64(32)
    )
    cache.words[chosen, VALUES] = word
    checksum = _checksum_with(CHECKSUM_START, word)
    for i in range(LOGITS, last):
        at = 4 * (i - LOGITS)
        word = np.uint64(0)
        for k in range(min(4, moves - at)):
            word |= np.uint64(_step_of(logits[at + k]) & 0xFFFF) << np.uint64(16 * k)
        cache.words[chosen, i] = word
        checksum = _checksum_with(checksum, word)
    cache.words[chosen, KEY] = key ^ checksum


def wipe(cache: Cache) -> None:
    """Remove every entry. Threads: any; an entry written meanwhile stays, or is torn and so reads as a miss."""
    cache.words[:] = 0
