"""What a position is worth in points: what the rules count once the game is over, an estimate before.

* Once both have passed under strict area rules (no friendly pass), the stones on the board as they stand.
* Else, once both have passed, and while no more than a quarter of the board is open: the count with the stones off that
  :mod:`engine.play.life_and_death` takes for dead.
* On a board that is more open than that counting says too little: the network's lead, or, without one, the sum of who
  probably owns what.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engine.go.game import Game
from engine.go.geometry import PASS
from engine.go.position import META_N_MOVES, META_PASSES, META_TO_MOVE, Position, play_move, with_capacity
from engine.go.scoring import area_owner, final_score_black, remove_dead
from engine.play.life_and_death import SURE, EndEstimate, estimate_end, rolled_ownership
from engine.play.passing import is_strict
from engine.rollout.policy import Tables
from engine.search.endings import Ending, RootEnding
from engine.search.search import Search

WIDE_OPEN = 0.25
"""Share of the board's points that are open where counting says too little."""


class Score(NamedTuple):
    """Black's lead by the rules in force, and its limits."""

    lead_black: float
    low_black: float
    """if White got every point that is in doubt"""
    high_black: float
    """if Black got them"""


def strict_end(game: Game) -> bool:
    """Whether the game is over, and every stone on the board counts as alive."""
    return game.is_over and is_strict(game.position)


def root_ending(search: Search, position: Position, tables: Callable[[], Tables | None]) -> RootEnding:
    """What both sides would be given if they passed at a search's position: as :func:`score` says once they have.

    Args:
        position: the one that the search has.
        tables: gives the rollout policy; None = uniformly random rollouts.
    """
    return RootEnding(position, lambda: _ending(search, position, tables()))


def _ending(search: Search, position: Position, tables: Tables | None) -> Ending:
    # The position that final_score sees: the network sees the passes, and whose turn it is decides over the last dame.
    ended = with_capacity(position, int(position.meta[META_N_MOVES]) + 2)
    while ended.meta[META_PASSES] < 2:
        play_move(ended, PASS, ended.meta[META_TO_MOVE])
    rollouts = rolled_ownership(ended.board, tables)
    end = estimate_end(ended, search.network_ownership_black(of=ended), tables, rollouts=rollouts)
    # After two passes a network takes for alive what a move could still kill.
    now = estimate_end(position, search.network_ownership_black(of=position), tables, rollouts=rollouts)
    if is_strict(position):
        # Dead stones count until they are captured, and each dame is a point: moves that a pass forgoes.
        is_settled = now.is_settled and now.lead_black == now.strict_lead_black
        return Ending(end.strict_lead_black, is_settled, end.ownership_black)
    is_settled = now.n_open == now.n_dame and now.dead == end.dead
    return Ending(end.lead_black, is_settled, end.ownership_black)


def score(game: Game, estimate_end: Callable[[], EndEstimate], network_lead_black: Callable[[], float | None]) -> Score:
    """The score of a game's position.

    Args:
        estimate_end: of the position; called where it is needed.
        network_lead_black: the network's; None = no network gives it. Called on a wide-open board alone.
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
            # What is not yet as it was counted; so a stone that dies costs its point twice, as under territory rules.
            expected = end.lead_black + float((owners - counted).sum())
        lead += round(expected - lead)
    doubtful = owners[np.abs(end.ownership_black) < SURE] if not end.is_settled else owners[:0]
    return Score(lead, lead - float((1 + doubtful).sum()), lead + float((1 - doubtful).sum()))
