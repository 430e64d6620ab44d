"""Ladders: chains that are captured, or get away, by atari after atari.

AlphaGo's ladder planes leave the definition open, so this is ours. The *hunter* wants to capture the *prey*, a chain
of the *runner*. Whenever the hunter is to move, a prey of one liberty is captured, a prey of three or more has
escaped, and a prey of two must be put into atari on either of its liberties. The runner, always in atari, may extend
at the prey's last liberty or capture any hunter's chain in atari that touches the prey. All of these are tried: a
ladder *works* if the hunter has an answer to everything. So ladder makers and breakers, second escape lines,
snapbacks and stones that are captured on the way all count; a net, which needs a quiet move, does not.

Ko: the runner is taken to win every ko, so the hunter never captures into one, neither on the way nor at the end. A
ladder that works thus needs no ko threat. Suicide is never played.

* A *ladder capture* is a legal move on a liberty of an opponent's chain of exactly two liberties, after which the
  ladder works.
* A *ladder escape* is a legal move for an own chain in atari, on its liberty or capturing a chain that touches it,
  after which no ladder works against the chain.

A read stops unfinished after ``READ_NODES`` moves, and what is unfinished is neither capture nor escape.

Start at :func:`ladder_planes`, then :func:`_read`. Most ladders are a line of forced moves, so moves are played on
one board in place, and a copy is kept only where a side has a second choice.
"""

from typing import NamedTuple

import numpy as np

from engine.go.board import KO_POINT, SIZE, STRIDE, Board, copy_board, is_legal, is_suicide, new_board, play
from engine.go.geometry import BORDER, EMPTY, index_of
from engine.jit import kernel

READ_NODES = 400
"""Most moves tried for one read; a ladder across 19x19 takes 58."""
POSITION_NODES = 2000
"""Most moves tried for all reads of one position."""
FRAMES = 64
"""Most second choices open at a time."""
PENDING = 512
"""Most moves waiting in the open frames."""

ESCAPED, CAPTURED, UNFINISHED = range(3)
"""Verdicts of a read."""

NODES_LEFT = 0
"""Index into ``LadderScratch.budget``."""


class LadderScratch(NamedTuple):
    """Working memory for reads on boards of one size; one per thread."""

    board: Board
    """the position being read"""
    saved: np.ndarray
    """uint64[FRAMES, words]: board memory before the choice of each open frame"""
    hunts: np.ndarray
    """uint8[FRAMES]: 1 if the choice is the hunter's"""
    first: np.ndarray
    """int16[FRAMES]: where the frame's moves not tried yet begin in ``pending``"""
    end: np.ndarray
    """int16[FRAMES]: where they end"""
    pending: np.ndarray
    """int16[PENDING]: moves of all open frames"""
    candidates: np.ndarray
    """int16[PENDING]: first moves to read for one chain"""
    budget: np.ndarray
    """int64[1]: moves that may still be tried"""


def new_ladder_scratch(size: int) -> LadderScratch:
    """Working memory for boards of one size."""
    board = new_board(size)
    return LadderScratch(
        board,
        np.zeros((FRAMES, len(board.buffer)), np.uint64),
        np.zeros(FRAMES, np.uint8),
        np.zeros(FRAMES, np.int16),
        np.zeros(FRAMES, np.int16),
        np.zeros(PENDING, np.int16),
        np.zeros(PENDING, np.int16),
        np.zeros(1, np.int64),
    )


@kernel
def _first_liberty(board, chain):
    """Any one liberty of a chain that has some."""
    stride = board.meta[STRIDE]
    stone = np.int64(chain)
    while True:
        for beside in (stone - stride, stone - 1, stone + 1, stone + stride):
            if board.color[beside] == EMPTY:
                return beside
        stone = np.int64(board.next[stone])


@kernel
def _room(board, point, taken, color):
    """Liberties, at least and counted up to 3, of a chain extended to ``point`` once the hunter stands on ``taken``."""
    stride = board.meta[STRIDE]
    room = 0
    for beside in (point - stride, point - 1, point + 1, point + stride):
        there = board.color[beside]
        if there == EMPTY:
            room += beside != taken
        elif there == color and board.libs[board.head[beside]] >= 5:
            return 3  # the joined chain loses at most the two points
    return min(room, 3)


