"""The choice of one move: what to search for, and afterwards whether a pass is better.

A :class:`MovePlan` lists the searches that the player runs within the move's time, and decides when their reports are
there. It knows the position and an estimate of its end; clocks, resignation and the game itself stay with
:mod:`engine.play.player`, the questions about passing with :mod:`engine.play.passing`.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from engine.go.game import Game
from engine.go.geometry import PASS, on_board_points, other
from engine.go.position import META_PASSES, META_TO_MOVE, Position, play_move, with_capacity
from engine.play.backend import Backend
from engine.play.life_and_death import EndEstimate, estimate_end
from engine.play.move_time import WHOLE, Part
from engine.play.passing import captures, is_finished, is_lost, knows_passing, must_capture
from engine.play.score import WIDE_OPEN
from engine.search.endings import is_full
from engine.search.move_filter import EVERY_MOVE, MoveFilter, only, without
from engine.search.report import Report

HOPELESS = -0.9
"""An open game may be ended by the side that is behind where its search values every other move less than this."""
LONGEST_GAME = 2.0
"""Moves, as a share of the board's points, after which the side that is behind no longer keeps a game open."""
WORSE = 0.1
"""How far below the value of ending the game playing on must be to be given up, and a capture below that of the best
move; the search is no surer than that."""
FEW_ROLLOUTS = 8
"""Where values are rollouts' alone, this many drawn ones are added to them before a game is given up."""
COSTLY = 1.5
"""Points that a move may cost before passing is better: more than one stone in one's own territory."""
CAPTURE_SHARE = 0.5
"""Share of a move's time and visits for the search that a capture is held against"""
SETTLED_A_MOVE = 24
"""Open points that a move may settle: after an estimate the next one waits until all could be settled. In 14 games of
9-dans on 19x19, 270 points are open at move 105, and one or two fewer with each move until the last borders close."""


def shrunk_value(value: float, report: Report) -> float:
    """A value of a search, nearer to a draw where it rests on few rollouts: one alone is 1 or -1."""
    return value if report.has_values else value * report.visits / (report.visits + FEW_ROLLOUTS)


def is_endgame(position: Position, cleanup: bool, can_wait: bool) -> bool:
    """Whether a plan needs an estimate of the game's end.

    Args:
        cleanup: as for :meth:`engine.play.player.Player.genmove`.
        can_wait: skip the estimate as long as neither side has passed.
    """
    return cleanup or position.meta[META_PASSES] > 0 or (is_full(position) and not can_wait)


def unsearched_move(game: Game, color: int, moves: MoveFilter) -> int:
    """A pass or, where the filter has none, the first point that it has and the rules allow.

    No search looks at the fill of an own eye, which can be all that a filter leaves.
    """
    if moves.allows(color, PASS):
        return PASS
    points = on_board_points(game.size).tolist()
    return next((one for one in points if moves.allows(color, one) and game.is_legal(color, one)), PASS)


@dataclass(frozen=True)
class PlannedSearch:
    """One search of a plan."""

    moves: MoveFilter
    part: Part = WHOLE
    """of what the move may take"""


@dataclass(frozen=True)
class Decision:
    """How a plan ends."""

    report: Report | None
    """the search whose move is played; None where nothing had to be searched for"""
    passes: bool
    """a pass is better than that move"""
    value_stm: float
    """what the colour may expect, -1 to 1: of the search, or of the pass where ending the game is worth more"""


