"""Slow twins of the encoders: games kept as dictionaries of stones, and planes written down from the papers' tables.

Moves, chains and legality are those of :mod:`bench.reliability.rules_twin`, ladders those of
:mod:`tests.go.ladder_twin`.
"""

import numpy as np

from bench.reliability.rules_twin import Cell, Stones, Twin, after, chain_and_liberties
from engine.features.encoder import Encoder, encode
from engine.go.board import META_SIZE, copy_board, play
from engine.go.diagram import parse
from engine.go.geometry import BLACK, PASS, index_of, other, point_at
from engine.go.ladder import ladder_planes, new_ladder_scratch
from engine.go.position import Position, begin, legal_moves, new_position, play_move
from engine.go.rules import KO_SIMPLE, RULE_KO, RULE_SUICIDE
from tests.go.ladder_twin import LadderTwin

MOST_READ = 6
"""Largest board whose ladders the slow reader reads"""
ROOM = 1000
"""Most moves of a game, also on the smallest boards"""


class Game:
    """A position and its twin, played side by side from the same stones."""

    def __init__(
        self, size: int, stones: Stones | None = None, to_move: int = BLACK, ko: int = KO_SIMPLE, suicide: bool = False
    ) -> None:
        self.size, self.ko, self.suicide = size, ko, suicide
        self.position, self.twin = new_position(size, ROOM), Twin(size)
        self.position.rules[RULE_KO], self.position.rules[RULE_SUICIDE] = ko, suicide
        for (row, column), color in (stones or {}).items():
            play(self.position.board, point_at(row, column, size), color)
        begin(self.position, to_move)
        self.twin.stones, self.twin.to_move = dict(stones or {}), to_move
        self.twin.situations = [(frozenset(self.twin.stones.items()), to_move)]

    @property
    def color(self) -> int:
        """The side to move."""
        return self.twin.to_move

    def play(self, cell: Cell | None) -> None:
        """Play a move, None for a pass."""
        point = PASS if cell is None else point_at(*cell, self.size)
        play_move(self.position, point, self.color)
        self.twin.play(cell, self.color)

    def past(self, age: int) -> Stones | None:
        """The stones some moves ago; None before the first move."""
        situations = self.twin.situations
        return dict(situations[-1 - age][0]) if age < len(situations) else None

    def legal_cells(self) -> set[Cell]:
        """Where the side to move may play."""
        return self.twin.legal_cells(self.color, [(self.ko, self.suicide)])[0]


