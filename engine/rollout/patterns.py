"""Patterns as integers (3x3, diamond, response, nakade): features of the rollout policy and the tree policy.

Every cell has a three-bit *state*, its colour and the liberties of its chain::

    0 empty    1 2 3 black with 1, 2, 3 or more liberties    4 border    5 6 7 white likewise

Black and white differ in the third bit, so :func:`swap_colors` takes three operations on a whole code. A 3x3 *code* is
the states of the eight neighbours (24 bits), a diamond code those of the twelve points at Manhattan distance 1 and 2
(36 bits). Patterns are trained *folded*: a code and its images under the eight symmetries of the board share their
weights, and the side to move is always black.

Some features describe a move as a response to the last move: response patterns (the diamond around the last move, and
the cell of the response), nakade (a move among the stones that the last move captured) and save-atari (a capture that
saves a chain which the last move put into atari). The paper does not define nakade and save-atari exactly;
:func:`nakade_pattern` and :func:`list_savers` are our definitions.

Source: AlphaGo, Methods, "Rollout policy", and Extended Data Table 4: "colour and liberty count (1, 2, >= 3) for each
adjacent intersection".
"""

import numpy as np

from engine.go.board import META_N_EMPTY, META_STRIDE, list_captures
from engine.go.geometry import BLACK, BORDER, EMPTY
from engine.system.jit import inlined_kernel, kernel

NO_STONE, OWN_ATARI, OWN_TWO, OWN_MORE, OUTSIDE, ENEMY_ATARI = range(6)
"""Cell states with black to move (own = black); enemy stones with two liberties are ENEMY_ATARI + 1, with more + 2"""
STATE_BITS = 3
CODE_BITS = 24
N_CODES = 1 << CODE_BITS
THIRD_BITS = 0o444444444444
"""Mask of the third bit of every state of a 3x3 or diamond code"""

LOWEST_BITS = 0o11111111
"""Mask of the lowest bit of every state of a 3x3 code"""
LOWEST_ADJACENT = 0o01011010
"""Mask of the lowest bit of the states of the four ``ADJACENT`` cells in a 3x3 code"""

SQUARE = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
"""Row and column offsets of the eight neighbours, in the order of a 3x3 code"""
DIAMOND = (*SQUARE, (-2, 0), (0, -2), (0, 2), (2, 0))
"""Row and column offsets of the twelve points of a diamond code in its order, the eight neighbours first"""
ADJACENT = (1, 3, 4, 6)
"""Indices in a 3x3 code of the four neighbours that share an edge with the centre"""


def images(offsets: tuple[tuple[int, int], ...]) -> np.ndarray:
    """int64[8, n]: for each symmetry and each offset, the index of the offset whose state it gets."""
    found = []
    for flip_row in (1, -1):
        for flip_column in (1, -1):
            for swap in (False, True):
                mirrored = [(flip_row * row, flip_column * column) for row, column in offsets]
                found.append([offsets.index(cell[::-1] if swap else cell) for cell in mirrored])
    return np.array(found, np.int64)


SQUARE_IMAGES = images(SQUARE)
DIAMOND_IMAGES = images(DIAMOND)


