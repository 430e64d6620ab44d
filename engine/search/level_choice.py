"""The choice of a move at a level below full strength: weights of the root's moves, and one drawn by them.

A move's *worth* is ``prior * exp(-loss / points)``: the network's prior, and the points that the search says it loses.
Its weight is ``worth ** (1 / temperature)``, larger near the opponent's last move and for captures and rescues. Moves
that no person plays have the weight 0 (:func:`_is_absurd`), as have those whose worth is a small share of the best's.
A search of one visit is the policy alone, without losses. Start at :func:`draw_by_level`.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from engine.features.common import after_move
from engine.go.board import META_SIZE, META_STRIDE, is_eye
from engine.go.geometry import PASS, cell_count, point_of
from engine.go.position import META_N_MOVES, META_TO_MOVE
from engine.go.random import draw
from engine.go.scoring import area_owner, owner_sign
from engine.system.arrays import allocate
from engine.system.jit import kernel

SURE = 0.8
"""Share of all worth from which the best move is played at every level: a forced answer"""
CLEAR = 0.25
"""Share of all worth from which a move is never absurd: the network means it, as a throw-in"""
NEAR = 2.5
"""Standard deviation, in points of the board, of the larger weight near the opponent's last move"""
EAGER = 0.5
"""Addition to the factor of a move's weight for each stone that it captures or takes out of atari"""
EDGE, OPENING = 2, 1.0 / 12.0
"""Lines from the edge on which nobody plays away from the last move in the opening, and the opening's length in moves
as a share of the board's points"""


class Level(NamedTuple):
    """The settings of a level; ``visits`` 0 = full strength, no level."""

    visits: int = 0
    """visits of the search; 1 = the policy alone"""
    temperature: float = 1.0
    """exponent 1 / temperature of a move's worth"""
    least: float = 0.0
    """smallest worth of a move that is drawn, as a share of the best move's"""
    points: float = 1.0
    """loss in points, by the search, that divides a move's worth by e"""
    locality: float = 0.0
    """addition to the factor of a move's weight on the opponent's last move; it falls off with the distance"""


FULL_STRENGTH = Level()


class LevelScratch(NamedTuple):
    """Working memory of a draw: L = cells of the padded board, P = points, A = P + 1 moves."""

    marks: Annotated[np.ndarray, "int64[L]"]
    stamp: Annotated[np.ndarray, "int64[1]"]
    owners: Annotated[np.ndarray, "int8[P]"]
    losses: Annotated[np.ndarray, "float64[A]"]
    weights: Annotated[np.ndarray, "float64[A]"]


def new_level_scratch(size: int) -> LevelScratch:
    """Working memory for boards of one size."""
    return allocate(LevelScratch, L=cell_count(size), P=size * size, A=size * size + 1)


@kernel
def draw_by_level(position, priors, losses, level, scratch, state):
    """Draw a move, as a policy index; it has a prior above 0.

    Args:
        priors: float64[A] in policy order, 0 = not to be played; at least one is above 0.
        losses: float64[A]: points that a move loses compared with the best one by the search; inf = not searched. All
            are 0 without a search.
        level: :class:`Level` with visits.
        scratch: :class:`LevelScratch`; ``scratch.losses`` may be ``losses``.
        state: uint64[4], random state.
    """
    weigh_moves(position, priors, losses, level, scratch)
    return draw(scratch.weights, state)


@kernel
def weigh_moves(position, priors, losses, level, scratch):
    """Write the weights of all moves to ``scratch.weights``, float64[A]; arguments as for :func:`draw_by_level`.

    1. The worth of every move. A pass is never drawn: it is played if nothing is worth more.
    2. A move worth more than nearly all the others together is played.
    3. The weights of the others.
    """
    weights, area = scratch.weights, len(priors) - 1
    # 1
    best, most, total = area, 0.0, 0.0
    for index in range(area + 1):
        weights[index] = priors[index] * math.exp(-losses[index] / level.points)
        total += weights[index]
        if weights[index] > most:
            best, most = index, weights[index]
    passing = weights[area]
    # 2
    if best == area or most >= SURE * total:
        weights[:] = 0.0
        weights[best] = 1.0
        return
    # 3
    area_owner(position.board, scratch.owners)
    for index in range(area):
        worth = weights[index]
        if worth < level.least * most or worth <= passing:
            weights[index] = 0.0
            continue
        is_meant = index == best or worth >= CLEAR * total
        factor = _factor(position, index, is_meant, level.locality, scratch)
        weights[index] = factor * (worth / most) ** (1.0 / level.temperature)
    weights[area] = 0.0


@kernel
def _factor(position, index, is_meant, locality, scratch):
    """Factor of a move's weight for its place and the stones that it captures or rescues; 0 for an absurd move.

    Args:
        is_meant: whether the move is never absurd.
    """
    board, color = position.board, position.meta[META_TO_MOVE]
    size = board.meta[META_SIZE]
    point = point_of(index, size)
    captured, _, liberties = after_move(board, point, color, 2, scratch)
    distance = _distance_to_last(position, index)
    if not is_meant and _is_absurd(position, index, captured, liberties, distance, scratch.owners):
        return 0.0
    saved, stride = 0, board.meta[META_STRIDE]
    if liberties > 1:
        for beside in (point - stride, point - 1, point + 1, point + stride):
            if board.color[beside] == color and board.libs[board.head[beside]] == 1:
                saved = max(saved, board.stones[board.head[beside]])
    near = math.exp(-0.5 * (distance / NEAR) ** 2)
    return (1.0 + locality * near) * (1.0 + EAGER * (captured + saved))


@kernel
def _is_absurd(position, index, captured, liberties, distance, owners):
    """Whether no person plays a move: it fills an own eye or own territory, puts own stones into atari without a
    capture, or is a far move near the edge in the opening.

    Args:
        captured, liberties: stones that the move captures, liberties of its chain after it (up to 2).
        distance: from the opponent's last move, in points of the board.
        owners: int8[P], the owners of all points, all stones alive.
    """
    board, color = position.board, position.meta[META_TO_MOVE]
    size, n_moves = board.meta[META_SIZE], position.meta[META_N_MOVES]
    if captured == 0 and liberties < 2:
        return True
    # Before both sides have stones, the whole board has one owner.
    if n_moves > 2 and owners[index] == owner_sign(color):
        return captured == 0 or is_eye(board, point_of(index, size), color)
    row, column = index // size, index % size
    line = 1 + min(min(row, column), min(size - 1 - row, size - 1 - column))
    return line <= EDGE and n_moves < OPENING * size * size and distance > NEAR


@kernel
def _distance_to_last(position, index):
    """Distance of a point from the opponent's last move, in points of the board; inf after a pass or at the start."""
    n_moves, size = position.meta[META_N_MOVES], position.board.meta[META_SIZE]
    last = position.moves[n_moves - 1] if n_moves > 0 else PASS
    if last == PASS:
        return math.inf
    rows = last // (size + 1) - 1 - index // size
    columns = last % (size + 1) - 1 - index % size
    return math.sqrt(rows * rows + columns * columns)
