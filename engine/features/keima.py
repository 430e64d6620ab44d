"""Keima's own input planes, "keima-2", for any board size, komi and rules.

All planes are from the view of the side to move ("own"). Tactics that would need a deep network are input planes:
liberties, capture and self-atari sizes and liberties after a move as in AlphaGo (Extended Data Table 2), and ladders
read to the end. Komi, passes and rules are global values, so one network plays under all of them.

"keima-1", the input of older networks, lacks the last global value.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.features.common import (
    after_move,
    komi_wave,
    legality_key,
    mark_recent_moves,
    named,
    recent_moves_key,
    rules_key,
)
from engine.features.symmetry import apply_symmetry
from engine.go.board import (
    META_CAPTURED_BLACK,
    META_CAPTURED_WHITE,
    META_KO_COLOR,
    META_KO_POINT,
    META_SIZE,
    is_eye,
    is_legal,
)
from engine.go.geometry import EMPTY, MIN_SIZE, PASS, WHITE, cell_count, point_of
from engine.go.ladder import LadderScratch, ladder_planes, new_ladder_scratch
from engine.go.position import META_HANDICAP, META_N_MOVES, META_TO_MOVE, apply_rules, new_position, repeats
from engine.go.random import mix
from engine.go.rules import (
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    RULE_KO,
    RULE_SCORING,
    RULE_SUICIDE,
    RULE_TAX,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_SEKI,
    Rules,
)
from engine.go.scoring import white_komi
from engine.system.arrays import allocate, fill_items
from engine.system.jit import kernel

ON_BOARD, OWN, OPPONENT = 0, 1, 2
LIBERTIES = 3
"""Planes 3, 4, 5: stones of chains with 1, 2, 3 liberties"""
RECENT = 6
"""Planes 6 to 10: the last five moves, latest first"""
RECENT_MOVES = 5
FORBIDDEN = 11
"""Plane of empty points forbidden by ko or superko alone"""
SENSIBLE = 12
"""Plane of legal moves that do not fill an own eye"""
CAPTURE = 13
"""Planes 13, 14, 15: a move here captures 1, 2, 3 or more stones"""
SELF_ATARI = 16
"""Planes 16, 17: a move here leaves 1, 2 or more own stones in atari"""
AFTER = 18
"""Planes 18, 19, 20: after a move here its chain has 2, 3, 4 or more liberties"""
LADDER_CAPTURE, LADDER_ESCAPE = 21, 22
PLANES = 23
PLANE_NAMES = (
    "on board", *named("stones", "own", "opponent's"), *named("liberties", 1, 2, 3),
    *named("recent moves", 1, 2, 3, 4, 5), "forbidden", "sensibleness", *named("capture size", 1, 2, "3 or more"),
    *named("self-atari size", 1, "2 or more"), *named("liberties after move", 2, 3, "4 or more"),
    *named("ladders", "capture", "escape"),
)  # fmt: skip

KOMI, LAST_PASSED, PASSED_BEFORE, TERRITORY, SEKI_TAX, GROUP_TAX, SUICIDE_LEGAL, SUPERKO = range(8)
WAVE = 8
"""Index of the global value that :func:`engine.features.common.komi_wave` computes"""
GLOBALS, GLOBALS_1 = 9, 8
"""Numbers of global values of keima-2 and of keima-1"""
GLOBAL_NAMES = (
    "komi", "last move a pass", "move before a pass", "territory scoring", "seki tax", "group tax", "suicide legal",
    "superko", "komi wave",
)  # fmt: skip
OF_RULES = (TERRITORY, SEKI_TAX, GROUP_TAX, SUICIDE_LEGAL, SUPERKO)
"""Indices of the global values that depend on the rules alone"""
KOMI_SCALE = 15.0


class KeimaScratch(NamedTuple):
    """Working memory for boards of one size; one per thread."""

    ladder: LadderScratch
    """working memory of the ladder search"""
    capture: Annotated[np.ndarray, "uint8[N*N]"]
    """1 at moves that capture a chain in a ladder, policy order"""
    escape: Annotated[np.ndarray, "uint8[N*N]"]
    """1 at moves by which a chain escapes from a ladder, policy order"""
    marks: Annotated[np.ndarray, "int64[L]"]
    """marks of the board's L cells for :func:`engine.features.common.after_move`"""
    stamp: Annotated[np.ndarray, "int64[1]"]
    """latest value written to ``marks`` by :func:`engine.features.common.after_move`"""


def new_scratch(size: int) -> KeimaScratch:
    """Working memory for :func:`encode` on boards of one size; one per thread."""
    return allocate(KeimaScratch, ladder=new_ladder_scratch(size), N=size, L=int(cell_count(size)))


