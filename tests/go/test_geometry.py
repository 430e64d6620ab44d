"""Names of points: round trips, borders and what is refused."""

import numpy as np
import pytest

from engine.go.geometry import (
    BLACK,
    COLUMNS,
    MAX_CELLS,
    MAX_SIZE,
    MIN_SIZE,
    PASS,
    WHITE,
    ZOBRIST,
    cell_count,
    from_vertex,
    index_of,
    on_board_points,
    other,
    point_at,
    point_of,
    to_sgf,
    to_vertex,
)
from engine.go.points import color_letter, color_word

SIZES = range(MIN_SIZE, MAX_SIZE + 1)


@pytest.mark.parametrize("size", SIZES)
def test_every_point_has_one_name_of_each_kind(size):
    points = on_board_points(size).tolist()
    assert len(set(points)) == size * size
    for index, point in enumerate([*points, PASS]):
        assert point_of(index, size) == point
        assert index_of(point, size) == index
        assert from_vertex(to_vertex(point, size), size) == point
    for index, point in enumerate(points):
        assert point_at(index // size, index % size, size) == point
        assert to_sgf(point, size) == chr(97 + index % size) + chr(97 + index // size)


@pytest.mark.parametrize("size", SIZES)
def test_neighbours_and_diagonals_stay_inside_the_padded_array(size):
    points = set(on_board_points(size).tolist())
    stride, cells = size + 1, int(cell_count(size))
    assert cells <= MAX_CELLS
    for point in points:
        row, column = divmod(int(index_of(point, size)), size)
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                near = point + down * stride + right
                assert 0 <= near < cells
                assert (near in points) == (0 <= row + down < size and 0 <= column + right < size)


def test_vertices_follow_the_protocol():
    assert from_vertex("A1", 19) == point_at(18, 0, 19)
    assert from_vertex("t19", 19) == point_at(0, 18, 19)
    assert from_vertex(" j5 ", 9) == point_at(4, 8, 9)
    assert from_vertex("Z25", 25) == point_at(0, 24, 25)
    assert from_vertex("PASS", 9) == from_vertex("pass", 9) == PASS
    assert to_vertex(PASS, 19) == "pass"
    assert "I" not in COLUMNS
    assert len(COLUMNS) == MAX_SIZE
    assert to_sgf(PASS, 19) == ""


@pytest.mark.parametrize(
    "text",
    ["", "A0", "A10", "K1", "Z99", "A", "5", "A-1", "A1.5", "A 1", "AA1", "A١", "passs", "\u00e41", "A001"],
)
def test_what_is_no_vertex_is_refused_by_name(text):
    with pytest.raises(ValueError, match="is not a vertex of a 9x9 board"):
        from_vertex(text, 9)


def test_zobrist_words_are_distinct_and_fixed():
    table = ZOBRIST
    assert table.dtype == np.uint64
    assert table.shape == (4, MAX_CELLS)
    assert len(np.unique(table)) == table.size
    bits = np.unpackbits(table.view(np.uint8)).mean()
    assert 0.49 < bits < 0.51


def test_other_is_the_opponent():
    assert (other(1), other(2)) == (2, 1)


def test_colours_in_words_and_letters():
    assert [color_word(color) for color in (BLACK, WHITE)] == ["black", "white"]
    assert [color_letter(color) for color in (BLACK, WHITE)] == ["B", "W"]
