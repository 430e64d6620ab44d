"""Boards as text: reading, writing, and what is refused."""

import pytest

from engine.go.board import META_CAPTURED_BLACK, META_SIZE, new_board, play
from engine.go.diagram import parse, render
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, from_vertex, to_vertex


def test_parse_reads_stones_and_marks():
    board, marks = parse("""
        . X a
        O . .
        . # b
    """)
    assert board.meta[META_SIZE] == 3
    assert {name: to_vertex(point, 3) for name, point in marks.items()} == {"a": "C3", "b": "C1"}
    stones = {to_vertex(p, 3): int(board.color[p]) for p in board.head if p}
    assert stones == {"B3": BLACK, "A2": WHITE, "B1": BLACK}


def test_parse_keeps_chains_and_liberties_whatever_the_order():
    board, _ = parse("""
        . X O .
        X O O .
        X O . .
        . X X .
    """)
    chain = board.head[from_vertex("C4", 4)]
    assert board.stones[chain] == 4
    assert board.libs[chain] == 3
    assert board.meta[META_CAPTURED_BLACK] == 0


def test_render_shows_coordinates_hoshi_last_move_and_prisoners():
    board = new_board(7)
    for vertex, color in [("A1", WHITE), ("A2", BLACK), ("D4", WHITE), ("B1", BLACK), ("G7", WHITE)]:
        play(board, from_vertex(vertex, 7), color)
    assert render(board, from_vertex("G7", 7)) == "\n".join(
        [
            "   A B C D E F G",
            " 7 . . . . . .(O)7",
            " 6 . . . . . . . 6",
            " 5 . . + . + . . 5",
            " 4 . . . O . . . 4",
            " 3 . . + . + . . 3",
            " 2 X . . . . . . 2",
            " 1 . X . . . . . 1",
            "   A B C D E F G",
            "Black (X) has captured 1, White (O) 0",
        ]
    )


@pytest.mark.parametrize(
    ("size", "hoshi"),
    [
        (5, ""),
        (7, "C5 E5 C3 E3"),
        (8, "C6 F6 C3 F3"),
        (9, "C7 G7 E5 C3 G3"),
        (12, "C10 K10 C3 K3"),
        (13, "D10 G10 K10 D7 G7 K7 D4 G4 K4"),
        (18, "D15 P15 D4 P4"),
        (19, "D16 K16 Q16 D10 K10 Q10 D4 K4 Q4"),
    ],
)
def test_render_marks_the_usual_hoshi(size, hoshi):
    rows = render(new_board(size)).splitlines()[1 : size + 1]
    found = [
        to_vertex((row + 1) * (size + 1) + column + 1, size)
        for row, text in enumerate(rows)
        for column, sign in enumerate(text[3:].split()[:size])
        if sign == "+"
    ]
    assert " ".join(found) == hoshi


@pytest.mark.parametrize("size", [2, 9, 19, 25])
def test_rendered_boards_read_back(size):
    board = new_board(size)
    for i in range(3 * size):
        point = from_vertex("ABCDEFGHJKLMNOPQRSTUVWXYZ"[i * 7 % size] + str(1 + i * 5 % size), size)
        if board.color[point] == EMPTY:
            play(board, point, BLACK + i % 2)
    again = parse(render(board, from_vertex("A1", size))).board
    assert (again.color == board.color).all()
    assert again.hash[0] == board.hash[0]
    assert (parse(render(board, PASS)).board.color == board.color).all()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "square"),
        (".", "square"),
        ("...\n...\n..", "square"),
        ("\n".join(["." * 26] * 26), "square"),
        ("X a\na .", "twice"),
        ("X O\nO X", "no liberty"),
        (". O X\nO O X\nX X X".replace(".", "O"), "no liberty"),
    ],
)
def test_bad_diagrams_are_refused(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        parse(text)
