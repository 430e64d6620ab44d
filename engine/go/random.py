"""Random numbers for kernels: splitmix64 for keys, seeds and tables, xoshiro256++ for sequences.

The caller keeps a sequence's state in an array, so the same seed always gives the same numbers.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014); Vigna's ``splitmix64.c``;
Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021).
"""

import numpy as np

from engine.system.jit import kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio, rounded to odd: its multiples modulo 2**64 are spread evenly over all words"""


@kernel
def mix(word):
    """One round of splitmix64 on a uint64: a bijection whose every output bit depends on every input bit."""
    word = word + GOLDEN
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def mixed(words: np.ndarray) -> np.ndarray:
    """:func:`mix` of every word of an array of uint64, of any shape, without compilation."""
    return mix.py_func(words)


UNIT = 1.0 / (1 << 53)
LARGEST_WORD = (1 << 64) - 1


def seed_state(seed: int, stream: int) -> np.ndarray:
    """A fresh state, uint64[4].

    Args:
        seed: any int; taken modulo 2**64.
        stream: number of a worker or game; different streams of a seed give independent sequences.
    """
    word, words = np.full(1, seed & LARGEST_WORD, np.uint64), []
    for step in (stream & LARGEST_WORD, 0, 0, 0, 0):
        word = mixed(word) + np.uint64(step)
        words.append(mixed(word))
    return np.concatenate(words[1:])


@kernel
def next_word(state):
    """The next uint64 of the sequence."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return result


@kernel
def next_below(state, n):
    """A uniform int64 from 0 to n - 1, for n up to 2**31, with a relative bias below n / 2**32."""
    return np.int64(((next_word(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@kernel
def next_unit(state):
    """A uniform float64 from [0, 1) with 53 random bits."""
    return np.float64(next_word(state) >> np.uint64(11)) * UNIT


@kernel
def draw(weights, state):
    """An index drawn in proportion to the weights, float64[n]; -1 if all weights are 0."""
    total, chosen = 0.0, -1
    for index in range(len(weights)):
        total += weights[index]
    if total <= 0.0:
        return chosen
    left = next_unit(state) * total
    for index in range(len(weights)):
        if weights[index] > 0.0:
            chosen = index
            left -= weights[index]
            if left < 0.0:
                break
    return chosen
