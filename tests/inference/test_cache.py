"""The result cache: what goes in comes out, oldest entries give way, torn entries are misses."""

import threading

import numpy as np

from engine.inference.cache import KEY, LOGIT_STEPS, WAYS, insert, new_cache, probe, wipe

MOVES = 82


def logits_for(key: int) -> np.ndarray:
    """Logits that tell which key they belong to."""
    return np.random.default_rng(key).normal(0, 4, MOVES).astype(np.float32)


def look_up(cache, key: int):
    """(found, value, score, logits)."""
    out = np.full(MOVES, np.nan, np.float32)
    return (*probe(cache, np.uint64(key), MOVES, out), out)


def put(cache, key: int) -> None:
    """Store the result that belongs to a key."""
    insert(cache, np.uint64(key), MOVES, logits_for(key), np.float32(key % 7 / 7), np.float32(key % 30))


def test_a_stored_result_is_found_and_nothing_else():
    cache = new_cache(1 << 20, 362)
    put(cache, 123456789)
    found, value, score, logits = look_up(cache, 123456789)
    assert found and value == np.float32(123456789 % 7 / 7) and score == 123456789 % 30
    assert np.abs(logits - logits_for(123456789)).max() <= 0.5 / LOGIT_STEPS
    assert not look_up(cache, 987654321)[0]


def test_extreme_logits_are_clamped():
    cache = new_cache(1 << 16, MOVES)
    insert(cache, np.uint64(5), MOVES, np.full(MOVES, -1e9, np.float32), np.float32(1), np.float32(0))
    assert look_up(cache, 5)[3].max() == np.float32(-32767 / LOGIT_STEPS)


def test_the_oldest_entry_of_a_set_gives_way():
    cache = new_cache(1, MOVES)
    assert len(cache.words) == WAYS
    for key in range(1, WAYS + 1):
        put(cache, key)
    put(cache, 2)
    put(cache, 100)
    assert [look_up(cache, key)[0] for key in (1, 2, 3, 4, 100)] == [False, True, True, True, True]
    put(cache, 101)
    put(cache, 102)
    assert [look_up(cache, key)[0] for key in (2, 3, 4, 100, 101, 102)] == [True, False, False, True, True, True]


def test_the_memory_stays_within_the_limit():
    for limit in (1 << 20, 3 << 20, 12345678):
        cache = new_cache(limit, 362)
        assert 0.98 * limit < cache.words.nbytes + cache.stamps.nbytes <= limit


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
