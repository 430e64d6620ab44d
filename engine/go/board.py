"""The board: stones, chains, exact liberties, simple ko and the position hash, as kernels on flat arrays.

Start at :func:`play`. A board is one buffer with typed views, so a copy is one ``memcpy`` (6.9 KiB on 19x19). Every
chain has its exact number of liberties and the sum of their points: the sum of a single liberty *is* that liberty, so
it is found without a walk over the stones. Superko, scoring and the side to move belong to :mod:`engine.go.position`.
"""

from functools import cache
from itertools import accumulate
from typing import Annotated, NamedTuple

import numpy as np

from engine.go.geometry import BLACK, BORDER, EMPTY, PASS, WHITE, ZOBRIST, cell_count, on_board_points
from engine.system.arrays import allocate, append_once, copy_items
from engine.system.jit import inlined_kernel, kernel

META_SIZE, META_STRIDE, META_KO_POINT, META_KO_COLOR, META_N_EMPTY, META_CAPTURED_BLACK, META_CAPTURED_WHITE = range(7)
"""Indices into ``Board.meta``"""
META_FIELDS = 8


class Board(NamedTuple):
    """Stones, chains and simple ko of one position. L = ``cell_count(size)``.

    Fields of a chain (``lib_sum``, ``stones``, ``libs``) are valid at its head only.
    """

    buffer: Annotated[np.ndarray, "uint64[words]"]
    """the memory of which all other fields are views"""
    hash: Annotated[np.ndarray, "uint64[1]"]
    """XOR of the Zobrist words of the stones"""
    meta: Annotated[np.ndarray, "int64[META_FIELDS]"]
    """by ``META_...``: board size; cells per row; point that simple ko forbids (0 = none) and the colour that may not
    play there; number of empty points; number of Black's and of White's stones taken off so far"""
    lib_sum: Annotated[np.ndarray, "int32[L]"]
    """by chain: sum of the points of its distinct liberties"""
    head: Annotated[np.ndarray, "int16[L]"]
    """by point: head of the stone's chain, the stone whose point names the chain; 0 on empty and border cells"""
    next: Annotated[np.ndarray, "int16[L]"]
    """by stone: next stone of its chain, in a circular list"""
    stones: Annotated[np.ndarray, "int16[L]"]
    """by chain: number of its stones"""
    libs: Annotated[np.ndarray, "int16[L]"]
    """by chain: number of its distinct liberties"""
    empty: Annotated[np.ndarray, "int16[size * size]"]
    """the empty points in no particular order; the first ``meta[META_N_EMPTY]`` items are valid"""
    slot: Annotated[np.ndarray, "int16[L]"]
    """by empty point: its index in ``empty``"""
    color: Annotated[np.ndarray, "uint8[L]"]
    """by cell: EMPTY, BLACK, WHITE or BORDER"""


def new_board(size: int) -> Board:
    """An empty board of the given size, 2 to 25."""
    blank, places = _blank(size)
    buffer = blank.copy()
    return Board(buffer, *(np.ndarray(length, dtype, buffer, start) for length, dtype, start in places))


