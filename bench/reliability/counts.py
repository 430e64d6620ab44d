"""Number of legal positions by the engine's board: each of the ``3 ** (size * size)`` boards is set up stone by stone.

A board is a legal position if every chain has a liberty. Setting up a board by :func:`engine.go.board.play` captures a
stone exactly if the board is illegal, since points not yet set are empty and liberties only become fewer. A second
implementation, by bit sets, shares no code with the board and must agree on legality and on the stones and liberties of
every chain of a legal position. Source of the numbers: Tromp and Farneback, "Combinatorics of Go", 2007.
"""

import pytest

from bench.reliability.campaign import Outcome, Part
from engine.go.board import META_N_EMPTY, META_SIZE, copy_board, new_board, play
from engine.go.geometry import BLACK, EMPTY, WHITE, point_of
from engine.system.jit import kernel

KNOWN = {2: 57, 3: 12_675, 4: 24_318_165}
PART = Part(title="Legal positions on 2x2, 3x3, 4x4", unit="positions", wanted="57; 12,675; 24,318,165")


@kernel
def _spread(points, size):
    """Points adjacent to any point of a set; bit N of a set is point N, counted row by row."""
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
    """Whether every chain has a liberty, that is, contains a stone beside an empty point."""
    empty = ((1 << (size * size)) - 1) & ~(black | white)
    near = _spread(empty, size)
    return _chain(near & black, black, size) == black and _chain(near & white, white, size) == white


@kernel
def _is_read_by_bits(board, black, white):
    """Whether every chain has as many stones and liberties by the board as by bit sets."""
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
def count(board, blank):
    """Count the legal positions among all colourings of the points.

    Args:
        board, blank: boards of one size; ``board`` is overwritten, ``blank`` is empty.
    Returns:
        (int64, int64): legal positions, and boards on which the two implementations differ.
    """
    size = blank.meta[META_SIZE]
    legal, differing = 0, 0
    for code in range(3 ** (size * size)):
        copy_board(board, blank)
        black, white, is_legal, rest = 0, 0, True, code
        for index in range(size * size):
            color = rest % 3
            rest //= 3
            black |= (color == BLACK) << index
            white |= (color == WHITE) << index
            if is_legal and color != EMPTY:
                left = board.meta[META_N_EMPTY] - 1
                play(board, point_of(index, size), color)
                is_legal = board.meta[META_N_EMPTY] == left
        legal += is_legal
        differing += is_legal != _is_legal_by_bits(black, white, size)
        differing += is_legal and not _is_read_by_bits(board, black, white)
    return legal, differing


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case for each board size."""
    sizes = (2, 3) if metafunc.config.option.campaign["quick"] else KNOWN
    metafunc.parametrize(("size", "amount"), [(size, KNOWN[size]) for size in sizes])


def test_count(size: int, amount: int, outcome: Outcome) -> None:
    """Count the legal positions on one size of board."""
    outcome.amount, differing = count(new_board(size), new_board(size))
    if outcome.amount != amount:
        outcome.faults.append(f"{outcome.amount} legal positions on {size}x{size}, expected {amount}")
    if differing:
        outcome.faults.append(f"{differing} boards of {size}x{size} differ from the bit sets, expected 0")
