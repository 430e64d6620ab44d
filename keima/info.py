"""Results of a search: what the engine says of a position and of its candidate moves."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.go.game import Game
from engine.pictures.candidates import Mark, candidates_on
from engine.pictures.drawing import Picture, stand_alone
from engine.search.report import MoveReport, Report
from keima.board import Board
from keima.moves import BLACK, Color, Move, move_at
from keima.perspective import Lead, Ownership, WinRate


@dataclass(frozen=True)
class Candidate:
    """A move that the search considered, with the values of the position after it.

    ``relative`` values are those of the player of the move, the side to move in the position that was searched.
    """

    move: Move
    """the move"""
    visits: int
    """visits of the move"""
    prior: float
    """probability that the network gave the move before the search, 0 to 1"""
    win_rate: WinRate
    """mean over the move's visits; that of the position for a move without visits"""
    lead: Lead | None
    """mean over the move's visits, in points; None if nothing estimates it"""
    lcb: WinRate
    """lower confidence bound of the win rate of the side to move, as a win rate"""
    pv: list[Move]
    """principal variation, this move first"""
    pv_visits: list[int]
    """visits of each move of ``pv``"""
    points_lost: float | None
    """points by which the move's lead is below the best move's, for the side to move, 0 or more; None without leads"""
    win_rate_lost: float
    """what the move's win rate is below the best move's, for the side to move, 0 or more: 0.05 = five percentage
    points"""

    def __str__(self) -> str:
        lead = "" if self.lead is None else f", {self.lead}"
        return f"{self.move}: {self.visits} visits, {self.win_rate}{lead}"


@dataclass(frozen=True, eq=False)
class Info:
    """The results of a search. What neither network nor rollouts estimate is None."""

    board: Board = field(repr=False)
    """the position that was searched; a copy, whose changes do not affect the engine"""
    to_move: Color
    """the side to move"""
    visits: int
    """visits of the position, those kept from earlier searches included"""
    playouts: int
    """visits added by this search"""
    seconds: float
    """duration of the search"""
    move: Move | None
    """the best move; None if the filter excludes all moves that were searched"""
    win_rate: WinRate
    """mean over all visits"""
    lead: Lead | None
    """mean over all visits, in points; None if nothing estimates it"""
    candidates: list[Candidate] = field(repr=False)
    """the moves with visits, best first; before any has a visit, all legal moves by their priors"""
    ownership: Ownership | None = field(repr=False)
    """mean over all visits; None if it was not asked for"""
    policy: NDArray[np.float32] | None = field(repr=False)
    """float32[N*N + 1], read only: the network's prior of each move by policy index, the pass last; 0 for an illegal
    move, and not changed by a move filter. None if the game is over"""

    @property
    def pv(self) -> list[Move]:
        """The principal variation: the best move and the expected replies."""
        return self.candidates[0].pv if self.candidates else []

    def __str__(self) -> str:
        lead = "" if self.lead is None else f", {self.lead}"
        line = " ".join(self.pv)
        return f"{self.to_move} to move, {self.visits} visits: {self.win_rate}{lead}; {line}"

    def svg(self) -> Picture:
        """The board with the candidates: each has the points it loses against the best move, and a colour for them.

        Without leads, the text is the loss of win rate in percent.
        """
        marks = []
        for one in self.candidates:
            if one.visits and not one.move.is_pass:
                marks.append(Mark(one.move.policy_index, one.points_lost, one.win_rate_lost))
        return stand_alone(candidates_on(self.board.stones.ravel().tolist(), marks, str(self)))

    def _repr_svg_(self) -> str:
        return self.svg()


def info_of(game: Game, report: Report, ownership: NDArray[np.float32] | None) -> Info:
    """The results in a report.

    Args:
        game: the searched position; the result keeps it.
        ownership: float[N*N] in policy order, 1 = Black's; None = it was not asked for.
    """
    board = Board._of_game(game)
    to_move, size = board.to_move, board.size
    sign = 1.0 if to_move is BLACK else -1.0

    def win_rate(value_stm: float) -> WinRate:
        return WinRate((1.0 + sign * value_stm) / 2.0, to_move)

    def lead(score_stm: float | None) -> Lead | None:
        return None if score_stm is None else Lead(sign * score_stm, to_move)

    def candidate(move: MoveReport, best: MoveReport) -> Candidate:
        lost = None
        if move.score_stm is not None and best.score_stm is not None:
            lost = max(0.0, best.score_stm - move.score_stm)
        return Candidate(
            move_at(move.point, size),
            move.visits,
            move.prior,
            win_rate(move.value_stm),
            lead(move.score_stm),
            win_rate(max(-1.0, move.lcb_stm)),
            [move_at(point, size) for point in move.pv],
            move.pv_visits,
            lost,
            max(0.0, best.value_stm - move.value_stm) / 2.0,
        )

    moves = report.moves
    return Info(
        board,
        to_move,
        report.visits,
        report.playouts_this_run,
        report.seconds,
        move_at(moves[0].point, size) if moves else None,
        win_rate(report.value_stm),
        lead(report.score_stm),
        [candidate(move, moves[0]) for move in moves],
        None if ownership is None else ownership_of(ownership, to_move, size),
        None if report.policy is None else _frozen(report.policy.astype(np.float32)),
    )


def ownership_of(black: NDArray[np.float32], to_move: Color, size: int) -> Ownership:
    """Ownership from an array float[N*N] in policy order, 1 = Black's."""
    return Ownership(_frozen(np.array(black, np.float32).reshape(size, size)), to_move)


def _frozen(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """The array, read only."""
    array.setflags(write=False)
    return array
