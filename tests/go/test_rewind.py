"""Earlier boards, taken back from later ones, against the boards as they were."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_N_EMPTY, copy_board, new_board, play
from engine.go.geometry import EMPTY, WHITE, from_vertex, on_board_points
from engine.go.position import META_TO_MOVE, PAST_BOARDS, legal_moves, new_position, play_move
from engine.go.rewind import past_board
from engine.go.rules import RULE_SUICIDE


def kept(board):
    """A copy of a board."""
    copy = new_board(int(board.meta[0]))
    copy_board(copy, board)
    return copy


def chains(board):
    """What the board knows of every chain: its stones, from both of their lists, liberties and their sum."""
    found = {}
    for point in on_board_points(int(board.meta[0])):
        if board.color[point] != EMPTY:
            found.setdefault(int(board.head[point]), []).append(int(point))
    for head, stones in found.items():
        circle, stone = [], head
        while not circle or stone != head:
            circle.append(stone)
            stone = int(board.next[stone])
        assert sorted(circle) == stones and board.stones[head] == len(stones)
    return {(tuple(stones), int(board.libs[head]), int(board.lib_sum[head])) for head, stones in found.items()}


def assert_same(board, wanted):
    np.testing.assert_array_equal(board.color, wanted.color)
    assert chains(board) == chains(wanted)
    assert board.hash[0] == wanted.hash[0]
    assert board.meta[META_KO_POINT] == wanted.meta[META_KO_POINT]
    if wanted.meta[META_KO_POINT]:
        assert board.meta[META_KO_COLOR] == wanted.meta[META_KO_COLOR]
    count = int(wanted.meta[META_N_EMPTY])
    assert board.meta[META_N_EMPTY] == count
    assert set(board.empty[:count].tolist()) == set(np.flatnonzero(board.color == EMPTY).tolist())
    assert board.slot[board.empty[:count]].tolist() == list(range(count))


@settings(max_examples=60)
@given(st.sampled_from([2, 3, 4, 5, 7, 9]), st.integers(0, 2**32), st.booleans())
def test_boards_are_taken_back_as_they_were(size, seed, suicide):
    rng = np.random.default_rng(seed)
    position = new_position(size)
    position.rules[RULE_SUICIDE] = suicide
    points, marks, boards = on_board_points(size), np.zeros(size * size + 1, np.uint8), [kept(position.board)]
    for _ in range(rng.integers(1, 3 * size * size)):
        color = int(position.meta[META_TO_MOVE])
        legal_moves(position, color, marks)
        choices = [0, *points[marks[:-1] == 1]]
        play_move(position, int(choices[rng.integers(len(choices))]), color)
        boards.append(kept(position.board))
    changed = np.zeros(len(position.board.color), np.int16)
    for ages in (range(PAST_BOARDS - 1), (2,), (1, 5)):
        board = kept(position.board)
        for age in ages:
            if age < len(boards):
                past_board(position, age, board, changed)
                assert_same(board, boards[-1 - age])
    play(board, 0, WHITE)
    assert_same(position.board, boards[-1])


def test_a_ko_is_found_again():
    position = new_position(5)
    for vertex in ("B3", "C3", "A2", "D2", "B1", "C1", "C2", "B2", "E5"):
        play_move(position, from_vertex(vertex, 5), int(position.meta[META_TO_MOVE]))
    board = kept(position.board)
    past_board(position, 1, board, np.zeros(len(board.color), np.int16))
    assert board.meta[META_KO_POINT] == from_vertex("C2", 5)
