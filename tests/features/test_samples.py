"""Sample inputs: the same every time, of every stage of a game, for every encoder."""

import numpy as np
import pytest

from engine.features.encoder import ENCODERS, sample_inputs


@pytest.mark.parametrize("name", ENCODERS)
def test_samples_fit_their_encoder_and_never_change(name):
    planes, globals_ = sample_inputs(name, 9)
    encoder = ENCODERS[name]
    assert planes.shape == (8, encoder.planes, 9, 9) and globals_.shape == (8, encoder.globals)
    again = sample_inputs(name, 9)
    assert np.array_equal(planes, again[0]) and np.array_equal(globals_, again[1])
    assert len({row.tobytes() for row in planes}) == 8


def test_an_unknown_encoder_is_refused():
    with pytest.raises(ValueError, match="unknown encoder 'runes', known are keima-2"):
        sample_inputs("runes", 9)