@kernel
def encode(position, symmetry, scratch, planes, globals_):
    """Write the planes and globals of a position for the side to move.

    Args:
        symmetry: 0 to 7.
        scratch: :class:`KeimaScratch` of this board size, the caller's own.
        planes: float32[PLANES, N, N], overwritten.
        globals_: float32[GLOBALS] or float32[GLOBALS_1], overwritten.
    """
    board, rules = position.board, position.rules
    size = board.meta[META_SIZE]
    color = position.meta[META_TO_MOVE]
    flat = planes.reshape(PLANES, size * size)
    fill_items(planes.reshape(-1), 0.0)
    ladder_planes(board, color, scratch.ladder, scratch.capture, scratch.escape)
    suicide = rules[RULE_SUICIDE] == 1
    ko = board.meta[META_KO_POINT] if board.meta[META_KO_COLOR] == color else PASS
    for index in range(size * size):
        point = point_of(index, size)
        at = apply_symmetry(index, size, symmetry)
        flat[ON_BOARD, at] = 1.0
        there = board.color[point]
        if there != EMPTY:
            flat[OWN if there == color else OPPONENT, at] = 1.0
            liberties = board.libs[board.head[point]]
            if liberties <= 3:
                flat[LIBERTIES + liberties - 1, at] = 1.0
            continue
        on_board_legal = is_legal(board, point, color, suicide)
        if not on_board_legal or repeats(position, point, color):
            flat[FORBIDDEN, at] = on_board_legal or point == ko
            continue
        flat[SENSIBLE, at] = not is_eye(board, point, color)
        captured, stones, liberties = after_move(board, point, color, 4, scratch)
        if captured > 0:
            flat[CAPTURE + min(captured, 3) - 1, at] = 1.0
        if liberties == 1:
            flat[SELF_ATARI + min(stones, 2) - 1, at] = 1.0
        elif liberties > 1:
            flat[AFTER + min(liberties, 4) - 2, at] = 1.0
        flat[LADDER_CAPTURE, at] = scratch.capture[index]
        flat[LADDER_ESCAPE, at] = scratch.escape[index]
    n = position.meta[META_N_MOVES]
    mark_recent_moves(position, symmetry, RECENT_MOVES, flat[RECENT:])
    komi = white_komi(position)
    own_komi = komi if color == WHITE else -komi
    globals_[KOMI] = own_komi / KOMI_SCALE
    if globals_.shape[0] > WAVE:
        globals_[WAVE] = komi_wave(rules, size * size, own_komi)
    globals_[LAST_PASSED] = n > 0 and position.moves[n - 1] == PASS
    globals_[PASSED_BEFORE] = n > 1 and position.moves[n - 2] == PASS
    globals_[TERRITORY] = rules[RULE_SCORING] == SCORING_TERRITORY
    globals_[SEKI_TAX] = rules[RULE_TAX] == TAX_SEKI
    globals_[GROUP_TAX] = rules[RULE_TAX] == TAX_ALL
    globals_[SUICIDE_LEGAL] = suicide
    globals_[SUPERKO] = rules[RULE_KO] == KO_POSITIONAL or rules[RULE_KO] == KO_SITUATIONAL
    if globals_[SUPERKO] == 0.0 and rules[RULE_KO] != KO_SIMPLE:
        raise ValueError("unknown kind of ko")


def globals_of_rules(rules: Rules) -> dict[int, float]:
    """The global values ``OF_RULES``, which depend on the rules alone, by index."""
    position = new_position(MIN_SIZE)
    apply_rules(position, rules, 0.0)
    planes, globals_ = np.zeros((PLANES, MIN_SIZE, MIN_SIZE), np.float32), np.zeros(GLOBALS, np.float32)
    encode(position, 0, new_scratch(MIN_SIZE), planes, globals_)
    return {number: float(globals_[number]) for number in OF_RULES}


@kernel
def key(position, scratch):
    """uint64 hash of everything :func:`encode` reads.

    That is the stones, the side to move, what decides legality, recent moves, rules, handicap and, under territory
    scoring, prisoners.
    """
    board = position.board
    word = rules_key(position, mix(legality_key(position) ^ recent_moves_key(position, RECENT_MOVES)))
    word = mix(word ^ np.uint64(position.meta[META_HANDICAP]))
    if position.rules[RULE_SCORING] == SCORING_TERRITORY:
        word = mix(word ^ np.uint64(board.meta[META_CAPTURED_BLACK] * 4096 + board.meta[META_CAPTURED_WHITE]))
    return word
