"""A position in a game: the board, what led to it and the rules it is played under.

This is what rules, encoders and search workers read. It holds everything legality needs (superko included), so
"legal" has one meaning everywhere: :func:`is_legal_move`. A worker copies the root's position and plays on.
"""

from dataclasses import astuple
from typing import Annotated, NamedTuple

import numpy as np

from engine.go.board import (
    META_CAPTURED_BLACK,
    META_CAPTURED_WHITE,
    META_SIZE,
    Board,
    copy_board,
    hash_after,
    is_legal,
    new_board,
    play,
    stones_lost_by_suicide,
)
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, ZOBRIST, cell_count, point_of
from engine.go.rules import (
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    RULE_BUTTON,
    RULE_FIELDS,
    RULE_KO,
    RULE_KOMI_X2,
    RULE_SCORING,
    RULE_SUICIDE,
    RULE_TAX,
    SCORING_TERRITORY,
    TAX_ATARI,
    TAX_NONE,
    Rules,
    twice_komi,
)
from engine.system.arrays import allocate, copy_items
from engine.system.jit import inlined_kernel, kernel

(META_N_MOVES, META_TO_MOVE, META_PASSES, META_HANDICAP, META_SEEN_FROM, META_BUTTON_TAKER, META_N_ALONE,
 META_BARE_AT) = range(8)  # fmt: skip
"""Indices into ``Position.meta``."""
META_FIELDS = 8
ENDED, OVER = -1, -2
"""Values of ``META_N_ALONE`` after White's first stone, and from the next move on"""
PAST_BOARDS = 8
FILTER_WORDS = 64


class Position(NamedTuple):
    """Board, rules and history. L = ``cell_count(size)``, CAP = moves there is room for."""

    board: Board
    rules: Annotated[np.ndarray, "int64[RULE_FIELDS]"]
    """by ``RULE_...`` of :mod:`engine.go.rules`: the flags, and twice the komi (White's points)"""
    meta: Annotated[np.ndarray, "int64[META_FIELDS]"]
    """by ``META_...``: number of moves; colour to move; consecutive passes, latest; handicap stones (see
    :func:`play_move`); index of the first hash that counts; who has taken the button (0 = neither side); Black's stones
    as long as White has placed none, then ``ENDED`` and ``OVER``; moves after which encoders show none
    (:func:`hide_course`)"""
    past: Annotated[np.ndarray, "uint8[PAST_BOARDS, L]"]
    """stones after move n in row n % 8, the current position included"""
    moves: Annotated[np.ndarray, "int16[CAP]"]
    """points played, oldest first; PASS = 0"""
    colors: Annotated[np.ndarray, "uint8[CAP]"]
    """who played them"""
    hashes: Annotated[np.ndarray, "uint64[CAP + 1]"]
    """superko key after n moves; ``hashes[0]`` is the first position's"""
    seen: Annotated[np.ndarray, "uint64[FILTER_WORDS]"]
    """one bit per ``key & 4095`` of the keys so far; clear bit = certainly new"""


def new_position(size: int, capacity: int = 0) -> Position:
    """An empty position, Black to move, under all-zero rules (simple ko, area scoring, komi 0).

    Args:
        size: 2 to 25.
        capacity: moves there is room for; 0 means three boards full.
    """
    room = capacity or 3 * size * size + 64
    position = allocate(Position, board=new_board(size), L=int(cell_count(size)), CAP=room)
    begin(position, BLACK)
    return position


def hide_course(position: Position) -> None:
    """Let encoders whose networks can do without show this position without the moves that led to it.

    So an analysis judges a position by itself, not by how well those played who brought it about. The positions that
    follow are shown with their last moves, so that analyses of a game's positions share what they evaluate, and the
    rules forget nothing. Source: KataGo, ``ignorePreRootHistory``, which hides them below the root too.
    """
    position.meta[META_BARE_AT] = position.meta[META_N_MOVES]


