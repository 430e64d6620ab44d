"""Areas as KataGo's input features show them: who would own what if the game ended here.

Without a tax this is area in the sense of Tromp and Taylor but for stones that are surely dead: a region of a colour
(connected points it does not hold) belongs to it, the opponent's stones included, if all chains around it are
pass-alive and at most one of its points touches none of them, so that no two eyes fit in.

With a tax only independent life counts, and stones. Points of one owner that hang together are not independent if one
of them touches a dame, or is a stone of the owner in atari; of such areas only the owner's stones are shown. The two
points that the group tax costs are not.

Under territory scoring KataGo shows areas in the phases that play out the status of stones after the end of a game.
We do not play those, so there are none.

Source: KataGo, ``fillRowV7``, ``Board::calculateArea`` and ``Board::calculateIndependentLifeArea``.
"""

import numpy as np

from engine.go.arrays import fill_items
from engine.go.board import META_SIZE, META_STRIDE
from engine.go.geometry import BLACK, BORDER, EMPTY, WHITE, index_of, point_of
from engine.go.life import find_life
from engine.go.rules import RULE_SCORING, RULE_TAX, SCORING_TERRITORY, TAX_NONE
from engine.go.scoring import area_owner, owner_sign
from engine.system.jit import kernel


@kernel
def mark_areas(board, rules, suicide, scratch, owner):
    """Write the owner of every point.

    Args:
        board: the caller's own; what it keeps at empty points is overwritten.
        rules: ``Position.rules``.
        suicide: bool, whether pass-alive is meant as if suicide of several stones were legal.
        scratch: :class:`engine.go.life.LifeScratch` of this board size, the caller's own.
        owner: int8[N*N] in policy order, overwritten: 1 = Black's, -1 = White's, 0 = neither's.
    """
    if rules[RULE_SCORING] == SCORING_TERRITORY:
        fill_items(owner, 0)
        return
    area_owner(board, owner)
    for color in (BLACK, WHITE):
        _claim_dead(board, color, suicide, scratch, owner)
    if rules[RULE_TAX] != TAX_NONE:
        _give_up_dependent(board, scratch, owner)


@kernel
def _claim_dead(board, color, suicide, scratch, owner):
    """Give a colour the regions with opponent's stones in which no two eyes fit."""
    size = board.meta[META_SIZE]
    find_life(board, color, suicide, scratch)
    for index in range(size * size):
        region = scratch.region[point_of(index, size)]
        if region != 0 and scratch.holds[region] and scratch.region_lives[region] and scratch.inner[region] < 2:
            owner[index] = owner_sign(color)


@kernel
def _give_up_dependent(board, scratch, owner):
    """Take from the owners what is no independent life, but for their stones.

    Owners of points given up are doubled while others are looked for.
    """
    size = board.meta[META_SIZE]
    for index in range(size * size):
        if abs(owner[index]) == 1 and _is_dependent(board, index, owner):
            _double(board, index, scratch.stack, owner)
    for index in range(size * size):
        if abs(owner[index]) == 2:
            there = board.color[point_of(index, size)]
            owner[index] = owner[index] // 2 if owner_sign(there) * owner[index] > 0 else 0


@kernel
def _is_dependent(board, index, owner):
    """Whether a point that is owned is the owner's stone in atari, or touches a dame."""
    size, stride, cells = board.meta[META_SIZE], board.meta[META_STRIDE], board.color
    point = point_of(index, size)
    if owner_sign(cells[point]) == owner[index] and board.libs[board.head[point]] == 1:
        return True
    for beside in (point - stride, point - 1, point + 1, point + stride):
        if cells[beside] == EMPTY and owner[index_of(beside, size)] == 0:
            return True
    return False


@kernel
def _double(board, index, stack, owner):
    """Double the owner of a point and of all that hangs together with it."""
    size, stride = board.meta[META_SIZE], board.meta[META_STRIDE]
    mine = owner[index]
    owner[index] = 2 * mine
    stack[0] = point_of(index, size)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        point = np.int64(stack[waiting])
        for beside in (point - stride, point - 1, point + 1, point + stride):
            if board.color[beside] == BORDER:
                continue
            at = index_of(beside, size)
            if owner[at] == mine:
                owner[at] = 2 * mine
                stack[waiting] = beside
                waiting += 1
