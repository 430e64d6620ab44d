"""KataGo's input, version 7: 22 planes and 19 global values, equal bit for bit to those of KataGo 1.17.

All planes are 0 or 1 and from the view of the side to move ("own"):

* 0 on the board; 1, 2 own and opponent's stones; 3, 4, 5 stones of chains with 1, 2, 3 liberties;
* 6 points forbidden by ko or superko alone;
* 9 to 13 the last five moves, latest first;
* 14, 15, 16 stones caught in a ladder now, one and two moves ago; 17 moves by which the side to move catches a chain of
  two liberties in a ladder;
* 18, 19 own and opponent's area.

Global values:

* 0 to 4 which of the last five moves were passes;
* 5 the komi for the side to move, divided by 20: with the handicap bonus, half a point for the button once it is taken,
  and under territory scoring the stones Black has played more than White, which makes it an area komi;
* 6, 7 superko, and which (0.5 positional, -0.5 situational); 8 suicide is legal; 9 territory scoring; 10, 11 seki tax,
  group tax; 14 a pass would end the game; 17 the button can be taken;
* 18 under area scoring a wave that shows the distance of the komi from the nearest one that makes draws possible.

Planes 7, 8, 20, 21 and globals 12, 13 describe phases in which KataGo continues after the end of territory games,
globals 15, 16 games of unequal search. Keima has neither, so these inputs are 0. As in KataGo's ``kata-raw-nn``, passes
end the game as the rules say, except for friendly passing.

There are two encodings of pass-alive areas (18, 19): by the rules in force, or as if suicide were legal, which a
network's file states (``preferPassAliveUnderSuicideRules``). Networks trained without territory beside a chain in atari
(``preferExcludeTerritoryAdjacentToAtari``) have different inputs 18 and 19 only in those later phases.

Source: KataGo, ``NNInputs::fillRowV7`` in cpp/neuralnet/nninputs.cpp: the input specification of model version 8 on.

**Areas** (18, 19) without a tax are Tromp-Taylor areas, except for certainly dead stones: a region of a colour
(connected points without its stones) belongs to it, including the opponent's stones, if all chains around it are
pass-alive and at most one of its points touches none of them, so that no two eyes fit in. With a tax only independent
life counts, and stones. Connected points of one owner are not independent if one of them touches a dame or is a stone
of the owner in atari; of such areas only the owner's stones are shown. The two points of the group tax are not
subtracted. Under territory scoring KataGo shows areas only in the phases after the end of a game, so here there are
none. Source: ``Board::calculateArea``, ``Board::calculateIndependentLifeArea``.

**History** (9 to 13, 14). An *alternating run* is the latest sequence of moves in which the two sides alternate. As in
KataGo, a side that moves twice, or out of turn, begins a new run, and earlier moves are not shown. (The rules still
apply to the whole game, as superko does.) A game is *over* for KataGo after the n-th move of its run if

* the last two moves were passes, one that took the button not counted;
* under simple ko, the last move was a pass and its player had passed in the same position before; or
* under simple ko, the position occurs for the third time since the latest pass.

If the game continues nevertheless, moves before its end are not shown; nor are any moves at a position whose history is
hidden (:func:`engine.go.position.hide_course`). Source: ``BoardHistory``.

**Ladders** (14 to 17). A chain of either colour is *caught* if it is in atari and the runner, to move, cannot escape,
or if it has two liberties and the hunter, to move, has an atari that works. The side to move in the game does not
matter. Ko bans are dropped before the runner's first move, so the hunter's first move may take a ko; later the runner
wins all kos. KataGo ends some reads early, and about one in a million wrongly: if the runner's extension is also
a capture, KataGo takes the last capture found for the extension, which depends on the history of its board object.
Reads here depend on the position alone: in 30,000 positions of random games one chain differs. Source: ``iterLadders``
and ``Board::searchIsLadderCaptured``.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.features import profiles
from engine.features.common import komi_wave, legality_key, mark_recent_moves, named, recent_moves_key, rules_key
from engine.features.symmetry import symmetry_steps
from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE, META_STRIDE, copy_board, is_legal
from engine.go.geometry import BLACK, BORDER, EMPTY, PASS, WHITE, index_of, point_at, point_of
from engine.go.ladder import CAPTURED, SAVED_ROOT, LadderScratch, new_ladder_scratch, push_ataris, room, search_ladder
from engine.go.life import LifeScratch, find_life, new_life_scratch
from engine.go.position import META_BARE_AT, META_BUTTON_TAKER, META_N_MOVES, META_SEEN_FROM, META_TO_MOVE, repeats
from engine.go.random import mix
from engine.go.rewind import past_board
from engine.go.rules import (
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    RULE_BUTTON,
    RULE_FRIENDLY_PASS,
    RULE_KO,
    RULE_SCORING,
    RULE_SUICIDE,
    RULE_TAX,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_NONE,
    TAX_SEKI,
)
from engine.go.scoring import area_owner, owner_sign, white_komi
from engine.nets.files.header import PROFILE_VALUES
from engine.system.arrays import allocate, copy_items, fill_items
from engine.system.jit import kernel


@kernel
def mark_areas(board, rules, suicide, scratch, owner):
    """Write the owner of each point, for the area planes 18 and 19; no owners under territory scoring.

    Args:
        board: the caller's own; its data at empty points is overwritten.
        rules: ``Position.rules``.
        suicide: bool, whether pass-alive assumes that suicide of several stones is legal.
        scratch: :class:`engine.go.life.LifeScratch` of this board size, the caller's own.
        owner: int8[N*N] in policy order, overwritten: 1 = Black's, -1 = White's, 0 = neither's.
    """
    if rules[RULE_SCORING] == SCORING_TERRITORY:
        fill_items(owner, 0)
        return
    area_owner(board, owner)
    for color in (BLACK, WHITE):
        _claim_dead(board, color, suicide, scratch, owner)
    if rules[RULE_TAX] != TAX_NONE:
        _give_up_dependent(board, scratch, owner)


@kernel
def _claim_dead(board, color, suicide, scratch, owner):
    """Give a colour the regions with dead opponent's stones: enclosed by pass-alive chains, too small for two eyes."""
    size = board.meta[META_SIZE]
    find_life(board, color, suicide, scratch)
    for index in range(size * size):
        region = scratch.region[point_of(index, size)]
        if region != 0 and scratch.holds[region] and scratch.region_lives[region] and scratch.inner[region] < 2:
            owner[index] = owner_sign(color)


