"""Unconditionally alive chains: Benson's algorithm.

A chain is *pass-alive* if its opponent cannot capture it even if its owner always passes. Regions here are maximal
connected sets of points without a stone of the owner: empty points and the opponent's stones. A region is *vital* to a
chain if each of its empty points is a liberty of the chain. Chains with fewer than two vital regions, and regions that
touch a removed chain, are removed repeatedly until nothing changes; the remaining chains are pass-alive.

If suicide of several stones is legal, the opponent may remove stones of his own from a region and so gain room in it.
Then a region is vital only if each of its points, not only each empty one, touches the chain.

Source: David B. Benson, "Life in the game of Go", Information Sciences 10 (1976).
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.go.board import META_SIZE, META_STRIDE, Board
from engine.go.geometry import BORDER, EMPTY, cell_count, point_of
from engine.system.arrays import allocate, fill_items
from engine.system.jit import kernel


class LifeScratch(NamedTuple):
    """Working memory for boards of one size; one per thread. L = ``cell_count(size)``."""

    region: Annotated[np.ndarray, "int16[L]"]
    """by point: number of its region, from 1; 0 = not visited yet, or the owner's stone"""
    stack: Annotated[np.ndarray, "int16[L]"]
    """points of the region being walked"""
    touched: Annotated[np.ndarray, "int16[L]"]
    """by chain: the last region found to touch it, by its number; 0 = none"""
    shared: Annotated[np.ndarray, "int16[L]"]
    """by chain: how many empty points (all points if suicide is legal) of the region in ``touched`` touch the chain"""
    vital: Annotated[np.ndarray, "int16[L]"]
    """by chain: number of its vital regions that are not removed"""
    chain_lives: Annotated[np.ndarray, "uint8[L]"]
    """by chain: 1 = not removed; in the end, pass-alive"""
    region_lives: Annotated[np.ndarray, "uint8[L]"]
    """by region: 1 = not removed; in the end, it touches pass-alive chains only"""
    proves: Annotated[np.ndarray, "uint8[L]"]
    """by region: 1 = vital to a pass-alive chain"""
    inner: Annotated[np.ndarray, "uint8[L]"]
    """by region: number of its points that touch no stone of the owner, counted up to 2"""
    holds: Annotated[np.ndarray, "uint8[L]"]
    """by region: 1 = it contains stones of the opponent"""
    pair_chain: Annotated[np.ndarray, "int16[4 * L]"]
    """by pair of a chain and a region that touch: the chain"""
    pair_region: Annotated[np.ndarray, "int16[4 * L]"]
    """by pair: number of the region"""
    pair_vital: Annotated[np.ndarray, "int16[4 * L]"]
    """by pair: 1 = the region is vital to the chain"""


def new_life_scratch(size: int) -> LifeScratch:
    """Working memory for boards of one size."""
    return allocate(LifeScratch, L=int(cell_count(size)))


def pass_alive(board: Board, color: int, out: np.ndarray, suicide: bool = False) -> None:
    """Mark a colour's pass-alive chains and their eyes.

    Args:
        color: BLACK or WHITE.
        out: uint8[size * size] in policy order, overwritten: 1 on pass-alive chains of the colour and on the regions
            vital to one of them (the opponent can make no eye there).
        suicide: whether suicide of several stones is legal.
    """
    mark_pass_alive(board, color, suicide, new_life_scratch(int(board.meta[META_SIZE])), out)


@kernel
def find_life(board, color, suicide, scratch):
    """Run Benson's algorithm for a colour: number its regions, then remove chains and regions that are not alive.

    Args:
        suicide: bool, whether suicide of several stones is legal.
        scratch: :class:`LifeScratch` of this board size, overwritten; ``region``, ``chain_lives``, ``region_lives``,
            ``inner`` and ``holds`` are the result.
    Returns:
        int: number of valid items of ``pair_chain``, ``pair_region`` and ``pair_vital``.
    """
    pairs = _find_pairs(board, color, suicide, scratch)
    _give_up(scratch, pairs)
    return pairs


@kernel
def mark_pass_alive(board, color, suicide, scratch, out):
    """The kernel of :func:`pass_alive`, in the caller's memory.

    Args:
        suicide, scratch: as for :func:`find_life`.
        out: uint8[size * size], as for :func:`pass_alive`.
    """
    size = board.meta[META_SIZE]
    pairs = find_life(board, color, suicide, scratch)
    fill_items(scratch.proves, 0)
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
    """Number the regions and list each pair of a chain and a region that touch; returns the number of pairs."""
    size = board.meta[META_SIZE]
    fill_items(scratch.region, 0)
    fill_items(scratch.touched, 0)
    fill_items(scratch.chain_lives, 1)
    fill_items(scratch.region_lives, 1)
    regions, pairs = 0, 0
    for index in range(size * size):
        point = point_of(index, size)
        if board.color[point] != color and scratch.region[point] == 0:
            regions += 1
            pairs = _walk_region(board, color, suicide, scratch, point, regions, pairs)
    return pairs


@kernel
def _walk_region(board, color, suicide, scratch, start, region, pairs):
    """Flood-fill one region from a point and append its pairs; returns the new number of pairs."""
    stride = board.meta[META_STRIDE]
    cells, head = board.color, board.head
    of, stack, touched, shared = scratch.region, scratch.stack, scratch.touched, scratch.shared
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
                    scratch.pair_chain[pairs] = chain
                    scratch.pair_region[pairs] = region
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
    scratch.inner[region] = min(inner, 2)
    scratch.holds[region] = holds
    for pair in range(first_pair, pairs):
        scratch.pair_vital[pair] = shared[scratch.pair_chain[pair]] == counted
    return pairs


@kernel
def _give_up(scratch, pairs):
    """Remove chains with fewer than two vital regions, and regions that touch removed chains, until nothing changes."""
    chain_lives, region_lives, vital = scratch.chain_lives, scratch.region_lives, scratch.vital
    pair_chain, pair_region, pair_vital = scratch.pair_chain, scratch.pair_region, scratch.pair_vital
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
