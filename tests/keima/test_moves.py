"""Moves, colours and perspectives of the library."""

import pickle

import numpy as np
import pytest

import keima


def test_a_move_is_its_vertex_with_coordinates():
    move = keima.Move("d4", 9)
    assert move == "D4"
    assert (move.row, move.column, move.policy_index) == (5, 3, 48)
    assert keima.Move((5, 3), 9) == keima.Move(48, 9) == keima.Move(np.int64(48), 9) == move
    assert repr(move) == "Move('D4', 9)"
    assert not move.is_pass


def test_a_pass_has_no_row():
    move = keima.Move(81, 9)
    assert (move, move.row, move.column, move.policy_index) == ("pass", -1, -1, 81)
    assert move.is_pass


def test_a_pickled_move_keeps_its_coordinates():
    move = pickle.loads(pickle.dumps(keima.Move("J9", 9)))
    assert (move, move.policy_index, move.size) == ("J9", 8, 9)


@pytest.mark.parametrize("wrong, reason", [
    ("Z9", "'Z9' is not a vertex of a 9x9 board"),
    ("I5", "columns skip I"),
    ((9, 0), "(row, column) is (9, 0), expected each from 0 to 8"),
    (82, "policy index is 82, expected 0 to 81, which is a pass"),
    (-1, "policy index is -1"),
])  # fmt: skip
def test_a_move_off_the_board_is_refused(wrong, reason):
    with pytest.raises(ValueError) as caught:
        keima.Move(wrong, 9)
    assert reason in str(caught.value)


def test_colours_are_read_from_words_and_letters():
    assert keima.Color.of("b") is keima.Color.of("BLACK") is keima.Color.of(1) is keima.BLACK
    assert keima.Color.of("White") is keima.BLACK.opponent is keima.WHITE
    for wrong in ("red", 0, 3):
        with pytest.raises(ValueError, match="is not a colour"):
            keima.Color.of(wrong)


def test_values_have_both_perspectives():
    rate, lead = keima.WinRate(0.25, keima.WHITE), keima.Lead(-3.5, keima.WHITE)
    assert (rate.black, rate.white, rate.relative, rate.pov("b")) == (0.25, 0.75, 0.75, 0.25)
    assert (lead.black, lead.white, lead.relative, lead.pov("b")) == (-3.5, 3.5, 3.5, -3.5)
    assert (str(rate), str(lead), str(keima.Lead(0.0, keima.BLACK))) == ("25.0% for Black", "W+3.5", "0")
    owned = keima.Ownership(np.array([[1.0, -0.5]], np.float32), keima.WHITE)
    np.testing.assert_array_equal(owned.relative, [[-1.0, 0.5]])
    with pytest.raises(TypeError):
        float(rate)
