"""The choice of one move: searches, passes, resignation.

A :class:`MovePlan` lists the searches that the player runs within the move's time, and decides from their reports
whether a pass is better. Clocks and the game itself stay with :mod:`engine.play.player`. The search alone cannot value
a pass that ends the game, since the score depends on dead stones:

* a settled game is ended by passing; the side behind passes only when its search sees no hope either. Under strict area
  rules (no friendly pass) dead stones of the opponent's count as alive until they are captured; if they would cost a
  win or a draw, they are captured first;
* after the opponent's pass, a pass ends the game. Unless the game is surely won whatever happens to the open points,
  and no dead stones count for the opponent, the best other move is searched, and played if it promises more;
* no pass before the board has filled.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.config import PlayOptions
from engine.go.game import Game
from engine.go.geometry import PASS, WHITE, on_board_points, other
from engine.go.position import META_PASSES, META_TO_MOVE, Position, play_move, with_capacity
from engine.go.rules import RULE_FRIENDLY_PASS
from engine.play.backend import Backend
from engine.play.life_and_death import EndEstimate, estimate_end, points_that_capture
from engine.play.move_time import WHOLE, Part
from engine.play.score import WIDE_OPEN, is_area, is_strict
from engine.search.endings import is_near_end
from engine.search.move_filter import EVERY_MOVE, MoveFilter, only, without
from engine.search.report import Report

HOPELESS = -0.9
"""The side behind passes to end an open game if its search values all other moves below this."""
LONGEST_GAME = 2.0
"""Number of moves, as a share of the board's points, after which the side behind passes to end an open game"""
WORSE = 0.1
"""Difference in value by which playing on must be worse than ending the game, or a capture worse than the best move,
to be rejected; smaller differences are within the search's error"""
FEW_ROLLOUTS = 8
"""Number of draws that :func:`shrunk_value` adds to rollouts, so that a few lost ones do not end a game"""
COSTLY = 1.5
"""A pass is better than a move that costs more points than this; a stone in one's own territory costs one"""
CAPTURE_SHARE = 0.5
"""Share of a move's time and visits for the search of all moves, before the search of captures alone"""
SETTLED_A_MOVE = 24
"""Maximum number of open points that one move may settle: the next estimate waits until all could be settled. In 14
games of 9-dans on 19x19, 270 points are open at move 105, and each move settles one or two until the last borders
close."""
LOST = -0.5
"""A settled game is given up if its value is below this; see ``SETTLED_VISITS``."""
SETTLED_VISITS = 32
"""Weight, in visits, of the value -1 in its mean with the search's value, if the estimate is that the game is settled
and lost: a search of a few visits alone is too noisy."""


def shrunk_value(value: float, report: Report) -> float:
    """A search's value, shrunk towards a draw if it rests on few rollouts, whose results are 1 or -1."""
    return value if report.has_values else value * report.visits / (report.visits + FEW_ROLLOUTS)


def is_endgame(position: Position, cleanup: bool, can_wait: bool) -> bool:
    """Whether a plan needs an estimate of the game's end.

    Args:
        cleanup: as for :class:`MovePlan`.
        can_wait: whether a move before the first pass can do without an estimate.
    """
    return cleanup or position.meta[META_PASSES] > 0 or (is_near_end(position) and not can_wait)


def unsearched_move(game: Game, color: int, moves: MoveFilter) -> int:
    """A pass or, if the filter excludes it, the first allowed legal point.

    Searches never fill an eye of their own colour, which can be the only move that a filter allows.
    """
    if moves.allows(color, PASS):
        return PASS
    points = on_board_points(game.size).tolist()
    return next((one for one in points if moves.allows(color, one) and game.is_legal(color, one)), PASS)


@dataclass(frozen=True)
class PlannedSearch:
    """One search of a :class:`MovePlan`: the moves that it considers, and its part of the limits."""

    moves: MoveFilter
    part: Part = WHOLE
    """share of the move's time and visits"""


