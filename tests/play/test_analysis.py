"""What an analysis leaves out, and how it goes on and ends."""

import threading

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.go.game import DEFAULT_KOMI, Game
from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.rules import rules_named
from engine.play.analysis import Bar, analyze, bars_by_depth
from engine.search.report import Watcher
from engine.search.search import Search

A, B = 12, 13
"""Points of a 7x7 board"""


def rows(bars, color=BLACK):
    """The barred points by depth, None where none is."""
    found = bars_by_depth(bars, 7, color)
    return found if found is None else [np.flatnonzero(row).tolist() for row in found]


def test_moves_are_barred_for_their_colour_as_deep_as_was_said():
    assert rows([]) is None
    assert rows([Bar(BLACK, [A], 1)]) == [[A]]
    assert rows([Bar(BLACK, [A], 4)]) == [[A], [], [A]]
    assert rows([Bar(WHITE, [A], 1)]) is None, "White does not move at the root"
    assert rows([Bar(WHITE, [A], 4)]) == [[], [A], [], [A]]
    assert rows([Bar(WHITE, [A], 1)], WHITE) == [[A]]
    assert rows([Bar(BLACK, [A, PASS], 3), Bar(WHITE, [B, PASS], 2)]) == [[PASS, A], [B], [A]]
    assert len(rows([Bar(BLACK, [A], 10**9)])) < 1000


def test_all_moves_but_some_may_be_barred():
    root, below = bars_by_depth([Bar(BLACK, [A, B], 3, inverted=True)], 7, BLACK)[[0, 2]]
    assert np.flatnonzero(~root).tolist() == [A, B]
    assert np.flatnonzero(~below).tolist() == [PASS, A, B]


@pytest.fixture
def search():
    found = Search(SearchOptions(threads=1), None, None)
    found.set_position(Game(7, rules_named("chinese"), DEFAULT_KOMI).position)
    yield found
    found.close()


def lines(report):
    return [move.pv for move in report.moves]


def test_the_search_keeps_to_the_bars_at_every_depth(search):
    allowed = bars_by_depth([Bar(BLACK, [A, B, B + 1], 9, True), Bar(WHITE, [A, B, PASS], 2)], 7, BLACK)
    report = search.run(visits=2000, barred=allowed)
    assert report.visits == 2000 and search.in_flight() == 0
    for line in lines(report):
        assert set(line[0:9:2]) <= {A, B, B + 1, PASS}
        assert line[0] != PASS and not {A, B} & set(line[1:2])
    deepest = max(lines(report), key=len)
    assert len(deepest) >= 4


def test_a_tree_grown_under_other_bars_is_not_kept(search):
    barred = bars_by_depth([Bar(WHITE, [A], 2)], 7, BLACK)
    assert search.run(visits=300, barred=barred).playouts_this_run == 300
    assert search.run(visits=400, barred=barred).playouts_this_run == 100
    assert search.run(visits=400).playouts_this_run == 400
    assert search.run(visits=500, barred=barred).playouts_this_run == 500


def test_a_tree_grown_under_bars_at_the_root_is_not_kept_without_them(search):
    assert search.run(visits=300, allowed=[A, B]).playouts_this_run == 300
    report = search.run(visits=400)
    assert report.playouts_this_run == 400 and len(report.moves) > 2
    assert search.run(visits=500, avoid=[PASS]).playouts_this_run in (100, 500)
    assert search.run(visits=600).playouts_this_run == 100, "passing comes and goes with every move"


def test_it_goes_on_until_interrupted_and_reports_at_its_interval(search):
    interrupted, reports = threading.Event(), []

    def take(report):
        reports.append(report)
        if len(reports) == 5:
            interrupted.set()

    analyze(search, interrupted, Watcher(take, 0.02, 0.01), None)
    assert len(reports) == 5
    visits = [report.visits for report in reports]
    assert visits == sorted(visits) and visits[-1] > visits[0] > 1
    assert search.in_flight() == 0
    analyze(search, interrupted, Watcher(take, 0.02), None)
    assert len(reports) == 5, "interrupted before it began"


def test_a_full_tree_is_reported_on_until_the_interruption():
    search = Search(SearchOptions(threads=1, memory=64), None, None)
    search.set_position(Game(19, rules_named("chinese"), DEFAULT_KOMI).position)
    search._shared.limit_bytes = 1 << 20
    interrupted, visits = threading.Event(), []

    def take(report):
        visits.append(report.visits)
        if len(visits) > 3 and len(set(visits[-3:])) == 1:
            interrupted.set()

    analyze(search, interrupted, Watcher(take, 0.05), None)
    assert interrupted.is_set()
    search.close()
