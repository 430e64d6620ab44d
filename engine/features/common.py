"""Features that several encoders share: key hashes, recent moves, the parity of a komi, the effects of a move."""

import numpy as np

from engine.features.symmetry import apply_symmetry
from engine.go.board import (
    META_CAPTURED_BLACK,
    META_CAPTURED_WHITE,
    META_KO_COLOR,
    META_KO_POINT,
    META_SIZE,
    META_STRIDE,
)
from engine.go.geometry import EMPTY, PASS, ZOBRIST, index_of
from engine.go.position import META_N_MOVES, META_SEEN_FROM, META_TO_MOVE
from engine.go.random import mix
from engine.go.rules import KO_SIMPLE, RULE_FIELDS, RULE_KO, RULE_SCORING, RULE_SUICIDE, SCORING_AREA
from engine.system.jit import inlined_kernel, kernel


def named(feature: str, *values: object) -> tuple[str, ...]:
    """Names of the planes of a feature that has one for each of some values, such as ``liberties: 1``."""
    return tuple(f"{feature}: {value}" for value in values)


@kernel
def legality_key(position):
    """uint64 hash of the stones, the side to move and everything that decides which moves are legal.

    Earlier positions are included only under superko, and only once a position can recur: see
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
    """uint64 hash of the last ``count`` moves, passes included, and their number."""
    n = position.meta[META_N_MOVES]
    word = np.uint64(0)
    for age in range(min(count, n)):
        word = mix(word ^ np.uint64(position.moves[n - 1 - age] + 1))
    return word


@kernel
def rules_key(position, word):
    """uint64 hash of ``word`` and all fields of the rules."""
    for i in range(RULE_FIELDS):
        word = mix(word ^ np.uint64(position.rules[i]))
    return word


@kernel
def mark_recent_moves(position, symmetry, count, planes):
    """Mark the last ``count`` moves, one plane each, latest first; the plane of a pass is not changed.

    Args:
        planes: float32[>= count, N*N].
    """
    n, size = position.meta[META_N_MOVES], position.board.meta[META_SIZE]
    for age in range(min(count, n)):
        point = position.moves[n - 1 - age]
        if point != PASS:
            planes[age, apply_symmetry(index_of(point, size), size, symmetry)] = 1.0


@kernel
def komi_wave(rules, area, komi):
    """Offset of a komi from the nearest margin that a game without seki can end with.

    Such margins have the parity of the board's points, so on odd boards komi 7.5, 8 and 8.5 give the same winner,
    and only an odd komi allows a draw. Source: KataGo's input features of version 7.

    Args:
        rules: ``Position.rules``.
        area: points of the board.
        komi: points for the side to move, negative if it gives komi; a multiple of 0.5.
    Returns:
        0.5 for half a point above such a margin, -0.5 for half a point below, 0 on it and in the middle between two;
        0 under territory scoring, where margins have any parity.
    """
    if rules[RULE_SCORING] != SCORING_AREA:
        return 0.0
    quarter = (np.int64(2.0 * komi) - 2 * (area & 1)) & 3
    return 0.5 if quarter == 1 else (-0.5 if quarter == 3 else 0.0)


@kernel
def _touches(head, point, stride, chain):
    """Whether a point is adjacent to a chain."""
    return (
        head[point - stride] == chain
        or head[point - 1] == chain
        or head[point + 1] == chain
        or head[point + stride] == chain
    )


@inlined_kernel
def _new_liberty(head, point, stride, widest, marks, seen):
    """1 for a new liberty, which is marked ``seen``; 0 if it is marked already or is a liberty of chain ``widest``."""
    if marks[point] == seen or _touches(head, point, stride, widest):
        return 0
    marks[point] = seen
    return 1


@inlined_kernel
def after_move(board, point, color, most, scratch):
    """Effects of a legal move, without playing it: stones captured, stones and liberties of the new chain.

    1. Of the adjacent chains, the opponent's in atari are captured, the own ones joined.
    2. The own chain with the most liberties, ``widest``, keeps all of them except the point played. Often
       these suffice.
    3. Otherwise only additional liberties are walked: empty points adjacent to the new stone and to the other own
       chains, and captured stones adjacent to the new chain.

    A chain is marked ``seen`` by its head, and ``walked`` once its liberties are counted; a counted empty point is
    marked ``seen``. Heads are stones, so one array serves chains and empty points. A suicide returns the stones and
    liberties of the chain before its removal.

    Args:
        point: int, an empty point.
        color: BLACK or WHITE, the side that plays there.
        most: int, at least 1: limit up to which liberties are counted.
        scratch: has ``marks``, int64[L], and ``stamp``, int64[1], which rises with each call, so that marks need no
            clearing; 32 bits would overflow within minutes of encoding.
    """
    stride = board.meta[META_STRIDE]
    cells, head, libs, marks = board.color, board.head, board.libs, scratch.marks
    seen = scratch.stamp[0] + 1
    walked = seen + 1
    scratch.stamp[0] = walked
    marks[point] = seen
    # 1
    captured, stones, widest = 0, 1, -1
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        chain = head[neighbour]
        if chain == 0 or marks[chain] == seen:
            continue
        marks[chain] = seen
        if cells[chain] == color:
            stones += board.stones[chain]
            if widest < 0 or libs[chain] > libs[widest]:
                widest = chain
        elif libs[chain] == 1:
            captured += board.stones[chain]
    # 2
    liberties = 0
    if widest > 0:
        liberties = libs[widest] - 1
        marks[widest] = walked
    # 3
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        there, chain = cells[neighbour], np.int64(head[neighbour])
        if there == EMPTY:
            liberties += _new_liberty(head, neighbour, stride, widest, marks, seen)
        if chain == 0 or marks[chain] == walked or (there != color and libs[chain] > 1):
            continue
        marks[chain] = walked
        stone = chain
        while liberties < most:
            for beside in (stone - stride, stone - 1, stone + 1, stone + stride):
                if there == color:
                    if cells[beside] == EMPTY:
                        liberties += _new_liberty(head, beside, stride, widest, marks, seen)
                elif beside == point or (cells[beside] == color and marks[head[beside]] >= seen):
                    liberties += 1
                    break
            stone = np.int64(board.next[stone])
            if stone == chain:
                break
    return captured, stones, min(liberties, most)