@kernel
def _push_answers(board, prey, pending, start):
    """Write the runner's moves for a prey in atari into ``pending`` from ``start``; returns where they end.

    The extension comes last, where it is taken first. A full list ends at ``PENDING``.
    """
    cells, head = board.color, board.head
    stride = board.meta[STRIDE]
    color = cells[prey]
    chain = head[prey]
    end = start
    stone = np.int64(chain)
    while end < PENDING:
        for beside in (stone - stride, stone - 1, stone + 1, stone + stride):
            if cells[beside] == 3 - color and board.libs[head[beside]] == 1:
                move = board.lib_sum[head[beside]]
                known = end == PENDING
                for i in range(start, end):
                    known |= pending[i] == move
                if not known:
                    pending[end] = move
                    end += 1
        stone = np.int64(board.next[stone])
        if stone == chain:
            break
    extension = board.lib_sum[chain]
    known = end == PENDING or is_suicide(board, extension, color) > 0
    for i in range(start, end):
        known |= pending[i] == extension
    if not known:
        pending[end] = extension
        end += 1
    return end


@kernel
def _push_ataris(board, prey, pending, start):
    """Write the ataris worth trying on a prey of two liberties into ``pending``; returns where they end.

    An atari is left out if the extension on the other liberty surely has three. The narrower one comes last, where
    it is taken first.
    """
    chain = board.head[prey]
    color = board.color[prey]
    one = _first_liberty(board, chain)
    two = board.lib_sum[chain] - one
    room_one = _room(board, one, two, color)
    room_two = _room(board, two, one, color)
    if room_two > room_one:
        one, two = two, one
        room_one, room_two = room_two, room_one
    # Now the atari on ``one`` leaves the runner the smaller room, at ``two``.
    end = start
    if room_one < 3 and end < PENDING and is_suicide(board, two, 3 - color) == 0:
        pending[end] = two
        end += 1
    if room_two < 3 and end < PENDING and is_suicide(board, one, 3 - color) == 0:
        pending[end] = one
        end += 1
    return end


@kernel
def _copy_words(target, source):
    """Copy one board's memory; unlike slice assignment this loop vectorises."""
    for i in range(len(target)):
        target[i] = source[i]


@kernel
def _read(board, scratch, point, prey, color):
    """Whether a move is legal and wins a ladder: captures the prey if it is the opponent's, saves it if it is own.

    1. Play the move chosen last on the scratch board.
    2. Judge the position, or write down the moves of the side to move.
    3. With a verdict, close the frames it decides and return to the first one that it does not.
    4. Choose the last move written; if others remain, open a frame to come back to. A frame is closed when its last
       move is taken, since that move's verdict is then the frame's own.

    Args:
        prey: a stone of a chain. An own one is in atari, and the move saves it for now; an opponent's one has two
            liberties, and the move is on one of them.
    """
    if not is_legal(board, point, color, False):
        return False
    runner = board.color[prey]
    hunter = 3 - runner
    if color == hunter and _room(board, board.lib_sum[board.head[prey]] - point, point, runner) == 3:
        return False
    wanted = ESCAPED if color == runner else CAPTURED
    now, pending = scratch.board, scratch.pending
    copy_board(now, board)
    left = min(READ_NODES, scratch.budget[NODES_LEFT])
    spare = scratch.budget[NODES_LEFT] - left
    pending[0] = point
    verdict = UNFINISHED
    hunts = color == hunter
    depth, top = 0, 0
    while left > 0:
        # 1
        play(now, np.int64(pending[top]), hunter if hunts else runner)
        hunts = not hunts
        left -= 1
        # 2
        verdict = UNFINISHED
        end = top
        liberties = now.libs[now.head[prey]]
        if not hunts and now.meta[KO_POINT] != 0:
            verdict = ESCAPED
        elif not hunts and now.color[prey] != runner:
            verdict = CAPTURED
        elif hunts and liberties > 2:
            verdict = ESCAPED
        elif hunts and liberties == 2:
            end = _push_ataris(now, prey, pending, top)
            if end == top:
                verdict = ESCAPED
        elif hunts and now.stones[now.head[prey]] > 1:
            verdict = CAPTURED
        elif hunts:
            pending[top] = now.lib_sum[now.head[prey]]  # a lone stone may be captured into a ko: play on and see
            end = top + 1
        else:
            end = _push_answers(now, prey, pending, top)
            if end == top:
                verdict = CAPTURED
        # 3
        if verdict != UNFINISHED:
            while depth > 0 and scratch.hunts[depth - 1] == (verdict == CAPTURED):
                depth -= 1
            if depth == 0:
                break
            verdict = UNFINISHED
            depth -= 1
            hunts = scratch.hunts[depth] == 1
            top, end = np.int64(scratch.first[depth]), np.int64(scratch.end[depth])
            _copy_words(now.buffer, scratch.saved[depth])
        # 4
        if end - top > 1:
            if depth == FRAMES or end == PENDING:
                break
            scratch.hunts[depth] = hunts
            scratch.first[depth], scratch.end[depth] = top, end - 1
            _copy_words(scratch.saved[depth], now.buffer)
            depth += 1
        top = end - 1
    scratch.budget[NODES_LEFT] = spare + left
    return verdict == wanted


