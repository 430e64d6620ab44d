"""What an analysis leaves out, and how it goes on and ends."""

import threading

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.go.game import DEFAULT_KOMI, Game
from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.rules import rules_named
from engine.play.player import analyze
from engine.search.endings import Ending, RootEnding
from engine.search.move_filter import EVERY_MOVE, MoveFilter, only, without
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits

A, B = 12, 13
"""Points of a 7x7 board"""


def excluded(moves: MoveFilter, color=BLACK):
    """The points that are left out, by depth."""
    return [np.flatnonzero(row == 0).tolist() for row in moves.table(7, color)]


def test_moves_are_left_out_for_their_colour_as_deep_as_was_said():
    assert excluded(EVERY_MOVE) == [[]]
    assert excluded(without(BLACK, [A])) == [[A]]
    assert excluded(without(BLACK, [A], 4)) == [[A], [], [A]]
    assert excluded(without(WHITE, [A], 1)) == [[]], "White does not move at the root"
    assert excluded(without(WHITE, [A], 4)) == [[], [A], [], [A]]
    assert excluded(without(WHITE, [A], 1), WHITE) == [[A]]
    assert excluded(without(BLACK, [A, PASS], 3) & without(WHITE, [B, PASS], 2)) == [[PASS, A], [B], [A]]
    assert len(excluded(without(BLACK, [A], 10**9))) < 1000


def test_all_moves_but_some_may_be_left_out():
    root, _, below = only(BLACK, [A, B], 3).table(7, BLACK)
    assert np.flatnonzero(root).tolist() == [A, B]
    assert np.flatnonzero(below).tolist() == [PASS, A, B]


def test_filters_add_up_and_tell_what_the_root_may_play():
    moves = only(BLACK, [A, B]) & without(BLACK, [A])
    assert np.flatnonzero(moves.table(7, BLACK)[0]).tolist() == [B]
    assert (moves.allows(BLACK, A), moves.allows(BLACK, B), moves.allows(BLACK, PASS)) == (False, True, False)
    assert moves.allows(WHITE, A)


@pytest.fixture
def search():
    found = Search(SearchOptions(threads=1), None, None)
    found.set_position(Game(7, rules_named("chinese"), DEFAULT_KOMI).position)
    yield found
    found.close()


def lines(report):
    return [move.pv for move in report.moves]


def test_the_search_keeps_to_its_filter_at_every_depth(search):
    moves = only(BLACK, [A, B, B + 1], 9) & without(WHITE, [A, B, PASS], 2)
    report = search.run(SearchLimits(visits=2000), moves)
    assert report.visits == 2000 and search.in_flight() == 0
    for line in lines(report):
        assert set(line[0:9:2]) <= {A, B, B + 1, PASS}
        assert line[0] != PASS and not {A, B} & set(line[1:2])
    deepest = max(lines(report), key=len)
    assert len(deepest) >= 4


def test_a_tree_grown_under_another_filter_is_not_kept(search):
    moves = without(WHITE, [A], 2)
    assert search.run(SearchLimits(visits=300), moves).playouts_this_run == 300
    assert search.run(SearchLimits(visits=400), moves).playouts_this_run == 100
    assert search.run(SearchLimits(visits=400)).playouts_this_run == 400
    assert search.run(SearchLimits(visits=500), moves).playouts_this_run == 500


def test_a_tree_grown_under_a_filter_of_the_root_is_not_kept_without_them(search):
    assert search.run(SearchLimits(visits=300), only(BLACK, [A, B])).playouts_this_run == 300
    report = search.run(SearchLimits(visits=400))
    assert report.playouts_this_run == 400 and len(report.moves) > 2
    assert search.run(SearchLimits(visits=500), without(BLACK, [PASS])).playouts_this_run in (100, 500)
    assert search.run(SearchLimits(visits=600)).playouts_this_run == 100, "passing comes and goes with every move"


def test_it_goes_on_until_interrupted_and_reports_at_its_interval(search):
    interrupted, reports = threading.Event(), []

    def take(report):
        reports.append(report)
        if len(reports) == 5:
            interrupted.set()

    analyze(search, interrupted, Watcher(take, 0.02, 0.01), EVERY_MOVE)
    assert len(reports) == 5
    visits = [report.visits for report in reports]
    assert visits == sorted(visits) and visits[-1] > visits[0] > 1
    assert search.in_flight() == 0
    analyze(search, interrupted, Watcher(take, 0.02), EVERY_MOVE)
    assert len(reports) == 5, "interrupted before it began"


def test_a_full_tree_is_reported_on_until_the_interruption(monkeypatch):
    monkeypatch.setattr("engine.search.search.tree_bytes", lambda *_: 1 << 20)
    search = Search(SearchOptions(threads=1, memory=64), None, None)
    search.set_position(Game(19, rules_named("chinese"), DEFAULT_KOMI).position)
    interrupted, visits = threading.Event(), []

    def take(report):
        visits.append(report.visits)
        if len(visits) > 3 and len(set(visits[-3:])) == 1:
            interrupted.set()

    analyze(search, interrupted, Watcher(take, 0.05), EVERY_MOVE)
    assert interrupted.is_set()
    search.close()


def test_an_ending_is_shown_as_soon_as_the_network_says_that_it_matters(search, monkeypatch):
    """On a busy machine the network's ownership may not be there before the search."""
    interrupted, reports, shown = threading.Event(), [], []
    answers = iter([None, None, np.ones(49)])
    monkeypatch.setattr(search, "network_ownership_black", lambda *_: next(answers))
    game = Game(7, rules_named("chinese"), DEFAULT_KOMI)
    for point in range(A, A + 4):
        game.play(BLACK, point)
        game.play(WHITE, point + 16)
        game.play(BLACK, point + 24)
        game.play(WHITE, point + 32)
    search.set_position(game.position)
    ending = RootEnding(game.position, lambda: Ending(5.0, True, np.ones(49)))

    monkeypatch.setattr(ending, "applied", lambda report: shown.append(len(reports)) or report)

    def take(report):
        reports.append(report)
        if len(reports) == 3:
            interrupted.set()

    analyze(search, interrupted, Watcher(take, 0.02, 0.01), EVERY_MOVE, ending=ending)
    assert shown == [1, 2, 3], "the third is the one that is returned"