@dataclass(frozen=True)
class Decision:
    """The outcome of a :class:`MovePlan`: a move of a search, or a pass."""

    report: Report | None
    """report of the search that chose the move; None if no search was needed"""
    passes: bool
    """whether to pass instead of playing the report's move"""
    value_stm: float
    """value for the side to move, -1 to 1: the search's; if the game is ended, at least that of ending it"""


class MovePlan:
    """The searches for one move, and the decision from their reports."""

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
            position: the game's position, with the player's colour to move.
            estimate: of the position's end; None if :func:`is_endgame` needs none.
            moves: the caller's filter; if it excludes the pass, another move is played while one is legal.
            cleanup: the players disagreed about dead stones: capture the opponent's dead stones before a pass, whatever
                the rules.
        """
        self._game, self._position, self._estimate, self._backend = game, position, estimate, backend
        self._color = int(position.meta[META_TO_MOVE])
        self._targets = self._capture_targets(cleanup)
        self._may_pass = moves.allows(self._color, PASS) and self._targets is None
        self.searches = tuple(PlannedSearch(moves & one.moves, one.part) for one in self._searches())
        """to be run in this order; empty = pass at once"""

    def _searches(self) -> tuple[PlannedSearch, ...]:
        """The plan's searches, before the caller's filter is applied to them."""
        position, estimate, no_pass = self._position, self._estimate, without(self._color, [PASS])
        if self._may_pass and estimate is not None and is_finished(position, estimate):
            return ()
        if self._targets:
            first, second = Part(0.0, CAPTURE_SHARE), Part(CAPTURE_SHARE, 1.0)
            return PlannedSearch(no_pass, first), PlannedSearch(only(self._color, self._targets), second)
        self._pass_is_searched = self._may_pass and (estimate is not None or is_near_end(position))
        self._pass_is_searched &= knows_passing(position)
        return (PlannedSearch(EVERY_MOVE if self._pass_is_searched else no_pass),)

    def decide(self, reports: Sequence[Report], deadline_s: float = math.inf) -> Decision:
        """Decide from the reports of the plan's searches.

        Args:
            reports: one for each search, in their order.
            deadline_s: ``time.perf_counter`` after which no more rollouts are played.
        """
        if not reports:
            assert self._estimate is not None, "only an estimate decides on a pass without a search"
            return Decision(None, True, self._estimate.value_of_ending(self._color))
        if self._targets:
            report = self._better(*reports)
        else:
            report = reports[0]
            may_end = self._may_pass and self._position.meta[META_PASSES] > 0 and is_near_end(self._position)
            if may_end and not self._pass_is_searched and self._ending_is_better(report, deadline_s):
                return self._decision(report, passes=True)
        is_given_up = self._may_pass and is_lost(self._position, self._estimate, report)
        return self._decision(report, passes=not report.moves or is_given_up)

    def _decision(self, report: Report, passes: bool) -> Decision:
        """Decide for the report's move or, if ``passes``, for a pass, and compute the value of this choice."""
        value = shrunk_value(report.value_stm, report)
        ends = passes or report.moves[0].point == PASS
        if ends and self._estimate is not None:
            value = max(value, self._estimate.value_of_ending(self._color))
        return Decision(report, passes, value)

    def _capture_targets(self, cleanup: bool) -> list[int] | None:
        """Moves towards the capture of dead stones that must be captured before a pass; None = none must be."""
        estimate, board = self._estimate, self._position.board
        if estimate is None:
            return None
        is_due = cleanup and any(board.color[point] == other(self._color) for point in estimate.dead)
        if is_due or (estimate.is_settled and must_capture(self._position, estimate)):
            return captures(self._game, estimate, self._color)
        return None

    def _better(self, free: Report, capture: Report) -> Report:
        """Choose between the reports of a search of all moves (``free``) and of a search of captures alone.

        The choice is ``capture``, unless its value is clearly lower, as in a seki.
        """
        if not (capture.moves and free.moves):
            return free if free.moves else capture
        doubt = 0.0 if free.has_values and capture.has_values else 2.0 / math.sqrt(min(capture.visits, free.visits))
        return free if capture.value_stm < free.value_stm - WORSE - doubt else capture

    def _ending_is_better(self, report: Report, deadline_s: float) -> bool:
        """Whether to end an unsettled game by a pass.

        The reasons are: playing on is worse by the search, the side behind has no hope, or the best move costs points,
        by estimates before and after it.
        """
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


