"""Ladders as KataGo's input features show them: all chains that an atari now, or the next one, captures.

A chain of either colour is *caught* if it is in atari and the runner, to move, cannot get away, or if it has two
liberties and the hunter, to move, has an atari that works. The side to move in the game does not matter. Any ko is
forgotten before the runner's first move, so a hunter's first move may take one; later on the runner wins all kos.

KataGo ends some reads early, and about one in a million wrongly: where the runner's extension is also a capture, it
takes the last capture it has found for the extension. Which one that is depends on the moves that built its board, and
on the reads before. Ours depend on the position alone: in 30,000 positions of random games one differs in a chain.

Source: KataGo, ``iterLadders`` and ``Board::searchIsLadderCaptured``.
"""

import numpy as np

from engine.go.arrays import copy_items, fill_items
from engine.go.board import META_KO_POINT, META_SIZE, META_STRIDE
from engine.go.geometry import PASS, index_of
from engine.go.ladder_search import CAPTURED, SAVED_ROOT, push_ataris, room, search_ladder
from engine.system.jit import kernel

READ_NODES = 25000
"""Most moves tried for one read, as in KataGo; what is unfinished then is not caught."""


@kernel
def mark_caught(scratch, color, caught, working):
    """Mark all chains that are caught.

    1. List the chains that may be, each with a first move of the hunter's: an atari, or a pass where it is in atari.
    2. Read them one by one.

    Args:
        scratch: :class:`engine.go.ladder_search.LadderScratch`, the caller's own; its board is the one to look at, and
            is the same afterwards.
        color: the side whose ataris are looked for, or EMPTY.
        caught: uint8[N*N], policy order, overwritten: 1 on the stones of chains that are caught.
        working: uint8[N*N], overwritten: 1 where an atari by that side works on a chain of two liberties.
    """
    board, candidates = scratch.board, scratch.candidates
    cells, size = board.color, board.meta[META_SIZE]
    fill_items(caught, 0)
    fill_items(working, 0)
    # 1
    count = _list_reads(board, scratch.pending, candidates)
    # 2
    copy_items(scratch.saved[SAVED_ROOT], board.buffer, len(board.buffer))
    for i in range(0, count, 2):
        prey, first = np.int64(candidates[i]), np.int64(candidates[i + 1])
        hunter = 3 - cells[prey]
        is_asked = first != PASS and hunter == color
        if caught[index_of(prey, size)] == 1 and not is_asked:
            continue
        verdict, _ = search_ladder(scratch, first, prey, True, READ_NODES + 1, True)
        copy_items(board.buffer, scratch.saved[SAVED_ROOT], len(board.buffer))
        if verdict == CAPTURED:
            _mark(board, prey, caught)
            if is_asked:
                working[index_of(first, size)] = 1


@kernel
def _list_reads(board, pending, candidates):
    """Write pairs of a chain and a first move into ``candidates``; returns how many numbers that makes."""
    cells, head, libs = board.color, board.head, board.libs
    stride, count = board.meta[META_STRIDE], 0
    for chain in range(stride + 1, len(cells) - stride - 1):
        if head[chain] != chain or libs[chain] > 2:
            continue
        end = 0
        if libs[chain] == 2:
            end = push_ataris(board, chain, board.meta[META_KO_POINT], pending, 0)
        elif room(board, np.int64(board.lib_sum[chain]), PASS, cells[chain]) < 3:
            pending[0] = PASS
            end = 1
        for i in range(end):
            candidates[count] = chain
            candidates[count + 1] = pending[i]
            count += 2
    return count


@kernel
def _mark(board, chain, marks):
    """Mark the stones of a chain."""
    size = board.meta[META_SIZE]
    stone = np.int64(chain)
    for _ in range(board.stones[board.head[chain]]):
        marks[index_of(stone, size)] = 1
        stone = np.int64(board.next[stone])
