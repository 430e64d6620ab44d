"""What the keys of encoders are made of: 64-bit words that cover what an encoder reads of a position."""

import numpy as np

from engine.go.board import META_CAPTURED_BLACK, META_CAPTURED_WHITE, META_KO_COLOR, META_KO_POINT
from engine.go.geometry import EMPTY, ZOBRIST
from engine.go.position import META_N_MOVES, META_SEEN_FROM, META_TO_MOVE
from engine.go.rules import KO_SIMPLE, RULE_KO, RULE_SUICIDE
from engine.go.splitmix import mix
from engine.system.jit import kernel


@kernel
def legality_key(position):
    """uint64 that covers stones, side to move and all that tells which moves are legal.

    Earlier positions count under superko only, and there only once one can recur: see
    :func:`engine.go.position.repeats`.
    """
    board, meta, rules = position.board, position.meta, position.rules
    word = mix(board.hash[0] ^ ZOBRIST[EMPTY, meta[META_TO_MOVE]])
    word = mix(word ^ np.uint64(rules[RULE_KO] * 2 + rules[RULE_SUICIDE]))
    if board.meta[META_KO_POINT] != 0:
        word = mix(word ^ np.uint64(board.meta[META_KO_POINT] * 4 + board.meta[META_KO_COLOR]))
    taken = board.meta[META_CAPTURED_BLACK] + board.meta[META_CAPTURED_WHITE]
    if rules[RULE_KO] != KO_SIMPLE and (taken > 0 or rules[RULE_SUICIDE] == 1):
        seen = np.uint64(0)
        for n in range(meta[META_SEEN_FROM], meta[META_N_MOVES] + 1):
            seen += mix(position.hashes[n])
        word = mix(word ^ seen)
    return word


@kernel
def recent_moves_key(position, count):
    """uint64 that covers the last ``count`` moves, passes included, and their number."""
    n = position.meta[META_N_MOVES]
    word = np.uint64(0)
    for age in range(min(count, n)):
        word = mix(word ^ np.uint64(position.moves[n - 1 - age] + 1))
    return word