@kernel
def is_ladder_capture(board, scratch, point, color):
    """Whether a move of the colour on an empty point starts a working ladder; see the head of this file."""
    scratch.budget[NODES_LEFT] = POSITION_NODES
    stride = board.meta[STRIDE]
    for prey in (point - stride, point - 1, point + 1, point + stride):
        is_prey = board.color[prey] == 3 - color and board.libs[board.head[prey]] == 2
        if is_prey and _read(board, scratch, point, prey, color):
            return True
    return False


@kernel
def is_ladder_escape(board, scratch, point, color):
    """Whether a move of the colour on an empty point saves an own chain in atari; see the head of this file."""
    scratch.budget[NODES_LEFT] = POSITION_NODES
    cells, head, libs = board.color, board.head, board.libs
    stride = board.meta[STRIDE]
    for beside in (point - stride, point - 1, point + 1, point + stride):
        if cells[beside] == EMPTY or cells[beside] == BORDER or libs[head[beside]] != 1:
            continue
        if cells[beside] == color:
            if _read(board, scratch, point, beside, color):
                return True
            continue
        stone, tried = beside, 0
        while True:
            for prey in (stone - stride, stone - 1, stone + 1, stone + stride):
                if cells[prey] == color and libs[head[prey]] == 1 and head[prey] != tried:
                    tried = head[prey]
                    if _read(board, scratch, point, prey, color):
                        return True
            stone = np.int64(board.next[stone])
            if stone == beside:
                break
    return False


@kernel
def ladder_planes(board, color, scratch, capture_out, escape_out):
    """Mark every ladder capture and ladder escape of the side to move.

    Chains of three liberties or more cost nothing, and all reads together try at most ``POSITION_NODES`` moves:
    8 us on average over positions of real 19x19 games, 23 us at the 95th percentile, 110 us at worst of 300.

    Args:
        color: the side to move.
        scratch: :class:`LadderScratch` of this board size, the caller's own.
        capture_out: uint8[N*N], policy order, overwritten: 1 where a move is a ladder capture.
        escape_out: uint8[N*N], overwritten: 1 where a move is a ladder escape.
    """
    cells, head, libs = board.color, board.head, board.libs
    size, stride = board.meta[SIZE], board.meta[STRIDE]
    for i in range(size * size):
        capture_out[i] = 0
        escape_out[i] = 0
    scratch.budget[NODES_LEFT] = POSITION_NODES
    for chain in range(stride + 1, len(cells) - stride - 1):
        if head[chain] != chain:
            continue
        if cells[chain] == color and libs[chain] == 1:
            end = _push_answers(board, chain, scratch.candidates, 0)
            out = escape_out
        elif cells[chain] != color and libs[chain] == 2:
            end = _push_ataris(board, chain, scratch.candidates, 0)
            out = capture_out
        else:
            continue
        for i in range(end):
            point = np.int64(scratch.candidates[i])
            index = index_of(point, size)
            if out[index] == 0 and _read(board, scratch, point, chain, color):
                out[index] = 1