@kernel
def _give_up_dependent(board, scratch, owner):
    """Set the owner to 0 in areas without independent life, except on the owner's stones.

    During the search, the owner of a point to be removed is doubled, which marks the point as visited.
    """
    size = board.meta[META_SIZE]
    for index in range(size * size):
        if abs(owner[index]) == 1 and _is_dependent(board, index, owner):
            _double(board, index, scratch.stack, owner)
    for index in range(size * size):
        if abs(owner[index]) == 2:
            there = board.color[point_of(index, size)]
            owner[index] = owner[index] // 2 if owner_sign(there) * owner[index] > 0 else 0


@kernel
def _is_dependent(board, index, owner):
    """Whether an owned point makes its area dependent: it is the owner's stone in atari, or touches a dame."""
    size, stride, cells = board.meta[META_SIZE], board.meta[META_STRIDE], board.color
    point = point_of(index, size)
    if owner_sign(cells[point]) == owner[index] and board.libs[board.head[point]] == 1:
        return True
    for beside in (point - stride, point - 1, point + 1, point + stride):
        if cells[beside] == EMPTY and owner[index_of(beside, size)] == 0:
            return True
    return False


@kernel
def _double(board, index, stack, owner):
    """Double the owner of a point and of all points connected to it that have the same owner."""
    size, stride = board.meta[META_SIZE], board.meta[META_STRIDE]
    mine = owner[index]
    owner[index] = 2 * mine
    stack[0] = point_of(index, size)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        point = np.int64(stack[waiting])
        for beside in (point - stride, point - 1, point + 1, point + stride):
            if board.color[beside] == BORDER:
                continue
            at = index_of(beside, size)
            if owner[at] == mine:
                owner[at] = 2 * mine
                stack[waiting] = beside
                waiting += 1


MOST_SHOWN = 5


@kernel
def course(position):
    """The part of the game's history that the input shows.

    Under area rules with friendly passing, a pass that would end the game is treated as one that does not, and no moves
    are shown.

    Returns:
        tuple of int and bool: moves shown, 0 to MOST_SHOWN, and whether the input says that a pass would end the game.
    """
    rules, n = position.rules, position.meta[META_N_MOVES]
    first = _run_start(position)
    counts_from = max(first, position.meta[META_SEEN_FROM])
    passes = _passes(position, counts_from, n)
    again = _passed_here_before(position, counts_from, n)
    ends = passes >= 1 or again
    if passes == 1 and not again and rules[RULE_FRIENDLY_PASS] == 1 and rules[RULE_SCORING] == SCORING_AREA:
        return 0, False
    shown = MOST_SHOWN
    for back in range(MOST_SHOWN - 1):
        if n - back > first and _is_over(position, counts_from, n - back):
            shown = 1 + back
            break
    return (0 if n == position.meta[META_BARE_AT] else min(shown, n - first)), ends


