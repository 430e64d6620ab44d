"""The result cache: network outputs by position key, in a fixed number of bytes, read and written without a lock.

Entries are written one after the other into a ring of rows, so the cache takes no more memory than it has ever held;
when the ring is full, the oldest entry is overwritten. An eight-way set-associative index finds them. An entry's first
word is its key XOR a checksum of all its other words, so an entry torn by two concurrent writers, or overwritten while
it is read, reads as a different key, which is a miss (Hyatt & Mann, "A lockless transposition table implementation for
parallel search", 2002). Policies are stored with the symmetry undone, not masked for legality. Keys are made by
:func:`engine.features.encoder.cache_key`.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.system.arrays import allocate
from engine.system.jit import kernel

WAYS = 8
"""Slots in a set of the index"""
SLOTS_A_ROW = 2
"""Slots of the index for each row: of a full ring's entries some 1% find their set full"""
LOGIT_STEPS = 512.0
"""Logits are stored as int16 in steps of 1/512, from -64 to 64; finer than float16 above 2."""
KEY, VALUES, LOGITS = range(3)
"""Indices of an entry's words: key XOR checksum; value and score; the first word of logits, four to a word"""
LOW = np.uint64(0xFFFFFFFF)
"""Mask of a slot's entry number"""


class Cache(NamedTuple):
    """The entries of a result cache: R rows of W words, and S sets of slots that find them."""

    words: Annotated[np.ndarray, "uint64[R, W]"]
    """the entries; entry number n, counted from 1, is in row n modulo R"""
    slots: Annotated[np.ndarray, "uint64[S, WAYS]"]
    """the index: the upper half of an entry's key, then its number in the lower half; 0 = free"""
    clock: Annotated[np.ndarray, "uint32[1]"]
    """number of entries so far; approximate, since threads may insert at the same time"""


def new_cache(byte_limit: int, max_moves: int) -> Cache:
    """Make an empty cache, whose memory pages the operating system allocates only when entries are written.

    Args:
        byte_limit: memory limit; the cache has at least one set.
        max_moves: policy entries of a position on the largest board, N*N + 1.
    """
    words = LOGITS + (max_moves + 3) // 4
    sets = max(1, byte_limit // (WAYS * 8 + WAYS // SLOTS_A_ROW * words * 8))
    return allocate(Cache, R=sets * (WAYS // SLOTS_A_ROW), W=words, S=sets)


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
def _set_of(cache: Cache, key: np.uint64) -> np.int64:
    """The set of a key's slot."""
    return np.int64(((key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)) % np.uint64(len(cache.slots)))


@kernel
def _is_of(slot: np.uint64, key: np.uint64) -> bool:
    """Whether a slot is that of a key, by the upper half of the key."""
    return bool(slot != 0 and slot >> np.uint64(32) == key >> np.uint64(32))


@kernel
def _row_of(cache: Cache, slot: np.uint64) -> np.int64:
    """The row of a slot's entry, which a newer entry may have overwritten."""
    return np.int64((slot & LOW) % np.uint64(len(cache.words)))


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
    last = LOGITS + (moves + 3) // 4
    ways = cache.slots[_set_of(cache, key)]
    for way in range(WAYS):
        slot = ways[way]
        if not _is_of(slot, key):
            continue
        # Another thread may write meanwhile: the checksum must be that of the words actually copied.
        row = cache.words[_row_of(cache, slot)]
        values = row[VALUES]
        checksum = _checksum_with(CHECKSUM_START, values)
        for i in range(LOGITS, last):
            word = row[i]
            checksum = _checksum_with(checksum, word)
            at = 4 * (i - LOGITS)
            for k in range(min(4, moves - at)):
                logits[at + k] = np.int16((word >> np.uint64(16 * k)) & np.uint64(0xFFFF)) / LOGIT_STEPS
        if row[KEY] ^ checksum == key:
            value = np.uint32(values & LOW).view(np.float32)
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
    """Store a result as the newest entry. In its set, it replaces an entry with the same key, else the oldest.

    Args:
        key: uint64, of position and board size.
        moves: N*N + 1.
        logits: float32[>= moves], symmetry undone, pass last.
        value, score: for the side to move; the score in points.
    Threads: any number, concurrently with :func:`probe`.
    """
    cache.clock[0] += np.uint32(1)
    number = np.uint32(cache.clock[0])
    slot = (key >> np.uint64(32) << np.uint64(32)) | np.uint64(number)
    row, last = cache.words[_row_of(cache, slot)], LOGITS + (moves + 3) // 4
    # The checksum is that of the words to write, not of words read back: another thread may be writing to this row.
    word = np.uint64(np.float32(value).view(np.uint32)) | (
        np.uint64(np.float32(score).view(np.uint32)) << np.uint64(32)
    )
    row[VALUES] = word
    checksum = _checksum_with(CHECKSUM_START, word)
    for i in range(LOGITS, last):
        at = 4 * (i - LOGITS)
        word = np.uint64(0)
        for k in range(min(4, moves - at)):
            word |= np.uint64(_step_of(logits[at + k]) & 0xFFFF) << np.uint64(16 * k)
        row[i] = word
        checksum = _checksum_with(checksum, word)
    row[KEY] = key ^ checksum
    ways, chosen, most = cache.slots[_set_of(cache, key)], 0, np.uint32(0)
    for way in range(WAYS):
        if _is_of(ways[way], key):
            chosen = way
            break
        # Of a free slot, the largest; numbers wrap around.
        age = np.uint32(number - np.uint32(ways[way] & LOW))
        if age > most:
            chosen, most = way, age
    ways[chosen] = slot


def wipe(cache: Cache) -> None:
    """Remove every entry. Threads: any; an entry written meanwhile stays, or is torn and so reads as a miss."""
    cache.slots[:] = 0
    cache.clock[0] = 0
