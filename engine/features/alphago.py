"""AlphaGo's input planes: "alphago-48" for its policy network, "alphago-49" for its value network.

Features and plane order are those of Extended Data Table 2. A feature with values 1 to k has k planes, the last one for
k or more; a point without a value is 0 in all of them. Details that the table leaves open are RocAlphaGo's:

* *stone colour*: own (the side to move), opponent's, empty;
* *turns since* the stone on this point was played: 1 for the last move; passes are turns too. Captured stones do not
  count; setup and handicap stones have 8 or more;
* *liberties* of the chain on this point: 1 (atari) to 8;
* *capture size*: the first plane is for moves without a capture, the last for 7 stones or more;
* *self-atari size*: stones of the own chain if the move leaves it in atari, 1 to 8; a legal suicide counts too;
* *liberties after move* of the own chain, after captures: 1 to 8;
* *ladder capture* and *ladder escape* are defined in :mod:`engine.go.ladder`;
* *sensibleness*: the move is legal and does not fill an own single-point eye (:func:`engine.go.board.is_eye`).

Features of moves are set at legal moves only; moves that superko forbids are illegal. Komi, scoring and passes are not
inputs, except that *turns since* counts passes. There are no global values.

Source: AlphaGo, Extended Data Table 2.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.features.common import after_move, legality_key, named, recent_moves_key
from engine.features.symmetry import apply_symmetry, symmetry_steps
from engine.go.board import META_SIZE, is_eye
from engine.go.geometry import BLACK, EMPTY, PASS, cell_count, index_of, point_at
from engine.go.ladder import LadderScratch, ladder_planes, new_ladder_scratch
from engine.go.position import META_N_MOVES, META_TO_MOVE, is_legal_move
from engine.go.random import mix
from engine.system.arrays import allocate, fill_items
from engine.system.jit import kernel

MOST = 8
"""Number of planes of a numeric feature; the last plane means this value or more"""
STONE, TURNS_SINCE, LIBERTIES, CAPTURE, SELF_ATARI, AFTER, LADDER_CAPTURE, LADDER_ESCAPE, SENSIBLE = range(9)
"""Features that vary by point: rows of ``AlphaGoScratch.numbers``, indices of ``N_PLANES`` and ``FIRST_PLANE``"""
FEATURES = 9
N_PLANES = (3, MOST, MOST, MOST, MOST, MOST, 1, 1, 1)
FIRST_PLANE = (0, 4, 12, 20, 28, 36, 44, 45, 46)
ONES, ZEROS, BLACK_TO_MOVE = 3, 47, 48
POLICY_PLANES, VALUE_PLANES = 48, 49
_FROM_1, _FROM_0 = (*range(1, MOST), f"{MOST} or more"), (*range(MOST - 1), f"{MOST - 1} or more")
PLANE_NAMES = (
    *named("stone colour", "own", "opponent's", "empty"), "ones", *named("turns since", *_FROM_1),
    *named("liberties", *_FROM_1), *named("capture size", *_FROM_0), *named("self-atari size", *_FROM_1),
    *named("liberties after move", *_FROM_1), "ladder capture", "ladder escape", "sensibleness", "zeros",
    "player colour",
)  # fmt: skip


class AlphaGoScratch(NamedTuple):
    """Working memory for boards of one size; one per thread."""

    ladder: LadderScratch
    """working memory of the ladder search"""
    capture: Annotated[np.ndarray, "uint8[N*N]"]
    """1 at moves that capture a chain in a ladder, policy order"""
    escape: Annotated[np.ndarray, "uint8[N*N]"]
    """1 at moves by which a chain escapes from a ladder, policy order"""
    marks: Annotated[np.ndarray, "int64[L]"]
    """marks of the board's L cells for :func:`engine.features.common.after_move`"""
    stamp: Annotated[np.ndarray, "int64[1]"]
    """latest value written to ``marks`` by :func:`engine.features.common.after_move`"""
    numbers: Annotated[np.ndarray, "uint8[FEATURES, N*N]"]
    """value of each feature at each point under the symmetry; 0 = no value"""


