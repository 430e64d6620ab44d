"""The random generator: the published sequence, seeds, and evenness."""

import numpy as np
import pytest

from engine.go.random import next_below, next_unit, next_word, seed_state


def test_words_follow_the_published_generator():
    # xoshiro256++ from the state 1, 2, 3, 4 starts like this in the authors' own program.
    state = np.array([1, 2, 3, 4], np.uint64)
    words = [int(next_word(state)) for _ in range(4)]
    assert words == [41943041, 58720359, 3588806011781223, 3591011842654386]


def test_seed_and_stream_decide_the_sequence():
    def words(seed, stream):
        state = seed_state(seed, stream)
        return tuple(int(next_word(state)) for _ in range(8))

    assert words(5, 2) == words(5, 2)
    assert words(-1, 0) == words(2**64 - 1, 0)
    kinds = {words(seed, stream) for seed in range(30) for stream in range(30)}
    assert len(kinds) == 900
    assert len({word for kind in kinds for word in kind}) == 7200


@pytest.mark.parametrize("n", [1, 2, 3, 7, 361])
def test_next_below_is_even(n):
    state = seed_state(11, n)
    drawn = np.array([next_below(state, n) for _ in range(20000)])
    counts = np.bincount(drawn, minlength=n)
    assert len(counts) == n
    expected = 20000 / n
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < n + 4 * np.sqrt(2 * n)


def test_next_unit_fills_its_interval():
    state = seed_state(3, 0)
    drawn = np.array([next_unit(state) for _ in range(20000)])
    assert 0.0 <= drawn.min() < 0.001
    assert 0.999 < drawn.max() < 1.0
    assert abs(drawn.mean() - 0.5) < 0.01
