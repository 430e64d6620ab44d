"""splitmix64: from any 64-bit word to one that looks random; what keys, seeds and tables of random words are made with.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014); Vigna's ``splitmix64.c``.
"""

import numpy as np

from engine.system.jit import kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio, odd: its multiples, modulo 2**64, are spread evenly over all words"""


@kernel
def mix(word):
    """One round on a uint64: every bit of the result depends on every bit of the word, and no two words give one."""
    word = word + GOLDEN
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def mixed(words: np.ndarray) -> np.ndarray:
    """:func:`mix` of every word of an array of uint64, of any shape, without compiling it."""
    return mix.py_func(words)
