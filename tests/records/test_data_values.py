"""What people write into SGF properties, and games made uniform."""

import math

import numpy as np
import pytest

from engine.records.filters import Filters
from engine.records.games import COUNTED, FORFEIT, RESIGNED, TIME, UNKNOWN, VOID
from engine.records.schema import join
from engine.records.sgf_values import date_of, rank_of, rank_text, result_of, seconds_of
from tests.records.made import games_of

NAN = math.nan


@pytest.mark.parametrize(
    ("text", "winner", "ending", "margin"),
    [
        ("B+R", 1, RESIGNED, NAN), ("W+Resign", -1, RESIGNED, NAN), ("black won by resignation", 1, RESIGNED, NAN),
        ("黑中盘胜", 1, RESIGNED, NAN), ("黒番中押し勝ち", 1, RESIGNED, NAN), ("흑 불계승", 1, RESIGNED, NAN),
        ("B+12.5", 1, COUNTED, 12.5), ("W+3,5", -1, COUNTED, 3.5), ("B+12 1/2", 1, COUNTED, 12.5),
        ("W+1/2", -1, COUNTED, 0.5), ("W+0.5 (Moves: 210)", -1, COUNTED, 0.5), ("Black wins by 2.5", 1, COUNTED, 2.5),
        ("黑胜3又3/4子", 1, COUNTED, 7.5), ("白胜3.75子", -1, COUNTED, 7.5), ("白胜1/4子", -1, COUNTED, 0.5),
        ("B+1.75", 1, COUNTED, 3.5), ("黒3目半勝", 1, COUNTED, 3.5), ("白半目勝", -1, COUNTED, 0.5),
        ("백 3집반승", -1, COUNTED, 3.5), ("B+3.3", 1, COUNTED, NAN), ("W+900", -1, COUNTED, NAN),
        ("W+T", -1, TIME, NAN), ("B+Time", 1, TIME, NAN), ("W+T (time)", -1, TIME, NAN), ("B+Timeout", 1, TIME, NAN),
        ("W+Forfeit", -1, FORFEIT, NAN), ("B+F", 1, FORFEIT, NAN), ("W+Offline", -1, FORFEIT, NAN),
        ("B+", 1, UNKNOWN, NAN), ("W", -1, UNKNOWN, NAN), ("B+0.0", 1, UNKNOWN, NAN), ("B+J", 1, UNKNOWN, NAN),
        ("Draw", 0, COUNTED, 0), ("0", 0, COUNTED, 0), ("Jigo", 0, COUNTED, 0), ("D+J", 0, COUNTED, 0),
        ("和棋", 0, COUNTED, 0), ("持碁", 0, COUNTED, 0),
        ("Void", 0, VOID, NAN), ("No Result", 0, VOID, NAN), ("Both lose", 0, VOID, NAN),
        ("Black resigns", -1, RESIGNED, NAN), ("White resigned", 1, RESIGNED, NAN), ("W+resigned", -1, RESIGNED, NAN),
        ("White loses on time", 1, TIME, NAN), ("Black lost on time", -1, TIME, NAN), ("B+Time, W lost", 1, TIME, NAN),
        ("White forfeits", 1, FORFEIT, NAN), ("Black loses by 2.5", -1, COUNTED, 2.5), ("黑负", -1, UNKNOWN, NAN),
        ("黑超时负", -1, TIME, NAN), ("白认输", 1, RESIGNED, NAN), ("白中盘负", 1, RESIGNED, NAN),
        ("黒投了", -1, RESIGNED, NAN),
        ("黑胜 白认输", 1, RESIGNED, NAN), ("白番中押し勝ち", -1, RESIGNED, NAN), ("0.0", 0, COUNTED, 0),
        ("?", 0, UNKNOWN, NAN), ("", 0, UNKNOWN, NAN), ("Left unfinished", 0, UNKNOWN, NAN),
    ],
)  # fmt: skip
def test_results(text, winner, ending, margin):
    found = result_of(text)
    assert (found.winner, found.ending) == (winner, ending)
    assert found.margin == margin or (math.isnan(margin) and math.isnan(found.margin))


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("9d", 9), ("9D", 9), ("9 dan", 9), ("9段", 9), ("9단", 9), ("九段", 9), ("初段", 1), ("AGA 5d", 5), ("4d?", 4),
        ("P9dan", 29), ("P9段", 29), ("P9", 29), ("9p", 29), ("1p?", 21), ("7d pro", 27), ("9 dan (pro)", 29),
        ("5k", -5), ("5k?", -5), ("5K*", -5), ("18kyu", -18), ("5級", -5), ("10급", -10), ("30k", -30),
        ("职业九段", 29), ("professional 5 dan", 25), ("프로 9단", 29), ("二十级", -20), ("十八級", -18), ("十级", -10),
        ("NR", 0), ("?", 0), ("-", 0), ("", 0), ("1540", 0), ("9", 0), ("0d", 0), ("99k", 0),
    ],
)  # fmt: skip
def test_ranks(text, rank):
    assert rank_of(text) == rank
    if rank:
        assert rank_of(rank_text(rank)) == rank


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2016-12-29", 20161229), ("2016-12-29 23:30:11", 20161229), ("2017.08.27 10:03", 20170827),
        ("2017-04-04T09:59:32+00:00", 20170404), ("20170404", 20170404), ("2017/4/4", 20170404),
        ("2017年4月4日", 20170404), ("2003-02-16,17", 20030216), ("1996-05,06", 19960500), ("1996", 19960000),
        ("12 Dec 2003", 20031212), ("Dec 12, 2003", 20031212), ("December 2003", 20031200),
        ("Published 1846-09-11", 18460911), ("2019-02-31", 20190200), ("2019-13-01", 20190000),
        ("29.12.2016", 20161229), ("1. 2. 1999", 19990201), ("29.13.2016", 20160000),
        ("bogus", 0), ("", 0),
    ],
)  # fmt: skip
def test_dates(text, date):
    assert date_of(text) == date


