"""Ladders: chains that are captured, or escape, by a sequence of ataris.

AlphaGo's paper does not define its ladder planes, so this is our definition. The *hunter* wants to capture the *prey*,
a chain of the *runner*. When the hunter is to move, a prey of one liberty is captured, a prey of three or more has
escaped, and a prey of two must be put into atari on one of its liberties. The runner, always in atari, may extend at
the prey's last liberty or capture a hunter's chain in atari that touches the prey. All of these moves are searched: a
ladder *works* if the hunter captures against every defence. So ladder makers and breakers, several escape lines,
snapbacks and captured stones count; a net, which needs a quiet move, does not.

Ko: the runner is assumed to win every ko, so a hunter's move that takes a ko fails, on the way and at the end. Thus a
ladder that works needs no ko threat. Suicide is never played.

* A *ladder capture* is a legal move on a liberty of an opponent's chain of exactly two liberties, after which the
  ladder works.
* A *ladder escape* is a legal move for an own chain in atari, on its liberty or capturing a chain that touches it,
  after which no ladder works against the chain.

A read stops unfinished after ``READ_NODES`` moves; its move is then neither a capture nor an escape.

KataGo's definition (:mod:`engine.features.katago`) uses :func:`search_ladder` too, with three differences. For KataGo

* a prey in atari on the hunter's turn is captured; by our definition a single stone must be captured without a ko;
* a prey whose two liberties are both kos that the hunter can take, and whose connections gain no liberty, is captured
  (:func:`_dies_by_two_kos`);
* the hunter does not play where a ko was just taken, even if that would capture more than the ko stone.

Most ladders are a sequence of forced moves, so moves are played on one board in place, and the board is copied only
where a side has a second choice. Start at :func:`ladder_planes`, then :func:`_read` and :func:`search_ladder`.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.go.board import (
    META_KO_POINT,
    META_SIZE,
    META_STRIDE,
    Board,
    copy_board,
    is_legal,
    list_captures,
    new_board,
    play,
    stones_lost_by_suicide,
)
from engine.go.geometry import BORDER, EMPTY, PASS, index_of
from engine.system.arrays import allocate, append_once, copy_items, fill_items
from engine.system.jit import inlined_kernel, kernel

READ_NODES = 400
"""Maximum number of moves that one read plays; a ladder across 19x19 takes 58"""
POSITION_NODES = 2000
"""Maximum number of moves that all reads of one position play together"""


@inlined_kernel
def _read(board, scratch, point, prey, color):
    """Whether a move is legal and a ladder capture of the opponent's prey, or a ladder escape of the player's own prey.

    The moves that the read plays are subtracted from ``scratch.nodes_left``.

    Args:
        point: the move, on one of two liberties of the opponent's prey, or taking the player's prey out of atari.
        prey: a stone of the prey.
        color: BLACK or WHITE, the player.
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

    Only own chains in atari and opponent's chains of two liberties are read, and all reads together play at most
    ``POSITION_NODES`` moves. Time for positions of real 19x19 games: 8 us on average, 23 us at the 95th percentile,
    110 us at the worst of 300.

    Args:
        board: only read.
        color: BLACK or WHITE, the side to move.
        scratch: :class:`engine.go.ladder.LadderScratch` of this board size, overwritten.
        capture_out: uint8[N*N] in policy order, overwritten: 1 = a ladder capture.
        escape_out: uint8[N*N] in policy order, overwritten: 1 = a ladder escape.
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


FRAMES = 64
"""Maximum number of open frames; KATAGO_FRAMES by KataGo's definition, whose reads are longer. A *frame* is a position
on the way to the current one where the side to move has untried moves"""
KATAGO_FRAMES = 512
MOST_PENDING = 4096
"""Maximum number of moves that wait in open frames"""
SAVED_TRIED, SAVED_ROOT = KATAGO_FRAMES, KATAGO_FRAMES + 1
"""Rows of ``LadderScratch.saved`` after those of frames: for the board before a trial move, and for a caller's board"""

ESCAPED, CAPTURED, UNFINISHED = range(3)
"""Results of :func:`search_ladder`: what happens to the prey"""


