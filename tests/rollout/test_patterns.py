"""Pattern codes: compared cell by cell, under symmetries, folded, and their predicates of moves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_N_EMPTY, META_STRIDE
from engine.go.diagram import parse
from engine.go.geometry import BLACK, WHITE, cell_count, from_vertex, on_board_points
from engine.rollout import run
from engine.rollout.patterns import (
    DIAMOND_IMAGES,
    N_CODES,
    SQUARE_IMAGES,
    all_states,
    coarse_code,
    diamond_code,
    folded,
    for_mover,
    is_rescue,
    is_sensible_code,
    permuted,
    square_code,
    swap_colors,
)
from tests.go.cells import to_point
from tests.rollout import twin

SIZES = [2, 3, 4, 9, 19, 25]


def cells_of(board):
    """States of all cells, by the kernel."""
    cell = np.full(len(board.color), 9, np.uint8)
    all_states(board, cell)
    return cell


def test_a_code_names_its_cells_row_by_row():
    board, marks = parse("""
        a X O .
        . O O .
        X . b .
        . . . .
    """)
    # The lowest octal digit is the cell above on the left: read the digits from the right. White has one chain with
    # three liberties, Black's stone at the top has one, the other three.
    cell, stride = cells_of(board), int(board.meta[META_STRIDE])
    assert square_code(cell, marks["b"], stride) == 0o000_00_077
    assert square_code(cell, marks["a"], stride) == 0o704_14_444
    assert diamond_code(cell, marks["b"], stride) == 0o4437_00000077
    assert diamond_code(cell, marks["a"], stride) == 0o3744_70414444
    assert for_mover(square_code(cell, marks["a"], stride), WHITE) == 0o304_54_444


def test_liberties_are_the_chains_and_count_to_three():
    board, _ = parse("""
        X O . .
        X . . .
        O O O .
        . . . .
    """)
    cell = cells_of(board)
    state = {name: cell[from_vertex(name, 4)] for name in ("A4", "A3", "B4", "A2", "C2", "D4")}
    assert state == {"A4": 1, "A3": 1, "B4": 6, "A2": 7, "C2": 7, "D4": 0}
    outside = np.delete(np.arange(cell_count(4)), on_board_points(4))
    assert (cell[outside] == twin.BORDER).all()


@pytest.mark.parametrize("size", SIZES)
def test_states_and_codes_are_those_of_the_twin(size):
    for seed in range(3 if size < 19 else 1):
        for ply, moment in enumerate(twin.random_game(size, seed, size * size)):
            if ply % (1 + size * size // 20) and size > 4:
                continue
            board, stride = moment.board, int(moment.board.meta[META_STRIDE])
            cell, states = cells_of(board), twin.states_of(twin.stones_of(board), size)
            for at, state in states.items():
                point = to_point(at, size)
                assert cell[point] == state
                for color in (BLACK, WHITE):
                    square, diamond = square_code(cell, point, stride), diamond_code(cell, point, stride)
                    assert for_mover(square, color) == twin.code_at(states, at, twin.NEAR, color)
                    assert for_mover(diamond, color) == twin.code_at(states, at, twin.FAR, color)


@given(st.lists(st.sampled_from((0, 1, 2, 3, 4, 5, 6, 7)), min_size=12, max_size=12))
def test_swapping_colors_exchanges_stones_only(states):
    code = twin.join(states)
    assert swap_colors(code) == twin.join([twin.seen_by(state, WHITE) for state in states])
    assert swap_colors(swap_colors(code)) == code
    assert for_mover(code, BLACK) == code


@pytest.mark.parametrize(("tables", "count", "far"), [(SQUARE_IMAGES, 8, False), (DIAMOND_IMAGES, 12, True)])
def test_the_eight_images_of_a_pattern_fold_to_one(tables, count, far):
    random = np.random.default_rng(3)
    codes = random.integers(0, 1 << 3 * count, 200)
    fold = twin.fold_far if far else twin.fold
    assert folded(codes, tables).tolist() == [fold(code) for code in codes.tolist()]
    for code in codes[:40].tolist():
        own = [int(permuted(np.array([code]), places)[0]) for places in tables]
        assert sorted(own) == sorted(twin.images(code, far))
        assert len(set(folded(np.array(own), tables).tolist())) == 1
    # A pattern without symmetry has eight images; bits above its cells (a context's liberties) stay where they are.
    lone = np.array([(2 << 3 * count) + 0o12])
    assert len({int(permuted(lone, places)[0]) for places in tables}) == 8
    assert {int(permuted(lone, places)[0]) >> 3 * count for places in tables} == {2}


def test_symmetric_boards_show_patterns_that_fold_to_one():
    # What ties images to boards: a whole position under a symmetry, and the codes around the same stone in both.
    *_, moment = twin.random_game(5, 8, 16)
    stones = twin.stones_of(moment.board)
    before = twin.states_of(stones, 5)
    for symmetry in twin.SYMMETRIES:
        moved = {cell: twin.shifted(symmetry(cell[0] - 2, cell[1] - 2), (2, 2)) for cell in before}
        later = twin.states_of({moved[cell]: color for cell, color in stones.items()}, 5)
        for offsets, tables in ((twin.NEAR, SQUARE_IMAGES), (twin.FAR, DIAMOND_IMAGES)):
            codes = np.array([twin.code_at(before, cell, offsets, BLACK) for cell in before])
            images = np.array([twin.code_at(later, moved[cell], offsets, BLACK) for cell in before])
            assert (folded(codes, tables) == folded(images, tables)).all()
            assert {tuple(permuted(codes, places)) for places in tables} >= {tuple(images)}


@settings(max_examples=40)
@given(size=st.integers(2, 9), seed=st.integers(0, 10**6))
def test_a_code_says_whether_a_move_is_sensible(size, seed):
    # Ko apart: a forbidden ko is no matter of what surrounds the point.
    for moment in twin.random_game(size, seed, size * size):
        board, stride = moment.board, int(moment.board.meta[META_STRIDE])
        cell = cells_of(board)
        for color in (BLACK, WHITE):
            ko = board.meta[META_KO_POINT] if board.meta[META_KO_COLOR] == color else 0
            for point in board.empty[: board.meta[META_N_EMPTY]].tolist():
                code = for_mover(square_code(cell, point, stride), color)
                assert point == ko or is_sensible_code(code) == run.is_sensible(board, point, color)
                assert is_sensible_code(code) == twin.is_sensible(int(code))


def test_sensible_rescuing_and_coarse_codes_are_those_of_the_twin():
    for code in np.random.default_rng(5).integers(0, N_CODES, 20000).tolist():
        assert is_sensible_code(code) == twin.is_sensible(code)
        assert is_rescue(code) == twin.is_rescue(code)
        assert coarse_code(code) == twin.coarse(code)


@pytest.mark.parametrize(
    ("text", "rescues"),
    [
        (". . . .\n. O X O\n. . a .\n. . . .", False),  # The stone above has two liberties: nothing to save.
        (". O . .\nO X O .\n. a . .\n. . . .", True),  # To three liberties.
        (". . O .\n. O X O\n. O a O\n. . . .", False),  # To one.
        (". . O .\n. O X O\n. . a O\n. . . .", True),  # To two.
        (". O . .\nO X O .\nO a X .\n. O . .", True),  # Joins a chain with liberties elsewhere.
        ("O O O .\nX a X O\nO . O .\n. . . .", False),  # Joins two that are both in atari, to one.
        (". O X X\n. . a O\n. . O X\n. . . .", True),  # Captures on the right: that point and the one on the left.
        (". O X X\n. . a O\n. . O .\n. . . .", False),  # The same without the capture.
    ],
)
def test_a_rescue_leaves_two_liberties(text, rescues):
    board, marks = parse(text)
    code = square_code(cells_of(board), marks["a"], int(board.meta[META_STRIDE]))
    assert is_rescue(code) == rescues


def test_coarse_codes_keep_atari_beside_the_centre_only():
    # Octal digits from the right: black with 1, 2, 1 above, white with 1 and border beside, white 1, 2, empty below.
    assert coarse_code(0o065_45_121) == 0o077_45_333
    assert coarse_code(0o065_45_111) == 0o077_45_313
