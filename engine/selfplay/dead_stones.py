"""The count of finished games without their dead stones, which rollouts find out.

Policies that may pass at any time end games as people do, with dead stones on the board.
"""

import numpy as np

from engine.go.seki import count_without_dead
from engine.records.games import RESIGNED
from engine.rollout.ownership import average_ownership
from engine.selfplay.boards import position_of
from engine.system.jit import kernel

ROLLOUTS = 128
CERTAINTY = 0.35
"""Mean ownership from which on the opponent's side counts a chain as dead. Uniformly random rollouts play into a seki
and give it away; at this certainty chains in seki stay."""


@kernel
def count_living(table, seats, endings, memory, ownership, leads):
    """:func:`engine.selfplay.table.count_games` after dead stones were taken off; draws from the games' states.

    Args:
        memory: :class:`engine.go.seki.CountMemory`, for games of the table's capacity.
        ownership: float32[N*N], overwritten.
    """
    for k in range(len(seats)):
        leads[k] = np.nan
        if endings[seats[k]] == RESIGNED:
            continue
        position = position_of(table.boards, seats[k])
        average_ownership(position.board, memory.cleared.board, None, ROLLOUTS, table.states[seats[k]], ownership)
        leads[k] = count_without_dead(position, ownership, CERTAINTY, memory)
