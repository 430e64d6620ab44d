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

from engine.go.board import SIZE, STRIDE, Board
from engine.go.geometry import BORDER, EMPTY, point_of
from engine.jit import kernel


class LifeScratch(NamedTuple):
    """Working memory for boards of one size; one per thread. L = ``cell_count(size)``."""

    region: np.ndarray
    """int16[L]: number of the region a point belongs to, from 1; 0 = not yet visited, or the owner's stone"""
    stack: np.ndarray
    """int16[L]: points of the region being walked"""
    touched: np.ndarray
    """int16[L]: by chain, the latest region seen to touch it"""
    shared: np.ndarray
    """int16[L]: by chain, empty points of that region which are its liberties (with suicide: points that touch it)"""
    vital: np.ndarray
    """int16[L]: by chain, its vital regions still standing"""
    chain_lives: np.ndarray
    """uint8[L]: by chain"""
    region_lives: np.ndarray
    """uint8[L]: by region"""
    proves: np.ndarray
    """uint8[L]: by region: vital to a living chain"""
    pair_chain: np.ndarray
    """int16[4 * L]: chain of each touching pair"""
    pair_region: np.ndarray
    """int16[4 * L]: its region"""
    pair_vital: np.ndarray
    """uint8[4 * L]: whether the region is vital to the chain"""


def new_life_scratch(size: int) -> LifeScratch:
    """Working memory for boards of one size."""
    cells = (size + 1) * (size + 2) + 1
    words = [np.zeros(cells, np.int16) for _ in range(5)]
    flags = [np.zeros(cells, np.uint8) for _ in range(3)]
    pairs = [np.zeros(4 * cells, np.int16) for _ in range(2)]
    return LifeScratch(*words, *flags, *pairs, np.zeros(4 * cells, np.uint8))


def pass_alive(board: Board, color: int, out: np.ndarray, suicide: bool = False) -> None:
    """Mark what one colour holds for certain.

    Args:
        out: uint8[size * size] in policy order, overwritten: 1 on pass-alive chains of the colour and on the regions
            vital to one of them, in which the opponent can make no eye.
        suicide: whether suicide of several stones is legal.
    """
    mark_pass_alive(board, color, suicide, new_life_scratch(int(board.meta[SIZE])), out)


@kernel
def mark_pass_alive(board, color, suicide, scratch, out):
    """:func:`pass_alive` for kernels."""
    size = board.meta[SIZE]
    pairs = _find_pairs(board, color, suicide, scratch)
    _give_up(scratch, pairs)
    for region in range(len(scratch.proves)):
        scratch.proves[region] = 0
    for pair in range(pairs):
        if scratch.pair_vital[pair] and scratch.chain_lives[scratch.pair_chain[pair]]:
            scratch.proves[scratch.pair_region[pair]] = scratch.region_lives[scratch.pair_region[pair]]
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] == color:
            out[index] = scratch.chain_lives[board.head[point]]
        else:
            out[index] = scratch.proves[scratch.region[point]]


@kernel
def _find_pairs(board, color, suicide, scratch):
    """Number the regions and list which chain touches which; returns the number of pairs."""
    size = board.meta[SIZE]
    for cell in range(len(scratch.region)):
        scratch.region[cell] = 0
        scratch.touched[cell] = 0
        scratch.chain_lives[cell] = 1
        scratch.region_lives[cell] = 1
    regions, pairs = 0, 0
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != color and scratch.region[point] == 0:
            regions += 1
            pairs = _walk_region(board, color, suicide, scratch, point, regions, pairs)
    return pairs


@kernel
def _walk_region(board, color, suicide, scratch, start, region, pairs):
    """Flood one region from a point and append its pairs; returns the new number of pairs."""
    stride = board.meta[STRIDE]
    cells, head, stack = board.color, board.head, scratch.stack
    first_pair, counted = pairs, 0
    scratch.region[start] = region
    stack[0] = start
    waiting = 1
    while waiting > 0:
        waiting -= 1
        point = stack[waiting]
        counts = suicide or cells[point] == EMPTY
        counted += counts
        one, two, three = 0, 0, 0
        for beside in (point - stride, point - 1, point + 1, point + stride):
            there = cells[beside]
            if there == color:
                chain = head[beside]
                if scratch.touched[chain] != region:
                    scratch.touched[chain] = region
                    scratch.shared[chain] = 0
                    scratch.pair_chain[pairs] = chain
                    scratch.pair_region[pairs] = region
                    pairs += 1
                if counts and chain != one and chain != two and chain != three:
                    three = two
                    two = one
                    one = chain
                    scratch.shared[chain] += 1
            elif there != BORDER and scratch.region[beside] == 0:
                scratch.region[beside] = region
                stack[waiting] = beside
                waiting += 1
    for pair in range(first_pair, pairs):
        scratch.pair_vital[pair] = scratch.shared[scratch.pair_chain[pair]] == counted
    return pairs


@kernel
def _give_up(scratch, pairs):
    """Strike chains with fewer than two vital regions and regions beside struck chains, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for pair in range(pairs):
            scratch.vital[scratch.pair_chain[pair]] = 0
        for pair in range(pairs):
            if scratch.pair_vital[pair] and scratch.region_lives[scratch.pair_region[pair]]:
                scratch.vital[scratch.pair_chain[pair]] += 1
        for pair in range(pairs):
            chain = scratch.pair_chain[pair]
            if scratch.chain_lives[chain] and scratch.vital[chain] < 2:
                scratch.chain_lives[chain] = 0
                changed = True
            region = scratch.pair_region[pair]
            if not scratch.chain_lives[chain] and scratch.region_lives[region]:
                scratch.region_lives[region] = 0
                changed = True