def with_capacity(position: Position, capacity: int) -> Position:
    """A copy of the position with room for ``capacity`` moves (at least those it holds)."""
    copy = new_position(int(position.board.meta[META_SIZE]), max(capacity, int(position.meta[META_N_MOVES]) + 1))
    copy_position(copy, position)
    return copy


@kernel
def begin(position, to_move):
    """Make the stones now on the board the first position of a game: history forgotten, ``to_move`` to play.

    If they are several and all Black's they are handicap stones.
    """
    meta = position.meta
    meta[META_N_MOVES] = 0
    meta[META_TO_MOVE] = to_move
    meta[META_PASSES] = 0
    meta[META_SEEN_FROM] = 0
    meta[META_BUTTON_TAKER] = 0
    meta[META_N_ALONE] = 0
    meta[META_BARE_AT] = 0
    for color in position.board.color:
        if color == WHITE:
            meta[META_N_ALONE] = OVER
            break
        meta[META_N_ALONE] += color == BLACK
    meta[META_HANDICAP] = meta[META_N_ALONE] if meta[META_N_ALONE] > 1 else 0
    position.seen[:] = 0
    for row in range(PAST_BOARDS):
        copy_items(position.past[row], position.board.color, len(position.board.color))
    _remember(position, 0)


@kernel
def superko_key(board_hash, to_move, ko_rule):
    """What must not repeat: the stones (positional), or the stones and who is to move (situational).

    Under simple ko, which compares no positions, the key is the stones'.

    Raises:
        ValueError: no such kind of ko.
    """
    if ko_rule == KO_SITUATIONAL:
        return board_hash ^ ZOBRIST[EMPTY, to_move]
    if ko_rule in (KO_POSITIONAL, KO_SIMPLE):
        return board_hash
    raise ValueError("unknown kind of ko")


