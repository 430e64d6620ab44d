"""Legal positions counted by the engine's board: each of the ``3 ** (size * size)`` boards is set up, stone by stone.

A board is a legal position if every chain has a liberty. Setting it up by :func:`engine.go.board.play` takes a stone
off exactly where that fails: points to come are empty, so liberties only become fewer. A second reading of each board
by sets of bits, which shares nothing with the first, must agree on that, and on the stones and liberties of every chain
of a legal position. Source of the numbers: Tromp and Farneback, "Combinatorics of Go", 2007.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench.reliability.part import Campaign, Case, Outcome, Part
from engine.go.board import META_N_EMPTY, META_SIZE, copy_board, new_board, play
from engine.go.geometry import BLACK, EMPTY, WHITE, point_of
from engine.system.jit import kernel

KNOWN = {2: 57, 3: 12_675, 4: 24_318_165}


@kernel
def _spread(points, size):
    """The neighbours of a set of points; a bit a point, row after row."""
    first = 0
    for row in range(size):
        first |= 1 << (row * size)
    last, every = first << (size - 1), (1 << (size * size)) - 1
    return ((points & ~last) << 1 | (points & ~first) >> 1 | points << size | points >> size) & every


@kernel
def _chain(point, stones, size):
    """The chain of a point among stones of its colour."""
    chain, before = point, 0
    while chain != before:
        before = chain
        chain |= _spread(chain, size) & stones
    return chain


@kernel
def _bits(points):
    """Number of points in a set."""
    count = 0
    while points:
        points &= points - 1
        count += 1
    return count


@kernel
def _is_legal_by_bits(black, white, size):
    """Whether every chain has a liberty: a stone is connected to one beside an empty point."""
    empty = ((1 << (size * size)) - 1) & ~(black | white)
    near = _spread(empty, size)
    return _chain(near & black, black, size) == black and _chain(near & white, white, size) == white


@kernel
def _is_read_by_bits(board, black, white):
    """Whether the board knows the stones and liberties of each of its chains as sets of bits have them."""
    size = board.meta[META_SIZE]
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != EMPTY and board.head[point] == point:
            chain = _chain(1 << index, black if board.color[point] == BLACK else white, size)
            liberties = _spread(chain, size) & ~(black | white)
            if board.stones[point] != _bits(chain) or board.libs[point] != _bits(liberties):
                return False
    return True


@kernel
def count(boards, choice):
    """Count the legal positions among all colourings of the points.

    Args:
        boards: one empty board for each number of coloured points, from none to all.
        choice: int64[points + 1] of zeros: the colour to try next, for each number of coloured points.
    Returns:
        (int64, int64): legal positions, and boards of which the two readings differ.
    """
    size = boards[0].meta[META_SIZE]
    last, depth, legal, differing = size * size, 0, 0, 0
    black, white, fails = 0, 0, last + 1
    while depth >= 0:
        if depth == last:
            is_legal = fails > last
            legal += is_legal
            differing += is_legal != _is_legal_by_bits(black, white, size)
            differing += is_legal and not _is_read_by_bits(boards[last], black, white)
        if depth == last or choice[depth] > WHITE:
            choice[depth] = EMPTY
            depth -= 1
            if depth >= 0:
                black, white = black & ~(1 << depth), white & ~(1 << depth)
                fails = fails if fails < depth else last + 1
            continue
        color = choice[depth]
        choice[depth] += 1
        if depth < fails:
            board = boards[depth + 1]
            copy_board(board, boards[depth])
            if color != EMPTY:
                play(board, point_of(depth, size), color)
                stones = last - boards[depth].meta[META_N_EMPTY]
                fails = depth if last - board.meta[META_N_EMPTY] != stones + 1 else last + 1
        black |= (color == BLACK) << depth
        white |= (color == WHITE) << depth
        depth += 1
    return legal, differing


def _run(size: int, folder: Path) -> Outcome:
    """Count the legal positions on one size of board."""
    boards = tuple(new_board(size) for _ in range(size * size + 1))
    legal, differing = count(boards, np.zeros(size * size + 1, np.int64))
    faults = [] if legal == KNOWN[size] else [f"{legal} legal positions on {size}x{size}, expected {KNOWN[size]}"]
    if differing:
        faults.append(f"{differing} boards of {size}x{size} are read otherwise by sets of bits, expected 0")
    return Outcome(faults, amount=legal)


def _cases(campaign: Campaign) -> Iterator[Case]:
    """One case a size."""
    for size in (2, 3) if campaign.quick else KNOWN:
        yield Case(f"{size}x{size}", partial(_run, size), KNOWN[size])


PART = Part(
    __name__,
    title="Legal positions on 2x2, 3x3, 4x4",
    unit="positions",
    wanted="57; 12,675; 24,318,165",
    cases=_cases,
)
