"""The score of a position in points: by the rules once the game is over, an estimate before.

* After two passes under strict area rules (no friendly pass): all stones on the board count as alive.
* Otherwise after two passes, or if at most a quarter of the board is open: dead stones are removed as
  :mod:`engine.play.life_and_death` estimates them.
* On a more open board: the network's lead, or, without a score head, the sum of the ownership.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engine.go.game import Game
from engine.go.geometry import PASS
from engine.go.position import META_N_MOVES, META_PASSES, META_TO_MOVE, Position, play_move, with_capacity
from engine.go.rules import RULE_FRIENDLY_PASS, RULE_SCORING, SCORING_AREA
from engine.go.scoring import area_owner, final_score_black, remove_dead
from engine.play.life_and_death import SURE, EndEstimate, estimate_end, rolled_ownership
from engine.rollout.policy import Tables
from engine.search.endings import Ending, RootEnding
from engine.search.search import Search

WIDE_OPEN = 0.25
"""Share of open points above which counting is not meaningful, so that the network's lead is used"""


class Score(NamedTuple):
    """Black's lead by the rules in force, and its bounds."""

    lead_black: float
    low_black: float
    """Black's lead if White gets all doubtful points"""
    high_black: float
    """Black's lead if Black gets all doubtful points"""


def is_area(position: Position) -> bool:
    """Whether the rules score area, so that a move in one's own area costs nothing."""
    return bool(position.rules[RULE_SCORING] == SCORING_AREA)


def is_strict(position: Position) -> bool:
    """Whether all stones on the board count as alive once both sides have passed."""
    return is_area(position) and not position.rules[RULE_FRIENDLY_PASS]


def strict_end(game: Game) -> bool:
    """Whether the game is over, and every stone on the board counts as alive."""
    return game.is_over and is_strict(game.position)


def root_ending(search: Search, position: Position, tables: Callable[[], Tables | None]) -> RootEnding:
    """The :func:`score` of a search's position as if both sides passed in it, computed when it is first needed.

    Args:
        position: the search's current position.
        tables: returns the rollout policy; None = uniformly random rollouts.
    """
    return RootEnding(position, lambda: _ending(search, position, tables()))


def _ending(search: Search, position: Position, tables: Tables | None) -> Ending:
    # The position of final_score: the network sees the passes, and the side to move decides who gets the last dame.
    ended = with_capacity(position, int(position.meta[META_N_MOVES]) + 2)
    while ended.meta[META_PASSES] < 2:
        play_move(ended, PASS, ended.meta[META_TO_MOVE])
    rollouts = rolled_ownership(ended.board, tables)
    end = estimate_end(ended, search.network_ownership_black(of=ended), tables, rollouts=rollouts)
    # After two passes a network treats stones as alive that a move could still kill.
    now = estimate_end(position, search.network_ownership_black(of=position), tables, rollouts=rollouts)
    if is_strict(position):
        # Capturing dead stones and filling dame gain points here, so the position is settled only without either.
        is_settled = now.is_settled and now.lead_black == now.strict_lead_black
        return Ending(end.strict_lead_black, is_settled, end.ownership_black)
    is_settled = now.n_open == now.n_dame and now.dead == end.dead
    return Ending(end.lead_black, is_settled, end.ownership_black)


def score(game: Game, estimate_end: Callable[[], EndEstimate], network_lead_black: Callable[[], float | None]) -> Score:
    """The score of a game's position.

    Args:
        estimate_end: estimates the position's end; called only if needed.
        network_lead_black: returns Black's lead by the network, None without a score head; called only on a wide-open
            board.
    """
    if strict_end(game):
        return Score(*(float(final_score_black(game.position)),) * 3)
    end = estimate_end()
    counted = np.zeros(len(end.ownership_black), np.int8)
    area_owner(remove_dead(game.position, end.dead).board, counted)
    lead, owners = end.lead_black, counted.astype(np.float64)
    if end.n_open > WIDE_OPEN * len(counted) and not game.is_over:
        owners = end.ownership_black.astype(np.float64)
        expected = network_lead_black()
        if expected is None:
            # The estimate plus the difference between ownership and counted area of every point.
            expected = end.lead_black + float((owners - counted).sum())
        lead += round(expected - lead)
    doubtful = owners[np.abs(end.ownership_black) < SURE] if not end.is_settled else owners[:0]
    return Score(lead, lead - float((1 + doubtful).sum()), lead + float((1 - doubtful).sum()))
