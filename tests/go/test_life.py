"""Pass-alive areas: known shapes, and a slow twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.go.board import META_SIZE, is_legal, new_board, play
from engine.go.geometry import BLACK, EMPTY, WHITE, index_of, on_board_points
from engine.go.life import pass_alive

SHAPES = {
    "two eyes in the corner": (
        ". X . X O\n"
        "X X X X O\n"
        "O O O O O\n"
        ". . . . .\n"
        ". . . . .",
        "1 1 1 1 0\n"
        "1 1 1 1 0\n"
        "0 0 0 0 0\n"
        "0 0 0 0 0\n"
        "0 0 0 0 0",
    ),
    "one big eye is not enough": (
        ". . X O .\n"
        ". . X O .\n"
        "X X X O .\n"
        "O O O O .\n"
        ". . . . .",
        "0 0 0 0 0\n"
        "0 0 0 0 0\n"
        "0 0 0 0 0\n"
        "0 0 0 0 0\n"
        "0 0 0 0 0",
    ),
    "a prisoner inside an eye lives not": (
        ". O X . X\n"
        "X X X X X\n"
        ". . . . .\n"
        ". . . . .\n"
        ". . . . .",
        "1 1 1 1 1\n"
        "1 1 1 1 1\n"
        "0 0 0 0 0\n"
        "0 0 0 0 0\n"
        "0 0 0 0 0",
    ),
}  # fmt: skip


def board_of(text):
    rows = [line.split() for line in text.splitlines()]
    board = new_board(len(rows))
    points = iter(on_board_points(len(rows)).tolist())
    for row in rows:
        for mark in row:
            point = next(points)
            if mark != ".":
                play(board, point, BLACK if mark == "X" else WHITE)
    return board


def marked(board, color, suicide=False):
    out = np.full(int(board.meta[META_SIZE]) ** 2, 9, np.uint8)
    pass_alive(board, color, out, suicide)
    return out


@pytest.mark.parametrize("name", SHAPES)
def test_known_shapes(name):
    text, expected = SHAPES[name]
    assert marked(board_of(text), BLACK).tolist() == [int(mark) for mark in expected.split()]


def test_chains_share_their_eyes():
    board = board_of(
        ". X . X O\n"
        "X X O X O\n"
        ". X X X O\n"
        "X X O O O\n"
        "O O O . ."
    )  # fmt: skip
    assert marked(board, BLACK).reshape(5, 5)[:3, :2].all()
    assert not marked(board, WHITE).any()


def test_suicide_makes_room_in_an_eye():
    board = board_of(
        "X X X X X X X\n"
        "X . . . X . X\n"
        "X . O . X X X\n"
        "X . . . X . .\n"
        "X X X X X . .\n"
        ". . . . . . .\n"
        ". . . . . . ."
    )  # fmt: skip
    # White may fill the eight points around its stone, take all nine off and live where they stood.
    assert marked(board, BLACK).sum() == 31
    assert not marked(board, BLACK, suicide=True).any()


def twin(board, color, suicide):
    """The definition, on sets."""
    size = int(board.meta[META_SIZE])
    points = on_board_points(size).tolist()
    around = {p: [q for q in (p - size - 1, p - 1, p + 1, p + size + 1) if q in set(points)] for p in points}

    def parts(members):
        left, found = set(members), []
        while left:
            part, front = set(), [left.pop()]
            while front:
                point = front.pop()
                part.add(point)
                near = [q for q in around[point] if q in left]
                left.difference_update(near)
                front += near
            found.append(frozenset(part))
        return found

    chains = set(parts(p for p in points if board.color[p] == color))
    regions = set(parts(p for p in points if board.color[p] != color))

    def touches(chain, region):
        return any(q in region for p in chain for q in around[p])

    def is_vital(chain, region):
        return touches(chain, region) and all(
            any(q in chain for q in around[p]) for p in region if suicide or board.color[p] == EMPTY
        )

    while True:
        kept = {c for c in chains if sum(is_vital(c, r) for r in regions) >= 2}
        left = {r for r in regions if all(c in kept for c in chains if touches(c, r))}
        if kept == chains and left == regions:
            break
        chains, regions = kept, left
    alive = np.zeros(size * size, np.uint8)
    for chain in chains:
        for part in [chain, *(r for r in regions if is_vital(chain, r))]:
            for point in part:
                alive[index_of(point, size)] = 1
    return alive


def random_board(size, seed, moves):
    rng = np.random.default_rng(seed)
    board = new_board(size)
    for _ in range(moves):
        # One colour moves more often, so that it comes to enclose regions.
        color = BLACK if rng.random() < 0.6 else WHITE
        choices = [p for p in on_board_points(size).tolist() if is_legal(board, p, color, False)]
        if choices:
            play(board, int(rng.choice(choices)), color)
    return board


@settings(max_examples=150)
@given(st.integers(2, 7), st.integers(0, 2**32), st.integers(1, 120))
def test_equals_the_slow_twin_on_random_positions(size, seed, moves):
    board = random_board(size, seed, moves)
    for side in (BLACK, WHITE):
        for suicide in (False, True):
            np.testing.assert_array_equal(marked(board, side, suicide), twin(board, side, suicide))


@pytest.mark.parametrize("suicide", [False, True])
def test_no_sequence_of_moves_takes_what_is_alive(suicide):
    tried = 0
    for seed in range(120):
        board = random_board(6, seed, 90)
        rng = np.random.default_rng(seed)
        alive = marked(board, BLACK, suicide)
        points = on_board_points(6)
        stones = [p for p in points[alive == 1] if board.color[p] == BLACK]
        tried += len(stones) > 0
        for _ in range(100):
            choices = [p for p in points.tolist() if is_legal(board, p, WHITE, suicide)]
            if choices:
                play(board, int(rng.choice(choices)), WHITE)
        assert all(board.color[p] == BLACK for p in stones)
    assert tried > 20
