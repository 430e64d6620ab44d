"""Slow twins of the pattern policies: what they see and how they weigh it, in plain Python.

Positions are stones by (row, column), as in :mod:`bench.reliability.rules_twin`. Codes are read cell by cell,
symmetries permute coordinates, chains are flooded anew for every question, patterns are looked up in dictionaries.
Shared with the code under test are the names of the single features and the layout of the vector of weights, no more.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from bench.reliability.rules_twin import Cell, Stones, after, chain_and_liberties, neighbours
from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE, Board, is_legal, new_board, play
from engine.go.geometry import BLACK, PASS, WHITE, cell_count, on_board_points
from engine.go.random import seed_state
from engine.rollout.run import random_move
from engine.rollout.vocabulary import (
    CORNER_NEIGHBOUR,
    DISTANCES,
    EDGE_NEIGHBOUR,
    LAST_DISTANCE,
    RESPONSE,
    SAVE,
    SELF_ATARI,
    SINGLE,
    UNSEEN,
    Vocabulary,
)
from tests.go.cells import to_cell, to_point

BORDER = 4
NEAR = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if (row, column) != (0, 0)]
FAR = [*NEAR, (-2, 0), (0, -2), (0, 2), (2, 0)]
THIRTEEN = sorted([*FAR, (0, 0)])
"""Cells of the diamond row by row, as the bits of a nakade pattern are numbered"""
SYMMETRIES = [
    lambda row, column, down=down, right=right, swap=swap: (
        (right * column, down * row) if swap else (down * row, right * column)
    )
    for down in (1, -1)
    for right in (1, -1)
    for swap in (False, True)
]
"""The eight symmetries of the board around a centre"""


def stones_of(board: Board) -> Stones:
    """The stones of a board."""
    size = int(board.meta[META_SIZE])
    return {to_cell(p, size): int(board.color[p]) for p in on_board_points(size).tolist() if board.color[p]}


def shifted(cell: Cell, offset: Cell) -> Cell:
    """The cell at an offset of rows and columns."""
    return cell[0] + offset[0], cell[1] + offset[1]


class Moment(NamedTuple):
    """A random game after one of its moves."""

    board: Board
    last: int
    before: int
    captured: list[int]
    """points the last move captured"""
    color: int
    """who made the last move"""


def random_game(size: int, seed: int, moves: int) -> Iterator[Moment]:
    """Play random legal moves on one board; yields it after each of them.

    Some moves are passes, some fill eyes, and now and then a colour moves twice: all that a board can go through.
    """
    rng, state, board = np.random.default_rng(seed), seed_state(seed, size), new_board(size)
    color, last = BLACK, PASS
    for _ in range(moves):
        point = int(random_move(board, color, state))
        any_point = int(rng.choice(on_board_points(size)))
        if rng.random() < 0.15 and is_legal(board, any_point, color, False):
            point = any_point
        elif rng.random() < 0.03:
            point = PASS
        earlier = board.color.copy()
        play(board, point, color)
        captured = np.flatnonzero((board.color == 0) & (earlier == 3 - color)).tolist()
        yield Moment(board, point, last, captured, color)
        last = point
        color = 3 - color if rng.random() < 0.95 else color


def states_of(stones: Stones, size: int) -> dict[Cell, int]:
    """State of every cell on the board: 0 empty, 1 to 3 black by liberties, 5 to 7 white."""
    states = dict.fromkeys(((row, column) for row in range(size) for column in range(size)), 0)
    for cell, color in stones.items():
        if states[cell] == 0:
            chain, liberties = chain_and_liberties(stones, size, cell)
            states.update(dict.fromkeys(chain, min(len(liberties), 3) + (BORDER if color == WHITE else 0)))
    return states


def seen_by(state: int, color: int) -> int:
    """A state as a colour sees it: its own stones black."""
    return state if color == BLACK or state in (0, BORDER) else (state + BORDER) % 8


def join(states: list[int]) -> int:
    """The code of states, the first in the lowest bits."""
    return sum(state << 3 * i for i, state in enumerate(states))


def split(code: int, count: int) -> list[int]:
    """The states of a code."""
    return [code >> 3 * i & 7 for i in range(count)]


def code_at(states: dict[Cell, int], cell: Cell, offsets: list[Cell], color: int) -> int:
    """Code around a cell as a colour sees it; all that is off the board is border."""
    return join([seen_by(states.get(shifted(cell, offset), BORDER), color) for offset in offsets])


@cache
def images(code: int, far: bool) -> list[int]:
    """A 3x3 or diamond code under the eight symmetries."""
    offsets = FAR if far else NEAR
    cells = dict(zip(offsets, split(code, len(offsets)), strict=True))
    return [join([cells[symmetry(*offset)] for offset in offsets]) for symmetry in SYMMETRIES]


def fold(code: int) -> int:
    """The smallest image of a 3x3 code."""
    return min(images(code, False))


def fold_far(code: int) -> int:
    """The smallest image of a diamond code."""
    return min(images(code, True))


@cache
def fold_response(diamond: int, liberties: int, played: Cell) -> int:
    """The smallest image of a diamond around the last move, its liberties, and the offset of a move in it."""
    found = []
    for image, symmetry in zip(images(diamond, True), SYMMETRIES, strict=True):
        shown_at = next(offset for offset in FAR if symmetry(*offset) == played)
        found.append((image + (liberties << 36)) * 16 + FAR.index(shown_at))
    return min(found)


@cache
def fold_nakade(captured: frozenset[Cell]) -> int:
    """The smallest image of a set of captured points, given as offsets from one of them; those far off are left out."""
    bits = [
        {THIRTEEN.index(symmetry(*cell)) for cell in captured if symmetry(*cell) in THIRTEEN} for symmetry in SYMMETRIES
    ]
    return min(sum(1 << bit for bit in image) for image in bits)


@cache
def coarse(code: int) -> int:
    """A 3x3 code in which only stones beside the centre in atari keep their liberties."""
    cells = split(code, 8)
    for i, (offset, state) in enumerate(zip(NEAR, cells, strict=True)):
        if state not in (0, BORDER) and not (state % 4 == 1 and 0 in offset):
            cells[i] = 3 if state < BORDER else 7
    return join(cells)


def beside(code: int) -> list[int]:
    """States of the four cells that share an edge with the centre of a 3x3 code."""
    return [state for offset, state in zip(NEAR, split(code, 8), strict=True) if 0 in offset]


@cache
def is_sensible(code: int) -> bool:
    """Whether Black may play in the middle of a 3x3 code and fills no eye of his own."""
    around = beside(code)
    if 0 not in around and 5 not in around and 2 not in around and 3 not in around:
        return False
    if any(state not in (1, 2, 3, BORDER) for state in around):
        return True
    corners = [state for offset, state in zip(NEAR, split(code, 8), strict=True) if 0 not in offset]
    return sum(state > BORDER for state in corners) + (BORDER in corners) >= 2


@cache
def is_rescue(code: int) -> bool:
    """Whether a stone in the middle of a 3x3 code takes a black chain out of atari, as far as can be seen there."""
    around = beside(code)
    # A neighbour in atari has no liberty but the centre; others share the centre too, so one of theirs is used up.
    brought = max(state - 1 for state in around if 1 <= state <= 3) if 1 in around else 0
    return 1 in around and around.count(0) + around.count(5) + brought >= 2


def is_self_atari(stones: Stones, size: int, cell: Cell, color: int) -> bool:
    """Whether a legal move leaves its chain one liberty; captured points count where they are beside the new stone."""
    result, _, _ = after(stones, size, cell, color)
    _, liberties = chain_and_liberties(result, size, cell)
    return len({liberty for liberty in liberties if liberty not in stones or liberty in neighbours(size, cell)}) == 1


def savers(stones: Stones, size: int, last: Cell, color: int) -> set[Cell]:
    """Where a colour captures a chain that stands beside one of its chains that the last move put into atari."""
    found = set()
    for cell in neighbours(size, last):
        if stones.get(cell) == color:
            chain, liberties = chain_and_liberties(stones, size, cell)
            around = {near for stone in chain for near in neighbours(size, stone)} if len(liberties) == 1 else set()
            for enemy in around:
                if stones.get(enemy) == 3 - color:
                    _, last_liberties = chain_and_liberties(stones, size, enemy)
                    found |= last_liberties if len(last_liberties) == 1 else set()
    return found


def expected_weights(board: Board, tables) -> tuple[np.ndarray, np.ndarray]:
    """States and static weights of all cells, as ``Weights.cell`` and ``Weights.weight`` should be."""
    size, stones = int(board.meta[META_SIZE]), stones_of(board)
    states, count = states_of(stones, size), int(cell_count(size))
    cell, weight = np.full(count, BORDER, np.uint8), np.zeros((count, 2), np.int32)
    for at, state in states.items():
        point = to_point(at, size)
        cell[point] = state
        if state == 0:
            codes = [code_at(states, at, NEAR, color) for color in (BLACK, WHITE)]
            weight[point] = tables.static[tables.square[codes]]
    return cell, weight


class Sight:
    """All that the policies look at in one position: the slow twin of ``consider``."""

    def __init__(self, moment: Moment, color: int) -> None:
        board, self.size, self.color = moment.board, int(moment.board.meta[META_SIZE]), color
        self.stones = stones_of(board)
        self.states = states_of(self.stones, self.size)
        self.last = [to_cell(point, self.size) if point else None for point in (moment.last, moment.before)]
        self.captured = {to_cell(point, self.size) for point in moment.captured}
        ko = to_cell(board.meta[META_KO_POINT], self.size) if board.meta[META_KO_COLOR] == color else None
        codes = {cell: code_at(self.states, cell, NEAR, color) for cell, state in self.states.items() if state == 0}
        self.codes = {cell: code for cell, code in codes.items() if is_sensible(code) and cell != ko}
        """the moves to choose from, with their 3x3 codes"""

    def diamond(self, cell: Cell) -> int:
        """Diamond code around a cell."""
        return code_at(self.states, cell, FAR, self.color)

    def responses(self) -> dict[Cell, int]:
        """Folded response by cell, for the moves in the diamond around the last move."""
        last = self.last[0]
        if last is None:
            return {}
        liberties = min(len(chain_and_liberties(self.stones, self.size, last)[1]), 3)
        around = {shifted(last, offset): offset for offset in FAR}
        return {
            cell: fold_response(self.diamond(last), liberties, around[cell]) for cell in self.codes if cell in around
        }

    def nakade(self) -> dict[Cell, int]:
        """Folded pattern by cell, for the moves on captured points."""
        cells = self.captured if self.last[0] is not None and len(self.captured) <= 9 else set()
        offsets = {cell: frozenset((row - cell[0], column - cell[1]) for row, column in cells) for cell in cells}
        return {cell: fold_nakade(offsets[cell]) for cell in cells if cell in self.codes}

    def features(self, places: "Places") -> dict[Cell, list[int]]:
        """Places in the vector of weights by move, ascending."""
        last, single = self.last[0], places.single
        responses, nakade = self.responses(), self.nakade()
        saving = savers(self.stones, self.size, last, self.color) if last is not None else set()
        found = {}
        for cell, code in self.codes.items():
            own = [places.coarse.get(fold(coarse(code)), single + UNSEEN), places.fine.get(fold(code))]
            if is_rescue(code) or cell in saving:
                own.append(single + SAVE)
            if last is not None and shifted(cell, (-last[0], -last[1])) in NEAR:
                own.append(single + (EDGE_NEIGHBOUR if cell in neighbours(self.size, last) else CORNER_NEIGHBOUR))
            if responses.get(cell) in places.responses:
                own += [single + RESPONSE, places.responses[responses[cell]]]
            own.append(places.nakade.get(nakade.get(cell)))
            if places.diamonds:
                own.append(places.diamonds.get(fold_far(self.diamond(cell))))
                if is_self_atari(self.stones, self.size, cell, self.color):
                    own.append(single + SELF_ATARI)
                for back, earlier in enumerate(self.last):
                    if earlier is not None:
                        distance = abs(cell[0] - earlier[0]) + abs(cell[1] - earlier[1])
                        own.append(single + LAST_DISTANCE + DISTANCES * back + min(distance, DISTANCES - 1))
            found[cell] = sorted(place for place in own if place is not None)
        return found


class Places:
    """A vocabulary as dictionaries from folded patterns to places in the vector of weights."""

    def __init__(self, words: Vocabulary) -> None:
        start = 0
        for name in ("fine", "coarse", "responses", "nakade", "diamonds"):
            patterns = getattr(words, name).tolist()
            setattr(self, name, {pattern: start + i for i, pattern in enumerate(patterns)})
            start += len(patterns)
        self.single, self.count = start, start + SINGLE


@cache
def small_vocabulary(is_tree: bool) -> Vocabulary:
    """Two of three patterns of some random games, so that known and unknown ones are both common."""
    fine, rough, responses, nakade, diamonds = set(), set(), set(), set(), set()
    for size, seed in ((4, 1), (6, 2), (9, 3)):
        for moment in random_game(size, seed, 2 * size * size):
            sight = Sight(moment, 3 - moment.color)
            fine |= {fold(code) for code in sight.codes.values()}
            rough |= {fold(coarse(code)) for code in sight.codes.values()}
            responses |= set(sight.responses().values())
            nakade |= set(sight.nakade().values())
            diamonds |= {fold_far(sight.diamond(cell)) for cell in sight.codes} if is_tree else set()

    def some(patterns: set[int]) -> np.ndarray:
        return np.array([p for i, p in enumerate(sorted(patterns)) if i % 3], np.int64)

    return Vocabulary(some(fine), some(rough), some(responses), some(nakade), some(diamonds))
