"""Which groups are in seki at the end of a game as people leave it: with dame that are not filled.

:mod:`engine.go.scoring` reads the board as it stands: a group with fewer than two eyes that touches a dame is in seki.
On the last boards of real games that is wrong more often than right, since the dame would connect the group to its next
eye: of 400 scored games between 9-dans it mattered in 34, and the record agreed with it in one. So here a colour may
first fill whatever dame it safely can, as if its opponent passed: those where its chain keeps two liberties and its
group two eyes or another dame. Only what is in seki then is in seki. Start at :func:`score_with_dame_filled`.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from engine.go.board import META_SIZE, META_STRIDE, Board, copy_board, is_legal, new_board, play
from engine.go.geometry import BLACK, EMPTY, WHITE, on_board_points, point_of
from engine.go.position import Position, copy_position, new_position
from engine.go.rules import RULE_TAX, TAX_NONE, TAX_SEKI
from engine.go.scoring import (
    DAME,
    EYE,
    TOUCHES,
    final_score_black,
    find_regions,
    in_seki,
    join_groups,
    mark_dead,
    owner_sign,
    remove_dead,
    root_of,
    score_black,
    take_off,
)
from engine.system.jit import kernel


def score_with_dame_filled(position: Position) -> float:
    """Black's lead as people count who leave dame unplayed: :func:`final_score_black`, but what dame would still
    connect to two eyes is no seki (:func:`seki_points`), and its points count.

    Args:
        position: the dead stones taken off; its stones stay as they are.
    """
    size = int(position.board.meta[META_SIZE])
    return float(score_in_memory(position, new_board(size), new_board(size), np.zeros(size * size, np.uint8)))


@kernel
def score_in_memory(position, filled, trial, marks):
    """:func:`score_with_dame_filled` in the caller's memory.

    Args:
        filled, trial: boards of the same size, overwritten.
        marks: uint8[N*N], overwritten.
    """
    if position.rules[RULE_TAX] != TAX_SEKI:
        return final_score_black(position)
    board, size = position.board, position.board.meta[META_SIZE]
    marks[:] = 0
    _mark_seki(board, filled, trial, marks)
    lead = score_black(position, TAX_NONE)
    for index in range(size * size):
        point = point_of(index, size)
        if marks[index] != 0 and board.color[point] == EMPTY:
            lead -= owner_sign(board.lib_sum[board.libs[point]] & TOUCHES)
    return lead


class CountMemory(NamedTuple):
    """What :func:`count_without_dead` works in: boards of one size, all but ``empty`` overwritten."""

    empty: Board
    """without stones, only read"""
    cleared: Position
    """in the end the position that was counted, its dead stones taken off"""
    against: np.ndarray
    """float64[L]"""
    dead: np.ndarray
    """uint8[L] by point: 1 = a dead stone"""
    filled: Board
    trial: Board
    marks: np.ndarray
    """uint8[N*N]"""


def new_count_memory(size: int, capacity: int) -> CountMemory:
    """Memory for positions of up to ``capacity`` moves."""
    empty, filled, trial = (new_board(size) for _ in range(3))
    cells, marks = len(empty.color), np.zeros(size * size, np.uint8)
    against, dead = np.zeros(cells), np.zeros(cells, np.uint8)
    return CountMemory(empty, new_position(size, capacity), against, dead, filled, trial, marks)


@kernel
def count_without_dead(position, ownership_black, certainty, memory):
    """:func:`score_with_dame_filled` once the chains that an estimate of ownership gives to the opponent are taken off.

    Args:
        position: left as it is.
        ownership_black, certainty: as for :func:`engine.go.scoring.mark_dead`.
        memory: :class:`CountMemory`.
    Returns:
        float64: Black's lead in points.
    """
    cleared = memory.cleared
    mark_dead(position.board, ownership_black, certainty, memory.against, memory.dead)
    copy_position(cleared, position)
    copy_board(cleared.board, memory.empty)
    take_off(cleared.board, position.board, memory.dead)
    return score_in_memory(cleared, memory.filled, memory.trial, memory.marks)


def seki_stones(position: Position, dead: Iterable[int]) -> list[int]:
    """Stones of groups in seki once the dead chains are taken off; see :func:`seki_points`.

    Args:
        position: left as it is.
        dead: as for :func:`engine.go.scoring.remove_dead`.
    Returns:
        list[int]: points in policy order, whole chains.
    Raises:
        ValueError: a point holds no stone.
    """
    cleared = remove_dead(position, dead)
    points = on_board_points(int(cleared.board.meta[META_SIZE]))
    return points[(seki_points(cleared.board) != 0) & (cleared.board.color[points] != EMPTY)].tolist()


def seki_points(board: Board) -> np.ndarray:
    """Stones and regions of groups that are in seki even if their owner may fill the dame that it safely can.

    Args:
        board: the dead stones taken off; its stones stay as they are.
    Returns:
        uint8[N*N]: 1 = in seki, in policy order.
    """
    size = int(board.meta[META_SIZE])
    marks = np.zeros(size * size, np.uint8)
    _mark_seki(board, new_board(size), new_board(size), marks)
    return marks


@kernel
def _mark_seki(board, filled, trial, marks):
    """Mark the stones and regions of groups in seki, in policy order.

    Args:
        filled, trial: boards of the same size, overwritten.
        marks: uint8[size * size]; what is marked stays.
    """
    for color in (BLACK, WHITE):
        _mark_seki_of(board, filled, trial, color, marks)


@kernel
def _mark_seki_of(board, filled, trial, color, marks):
    """:func:`_mark_seki` for one colour's groups."""
    copy_board(filled, board)
    if not _has_seki(filled, color):
        return
    while _fill_dame(filled, trial, color):
        pass
    find_regions(filled)
    join_groups(filled)
    size = board.meta[META_SIZE]
    for index in range(size * size):
        point = point_of(index, size)
        if filled.color[point] == color:
            marks[index] |= _chain_in_seki(filled, filled.head[point])
        elif filled.color[point] == EMPTY:
            state = filled.lib_sum[root_of(filled, point)]
            marks[index] |= state & TOUCHES == color and in_seki(state)


