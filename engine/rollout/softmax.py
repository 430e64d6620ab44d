"""The pattern softmax without incremental updates: sensible moves of a position, their features and probabilities.

It computes the tree policy for each new node and is the definition of both policies in training; the fast form of the
rollout policy (:mod:`engine.rollout.policy`) gives the same probabilities. A move's score is the sum of the weights of
its features, its probability the softmax over the scores of all sensible moves.

Besides the features of the rollout policy, the tree policy has self-atari, the distances to the last two moves, and the
diamond around the move.

Source: AlphaGo, Extended Data Table 4; Methods, "Rollout policy" and "Searching with policy and value networks".
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_N_EMPTY, META_STRIDE
from engine.go.geometry import EMPTY, PASS, cell_count
from engine.rollout.patterns import (
    MOST_NAKADE,
    MOST_SAVERS,
    beyond,
    context_of,
    diamond_code,
    for_mover,
    is_rescue,
    list_savers,
    nakade_pattern,
    square_code,
    step_to,
)
from engine.rollout.vocabulary import (
    CORNER_NEIGHBOUR,
    DIAMOND_PLACE,
    DISTANCES,
    EDGE_NEIGHBOUR,
    FIRST_CELL,
    LAST_DISTANCE,
    N_CELLS,
    RESPONSE,
    SAVE,
    SELF_ATARI,
    find,
)
from engine.system.arrays import allocate
from engine.system.jit import inlined_kernel, kernel

MOST_FEATURES = 12
LAST_MOVE, LAST_BEFORE, LAST_CAPTURED = range(3)
"""Indices into ``Candidates.last``"""


class Candidates(NamedTuple):
    """The sensible moves of one position; M = number of points of the board, L = ``cell_count(size)``."""

    cell: Annotated[np.ndarray, "uint8[L]"]
    """state of every cell; filled in by the caller"""
    last: Annotated[np.ndarray, "int64[3]"]
    """by ``LAST_...``, filled in by the caller: the last move and the one before (PASS = none), and the number of
    stones that the last move captured, which must be the last of ``board.empty``; 0 if they are not"""
    point: Annotated[np.ndarray, "int64[M]"]
    """the moves, without the pass; the first N are valid, N returned by :func:`consider`"""
    place: Annotated[np.ndarray, "int16[L]"]
    """by empty point: index of the move there, -1 = not sensible"""
    feature: Annotated[np.ndarray, "int32[M, MOST_FEATURES]"]
    """features of each move, as indices of the vector of weights"""
    n_features: Annotated[np.ndarray, "int32[M]"]
    """number of valid features of a move"""
    probability: Annotated[np.ndarray, "float64[M]"]
    """probability of each move"""
    saver: Annotated[np.ndarray, "int16[MOST_SAVERS]"]
    """points that save a chain by a capture (:func:`engine.rollout.patterns.list_savers`)"""


def new_candidates(size: int) -> Candidates:
    """Memory for boards of one size."""
    return allocate(Candidates, M=size * size, L=int(cell_count(size)), MOST_SAVERS=MOST_SAVERS)


@inlined_kernel
def manhattan(one, other, stride):
    """Manhattan distance of two points."""
    return abs(one // stride - other // stride) + abs(one % stride - other % stride)


@kernel
def is_self_atari(board, point, color):
    """Whether a legal move leaves its own chain with a single liberty.

    Of captured points only those beside the new stone count as liberties.
    """
    stride, colors, head, libs = board.meta[META_STRIDE], board.color, board.head, board.libs
    first = 0
    for near in (point - stride, point - 1, point + 1, point + stride):
        there = colors[near]
        found = 0
        if there == EMPTY:
            found = near
        elif there == color:
            if libs[head[near]] > 2:
                return False
            if libs[head[near]] == 2:
                found = board.lib_sum[head[near]] - point
        elif there == 3 - color and libs[head[near]] == 1:
            found = near
        if found != 0:
            if first != 0 and found != first:
                return False
            first = found
    return True


@inlined_kernel
def _add(moves, i, feature):
    """Add a feature to move ``i``; -1 = none."""
    if feature >= 0:
        moves.feature[i, moves.n_features[i]] = feature
        moves.n_features[i] += 1


@kernel
def consider(moves, board, numbers, color):
    """List the sensible moves of a colour with their features; returns the number of moves.

    Args:
        moves: :class:`Candidates` with ``cell`` and ``last`` filled; the rest is overwritten.
        numbers: :class:`engine.rollout.vocabulary.Numbers`.
        color: BLACK or WHITE, the side to move.
    """
    cell = moves.cell
    stride, last = board.meta[META_STRIDE], moves.last[LAST_MOVE]
    count = 0
    for i in range(board.meta[META_N_EMPTY]):
        point = np.int64(board.empty[i])
        moves.place[point] = -1
        code = for_mover(square_code(cell, point, stride), color)
        square = numbers.square[code]
        if square == 0 or (point == board.meta[META_KO_POINT] and color == board.meta[META_KO_COLOR]):
            continue
        moves.point[count] = point
        moves.place[point] = count
        moves.n_features[count] = 0
        for j in range(3):
            _add(moves, count, numbers.square_places[square, j])
        if numbers.is_tree:
            _consider_for_tree(moves, board, numbers, count, point, color)
        count += 1
    if last != PASS:
        _consider_responses(moves, board, numbers, color)
    return count


@inlined_kernel
def _consider_for_tree(moves, board, numbers, i, point, color):
    """Add to move ``i`` the features that only the tree policy has."""
    code = for_mover(diamond_code(moves.cell, point, board.meta[META_STRIDE]), color)
    _add(moves, i, numbers.diamonds.values[find(numbers.diamonds.keys, code), DIAMOND_PLACE])
    if is_self_atari(board, point, color):
        _add(moves, i, numbers.single + SELF_ATARI)
    for back in range(2):
        if moves.last[back] != PASS:
            distance = min(manhattan(point, moves.last[back], board.meta[META_STRIDE]), DISTANCES - 1)
            _add(moves, i, numbers.single + LAST_DISTANCE + back * DISTANCES + distance)


@kernel
def _consider_responses(moves, board, numbers, color):
    """Add the features of responses to the last move, which both policies have."""
    cell, last, captured = moves.cell, moves.last[LAST_MOVE], moves.last[LAST_CAPTURED]
    stride = board.meta[META_STRIDE]
    responses = numbers.contexts.values[find(numbers.contexts.keys, context_of(cell, board, last, color))]
    for i in range(N_CELLS):
        step = step_to(i, stride)
        if i >= 8 and beyond(cell, last, step // 2) != EMPTY:
            continue
        place = moves.place[last + step] if cell[last + step] == EMPTY else -1
        if place < 0:
            continue
        if i < 8:
            corner = i == 0 or i == 2 or i == 5 or i == 7
            _add(moves, place, numbers.single + (CORNER_NEIGHBOUR if corner else EDGE_NEIGHBOUR))
        if responses[FIRST_CELL + i] >= 0:
            _add(moves, place, numbers.single + RESPONSE)
            _add(moves, place, responses[FIRST_CELL + i])
    if 0 < captured <= MOST_NAKADE:
        for i in range(board.meta[META_N_EMPTY] - captured, board.meta[META_N_EMPTY]):
            point = np.int64(board.empty[i])
            if moves.place[point] >= 0:
                _add(moves, moves.place[point], numbers.nakade[nakade_pattern(board, point, captured)])
    for i in range(list_savers(board, last, color, moves.saver)):
        point = np.int64(moves.saver[i])
        if moves.place[point] >= 0 and not is_rescue(for_mover(square_code(cell, point, stride), color)):
            _add(moves, moves.place[point], numbers.single + SAVE)


@kernel
def weigh(moves, count, theta):
    """Compute the probabilities of the listed moves; returns the index of the largest.

    Args:
        count: number of listed moves, at least 1.
        theta: float32[weights].
    """
    best, top = 0, -math.inf
    for i in range(count):
        score = 0.0
        for j in range(moves.n_features[i]):
            score += theta[moves.feature[i, j]]
        moves.probability[i] = score
        if score > top:
            best, top = i, score
    total = 0.0
    for i in range(count):
        moves.probability[i] = math.exp(moves.probability[i] - top)
        total += moves.probability[i]
    for i in range(count):
        moves.probability[i] /= total
    return best
