"""Ladders: chains that are captured, or get away, by atari after atari.

AlphaGo's ladder planes leave the definition open, so this is ours. The *hunter* wants to capture the *prey*, a chain
of the *runner*. Whenever the hunter is to move, a prey of one liberty is captured, a prey of three or more has
escaped, and a prey of two must be put into atari on either of its liberties. The runner, always in atari, may extend
at the prey's last liberty or capture any hunter's chain in atari that touches the prey. All of these are tried: a
ladder *works* if the hunter captures whatever the runner tries. So ladder makers and breakers, second escape lines,
snapbacks and stones that are captured on the way all count; a net, which needs a quiet move, does not.

Ko: the runner is taken to win every ko, so the hunter never captures into one, neither on the way nor at the end. A
ladder that works thus needs no ko threat. Suicide is never played.

* A *ladder capture* is a legal move on a liberty of an opponent's chain of exactly two liberties, after which the
  ladder works.
* A *ladder escape* is a legal move for an own chain in atari, on its liberty or capturing a chain that touches it,
  after which no ladder works against the chain.

A read stops unfinished after ``READ_NODES`` moves, and what is unfinished is neither capture nor escape.

Start at :func:`ladder_planes`, then :func:`_read`; the search itself is in :mod:`engine.go.ladder_search`.
"""

import numpy as np

from engine.go.arrays import fill_items
from engine.go.board import META_SIZE, META_STRIDE, copy_board, is_legal
from engine.go.geometry import PASS, index_of
from engine.go.ladder_search import CAPTURED, ESCAPED, push_ataris, push_defences, room, search_ladder
from engine.system.jit import inlined_kernel, kernel

READ_NODES = 400
"""Most moves tried for one read; a ladder across 19x19 takes 58."""
POSITION_NODES = 2000
"""Most moves tried for all reads of one position."""


@inlined_kernel
def _read(board, scratch, point, prey, color):
    """Whether a move is legal and wins a ladder: captures the prey if it is the opponent's, saves it if it is own.

    Args:
        prey: a stone of a chain. An own one is in atari, and the move saves it for now; an opponent's one has two
            liberties, and the move is on one of them.
    """
    left = min(READ_NODES, scratch.nodes_left[0])
    if left == 0 or not is_legal(board, point, color, False):
        return False
    runner = board.color[prey]
    if color != runner and room(board, board.lib_sum[board.head[prey]] - point, point, runner) == 3:
        return False
    spare = scratch.nodes_left[0] - left
    copy_board(scratch.board, board)
    verdict, left = search_ladder(scratch, point, prey, color != runner, left, None)
    scratch.nodes_left[0] = spare + left
    return verdict == (ESCAPED if color == runner else CAPTURED)


@kernel
def ladder_planes(board, color, scratch, capture_out, escape_out):
    """Mark every ladder capture and ladder escape of the side to move.

    Chains of three liberties or more cost nothing, and all reads together try at most ``POSITION_NODES`` moves:
    8 us on average over positions of real 19x19 games, 23 us at the 95th percentile, 110 us at worst of 300.

    Args:
        board: only read.
        color: BLACK or WHITE, the side to move.
        scratch: :class:`engine.go.ladder_search.LadderScratch` of this board size, the caller's own.
        capture_out: uint8[N*N], policy order, overwritten: 1 where a move is a ladder capture.
        escape_out: uint8[N*N], overwritten: 1 where a move is a ladder escape.
    """
    cells, head, libs = board.color, board.head, board.libs
    size, stride = board.meta[META_SIZE], board.meta[META_STRIDE]
    fill_items(capture_out, 0)
    fill_items(escape_out, 0)
    scratch.nodes_left[0] = POSITION_NODES
    for chain in range(stride + 1, len(cells) - stride - 1):
        if head[chain] != chain:
            continue
        if cells[chain] == color and libs[chain] == 1:
            end = push_defences(board, chain, scratch.candidates, 0)
            out = escape_out
        elif cells[chain] != color and libs[chain] == 2:
            end = push_ataris(board, chain, PASS, scratch.candidates, 0)
            out = capture_out
        else:
            continue
        for i in range(end):
            point = np.int64(scratch.candidates[i])
            index = index_of(point, size)
            if out[index] == 0 and _read(board, scratch, point, chain, color):
                out[index] = 1
