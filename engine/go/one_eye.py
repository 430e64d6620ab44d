"""Groups with one eye that nothing can save: dead whoever moves first, which rollouts and small networks misread.

A group is *lost* here if all its liberties lie in one region of one point, two, or the square of four, which makes one
eye even where its owner plays first, and if every group around it has two eyes and no chain there is in atari, so that
it cannot be taken instead. Larger regions are left to estimates, as are all that a first move would make into two eyes.
Groups, regions and eyes are those of :mod:`engine.go.scoring`. Start at :func:`lost_points`.
"""

import numpy as np
from numpy.typing import NDArray

from engine.go.board import META_SIZE, META_STRIDE, Board
from engine.go.geometry import BLACK, EMPTY, WHITE, point_of
from engine.go.scoring import DAME, EYE, TOUCHES, find_regions, join_groups, root_of
from engine.system.jit import kernel


def lost_points(board: Board) -> NDArray[np.int8]:
    """Stones and eyes of the groups that one eye does not save.

    Args:
        board: the stones that are surely dead taken off; its stones stay as they are.
    Returns:
        int8[N*N] in policy order: 1 = a lost group of White's, so Black's point; -1 = one of Black's; 0 = neither.
    """
    size = int(board.meta[META_SIZE])
    owner = np.zeros(size * size, np.int8)
    if not {BLACK, WHITE} <= set(board.color.tolist()):
        return owner  # What nothing surrounds is not lost.
    _mark_lost(board, np.zeros(len(board.color), np.uint8), owner)
    return owner


@kernel
def _mark_lost(board, lost, owner):
    """:func:`lost_points` in the caller's memory.

    Args:
        lost: uint8[L] of zeros: by the root of a group.
        owner: int8[size * size], overwritten.
    """
    find_regions(board)
    join_groups(board)
    size = board.meta[META_SIZE]
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] == EMPTY and root_of(board, point) == point:
            lost[point] = _has_one_eye_at_most(board, point)
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != EMPTY and board.head[point] == point:
            root = _group_root(board, point)
            if lost[root] != 0 and not _is_held(board, point):
                lost[root] = 0
    for index in range(size * size):
        point = point_of(index, size)
        root = root_of(board, point) if board.color[point] == EMPTY else _group_root(board, board.head[point])
        touched = board.lib_sum[root] & TOUCHES
        owner[index] = 0 if lost[root] == 0 else 1 if touched == WHITE else -1


@kernel
def _has_one_eye_at_most(board, root):
    """Whether a root's group touches no dame and has one region, which makes one eye whoever plays there first."""
    state = board.lib_sum[root]
    if state & TOUCHES not in (BLACK, WHITE) or state & DAME != 0 or state // EYE != 1:
        return False
    stride, count, inner, point = board.meta[META_STRIDE], 0, 0, root
    while count == 0 or point != root:
        count += 1
        for neighbour in (point - stride, point - 1, point + 1, point + stride):
            inner += board.color[neighbour] == EMPTY
        point = board.next[point]
    return count <= 2 or (count == 4 and inner == 8)


@kernel
def _is_held(board, chain):
    """Whether all chains around a chain belong to groups with two eyes, and none of them is in atari."""
    stride, stone = board.meta[META_STRIDE], chain
    enemy = 3 - board.color[chain]
    for _ in range(board.stones[chain]):
        for neighbour in (stone - stride, stone - 1, stone + 1, stone + stride):
            if board.color[neighbour] == enemy:
                around = board.head[neighbour]
                root = _group_root(board, around)
                if board.libs[around] < 2 or root == 0 or board.lib_sum[root] < 2 * EYE:
                    return False
        stone = board.next[stone]
    return True


@kernel
def _group_root(board, chain):
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
