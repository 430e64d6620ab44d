"""The rollout policy: a softmax over local patterns with weights that are updated incrementally.

Each empty point has a *static* weight for each colour, the exponential of the sum of the features of its 3x3 code
(pattern and save-atari), stored in :class:`Weights` with sums over blocks of points. After a move only points near
stones whose liberty class changed are updated (:func:`follow`). The *responses*, points with features that depend on
the last move, also have factors (:func:`list_responses`): response pattern and neighbour, nakade, and captures that
save a chain which the last move put into atari. :func:`draw` samples exactly from the product.

Weights are integers, so incremental sums are exact. The weight of an illegal point or an own eye is 0; simple ko is
checked when a move is drawn.

Source: AlphaGo, Methods, "Rollout policy"; Extended Data Table 4.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_N_EMPTY, META_STRIDE, play
from engine.go.geometry import BLACK, EMPTY, PASS, cell_count
from engine.go.random import next_unit
from engine.rollout.last_good_replies import recall
from engine.rollout.patterns import (
    MOST_NAKADE,
    MOST_SAVERS,
    OUTSIDE,
    all_states,
    context_of,
    for_mover,
    is_rescue,
    list_savers,
    nakade_pattern,
    square_code,
    swap_colors,
)
from engine.rollout.vocabulary import FIRST_CELL, HashTable, find
from engine.system.arrays import allocate, fill_items
from engine.system.jit import inlined_kernel, kernel

BLOCK_BITS = 4
"""A block has 2**BLOCK_BITS = 16 cells. A draw scans the sums of blocks, at most 27 on 19x19, then one block"""
MOST_RESPONSES = 64
CLOCK_LOOK_UP, CLOCK_RESPONSES = range(2)
"""Indices into ``Weights.clock``"""
FACTOR_BITS = 7
"""Factors are integers in units of 2**-FACTOR_BITS = 1/128"""
MOST_FACTOR = (1 << 16) - 1
"""Largest factor in units of 1/128: nearly 512"""


class Tables(NamedTuple):
    """Tables of a rollout policy: weights and factors by code, made by :func:`engine.rollout.model.rollout_tables`."""

    square: np.ndarray
    """uint16[2**24]: index in ``static`` of each 3x3 code with black to move; 0 = no sensible move in its centre"""
    static: np.ndarray
    """int32[numbers]: static weight, 1 to ``model.LARGEST``; 0 at index 0"""
    contexts: HashTable
    """by context of the last move: uint16[H + 1, 16], factors of the cells of its diamond from column FIRST_CELL on"""
    nakade: np.ndarray
    """uint16[8192]: factor of each :func:`engine.rollout.patterns.nakade_pattern`"""
    save: np.ndarray
    """uint16[1]: factor of a capture that saves a chain"""


class Weights(NamedTuple):
    """Static weights and responses of one position; L = ``cell_count(size)``. Columns are colours: Black 0, White 1."""

    cell: Annotated[np.ndarray, "uint8[L]"]
    """state of every cell (:mod:`engine.rollout.patterns`)"""
    weight: Annotated[np.ndarray, "int32[L, 2]"]
    """by cell: static weight; 0 = no sensible move, or not empty"""
    block: Annotated[np.ndarray, "int64[(L >> BLOCK_BITS) + 1, 2]"]
    """sums of the weights of the cells in each block of 16"""
    total: Annotated[np.ndarray, "int64[2]"]
    """sum of all weights, of Black and of White"""
    dirty: Annotated[np.ndarray, "int16[2 * L]"]
    """points to update; the first N are valid, N returned by :func:`changed_points`"""
    stamp: Annotated[np.ndarray, "int32[L]"]
    """by point: number of the last update that listed the point in ``dirty``"""
    response: Annotated[np.ndarray, "int16[MOST_RESPONSES]"]
    """points with factors, each once; the first N are valid, N returned by :func:`list_responses`"""
    factor: Annotated[np.ndarray, "int64[L]"]
    """by point: factor in units of 1/128, valid where ``response_stamp`` is ``clock[CLOCK_RESPONSES]``"""
    boosted: Annotated[np.ndarray, "int64[MOST_RESPONSES]"]
    """by response: weight times factor"""
    response_stamp: Annotated[np.ndarray, "int32[L]"]
    """by point: number of the last list of responses that contained the point"""
    saver: Annotated[np.ndarray, "int16[MOST_SAVERS]"]
    """points that save a chain by a capture (:func:`engine.rollout.patterns.list_savers`)"""
    clock: Annotated[np.ndarray, "int32[2]"]
    """by ``CLOCK_...``: number of the current update; number of the current list of responses"""


def new_weights(size: int) -> Weights:
    """Memory for boards of one size."""
    return allocate(Weights, L=int(cell_count(size)), MOST_SAVERS=MOST_SAVERS)


@kernel
def begin(weights, board, tables):
    """Compute the cell states and weights of a board from scratch."""
    all_states(board, weights.cell)
    fill_items(weights.clock, 0)
    fill_items(weights.block.reshape(-1), 0)
    fill_items(weights.total, 0)
    fill_items(weights.weight.reshape(-1), 0)
    fill_items(weights.stamp, 0)
    fill_items(weights.response_stamp, 0)
    for i in range(board.meta[META_N_EMPTY]):
        _look_up(weights, tables, np.int64(board.empty[i]), board.meta[META_STRIDE])


@inlined_kernel
def _set_weight(weights, point, black, white):
    """Set both colours' weights of a point, and update the sums."""
    more_black = black - np.int64(weights.weight[point, 0])
    more_white = white - np.int64(weights.weight[point, 1])
    weights.weight[point, 0] = black
    weights.weight[point, 1] = white
    block = point >> BLOCK_BITS
    weights.block[block, 0] += more_black
    weights.block[block, 1] += more_white
    weights.total[0] += more_black
    weights.total[1] += more_white


