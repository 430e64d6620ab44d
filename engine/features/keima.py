"""Our own input planes, "keima-1": what a small network cannot see for itself, at any board size and komi.

All planes are from the view of the side to move ("own"). Tactics that a convolution needs depth for are given as
planes: liberties, capture and self-atari sizes and liberties after a move as in AlphaGo (Extended Data Table 2), and
ladders read to the end. Komi, passes and rules enter as global values, so one network plays them all.
"""

from typing import NamedTuple

import numpy as np

from engine.features.symmetry import turn
from engine.go.board import CAPTURED_BLACK, CAPTURED_WHITE, KO_COLOR, KO_POINT, SIZE, STRIDE, is_eye, is_legal
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, ZOBRIST, index_of, point_of
from engine.go.ladder import LadderScratch, ladder_planes, new_ladder_scratch
from engine.go.position import HANDICAP, N_MOVES, SEEN_FROM, TO_MOVE, repeats
from engine.go.rules import (
    BONUS_N,
    BONUS_N_MINUS_ONE,
    HANDICAP_BONUS,
    KO,
    KO_SIMPLE,
    KOMI_X2,
    RULE_FIELDS,
    SCORING,
    SCORING_TERRITORY,
    SUICIDE,
    TAX,
    TAX_ALL,
    TAX_SEKI,
)
from engine.jit import kernel

ON_BOARD, OWN, OPPONENT = 0, 1, 2
LIBERTIES = 3
"""3, 4, 5: stones of chains with 1, 2, 3 liberties"""
RECENT = 6
"""6 to 10: the last five moves, latest first"""
RECENT_MOVES = 5
FORBIDDEN = 11
"""empty points that only ko or superko forbids"""
SENSIBLE = 12
"""legal and no own eye"""
CAPTURE = 13
"""13, 14, 15: a move here captures 1, 2, 3 or more stones"""
SELF_ATARI = 16
"""16, 17: a move here leaves 1, 2 or more own stones in atari"""
AFTER = 18
"""18, 19, 20: the chain has 2, 3, 4 or more liberties after a move here"""
LADDER_CAPTURE, LADDER_ESCAPE = 21, 22
PLANES = 23

KOMI, LAST_PASSED, PASSED_BEFORE, TERRITORY, SEKI_TAX, GROUP_TAX, SUICIDE_LEGAL, SUPERKO = range(8)
GLOBALS = 8
KOMI_SCALE = 15.0


class Scratch(NamedTuple):
    """Working memory of the encoder; one per thread and board size."""

    ladder: LadderScratch
    capture: np.ndarray
    """uint8[N*N]: ladder captures, policy order"""
    escape: np.ndarray
    """uint8[N*N]: ladder escapes"""
    marks: np.ndarray
    """int32[L]: marks of :func:`_after_move`; a rising stamp spares clearing them"""
    stamp: np.ndarray
    """int32[1]: the latest stamp"""


def new_scratch(size: int) -> Scratch:
    """Working memory for boards of one size."""
    area = size * size
    cells = (size + 1) * (size + 2) + 1
    return Scratch(
        new_ladder_scratch(size),
        np.zeros(area, np.uint8),
        np.zeros(area, np.uint8),
        np.zeros(cells, np.int32),
        np.zeros(1, np.int32),
    )


@kernel
def _mark_chain(board, chain, marks, stamp):
    """Mark every stone of a chain."""
    stone = chain
    while True:
        marks[stone] = stamp
        stone = board.next[stone]
        if stone == chain:
            return


@kernel
def _after_move(board, point, color, scratch):
    """What a legal move does: (stones captured, stones of the new chain, its liberties counted up to 4).

    A mark of ``seen`` stands on stones about to be captured and on own stones already joined; ``counted`` on points
    already taken as liberties. A captured stone's point is free, so it counts like an empty one.
    """
    stride = board.meta[STRIDE]
    cells, head, marks = board.color, board.head, scratch.marks
    scratch.stamp[0] += 2
    seen = scratch.stamp[0]
    counted = seen + 1
    captured, liberties, stones = 0, 0, 1
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if cells[neighbour] == 3 - color and board.libs[head[neighbour]] == 1 and marks[neighbour] < seen:
            captured += board.stones[head[neighbour]]
            _mark_chain(board, head[neighbour], marks, seen)
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        there = cells[neighbour]
        if there == EMPTY or (there == 3 - color and marks[neighbour] == seen):
            marks[neighbour] = counted
            liberties += 1
    marks[point] = counted
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if cells[neighbour] != color or marks[neighbour] == seen:
            continue
        chain = head[neighbour]
        stones += board.stones[chain]
        _mark_chain(board, chain, marks, seen)
        stone = chain
        while liberties < 4:
            for beside in (stone - stride, stone - 1, stone + 1, stone + stride):
                free = cells[beside] == EMPTY or (cells[beside] == 3 - color and marks[beside] == seen)
                if free and marks[beside] != counted:
                    marks[beside] = counted
                    liberties += 1
            stone = board.next[stone]
            if stone == chain:
                break
    return captured, stones, liberties


