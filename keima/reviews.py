"""Reviews of games: what each move cost, what was better, each player's accuracy."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from engine.go.position import META_TO_MOVE
from engine.go.sgf import read_sgf
from engine.go.sgf_tree import SgfTree, read_trees
from engine.insight.batches import Batch, Searched
from engine.insight.review.annotate import annotate
from engine.insight.review.games import LARGEST, GameToReview, game_to_review
from engine.insight.review.losses import KINDS, POINTS
from engine.insight.review.losses import Move as RatedMove
from engine.insight.review.review import AnalysisSettings, review_of
from engine.insight.review.review import Review as GameReview
from engine.insight.review.turns import Turn, turn_of
from engine.pictures.drawing import Picture, stand_alone
from engine.search.move_filter import EVERY_MOVE
from keima.board import Board, sgf_bytes
from keima.engine import Engine, Limit, limits_of
from keima.moves import BLACK, WHITE, Color, Move, move_at
from keima.record import Record

DEFAULT_LIMIT = Limit(visits=100)


@dataclass(frozen=True)
class ReviewedMove:
    """A move of a reviewed game. Losses are those against the best move, 0 or more; None = unknown."""

    number: int
    """number of the move, from 1"""
    color: Color
    """colour of the player"""
    move: Move
    """the move played"""
    kind: str | None
    """``"excellent"``, ``"great"``, ``"good"``, ``"inaccuracy"``, ``"mistake"`` or ``"blunder"``"""
    points_lost: float | None
    """points of the lead; None if the network has no score"""
    win_rate_lost: float | None
    """0.05 = five percentage points of the win rate"""
    best: Move | None
    """the search's first choice"""
    pv: list[Move]
    """principal variation after the first choice, itself first"""
    reason: str
    """why the move lost, as a sentence; empty if the analysis proves none"""


class Review:
    """The review of a game, from :func:`review`."""

    def __init__(self, found: GameReview, data: bytes) -> None:
        self._found, self._data = found, data
        size = found.size
        self.moves: list[ReviewedMove] = [_reviewed(found, move, size) for move in found.moves]
        """the moves of the game, in order"""
        self.win_rate_black: NDArray[np.float32] = np.array([turn.winrate_black for turn in found.turns], np.float32)
        """float32[M + 1]: Black's win rate, 0 to 1, before each of M moves and at the end"""
        leads = [np.nan if turn.lead_black is None else turn.lead_black for turn in found.turns]
        self.lead_black: NDArray[np.float32] = np.array(leads, np.float32)
        """float32[M + 1]: Black's lead in points, likewise; NaN = the network has no score"""

    @property
    def accuracy(self) -> Mapping[Color, float | None]:
        """Colour -> accuracy of the player, 0 to 100; None = no moves with a known loss."""
        return MappingProxyType({color: self._found.summary.whole[color].accuracy for color in (BLACK, WHITE)})

    @property
    def costly(self) -> list[ReviewedMove]:
        """The moves that cost most, the worst first; losses within the noise of the searches do not count."""
        return [self.moves[move.number - 1] for move in self._found.summary.costly]

    def record(self) -> Record:
        """The game with the review: comments, marks, better variations, win rates (SBKV) and graphs' data."""
        return Record.read(self.to_sgf().encode())

    def to_sgf(self) -> str:
        """The game with the review, as SGF."""
        tree = self._tree()
        annotate(tree, self._found)
        return tree.to_bytes().decode()

    def save(self, folder: "str | PathLike[str]") -> Path:
        """Write the review's page and its annotated SGF into a folder, as ``keima review`` does; returns the page.

        Raises:
            OSError: a file cannot be written.
        """
        from engine.insight.review.writing import ReviewOutputs, write_review  # loads Jinja

        Path(folder).mkdir(parents=True, exist_ok=True)
        write_review(Path(folder), self._found, self._tree(), ReviewOutputs())
        return Path(folder) / f"{self._found.name}.html"

    def svg(self) -> Picture:
        """The graph of the win rate over the moves, with the costly moves."""
        from engine.insight.review.writing import drawings  # loads Jinja

        return stand_alone(drawings(self._found)["winrate"])

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        said = []
        for color in (BLACK, WHITE):
            accuracy = self.accuracy[color]
            said.append(f"{color} {'–' if accuracy is None else f'{accuracy:.0f}%'}")
        return f"{self._found.title}, {len(self.moves)} moves, accuracy: {', '.join(said)}"

    def __repr__(self) -> str:
        return f"<Review: {self}>"

    def _tree(self) -> SgfTree:
        _, tree = next(read_trees(self._data))
        assert isinstance(tree, SgfTree), "it was read before"
        return tree


def review(
    game: "Board | Record | str | bytes | PathLike[str]", engine: Engine | None = None, *,
    limit: Limit = DEFAULT_LIMIT, name: str = "game",
) -> Review:  # fmt: skip
    """Review a game: search the position before each move and at the end, all at once, and rate each move.

    Args:
        game: a board with its moves, a record (its main line), a file's name, or SGF.
        engine: None = one with the default network, for this review alone.
        limit: limit of the search of each position.
        name: name of the review's files, without ending.
    Raises:
        ValueError: the game cannot be read or has no moves, or the network does not play its size; one line.
        RuntimeError: the network failed; one line.
    """
    data = game.to_sgf().encode() if isinstance(game, Board | Record) else sgf_bytes(game)
    found = game_to_review(read_sgf(data))
    if not found.steps:
        raise ValueError("a game without moves cannot be reviewed")
    if found.record.size > LARGEST:
        raise ValueError(f"board size is {found.record.size}, at most {LARGEST} is reviewed")
    with ExitStack() as stack:
        used = engine or stack.enter_context(Engine())
        turns = _turns(used, found, limit)
        settings = AnalysisSettings(used.name, limit.visits or limit.playouts or 0, limit.seconds or 0.0)
    return Review(review_of(name, found, turns, settings), data)


def _turns(engine: Engine, game: GameToReview, limit: Limit) -> list[Turn]:
    """The analyses of all positions of a game."""
    low, high = engine.sizes
    if not low <= game.record.size <= high:
        raise ValueError(f"board size is {game.record.size}, but the network plays {low} to {high}")
    positions = game.positions
    batch = Batch(positions, [EVERY_MOVE] * len(positions), limits_of(limit), ownership=True)

    def turn(one: Searched) -> Turn:
        number = one.number
        played = game.steps[number].point if number < len(game.steps) else None
        return turn_of(number, int(positions[number].meta[META_TO_MOVE]), one.analysis, played)

    return engine._wait(engine._searched(batch, turn), lambda found: found)


def _reviewed(review: GameReview, move: RatedMove, size: int) -> ReviewedMove:
    """A rated move for programs."""
    candidates = review.turns[move.number - 1].moves
    pv = [move_at(point, size) for point in candidates[0].line] if candidates else []
    return ReviewedMove(
        move.number,
        Color(move.color),
        move_at(move.point, size),
        None if move.kind is None else KINDS[move.kind],
        move.loss if review.unit == POINTS else None,
        None if move.winrate_loss is None else move.winrate_loss / 100.0,
        pv[0] if pv else None,
        pv,
        review.reasons.get(move.number, ""),
    )