@kernel
def _run_start(position):
    """Index of the alternating run's first move; the number of moves if the side to move also made the last move."""
    n, color = position.meta[META_N_MOVES], position.meta[META_TO_MOVE]
    first = n
    while first > 0 and position.colors[first - 1] != color:
        first -= 1
        color = 3 - color
    return first


@kernel
def _passes(position, counts_from, n):
    """Number of consecutive passes at the end of the first ``n`` moves; moves before ``counts_from`` do not count."""
    passes = 0
    while n - passes > counts_from and position.moves[n - passes - 1] == PASS:
        passes += 1
    return passes


@kernel
def _passed_here_before(position, counts_from, n):
    """Whether the side to move after ``n`` moves has passed in the same position before; False under superko."""
    if position.rules[RULE_KO] != KO_SIMPLE:
        return False
    for before in range(n - 2, counts_from - 1, -2):
        if position.moves[before] == PASS and position.hashes[before] == position.hashes[n]:
            return True
    return False


@kernel
def _is_over(position, counts_from, n):
    """Whether the game is over for KataGo after its first ``n`` moves, n >= 1."""
    if position.moves[n - 1] == PASS:
        return _passes(position, counts_from, n) >= 2 or (
            n > counts_from and _passed_here_before(position, counts_from, n - 1)
        )
    if position.rules[RULE_KO] != KO_SIMPLE:
        return False
    times, before = 1, n
    while before - 2 >= counts_from and position.moves[before - 1] != PASS and position.moves[before - 2] != PASS:
        before -= 2
        times += position.hashes[before] == position.hashes[n]
    return times >= 3


READ_NODES = 25000
"""Maximum number of moves tried in one ladder read, as in KataGo; a chain whose read is unfinished is not caught."""


@kernel
def mark_caught(scratch, color, caught, working):
    """Mark all chains that are caught in a ladder.

    1. List the candidates, each with a first move of the hunter's: an atari, or a pass if the chain is in atari.
    2. Read them one by one.

    Args:
        scratch: :class:`engine.go.ladder.LadderScratch`, the caller's own; ladders are read on its board, which is the
            same afterwards.
        color: the side whose working ataris are marked; EMPTY = no side.
        caught: uint8[N*N], policy order, overwritten: 1 on the stones of caught chains.
        working: uint8[N*N], overwritten: 1 where an atari of ``color`` catches a chain of two liberties.
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
    """Write the ladders to read into ``candidates``, pairs of a chain and a first move; returns the length written."""
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
    """Set ``marks`` to 1 on the stones of a chain."""
    size = board.meta[META_SIZE]
    stone = np.int64(chain)
    for _ in range(board.stones[board.head[chain]]):
        marks[index_of(stone, size)] = 1
        stone = np.int64(board.next[stone])


ON_BOARD, OWN, OPPONENT = 0, 1, 2
LIBERTIES = 3
"""Planes 3, 4, 5: stones of chains with 1, 2, 3 liberties"""
FORBIDDEN = 6
RECENT = 9
"""Planes 9 to 13: the last five moves, latest first"""
CAUGHT = 14
"""Planes 14, 15, 16: stones caught in a ladder now, one and two moves ago"""
WORKING = 17
OWN_AREA, OPPONENT_AREA = 18, 19
PLANES = 22
PLANE_NAMES = (
    "on board", *named("stones", "own", "opponent's"), *named("liberties", 1, 2, 3), "forbidden",
    *named("unused", 7, 8), *named("recent moves", *range(1, 6)),
    *named("caught in a ladder", "now", "1 move ago", "2 moves ago"), "ladder capture",
    *named("area", "own", "opponent's"), *named("unused", 20, 21),
)  # fmt: skip

PASSED = 0
"""Global values 0 to 4: whether each of the last five moves was a pass, latest first"""
KOMI, SUPERKO, SUPERKO_KIND, SUICIDE_LEGAL, TERRITORY, SEKI_TAX, GROUP_TAX = range(5, 12)
PASS_ENDS, BUTTON_OPEN, WAVE = 14, 17, 18
GLOBALS = 19
GLOBAL_NAMES = (
    *named("recent passes", *range(1, 6)), "komi", "superko", "kind of superko", "suicide legal", "territory scoring",
    "seki tax", "group tax", *named("unused", 12, 13), "a pass ends the game", *named("unused", 15, 16), "button",
    "komi wave",
)  # fmt: skip
PROFILE_NAMES = named("human profile", *range(PROFILE_VALUES))
KOMI_SCALE = 20.0
KOMI_MARGIN = 20.0
"""Komi is clamped, for either side, to the board's number of points plus this many points."""
BOARDS = 3
"""Number of boards whose ladders are shown: the current one and the two before it"""