@inlined_kernel
def _look_up(weights, tables, point, stride):
    """Set both colours' weights of an empty point to those of the 3x3 code around it."""
    code = square_code(weights.cell, point, stride)
    black = np.int64(tables.static[tables.square[code]])
    white = np.int64(tables.static[tables.square[swap_colors(code)]])
    _set_weight(weights, point, black, white)


@inlined_kernel
def _set_state(weights, point, state, stride, count):
    """Set a cell's state, and add the empty points of its 3x3 square to ``dirty``, once; returns the new length."""
    cell, stamp, dirty, now = weights.cell, weights.stamp, weights.dirty, weights.clock[CLOCK_LOOK_UP]
    cell[point] = state
    for start in (point - stride - 1, point - 1, point + stride - 1):
        for near in (start, start + 1, start + 2):
            if cell[near] == EMPTY and stamp[near] != now:
                dirty[count] = near
                count += 1
                stamp[near] = now
    return count


@kernel
def _set_chain(weights, board, stone, state, stride, count):
    """Apply :func:`_set_state` to the stones of a chain whose state differs; returns the length of ``dirty``."""
    for _ in range(board.stones[board.head[stone]]):
        if weights.cell[stone] != state:
            count = _set_state(weights, stone, state, stride, count)
        stone = np.int64(board.next[stone])
    return count


@inlined_kernel
def _class_of(board, stone, color):
    """Cell state of a chain's stones, by the present number of its liberties."""
    return min(board.libs[board.head[stone]], 3) + 4 * (color - BLACK)


