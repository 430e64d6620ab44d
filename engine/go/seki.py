"""Seki at the end of human games, in which dame are not filled.

:mod:`engine.go.scoring` takes the board literally: a group with fewer than two eyes that touches a dame is in seki. On
the final boards of human games that is wrong more often than right, since the dame would connect the group to another
eye, or close its border. So there are two further conditions, neither of which depends on the order in which points are
visited:

* A colour may first fill dame beside its opponent's stones, as if the opponent passed: the largest set such that every
  filled point belongs to a group with two eyes. As in Benson's algorithm all dame are filled, then those of groups with
  fewer than two eyes are emptied until nothing changes. Filling dame never costs a group an eye, so the largest set is
  unique. A group that has two eyes after this filling is not in seki.
* A seki needs groups of both colours: a group must share a dame with a group of the opponent that is in seki too. If
  all opponent's groups around it have two eyes, the group is dead or alive, which an estimate of ownership decides.

Start at :func:`score_with_dame_filled`; how often it agrees with records is in
docs/lab/2026-11-28-endings-in-every-orientation.md.
"""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import numpy as np

from engine.go.board import META_SIZE, META_STRIDE, Board, color_empty_point, copy_board, empty_point, new_board
from engine.go.geometry import BLACK, EMPTY, WHITE, cell_count, on_board_points, point_of
from engine.go.position import Position, copy_position, new_position
from engine.go.rules import RULE_TAX, TAX_NONE, TAX_SEKI
from engine.go.scoring import (
    DAME,
    EYE,
    TOUCHES,
    final_score_black,
    find_regions,
    in_seki,
    mark_dead,
    owner_sign,
    remove_dead,
    score_black,
    take_off,
)
from engine.system.arrays import allocate, fill_items
from engine.system.jit import kernel


class SekiMemory(NamedTuple):
    """Working memory of the seki kernels, all overwritten. L = ``cell_count(size)``."""

    filled: Board
    group: Annotated[np.ndarray, "int16[L]"]
    """by point: the root of its group, one of the group's stones; 0 = no group"""
    queue: Annotated[np.ndarray, "int16[L]"]
    """points of the group being walked; reused for flags by root in :func:`_unmark_unshared`"""
    marks: Annotated[np.ndarray, "uint8[N*N]"]
    """in policy order: 1 = stone or region of a group in seki"""


def new_seki_memory(size: int) -> SekiMemory:
    """Memory for boards of one size."""
    return allocate(SekiMemory, filled=new_board(size), N=size, L=int(cell_count(size)))


def score_with_dame_filled(position: Position) -> float:
    """Black's lead in points: :func:`final_score_black` with this module's seki, which allows unfilled dame.

    Args:
        position: without its dead stones; its stones are not changed.
    """
    return float(score_in_memory(position, new_seki_memory(int(position.board.meta[META_SIZE]))))


@kernel
def score_in_memory(position, memory):
    """:func:`score_with_dame_filled` in the caller's :class:`SekiMemory`."""
    if position.rules[RULE_TAX] != TAX_SEKI:
        return final_score_black(position)
    board, size = position.board, position.board.meta[META_SIZE]
    _mark_seki(board, memory)
    lead = score_black(position, TAX_NONE)
    for index in range(size * size):
        point = point_of(index, size)
        if memory.marks[index] != 0 and board.color[point] == EMPTY:
            lead -= owner_sign(board.lib_sum[board.libs[point]] & TOUCHES)
    return lead


class CountMemory(NamedTuple):
    """Working memory of :func:`count_without_dead` for boards of one size, all but ``empty`` overwritten."""

    empty: Board
    """a board without stones, only read"""
    cleared: Position
    """the position without its dead stones"""
    against: Annotated[np.ndarray, "float64[L]"]
    dead: Annotated[np.ndarray, "uint8[L]"]
    """by point: 1 = a dead stone"""
    seki: SekiMemory


def new_count_memory(size: int, capacity: int) -> CountMemory:
    """Memory for positions of up to ``capacity`` moves."""
    empty, cleared, seki = new_board(size), new_position(size, capacity), new_seki_memory(size)
    return allocate(CountMemory, empty=empty, cleared=cleared, seki=seki, L=int(cell_count(size)))


@kernel
def count_without_dead(position, ownership_black, certainty, memory):
    """:func:`score_with_dame_filled` after taking off the chains that are dead according to an estimate of ownership.

    Args:
        position: not changed.
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
    return score_in_memory(cleared, memory.seki)


def seki_stones(position: Position, dead: Iterable[int]) -> list[int]:
    """Stones of groups in seki after the removal of dead chains; see :func:`seki_points`.

    Args:
        position: not changed.
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
    """Mark the stones and regions of groups in seki, as defined in the module's docstring.

    Args:
        board: without its dead stones; not changed.
    Returns:
        uint8[N*N] in policy order: 1 = in seki.
    """
    memory = new_seki_memory(int(board.meta[META_SIZE]))
    _mark_seki(board, memory)
    return memory.marks


