"""Ladders on diagrams, and every verdict against a slow plain-Python reader."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.go.board import META_KO_POINT, META_SIZE, is_legal, new_board, play
from engine.go.diagram import parse
from engine.go.geometry import BLACK, WHITE, from_vertex, on_board_points, to_vertex
from engine.go.ladder import POSITION_NODES, READ_NODES, ladder_planes, new_ladder_scratch
from tests.go.ladder_twin import POSITIONS, LadderTwin


def marked(board, color):
    """Vertices of the ladder captures and of the ladder escapes of a colour, each sorted into one string."""
    size = int(board.meta[META_SIZE])
    capture, escape = np.full(size * size, 7, np.uint8), np.full(size * size, 7, np.uint8)
    ladder_planes(board, color, new_ladder_scratch(size), capture, escape)
    assert set(capture) | set(escape) <= {0, 1}
    points = on_board_points(size)
    return tuple(" ".join(sorted(to_vertex(int(p), size) for p in points[plane == 1])) for plane in (capture, escape))


@pytest.mark.parametrize("name", POSITIONS)
def test_ladders_on_diagrams(name):
    board, marks = parse(POSITIONS[name])
    captures = " ".join(sorted(to_vertex(point, 9) for sign, point in marks.items() if sign.isalpha()))
    escapes = " ".join(sorted(to_vertex(point, 9) for sign, point in marks.items() if sign.isdigit()))
    assert marked(board, BLACK)[0] == captures
    assert marked(board, WHITE)[1] == escapes


def assert_planes_agree(board, scratch):
    """Compare planes and the twin on every point, for both colours."""
    size = int(board.meta[META_SIZE])
    before = board.buffer.copy()
    for color in (BLACK, WHITE):
        capture, escape = np.empty(size * size, np.uint8), np.empty(size * size, np.uint8)
        ladder_planes(board, color, scratch, capture, escape)
        assert scratch.nodes_left[0] > READ_NODES  # nothing was cut short
        for index, point in enumerate(on_board_points(size).tolist()):
            twin = LadderTwin(board)
            assert capture[index] == twin.is_capture(point, color)
            assert escape[index] == twin.is_escape(point, color)
    assert (board.buffer == before).all()


def test_planes_of_a_rotated_board_are_rotated():
    diagram, _ = parse(POSITIONS["two ways to hunt, one broken"])
    for quarter_turns in range(4):
        stones = np.rot90(diagram.color[on_board_points(9)].reshape(9, 9), quarter_turns)
        board = new_board(9)
        for point, color in zip(on_board_points(9), stones.ravel(), strict=True):
            if color:
                play(board, int(point), 3 - int(color))
        wanted = np.zeros((9, 9), np.uint8)
        wanted[6, 5] = 1
        capture, escape = np.empty(81, np.uint8), np.empty(81, np.uint8)
        ladder_planes(board, WHITE, new_ladder_scratch(9), capture, escape)
        assert (capture == np.rot90(wanted, quarter_turns).ravel()).all()


def test_simple_ko_holds_on_the_real_board():
    board, marks = parse("""
        . . . . . .
        . X O X . .
        X O a O . .
        . X O . . .
        . . . . . .
        . . . . . .
    """)
    play(board, marks["a"], BLACK)
    assert board.meta[META_KO_POINT] == from_vertex("B4", 6)
    assert "B4" not in marked(board, WHITE)[1]
    play(board, 0, WHITE)
    assert "B4" in marked(board, WHITE)[1]


def test_a_read_is_bounded():
    board, _ = parse(POSITIONS["into the corner"])
    scratch, planes = new_ladder_scratch(9), np.empty((2, 81), np.uint8)
    ladder_planes(board, BLACK, scratch, *planes)
    assert planes[0].sum() == 1
    used = POSITION_NODES - scratch.nodes_left[0]
    assert 10 < used <= READ_NODES


@pytest.mark.slow
def test_many_dense_boards_agree_with_the_twin():
    random = np.random.default_rng(7)
    for _ in range(4000):
        size = int(random.integers(3, 8))
        board, scratch = new_board(size), new_ladder_scratch(size)
        for point in random.choice(on_board_points(size), int(random.integers(5, 2 * size * size))):
            color = int(random.integers(BLACK, WHITE + 1))
            if is_legal(board, int(point), color, False):
                play(board, int(point), color)
        assert_planes_agree(board, scratch)


@settings(max_examples=100)
@given(
    size=st.integers(2, 6),
    moves=st.lists(st.tuples(st.integers(0, 35), st.sampled_from((BLACK, WHITE))), min_size=20, max_size=120),
)
def test_every_point_agrees_with_the_twin(size, moves):
    board, scratch = new_board(size), new_ladder_scratch(size)
    points = on_board_points(size).tolist()
    for index, color in moves:
        point = points[index % len(points)]
        if is_legal(board, point, color, False):
            play(board, point, color)
    assert_planes_agree(board, scratch)