def permuted(codes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Codes transformed by one symmetry of the board; bits above those of the cells stay.

    Args:
        codes: int64 of any shape.
        places: int64[cells], a row of ``SQUARE_IMAGES`` or ``DIAMOND_IMAGES``.
    """
    cells = STATE_BITS * len(places)
    result = (codes >> cells) << cells
    for to, of in enumerate(places.tolist()):
        result |= ((codes >> (STATE_BITS * of)) & 7) << (STATE_BITS * to)
    return result


def folded(codes: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """The smallest image of each code under the symmetries; ``tables`` is SQUARE_IMAGES or DIAMOND_IMAGES."""
    return np.min([permuted(codes, places) for places in tables], axis=0)


@inlined_kernel
def state_of(board, point):
    """State of a cell, computed from the board."""
    color = board.color[point]
    if color == EMPTY:
        return 0
    if color == BORDER:
        return OUTSIDE
    return min(board.libs[board.head[point]], 3) + (0 if color == BLACK else OUTSIDE)


@inlined_kernel
def square_code(cell, point, stride):
    """3x3 code around a point.

    Args:
        cell: uint8[L], the state of every cell.
        stride: cells per row of the board.
    """
    up, down = point - stride, point + stride
    code = np.int64(cell[up - 1]) | (np.int64(cell[up]) << 3) | (np.int64(cell[up + 1]) << 6)
    code |= (np.int64(cell[point - 1]) << 9) | (np.int64(cell[point + 1]) << 12)
    return code | (np.int64(cell[down - 1]) << 15) | (np.int64(cell[down]) << 18) | (np.int64(cell[down + 1]) << 21)


@inlined_kernel
def beyond(cell, point, step):
    """State of the cell two steps from a point; OUTSIDE if the first step is on the border, beyond which arrays end."""
    return np.int64(cell[point + 2 * step]) if cell[point + step] != OUTSIDE else np.int64(OUTSIDE)


@inlined_kernel
def diamond_code(cell, point, stride):
    """Diamond code around a point; arguments as for :func:`square_code`."""
    code = square_code(cell, point, stride)
    code |= (beyond(cell, point, -stride) << 24) | (beyond(cell, point, -1) << 27)
    return code | (beyond(cell, point, 1) << 30) | (beyond(cell, point, stride) << 33)


@inlined_kernel
def swap_colors(code):
    """The code with black and white exchanged."""
    return code ^ (((code | (code << 1)) << 1) & THIRD_BITS)


@inlined_kernel
def for_mover(code, color):
    """The code from a colour's view: its own stones are black."""
    return code if color == BLACK else swap_colors(code)


@kernel
def is_sensible_code(code):
    """Whether a move in the centre of a 3x3 code is legal except for ko, and does not fill an own single-point eye.

    Equals :func:`engine.rollout.run.is_sensible`, which reads the board.
    """
    own_or_border, capture, safe = 0, False, False
    for i in ADJACENT:
        state = (code >> (STATE_BITS * i)) & 7
        if state == NO_STONE:
            return True
        own_or_border += state <= OUTSIDE
        capture |= state == ENEMY_ATARI
        safe |= state in (OWN_TWO, OWN_MORE)
    if not (capture or safe):
        return False
    if own_or_border < 4:
        return True
    held, edge = 0, 0
    for i in (0, 2, 5, 7):
        state = (code >> (STATE_BITS * i)) & 7
        held += state > OUTSIDE
        edge |= state == OUTSIDE
    return held + edge >= 2


@kernel
def is_rescue(code):
    """Whether a move in the centre saves a chain from atari, by the 3x3 code alone.

    True if an own neighbour is in atari and the move has two or more liberties by this count: empty and captured
    neighbours, plus one if an own neighbour has two liberties, or plus two if one has three or more.
    """
    if not code & ~(code >> 1) & ~(code >> 2) & LOWEST_ADJACENT:
        return False
    liberties, joined = 0, 0
    for i in ADJACENT:
        state = (code >> (STATE_BITS * i)) & 7
        liberties += state in (NO_STONE, ENEMY_ATARI)
        if state in (OWN_TWO, OWN_MORE):
            joined = max(joined, state - 1)
    return liberties + joined >= 2


@inlined_kernel
def coarse_code(code):
    """The coarse form of a 3x3 code: stones count as having three liberties, except adjacent stones in atari."""
    stones = (code | (code >> 1)) & LOWEST_BITS
    atari = stones & code & ~(code >> 1) & LOWEST_ADJACENT
    return (code & 0o44444444) | stones | ((stones & ~atari) << 1)


@kernel
def all_states(board, cell):
    """Write the state of every cell of a board to ``cell``, uint8[L]."""
    for point in range(len(cell)):
        cell[point] = state_of(board, point)


MOST_NAKADE = 9
"""Maximum number of stones that the last move captured for moves at their points to have a nakade feature"""
MOST_SAVERS = 16
DIAMOND_ROWS = (0, 2, 6, 10, 12)
"""Index of the middle point of each of the five rows of a diamond with its centre: thirteen points, row by row"""


@inlined_kernel
def context_of(cell, board, point, color):
    """Context of the last move from the view of the side to move: the diamond around it, and the liberties of its
    chain.

    Args:
        cell: uint8[L], the state of every cell.
        point: the last move, not PASS.
        color: the side to move.
    Returns:
        int64: 36 bits of the diamond, then 2 of the liberties of the last move's chain, counted up to 3.
    """
    code = for_mover(diamond_code(cell, point, board.meta[META_STRIDE]), color)
    return code | (np.int64(min(board.libs[board.head[point]], 3)) << 36)


@inlined_kernel
def step_to(i, stride):
    """Difference between cell ``i`` of a point's diamond and the point, both as points."""
    if i < 8:
        j = i + (i >= 4)
        return (j // 3 - 1) * stride + j % 3 - 1
    if i == 8:
        return -2 * stride
    if i == 11:
        return 2 * stride
    return -2 if i == 9 else 2


@kernel
def nakade_pattern(board, point, captured):
    """Nakade pattern at a captured point: 13 bits for the points up to distance 2, row by row; 1 = captured too.

    A move at the captured point may prevent two eyes of the capturer. Source: 8192 = 2**13 nakade patterns in Extended
    Data Table 4, "move matches a nakade pattern at captured stone".

    Args:
        board: after the capture, so that the captured points are the last of ``board.empty``.
        captured: number of captured points.
    """
    stride, stop = board.meta[META_STRIDE], board.meta[META_N_EMPTY]
    row, column = point // stride, point % stride
    result = 0
    for i in range(stop - captured, stop):
        other = np.int64(board.empty[i])
        down, right = other // stride - row, other % stride - column
        if abs(down) + abs(right) <= 2:
            result |= 1 << (DIAMOND_ROWS[down + 2] + right)
    return result


@kernel
def list_savers(board, last, color, points):
    """List the points that save own chains from the last move's ataris by capturing an adjacent enemy chain.

    Args:
        last: the last move, not PASS.
        color: the side to move.
        points: int16[MOST_SAVERS], overwritten by as many captures as fit.
    Returns:
        int: number of points, each listed once.
    """
    stride, colors, head, libs = board.meta[META_STRIDE], board.color, board.head, board.libs
    count = 0
    for beside in (last - stride, last - 1, last + 1, last + stride):
        if colors[beside] == color and libs[head[beside]] == 1:
            count = list_captures(board, beside, points, 0, count)
    return count
