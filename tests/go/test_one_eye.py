"""Groups with one eye: those that nothing saves, and those that a move may save."""

import pytest

from engine.go.diagram import parse
from engine.go.one_eye import lost_points


def around(eye: str) -> str:
    """A white group with an eye in the corner, in a ring of Black's, which has a large area."""
    return eye + "\n" + "\n".join([". . . . . . . . ."] * (9 - len(eye.strip().splitlines())))


CASES = {
    "square four": (". . O X . . . . .\n. . O X . . . . .\nO O O X . . . . .\nX X X X . . . . .", 9),
    "two points": (". O X . . . . . .\n. O X . . . . . .\nO O X . . . . . .\nX X X . . . . . .", 6),
    "one point": (". O X . . . . . .\nO O X . . . . . .\nX X X . . . . . .", 4),
    "two eyes": (". O . O X . . . .\nO O O O X . . . .\nX X X X X . . . .", 0),
    "three points": (
        ". O X . . . . . .\n. O X . . . . . .\n. O X . . . . . .\nO O X . . . . . .\nX X X . . . . . .",
        0,
    ),
    "a dame": (". . O X . . . . .\n. . O X . . . . .\nO O O . . . . . .\nX X X X . . . . .", 0),
    "a ring without eyes": (
        ". O X . O . . . .\n. O X O O . . . .\nO O X O . . . . .\nX X X O . . . . .\n. O O O . . . . .",
        0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_lost_groups(name):
    text, points = CASES[name]
    owner = lost_points(parse(around(text)).board)
    assert abs(int(owner.sum())) == points


def test_a_board_of_one_colour_has_no_lost_group():
    assert not lost_points(parse("X X\n. .").board).any()
