"""Groups with one eye: those that nothing saves, and those that a move may save."""

from itertools import combinations

import pytest

from engine.go.diagram import parse
from engine.go.one_eye import lost_points
from tests.go.solver import BLACK, WHITE, Solver


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


FALSE_EYES = """
    . O X X
    . O X .
    O X . .
    X X . X
"""
"""White at C2 parts the chains around Black's only region, whose four points in a line would be two eyes."""
SHAPES = ({0: 0, 1: -1, 4: -1, 5: -1}, {0: 0, 1: -1, 4: -1}, {0: 0, 4: 0, 1: -1, 5: -1, 8: -1, 9: -1},
          {0: 0, 4: 0, 1: -1, 5: -1, 8: -1})  # fmt: skip
"""White groups with an eye in the corner of a board of 4x4"""
SOLVER = Solver(4)


def dies(board, stones, color, depth, known):
    """Whether Black takes all of some stones off within ``depth`` moves, whatever White does; White may pass."""
    if not any(board[stone] == WHITE for stone in stones):
        return True
    if depth == 0:
        return False
    if (board, color, depth) not in known:
        then = [after for _, after in SOLVER._moves(board, color)] + [board] * (color == WHITE)
        answers = (dies(after, stones, -color, depth - 1, known) for after in then)
        known[board, color, depth] = any(answers) if color == BLACK else all(answers)
    return known[board, color, depth]


def boards(shape, fewest, most):
    """Boards where a shape stands among Black's stones, with so many points left empty."""
    rest = [point for point in range(16) if point not in shape]
    for count in range(fewest, most + 1):
        for empty in combinations(rest, count):
            board = tuple(shape.get(point, 0 if point in empty else BLACK) for point in range(16))
            if all(cell == 0 or 0 in SOLVER._reached(board, point)[1] for point, cell in enumerate(board)):
                yield board


def lost_on(board):
    rows = [" ".join(".XO"[cell] for cell in board[row : row + 4]) for row in range(0, 16, 4)]
    return lost_points(parse("\n".join(rows)).board)


def test_an_eye_that_is_false_holds_nothing():
    assert not lost_points(parse(FALSE_EYES).board).any()


@pytest.mark.parametrize("shape", SHAPES, ids=["four cells", "three cells", "two points", "two points, open"])
def test_lost_groups_die_whatever_their_owner_plays(shape):
    """By proof on all small boards: White moves first, and Black captures within eight moves of both."""
    stones, found = [point for point, cell in shape.items() if cell == WHITE], 0
    for board in boards(shape, 2, 5):
        if lost_on(board).any():
            found += 1
            assert any(dies(board, stones, WHITE, depth, {}) for depth in (2, 4, 6, 8)), board
    assert found
