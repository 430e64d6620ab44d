"""Chains that live whatever happens: Benson's algorithm.

A chain is *pass-alive* if its opponent cannot capture it even when its owner always passes (D. Benson, "Life in the
game of Go", 1976). Regions here are the connected points not held by the owner, the opponent's stones included. A
region is *vital* to a chain if each of its empty points is a liberty of the chain. Chains with fewer than two vital
regions, and regions that touch a chain given up, are given up in turn until nothing changes.

Where suicide of several stones is legal, an opponent may clear a region of his own stones and so gain room in it. So
there a region is vital only if each of its points, not only each empty one, touches the chain.
"""

from typing import NamedTuple

import numpy as np

from engine.go.board import META_SIZE, META_STRIDE, Board
from engine.go.geometry import BORDER, EMPTY, cell_count, point_of
from engine.jit import kernel

REGION, STACK, TOUCHED, SHARED, VITAL = range(5)
"""Rows of ``LifeScratch.words``"""
CHAIN_LIVES, REGION_LIVES, PROVES, INNER, HOLDS = range(5)
"""Rows of ``LifeScratch.flags``"""
PAIR_CHAIN, PAIR_REGION, PAIR_VITAL = range(3)
"""Rows of ``LifeScratch.pairs``"""


class LifeScratch(NamedTuple):
    """Working memory for boards of one size; one per thread. L = ``cell_count(size)``."""

    words: np.ndarray
    """int16[5, L]: REGION, the number of the region a point belongs to, from 1 (0 = not yet visited, or the owner's
    stone); STACK, points of the region being walked; by chain: TOUCHED, the latest region seen to touch it, SHARED,
    empty points of that region which are its liberties (with suicide: points that touch it), and VITAL, its vital
    regions still standing"""
    flags: np.ndarray
    """uint8[5, L]: CHAIN_LIVES, by chain; by region: REGION_LIVES, PROVES (vital to a living chain), INNER (points that
    touch no stone of the owner, up to 2), HOLDS (whether stones of the opponent are in it)"""
    pairs: np.ndarray
    """int16[3, 4 * L]: chain and region of each touching pair, and whether the region is vital to the chain"""


def new_life_scratch(size: int) -> LifeScratch:
    """Working memory for boards of one size."""
    cells = int(cell_count(size))
    return LifeScratch(
        np.zeros((5, cells), np.int16), np.zeros((5, cells), np.uint8), np.zeros((3, 4 * cells), np.int16)
    )


def pass_alive(board: Board, color: int, out: np.ndarray, suicide: bool = False) -> None:
    """Mark what one colour holds for certain.

    Args:
        out: uint8[size * size] in policy order, overwritten: 1 on pass-alive chains of the colour and on the regions
            vital to one of them, in which the opponent can make no eye.
        suicide: whether suicide of several stones is legal.
    """
    mark_pass_alive(board, color, suicide, new_life_scratch(int(board.meta[META_SIZE])), out)


@kernel
def find_life(board, color, suicide, scratch):
    """Number the regions of a colour and find out which of its chains and regions live; returns the pairs.

    Afterwards the rows REGION, CHAIN_LIVES, REGION_LIVES, INNER and HOLDS tell of both.
    """
    pairs = _find_pairs(board, color, suicide, scratch)
    _give_up(scratch, pairs)
    return pairs


@kernel
def mark_pass_alive(board, color, suicide, scratch, out):
    """:func:`pass_alive` for kernels."""
    size = board.meta[META_SIZE]
    pairs = find_life(board, color, suicide, scratch)
    chain_lives, region_lives = scratch.flags[CHAIN_LIVES], scratch.flags[REGION_LIVES]
    proves, pair_region = scratch.flags[PROVES], scratch.pairs[PAIR_REGION]
    for region in range(len(proves)):
        proves[region] = 0
    for pair in range(pairs):
        if scratch.pairs[PAIR_VITAL, pair] and chain_lives[scratch.pairs[PAIR_CHAIN, pair]]:
            proves[pair_region[pair]] = region_lives[pair_region[pair]]
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] == color:
            out[index] = chain_lives[board.head[point]]
        else:
            out[index] = proves[scratch.words[REGION, point]]


@kernel
def _find_pairs(board, color, suicide, scratch):
    """Number the regions and list which chain touches which; returns the number of pairs."""
    size = board.meta[META_SIZE]
    region = scratch.words[REGION]
    for cell in range(len(region)):
        region[cell] = 0
        scratch.words[TOUCHED, cell] = 0
        scratch.flags[CHAIN_LIVES, cell] = 1
        scratch.flags[REGION_LIVES, cell] = 1
    regions, pairs = 0, 0
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != color and region[point] == 0:
            regions += 1
            pairs = _walk_region(board, color, suicide, scratch, point, regions, pairs)
    return pairs


@kernel
def _walk_region(board, color, suicide, scratch, start, region, pairs):
    """Flood one region from a point and append its pairs; returns the new number of pairs."""
    stride = board.meta[META_STRIDE]
    cells, head = board.color, board.head
    of, stack, touched, shared = (
        scratch.words[REGION],
        scratch.words[STACK],
        scratch.words[TOUCHED],
        scratch.words[SHARED],
    )
    pair_chain, pair_region = scratch.pairs[PAIR_CHAIN], scratch.pairs[PAIR_REGION]
    first_pair, counted, inner, holds = pairs, 0, 0, 0
    of[start] = region
    stack[0] = start
    waiting = 1
    while waiting > 0:
        waiting -= 1
        point = stack[waiting]
        counts = suicide or cells[point] == EMPTY
        counted += counts
        holds |= cells[point] != EMPTY
        one, two, three = 0, 0, 0
        is_inner = 1
        for beside in (point - stride, point - 1, point + 1, point + stride):
            there = cells[beside]
            if there == color:
                is_inner = 0
                chain = head[beside]
                if touched[chain] != region:
                    touched[chain] = region
                    shared[chain] = 0
                    pair_chain[pairs] = chain
                    pair_region[pairs] = region
                    pairs += 1
                if counts and chain != one and chain != two and chain != three:
                    three = two
                    two = one
                    one = chain
                    shared[chain] += 1
            elif there != BORDER and of[beside] == 0:
                of[beside] = region
                stack[waiting] = beside
                waiting += 1
        inner += is_inner
    scratch.flags[INNER, region] = min(inner, 2)
    scratch.flags[HOLDS, region] = holds
    for pair in range(first_pair, pairs):
        scratch.pairs[PAIR_VITAL, pair] = shared[pair_chain[pair]] == counted
    return pairs


@kernel
def _give_up(scratch, pairs):
    """Strike chains with fewer than two vital regions and regions beside struck chains, until nothing changes."""
    chain_lives, region_lives, vital = scratch.flags[CHAIN_LIVES], scratch.flags[REGION_LIVES], scratch.words[VITAL]
    pair_chain, pair_region, pair_vital = (
        scratch.pairs[PAIR_CHAIN],
        scratch.pairs[PAIR_REGION],
        scratch.pairs[PAIR_VITAL],
    )
    changed = True
    while changed:
        changed = False
        for pair in range(pairs):
            vital[pair_chain[pair]] = 0
        for pair in range(pairs):
            if pair_vital[pair] and region_lives[pair_region[pair]]:
                vital[pair_chain[pair]] += 1
        for pair in range(pairs):
            chain, region = pair_chain[pair], pair_region[pair]
            if chain_lives[chain] and vital[chain] < 2:
                chain_lives[chain] = 0
                changed = True
            if not chain_lives[chain] and region_lives[region]:
                region_lives[region] = 0
                changed = True
