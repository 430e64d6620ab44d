"""Ownership and score of finished games.

Start at :func:`final_score_black`; dead stones are removed before it by :func:`remove_dead`. An empty *region*
(connected empty points) belongs to the colour of the stones around it if they are all of one colour; otherwise its
points are *dame* and count for neither side.

* Area scoring counts a colour's stones on the board and its regions, territory scoring its regions and its prisoners
  (stones captured during the game and dead stones).
* A *group* is a set of chains connected through regions that they own: all chains of one colour around one region are
  one group, and so on. A group is *in seki* if it touches a dame and its regions are worth fewer than two eyes: it
  lives only because neither side wants to play the dame. A group with two eyes that touches a dame merely has an
  unfilled border. A region is worth two eyes unless one opposing stone at its vital point would reduce it to one: up to
  three points, the square and the pyramid of four, the bulky and the crossed five, and the rabbity six (:func:`_eyes`).
  Eyes that are false because of cutting points elsewhere count as eyes. A group may be taken for a seki because the
  dame that connect it are unfilled. The Japanese rules require that dame are played first, but in human games they are
  not, so positions from which dead stones are removed are scored by :func:`engine.go.seki.score_with_dame_filled`.
* Tax "seki": regions of groups in seki do not count. Their stones do, under area scoring.
* Tax "all": as "seki", and each living group (one that owns a region and is not in seki) costs its owner two points for
  the eyes that it cannot fill.
* Tax "atari", for networks trained with it: points of regions do not count beside a chain of their owner in atari.
* White gets the komi and the rules' bonus for handicap stones; the side that took the button gets half a point.

Sources: area, the Tromp-Taylor rules (https://tromp.github.io/go.html); taxes, button and bonus, KataGo's rules
(https://lightvector.github.io/KataGo/rules.html, "atari" from their version 3 on); the definition of eyes of a group in
seki is our own.

All kernels store their data of regions in the fields that :class:`engine.go.board.Board` uses for chains, at empty
points, where the board never reads them. Threads: no other thread may use the board while a kernel runs.
"""

from collections.abc import Iterable

import numpy as np

from engine.go.board import (
    META_CAPTURED_BLACK,
    META_CAPTURED_WHITE,
    META_N_EMPTY,
    META_SIZE,
    META_STRIDE,
    Board,
    clear,
    play,
)
from engine.go.geometry import BLACK, BORDER, EMPTY, WHITE, on_board_points, point_of, to_vertex
from engine.go.position import META_BUTTON_TAKER, META_HANDICAP, META_N_MOVES, Position, with_capacity
from engine.go.rules import (
    BONUS_N,
    BONUS_N_MINUS_ONE,
    RULE_HANDICAP_BONUS,
    RULE_KOMI_X2,
    RULE_SCORING,
    RULE_TAX,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_ATARI,
    TAX_SEKI,
)
from engine.system.jit import kernel

TOUCHES = 3
"""Mask of two bits of ``lib_sum`` at a region's root, BLACK and WHITE: set if the region touches stones of the
colour"""
DAME = 4
"""Bit of ``lib_sum`` at a region's root: a chain of the root's group touches a dame"""
EYE = 8
"""One eye in ``lib_sum`` at a region's root: the bits from this one up hold the number of eyes of the root's group"""
FINEST = 2.0**20
"""Ownership is summed in units of 1 / FINEST, rounded: sums of whole numbers do not depend on the order of points"""


@kernel
def area_owner(board, owner):
    """Write the owner of every point by Tromp-Taylor area, with all stones alive.

    Args:
        owner: int8[size * size] in policy order, overwritten: 1 = Black's, -1 = White's, 0 = dame.
    """
    find_regions(board)
    size = board.meta[META_SIZE]
    for index in range(size * size):
        point = point_of(index, size)
        holder = board.color[point]
        if holder == EMPTY:
            holder = board.lib_sum[board.libs[point]] & TOUCHES
        owner[index] = owner_sign(holder)


@kernel
def final_score_black(position):
    """Black's lead under the position's rules, with all stones on the board alive.

    Returns:
        float64: points, positive if Black is ahead, after komi, handicap bonus, tax and button.
    """
    return score_black(position, position.rules[RULE_TAX])


@kernel
def score_black(position, tax):
    """:func:`final_score_black` with ``tax``, a ``TAX_...``, in place of the position's own."""
    rules, meta, board = position.rules, position.meta, position.board
    lead = _board_score_black(board, rules[RULE_SCORING], tax) - rules[RULE_KOMI_X2] / 2.0 - _handicap_bonus(position)
    return lead + 0.5 * owner_sign(meta[META_BUTTON_TAKER])


