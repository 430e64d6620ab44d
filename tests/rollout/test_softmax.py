"""Features and probabilities of moves: compared with the slow twin, under symmetries, on diagrams."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.go.board import META_N_EMPTY, META_SIZE, is_legal, new_board, play
from engine.go.diagram import parse
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, to_vertex
from engine.rollout.patterns import MOST_SAVERS, all_states, list_savers, nakade_pattern
from engine.rollout.softmax import consider, is_self_atari, new_candidates, weigh
from engine.rollout.vocabulary import LAST_DISTANCE, unfold
from tests.go.cells import to_cell, to_point
from tests.rollout import twin


@cache
def numbers(is_tree):
    return unfold(twin.small_vocabulary(is_tree))


@cache
def theta(is_tree):
    """Random weights, so that no two features can be taken for one another."""
    return np.random.default_rng(1).normal(0, 1, twin.small_vocabulary(is_tree).starts[-1]).astype(np.float32)


def considered(moment, color, is_tree, moves=None):
    """The moves considered after a moment, and how many they are."""
    moves = moves or new_candidates(int(moment.board.meta[META_SIZE]))
    all_states(moment.board, moves.cell)
    moves.last[:] = moment.last, moment.before, len(moment.captured)
    return moves, consider(moves, moment.board, numbers(is_tree), color)


@settings(max_examples=25)
@given(size=st.integers(2, 10), seed=st.integers(0, 10**6), is_tree=st.booleans())
def test_features_are_those_of_the_twin(size, seed, is_tree):
    places, moves = twin.Places(twin.small_vocabulary(is_tree)), new_candidates(size)
    for ply, moment in enumerate(twin.random_game(size, seed, size * size + 20)):
        if size > 5 and ply % 4 and not moment.captured:
            continue
        color = 3 - moment.color
        _, count = considered(moment, color, is_tree, moves)
        expected = twin.Sight(moment, color).features(places)
        found = {}
        for i in range(count):
            cell = to_cell(moves.point[i], size)
            found[cell] = sorted(moves.feature[i, : moves.n_features[i]].tolist())
        assert found == expected
        for point in moment.board.empty[: moment.board.meta[META_N_EMPTY]].tolist():
            place = moves.place[point]
            assert place == -1 or moves.point[place] == point
            assert (place >= 0) == (to_cell(point, size) in expected)


def test_every_kind_of_feature_occurs():
    # Else the comparison above would prove little.
    words = twin.small_vocabulary(True)
    places, seen = twin.Places(words), set()
    for size, seed in ((5, 0), (7, 1), (9, 2)):
        for moment in twin.random_game(size, seed, 2 * size * size):
            for own in twin.Sight(moment, 3 - moment.color).features(places).values():
                seen |= set(own)
    for first, stop in pairwise(words.starts):
        assert seen & set(range(first, stop))
    assert set(range(places.single, places.single + LAST_DISTANCE)) <= seen


def test_the_most_probable_move_has_the_largest_score():
    for moment in twin.random_game(6, 5, 50):
        moves, count = considered(moment, 3 - moment.color, True)
        if count == 0:
            continue
        scores = np.array([theta(True)[moves.feature[i, : moves.n_features[i]]].sum() for i in range(count)], float)
        best = weigh(moves, count, theta(True))
        expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        np.testing.assert_allclose(moves.probability[:count], expected, rtol=1e-4)
        assert best == np.argmax(moves.probability[:count])


def probabilities(moment, color, is_tree):
    """Probability by cell."""
    moves, count = considered(moment, color, is_tree)
    if count:
        weigh(moves, count, theta(is_tree))
    size = int(moment.board.meta[META_SIZE])
    return {to_cell(moves.point[i], size): moves.probability[i] for i in range(count)}


@pytest.mark.parametrize("is_tree", [False, True])
@pytest.mark.parametrize("symmetry", range(1, 8))
def test_symmetric_games_and_swapped_colours_have_the_same_probabilities(symmetry, is_tree):
    size, images = 7, twin.SYMMETRIES
    image = new_board(size)

    def moved(cell):
        return twin.shifted(images[symmetry](cell[0] - 3, cell[1] - 3), (3, 3))

    def moved_point(point):
        return to_point(moved(to_cell(point, size)), size) if point else PASS

    for moment in twin.random_game(size, symmetry, 70):
        play(image, moved_point(moment.last), 3 - moment.color)
        other = twin.Moment(
            image, moved_point(moment.last), moved_point(moment.before), moment.captured, 3 - moment.color
        )
        expected = probabilities(moment, 3 - moment.color, is_tree)
        found = probabilities(other, moment.color, is_tree)
        assert found.keys() == {moved(cell) for cell in expected}
        for cell, probability in expected.items():
            assert abs(found[moved(cell)] - probability) < 1e-9


@settings(max_examples=30)
@given(size=st.integers(2, 8), seed=st.integers(0, 10**6))
def test_self_atari_is_what_the_twin_finds_after_the_move(size, seed):
    for ply, moment in enumerate(twin.random_game(size, seed, 2 * size * size)):
        if ply % 3:
            continue
        board, stones = moment.board, twin.stones_of(moment.board)
        for point in board.empty[: board.meta[META_N_EMPTY]].tolist():
            for color in (BLACK, WHITE):
                if is_legal(board, point, color, False):
                    expected = twin.is_self_atari(stones, size, to_cell(point, size), color)
                    assert is_self_atari(board, point, color) == expected, to_vertex(point, size)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m . .\n. . .\n. . .", False),
        ("m O .\n. . .\n. . .", True),
        (". O .\nO m .\n. O .", True),
        ("m X O\n. . .\n. . .", False),
        ("m X O\n. O .\n. . .", True),
        # Two neighbours in one chain with two liberties: the second of them is all that is left.
        ("X m X O\nX X X O\nO O O O\n. . . .", True),
        # The same liberty from two sides counts once.
        ("X m O .\n. X O .\nO O . .\n. . . .", True),
        # A stone captured beside the new one is a liberty, two of them are two.
        ("m O X .\nO X . .\n. . . .\n. . . .", True),
        ("m O X .\nO X . .\nX . . .\n. . . .", False),
    ],
)
def test_self_atari_leaves_one_liberty(text, expected):
    board, marks = parse(text)
    assert is_self_atari(board, marks["m"], BLACK) == expected


def test_points_captured_away_from_the_move_do_not_count_for_self_atari():
    # Documented: of the two stones captured only the one beside the new stone counts, though the chain gets both.
    board, marks = parse("""
        O O m O .
        X X X O .
        O O O O .
        . . . . .
        . . . . .
    """)
    assert is_self_atari(board, marks["m"], BLACK)
    play(board, marks["m"], BLACK)
    assert board.libs[board.head[marks["m"]]] == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # White's move at m leaves the pair one liberty, D5; the stone on its left has one as well.
        (". . O . .\nX O X X m\n. X O O .\n. . . . .\n. . . . .", {"B5"}),
        # The same with a liberty more for that stone, and with one more for the pair.
        (". . O . .\n. O X X m\n. X O O .\n. . . . .\n. . . . .", set()),
        (". . O . .\nX O X X m\n. X O . .\n. . . . .\n. . . . .", set()),
        # Two stones can be taken, on different points, and on the same point.
        (". X O . .\n. O X X m\n. X O O .\n. . . . .\n. . . . .", {"A4", "D5"}),
        (". . O X .\nX O X X m\n. X O O .\n. . . . .\n. . . . .", {"B5"}),
        # A chain in atari before, away from the last move.
        (". . O . .\nX O X . .\n. X O . .\n. . . . .\n. . . m .", set()),
    ],
)
@pytest.mark.parametrize("color", [BLACK, WHITE])
def test_savers_capture_what_holds_a_chain_in_atari(text, expected, color):
    board, marks = parse(text if color == BLACK else text.translate(str.maketrans("XO", "OX")))
    play(board, marks["m"], 3 - color)
    points = np.zeros(MOST_SAVERS, np.int16)
    count = list_savers(board, marks["m"], color, points)
    assert sorted(to_vertex(int(point), 5) for point in points[:count]) == sorted(expected)


def test_savers_beyond_the_memory_are_left_out():
    board, marks = parse(". X O . .\n. O X X m\n. X O O .\n. . . . .\n. . . . .")
    play(board, marks["m"], WHITE)
    points = np.zeros(1, np.int16)
    assert list_savers(board, marks["m"], BLACK, points) == 1
    assert to_vertex(int(points[0]), 5) in ("A4", "D5")


@settings(max_examples=30)
@given(size=st.integers(3, 9), seed=st.integers(0, 10**6))
def test_savers_are_those_of_the_twin(size, seed):
    points = np.zeros(MOST_SAVERS, np.int16)
    for moment in twin.random_game(size, seed, 2 * size * size):
        if moment.last == PASS:
            continue
        stones, last = twin.stones_of(moment.board), to_cell(moment.last, size)
        for color in (BLACK, WHITE):
            found = points[: list_savers(moment.board, moment.last, color, points)].tolist()
            expected = twin.savers(stones, size, last, color)
            assert len(found) == len(set(found)) <= MOST_SAVERS
            if len(expected) <= MOST_SAVERS:
                assert {to_cell(point, size) for point in found} == expected


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        # Bits are numbered by rows: 0, 1 to 3, 4 to 8 with 6 in the middle, 9 to 11, 12.
        (". O O O .\nO X X X m\n. O O O .\n. . . . .\n. . . . .", {"B4": (6, 7, 8), "C4": (5, 6, 7), "D4": (4, 5, 6)}),
        (
            ". O O . .\nO X X m .\n. O X O .\n. . O . .\n. . . . .",
            {"B4": (6, 7, 11), "C4": (5, 6, 10), "C3": (1, 2, 6)},
        ),
        # What is farther than two steps does not show.
        ("X X X X m\nO O O O .\n. . . . .\n. . . . .\n. . . . .", {"A5": (6, 7, 8), "C5": (4, 5, 6, 7)}),
        (
            "X O . . .\nX O . . .\nX O . . .\nm . . . .\n. . . . .",
            {"A5": (6, 10, 12), "A4": (2, 6, 10), "A3": (0, 2, 6)},
        ),
        # Two chains captured by one stone are one pattern.
        ("O X m X O\n. O . O .\n. . . . .\n. . . . .\n. . . . .", {"B5": (6, 8), "D5": (4, 6)}),
    ],
)
def test_nakade_patterns_show_what_was_captured_together(text, patterns):
    board, marks = parse(text)
    captured = play(board, marks["m"], WHITE)
    for vertex, bits in patterns.items():
        assert nakade_pattern(board, from_vertex(vertex, 5), captured) == sum(1 << bit for bit in bits)
