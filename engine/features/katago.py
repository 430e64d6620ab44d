"""KataGo's input, version 7: 22 planes and 19 global values, equal bit for bit to those of KataGo 1.17.

All planes are 0 or 1 and from the view of the side to move ("own"):

* 0 on the board; 1, 2 own and opponent's stones; 3, 4, 5 stones of chains with 1, 2, 3 liberties;
* 6 points that only ko or superko forbids;
* 9 to 13 the last five moves, latest first (:mod:`engine.features.katago_history`);
* 14, 15, 16 stones that are caught in a ladder now, one and two moves ago; 17 moves by which the side to move catches
  a chain of two liberties (:mod:`engine.features.katago_ladders`);
* 18, 19 own and opponent's area (:mod:`engine.features.katago_areas`).

Global values:

* 0 to 4 which of the last five moves were passes;
* 5 the komi for the side to move, over 20: with the handicap bonus, half a point for the button once it is taken, and
  under territory scoring the stones Black has played more than White, which makes it an area komi;
* 6, 7 superko, and which (0.5 positional, -0.5 situational); 8 suicide is legal; 9 territory scoring; 10, 11 seki tax,
  group tax; 14 a pass would end the game; 17 the button can be taken;
* 18 under area scoring a wave that tells how near the komi is to one that makes draws possible.

7, 8, 20, 21 and 12, 13 belong to the phases in which KataGo plays on after the end of territory games, and 15, 16 to
games of unequal search; we have neither, so they are 0. As for KataGo's ``kata-raw-nn``, passes end the game wherever
they do by the rules, but for friendly passing.

There are two encodings. Networks differ in how they were shown pass-alive areas: some always as if suicide were legal,
whatever the rules, which their file tells (``preferPassAliveUnderSuicideRules``). Networks for which territory beside a
chain in atari does not count (``preferExcludeTerritoryAdjacentToAtari``) differ in 18 and 19 alone, and there in those
phases alone.

Source: KataGo, ``NNInputs::fillRowV7`` in cpp/neuralnet/nninputs.cpp: the input specification of model version 8 on.
"""

from typing import NamedTuple

import numpy as np

from engine.features.katago_areas import mark_areas
from engine.features.katago_history import course
from engine.features.katago_ladders import mark_caught
from engine.features.key_parts import legality_key, recent_moves_key
from engine.features.parity import komi_wave
from engine.features.symmetry import apply_symmetry, symmetry_steps
from engine.go.arrays import copy_items, fill_items
from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE, copy_board, is_legal
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, index_of, point_at
from engine.go.ladder_search import LadderScratch, new_ladder_scratch
from engine.go.life import LifeScratch, new_life_scratch
from engine.go.position import META_BUTTON_TAKER, META_N_MOVES, META_TO_MOVE, repeats
from engine.go.rewind import past_board
from engine.go.rules import (
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    RULE_BUTTON,
    RULE_FIELDS,
    RULE_KO,
    RULE_SCORING,
    RULE_SUICIDE,
    RULE_TAX,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_SEKI,
)
from engine.go.scoring import owner_sign, white_komi
from engine.go.splitmix import mix
from engine.system.jit import kernel

ON_BOARD, OWN, OPPONENT = 0, 1, 2
LIBERTIES = 3
"""3, 4, 5: stones of chains with 1, 2, 3 liberties"""
FORBIDDEN = 6
RECENT = 9
"""9 to 13: the last five moves, latest first"""
CAUGHT = 14
"""14, 15, 16: stones caught in a ladder now, one and two moves ago"""
WORKING = 17
OWN_AREA, OPPONENT_AREA = 18, 19
PLANES = 22

PASSED = 0
"""0 to 4: the last five moves that were passes"""
KOMI, SUPERKO, SUPERKO_KIND, SUICIDE_LEGAL, TERRITORY, SEKI_TAX, GROUP_TAX = range(5, 12)
PASS_ENDS, BUTTON_OPEN, WAVE = 14, 17, 18
GLOBALS = 19
KOMI_SCALE = 20.0
KOMI_MARGIN = 20.0
"""Komi is shown as no more than the board's points and this."""
BOARDS = 3
"""Boards whose ladders show: the current one and two before"""


