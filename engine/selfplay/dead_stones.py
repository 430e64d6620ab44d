"""The count of finished games without their dead stones, which rollouts find out.

Policies that may pass when they wish end games as people do, with dead stones on the board.
"""

from typing import NamedTuple

import numpy as np

from engine.go.board import Board, copy_board, new_board
from engine.go.position import Position, copy_position, new_position
from engine.go.scoring import mark_dead, take_off
from engine.go.seki import score_in_memory
from engine.records.games import RESIGNED
from engine.rollout.ownership import average_ownership
from engine.selfplay.boards import position_of
from engine.system.jit import kernel

ROLLOUTS = 128
CERTAINTY = 0.35
"""Mean ownership from which on the opponent's side counts a chain as dead. Uniformly random rollouts play into a seki
and give it away; at this certainty chains in seki stay."""


class Memory(NamedTuple):
    """What counting overwrites, and an empty position."""

    fresh: Position
    cleared: Position
    ownership: np.ndarray
    against: np.ndarray
    dead: np.ndarray
    filled: Board
    trial: Board
    marks: np.ndarray


def new_memory(size: int, capacity: int) -> Memory:
    """For games of up to ``capacity`` moves."""
    fresh, cleared = new_position(size, 1), new_position(size, capacity)
    cells = len(fresh.board.color)
    return Memory(
        fresh, cleared, np.zeros(size * size, np.float32), np.zeros(cells), np.zeros(cells, np.uint8), new_board(size),
        new_board(size), np.zeros(size * size, np.uint8),
    )  # fmt: skip


@kernel
def count_living(table, seats, endings, memory, leads):
    """:func:`engine.selfplay.table.count_games` after dead stones were taken off; draws from the games' states."""
    board = memory.cleared.board
    for k in range(len(seats)):
        leads[k] = np.nan
        if endings[seats[k]] == RESIGNED:
            continue
        position = position_of(table.boards, seats[k])
        average_ownership(position.board, board, None, ROLLOUTS, table.states[seats[k]], memory.ownership)
        mark_dead(position.board, memory.ownership, CERTAINTY, memory.against, memory.dead)
        copy_position(memory.cleared, position)
        copy_board(board, memory.fresh.board)
        take_off(board, position.board, memory.dead)
        leads[k] = score_in_memory(memory.cleared, memory.filled, memory.trial, memory.marks)
