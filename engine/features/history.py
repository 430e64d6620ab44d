"""Input planes of the last eight boards and the side to move, without tactical features.

AlphaGo Zero's, "zero-17", are in the order of the paper, s = [X(t), Y(t), X(t-1), Y(t-1), ..., X(t-7), Y(t-7), C]:
own stones, then the opponent's, on the current board and on the boards after each of the seven moves before (passes are
moves), then a plane of ones if Black is to move, else zeros. "Own" is the current side to move, on all boards. Boards
before the first move are empty, even if the game began with a setup or handicap stones.

Leela Zero's, "leela-18", are the same boards in the order X(t), ..., X(t-7), Y(t), ..., Y(t-7), then ones if Black is
to move, then ones if White is: without the last plane, zero padding would mark the board's edge for Black alone.

Sources: AlphaGo Zero, Methods, "Neural network architecture"; Leela Zero's README, "Weights format".
"""

from typing import NamedTuple

import numpy as np

from engine.features.common import named
from engine.features.symmetry import symmetry_steps
from engine.go.board import META_SIZE
from engine.go.geometry import BLACK, EMPTY, ZOBRIST, point_at
from engine.go.position import META_N_MOVES, META_TO_MOVE, PAST_BOARDS
from engine.go.random import mix
from engine.system.arrays import fill_items
from engine.system.jit import kernel

BLACK_TO_MOVE = 2 * PAST_BOARDS
PLANES = BLACK_TO_MOVE + 1
LEELA_PLANES = BLACK_TO_MOVE + 2
_OWN, _OPPONENT = (
    named(who, "now", "1 move ago", *(f"{age} moves ago" for age in range(2, PAST_BOARDS)))
    for who in ("own stones", "opponent's stones")
)
PLANE_NAMES = (*(name for pair in zip(_OWN, _OPPONENT, strict=True) for name in pair), "Black to move")
LEELA_PLANE_NAMES = (*_OWN, *_OPPONENT, "Black to move", "White to move")


class HistoryScratch(NamedTuple):
    """Scratch of this module's encoders: it holds no working memory, and its type selects :func:`encode`."""

    unused: np.ndarray = np.zeros(1)
    """float64[1], never read"""


@kernel
def board_planes(position, age, symmetry, own, opponent):
    """Write the stones of the board ``age`` moves ago, from the view of the current side to move.

    Args:
        age: int, 0 to 7; boards before the first move are empty.
        symmetry: int, 0 to 7.
        own, opponent: float32[N*N], overwritten.
    """
    size, color = position.board.meta[META_SIZE], position.meta[META_TO_MOVE]
    n = position.meta[META_N_MOVES]
    if age > n:
        fill_items(own, 0.0)
        fill_items(opponent, 0.0)
        return
    stones = position.past[(n - age) % PAST_BOARDS]
    corner, down, right = symmetry_steps(size, symmetry)
    for row in range(size):
        at, first = corner + row * down, point_at(row, 0, size)
        for column in range(size):
            there = stones[first + column]
            own[at] = there == color
            opponent[at] = there == 3 - color
            at += right


@kernel
def encode(position, symmetry, scratch, planes, globals_):
    """Write AlphaGo Zero's or Leela Zero's planes of a position for the side to move.

    Args:
        symmetry: 0 to 7.
        scratch: :class:`HistoryScratch`.
        planes: float32[PLANES, N, N] for AlphaGo Zero's, float32[LEELA_PLANES, N, N] for Leela Zero's; overwritten.
        globals_: float32[0].
    """
    flat = planes.reshape(len(planes), planes.shape[1] * planes.shape[2])
    is_leela = len(planes) == LEELA_PLANES
    for age in range(PAST_BOARDS):
        own, opponent = (age, PAST_BOARDS + age) if is_leela else (2 * age, 2 * age + 1)
        board_planes(position, age, symmetry, flat[own], flat[opponent])
    flat[BLACK_TO_MOVE].fill(position.meta[META_TO_MOVE] == BLACK)
    if is_leela:
        flat[BLACK_TO_MOVE + 1].fill(position.meta[META_TO_MOVE] != BLACK)


@kernel
def key(position, scratch):
    """uint64 hash of everything these encoders read: the last eight boards and the side to move."""
    n = position.meta[META_N_MOVES]
    word = ZOBRIST[EMPTY, position.meta[META_TO_MOVE]]
    for age in range(min(PAST_BOARDS, n + 1)):
        word = mix(word ^ position.hashes[n - age])
    return word