@inlined_kernel
def changed_points(weights, board, point, color, captured):
    """Update ``cell`` after a move, and list the empty points whose 3x3 code changed.

    Args:
        weights: :class:`Weights` before the move.
        board: after the move.
        point: int, the move, not PASS.
        color: BLACK or WHITE, colour of the move.
        captured: number of captured stones, which are the last of ``board.empty``.
    Returns:
        int: number of points in ``weights.dirty``.
    """
    stride, cell, colors = board.meta[META_STRIDE], weights.cell, board.color
    weights.clock[CLOCK_LOOK_UP] += 1
    count = 0
    own = _class_of(board, point, color)
    merged = False
    for near in (point - stride, point - 1, point + 1, point + stride):
        if colors[near] == color:
            merged |= cell[near] != own
    for i in range(board.meta[META_N_EMPTY] - captured, board.meta[META_N_EMPTY]):
        # All captured points become empty first, so that each is listed as a neighbour of the others.
        cell[board.empty[i]] = EMPTY
    if merged:
        count = _set_chain(weights, board, point, own, stride, count)
    else:
        count = _set_state(weights, point, own, stride, count)
    for near in (point - stride, point - 1, point + 1, point + stride):
        if colors[near] == 3 - color:
            state = _class_of(board, near, 3 - color)
            if cell[near] != state:
                count = _set_chain(weights, board, near, state, stride, count)
    for i in range(board.meta[META_N_EMPTY] - captured, board.meta[META_N_EMPTY]):
        freed = np.int64(board.empty[i])
        count = _set_state(weights, freed, EMPTY, stride, count)
        for near in (freed - stride, freed - 1, freed + 1, freed + stride):
            if colors[near] == color:
                state = _class_of(board, near, color)
                if cell[near] != state:
                    count = _set_chain(weights, board, near, state, stride, count)
    return count


@inlined_kernel
def follow(weights, board, tables, point, color, captured):
    """Update the weights after a move.

    Args:
        tables: :class:`Tables`, the same as for :func:`begin`.
        weights, board, point, color, captured: as for :func:`changed_points`.
    """
    count = changed_points(weights, board, point, color, captured)
    _set_weight(weights, point, 0, 0)
    stride = board.meta[META_STRIDE]
    for i in range(count):
        _look_up(weights, tables, np.int64(weights.dirty[i]), stride)


@inlined_kernel
def _add_response(weights, count, point, factor):
    """Multiply the factor of a listed response, or list the point with it; returns the number of responses."""
    if weights.response_stamp[point] == weights.clock[CLOCK_RESPONSES]:
        weights.factor[point] = (weights.factor[point] * factor) >> FACTOR_BITS
        return count
    weights.response_stamp[point] = weights.clock[CLOCK_RESPONSES]
    weights.factor[point] = factor
    weights.response[count] = point
    return count + 1


@inlined_kernel
def _add_cell(weights, count, point, factor):
    """List an unlisted cell if it is empty, without a hard-to-predict branch; returns the number of responses."""
    weights.response_stamp[point] = weights.clock[CLOCK_RESPONSES]
    weights.factor[point] = factor
    weights.response[count] = point
    return count + (weights.cell[point] == EMPTY)


@kernel
def clear_responses(weights):
    """Clear the list of responses; returns the number of responses, 0."""
    weights.clock[CLOCK_RESPONSES] += 1
    return 0


@kernel
def list_responses(weights, board, tables, last, color, captured):
    """List the responses to the last move with their factors; call :func:`clear_responses` first.

    Args:
        weights: :class:`Weights` of the board; ``response`` and ``factor`` are overwritten.
        tables: :class:`Tables`.
        last: the last move, not PASS.
        color: the side to move.
        captured: number of stones that the last move captured.
    Returns:
        int: number of points in ``weights.response``.
    """
    cell, stride = weights.cell, board.meta[META_STRIDE]
    row, count = find(tables.contexts.keys, context_of(cell, board, last, color)), 0
    factors = tables.contexts.values[row]
    for i, step in enumerate((-stride - 1, -stride, -stride + 1, -1, 1, stride - 1, stride, stride + 1)):
        count = _add_cell(weights, count, last + step, np.int64(factors[FIRST_CELL + i]))
    for i, step in enumerate((-stride, -1, 1, stride)):
        # Cells behind the border may lie outside the arrays; PASS is a border cell.
        far = last + 2 * step if cell[last + step] != OUTSIDE else PASS
        count = _add_cell(weights, count, far, np.int64(factors[FIRST_CELL + 8 + i]))
    if captured > 0:
        count = _list_nakade(weights, board, tables, captured, count)
    for i in range(list_savers(board, last, color, weights.saver)):
        point = np.int64(weights.saver[i])
        if not is_rescue(for_mover(square_code(cell, point, stride), color)):
            count = _add_response(weights, count, point, np.int64(tables.save[0]))
    return count


