"""``python -m bench.speed.library``: boards of Python libraries, processor time a call, one JSON line a figure.

Every library plays the same whole game. ``play/SIZE/LIBRARY`` is the mean time of a move, ``legal_moves`` of listing
the legal moves of the side to move, ``copy`` of copying the board, ``undo`` of taking a move back, over all positions
of the game. Calls that a library lacks have no figure. Libraries are those that can be imported here:

* keima: :class:`keima.Board`, which checks occupation, ko, superko and suicide;
* sgfmill: ``sgfmill.boards.Board``, which checks occupation alone; its legal moves are found by playing on copies;
* sente (0.4.3): ``sente.Game``, in C++.

Start at :func:`command`.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any

import click
import numpy as np
from sgfmill import boards

import keima
from bench.speed.figures import Figure, Timing, bench
from bench.speed.subjects import SEED, sizes
from engine.go.geometry import point_of, to_vertex
from engine.go.position import is_legal_move, new_position, play_move

LENGTH = 0.7
"""Number of moves of the game, as a share of the points"""
Cell = tuple[int, int]
"""Row and column from 0 at the top left"""


class Keima:
    """:class:`keima.Board`."""

    def __init__(self, size: int) -> None:
        self._board = keima.Board(size)
        self.play, self.undo, self.copy = self._board.play, self._board.undo, self._board.copy

    def inputs(self, moves: list[Cell]) -> list[str]:
        """Vertices."""
        size = self._board.size
        return [to_vertex((row + 1) * (size + 1) + column + 1, size) for row, column in moves]

    def legal_moves(self) -> int:
        """The board lists them."""
        return len(self._board.legal_moves)


class Sgfmill:
    """``sgfmill.boards.Board``, which has no undo."""

    def __init__(self, size: int) -> None:
        self._board, self._size, self._color = boards.Board(size), size, "b"
        self.copy = self._board.copy

    def inputs(self, moves: list[Cell]) -> list[tuple[int, int, str]]:
        """Row from the bottom, column and colour."""
        return [(self._size - 1 - row, column, "bw"[n % 2]) for n, (row, column) in enumerate(moves)]

    def play(self, move: tuple[int, int, str]) -> None:
        self._board.play(*move)
        self._color = "w" if move[2] == "b" else "b"

    def legal_moves(self) -> int:
        """Play every move on a copy: a move after which its stone is gone is a suicide."""
        board, color, found = self._board, self._color, 0
        for row in range(self._size):
            for column in range(self._size):
                if board.get(row, column) is None:
                    tried = board.copy()
                    tried.play(row, column, color)
                    found += tried.get(row, column) is not None
        return found


class Sente:
    """``sente.Game``, which has no copy."""

    def __init__(self, size: int) -> None:
        self._game = import_module("sente").Game(size)

    def inputs(self, moves: list[Cell]) -> list[Cell]:
        """Row and column from 1."""
        return [(row + 1, column + 1) for row, column in moves]

    def play(self, move: Cell) -> None:
        self._game.play(*move)

    def undo(self) -> None:
        self._game.step_up(1)

    def legal_moves(self) -> int:
        return len(self._game.get_legal_moves())


LIBRARIES: dict[str, Callable[[int], Any]] = {"keima": Keima, "sgfmill": Sgfmill, "sente": Sente}
"""Name -> maker of a board for a size. Its moves are ``inputs``; ``play`` takes one of them. Beside it are
``legal_moves``, which returns their number, and, where the library has them, ``copy`` and ``undo``"""


def random_game(size: int) -> list[Cell]:
    """The moves of a random game without passes, legal under simple ko, Black's first."""
    position, rng, moves = new_position(size), np.random.default_rng(SEED), []
    for n in range(round(LENGTH * size * size)):
        for index in rng.permutation(size * size).tolist():
            point = int(point_of(index, size))
            if is_legal_move(position, point, 1 + n % 2):
                play_move(position, point, 1 + n % 2)
                moves.append(divmod(index, size))
                break
    return moves


def call_times(library: Callable[[int], Any], size: int, moves: list[Cell]) -> tuple[dict[str, float], list[int]]:
    """Mean seconds of each call over a game, and the number of legal moves at each of its positions."""
    board = library(size)
    inputs = board.inputs(moves)
    spent, counts = {"play": -process_time(), "legal_moves": 0.0}, []
    for move in inputs:
        board.play(move)
    spent["play"] += process_time()
    board = library(size)
    if hasattr(board, "copy"):
        spent["copy"] = 0.0
    for move in inputs:
        board.play(move)
        start = process_time()
        counts.append(board.legal_moves())
        spent["legal_moves"] += process_time() - start
        if "copy" in spent:
            start = process_time()
            board.copy()
            spent["copy"] += process_time() - start
    if hasattr(board, "undo"):
        spent["undo"] = -process_time()
        for _ in inputs:
            board.undo()
        spent["undo"] += process_time()
    return {call: seconds / len(inputs) for call, seconds in spent.items()}, counts


@bench("games")
@sizes
@click.option(
    "--library", "names", multiple=True, type=click.Choice(list(LIBRARIES)), default=tuple(LIBRARIES), help="repeatable"
)
def command(sizes: tuple[int, ...], names: tuple[str, ...], timing: Timing) -> Iterator[Figure]:
    """Measure the boards of Python libraries: one JSON line a figure."""
    for size in sizes:
        moves = random_game(size)
        for name in (name for name in names if find_spec(name)):
            call_times(LIBRARIES[name], size, moves[:9])
            found = [call_times(LIBRARIES[name], size, moves)[0] for _ in range(timing.repeats)]
            for call in found[0]:
                yield f"{call}/{size}/{name}", [1e6 * times[call] for times in found], "us"


if __name__ == "__main__":
    command()
