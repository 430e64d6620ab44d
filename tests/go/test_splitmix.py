"""splitmix64 against its published sequence, in kernels and on arrays."""

import numpy as np

from engine.go.random import GOLDEN, mix, mixed

STARTS = (GOLDEN * np.arange(3, dtype=np.uint64)) + np.uint64(1234567)
WORDS = [6457827717110365317, 3203168211198807973, 9817491932198370423]
"""What the authors' program gives first from the state 1234567"""


def test_words_follow_the_published_generator():
    assert mixed(STARTS).tolist() == WORDS
    assert [int(mix(start)) for start in STARTS] == WORDS
