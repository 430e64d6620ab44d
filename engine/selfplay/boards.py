"""Many positions in one block of memory, so that one kernel call can walk through all of them."""

from typing import NamedTuple

import numpy as np

from engine.go.board import Board
from engine.go.position import Position, new_position
from engine.system.jit import kernel


class Boards(NamedTuple):
    """S positions of one size. But for ``layout``, row s of an array is what :class:`Position` calls by its name."""

    layout: np.ndarray
    """int64[F, 2]: where each field of a :class:`Board` but the first begins and ends in its buffer, in bytes"""
    buffer: np.ndarray
    """uint64[S, words]: the boards"""
    rules: np.ndarray
    meta: np.ndarray
    past: np.ndarray
    moves: np.ndarray
    colors: np.ndarray
    hashes: np.ndarray
    seen: np.ndarray


def new_boards(size: int, count: int, capacity: int) -> Boards:
    """Empty positions, Black to move, each with room for ``capacity`` moves."""
    one = new_position(size, capacity)
    start = one.board.buffer.ctypes.data
    fields = one.board[1:]
    layout = [(field.ctypes.data - start, field.ctypes.data - start + field.nbytes) for field in fields]
    rows = [np.repeat(getattr(one, name)[None], count, axis=0) for name in Position._fields[1:]]
    return Boards(np.array(layout, np.int64), np.repeat(one.board.buffer[None], count, axis=0), *rows)


@kernel
def position_of(boards, row):
    """The position of a row, as views: what is played on it stays."""
    buffer, at = boards.buffer[row], boards.layout
    raw = buffer.view(np.uint8)
    board = Board(
        buffer,
        raw[at[0, 0] : at[0, 1]].view(np.uint64),
        raw[at[1, 0] : at[1, 1]].view(np.int64),
        raw[at[2, 0] : at[2, 1]].view(np.int32),
        raw[at[3, 0] : at[3, 1]].view(np.int16),
        raw[at[4, 0] : at[4, 1]].view(np.int16),
        raw[at[5, 0] : at[5, 1]].view(np.int16),
        raw[at[6, 0] : at[6, 1]].view(np.int16),
        raw[at[7, 0] : at[7, 1]].view(np.int16),
        raw[at[8, 0] : at[8, 1]].view(np.int16),
        raw[at[9, 0] : at[9, 1]],
    )
    return Position(
        board,
        boards.rules[row],
        boards.meta[row],
        boards.past[row],
        boards.moves[row],
        boards.colors[row],
        boards.hashes[row],
        boards.seen[row],
    )
