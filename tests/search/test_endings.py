"""The count of a settled root in reports of its search, on reports made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, from_vertex
from engine.go.position import META_N_MOVES, with_capacity
from engine.search.endings import CERTAIN, Ending, RootEnding
from engine.search.report import MoveReport, Report

COUNT = 2.5
"""Black's lead by the count, Black being to move"""


def move(vertex, score, value=0.5, visits=10):
    point = from_vertex(vertex, 9)
    return MoveReport(point, visits, 0.1, value, value - 0.2, score, [point], [visits])


def report(score, *moves, value=0.5, network=COUNT):
    return Report(
        visits=100, playouts_this_run=100, seconds=1.0, value_stm=value, score_stm=score, moves=list(moves),
        ownership_black=None, tree_nodes=1, evaluations=1, network_score_stm=network,
    )  # fmt: skip


def ending(passes=0, is_settled=True):
    game = Game(9)
    for _ in range(passes):
        game.play(game.to_move, PASS)
    if game.to_move != BLACK:
        game.play(game.to_move, from_vertex("E5", 9))
    root = with_capacity(game.position, int(game.position.meta[META_N_MOVES]))
    return RootEnding(root, lambda: Ending(COUNT, is_settled, np.zeros(81, np.float32)))


def test_a_settled_root_and_its_pass_have_the_count():
    found = ending().applied(report(1.5, move("D4", 3.5), move("pass", 0.5), move("A1", -9.0)))
    assert (found.score_stm, found.value_stm) == (COUNT, 1.0)
    assert [one.score_stm for one in found.moves] == [COUNT, COUNT, -9.0]


def test_the_networks_own_error_is_taken_off():
    found = ending().applied(report(9.0, move("D4", 9.0), move("pass", 8.0), move("A1", -1.0), network=8.5))
    assert found.score_stm == COUNT
    assert [one.score_stm for one in found.moves] == [COUNT, COUNT, -7.0]


def test_no_move_gains_where_the_root_does_not():
    """A move of a few visits may look better than the count by more than the tolerance."""
    found = ending().applied(report(3.0, move("D4", 15.0, visits=1), move("pass", 2.0)))
    assert [one.score_stm for one in found.moves] == [COUNT, COUNT]


def test_a_search_that_moves_away_from_the_network_contradicts_the_count():
    found = ending().applied(report(-20.0, move("D4", 3.0), move("pass", -30.0)))
    assert found.score_stm == -20.0 and [one.score_stm for one in found.moves] == [3.0, -30.0]


def test_a_lead_that_wanders_in_a_won_game_contradicts_nothing():
    for value, score in ((CERTAIN, COUNT), (CERTAIN - 0.01, 40.0)):
        found = ending().applied(report(40.0, move("pass", 40.0, value), value=value))
        assert found.score_stm == score


@pytest.mark.parametrize("is_settled", [False, True])
def test_after_two_passes_the_root_has_the_count(is_settled):
    found = ending(2, is_settled).applied(report(-20.0, move("D4", -20.0)))
    assert (found.score_stm, found.value_stm) == (COUNT, 1.0)


def test_an_open_root_stays_as_it_was_searched():
    before = report(-20.0, move("D4", 3.0), move("pass", -30.0))
    assert ending(is_settled=False).applied(before) == before


def test_without_leads_settled_roots_stay_as_they_were_searched():
    before = replace(report(None, move("D4", None)), network_score_stm=None)
    assert ending().applied(before) == before


def test_an_open_board_asks_no_network_whether_its_count_matters():
    assert not ending().matters(lambda: pytest.fail("asked"))
    assert ending(2).matters(lambda: pytest.fail("asked"))