def test_times():
    texts = ("1800", "60.0", "1h", "30 minutes", "2小时", "25:00", "1:30:00", "", "none", "-5")
    assert [seconds_of(text) for text in texts] == [1800, 60, 3600, 1800, 7200, 1500, 5400, -1, -1, -1]


def test_a_game_becomes_one_row_of_every_array():
    games = games_of(
        "(;SZ[9]KM[5.5]RU[Japanese]RE[W+3.5]BR[3k]WR[1d]DT[2001-02]TM[600];B[aa];W[ba];B[])",
        "(;SZ[5]RU[Chinese]RE[B+R];B[cc];W[bb])",
    )
    assert games.size.tolist() == [9, 5] and games.offsets.tolist() == [0, 3, 5]
    assert games.moves.tolist() == [0, 1, 81, 12, 6]
    assert (games.komi[0], np.isnan(games.komi[1])) == (5.5, True)
    assert games.result.tolist() == [-1, 1] and games.territory.tolist() == [True, False]
    assert games.margin[0] == 3.5 and np.isnan(games.margin[1]) and games.ending.tolist() == [COUNTED, RESIGNED]
    assert (games.rank_black[0], games.rank_white[0], games.date[0], games.main_time[0]) == (-3, 1, 20010200, 600)
    assert (games.rank_black[1], games.date[1], games.main_time[1]) == (0, 0, -1)
    assert games.starts_even().all()


@pytest.mark.parametrize(
    ("text", "stones", "first", "handicap", "moves"),
    [
        ("(;SZ[5]HA[2]AB[aa][ee];W[cc])", [0, 48], 2, 2, [12]),
        ("(;SZ[5];B[aa];B[ee];W[cc];B[dd])", [0, 48], 2, 2, [12, 18]),
        ("(;SZ[5]HA[2];B[aa];W[cc])", [], 1, 2, [0, 12]),
        ("(;SZ[5]HA[7.5];B[aa];W[cc])", [], 1, 0, [0, 12]),
        ("(;SZ[5]AB[aa]AW[ee];B[cc])", [0, 49], 1, 0, [12]),
        ("(;SZ[5];W[cc])", [], 2, 0, [12]),
    ],
)
def test_beginnings(text, stones, first, handicap, moves):
    games = games_of(text)
    assert games.setup.tolist() == stones and games.moves.tolist() == moves
    assert (games.first[0], games.handicap[0]) == (first, handicap)


