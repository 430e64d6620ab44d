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
from engine.go.scoring import area_owner, final_score_black, remove_dead
from engine.play.life_and_death import SURE, EndEstimate
from engine.play.passing import is_strict

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
