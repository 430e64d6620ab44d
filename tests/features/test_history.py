"""AlphaGo Zero's 17 planes and Leela Zero's 18: against the slow twins, and after known moves."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.features.encoder import LEELA, ZERO
from engine.go.geometry import BLACK, WHITE
from engine.go.rules import KO_POSITIONAL, KO_SIMPLE
from tests.features.twin import Game, encoded, leela_planes, random_game, zero_planes


@settings(max_examples=60)
@given(
    st.sampled_from([(5, 60), (7, 90), (9, 120), (19, 250)]),
    st.integers(0, 2**32),
    st.sampled_from([KO_SIMPLE, KO_POSITIONAL]),
    st.booleans(),
)
def test_planes_equal_the_slow_twins(board, seed, ko, suicide):
    size, most = board
    game = random_game(size, seed % most, seed, ko, suicide)
    np.testing.assert_array_equal(encoded(ZERO, game.position), zero_planes(game))
    np.testing.assert_array_equal(encoded(LEELA, game.position), leela_planes(game))


def test_boards_come_latest_first_own_stones_before_the_opponents():
    game = Game(5)
    game.play((0, 0))
    game.play((1, 1))
    game.play(None)
    planes = encoded(ZERO, game.position)
    # White is to move: A5 is the opponent's stone, on the board for three boards; B4 is own, for two; then it passed.
    assert [age for age in range(8) if planes[2 * age + 1, 0, 0]] == [0, 1, 2]
    assert [age for age in range(8) if planes[2 * age, 1, 1]] == [0, 1]
    assert planes.sum() == 5
    game.play((2, 2))
    planes = encoded(ZERO, game.position)
    assert planes[0, 0, 0] == planes[1, 1, 1] == planes[1, 2, 2] == 1
    assert (planes[16] == 1).all()


def test_captured_stones_stay_on_the_boards_of_the_past():
    game = Game(5, {(0, 0): WHITE, (0, 1): BLACK}, BLACK)
    game.play((1, 0))
    planes = encoded(ZERO, game.position)
    assert planes[0, 0, 0] == 0 and planes[2, 0, 0] == 1


def test_boards_from_before_the_first_move_are_empty():
    game = Game(5, {(2, 2): BLACK}, WHITE)
    planes = encoded(ZERO, game.position)
    assert planes[1, 2, 2] == 1 and planes.sum() == 1


def test_leela_zero_is_told_either_colour_by_ones():
    game = Game(5)
    game.play((0, 0))
    planes = encoded(LEELA, game.position)
    assert planes[8, 0, 0] == 1 and planes.sum() == 1 + 25
    assert (planes[16] == 0).all() and (planes[17] == 1).all()
    game.play((1, 1))
    game.play(None)
    game.play((2, 2))
    planes = encoded(LEELA, game.position)
    assert [age for age in range(8) if planes[age, 0, 0]] == [0, 1, 2, 3]
    assert [age for age in range(8) if planes[8 + age, 1, 1]] == [0, 1, 2]
    assert (planes[16] == 1).all() and (planes[17] == 0).all()