@pytest.mark.parametrize(
    ("text", "komi", "territory"),
    [
        ("(;KM[0]HA[0]RU[Japanese]BR[9段]WR[P9段];B[aa])", 6.5, True),
        ("(;KM[0]BR[9d]WR[9d];B[aa])", 0, False),
        ("(;KM[0]HA[2]AB[aa][bb]BR[9段]WR[9段];W[cc])", 0, False),
        ("(;KM[375]RU[Japanese];B[aa])", 7.5, False),
        ("(;KM[650]RU[Japanese];B[aa])", 6.5, True),
        ("(;KM[6.5]RU[Korean];B[aa])", 6.5, True),
        ("(;KM[6.5]RU[Of our own];B[aa])", 6.5, False),
    ],
)
def test_komi_and_scoring_as_servers_mean_them(text, komi, territory):
    games = games_of(text)
    assert (games.komi[0], games.territory[0]) == (komi, territory)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(;SZ[5])", "no moves"),
        ("(;SZ[5];B[aa];W[bb];W[cc])", "alternate at move 3"),
        ("(;SZ[5];W[aa];W[bb];B[cc])", "alternate at move 2"),
        ("(;SZ[5];B[];B[];W[cc])", "Black passes"),
        ("(;SZ[5];B[aa];W[aa])", "move 2 at aa is illegal"),
        ("(;SZ[5]" + ";B[];W[]" * 501 + ")", "1002 moves"),
        ("(;SZ[5]AB[aa]AW[ab][ba];B[cc])", "no legal position"),
    ],
)
def test_what_is_no_game_says_why(text, words):
    with pytest.raises(ValueError, match=words):
        games_of(text)


GAMES = {
    "plain": "(;SZ[9]KM[7]RE[B+R]BR[6d]WR[7d]DT[2015-06-01];B[aa];W[bb];B[cc])",
    "small": "(;SZ[5]KM[7]RE[B+R]BR[6d]WR[7d]DT[2015-06-01];B[aa];W[bb];B[cc])",
    "two": "(;SZ[9]HA[2]AB[gg][cc]KM[0]RE[W+2.5]BR[6d]WR[7d]DT[2015];W[aa];B[bb];W[cd])",
    "setup": "(;SZ[9]AB[gg]AW[cc]KM[7]RE[W+F]BR[6d]WR[7d]DT[2015-12];B[aa];W[bb];B[cd])",
    "short": "(;SZ[9]RE[W+T]BR[6d]WR[9p]DT[2016-01-01];B[aa])",
    "drawn": "(;SZ[9]KM[7]RE[Draw]BR[5k]WR[7d]DT[2014-12-31];B[aa];W[bb];B[cc])",
    "bare": "(;SZ[9];B[aa];W[bb];B[cc])",
}


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({}, ""),
        ({"sizes": (9,)}, "small"),
        ({"sizes": (5, 19)}, "plain two setup short drawn bare"),
        ({"max_handicap": 1}, "two"),
        ({"max_handicap": 2}, ""),
        ({"setups": False}, "setup"),
        ({"results": "decided"}, "drawn bare"),
        ({"results": "finished"}, "setup short drawn bare"),
        ({"results": "counted"}, "plain small setup short drawn bare"),
        ({"resigned_after": 0.05}, "plain"),
        ({"resigned_after": 0.03}, ""),
        ({"min_moves": 2}, "short"),
        ({"max_moves": 2}, "plain small two setup drawn bare"),
        ({"min_rank": 6}, "drawn bare"),
        ({"min_rank": 7}, "plain small two setup short drawn bare"),
        ({"min_rank": -5}, "bare"),
        ({"date_from": 20150000}, "drawn bare"),
        ({"date_from": 20150500}, "two drawn bare"),
        ({"date_to": 20150000}, "short bare"),
        ({"date_to": 20150600}, "setup short bare"),
        ({"komi": (5.5, 7.5)}, "two short bare"),
    ],
)
def test_each_filter_removes_its_games_and_counts_them(options, lost):
    games = games_of(*GAMES.values())
    keep, removed = Filters(**{"sizes": (), "max_handicap": 9, "setups": True, "results": "any"} | options).apply(games)
    assert [name for name, stays in zip(GAMES, keep, strict=True) if not stays] == lost.split()
    assert sum(removed.values()) == len(lost.split())


def test_a_game_removed_by_one_filter_is_not_counted_by_the_next():
    games = join([games_of(GAMES["bare"])] * 3)
    keep, removed = Filters(sizes=(9,), min_rank=1).apply(games)
    assert not keep.any() and removed["no winner"] == 3 and removed["a rank unknown or below 1d"] == 0


@pytest.mark.parametrize(
    "options",
    [{"results": "good"}, {"min_moves": 9, "max_moves": 8}, {"date_from": 20160102, "date_to": 20160101},
     {"komi": (7.5, 5.5)}, {"komi": (math.nan, 1.0)}],
)  # fmt: skip
def test_limits_that_no_game_can_meet_are_refused(options):
    with pytest.raises(ValueError, match=r"no game has|no date is|no komi is|any, decided, finished or counted"):
        Filters(**options)
    assert Filters(date_from=20160101, date_to=20160000)