class KatagoScratch(NamedTuple):
    """Working memory for boards of one size; one per thread."""

    life: LifeScratch
    """for areas"""
    ladder: LadderScratch
    """for ladders; its board holds the boards that are read"""
    owner: np.ndarray
    """int8[N*N]: 1 Black's, -1 White's"""
    marks: np.ndarray
    """uint8[BOARDS + 2, N*N]: stones caught in a ladder, latest board first; ataris that work on the current board;
    those of earlier boards, which do not show"""


class KatagoSuicideScratch(NamedTuple):
    """The same for :func:`encode_suicide`."""

    katago: KatagoScratch
    """the working memory itself"""


def new_scratch(size: int) -> KatagoScratch:
    """Working memory for :func:`encode` on boards of one size; one per thread."""
    area = size * size
    return KatagoScratch(
        new_life_scratch(size),
        new_ladder_scratch(size),
        np.zeros(area, np.int8),
        np.zeros((BOARDS + 2, area), np.uint8),
    )


def new_suicide_scratch(size: int) -> KatagoSuicideScratch:
    """Working memory for :func:`encode_suicide`."""
    return KatagoSuicideScratch(new_scratch(size))


@kernel
def _white_komi(position):
    """White's compensation as if area were counted, the button included."""
    return white_komi(position) - 0.5 * owner_sign(position.meta[META_BUTTON_TAKER])


@kernel
def _write_globals(position, shown, ends, globals_):
    """Write the global values; ``shown`` and ``ends`` are those of :func:`engine.features.katago_history.course`."""
    rules, area = position.rules, position.board.meta[META_SIZE] * position.board.meta[META_SIZE]
    fill_items(globals_, 0.0)
    n = position.meta[META_N_MOVES]
    for age in range(shown):
        globals_[PASSED + age] = position.moves[n - 1 - age] == PASS
    most = np.float64(area + KOMI_MARGIN)
    komi = max(-most, min(most, _white_komi(position)))
    if position.meta[META_TO_MOVE] != WHITE:
        komi = -komi
    globals_[KOMI] = komi / KOMI_SCALE
    if rules[RULE_KO] == KO_POSITIONAL:
        globals_[SUPERKO], globals_[SUPERKO_KIND] = 1.0, 0.5
    elif rules[RULE_KO] == KO_SITUATIONAL:
        globals_[SUPERKO], globals_[SUPERKO_KIND] = 1.0, -0.5
    elif rules[RULE_KO] != KO_SIMPLE:
        raise ValueError("unknown kind of ko")
    globals_[SUICIDE_LEGAL] = rules[RULE_SUICIDE]
    globals_[TERRITORY] = rules[RULE_SCORING] == SCORING_TERRITORY
    globals_[SEKI_TAX] = rules[RULE_TAX] == TAX_SEKI or rules[RULE_TAX] == TAX_ALL
    globals_[GROUP_TAX] = rules[RULE_TAX] == TAX_ALL
    globals_[PASS_ENDS] = ends
    globals_[BUTTON_OPEN] = rules[RULE_BUTTON] == 1 and position.meta[META_BUTTON_TAKER] == 0
    globals_[WAVE] = komi_wave(rules, area, komi)


@kernel
def _read_ladders(position, shown, scratch, ladder):
    """Read the ladders of the current board, which is on the ladder board, and of those before that show."""
    marks, size = scratch.marks, position.board.meta[META_SIZE]
    mark_caught(ladder, position.meta[META_TO_MOVE], marks[0], marks[BOARDS])
    for age in range(1, BOARDS):
        if age <= shown:
            past_board(position, age, ladder.board, scratch.life.stack)
            mark_caught(ladder, EMPTY, marks[age], marks[BOARDS + 1])
        else:
            copy_items(marks[age], marks[age - 1], size * size)