@kernel
def _mark_seki(board, memory):
    """Mark the stones and regions of groups in seki in ``memory.marks``."""
    size, colors = board.meta[META_SIZE], 0
    fill_items(memory.marks, 0)
    _walk_groups(board, memory)
    for index in range(size * size):
        root = memory.group[point_of(index, size)]
        if root != 0 and in_seki(memory.filled.lib_sum[root]):
            memory.marks[index] = 1
            colors |= board.color[root]
    if colors != BLACK | WHITE:
        fill_items(memory.marks, 0)
        return
    for color in (BLACK, WHITE):
        _unmark_connected(board, color, memory)
    _walk_groups(board, memory)
    while _unmark_unshared(board, memory):
        pass


@kernel
def _walk_groups(board, memory):
    """Copy the board, without filled dame, to ``memory.filled`` and find the groups of both colours there."""
    filled, size = memory.filled, board.meta[META_SIZE]
    copy_board(filled, board)
    find_regions(filled)
    fill_items(memory.group, 0)
    for index in range(size * size):
        point = point_of(index, size)
        if filled.color[point] != EMPTY and memory.group[point] == 0:
            _walk_group(filled, point, memory.group, memory.queue)


@kernel
def _walk_group(board, root, group, queue):
    """Flood-fill a group from a stone, through stones of its colour and regions that it owns.

    The number of the group's eyes and the bit DAME are written to ``lib_sum[root]``, in the format of
    :mod:`engine.go.scoring` for a region's root; they replace the ``lib_sum`` of a chain whose head is the root.

    Args:
        group: int16[L], overwritten by the root at the group's points.
        queue: int16[L], overwritten by the group's points.
    Returns:
        int: number of points of the group.
    """
    stride, color = board.meta[META_STRIDE], np.int64(board.color[root])
    group[root] = root
    queue[0] = root
    count, walked, state = 1, 0, 0
    while walked < count:
        point = np.int64(queue[walked])
        walked += 1
        if board.color[point] == EMPTY and board.libs[point] == point:
            state += board.lib_sum[point] // EYE * EYE
        for beside in (point - stride, point - 1, point + 1, point + stride):
            there = np.int64(board.color[beside])
            if there == EMPTY and board.lib_sum[board.libs[beside]] & TOUCHES != color:
                state |= DAME
            elif group[beside] == 0 and there in (EMPTY, color):
                group[beside] = root
                queue[count] = beside
                count += 1
    board.lib_sum[root] = state
    return count


@kernel
def _unmark_connected(board, color, memory):
    """Fill dame for a colour as the module's docstring says, and unmark its groups that then have two eyes."""
    filled, size, stride = memory.filled, board.meta[META_SIZE], board.meta[META_STRIDE]
    copy_board(filled, board)
    find_regions(filled)
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != EMPTY or filled.lib_sum[filled.libs[point]] & TOUCHES != TOUCHES:
            continue
        for beside in (point - stride, point - 1, point + 1, point + stride):
            if board.color[beside] == 3 - color:
                color_empty_point(filled, point, color)
                break
    while _give_back(board, color, memory):
        pass
    for index in range(size * size):
        root = memory.group[point_of(index, size)]
        if root != 0 and filled.lib_sum[root] >= 2 * EYE:
            memory.marks[index] = 0


@kernel
def _give_back(board, color, memory):
    """Empty the filled dame in a colour's groups of fewer than two eyes; returns whether any point was emptied."""
    filled, size, found = memory.filled, board.meta[META_SIZE], False
    find_regions(filled)
    fill_items(memory.group, 0)
    for index in range(size * size):
        root = point_of(index, size)
        if filled.color[root] != color or memory.group[root] != 0:
            continue
        count = _walk_group(filled, root, memory.group, memory.queue)
        if filled.lib_sum[root] >= 2 * EYE:
            continue
        for i in range(count):
            point = np.int64(memory.queue[i])
            if board.color[point] == EMPTY and filled.color[point] == color:
                empty_point(filled, point)
                found = True
    return found


@kernel
def _unmark_unshared(board, memory):
    """Unmark the groups that share no dame with a marked group of the opponent; returns whether any was unmarked.

    Args:
        memory: as :func:`_walk_groups` left it.
    """
    regions, group, marks = memory.filled, memory.group, memory.marks
    size, stride, found = board.meta[META_SIZE], board.meta[META_STRIDE], False
    # By a dame's root: colours of the marked groups around it. By a group's root: 1 = it shares a dame.
    known = memory.queue
    fill_items(known, 0)
    for shares in (False, True):
        for index in range(size * size):
            point = point_of(index, size)
            if marks[index] == 0 or board.color[point] == EMPTY:
                continue
            for beside in (point - stride, point - 1, point + 1, point + stride):
                if board.color[beside] != EMPTY or regions.lib_sum[regions.libs[beside]] & TOUCHES != TOUCHES:
                    continue
                root = regions.libs[beside]
                if not shares:
                    known[root] |= board.color[point]
                elif known[root] == BLACK | WHITE:
                    known[group[point]] = 1
    for index in range(size * size):
        if marks[index] != 0 and known[group[point_of(index, size)]] == 0:
            marks[index] = 0
            found = True
    return found
