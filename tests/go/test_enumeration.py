"""Legal positions counted exhaustively: 57 on 2x2, 12,675 on 3x3, 24,318,165 on 4x4 (Tromp, OEIS A094777)."""

import itertools

import numpy as np
import pytest

from bench.reliability.counts import KNOWN, count
from bench.reliability.rules_twin import chain_and_liberties
from engine.go.board import META_SIZE, Board, copy_board, is_legal, new_board, play
from engine.go.geometry import BLACK, EMPTY, WHITE, point_of
from engine.system.jit import kernel


@kernel
def code_of(board):
    """The position as a number: one base-3 digit a point."""
    size, code = board.meta[META_SIZE], 0
    for index in range(size * size):
        code = code * 3 + board.color[point_of(index, size)]
    return code


@kernel
def set_up(board, blank, code):
    """Put the stones of a legal position on the board, in no game's order; returns stones captured on the way."""
    copy_board(board, blank)
    size, captured = board.meta[META_SIZE], 0
    for index in range(size * size - 1, -1, -1):
        color = code % 3
        code //= 3
        if color != EMPTY:
            captured += play(board, point_of(index, size), color)
    return captured


@kernel
def explore(blank, board, child, found, queue):
    """Find every position that legal moves of either colour, suicide included, reach from the empty board.

    Args:
        blank, board, child: boards of one size, the first empty.
        found: uint8[3 ** (size * size)] of zeros.
        queue: int64, room for every position.
    Returns:
        int: positions found; -1 if setting one up captured something.
    """
    size = board.meta[META_SIZE]
    found[0] = 1
    queue[0] = 0
    read, written = 0, 1
    while read < written:
        if set_up(board, blank, queue[read]) > 0:
            return -1
        read += 1
        for index in range(size * size):
            for color in (BLACK, WHITE):
                point = point_of(index, size)
                if is_legal(board, point, color, True):
                    copy_board(child, board)
                    play(child, point, color)
                    code = code_of(child)
                    if found[code] == 0:
                        found[code] = 1
                        queue[written] = code
                        written += 1
    return written


def is_legal_by_twin(colors: tuple[int, ...], size: int) -> bool:
    stones = {divmod(i, size): color for i, color in enumerate(colors) if color}
    return all(chain_and_liberties(stones, size, cell)[1] for cell in stones)


@pytest.mark.parametrize("size", [2, 3])
def test_legal_moves_reach_exactly_the_legal_positions(size):
    found = np.zeros(3 ** (size * size), np.uint8)
    boards: list[Board] = [new_board(size) for _ in range(3)]
    assert explore(*boards, found, np.zeros(KNOWN[size], np.int64)) == KNOWN[size]
    colourings = itertools.product((EMPTY, BLACK, WHITE), repeat=size * size)
    assert found.tolist() == [is_legal_by_twin(colors, size) for colors in colourings]


@pytest.mark.parametrize("size", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_boards_with_liberties_are_as_many_as_known_and_two_readings_agree(size):
    assert count(new_board(size), new_board(size)) == (KNOWN[size], 0)
