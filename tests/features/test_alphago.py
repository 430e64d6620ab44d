"""AlphaGo's 48 and 49 planes: against the slow twin, and known values on diagrams."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.features.encoder import ALPHAGO_POLICY, ALPHAGO_VALUE
from engine.go.geometry import BLACK, WHITE
from engine.go.rules import KO_POSITIONAL, KO_SIMPLE, KO_SITUATIONAL
from tests.features.twin import Game, alphago_planes, encoded, random_game, shown
from tests.go.ladder_twin import POSITIONS

OWN, OPPONENT, EMPTY, ONES, TURNS, LIBERTIES, CAPTURE, SELF_ATARI, AFTER = 0, 1, 2, 3, 4, 12, 20, 28, 36
LADDER_CAPTURE, LADDER_ESCAPE, SENSIBLE, ZEROS, BLACK_TO_MOVE = 44, 45, 46, 47, 48
NAMES = ["own", "opponent", "empty", "ones"] + [
    f"{name} {k}" for name in ("turns since", "liberties", "capture", "self-atari", "after") for k in range(1, 9)
]
NAMES += ["ladder capture", "ladder escape", "sensible", "zeros", "black to move"]


@settings(max_examples=60)
@given(
    st.sampled_from([(5, 60), (6, 70), (6, 70), (7, 90), (9, 120), (13, 150), (19, 250)]),
    st.integers(0, 2**32),
    st.sampled_from([KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL]),
    st.booleans(),
)
def test_planes_equal_the_slow_twin(board, seed, ko, suicide):
    size, most = board
    game = random_game(size, seed % most, seed, ko, suicide)
    expected = alphago_planes(game)
    for encoder in (ALPHAGO_POLICY, ALPHAGO_VALUE):
        for name, plane, wanted in zip(NAMES, encoded(encoder, game.position), expected, strict=False):
            np.testing.assert_array_equal(plane, wanted, err_msg=name)


def digits(position, first, count=8):
    """A feature as text: the number of the plane that is set at each point, a dot where none is."""
    planes = encoded(ALPHAGO_VALUE, position)[first : first + count]
    assert set(np.unique(planes)) <= {0, 1} and planes.sum(axis=0).max() <= 1
    numbers = (planes * np.arange(1, count + 1)[:, None, None]).sum(axis=0).astype(int)
    return "\n".join("".join(str(n or ".") for n in row) for row in numbers)


def rows(text):
    """A drawing without the spaces of its surroundings."""
    return "\n".join("".join(line.split()) for line in text.strip().splitlines())


FIGHT = """
    . X O . . . .
    X O O . . . .
    . X . O . X .
    . . X . . O X
    . . . . O O X
    . X X . . X .
    . O . . . . .
