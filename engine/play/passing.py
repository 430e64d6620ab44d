"""When passing is better than playing: the questions that :mod:`engine.play.player` asks before and after a search.

A pass is the one move that a referee, not the search, gives its meaning to:

* a settled game is ended by passing, by the side that is behind only when its search has lost hope too. Under strict
  area rules (no friendly pass) the opponent's dead stones count for him as long as they stand; where that would cost
  a win or a draw they are captured first;
* after the opponent's pass, ours ends the game. Unless it is surely won however the open points fall, and no dead
  stones can be counted against us, the best other move is searched for, and has to promise less than ending now;
* before the board has filled, we do not pass of our own accord.
"""

import numpy as np

from engine.go.game import Game
from engine.go.position import META_PASSES, META_TO_MOVE, Position
from engine.go.rules import RULE_FRIENDLY_PASS, RULE_SCORING, SCORING_AREA
from engine.play.life_and_death import EndEstimate, points_that_capture
from engine.search.endings import is_full
from engine.search.report import Report

LOST = -0.5
"""A settled game is lost where the search values it less than this."""
SETTLED_VISITS = 32
"""Visits that the estimate "settled, and lost" is worth: a search of a few visits is too noisy to contradict it."""


def is_finished(position: Position, estimate: EndEstimate) -> bool:
    """Whether the side to move may pass without a search."""
    color = int(position.meta[META_TO_MOVE])
    if must_capture(position, estimate):
        return False
    if estimate.is_settled and estimate.lead(color) >= 0:
        return True
    return not is_strict(position) and position.meta[META_PASSES] > 0 and estimate.surely_won(color)


def must_capture(position: Position, estimate: EndEstimate) -> bool:
    """Whether the opponent's dead stones stand between the side to move and a win, or a draw."""
    color = int(position.meta[META_TO_MOVE])
    return is_strict(position) and bool(np.sign(estimate.lead(color)) > np.sign(estimate.strict_lead(color)))


def is_strict(position: Position) -> bool:
    """Whether stones on the board count as alive, the dead ones too, once both have passed."""
    return is_area(position) and not position.rules[RULE_FRIENDLY_PASS]


def is_area(position: Position) -> bool:
    """Whether stones on the board count, so that a move in one's own area costs nothing."""
    return bool(position.rules[RULE_SCORING] == SCORING_AREA)


def knows_passing(position: Position) -> bool:
    """Whether the search scores a pass as a referee would.

    It does while a pass does not end the game, and under strict area rules, where its count is the referee's. Under
    territory rules it asks rollouts for the dead stones, which is good enough once the board has filled.
    """
    if position.meta[META_PASSES] == 0:
        return True
    if is_area(position):
        return not position.rules[RULE_FRIENDLY_PASS]
    return is_full(position)


def is_lost(position: Position, estimate: EndEstimate | None, report: Report) -> bool:
    """Whether a settled game is lost and the search sees no way to open it again."""
    if estimate is None or not estimate.is_settled or not is_full(position):
        return False
    if estimate.lead(int(position.meta[META_TO_MOVE])) >= 0:
        return False
    value = (report.visits * report.value_stm - SETTLED_VISITS) / (report.visits + SETTLED_VISITS)
    return value < LOST


def captures(game: Game, estimate: EndEstimate, color: int) -> list[int]:
    """Legal moves towards capturing the opponent's dead stones."""
    points = points_that_capture(game.position.board, estimate.dead, color)
    return [point for point in points if game.is_legal(color, point)]