class LadderScratch(NamedTuple):
    """Working memory for reads on boards of one size; one per thread."""

    board: Board
    """the board on which moves are played"""
    saved: Annotated[np.ndarray, "uint64[KATAGO_FRAMES + 2, words]"]
    """row i: ``Board.buffer`` at the position of frame i; then the rows SAVED_TRIED and SAVED_ROOT"""
    hunts: Annotated[np.ndarray, "uint8[KATAGO_FRAMES]"]
    """by frame: 1 = the hunter is to move, 0 = the runner"""
    first: Annotated[np.ndarray, "int16[KATAGO_FRAMES]"]
    """by frame: start of its untried moves in ``pending``"""
    end: Annotated[np.ndarray, "int16[KATAGO_FRAMES]"]
    """by frame: end of its untried moves in ``pending``"""
    pending: Annotated[np.ndarray, "int16[MOST_PENDING]"]
    """untried moves of all open frames, then those listed for the current position"""
    candidates: Annotated[np.ndarray, "int16[MOST_PENDING]"]
    """moves to read for one chain, each the first move of a read"""
    capture: Annotated[np.ndarray, "int16[1]"]
    """one capturing move, where only the existence of captures is tested"""
    nodes_left: Annotated[np.ndarray, "int64[1]"]
    """number of moves that reads of this position may still play, 0 or more"""


def new_ladder_scratch(size: int) -> LadderScratch:
    """Working memory for boards of one size."""
    board = new_board(size)
    return allocate(LadderScratch, board=board, words=len(board.buffer))


@kernel
def _two_liberties(board, chain):
    """The two liberties, as points, of a chain that has exactly two."""
    stride = board.meta[META_STRIDE]
    stone = np.int64(chain)
    while True:
        for beside in (stone - stride, stone - 1, stone + 1, stone + stride):
            if board.color[beside] == EMPTY:
                return beside, board.lib_sum[chain] - beside
        stone = np.int64(board.next[stone])


@kernel
def room(board, point, taken, color):
    """Lower bound, 3 at most, of the number of liberties that a chain has after it extends to ``point``.

    Args:
        taken: int, the point where the hunter moves just before the extension; PASS = the hunter does not move.
        color: BLACK or WHITE, the colour of the chain.
    """
    stride = board.meta[META_STRIDE]
    found = 0
    for beside in (point - stride, point - 1, point + 1, point + stride):
        there = board.color[beside]
        if there == EMPTY:
            found += beside != taken
        elif there == color and board.libs[board.head[beside]] >= 5:
            return 3  # the joined chain loses at most the two points
    return min(found, 3)


@kernel
def push_defences(board, prey, pending, start):
    """List the runner's moves for a prey in atari. The extension comes last, so it is tried first.

    Args:
        prey: int, a stone of the chain.
        pending: int16[MOST_PENDING]: moves are written from ``start`` on, as far as they fit.
    Returns:
        int: index in ``pending`` after the last move written.
    """
    chain = np.int64(board.head[prey])
    end = list_captures(board, chain, pending, start, start)
    extension = board.lib_sum[chain]
    if stones_lost_by_suicide(board, extension, board.color[prey]) == 0:
        end = append_once(pending, start, end, extension)
    return end


@kernel
def push_ataris(board, prey, banned, pending, start):
    """List the hunter's ataris on a prey of two liberties.

    An atari is left out if the prey is sure to have three liberties after it extends on the other one. The atari that
    leaves the prey fewer liberties comes last, so it is tried first.

    Args:
        prey: int, a stone of the chain.
        banned: int, a point where the hunter must not play; PASS = none.
        pending, start: as for :func:`push_defences`.
    Returns:
        int: index in ``pending`` after the last move written.
    """
    chain = board.head[prey]
    color = board.color[prey]
    one, two = _two_liberties(board, chain)
    room_one = room(board, one, two, color)
    room_two = room(board, two, one, color)
    if room_two > room_one:
        one, two = two, one
        room_one, room_two = room_two, room_one
    # Now the atari on ``one`` leaves the runner fewer liberties, at ``two``.
    end = start
    if room_one < 3 and end < MOST_PENDING and two != banned and stones_lost_by_suicide(board, two, 3 - color) == 0:
        pending[end] = two
        end += 1
    if room_two < 3 and end < MOST_PENDING and one != banned and stones_lost_by_suicide(board, one, 3 - color) == 0:
        pending[end] = one
        end += 1
    return end


@kernel
def _is_ko_to_take(board, point, hunter):
    """Whether a hunter's move would take a ko: the runner has all neighbours, one of them, a lone stone, in atari."""
    stride = board.meta[META_STRIDE]
    lone = PASS
    for beside in (point - stride, point - 1, point + 1, point + stride):
        there = board.color[beside]
        if there in (EMPTY, hunter):
            return False
        if there != BORDER and board.libs[board.head[beside]] == 1:
            if lone != PASS:
                return False
            lone = beside
    return lone != PASS and board.stones[board.head[lone]] == 1