@kernel
def _write_points(position, symmetry, scratch, flat):
    """Write what every point shows but for the last moves."""
    board, color = position.board, position.meta[META_TO_MOVE]
    size, suicide = board.meta[META_SIZE], position.rules[RULE_SUICIDE] == 1
    own_area = 1 if color == BLACK else -1
    ko = board.meta[META_KO_POINT] if board.meta[META_KO_COLOR] == color else PASS
    corner, down, right = symmetry_steps(size, symmetry)
    index = 0
    for row in range(size):
        at, first = corner + row * down - right, point_at(row, 0, size)
        for point in range(first, first + size):
            at += right
            flat[ON_BOARD, at] = 1.0
            if scratch.owner[index] != 0:
                flat[OWN_AREA if scratch.owner[index] == own_area else OPPONENT_AREA, at] = 1.0
            there = board.color[point]
            if there == EMPTY:
                flat[WORKING, at] = scratch.marks[BOARDS, index]
                if point == ko or (is_legal(board, point, color, suicide) and repeats(position, point, color)):
                    flat[FORBIDDEN, at] = 1.0
            else:
                flat[OWN if there == color else OPPONENT, at] = 1.0
                liberties = board.libs[board.head[point]]
                if liberties <= 3:
                    flat[LIBERTIES + liberties - 1, at] = 1.0
            for age in range(BOARDS):
                flat[CAUGHT + age, at] = scratch.marks[age, index]
            index += 1


@kernel
def encode(position, symmetry, scratch, planes, globals_):
    """Write the planes and globals of a position for the side to move.

    50 us for a middle-game position on 19x19: the ladders of three boards take 37, areas 10.

    Args:
        symmetry: 0 to 7.
        scratch: :class:`KatagoScratch` of this board size, the caller's own.
        planes: float32[PLANES, N, N], overwritten.
        globals_: float32[GLOBALS], overwritten.
    """
    _encode(position, symmetry, scratch, position.rules[RULE_SUICIDE] == 1, planes, globals_)


@kernel
def encode_suicide(position, symmetry, scratch, planes, globals_):
    """:func:`encode` with the areas that there were if suicide was legal, whatever the rules.

    Args:
        scratch: :class:`KatagoSuicideScratch`; the others as for :func:`encode`.
    """
    _encode(position, symmetry, scratch.katago, True, planes, globals_)


@kernel
def _encode(position, symmetry, scratch, suicide_areas, planes, globals_):
    """:func:`encode` with areas as if suicide was legal or not."""
    ladder = scratch.ladder
    board, size = ladder.board, position.board.meta[META_SIZE]
    flat = planes.reshape(PLANES, size * size)
    fill_items(planes.reshape(-1), 0.0)
    shown, ends = course(position)
    copy_board(board, position.board)
    if board.meta[META_KO_COLOR] != position.meta[META_TO_MOVE]:
        board.meta[META_KO_POINT] = PASS
    mark_areas(board, position.rules, suicide_areas, scratch.life, scratch.owner)
    _read_ladders(position, shown, scratch, ladder)
    _write_points(position, symmetry, scratch, flat)
    n = position.meta[META_N_MOVES]
    for age in range(shown):
        point = position.moves[n - 1 - age]
        if point != PASS:
            flat[RECENT + age, apply_symmetry(index_of(point, size), size, symmetry)] = 1.0
    _write_globals(position, shown, ends, globals_)


@kernel
def key(position):
    """uint64 that covers all :func:`encode` reads.

    The last moves, the boards between them and the one before those tell every ko that was taken meanwhile.
    """
    rules, n = position.rules, position.meta[META_N_MOVES]
    shown, ends = course(position)
    word = mix(legality_key(position) ^ np.uint64(2 * shown + ends))
    word = mix(word ^ recent_moves_key(position, shown))
    for age in range(1, min(shown, BOARDS - 1) + 1):
        word = mix(word ^ position.hashes[n - age])
        if n > age:
            word = mix(word ^ position.hashes[n - age - 1])
    for i in range(RULE_FIELDS):
        word = mix(word ^ np.uint64(rules[i]))
    word = mix(word ^ np.uint64(np.int64(2.0 * _white_komi(position))))
    return mix(word ^ np.uint64(position.meta[META_BUTTON_TAKER]))
