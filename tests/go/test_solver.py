"""The solver of small boards against what is known of them."""

import pytest

from tests.go.solver import Solver

SIDE, CORNER, CENTRE = 1, 0, 4


def test_2x2_is_black_s_by_one():
    """J. Tromp, "The Game of Go", page on 2x2."""
    assert Solver(2).value([]) == 1


@pytest.mark.parametrize(("moves", "value"), [([CENTRE], 9), ([CORNER], -9), ([SIDE, 3], 9)])
def test_3x3_is_decided_by_the_first_move(moves, value):
    """E. van der Werf, "AI techniques for the game of Go", 2004, table 5.1; the corner is the worst first move."""
    assert Solver(3).value(moves) == value