def is_finished(position: Position, estimate: EndEstimate) -> bool:
    """Whether the side to move may pass without a search."""
    color = int(position.meta[META_TO_MOVE])
    if must_capture(position, estimate):
        return False
    if estimate.is_settled and estimate.lead(color) >= 0:
        return True
    return not is_strict(position) and position.meta[META_PASSES] > 0 and estimate.surely_won(color)


def must_capture(position: Position, estimate: EndEstimate) -> bool:
    """Whether the opponent's dead stones cost the side to move a win or a draw unless they are captured."""
    color = int(position.meta[META_TO_MOVE])
    return is_strict(position) and bool(np.sign(estimate.lead(color)) > np.sign(estimate.strict_lead(color)))


def knows_passing(position: Position) -> bool:
    """Whether the search scores a pass as a referee would.

    It does before the first pass, and under strict area rules, which count all stones as alive. Under
    territory rules rollouts estimate dead stones, which is accurate enough once the board has filled.
    """
    if position.meta[META_PASSES] == 0:
        return True
    if is_area(position):
        return not position.rules[RULE_FRIENDLY_PASS]
    return is_near_end(position)


def is_lost(position: Position, estimate: EndEstimate | None, report: Report) -> bool:
    """Whether a settled game is lost and the search sees no way to reopen it."""
    if estimate is None or not estimate.is_settled or not is_near_end(position):
        return False
    if estimate.lead(int(position.meta[META_TO_MOVE])) >= 0:
        return False
    value = (report.visits * report.value_stm - SETTLED_VISITS) / (report.visits + SETTLED_VISITS)
    return value < LOST


def captures(game: Game, estimate: EndEstimate, color: int) -> list[int]:
    """Legal moves beside the opponent's dead stones, which lead to their capture."""
    points = points_that_capture(game.position.board, estimate.dead, color)
    return [point for point in points if game.is_legal(color, point)]


RESIGN_AFTER = 0.2
"""Number of moves before which no side resigns, as a share of the board's points: 72 on 19x19"""
RESIGN_AFTER_A_STONE = 0.1
"""Addition to ``RESIGN_AFTER`` for each handicap stone that the player has given, up to ``RESIGN_LATEST`` in all"""
RESIGN_LATEST = 0.6


class Resignation:
    """Resigns after a number of consecutive hopeless moves of a colour, but not in the opening.

    Consecutive moves are recognised by their positions, since some clients replay the game before each move. Threads:
    one caller.
    """

    def __init__(self) -> None:
        self._latest: dict[int, tuple[int, int, int, int]] = {}
        """by colour: number of consecutive hopeless moves with the latest move, and without it; number of moves played
        before the latest move, and superko key of the position before it"""

    def is_due(self, game: Game, color: int, value_stm: float, options: PlayOptions) -> bool:
        """Record the value of a colour's next move; returns whether the colour should resign instead.

        Args:
            value_stm: -1 to 1 for the colour.
            options: only ``resign_below`` and ``resign_count`` are used.
        """
        count, before, n_moves, key = self._latest.get(color, (0, 0, 0, 0))
        if n_moves > game.n_moves or int(game.position.hashes[n_moves]) != key:
            before = 0  # Another game, or moves were undone.
        elif n_moves < game.n_moves:
            before = count
        count = before + 1 if value_stm < options.resign_below else 0
        self._latest[color] = count, before, game.n_moves, int(game.position.hashes[game.n_moves])
        given = game.handicap if color == WHITE else 0
        earliest = min(RESIGN_AFTER + RESIGN_AFTER_A_STONE * given, RESIGN_LATEST) * game.size**2
        return count >= options.resign_count and game.n_moves >= earliest
