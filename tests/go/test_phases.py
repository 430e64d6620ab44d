"""Tests of the phases of a game."""

import numpy as np

from engine.go.phases import phase_of


def test_phases_end_at_shares_of_the_boards_points():
    assert [phase_of(number, 19) for number in (1, 50, 51, 144, 145, 400)] == [0, 0, 1, 1, 2, 2]
    assert phase_of(np.array([11, 12, 32, 33, 33]), np.array([9, 9, 9, 9, 19])).tolist() == [0, 1, 1, 2, 0]