"""


def test_stones_are_those_of_the_side_to_move():
    for color, letters in ((BLACK, "12"), (WHITE, "21")):
        position, _ = shown(FIGHT, color)
        stones = rows(FIGHT).replace(".", "3").replace("X", letters[0]).replace("O", letters[1])
        assert digits(position, OWN, 3) == stones
        planes = encoded(ALPHAGO_VALUE, position)
        assert (planes[ONES] == 1).all() and (planes[ZEROS] == 0).all()
        assert (planes[BLACK_TO_MOVE] == (color == BLACK)).all()


def test_liberties_of_chains():
    assert digits(shown(FIGHT, BLACK)[0], LIBERTIES) == rows("""
        . 1 3 . . . .
        2 3 3 . . . .
        . 3 . 4 . 3 .
        . . 4 . . 3 2
        . . . . 3 3 2
        . 5 5 . . 3 .
        . 2 . . . . .
    """)


def test_a_policy_network_sees_the_same_planes_but_the_last():
    position, _ = shown(FIGHT, WHITE)
    np.testing.assert_array_equal(encoded(ALPHAGO_POLICY, position), encoded(ALPHAGO_VALUE, position)[:48])


def edge_row(count, color):
    """Stones side by side on the first row of a 13x13 board, from the corner on."""
    return {(0, column): color for column in range(count)}


@pytest.mark.parametrize("count", range(1, 11))
def test_capture_size(count):
    below = {(1, column): BLACK for column in range(count)}
    game = Game(13, edge_row(count, WHITE) | below)
    planes = encoded(ALPHAGO_VALUE, game.position)
    assert planes[CAPTURE : CAPTURE + 8, 0, count].tolist() == [k == min(count, 7) for k in range(8)]
    # Every other move is legal and captures nothing.
    assert planes[CAPTURE].sum() == 13 * 13 - 2 * count - 1


def test_stones_of_several_chains_are_captured_together_and_each_chain_once():
    position, marks = shown(
        """
        . . . . . . .
        . . X X X . .
        . X O O O X .
        . X O a O X .
        . . X O X . .
        . . . X . . .
        . . . . . . .
        """,
        BLACK,
    )
    planes = encoded(ALPHAGO_VALUE, position)
    assert planes[(CAPTURE + 6, *marks["a"])] == 1
    # They free all four points beside the new stone.
    assert planes[(AFTER + 3, *marks["a"])] == 1
    assert planes[SELF_ATARI : SELF_ATARI + 8, marks["a"][0], marks["a"][1]].sum() == 0


@pytest.mark.parametrize("count", range(1, 11))
def test_self_atari_size(count):
    below = {(1, column): WHITE for column in range(count)}
    game = Game(13, edge_row(count - 1, BLACK) | below)
    planes = encoded(ALPHAGO_VALUE, game.position)
    assert planes[SELF_ATARI : SELF_ATARI + 8, 0, count - 1].tolist() == [k == min(count, 8) for k in range(1, 9)]
    assert planes[AFTER, 0, count - 1] == 1


@pytest.mark.parametrize("count", range(1, 10))
def test_liberties_after_a_move(count):
    """A row along the edge has one liberty below each stone and one beside it."""
    game = Game(13, edge_row(count - 1, BLACK))
    planes = encoded(ALPHAGO_VALUE, game.position)
    assert planes[AFTER : AFTER + 8, 0, count - 1].tolist() == [k == min(count + 1, 8) for k in range(1, 9)]
    assert planes[SELF_ATARI : SELF_ATARI + 8].sum() == 0


def test_liberties_shared_by_chains_and_points_captured_count_once():
    position, marks = shown(
        """
        O X . . . . .
        a O X . . . .
        O O X . . . .
        X X . . . . .
        . . . . . . .
        . . . . X . .
        . . . X b X .
        """,
        BLACK,
    )
    planes = encoded(ALPHAGO_VALUE, position)
    # At A6 Black takes four stones, three of them beside the new one, which joins nothing.
    assert planes[(CAPTURE + 4, *marks["a"])] == 1
    assert planes[(AFTER + 2, *marks["a"])] == 1
    # At E1 three stones become one chain; both D2 and F2 are liberties of two of them.
    assert planes[(AFTER + 4, *marks["b"])] == 1


def test_a_suicide_counts_as_self_atari_where_it_is_legal():
    diagram = """
        X a O . .
        O O O . .
        . . . . .
        . . . . .
        . . . . .
    """
    position, marks = shown(diagram, BLACK, suicide=True)
    planes = encoded(ALPHAGO_VALUE, position)
    at = (slice(None), *marks["a"])
    assert np.flatnonzero(planes[at]).tolist() == [EMPTY, ONES, CAPTURE, SELF_ATARI + 1, SENSIBLE, BLACK_TO_MOVE]
    position, _ = shown(diagram, BLACK)
    assert np.flatnonzero(encoded(ALPHAGO_VALUE, position)[at]).tolist() == [EMPTY, ONES, BLACK_TO_MOVE]


def test_turns_since_a_stone_was_played():
    game = Game(5, {(4, 4): BLACK, (4, 0): WHITE}, BLACK)
    for cell in [(0, 0), (0, 1), (0, 2), None, (0, 4), (2, 0), (2, 1), (2, 2), (2, 3)]:
        game.play(cell)
    assert digits(game.position, TURNS) == rows("""
        8 8 7 . 5
        . . . . .
        4 3 2 1 .
        . . . . .
        8 . . . 8
    """)
    game.play(None)
    assert digits(game.position, TURNS).splitlines()[0] == "888.6"


def test_a_point_played_twice_tells_the_age_of_the_stone_that_stands_there():
    """A ko: White plays on B3 twice within seven turns, Black on C3 in between."""
    ko = {(1, 1): BLACK, (2, 0): BLACK, (3, 1): BLACK, (1, 2): WHITE, (3, 2): WHITE, (2, 3): WHITE}
    game = Game(5, ko | {(2, 2): BLACK}, WHITE)
    game.play((2, 1))  # takes C3
    assert digits(game.position, TURNS).splitlines()[2] == "81.8."
    for cell in [(4, 4), (4, 3), (2, 2)]:  # Black takes back at C3
        game.play(cell)
    assert digits(game.position, TURNS).splitlines()[2] == "8.18."
    for cell in [(0, 4), (0, 3), (2, 1)]:  # and White at B3, played on for the second time in seven turns
        game.play(cell)
    assert digits(game.position, TURNS).splitlines()[2] == "81.8."
    assert digits(game.position, TURNS).splitlines()[0] == "...23"


def test_handicap_stones_are_old():
    game = Game(9, {(2, 2): BLACK, (6, 6): BLACK}, WHITE)
    game.play((4, 4))
    planes = encoded(ALPHAGO_VALUE, game.position)
    assert planes[TURNS + 7].sum() == 2 and planes[TURNS, 4, 4] == 1


def test_sensible_moves_are_legal_and_fill_no_own_eye():
    position, _ = shown(
        """
        . X . O . X .
        X X . O O O X
        . . X . O O .
        . X . X . . .
        O . X . . . .
        . O . . . . O
        O . O . . O .
        """,
        BLACK,
    )
    # A7 and C4 are eyes, G7 is a false one; A2, B1 and G1 are suicide.
    assert digits(position, SENSIBLE, 1) == rows("""
        . . 1 . 1 . 1
        . . 1 . . . .
        1 1 . 1 . . 1
        1 . . . 1 1 1
        . 1 . 1 1 1 1
        . . 1 1 1 1 .
        . . . 1 1 . .
    """)


@pytest.mark.parametrize("name", POSITIONS)
def test_ladder_planes_show_the_ladders_of_the_diagrams(name):
    """Among them ladders with a second line of escape, makers, breakers and stones captured on the way."""
    for color, plane, is_mark in ((BLACK, LADDER_CAPTURE, str.isalpha), (WHITE, LADDER_ESCAPE, str.isdigit)):
        position, marks = shown(POSITIONS[name], color)
        expected = np.zeros((9, 9), np.float32)
        for sign, cell in marks.items():
            expected[cell] = is_mark(sign)
        np.testing.assert_array_equal(encoded(ALPHAGO_VALUE, position)[plane], expected)


def test_a_ko_under_superko_stays_forbidden_after_passes():
    """Simple ko has forgotten it by then; on a forbidden point no feature of moves is given."""
    ko = {(1, 1): BLACK, (2, 0): BLACK, (3, 1): BLACK, (1, 2): WHITE, (3, 2): WHITE, (2, 3): WHITE, (2, 2): BLACK}
    for rule, is_open in ((KO_SIMPLE, True), (KO_POSITIONAL, False)):
        game = Game(5, ko, WHITE, rule)
        for cell in [(2, 1), None, None]:
            game.play(cell)
        planes = encoded(ALPHAGO_VALUE, game.position)
        assert planes[CAPTURE:ZEROS, 2, 2].any() == is_open
        assert planes[EMPTY, 2, 2] == 1