@kernel
def _connects_to(board, point, color, spare):
    """Number of liberties that the chain of a move has after the move, which is tried and taken back.

    Args:
        spare: uint64[words], overwritten: memory in which the board is kept during the trial.
    """
    copy_items(spare, board.buffer, len(spare))
    play(board, point, color)
    liberties = board.libs[board.head[point]]
    copy_items(board.buffer, spare, len(spare))
    return liberties


@kernel
def _dies_by_two_kos(board, prey, scratch):
    """Whether a prey of two liberties is captured by KataGo's rule for double kos: the hunter can take a ko at each
    liberty, no connection there gives the prey three liberties, and no hunter's chain that touches it is in atari."""
    chain, runner = np.int64(board.head[prey]), board.color[prey]
    one, two = _two_liberties(board, chain)
    if not _is_ko_to_take(board, one, 3 - runner) or not _is_ko_to_take(board, two, 3 - runner):
        return False
    spare = scratch.saved[SAVED_TRIED]
    if _connects_to(board, one, runner, spare) > 2 or _connects_to(board, two, runner, spare) > 2:
        return False
    return list_captures(board, chain, scratch.capture, 0, 0) == 0


@kernel
def search_ladder(scratch, first, prey, hunts, nodes, katagos):
    """Search a ladder depth-first on the scratch board.

    1. Play the last chosen move.
    2. Find a verdict on the position, or list the moves of the side to move.
    3. With a verdict, close the innermost frames whose side to move wins by it, then go back to the untried moves of
       the next frame; if none is left, return the verdict.
    4. Choose the last listed move; if others remain, open a frame for them. A frame is closed when its last move is
       chosen, since the verdict on that move is then the frame's own.

    Args:
        scratch: its board is the position, and is overwritten.
        first: the first move: a legal move of the runner that takes the prey out of atari, a legal move of the hunter
            that puts it into atari, or a pass of the hunter while it is in atari.
        prey: a stone of the chain.
        hunts: whether the first move is the hunter's.
        nodes: maximum number of moves to play, 1 or more.
        katagos: True for KataGo's definition, which needs a first move of the hunter; None for ours. Numba compiles
            one function for each type, so neither definition pays for the branches of the other.
    Returns:
        tuple: ESCAPED, CAPTURED or UNFINISHED; how many of the ``nodes`` moves were not played.
    """
    now, pending = scratch.board, scratch.pending
    runner = now.color[prey]
    frames = FRAMES if katagos is None else KATAGO_FRAMES
    depth, top, left = 0, 0, nodes
    pending[0] = first
    while left > 0:
        # 1
        play(now, np.int64(pending[top]), 3 - runner if hunts else runner)
        if katagos is not None and left == nodes:
            now.meta[META_KO_POINT] = PASS
        hunts = not hunts
        left -= 1
        # 2
        verdict = UNFINISHED
        end = top
        liberties = now.libs[now.head[prey]]
        if not hunts and now.meta[META_KO_POINT] != 0:
            verdict = ESCAPED
        elif not hunts and now.color[prey] != runner:
            verdict = CAPTURED
        elif hunts and liberties > 2:
            verdict = ESCAPED
        elif hunts and liberties == 2:
            end = push_ataris(now, prey, PASS if katagos is None else now.meta[META_KO_POINT], pending, top)
            if end == top:
                verdict = ESCAPED
            elif katagos is not None and _dies_by_two_kos(now, prey, scratch):
                verdict = CAPTURED
        elif hunts and (katagos is not None or now.stones[now.head[prey]] > 1):
            verdict = CAPTURED
        elif hunts:
            pending[top] = now.lib_sum[now.head[prey]]  # play the capture: of a single stone it may be a ko
            end = top + 1
        else:
            end = push_defences(now, prey, pending, top)
            if end == top:
                verdict = CAPTURED
        # 3
        if verdict != UNFINISHED:
            while depth > 0 and scratch.hunts[depth - 1] == (verdict == CAPTURED):
                depth -= 1
            if depth == 0:
                return verdict, left
            depth -= 1
            hunts = scratch.hunts[depth] == 1
            top, end = scratch.first[depth], scratch.end[depth]
            copy_items(now.buffer, scratch.saved[depth], len(now.buffer))
        # 4
        if end - top > 1:
            if depth == frames or end == MOST_PENDING:
                break
            scratch.hunts[depth] = hunts
            scratch.first[depth], scratch.end[depth] = top, end - 1
            copy_items(scratch.saved[depth], now.buffer, len(now.buffer))
            depth += 1
        top = end - 1
    return UNFINISHED, left
