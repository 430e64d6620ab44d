"""How colours are written, and which points boards mark."""

import pytest

from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, WHITE, point_at
from engine.go.handicap import fixed_handicap_points, most_fixed_handicap
from engine.go.notation import color_letter, color_word, star_points


def test_colours_in_words_and_letters():
    assert [color_word(color) for color in (BLACK, WHITE)] == ["black", "white"]
    assert [color_letter(color) for color in (BLACK, WHITE)] == ["B", "W"]


@pytest.mark.parametrize("size", range(MIN_SIZE, MAX_SIZE + 1))
def test_stones_of_a_fixed_handicap_stand_on_star_points(size):
    """But for the middles of the sides on small boards, which are not marked."""
    stars = {int(point_at(row, column, size)) for row, column in star_points(size)}
    most = most_fixed_handicap(size)
    if not most:
        assert not stars
        return
    for count in range(2, most + 1):
        stones = set(fixed_handicap_points(size, count))
        assert len(stones) == count
        assert stones <= stars or (size < 13 and count > 5)
    assert stars <= set(fixed_handicap_points(size, most))
