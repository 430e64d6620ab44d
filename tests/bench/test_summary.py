"""Tables and figures of a match."""

import json
import re
from dataclasses import replace

import pytest

from bench.match.folder import GameRecord
from bench.match.summary import render, summarise, tally, to_json

SETTINGS = {"size": 9, "komi": 7.5, "rules": "chinese", "time": {"main_s": 0.0}}


def record(number, winner, **values):
    return GameRecord(
        number,
        "black" if number % 2 else "white",
        {"first": "A", "second": "B"},
        [f"D{number}"],
        winner=winner,
        **values,
    )


RECORDS = [
    record(1, "first", reason="score", scores={"first": "B+1.5", "second": "B+1.5"}),
    record(2, "first", reason="resignation"),
    record(3, "second", reason="time", detail="move 9 took 12.00 s"),
    record(4, "draw", reason="score", scores={"first": "0", "second": "0"}),
    record(5, None, reason="disagreement", detail="they differ", scores={"first": "B+1", "second": "W+1"}),
]


def test_a_draw_is_half_a_win_and_a_game_without_result_none():
    figures = tally(RECORDS)
    assert (figures["games"], figures["won"], figures["lost"], figures["drawn"], figures["no_result"]) == (
        5,
        2,
        1,
        1,
        1,
    )
    assert figures["rate"] == pytest.approx(2.5 / 4)
    assert figures["rate_low"] < 2.5 / 4 < figures["rate_high"]
    assert figures["elo_low"] < figures["elo"] < figures["elo_high"]


def test_a_repeated_game_counts_once():
    """Deterministic players repeat their games: 20 games of which two differ give the interval of two games."""
    records = [replace(RECORDS[k % 2], game=k + 1) for k in range(20)] + [replace(RECORDS[2], game=21)]
    figures = tally(records)
    assert (figures["games"], figures["different"]) == (21, 3)
    assert {name: figures[name] for name in ("won", "lost", "rate_low", "elo_high")} == {
        name: tally(RECORDS[:3])[name] for name in ("won", "lost", "rate_low", "elo_high")
    }
    lines = render(summarise(records, SETTINGS)).splitlines()
    assert lines[2].split()[:4] == ["all", "3", "2", "1"]
    assert "21 games, 3 different: a repeated game counts once" in lines
    unplayed = [replace(RECORDS[2], moves=[])] * 3
    assert tally(unplayed)["lost"] == 3, "each engine that did not start has lost"
    assert "different:" not in render(summarise(RECORDS, SETTINGS))


def test_colours_and_reasons_are_counted():
    summary = summarise(RECORDS, SETTINGS)
    assert (summary["as_black"]["games"], summary["as_white"]["games"]) == (3, 2)
    assert summary["reasons"] == {"score": 2, "resignation": 1, "time": 1, "disagreement": 1}
    assert (summary["scores_compared"], summary["scores_alike"]) == (3, 2)
    assert summary["different_games"] == 5
    same = replace(RECORDS[0], first_color="white")
    assert summarise([RECORDS[0], same, RECORDS[0]], SETTINGS)["different_games"] == 2, "who is who counts"
    assert [(fault["game"], fault["by"]) for fault in summary["faults"]] == [(3, "first"), (5, None)]


def test_the_table_says_it_all():
    lines = render(summarise(RECORDS, SETTINGS)).splitlines()
    assert lines[0] == "A against B: 9x9, komi 7.5, chinese rules"
    assert lines[2].split()[:7] == ["all", "5", "2", "1", "1", "1", "62.5%"]
    assert "final_score agreed in 2 of 3 games" in lines
    assert lines[-2:] == ["game 3, first: time: move 9 took 12.00 s", "game 5: disagreement: they differ"]
    assert all(len(line) <= 100 for line in lines)


def test_under_a_clock_the_worst_overstepping_is_told():
    records = [record(1, "first", overrun_s={"first": 0.0, "second": 0.25}), record(2, "first")]
    line = "clocks overstepped by at most: first 0.00 s, second 0.25 s"
    assert line in render(summarise(records, {**SETTINGS, "time": {"main_s": 10.0}})).splitlines()
    assert line not in render(summarise(records, SETTINGS)).splitlines()


def test_times_that_nobody_measured_are_left_out():
    summary = summarise([record(1, "first"), record(2, "second")], SETTINGS)
    assert summary["slowest_s"] == summary["spent_s"] == summary["overrun_s"] == {"first": None, "second": None}
    assert not re.search(r"\d s\b", render(summary))
    assert summarise([], SETTINGS)["spent_s"] == {"first": 0.0, "second": 0.0}
    timed = record(3, "first", slowest_s={"first": 1.5, "second": 0.0}, spent_s={"first": 20.0, "second": 0.0})
    lines = render(summarise([record(1, "first"), timed], SETTINGS)).splitlines()
    assert "slowest move: first 1.50 s, second 0.00 s" in lines
    assert "time in all: first 20.0 s, second 0.0 s" in lines


def test_nothing_played():
    assert render(summarise([], SETTINGS)) == "no game was finished"


def test_json_has_no_infinities():
    figures = json.loads(to_json(summarise([record(1, "first")], SETTINGS)))
    assert figures["all"]["elo"] is None
    assert figures["all"]["elo_low"] < 0