@kernel
def _handicap_bonus(position):
    """int64: points that White gets for handicap stones."""
    stones, bonus = position.meta[META_HANDICAP], position.rules[RULE_HANDICAP_BONUS]
    return stones if bonus == BONUS_N else max(0, stones - 1) if bonus == BONUS_N_MINUS_ONE else 0


@kernel
def white_komi(position):
    """White's points beyond area: komi, handicap bonus and, under territory scoring, a correction for stones played.

    Black's lead by territory is his lead by area minus the number of Black's stones played plus that of White's.

    Returns:
        float64: points, a multiple of a half, without the button.
    """
    rules, board = position.rules, position.board
    komi = rules[RULE_KOMI_X2] * 0.5 + _handicap_bonus(position)
    if rules[RULE_SCORING] == SCORING_TERRITORY:
        komi += board.meta[META_CAPTURED_BLACK] - board.meta[META_CAPTURED_WHITE]
        for cell in board.color:
            komi += (cell == BLACK) - np.int64(cell == WHITE)
    return komi


@kernel
def _board_score_black(board, scoring, tax):
    """Black's lead without komi, bonus and button: stones (area scoring) or prisoners (territory), regions and tax."""
    meta = board.meta
    find_regions(board)
    taxes_seki = tax in (TAX_SEKI, TAX_ALL)
    if taxes_seki:
        join_groups(board)
    lead = 0
    for i in range(meta[META_N_EMPTY]):
        point = np.int64(board.empty[i])
        root = root_of(board, point)
        state = board.lib_sum[root]
        if taxes_seki and in_seki(state):
            continue
        if tax == TAX_ATARI and _is_beside_atari(board, point, state & TOUCHES):
            continue
        lead += owner_sign(state & TOUCHES)
        if tax == TAX_ALL and root == point:
            lead -= 2 * owner_sign(state & TOUCHES)
    if scoring == SCORING_AREA:
        for index in range(meta[META_SIZE] * meta[META_SIZE]):
            lead += owner_sign(board.color[point_of(index, meta[META_SIZE])])
    else:
        lead += meta[META_CAPTURED_WHITE] - meta[META_CAPTURED_BLACK]
    return lead


@kernel
def _is_beside_atari(board, point, color):
    """Whether an empty point touches a chain of its owner ``color`` that is in atari; False for dame."""
    stride = board.meta[META_STRIDE]
    for beside in (point - stride, point - 1, point + 1, point + stride):
        if board.color[beside] == color and owner_sign(color) != 0 and board.libs[board.head[beside]] == 1:
            return True
    return False


@kernel
def owner_sign(owner):
    """+1 for Black, -1 for White, 0 for anything else."""
    if owner == BLACK:
        return 1
    if owner == WHITE:
        return -1
    return 0


@kernel
def in_seki(state):
    """Whether a group touches a dame and has fewer than two eyes, by the ``lib_sum`` of its root."""
    return (state & DAME) != 0 and state < 2 * EYE


@kernel
def find_regions(board):
    """Find all empty regions and store them at their points.

    ``next`` links the points of a region in a circle; ``libs`` holds each point's root, which is one of the points;
    ``lib_sum[root]`` is the region's state: the colours that it touches (TOUCHES) and its eyes (EYE).
    """
    for i in range(board.meta[META_N_EMPTY]):
        board.libs[board.empty[i]] = 0
    for i in range(board.meta[META_N_EMPTY]):
        if board.libs[board.empty[i]] == 0:
            _walk_region(board, board.empty[i])


@kernel
def _walk_region(board, root):
    """Flood-fill the region of ``root``; its circular list is the queue, to which new points are appended."""
    stride = board.meta[META_STRIDE]
    board.libs[root] = root
    board.next[root] = root
    last, point = root, root
    count, squares, touched = 0, 0, 0
    while True:
        count += 1
        degree = 0
        for neighbour in (point - stride, point - 1, point + 1, point + stride):
            there = board.color[neighbour]
            if there == EMPTY:
                degree += 1
                if board.libs[neighbour] == 0:
                    board.libs[neighbour] = root
                    board.next[last] = neighbour
                    board.next[neighbour] = root
                    last = neighbour
            elif there != BORDER:
                touched |= there
        squares += degree * degree
        point = board.next[point]
        if point == root:
            break
    board.lib_sum[root] = touched + EYE * _eyes(count, squares)


@kernel
def _eyes(count, squares):
    """Number of eyes that a region of ``count`` points is worth, 1 or 2.

    Shapes with a vital point are recognised by ``squares``, the sum over the points of the squared number of neighbours
    within the region: of four points the square (16) and the pyramid (12), of five the bulky (22) and the cross (20),
    of six the rabbity (30).
    """
    return 1 if count <= 3 or (count, squares) in ((4, 16), (4, 12), (5, 22), (5, 20), (6, 30)) else 2