@kernel
def _list_nakade(weights, board, tables, captured, count):
    """Add nakade responses at the captured points, unless there are more than ``MOST_NAKADE``; returns the length
    of the list of responses."""
    if captured > MOST_NAKADE:
        return count
    stop = board.meta[META_N_EMPTY]
    for i in range(stop - captured, stop):
        point = np.int64(board.empty[i])
        count = _add_response(weights, count, point, np.int64(tables.nakade[nakade_pattern(board, point, captured)]))
    return count


@inlined_kernel
def _exclude_ko(weights, board, color, count):
    """Add a point forbidden by ko as a response with factor 0; returns the number of responses."""
    ko = board.meta[META_KO_POINT]
    if ko == PASS or board.meta[META_KO_COLOR] != color:
        return count
    return _add_response(weights, count, ko, 0)


@inlined_kernel
def draw(weights, board, color, count, state):
    """Draw a move for a colour with probability proportional to weight times factor; PASS if all products are 0.

    Call :func:`clear_responses` before each draw, since a draw may add the ko point to the responses.

    Args:
        weights: :class:`Weights` of the board.
        color: BLACK or WHITE, the side to move.
        count: number of responses.
        state: uint64[4], the caller's random state.
    """
    side = color - BLACK
    count = _exclude_ko(weights, board, color, count)
    replaced, boosted = 0, 0
    for i in range(count):
        point = np.int64(weights.response[i])
        plain = weights.weight[point, side]
        replaced += plain
        raised = (plain * weights.factor[point]) >> FACTOR_BITS
        weights.boosted[i] = raised
        boosted += raised
    total = weights.total[side]
    if total - replaced + boosted <= 0:
        return PASS
    left = np.int64(next_unit(state) * (total - replaced + boosted))
    if left < boosted:
        i = 0
        while left >= weights.boosted[i]:
            left -= weights.boosted[i]
            i += 1
        return np.int64(weights.response[i])
    while True:
        # Not a response, as drawn above: rejecting responses here keeps the ratios of the other points.
        left = np.int64(next_unit(state) * total)
        block = 0
        while left >= weights.block[block, side]:
            left -= weights.block[block, side]
            block += 1
        drawn = block << BLOCK_BITS
        while left >= weights.weight[drawn, side]:
            left -= weights.weight[drawn, side]
            drawn += 1
        if weights.response_stamp[drawn] != weights.clock[CLOCK_RESPONSES]:
            return drawn


@kernel
def play_out_by_policy(board, weights, tables, replies, reply_probability, color, last, captured, state, move_limit):
    """Play moves of the policy until two consecutive passes or the move limit.

    Args:
        board: changed in place.
        weights: :class:`Weights` of this board size, overwritten.
        tables: :class:`Tables`.
        replies: :class:`engine.rollout.last_good_replies.LastGoodReplies`.
        reply_probability: float64, probability of looking for a stored reply first; 0.0 = never.
        color: colour that moves first.
        last: the last move before the rollout, PASS if there is none.
        captured: number of stones that ``last`` captured, if they are the last of ``board.empty``; else 0.
        state, move_limit: as for :func:`engine.rollout.run.play_out`.
    Returns:
        int: moves played, passes included.
    """
    begin(weights, board, tables)
    passes = 0
    for move in range(move_limit):
        reply = PASS
        if last != PASS and reply_probability > 0.0 and next_unit(state) < reply_probability:
            reply = recall(replies, board, weights.cell, last, color)
            if weights.weight[reply, color - BLACK] == 0:
                reply = PASS
        if reply != PASS:
            last = reply
        else:
            count = clear_responses(weights)
            if last != PASS:
                count = list_responses(weights, board, tables, last, color, captured)
            last = draw(weights, board, color, count, state)
        captured = play(board, last, color)
        if last == PASS:
            passes += 1
            if passes == 2:
                return move + 1
        else:
            passes = 0
            follow(weights, board, tables, last, color, captured)
        color = 3 - color
    return move_limit
