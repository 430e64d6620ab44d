"""Last good replies: moves remembered from the search tree for rollouts, as AlphaGo generalised them.

At every step of a descent where the tree follows its most probable move, the move is entered under what surrounds the
move before it. A rollout that comes upon the same surroundings plays the same reply with high probability, if what
surrounds that reply is unchanged as well.

The paper keys on "colour, liberty and stone counts"; here on the 3x3 codes around both moves (colours and liberties)
and on their points. The paper does not say how high the probability is: ``SearchOptions.reply_probability``.

Source: AlphaGo, Methods, "Rollout policy" (the last paragraph); Baier and Drake, "The power of forgetting" (2010).
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_STRIDE
from engine.go.geometry import BLACK, EMPTY, PASS
from engine.go.random import GOLDEN
from engine.rollout.patterns import square_code
from engine.system.arrays import allocate
from engine.system.jit import inlined_kernel

ENTRIES = 1 << 15
POINT_BITS = 10


class LastGoodReplies(NamedTuple):
    """A table of replies; one entry a slot, the newest stays."""

    key: Annotated[np.ndarray, "int64[ENTRIES]"]
    """last move, its 3x3 code and the side to move; 0 = free"""
    move: Annotated[np.ndarray, "int16[ENTRIES]"]
    """the reply, a point"""
    code: Annotated[np.ndarray, "int32[ENTRIES]"]
    """the 3x3 code around the reply"""


def new_last_good_replies() -> LastGoodReplies:
    """An empty table."""
    return allocate(LastGoodReplies)


@inlined_kernel
def _key(cell, stride, last, color):
    """Name of a situation: never 0."""
    return (square_code(cell, last, stride) << (POINT_BITS + 1)) | (last << 1) | (color - BLACK)


@inlined_kernel
def _slot(key):
    """Where a situation is kept."""
    return np.int64((np.uint64(key) * GOLDEN) >> np.uint64(49))


@inlined_kernel
def remember(replies, board, cell, last, color, move):
    """Enter a colour's reply to the last move; nothing is entered where either of them is a pass.

    Args:
        replies: :class:`LastGoodReplies`, changed.
        cell: uint8[L], the state of every cell.
        last: the last move, a point or PASS.
        color: BLACK or WHITE, whose reply it is.
        move: the reply, a point or PASS.
    """
    if last == PASS or move == PASS:
        return
    stride = board.meta[META_STRIDE]
    key = _key(cell, stride, last, color)
    slot = _slot(key)
    replies.key[slot] = key
    replies.move[slot] = move
    replies.code[slot] = square_code(cell, move, stride)


@inlined_kernel
def recall(replies, board, cell, last, color):
    """The reply known to the last move; PASS if there is none, if the points around it changed, or if a ko forbids it.

    Args:
        replies, cell: as for :func:`remember`.
        last: the last move, no pass.
        color: BLACK or WHITE, the side to move.
    """
    stride = board.meta[META_STRIDE]
    key = _key(cell, stride, last, color)
    slot = _slot(key)
    if replies.key[slot] != key:
        return PASS
    move = np.int64(replies.move[slot])
    if cell[move] != EMPTY or square_code(cell, move, stride) != replies.code[slot]:
        return PASS
    if move == board.meta[META_KO_POINT] and color == board.meta[META_KO_COLOR]:
        return PASS
    return move