class KatagoScratch(NamedTuple):
    """Working memory for boards of one size; one per thread."""

    life: LifeScratch
    """working memory of :func:`mark_areas`"""
    ladder: LadderScratch
    """working memory of :func:`mark_caught`; its board is a copy of the board on which ladders are read"""
    owner: Annotated[np.ndarray, "int8[N*N]"]
    """owners of points as :func:`mark_areas` writes them: 1 = Black's, -1 = White's, 0 = neither's"""
    marks: Annotated[np.ndarray, "uint8[BOARDS + 2, N*N]"]
    """rows 0 to 2: stones caught in a ladder, latest board first; row 3: working ataris on the current board; row 4:
    working ataris on an earlier board, which are not shown"""
    suicide_areas: Annotated[np.ndarray, "uint8[1]"]
    """1 = areas as if suicide were legal, whatever the rules"""
    profile: Annotated[np.ndarray, "float32[2, V]"]
    """values of a human profile with Black and with White to move (:mod:`engine.features.profiles`); V is 0 for
    networks that know none"""
    profile_key: Annotated[np.ndarray, "int64[2]"]
    """hashes of the rows of ``profile``; 0 without a profile"""


def new_scratch(size: int, suicide_areas: bool = False, profile: str = "") -> KatagoScratch:
    """Working memory for :func:`encode` on boards of one size; one per thread.

    Args:
        suicide_areas: encode areas as if suicide were legal, whatever the rules.
        profile: name of a human profile; empty = none.
    """
    values = PROFILE_VALUES if profile else 0
    scratch = allocate(KatagoScratch, life=new_life_scratch(size), ladder=new_ladder_scratch(size), N=size, V=values)
    scratch.suicide_areas[0] = suicide_areas
    if profile:
        rows = profiles.profile_values(profile, size)
        scratch.profile[:], scratch.profile_key[:] = rows, profiles.profile_keys(rows)
    return scratch


@kernel
def _white_komi(position):
    """Komi for White, in points of area counting, with handicap bonus and button."""
    return white_komi(position) - 0.5 * owner_sign(position.meta[META_BUTTON_TAKER])


@kernel
def _write_globals(position, shown, ends, globals_):
    """Write the global values; ``shown`` and ``ends`` as returned by :func:`course`."""
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
    """Mark ladders of the current board, already copied to ``ladder.board``, and of the earlier boards shown."""
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
    """Write all planes except those of the last moves."""
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

    50 us for a middle-game position on 19x19, of which 37 us are the ladders of three boards and 10 us the areas.

    Args:
        symmetry: 0 to 7.
        scratch: :class:`KatagoScratch` of this board size, the caller's own.
        planes: float32[PLANES, N, N], overwritten.
        globals_: float32[GLOBALS], or with a human profile float32[GLOBALS + PROFILE_VALUES], overwritten.
    """
    ladder = scratch.ladder
    suicide = position.rules[RULE_SUICIDE] == 1 or scratch.suicide_areas[0] == 1
    board, size = ladder.board, position.board.meta[META_SIZE]
    flat = planes.reshape(PLANES, size * size)
    fill_items(planes.reshape(-1), 0.0)
    shown, ends = course(position)
    copy_board(board, position.board)
    if board.meta[META_KO_COLOR] != position.meta[META_TO_MOVE]:
        board.meta[META_KO_POINT] = PASS
    mark_areas(board, position.rules, suicide, scratch.life, scratch.owner)
    _read_ladders(position, shown, scratch, ladder)
    _write_points(position, symmetry, scratch, flat)
    mark_recent_moves(position, symmetry, shown, flat[RECENT:])
    _write_globals(position, shown, ends, globals_)
    profile = scratch.profile[position.meta[META_TO_MOVE] - BLACK]
    copy_items(globals_[GLOBALS:], profile, len(profile))


@kernel
def key(position, scratch):
    """uint64 hash of everything :func:`encode` reads.

    The last moves, the boards between them and the board before the earliest of them determine all kos taken in them.
    """
    n = position.meta[META_N_MOVES]
    shown, ends = course(position)
    word = mix(legality_key(position) ^ np.uint64(2 * shown + ends))
    word = mix(word ^ recent_moves_key(position, shown))
    for age in range(1, min(shown, BOARDS - 1) + 1):
        word = mix(word ^ position.hashes[n - age])
        if n > age:
            word = mix(word ^ position.hashes[n - age - 1])
    word = rules_key(position, word)
    word = mix(word ^ np.uint64(np.int64(2.0 * _white_komi(position))))
    profile = scratch.profile_key[position.meta[META_TO_MOVE] - BLACK]
    if profile != 0:
        word = mix(word ^ np.uint64(profile))
    return mix(word ^ np.uint64(position.meta[META_BUTTON_TAKER]))