class MovePlan:
    """How one colour chooses one move."""

    def __init__(
        self,
        game: Game,
        position: Position,
        estimate: EndEstimate | None,
        backend: Backend,
        moves: MoveFilter = EVERY_MOVE,
        cleanup: bool = False,
    ) -> None:
        """Plan a move.

        Args:
            position: the game's, with the colour to move.
            estimate: of the position's end, where :func:`is_endgame` wants it.
            moves: what the caller lets choose from; without a pass, another move is played as long as one is legal.
            cleanup: as for :meth:`engine.play.player.Player.genmove`.
        """
        self._game, self._position, self._estimate, self._backend = game, position, estimate, backend
        self._color = int(position.meta[META_TO_MOVE])
        self._targets = self._capture_targets(cleanup)
        self._may_pass = moves.allows(self._color, PASS) and self._targets is None
        self.searches = tuple(PlannedSearch(moves & one.moves, one.part) for one in self._searches())
        """to be run in this order; none = pass at once"""

    def _searches(self) -> tuple[PlannedSearch, ...]:
        """The searches, before what the caller lets choose from."""
        position, estimate, no_pass = self._position, self._estimate, without(self._color, [PASS])
        if self._may_pass and estimate is not None and is_finished(position, estimate):
            return ()
        if self._targets:
            first, second = Part(0.0, CAPTURE_SHARE), Part(CAPTURE_SHARE, 1.0)
            return PlannedSearch(no_pass, first), PlannedSearch(only(self._color, self._targets), second)
        self._pass_is_searched = self._may_pass and (estimate is not None or is_full(position))
        self._pass_is_searched &= knows_passing(position)
        return (PlannedSearch(EVERY_MOVE if self._pass_is_searched else no_pass),)

    def decide(self, reports: Sequence[Report], deadline_s: float = math.inf) -> Decision:
        """The outcome of the plan's searches, whose reports come in their order.

        Args:
            deadline_s: ``time.perf_counter`` after which no more rollouts are played.
        """
        if not reports:
            assert self._estimate is not None, "only an estimate makes a pass without a search"
            return Decision(None, True, self._estimate.value_of_ending(self._color))
        if self._targets:
            report = self._better(*reports)
        else:
            report = reports[0]
            may_end = self._may_pass and self._position.meta[META_PASSES] > 0 and is_full(self._position)
            if may_end and not self._pass_is_searched and self._ending_is_better(report, deadline_s):
                return self._decision(report, passes=True)
        is_given_up = self._may_pass and is_lost(self._position, self._estimate, report)
        return self._decision(report, passes=not report.moves or is_given_up)

    def _decision(self, report: Report, passes: bool) -> Decision:
        """A decision after a search."""
        value = shrunk_value(report.value_stm, report)
        ends = passes or report.moves[0].point == PASS
        if ends and self._estimate is not None:
            value = max(value, self._estimate.value_of_ending(self._color))
        return Decision(report, passes, value)

    def _capture_targets(self, cleanup: bool) -> list[int] | None:
        """Moves towards capturing the opponent's dead stones where that has to be done first; else None."""
        estimate, board = self._estimate, self._position.board
        if estimate is None:
            return None
        is_due = cleanup and any(board.color[point] == other(self._color) for point in estimate.dead)
        if is_due or (estimate.is_settled and must_capture(self._position, estimate)):
            return captures(self._game, estimate, self._color)
        return None

    def _better(self, free: Report, capture: Report) -> Report:
        """The search for a capture, unless a capture costs the game, as in a seki: then that for any move."""
        if not (capture.moves and free.moves):
            return free if free.moves else capture
        doubt = 0.0 if free.has_values and capture.has_values else 2.0 / math.sqrt(min(capture.visits, free.visits))
        return free if capture.value_stm < free.value_stm - WORSE - doubt else capture

    def _ending_is_better(self, report: Report, deadline_s: float) -> bool:
        """Whether to end a game that is not settled: playing on would lose it, or cost points by the same count."""
        color, game, estimate = self._color, self._game, self._estimate
        if not report.moves or estimate is None:
            return not report.moves
        value = shrunk_value(report.moves[0].value_stm, report)
        if value < estimate.value_of_ending(color) - WORSE:
            return True
        if estimate.lead(color) <= 0:
            return value < HOPELESS or game.n_moves > LONGEST_GAME * game.size**2
        if estimate.n_open > WIDE_OPEN * game.size**2:
            return False
        after = with_capacity(self._position, game.n_moves + 1)
        play_move(after, report.moves[0].point, color)
        tables, middle_s = self._backend.tables(), 0.5 * (time.perf_counter() + deadline_s)
        now = estimate_end(self._position, None, tables, middle_s)
        then = estimate_end(after, None, tables, deadline_s)
        return then.lead(color) < now.lead(color) - COSTLY
