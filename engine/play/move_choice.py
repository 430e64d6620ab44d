"""The choice of one move: what to search for, and whether a pass is better.

The questions about passing are in :mod:`engine.play.passing`.

A choice knows the position, what rollouts and the network say of its end, and how to search within the move's time;
clocks, resignation and the game itself stay with :mod:`engine.play.player`.
"""

import math
from collections.abc import Callable

from engine.go.game import Game
from engine.go.geometry import PASS, other
from engine.go.position import META_PASSES, META_TO_MOVE, Position, play_move, with_capacity
from engine.play.assembly import Parts, judging_tables
from engine.play.life_and_death import Settlement, settle
from engine.play.passing import captures, is_finished, is_full, is_lost, knows_passing, must_capture
from engine.search.report import Report
from engine.search.search import Search

HOPELESS = -0.9
"""An open game may be ended by the side that is behind where its search values every other move less than this."""
LONGEST_GAME = 2.0
"""Moves, as a share of the board's points, after which the side that is behind no longer keeps a game open."""
WORSE = 0.1
"""How far below the value of ending the game playing on must be to be given up, and a capture below that of the best
move; the search is no surer than that."""
FEW_ROLLOUTS = 8
"""Where rollouts alone judge, so many drawn ones are imagined beside those played before a game is given up."""
COSTLY = 1.5
"""Points that a move may cost before passing is better: more than one stone in one's own territory."""
WIDE_OPEN = 0.25
"""Share of the board's points that are open where counting says too little to tell what a move costs."""
CAPTURE_SHARE = 0.5
"""Of a move's time for what a capture is to be held against"""


def has_values(parts: Parts) -> bool:
    """Whether a network judges, not single rollouts alone."""
    return bool(parts.networks) and parts.networks[0].spec.has_value


def trusted(value: float, report: Report, parts: Parts) -> float:
    """A value of a search, nearer to a draw where it rests on few rollouts: one alone is 1 or -1."""
    if has_values(parts):
        return value
    return value * report.visits / (report.visits + FEW_ROLLOUTS)


def judged(position: Position, search: Search, parts: Parts) -> Settlement:
    """A position judged as if play ended now; the search must have it."""
    has_opinion = bool(parts.networks) and parts.networks[0].spec.has_ownership
    return settle(position, search.ownership_black() if has_opinion else None, judging_tables(parts))


class Choice:
    """One move of one colour."""

    def __init__(
        self,
        game: Game,
        position: Position,
        search: Search,
        parts: Parts,
        run: Callable[..., Report],
        may_pass: bool = True,
        cleanup: bool = False,
        is_rushed: bool = False,
    ) -> None:
        """Judge the position, if it is time for that.

        Args:
            position: the game's, with the colour to move; the search has it.
            run: searches within the move's time; its arguments are moves allowed, moves to avoid and a share of it.
            may_pass: False = the caller wants no pass as long as another move is legal.
            cleanup: as for :meth:`engine.play.player.Player.genmove`.
            is_rushed: there is no time for a judgement that can wait.
        """
        self._game, self._position, self._search, self._parts, self._run = game, position, search, parts, run
        self._color = int(position.meta[META_TO_MOVE])
        is_endgame = position.meta[META_PASSES] > 0 or (is_full(position) and not is_rushed)
        self._settlement = judged(position, search, parts) if cleanup or is_endgame else None
        self._targets = self._captures(cleanup)
        self._may_pass = may_pass and self._targets is None

    def search(self) -> tuple[Report | None, bool]:
        """Search, unless the game is over.

        Returns:
            Report | None: what was found; None where nothing had to be looked for.
            bool: whether a pass is better than its moves.
        """
        position, settlement = self._position, self._settlement
        if self._may_pass and settlement is not None and is_finished(position, settlement):
            return None, True
        if self._targets:
            report = self._capture(self._targets)
        elif self._may_pass and (settlement is not None or is_full(position)) and knows_passing(position):
            report = self._run(None, [])
        else:
            report = self._run(None, [PASS])
            may_end = self._may_pass and position.meta[META_PASSES] > 0 and is_full(position)
            if may_end and self._ending_is_better(report):
                return report, True
        return report, not report.moves or (self._may_pass and is_lost(position, settlement, report))

    def _captures(self, cleanup: bool) -> list[int] | None:
        """Moves towards capturing the opponent's dead stones where that has to be done first; else None."""
        settlement, board = self._settlement, self._position.board
        if settlement is None:
            return None
        is_due = cleanup and any(board.color[point] == other(self._color) for point in settlement.dead)
        if is_due or (settlement.is_settled and must_capture(self._position, settlement)):
            return captures(self._game, settlement, self._color)
        return None

    def _capture(self, targets: list[int]) -> Report:
        """Search for the best move towards a capture; where that costs the game, as in a seki, for any move."""
        free = self._run(None, [PASS], CAPTURE_SHARE)
        report = self._run(targets, [])
        if not (report.moves and free.moves):
            return free if free.moves else report
        doubt = 0.0 if has_values(self._parts) else 2.0 / math.sqrt(min(report.visits, free.visits))
        return free if report.value_stm < free.value_stm - WORSE - doubt else report

    def _ending_is_better(self, report: Report) -> bool:
        """Whether to end a game that is not settled: playing on would lose it, or cost points by the same count."""
        color, game, settlement = self._color, self._game, self._settlement
        if not report.moves:
            return True
        value = trusted(report.moves[0].value_stm, report, self._parts)
        if value < settlement.value_of_ending(color) - WORSE:
            return True
        if settlement.lead(color) <= 0:
            return value < HOPELESS or game.n_moves > LONGEST_GAME * game.size**2
        if settlement.n_open > WIDE_OPEN * game.size**2:
            return False
        after = with_capacity(self._position, game.n_moves + 1)
        play_move(after, report.moves[0].point, color)
        tables = judging_tables(self._parts)
        return settle(after, None, tables).lead(color) < settle(self._position, None, tables).lead(color) - COSTLY
