"""The result cache: what goes in comes out, oldest entries give way, torn entries are misses."""

import os
import sys
import threading

import numpy as np
import pytest

from bench.process_memory import own_mib
from engine.inference.cache import KEY, LOGIT_STEPS, WAYS, insert, new_cache, probe, wipe

MOVES = 82


def logits_for(key: int) -> np.ndarray:
    """Logits that tell which key they belong to."""
    return np.random.default_rng(key).normal(0, 4, MOVES).astype(np.float32)


def hashed(key: int) -> np.uint64:
    """A key as the engine makes them: all of its bits differ from those of other keys."""
    return np.uint64(key * 0x9E3779B97F4A7C15 & (1 << 64) - 1)


def look_up(cache, key: int):
    """(found, value, score, logits)."""
    out = np.full(MOVES, np.nan, np.float32)
    return (*probe(cache, hashed(key), MOVES, out), out)


def put(cache, key: int) -> None:
    """Store the result that belongs to a key."""
    insert(cache, hashed(key), MOVES, logits_for(key), np.float32(key % 7 / 7), np.float32(key % 30))


def test_a_stored_result_is_found_and_nothing_else():
    cache = new_cache(1 << 20, 362)
    put(cache, 123456789)
    found, value, score, logits = look_up(cache, 123456789)
    assert found and value == np.float32(123456789 % 7 / 7) and score == 123456789 % 30
    assert np.abs(logits - logits_for(123456789)).max() <= 0.5 / LOGIT_STEPS
    assert not look_up(cache, 987654321)[0]


def test_extreme_logits_are_clamped():
    cache = new_cache(1 << 16, MOVES)
    insert(cache, hashed(5), MOVES, np.full(MOVES, -1e9, np.float32), np.float32(1), np.float32(0))
    assert look_up(cache, 5)[3].max() == np.float32(-32767 / LOGIT_STEPS)


def found_of(cache, keys) -> list[int]:
    """Those of the keys that are found."""
    return [key for key in keys if look_up(cache, key)[0]]


def test_the_oldest_entries_give_way():
    cache = new_cache(1, MOVES)
    rows = len(cache.words)
    for key in range(1, rows + 1):
        put(cache, key)
    assert found_of(cache, range(1, 100)) == list(range(1, rows + 1))
    put(cache, 2)
    put(cache, 100)
    # A result that is stored again is as new as any; 100 took its old row.
    assert found_of(cache, range(1, 101)) == [2, 3, 4, 100]
    put(cache, 101)
    assert found_of(cache, range(1, 102)) == [2, 4, 100, 101]


def test_in_a_full_set_the_oldest_entry_gives_way():
    """More rows than slots: every key has a row, and those of the newest keys have a slot."""
    small = new_cache(1, MOVES)
    cache = small._replace(words=np.zeros((10 * WAYS, small.words.shape[1]), np.uint64))
    for key in range(1, WAYS + 4):
        put(cache, key)
    assert found_of(cache, range(1, 100)) == list(range(4, WAYS + 4))


def test_numbers_of_entries_wrap_around():
    cache = new_cache(1, MOVES)
    cache.clock[0] = (1 << 32) - 3
    for key in range(1, 20):
        put(cache, key)
        assert look_up(cache, key)[0]
    assert found_of(cache, range(1, 100)) == [16, 17, 18, 19]


def test_nearly_all_of_the_newest_entries_are_found():
    cache = new_cache(1 << 20, MOVES)
    rows = len(cache.words)
    for key in range(3 * rows):
        put(cache, key)
    assert 0.98 * rows < len(found_of(cache, range(2 * rows, 3 * rows))) and not found_of(cache, range(2 * rows))


def test_the_memory_stays_within_the_limit():
    for limit in (1 << 20, 3 << 20, 12345678):
        assert 0.98 * limit < sum(array.nbytes for array in new_cache(limit, 362)) <= limit


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_cache_takes_the_memory_of_what_it_holds():
    before = own_mib(os.getpid())
    cache = new_cache(256 << 20, 362)
    for key in range(1, 1001):
        put(cache, key)
    wipe(cache)
    for key in range(1, 1001):
        put(cache, key)
    # A thousand entries of 752 bytes, in whole pages of 2 MiB, and the index.
    assert own_mib(os.getpid()) - before < 12


def test_a_torn_entry_is_a_miss():
    cache = new_cache(1, MOVES)
    put(cache, 77)
    row = int(np.flatnonzero(cache.words[:, KEY])[0])
    cache.words[row, 5] ^= 1
    assert not look_up(cache, 77)[0]


def test_wiping_forgets():
    cache = new_cache(1 << 16, MOVES)
    put(cache, 9)
    wipe(cache)
    assert not look_up(cache, 9)[0]


def test_threads_never_read_a_mixture():
    """Four threads write and read eight keys in one set; every hit must be the key's own result."""
    cache = new_cache(1, MOVES)
    wrong = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(3000):
            key = int(rng.integers(1, 9))
            found, _, score, logits = look_up(cache, key)
            if not found:
                put(cache, key)
            elif score != key % 30 or abs(logits - logits_for(key)).max() > 0.5 / LOGIT_STEPS:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