@kernel
def _has_seki(board, color):
    """Whether a colour has groups in seki as the board stands."""
    find_regions(board)
    join_groups(board)
    size = board.meta[META_SIZE]
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] == color and board.head[point] == point and _chain_in_seki(board, point):
            return True
    return False


@kernel
def _fill_dame(board, trial, color):
    """Let a colour fill each dame once where its chain keeps two liberties, and its group two eyes or another dame.

    Returns:
        bool: whether any was filled.
    """
    size, found = board.meta[META_SIZE], False
    find_regions(board)
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != EMPTY or board.lib_sum[board.libs[point]] & TOUCHES != TOUCHES:
            continue
        if not is_legal(board, point, color, False):
            continue
        copy_board(trial, board)
        play(trial, point, color)
        if trial.libs[trial.head[point]] < 2:
            continue
        find_regions(trial)
        join_groups(trial)
        if not _stifled(trial, trial.head[point]):
            copy_board(board, trial)
            find_regions(board)
            found = True
    return found


@kernel
def _stifled(board, chain):
    """Whether the chain's group has neither two eyes nor a dame left."""
    state = _group_state(board, chain)
    return state != 0 and (state & DAME) == 0 and state < 2 * EYE


@kernel
def group_root(board, chain):
    """The root of the chain's group, as :func:`engine.go.scoring.join_groups` left it; 0 for a chain that touches dame
    alone."""
    stride = board.meta[META_STRIDE]
    stone = chain
    for _ in range(board.stones[chain]):
        for neighbour in (stone - stride, stone - 1, stone + 1, stone + stride):
            if board.color[neighbour] == EMPTY:
                root = np.int64(root_of(board, neighbour))
                if board.lib_sum[root] & TOUCHES == board.color[chain]:
                    return root
        stone = board.next[stone]
    return np.int64(0)


@kernel
def _group_state(board, chain):
    """``lib_sum`` at the root of the chain's group; 0 for a chain that touches dame alone."""
    root = group_root(board, chain)
    return np.int64(board.lib_sum[root]) if root != 0 else np.int64(0)


@kernel
def _chain_in_seki(board, chain):
    """Whether the chain's group is in seki; a chain that touches dame alone is one such group."""
    state = _group_state(board, chain)
    return state == 0 or in_seki(state)
