"""Random games: uniform, legal, ending by themselves, and repeatable."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.go.board import META_KO_POINT, META_N_EMPTY, copy_board, is_eye, is_legal, new_board, play
from engine.go.diagram import parse
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, from_vertex, on_board_points
from engine.go.random import seed_state
from engine.go.scoring import area_owner
from engine.rollout.run import (
    area_lead_black,
    is_sensible,
    owner_at_end,
    play_out,
    random_move,
)
from tests.go.positions import TANGLED


def candidates(board, color):
    """The points a random player may choose, by the board's own rules."""
    empty = [int(p) for p in board.empty[: board.meta[META_N_EMPTY]]]
    return sorted(p for p in empty if is_legal(board, p, color, False) and not is_eye(board, p, color))


@pytest.mark.parametrize("color", [BLACK, WHITE])
@pytest.mark.parametrize(
    "text",
    [
        ". . .\n. . .\n. . .",
        TANGLED,
        ". X .\nX . X\n. X .",
        ". X O .\nX O . O\n. X O .\n. . . .",
    ],
)
def test_moves_are_uniform_over_the_sensible_ones(text, color):
    board, state = parse(text).board, seed_state(1, color)
    allowed = candidates(board, color)
    draws = 400 * max(1, len(allowed))
    drawn = [int(random_move(board, color, state)) for _ in range(draws)]
    assert set(drawn) == set(allowed or [PASS])
    counts = np.array([drawn.count(p) for p in allowed or [PASS]])
    expected = draws / len(counts)
    freedom = len(counts) - 1
    assert ((counts - expected) ** 2 / expected).sum() <= freedom + 4 * np.sqrt(2 * freedom)


def test_ko_is_not_retaken_at_once():
    board, _ = parse(". X O .\nX O . O\n. X O .\n. . . .")
    play(board, from_vertex("C3", 4), BLACK)
    ko = int(board.meta[META_KO_POINT])
    assert ko == from_vertex("B3", 4)
    state = seed_state(2, 0)
    assert all(random_move(board, WHITE, state) != ko for _ in range(200))


@settings(max_examples=60)
@given(
    size=st.integers(2, 7),
    moves=st.lists(st.tuples(st.integers(0, 48), st.sampled_from((BLACK, WHITE))), min_size=5, max_size=120),
)
def test_sensible_means_legal_and_no_own_eye(size, moves):
    board, state = new_board(size), seed_state(4, size)
    points = on_board_points(size).tolist()
    for index, color in moves:
        point = points[index % len(points)]
        if is_legal(board, point, color, False):
            play(board, point, color)
    for color in (BLACK, WHITE):
        allowed = candidates(board, color)
        assert [p for p in points if board.color[p] == EMPTY and is_sensible(board, p, color)] == allowed
        random_move(board, color, state)
        # Only the order of the empty points may change, and their slots follow.
        empty = board.empty[: board.meta[META_N_EMPTY]]
        assert sorted(empty) == [p for p in points if board.color[p] == EMPTY]
        assert (board.slot[empty] == np.arange(len(empty))).all()


@pytest.mark.parametrize("size", [2, 5, 9, 19])
def test_games_end_when_neither_side_has_a_move(size):
    for seed in range(20):
        board = new_board(size)
        moves = play_out(board, BLACK, seed_state(seed, 0), 100 * size * size)
        assert size * size <= moves + board.meta[META_N_EMPTY] or size < 4
        assert moves < 100 * size * size
        last = BLACK if moves % 2 else WHITE
        assert candidates(board, last) == []
        owner = np.empty(size * size, np.int8)
        area_owner(board, owner)
        points = on_board_points(size).tolist()
        assert [owner_at_end(board, p) for p in points] == owner.tolist()
        assert area_lead_black(board) == owner.sum()


def test_games_are_as_long_as_elsewhere():
    lengths = [play_out(new_board(19), BLACK, seed_state(seed, 1), 3 * 361) for seed in range(100)]
    assert 440 < np.mean(lengths) < 470
    assert max(lengths) < 3 * 361


def test_eyes_are_never_filled():
    board, marks = parse("""
        a X b X O . .
        X X X X O . .
        O O O O O . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
    """)
    for seed in range(50):
        end = new_board(7)
        copy_board(end, board)
        play_out(end, WHITE, seed_state(seed, 0), 1000)
        assert end.color[marks["a"]] == end.color[marks["b"]] == EMPTY
        assert end.color[from_vertex("D6", 7)] == BLACK


def test_the_limit_stops_a_game():
    board = new_board(9)
    assert play_out(board, BLACK, seed_state(0, 0), 7) == 7
    assert board.meta[META_N_EMPTY] == 81 - 7
    assert [owner_at_end(board, p) for p in on_board_points(9).tolist() if board.color[p] == EMPTY].count(0) > 60


def test_two_passes_end_a_finished_game_at_once():
    board, _ = parse(". X .\nX X X\n. X .")
    assert play_out(board, WHITE, seed_state(0, 0), 100) == 2
    assert area_lead_black(board) == 9


def test_a_seed_repeats_a_game():
    ends = []
    for seed in (6, 6, 7):
        board = new_board(13)
        play_out(board, BLACK, seed_state(seed, 0), 3 * 169)
        ends.append(int(board.hash[0]))
    assert ends[0] == ends[1] != ends[2]
