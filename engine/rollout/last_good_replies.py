"""Last good replies: replies from the search tree that rollouts play again, in AlphaGo's generalised form.

At every step of a descent where the tree follows its most probable move, the move is stored under the 3x3 pattern
around the previous move. A rollout that meets the same pattern plays the same reply with high probability, if the 3x3
pattern around the reply is unchanged too.

The paper keys on "colour, liberty and stone counts"; here the key is the points of both moves and the 3x3 codes around
them (colours and liberties). The probability, which the paper does not give, is ``SearchOptions.reply_probability``.

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
    """A hash table of replies. A slot holds one entry; a newer entry replaces it, whatever its key."""

    key: Annotated[np.ndarray, "int64[ENTRIES]"]
    """by slot: last move, 3x3 code around the last move, and side to move; 0 = free"""
    move: Annotated[np.ndarray, "int16[ENTRIES]"]
    """by slot: the reply, a point"""
    code: Annotated[np.ndarray, "int32[ENTRIES]"]
    """by slot: the 3x3 code around the reply when it was stored"""


def new_last_good_replies() -> LastGoodReplies:
    """An empty table."""
    return allocate(LastGoodReplies)


@inlined_kernel
def _key(cell, stride, last, color):
    """Key of a last move, the 3x3 code around it and the side to move; never 0."""
    return (square_code(cell, last, stride) << (POINT_BITS + 1)) | (last << 1) | (color - BLACK)


@inlined_kernel
def _slot(key):
    """Index of the slot to which a key is hashed."""
    return np.int64((np.uint64(key) * GOLDEN) >> np.uint64(49))


@inlined_kernel
def remember(replies, board, cell, last, color, move):
    """Store a reply to the last move, unless either of the two is a pass.

    Args:
        replies: :class:`LastGoodReplies`, changed.
        cell: uint8[L], the state of every cell.
        last: the last move, a point or PASS.
        color: BLACK or WHITE, colour of the reply.
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
    """The stored reply to the last move; PASS if there is none, the 3x3 code around it has changed, or ko forbids it.

    Args:
        replies, cell: as for :func:`remember`.
        last: the last move, not PASS.
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
