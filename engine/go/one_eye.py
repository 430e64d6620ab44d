"""Dead groups with one eye: dead whoever moves first, but misjudged by rollouts and small networks.

A group is *lost* here if (1) all its liberties are in one region of one point, two points or the square of four, which
is one eye even if its owner plays first, and (2) every chain around it is *sturdy*, so that it cannot be captured
instead. Larger regions, and regions that one move can make into two eyes, are left to estimates. Groups, regions and
eyes are those of :mod:`engine.go.scoring`. Start at :func:`lost_points`.

A chain is sturdy if it has at least two liberties and touches regions worth at least two eyes around which all chains
are sturdy too. This is Benson's iteration (:mod:`engine.go.life`) with eyes in place of vital regions, so no eye is
false: a stone of the opponent in such an eye is answered within it, and every chain around it keeps a liberty in
another eye. A region between several chains is one eye whatever its shape, since a move in it may separate them; from
``ROOMY`` points on it is two, assuming that its owner has room to connect.

Source of the iteration: D. B. Benson, "Life in the Game of Go", Information Sciences 10 (1976).
"""

import numpy as np
from numpy.typing import NDArray

from engine.go.board import META_SIZE, META_STRIDE, Board
from engine.go.geometry import BLACK, EMPTY, WHITE, point_of
from engine.go.scoring import DAME, EYE, TOUCHES, find_regions, join_groups, root_of
from engine.system.jit import kernel

ROOMY = 8
"""Number of points from which on a region between several chains counts as two eyes"""


def lost_points(board: Board) -> NDArray[np.int8]:
    """Mark the stones and eyes of lost groups, as defined in the module's docstring.

    Args:
        board: without stones that are surely dead; its stones are not changed.
    Returns:
        int8[N*N] in policy order: 1 = a lost group of White's, so Black's point; -1 = one of Black's; 0 = neither.
    """
    size = int(board.meta[META_SIZE])
    owner = np.zeros(size * size, np.int8)
    if not {BLACK, WHITE} <= set(board.color.tolist()):
        return owner  # Groups without opponent's stones around them are not lost.
    cells = len(board.color)
    _mark_lost(board, np.zeros(cells, np.uint8), np.zeros(cells, np.uint8), np.zeros((2, cells), np.int64), owner)
    return owner


@kernel
def _mark_lost(board, lost, sturdy, marks, owner):
    """The kernel of :func:`lost_points`, in the caller's memory.

    Args:
        lost: uint8[L] of zeros, overwritten: 1 at the root of a lost group.
        sturdy: uint8[L] of zeros, overwritten: 1 at the head of a sturdy chain.
        marks: int64[2, L] of zeros, overwritten: working memory.
        owner: int8[size * size], overwritten by the result of :func:`lost_points`.
    """
    find_regions(board)
    _mark_sturdy(board, sturdy, marks[0], marks[1])
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
            if lost[root] != 0 and not _is_held(board, point, sturdy):
                lost[root] = 0
    for index in range(size * size):
        point = point_of(index, size)
        root = root_of(board, point) if board.color[point] == EMPTY else _group_root(board, board.head[point])
        touched = board.lib_sum[root] & TOUCHES
        owner[index] = 0 if lost[root] == 0 else 1 if touched == WHITE else -1


@kernel
def _has_one_eye_at_most(board, root):
    """Whether the group of a root touches no dame and has a single region: one point, two, or the square of four."""
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
def _is_held(board, chain, sturdy):
    """Whether every opponent's chain that touches a chain is sturdy."""
    stride, stone = board.meta[META_STRIDE], chain
    enemy = 3 - board.color[chain]
    for _ in range(board.stones[chain]):
        for neighbour in (stone - stride, stone - 1, stone + 1, stone + stride):
            if board.color[neighbour] == enemy and sturdy[board.head[neighbour]] == 0:
                return False
        stone = board.next[stone]
    return True


@kernel
def _group_root(board, chain):
    """Root of a chain's group, as set by :func:`engine.go.scoring.join_groups`; 0 for a chain whose
    liberties are all dame."""
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
def _mark_sturdy(board, sturdy, eyes, seen):
    """Mark the sturdy chains of both colours; the regions must be found, but not joined to groups yet.

    Args:
        sturdy: uint8[L] of zeros, overwritten: 1 at the head of a sturdy chain.
        eyes: int64[L], overwritten: by a region's root, the number of eyes that each chain around it gets.
        seen: int64[L] of zeros, overwritten: by a region's root, the last ``count`` of :func:`_count_eyes` for it.
    """
    size, counts, changed = board.meta[META_SIZE], 0, True
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] == EMPTY:
            if board.libs[point] == point:
                eyes[point] = _eyes_around(board, point)
        elif board.head[point] == point and board.libs[point] >= 2:
            sturdy[point] = 1
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != EMPTY and board.head[point] == point and sturdy[point] == 0:
            _count_eyes(board, point, eyes, seen, counts, True)
    while changed:
        changed = False
        for index in range(size * size):
            point = point_of(index, size)
            if board.color[point] == EMPTY or sturdy[point] == 0:
                continue
            counts += 1
            if _count_eyes(board, point, eyes, seen, counts, False) < 2:
                sturdy[point], changed = 0, True
                _count_eyes(board, point, eyes, seen, counts, True)


@kernel
def _count_eyes(board, chain, eyes, seen, count, spoils):
    """Number of eyes in the regions that a chain touches; ``spoils`` sets the eyes of these regions to 0 afterwards.

    ``count`` numbers the calls, so that a region that touches several stones is counted once.
    """
    stride, stone, found = board.meta[META_STRIDE], chain, 0
    for _ in range(board.stones[chain]):
        for neighbour in (stone - stride, stone - 1, stone + 1, stone + stride):
            if board.color[neighbour] == EMPTY:
                root = board.libs[neighbour]
                if seen[root] != count:
                    seen[root] = count
                    found += eyes[root]
                if spoils:
                    eyes[root] = 0
        stone = board.next[stone]
    return found


@kernel
def _eyes_around(board, root):
    """Number of eyes that each chain around a region gets from it: 0 from dame, else 1 or 2.

    It is 1 if several chains surround the region and it has fewer than ``ROOMY`` points, else as its shape is worth.
    """
    stride, count, first, parted, point = board.meta[META_STRIDE], 0, 0, False, root
    if board.lib_sum[root] & TOUCHES not in (BLACK, WHITE):
        return 0
    while count == 0 or point != root:
        count += 1
        for neighbour in (point - stride, point - 1, point + 1, point + stride):
            if board.color[neighbour] == BLACK or board.color[neighbour] == WHITE:
                chain = int(board.head[neighbour])
                parted = parted or (first != 0 and first != chain)
                first = chain
        point = board.next[point]
    return 1 if parted and count < ROOMY else board.lib_sum[root] // EYE
