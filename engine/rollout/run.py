"""Uniformly random rollouts, and the owners of points at their ends.

A player moves uniformly on the legal points (superko not checked) that are not own single-point eyes, and passes if
there is none. Start at :func:`play_out`.
"""

import numpy as np

from engine.go.board import (
    META_KO_COLOR,
    META_KO_POINT,
    META_N_EMPTY,
    META_SIZE,
    META_STRIDE,
    play,
)
from engine.go.geometry import BORDER, EMPTY, PASS, point_at
from engine.go.random import next_below
from engine.go.scoring import owner_sign
from engine.system.jit import inlined_kernel, kernel


@inlined_kernel
def is_sensible(board, point, color):
    """Whether a move on an empty point is legal and does not fill an own single-point eye.

    Equals ``is_legal`` without suicide, and not ``is_eye``. It is called twice a move, and the result is hard for
    processors to predict, so neighbours are counted without branches, in four bits a colour.
    """
    cells, stride = board.color, board.meta[META_STRIDE]
    up, left, right, down = point - stride, point - 1, point + 1, point + stride
    at_up, at_left, at_right, at_down = cells[up], cells[left], cells[right], cells[down]
    if point == board.meta[META_KO_POINT] and color == board.meta[META_KO_COLOR]:
        return False
    around = (1 << 4 * at_up) + (1 << 4 * at_left) + (1 << 4 * at_right) + (1 << 4 * at_down)
    if around & 15:
        return True
    enemy = 3 - color
    if (around >> 4 * enemy) & 15 == 0:
        diagonals = 1 << 4 * cells[up - 1]
        diagonals += 1 << 4 * cells[up + 1]
        diagonals += 1 << 4 * cells[down - 1]
        diagonals += 1 << 4 * cells[down + 1]
        if ((diagonals >> 4 * enemy) & 15) + (diagonals >> 4 * BORDER > 0) < 2:
            return False
    head, libs = board.head, board.libs
    free = (at_up != BORDER) & ((at_up == color) == (libs[head[up]] > 1))
    free |= (at_left != BORDER) & ((at_left == color) == (libs[head[left]] > 1))
    free |= (at_right != BORDER) & ((at_right == color) == (libs[head[right]] > 1))
    free |= (at_down != BORDER) & ((at_down == color) == (libs[head[down]] > 1))
    return free


@inlined_kernel
def random_move(board, color, state):
    """A uniformly random sensible point (:func:`is_sensible`); PASS if there is none.

    Rejected points are moved behind the untried ones, so none is drawn twice and every draw is uniform over the rest.
    This only permutes ``board.empty``, whose order has no meaning.
    """
    empty, slot = board.empty, board.slot
    untried = board.meta[META_N_EMPTY]
    while untried > 0:
        drawn = next_below(state, untried)
        point = np.int64(empty[drawn])
        if is_sensible(board, point, color):
            return point
        untried -= 1
        last = empty[untried]
        empty[drawn], empty[untried] = last, point
        slot[last], slot[point] = drawn, untried
    return PASS


@kernel
def play_out(board, color, state, move_limit):
    """Play random moves until two consecutive passes or the move limit.

    Args:
        board: changed in place.
        color: colour that moves first.
        state: uint64[4], the caller's random state.
        move_limit: maximum number of moves, passes included, since repetition could make a rollout endless.
    Returns:
        int: moves played, passes included.
    """
    passes = 0
    for move in range(move_limit):
        point = random_move(board, color, state)
        play(board, point, color)
        passes = passes + 1 if point == PASS else 0
        if passes == 2:
            return move + 1
        color = 3 - color
    return move_limit


@kernel
def owner_at_end(board, point):
    """Owner of a point by area after :func:`play_out`: 1 = Black, -1 = White, 0 = neither.

    After two passes no two empty points are neighbours, since each would be a legal move and not an eye. So the
    neighbours of an empty point give the same result as Tromp and Taylor's flood fill. After a rollout that reached its
    move limit, empty points with empty neighbours count for neither side.
    """
    if board.color[point] != EMPTY:
        return owner_sign(board.color[point])
    stride = board.meta[META_STRIDE]
    seen = 0
    for near in (point - stride, point - 1, point + 1, point + stride):
        there = board.color[near]
        if there == EMPTY:
            return 0
        if there != BORDER:
            seen |= there
    return owner_sign(seen)


@kernel
def area_lead_black(board):
    """Black's area minus White's after :func:`play_out`."""
    size = board.meta[META_SIZE]
    lead = 0
    for row in range(size):
        for column in range(size):
            lead += owner_at_end(board, point_at(row, column, size))
    return lead