@cache
def _blank(size: int) -> tuple[np.ndarray, list[tuple[int, np.dtype, int]]]:
    """The buffer of an empty board, and length, dtype and first byte of each of its views."""
    parts = allocate(Board, words=0, L=int(cell_count(size)), size=size)[1:]
    # Widest first, so that every field is aligned.
    ends = list(accumulate(part.nbytes for part in parts))
    buffer = np.zeros((ends[-1] + 7) // 8, np.uint64)
    places = [(len(part), part.dtype, end - part.nbytes) for part, end in zip(parts, ends, strict=True)]
    board = Board(buffer, *(np.ndarray(length, dtype, buffer, start) for length, dtype, start in places))
    board.meta[META_SIZE] = size
    clear(board)
    return buffer, places


def clear(board: Board) -> None:
    """Reset a board to the empty board of its size: no stones, no ko, nothing captured."""
    size = int(board.meta[META_SIZE])
    board.buffer[:] = 0
    board.meta[META_SIZE] = size
    board.meta[META_STRIDE] = size + 1
    board.meta[META_N_EMPTY] = size * size
    points = on_board_points(size)
    board.color[:] = BORDER
    board.color[points] = EMPTY
    board.empty[:] = points
    board.slot[points] = np.arange(size * size)


@kernel
def copy_board(target, source):
    """Copy the board ``source`` to ``target``, of the same size."""
    copy_items(target.buffer, source.buffer, len(source.buffer))


@inlined_kernel
def color_empty_point(board, point, color):
    """Put a stone on an empty point in ``color``, ``empty`` and ``hash``, without updating chains and liberties."""
    board.meta[META_N_EMPTY] -= 1
    last, hole = board.empty[board.meta[META_N_EMPTY]], board.slot[point]
    board.empty[hole] = last
    board.slot[last] = hole
    board.color[point] = color
    board.hash[0] ^= ZOBRIST[color, point]


@inlined_kernel
def empty_point(board, point):
    """Remove a stone from ``color``, ``empty`` and ``hash``: the inverse of :func:`color_empty_point`."""
    count = board.meta[META_N_EMPTY]
    board.hash[0] ^= ZOBRIST[board.color[point], point]
    board.color[point] = EMPTY
    board.empty[count] = point
    board.slot[point] = count
    board.meta[META_N_EMPTY] = count + 1


@kernel
def _fill_point(board, point, color):
    """Put a stone on an empty point as a new chain and count its liberties; other chains are not updated."""
    color_empty_point(board, point, color)
    board.head[point] = point
    board.next[point] = point
    board.stones[point] = 1
    stride = board.meta[META_STRIDE]
    count, total = 0, 0
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if board.color[neighbour] == EMPTY:
            count += 1
            total += neighbour
    board.libs[point] = count
    board.lib_sum[point] = total


@inlined_kernel
def _chains_around(board, point, color):
    """Heads of the distinct chains of a colour that touch a point: four ints, 0 for neighbours that add no chain."""
    cells, head, stride = board.color, board.head, board.meta[META_STRIDE]
    first = np.int64(head[point - stride]) if cells[point - stride] == color else 0
    second = np.int64(head[point - 1]) if cells[point - 1] == color else 0
    third = np.int64(head[point + 1]) if cells[point + 1] == color else 0
    fourth = np.int64(head[point + stride]) if cells[point + stride] == color else 0
    if second == first:
        second = 0
    if third in (first, second):
        third = 0
    if fourth in (first, second, third):
        fourth = 0
    return first, second, third, fourth


@kernel
def _change_liberty(board, point, color, change):
    """Add (``change`` = 1) or remove (-1) the liberty ``point`` for each chain of a colour that touches it."""
    for chain in _chains_around(board, point, color):
        if chain != 0:
            board.libs[chain] += change
            board.lib_sum[chain] += change * point


@kernel
def _merge(board, first, second):
    """Join two chains of one colour, walking only the smaller one; returns the head of the union."""
    keep, give = first, second
    if board.stones[keep] < board.stones[give]:
        keep, give = give, keep
    color, head = board.color, board.head
    stride = board.meta[META_STRIDE]
    libs, total = board.libs[keep], board.lib_sum[keep]
    stone = give
    for _ in range(board.stones[give]):
        for empty in (stone - stride, stone - 1, stone + 1, stone + stride):
            # A liberty is new unless it already touches the kept chain; stones walked before count as kept.
            if color[empty] == EMPTY and not (
                head[empty - stride] == keep
                or head[empty - 1] == keep
                or head[empty + 1] == keep
                or head[empty + stride] == keep
            ):
                libs += 1
                total += empty
        head[stone] = keep
        stone = board.next[stone]
    board.libs[keep] = libs
    board.lib_sum[keep] = total
    board.stones[keep] += board.stones[give]
    board.next[keep], board.next[give] = board.next[give], board.next[keep]
    return keep


@kernel
def _remove_chain(board, chain):
    """Take a chain off and add its points to the liberties of adjacent chains; returns the number of stones."""
    mine = np.int64(board.color[chain])
    count = np.int64(board.stones[chain])
    stone = chain
    for _ in range(count):
        empty_point(board, stone)
        board.head[stone] = 0
        _change_liberty(board, stone, 3 - mine, 1)
        stone = board.next[stone]
    board.meta[META_CAPTURED_BLACK + mine - BLACK] += count
    return count


@kernel
def play(board, point, color):
    """Play a stone or a pass: place the stone, remove captured chains and set the point forbidden by simple ko.

    Legality is not checked: the player's own chain is removed if it has no liberty (suicide).

    Args:
        point: an empty point, or PASS.
        color: BLACK or WHITE.
    Returns:
        int: number of the opponent's stones captured.
    """
    meta = board.meta
    meta[META_KO_POINT] = 0
    if point == PASS:
        return 0
    enemy = 3 - color
    stride = meta[META_STRIDE]
    _fill_point(board, point, color)
    _change_liberty(board, point, BLACK, -1)
    _change_liberty(board, point, WHITE, -1)
    chain = point
    captured, taken = 0, 0
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if board.color[neighbour] == color:
            joined = board.head[neighbour]
            if joined != chain:
                chain = _merge(board, joined, chain)
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if board.color[neighbour] == enemy and board.libs[board.head[neighbour]] == 0:
            captured += _remove_chain(board, board.head[neighbour])
            taken = neighbour
    if board.libs[chain] == 0:
        _remove_chain(board, chain)
    elif captured == 1 and board.stones[chain] == 1 and board.libs[chain] == 1:
        meta[META_KO_POINT] = taken
        meta[META_KO_COLOR] = enemy
    return captured


@inlined_kernel
def stones_lost_by_suicide(board, point, color):
    """Number of the player's own stones that a suicide takes off, the new stone included; 0 if it is no suicide."""
    stride = board.meta[META_STRIDE]
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        there = board.color[neighbour]
        if there == EMPTY:
            return 0
        if there != BORDER and (there == color) == (board.libs[board.head[neighbour]] > 1):
            return 0
    lost = 1
    for chain in _chains_around(board, point, color):
        if chain != 0:
            lost += board.stones[chain]
    return lost


@inlined_kernel
def is_legal(board, point, color, multi_stone_suicide):
    """Whether a move is legal by occupation, simple ko and suicide.

    Suicide of a single stone, which leaves the board unchanged, is never legal, as in KataGo's rules.

    Args:
        point: int, on the board or a border cell, not PASS.
        color: BLACK or WHITE.
        multi_stone_suicide: bool, whether suicide of two or more stones is legal.
    """
    if board.color[point] != EMPTY:
        return False
    if point == board.meta[META_KO_POINT] and color == board.meta[META_KO_COLOR]:
        return False
    lost = stones_lost_by_suicide(board, point, color)
    return lost == 0 or (multi_stone_suicide and lost > 1)


@inlined_kernel
def is_eye(board, point, color):
    """Whether an empty point is a single-point eye of a colour: all neighbours have the colour, and it is not false.

    An eye is false if the opponent holds two of its diagonal points, or one if it is at the edge or in the corner.
    """
    stride = board.meta[META_STRIDE]
    cells = board.color
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if cells[neighbour] != color and cells[neighbour] != BORDER:
            return False
    enemy = 3 - color
    held, edge = 0, 0
    for diagonal in (point - stride - 1, point - stride + 1, point + stride - 1, point + stride + 1):
        if cells[diagonal] == enemy:
            held += 1
        elif cells[diagonal] == BORDER:
            edge = 1
    return held + edge < 2


@kernel
def hash_after(board, point, color):
    """Board hash after a move, without playing it. The move must be legal except for superko."""
    result = board.hash[0]
    if point == PASS:
        return result
    result ^= ZOBRIST[color, point]
    for chain in _chains_around(board, point, 3 - color):
        if chain != 0 and board.libs[chain] == 1:
            result ^= _chain_hash(board, chain)
    if stones_lost_by_suicide(board, point, color) > 0:
        result ^= ZOBRIST[color, point]
        for chain in _chains_around(board, point, color):
            if chain != 0:
                result ^= _chain_hash(board, chain)
    return result


@kernel
def _chain_hash(board, chain):
    """XOR of the Zobrist words of a chain's stones."""
    color = board.color[chain]
    result = np.uint64(0)
    stone = chain
    for _ in range(board.stones[chain]):
        result ^= ZOBRIST[color, stone]
        stone = board.next[stone]
    return result


@kernel
def list_captures(board, stone, points, start, end):
    """List the points that capture an enemy chain touching a given chain: the last liberties of enemies in atari.

    Args:
        stone: int, any stone of the chain; the walk begins with it.
        start, end: int, range of the list in ``points`` before the call.
        points: int16[n]: new points are appended at ``end``, without duplicates and as far as they fit.
    Returns:
        int: end of the list after the call.
    """
    cells, head, stride = board.color, board.head, board.meta[META_STRIDE]
    enemy = 3 - cells[stone]
    for _ in range(board.stones[head[stone]]):
        for near in (stone - stride, stone - 1, stone + 1, stone + stride):
            if cells[near] == enemy and board.libs[head[near]] == 1:
                end = append_once(points, start, end, board.lib_sum[head[near]])
        stone = np.int64(board.next[stone])
    return end