@kernel
def root_of(board, point):
    """Root of the region of an empty point, or of its group after :func:`join_groups`."""
    while board.libs[point] != point:
        point = board.libs[point]
    return point


@kernel
def join_groups(board):
    """Join the regions of each group under one root, whose state has the sum of their eyes, and DAME if a chain of the
    group touches a dame."""
    size = board.meta[META_SIZE]
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != EMPTY and board.head[point] == point:
            _join_around(board, point)


@kernel
def _join_around(board, chain):
    """Join the regions that a chain touches and its colour owns, and set DAME if the chain touches a dame."""
    stride = board.meta[META_STRIDE]
    mine = board.color[chain]
    group, dame = 0, False
    stone = chain
    for _ in range(board.stones[chain]):
        for neighbour in (stone - stride, stone - 1, stone + 1, stone + stride):
            if board.color[neighbour] != EMPTY:
                continue
            root = root_of(board, neighbour)
            state = board.lib_sum[root]
            if state & TOUCHES != mine:
                dame = True
            elif group == 0:
                group = root
            elif group != root:
                board.libs[root] = group
                board.lib_sum[group] = (board.lib_sum[group] | (state & DAME)) + (state // EYE) * EYE
        stone = board.next[stone]
    if dame and group != 0:
        board.lib_sum[group] |= DAME


def remove_dead(position: Position, dead: Iterable[int]) -> Position:
    """A copy of the position with dead chains taken off and counted as prisoners.

    Args:
        dead: one or more points of each dead chain.
    Raises:
        ValueError: a point holds no stone.
    """
    board = position.board
    is_dead = np.zeros(len(board.color), np.uint8)
    for point in dead:
        if board.color[point] not in (BLACK, WHITE):
            raise ValueError(f"no stone at {to_vertex(int(point), int(board.meta[META_SIZE]))} to be dead")
        is_dead[board.head[point]] = 1
    cleared = with_capacity(position, int(position.meta[META_N_MOVES]))
    clear(cleared.board)
    take_off(cleared.board, board, is_dead[board.head])
    return cleared


@kernel
def take_off(target, source, dead):
    """Copy the stones of ``source`` that are not dead to the empty board ``target``; dead stones become prisoners.

    Args:
        dead: uint8[L] by point: 1 = a dead stone; 0 on empty points.
    """
    size = source.meta[META_SIZE]
    black, white = source.meta[META_CAPTURED_BLACK], source.meta[META_CAPTURED_WHITE]
    for index in range(size * size):
        point = point_of(index, size)
        if dead[point] == 0:
            if source.color[point] != EMPTY:
                play(target, point, source.color[point])
        elif source.color[point] == BLACK:
            black += 1
        else:
            white += 1
    target.meta[META_CAPTURED_BLACK] = black
    target.meta[META_CAPTURED_WHITE] = white


def dead_points(board: Board, ownership_black: np.ndarray, certainty: float) -> list[int]:
    """Points of the chains that are dead according to an estimate of ownership.

    Args:
        ownership_black: float32[size * size] in policy order, 1 = certainly Black's, -1 = White's.
        certainty: as for :func:`mark_dead`.
    Returns:
        list[int]: points in policy order.
    """
    cells, points = len(board.color), on_board_points(int(board.meta[META_SIZE]))
    dead = np.zeros(cells, np.uint8)
    mark_dead(board, ownership_black, certainty, np.zeros(cells), dead)
    return points[dead[points] != 0].tolist()


@kernel
def mark_dead(board, ownership_black, certainty, against, dead):
    """Mark the points of the chains that are dead according to an estimate of ownership.

    Args:
        ownership_black: as for :func:`dead_points`.
        certainty: a chain is dead if the mean ownership of its points, 1 = certainly the opponent's, exceeds this.
        against: float64[L], overwritten: working memory.
        dead: uint8[L] by point, overwritten on the board: 1 = a dead stone.
    """
    size = board.meta[META_SIZE]
    for index in range(size * size):
        point = point_of(index, size)
        dead[point] = 0
        against[point] = 0.0
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != EMPTY:
            owner = np.rint(ownership_black[index] * FINEST)
            against[board.head[point]] -= owner_sign(board.color[point]) * owner
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != EMPTY:
            chain = board.head[point]
            dead[point] = against[chain] > certainty * FINEST * board.stones[chain]


def result_text(lead_black: float) -> str:
    """A lead as text, ``B+3.5``, ``W+0.5``, or ``0`` for a draw, as in GTP's final_score and SGF's property RE."""
    if lead_black == 0:
        return "0"
    return f"{'B' if lead_black > 0 else 'W'}+{abs(lead_black):.1f}".removesuffix(".0")