def new_scratch(size: int) -> AlphaGoScratch:
    """Working memory for :func:`encode` on boards of one size; one per thread."""
    return allocate(AlphaGoScratch, ladder=new_ladder_scratch(size), N=size, L=int(cell_count(size)))


@kernel
def _number_moves(position, symmetry, scratch):
    """Write the values of all features at all points; *turns since* is 8 for every stone until ``_number_turns``."""
    board, color = position.board, position.meta[META_TO_MOVE]
    size, numbers = board.meta[META_SIZE], scratch.numbers
    corner, down, right = symmetry_steps(size, symmetry)
    index = 0
    for row in range(size):
        at, first = corner + row * down - right, point_at(row, 0, size)
        for point in range(first, first + size):
            at += right
            index += 1
            there = board.color[point]
            if there != EMPTY:
                numbers[STONE, at] = 1 if there == color else 2
                numbers[TURNS_SINCE, at] = MOST
                numbers[LIBERTIES, at] = min(board.libs[board.head[point]], MOST)
                continue
            numbers[STONE, at] = 3
            if not is_legal_move(position, point, color):
                continue
            captured, stones, liberties = after_move(board, point, color, MOST, scratch)
            numbers[CAPTURE, at] = min(captured + 1, MOST)
            if liberties <= 1:
                numbers[SELF_ATARI, at] = min(stones, MOST)
            numbers[AFTER, at] = liberties
            numbers[LADDER_CAPTURE, at] = scratch.capture[index - 1]
            numbers[LADDER_ESCAPE, at] = scratch.escape[index - 1]
            numbers[SENSIBLE, at] = not is_eye(board, point, color)


@kernel
def _number_turns(position, symmetry, ages):
    """Write *turns since*, 1 to 7, of the stones played in the last seven turns."""
    size, n = position.board.meta[META_SIZE], position.meta[META_N_MOVES]
    # Oldest first: where two were played on one point, the later one stands there.
    for age in range(min(MOST - 1, n), 0, -1):
        point = np.int64(position.moves[n - age])
        if point != PASS and position.board.color[point] != EMPTY:
            ages[apply_symmetry(index_of(point, size), size, symmetry)] = age


@kernel
def encode(position, symmetry, scratch, planes, globals_):
    """Write the planes of a position for the side to move.

    First, every feature's value is written for every point: on 19x19 4 us for the ladders and 5 us for the rest.
    Then each plane is filled by comparing one feature's values with a constant. That loop vectorises and writes every
    point, so no plane needs clearing: 1.4 us for all 49.

    Args:
        symmetry: 0 to 7.
        scratch: :class:`AlphaGoScratch` of this board size, the caller's own.
        planes: float32[POLICY_PLANES or VALUE_PLANES, N, N], overwritten.
        globals_: float32[0].
    """
    board, color = position.board, position.meta[META_TO_MOVE]
    area = board.meta[META_SIZE] * board.meta[META_SIZE]
    flat = planes.reshape(len(planes), area)
    fill_items(scratch.numbers.reshape(-1), 0)
    ladder_planes(board, color, scratch.ladder, scratch.capture, scratch.escape)
    _number_moves(position, symmetry, scratch)
    _number_turns(position, symmetry, scratch.numbers[TURNS_SINCE])
    for feature in range(FEATURES):
        numbers = scratch.numbers[feature]
        for k in range(N_PLANES[feature]):
            plane, wanted = flat[FIRST_PLANE[feature] + k], np.uint8(k + 1)
            for i in range(area):
                plane[i] = numbers[i] == wanted
    fill_items(flat[ONES], 1.0)
    fill_items(flat[ZEROS], 0.0)
    if len(planes) == VALUE_PLANES:
        fill_items(flat[BLACK_TO_MOVE], 1.0 if color == BLACK else 0.0)


@kernel
def key(position, scratch):
    """uint64 hash of everything :func:`encode` reads: stones, legal moves, the last 7 moves, side to move."""
    return mix(legality_key(position) ^ recent_moves_key(position, MOST - 1))