@kernel
def _remember(position, n):
    """Enter the current board as the one after n moves."""
    key = superko_key(position.board.hash[0], position.meta[META_TO_MOVE], position.rules[RULE_KO])
    position.hashes[n] = key
    bit = key & np.uint64(4095)
    position.seen[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    copy_items(position.past[n % PAST_BOARDS], position.board.color, len(position.board.color))


@kernel
def copy_position(target, source):
    """Make target equal to source; both of one size, target with room for the moves."""
    copy_board(target.board, source.board)
    copy_items(target.rules, source.rules, RULE_FIELDS)
    copy_items(target.meta, source.meta, META_FIELDS)
    copy_items(target.past.reshape(-1), source.past.reshape(-1), source.past.size)
    copy_items(target.seen, source.seen, FILTER_WORDS)
    n = source.meta[META_N_MOVES]
    copy_items(target.moves, source.moves, n)
    copy_items(target.colors, source.colors, n)
    copy_items(target.hashes, source.hashes, n + 1)


@kernel
def play_move(position, point, color):
    """Play a stone or a pass and enter it into the history; the opponent is to move next.

    Where the rules have a button, the first pass takes it: that pass does not count towards the end of the game, and
    no earlier position can recur after it, since a position without the button is another one.
    Stones that Black adds before White's first are handicap stones, if they are several: some servers send them so.
    Where White then moves twice in a row they are none: a position is set up, one colour after the other.
    Source: KataGo, ``BoardHistory::computeNumHandicapStones``.
    Legality is the caller's matter; the point must be empty and there must be room for one more move.

    Returns:
        int: opponent's stones captured.
    """
    meta = position.meta
    captured = play(position.board, point, color)
    n = meta[META_N_MOVES]
    position.moves[n] = point
    position.colors[n] = color
    meta[META_N_MOVES] = n + 1
    meta[META_TO_MOVE] = 3 - color
    meta[META_PASSES] = meta[META_PASSES] + 1 if point == PASS else 0
    if point == PASS and position.rules[RULE_BUTTON] == 1 and meta[META_BUTTON_TAKER] == 0:
        meta[META_BUTTON_TAKER] = color
        meta[META_PASSES] = 0
        meta[META_SEEN_FROM] = n + 1
    if meta[META_N_ALONE] > OVER:
        _count_handicap(position, n)
    _remember(position, n + 1)
    return captured


@kernel
def _count_handicap(position, n):
    """Update the handicap after move ``n``; called up to the move after White's first stone."""
    meta, color = position.meta, position.colors[n]
    if n > 0 and color == WHITE and position.colors[n - 1] == WHITE:
        for earlier in range(n):
            if position.colors[earlier] == BLACK and position.moves[earlier] != PASS:
                meta[META_HANDICAP] -= 1
        meta[META_HANDICAP] = meta[META_HANDICAP] if meta[META_HANDICAP] > 1 else 0
        meta[META_N_ALONE] = OVER
    elif meta[META_N_ALONE] == ENDED:
        meta[META_N_ALONE] = OVER
    elif position.moves[n] != PASS:
        meta[META_N_ALONE] = meta[META_N_ALONE] + 1 if color == BLACK else ENDED
        if meta[META_N_ALONE] > 1:
            meta[META_HANDICAP] = meta[META_N_ALONE]


@inlined_kernel
def repeats(position, point, color):
    """Whether the move would recreate an earlier position, in the sense of the ko rule in force.

    As long as no stone has been taken off no position can recur, since every move added one; a capture leaves the
    stone just played, so only a suicide can be the first repetition.
    """
    rule = position.rules[RULE_KO]
    board = position.board
    if rule == KO_SIMPLE or point == PASS:
        return False
    none_taken = board.meta[META_CAPTURED_BLACK] + board.meta[META_CAPTURED_WHITE] == 0
    if none_taken and (position.rules[RULE_SUICIDE] == 0 or stones_lost_by_suicide(board, point, color) == 0):
        return False
    key = superko_key(hash_after(board, point, color), 3 - color, rule)
    bit = key & np.uint64(4095)
    if (position.seen[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1) == 0:
        return False
    for n in range(position.meta[META_SEEN_FROM], position.meta[META_N_MOVES] + 1):  # noqa: SIM110 - kernels have no generators
        if position.hashes[n] == key:
            return True
    return False


@inlined_kernel
def is_legal_move(position, point, color):
    """Whether a move (a pass always) is legal under the rules in force, superko included."""
    if point == PASS:
        return True
    if not is_legal(position.board, point, color, position.rules[RULE_SUICIDE] == 1):
        return False
    return not repeats(position, point, color)


@kernel
def legal_moves(position, color, out):
    """Mark the legal moves in policy order.

    Args:
        out: uint8 or bool[size * size + 1], overwritten; the pass, last, is always legal.
    Returns:
        int: number of legal moves, the pass included.
    """
    size = position.board.meta[META_SIZE]
    count = 1
    for index in range(size * size):
        out[index] = is_legal_move(position, point_of(index, size), color)
        count += out[index]
    out[size * size] = 1
    return count


def apply_rules(position: Position, rules: Rules, komi: float) -> None:
    """Put a position under the rules and komi (White's points).

    Raises:
        ValueError: the komi is not in half points, or the ko rule or the button would change after moves were played,
            which the keys of the history depend on (``Game.set_rules`` replays them).
    """
    flags, half_points = position.rules, twice_komi(komi)
    played = bool(position.meta[META_N_MOVES])
    if played and (flags[RULE_KO] != rules.ko or flags[RULE_BUTTON] != rules.button):
        raise ValueError("the ko rule and the button can only change before the first move")
    flags[:RULE_KOMI_X2] = astuple(rules)[1:]
    flags[RULE_KOMI_X2] = half_points
    if not played:
        begin(position, position.meta[META_TO_MOVE])


def count_none_beside_atari(position: Position) -> None:
    """Under territory scoring without a tax, count no point beside a chain in atari of its owner's colour from now on.

    So KataGo counts from version 3 of its rules on, for networks that are made for it. Other rules stay as they are.
    """
    flags = position.rules
    if flags[RULE_SCORING] == SCORING_TERRITORY and flags[RULE_TAX] == TAX_NONE:
        flags[RULE_TAX] = TAX_ATARI
