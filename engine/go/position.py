"""A position in a game: board, history and rules.

Rules, encoders and search workers read positions. A position contains everything that legality depends on (superko
included), so :func:`is_legal_move` is the only definition of legality. A worker copies the root's position and plays
moves on it.
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
"""Values of ``META_N_ALONE``: just after White's first stone, and from the next move on"""
PAST_BOARDS = 8
FILTER_WORDS = 64


class Position(NamedTuple):
    """Board, rules and history. L = ``cell_count(size)``, CAP = capacity in moves."""

    board: Board
    rules: Annotated[np.ndarray, "int64[RULE_FIELDS]"]
    """by ``RULE_...`` of :mod:`engine.go.rules`: the flags, and twice the komi (White's points)"""
    meta: Annotated[np.ndarray, "int64[META_FIELDS]"]
    """by ``META_...``: number of moves; colour to move; number of consecutive passes at the end; number of handicap
    stones (see :func:`play_move`); index of the first of ``hashes`` that superko compares; colour that took the button
    (0 = none); number of Black's stones while White has none, then ``ENDED`` and ``OVER``; number of moves in
    the position whose moves encoders hide (:func:`hide_course`)"""
    past: Annotated[np.ndarray, "uint8[PAST_BOARDS, L]"]
    """row n % PAST_BOARDS: ``Board.color`` after n moves, for the PAST_BOARDS latest n, the present one included"""
    moves: Annotated[np.ndarray, "int16[CAP]"]
    """points played, oldest first; PASS = 0"""
    colors: Annotated[np.ndarray, "uint8[CAP]"]
    """colours of the moves"""
    hashes: Annotated[np.ndarray, "uint64[CAP + 1]"]
    """item n: superko key of the position after n moves"""
    seen: Annotated[np.ndarray, "uint64[FILTER_WORDS]"]
    """filter of superko keys: bit ``key & 4095`` is set for each key so far; a key whose bit is 0 is certainly new"""


def new_position(size: int, capacity: int = 0) -> Position:
    """An empty position, Black to move, under all-zero rules (simple ko, area scoring, komi 0).

    Args:
        size: 2 to 25.
        capacity: maximum number of moves; 0 = about three times the number of points.
    """
    room = capacity or 3 * size * size + 64
    position = allocate(Position, board=new_board(size), L=int(cell_count(size)), CAP=room)
    begin(position, BLACK)
    return position


def hide_course(position: Position) -> None:
    """Hide the moves that led to this position from encoders of networks that support positions without history.

    So an analysis does not depend on the strength of the players who reached the position. Positions after further
    moves are encoded with all their last moves, so that analyses of a game's positions share evaluations. Superko still
    uses the whole history. Source: KataGo, ``ignorePreRootHistory``, which hides these moves after further moves too.
    """
    position.meta[META_BARE_AT] = position.meta[META_N_MOVES]


def with_capacity(position: Position, capacity: int) -> Position:
    """A copy of the position with room for ``capacity`` moves, and for at least one more than it has."""
    board, n = new_board(int(position.board.meta[META_SIZE])), int(position.meta[META_N_MOVES])
    board.buffer[:] = position.board.buffer
    room = max(capacity, n + 1)
    # Not by new_position and copy_position, which take three times as long.
    lengths = {"moves": room, "colors": room, "hashes": room + 1}
    copies = (
        _resized(array, lengths.get(name, len(array)))
        for name, array in zip(Position._fields[1:], position[1:], strict=True)
    )
    return Position(board, *copies)


def _resized(array: np.ndarray, length: int) -> np.ndarray:
    """A copy of an array with another length: cut off, or with zeros at its end."""
    if length == len(array):
        return array.copy()
    made = np.zeros((length, *array.shape[1:]), array.dtype)
    made[: len(array)] = array[:length]
    return made


@kernel
def begin(position, to_move):
    """Make the stones on the board the first position of a game, without history.

    Two or more stones, all Black's, are handicap stones.
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
    """Hash that must not repeat: of the stones (positional), or of stones and colour to move (situational).

    Under simple ko, which compares no positions, it is the hash of the stones.

    Raises:
        ValueError: unknown kind of ko.
    """
    if ko_rule == KO_SITUATIONAL:
        return board_hash ^ ZOBRIST[EMPTY, to_move]
    if ko_rule in (KO_POSITIONAL, KO_SIMPLE):
        return board_hash
    raise ValueError("unknown kind of ko")


@kernel
def _remember(position, n):
    """Add the current board, after n moves, to the history."""
    key = superko_key(position.board.hash[0], position.meta[META_TO_MOVE], position.rules[RULE_KO])
    position.hashes[n] = key
    bit = key & np.uint64(4095)
    position.seen[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    copy_items(position.past[n % PAST_BOARDS], position.board.color, len(position.board.color))


@kernel
def copy_position(target, source):
    """Copy the position ``source`` to ``target``, of the same size and sufficient capacity."""
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
    """Play a stone or a pass and add it to the history; the opponent is to move next.

    Under rules with a button the first pass takes it. That pass does not count towards the end of the game, and earlier
    positions cannot recur after it, since positions with and without the button differ.
    Two or more stones of Black before White's first are handicap stones, as some servers send them; but if White then
    plays two moves in a row they are not, since a position is being set up.
    Source: KataGo, ``BoardHistory::computeNumHandicapStones``.
    Legality is not checked; the point must be empty, and there must be capacity for one more move.

    Returns:
        int: number of the opponent's stones captured.
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
    """Update the handicap after move ``n``; called until the move after White's first stone."""
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
    """Whether a move would repeat an earlier position, which the ko rule forbids; False under simple ko and for a pass.

    Until stones come off no position can recur, since every move adds a stone. The first move that captures still adds
    a stone, on a point that was empty in all earlier positions, so of such moves only a suicide can repeat one.
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
    """Whether a move is legal under the position's rules, superko included; a pass always is."""
    if point == PASS:
        return True
    if not is_legal(position.board, point, color, position.rules[RULE_SUICIDE] == 1):
        return False
    return not repeats(position, point, color)


@kernel
def play_if_legal(position, point, color):
    """Play a move if it is legal, as :func:`play_move` does; returns whether it is."""
    if not is_legal_move(position, point, color):
        return False
    play_move(position, point, color)
    return True


@kernel
def legal_moves(position, color, out):
    """Mark the legal moves in policy order.

    Args:
        out: uint8 or bool[size * size + 1], overwritten; the last item, the pass, is always legal.
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
    """Set a position's rules and komi (White's points).

    Raises:
        ValueError: the komi is not a multiple of 0.5 or too large, or the ko rule or the button would change after a
            move was played: superko keys depend on these rules (``Game.set_rules`` replays the moves).
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
    """Set TAX_ATARI if the rules are territory scoring without a tax; other rules are not changed.

    Then points beside a chain of their owner in atari do not count. KataGo counts in this way from version 3 of its
    rules on, for networks trained with it.
    """
    flags = position.rules
    if flags[RULE_SCORING] == SCORING_TERRITORY and flags[RULE_TAX] == TAX_NONE:
        flags[RULE_TAX] = TAX_ATARI