@kernel
def white_komi(position):
    """White's compensation in area terms: komi, handicap bonus, and under territory scoring the stones played.

    Territory differs from area by the number of stones each side has played, so both scorings share one scale.
    """
    rules, board = position.rules, position.board
    komi = rules[KOMI_X2] * 0.5
    if rules[HANDICAP_BONUS] == BONUS_N:
        komi += position.meta[HANDICAP]
    elif rules[HANDICAP_BONUS] == BONUS_N_MINUS_ONE:
        komi += max(0, position.meta[HANDICAP] - 1)
    if rules[SCORING] == SCORING_TERRITORY:
        played = board.meta[CAPTURED_BLACK] - board.meta[CAPTURED_WHITE]
        for cell in board.color:
            if cell == BLACK:
                played += 1
            elif cell == WHITE:
                played -= 1
        komi += played
    return komi


@kernel
def encode(position, symmetry, scratch, planes, globals_):
    """Write the planes and globals of a position for the side to move.

    Args:
        symmetry: 0 to 7.
        scratch: :class:`Scratch` of this board size, the caller's own.
        planes: float32[PLANES, N, N], overwritten.
        globals_: float32[GLOBALS], overwritten.
    """
    board, rules = position.board, position.rules
    size = board.meta[SIZE]
    color = position.meta[TO_MOVE]
    flat = planes.reshape(PLANES, size * size)
    for plane in range(PLANES):
        for i in range(size * size):
            flat[plane, i] = 0.0
    ladder_planes(board, color, scratch.ladder, scratch.capture, scratch.escape)
    suicide = rules[SUICIDE] == 1
    for index in range(size * size):
        point = point_of(index, size)
        at = turn(index, size, symmetry)
        flat[ON_BOARD, at] = 1.0
        there = board.color[point]
        if there != EMPTY:
            flat[OWN if there == color else OPPONENT, at] = 1.0
            liberties = board.libs[board.head[point]]
            if liberties <= 3:
                flat[LIBERTIES + liberties - 1, at] = 1.0
            continue
        if not is_legal(board, point, color, suicide) or repeats(position, point, color):
            if (point == board.meta[KO_POINT] and color == board.meta[KO_COLOR]) or is_legal(
                board, point, color, suicide
            ):
                flat[FORBIDDEN, at] = 1.0
            continue
        if not is_eye(board, point, color):
            flat[SENSIBLE, at] = 1.0
        captured, stones, liberties = _after_move(board, point, color, scratch)
        if captured > 0:
            flat[CAPTURE + min(captured, 3) - 1, at] = 1.0
        if liberties == 1:
            flat[SELF_ATARI + min(stones, 2) - 1, at] = 1.0
        elif liberties > 1:
            flat[AFTER + min(liberties, 4) - 2, at] = 1.0
        if scratch.capture[index]:
            flat[LADDER_CAPTURE, at] = 1.0
        if scratch.escape[index]:
            flat[LADDER_ESCAPE, at] = 1.0
    n = position.meta[N_MOVES]
    for age in range(min(RECENT_MOVES, n)):
        point = position.moves[n - 1 - age]
        if point != PASS:
            flat[RECENT + age, turn(index_of(point, size), size, symmetry)] = 1.0
    komi = white_komi(position)
    globals_[KOMI] = (komi if color == WHITE else -komi) / KOMI_SCALE
    globals_[LAST_PASSED] = n > 0 and position.moves[n - 1] == PASS
    globals_[PASSED_BEFORE] = n > 1 and position.moves[n - 2] == PASS
    globals_[TERRITORY] = rules[SCORING] == SCORING_TERRITORY
    globals_[SEKI_TAX] = rules[TAX] == TAX_SEKI
    globals_[GROUP_TAX] = rules[TAX] == TAX_ALL
    globals_[SUICIDE_LEGAL] = suicide
    globals_[SUPERKO] = rules[KO] != KO_SIMPLE


@kernel
def _mix(word):
    """One round of splitmix64: every bit of the result depends on every bit of the word."""
    word += np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def key(position):
    """uint64 that covers all :func:`encode` reads: stones, ko, superko history, recent moves, rules, side to move."""
    board, meta = position.board, position.meta
    word = _mix(board.hash[0] ^ ZOBRIST[EMPTY, meta[TO_MOVE]])
    word = _mix(word ^ np.uint64(board.meta[KO_POINT] * 4 + board.meta[KO_COLOR]))
    n = meta[N_MOVES]
    recent = np.uint64(0)
    for age in range(min(RECENT_MOVES, n)):
        recent = recent * np.uint64(1024) + np.uint64(position.moves[n - 1 - age] + 1)
    word = _mix(word ^ recent)
    for i in range(RULE_FIELDS):
        word = _mix(word ^ np.uint64(position.rules[i]))
    word = _mix(word ^ np.uint64(meta[HANDICAP]))
    # Prisoners count under territory scoring only, but they also tell whether superko can matter.
    lost_black, lost_white = board.meta[CAPTURED_BLACK], board.meta[CAPTURED_WHITE]
    if position.rules[SCORING] == SCORING_TERRITORY:
        word = _mix(word ^ np.uint64(lost_black * 4096 + lost_white))
    if position.rules[KO] != KO_SIMPLE and lost_black + lost_white > 0:
        history = np.uint64(0)
        for i in range(meta[SEEN_FROM], n + 1):
            history += _mix(position.hashes[i])
        word = _mix(word ^ history)
    return word