def random_game(size: int, moves: int, seed: int, ko: int = KO_SIMPLE, suicide: bool = False) -> Game:
    """Random legal moves, half of them near the last one so that fights arise, and some passes.

    One game in three begins from stones set up: no chain of them lacks a liberty, for none touches another.
    """
    rng = np.random.default_rng(seed)
    stones = {}
    if seed % 3 == 0:
        cells = [(row, column) for row in range(0, size, 2) for column in range(0, size, 2)]
        chosen = rng.choice(len(cells), min(5, len(cells)), replace=False)
        stones = {cells[i]: int(rng.integers(1, 3)) for i in chosen}
    game = Game(size, stones, 1 + seed % 2, ko, suicide)
    marks, last = np.zeros(size * size + 1, np.uint8), None
    for _ in range(moves):
        legal_moves(game.position, game.color, marks)
        choices = [(int(i) // size, int(i) % size) for i in np.flatnonzero(marks[:-1])]
        if last and rng.random() < 0.5:
            near = [c for c in choices if abs(c[0] - last[0]) <= 2 and abs(c[1] - last[1]) <= 2]
            choices = near or choices
        last = choices[rng.integers(len(choices))] if choices and rng.random() > 0.04 else None
        game.play(last)
    return game


def shown(text: str, to_move: int, ko: int = KO_SIMPLE, suicide: bool = False) -> tuple[Position, dict[str, Cell]]:
    """A position set up as a diagram shows it, and its marks."""
    board, marks = parse(text)
    size = int(board.meta[META_SIZE])
    position = new_position(size)
    position.rules[RULE_KO], position.rules[RULE_SUICIDE] = ko, suicide
    copy_board(position.board, board)
    begin(position, to_move)
    return position, {sign: (point // (size + 1) - 1, point % (size + 1) - 1) for sign, point in marks.items()}


def encoded(encoder: Encoder, position: Position, symmetry: int = 0, scratch=None) -> np.ndarray:
    """The planes of a position, in an array that held something else before."""
    size = int(position.board.meta[META_SIZE])
    planes = np.full((encoder.planes, size, size), 7, np.float32)
    globals_ = np.zeros(encoder.globals, np.float32)
    encode(position, symmetry, scratch or encoder.new_scratch(size), planes, globals_)
    return planes


def is_own_eye(stones: Stones, size: int, cell: Cell, color: int) -> bool:
    """Whether an empty cell has own neighbours only and at most one diagonal held by the opponent; at the edge none."""
    row, column = cell

    def at(r: int, c: int) -> int | None:
        """Colour of a cell, 0 if empty, None off the board."""
        return stones.get((r, c), 0) if 0 <= r < size and 0 <= c < size else None

    sides = [at(row - 1, column), at(row + 1, column), at(row, column - 1), at(row, column + 1)]
    diagonals = [at(row + r, column + c) for r in (-1, 1) for c in (-1, 1)]
    held = diagonals.count(other(color))
    return all(side in (color, None) for side in sides) and held <= (0 if None in diagonals else 1)


def alphago_planes(game: Game) -> np.ndarray:
    """AlphaGo's 49 planes, row for row of Extended Data Table 2."""
    size, color, stones = game.size, game.color, game.twin.stones
    planes = np.zeros((49, size, size), np.float32)
    planes[3] = 1
    planes[48] = color == BLACK
    legal = game.legal_cells()
    for cell in [(row, column) for row in range(size) for column in range(size)]:
        if cell in stones:
            planes[(0 if stones[cell] == color else 1, *cell)] = 1
            age = 1
            while age < 8 and (past := game.past(age)) is not None and past.get(cell) == stones[cell]:
                age += 1
            if game.past(age) is None:
                age = 8
            planes[(4 + age - 1, *cell)] = 1
            liberties = chain_and_liberties(stones, size, cell)[1]
            planes[(12 + min(len(liberties), 8) - 1, *cell)] = 1
            continue
        planes[(2, *cell)] = 1
        if cell not in legal:
            continue
        result, captured, lost = after(stones, size, cell, color)
        planes[(20 + min(captured, 7), *cell)] = 1
        if not lost:
            chain, liberties = chain_and_liberties(result, size, cell)
            planes[(36 + min(len(liberties), 8) - 1, *cell)] = 1
            lost = len(chain) if len(liberties) == 1 else 0
        if lost:
            planes[(28 + min(lost, 8) - 1, *cell)] = 1
        planes[(44, *cell)], planes[(45, *cell)] = ladders(game.position, cell, color)
        planes[(46, *cell)] = not is_own_eye(stones, size, cell, color)
    return planes


def ladders(position: Position, cell: Cell, color: int) -> tuple[bool, bool]:
    """Whether a move is a ladder capture, and whether it is a ladder escape; large boards are left to the kernels."""
    board, size = position.board, int(position.board.meta[META_SIZE])
    point = point_at(*cell, size)
    if size <= MOST_READ:
        reader = LadderTwin(board)
        return reader.is_capture(point, color), reader.is_escape(point, color)
    planes = np.empty((2, size * size), np.uint8)
    ladder_planes(board, color, new_ladder_scratch(size), *planes)
    return tuple(planes[:, index_of(point, size)] == 1)


def zero_planes(game: Game) -> np.ndarray:
    """AlphaGo Zero's 17 planes."""
    planes = np.zeros((17, game.size, game.size), np.float32)
    for age in range(8):
        for cell, color in (game.past(age) or {}).items():
            planes[(2 * age + (color != game.color), *cell)] = 1
    planes[16] = game.color == BLACK
    return planes


def leela_planes(game: Game) -> np.ndarray:
    """Leela Zero's 18 planes, row for row of the table in its README."""
    planes = np.zeros((18, game.size, game.size), np.float32)
    for age in range(8):
        for cell, color in (game.past(age) or {}).items():
            planes[(age if color == game.color else 8 + age, *cell)] = 1
    planes[16] = game.color == BLACK
    planes[17] = game.color == 3 - BLACK
    return planes
