"""What is written of a report, word for word."""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from engine.go.geometry import PASS, point_at
from engine.insight.analyses import Analysis
from engine.insight.raw_outputs import NOTHING
from engine.search.report import MoveReport, Report
from gtp.info import LIKELIEST, ReportOptions, caption, cgos_line, kata_line, lz_line, lz_summary

D4, C3 = point_at(5, 3, 9), point_at(6, 2, 9)
OWNED = np.linspace(-1.0, 1.0, 81, dtype=np.float32)


def report_of(*moves: MoveReport, score: float | None = 1.25, owners: np.ndarray | None = None) -> Report:
    return Report(130, 120, 2.0, 0.12345678, score, list(moves), owners, 150, 110)


def found(*moves: MoveReport, **known: Any) -> Analysis:
    return Analysis(report_of(*moves, **known), NOTHING)


FIRST = MoveReport(D4, 100, 0.21851812, 0.25, 0.1, 1.5, [D4, PASS, C3], [100, 40, 3])
SECOND = MoveReport(PASS, 20, 0.00001234, -0.5, -2.7, -3.0, [PASS], [20])


def test_kata_line():
    assert kata_line(found(FIRST, SECOND), 9, True, ReportOptions()) == (
        "info move D4 visits 100 edgeVisits 100 utility 0.25 winrate 0.625 scoreMean 1.5 scoreLead 1.5"
        " scoreSelfplay 1.5 prior 0.218518 lcb 0.55 utilityLcb 0.1 weight 100 order 0 pv D4 pass C3"
        " info move pass visits 20 edgeVisits 20 utility -0.5 winrate 0.25 scoreMean -3 scoreLead -3"
        " scoreSelfplay -3 prior 1.234e-05 lcb -0.85 utilityLcb -2.7 weight 20 order 1 pv pass"
    )


def test_lz_line():
    assert lz_line(found(FIRST, SECOND), 9, True, ReportOptions(pv_visits=True)) == (
        "info move D4 visits 100 winrate 6250 prior 2185 lcb 5500 order 0 pv D4 pass C3 pvVisits 100 40 3"
        " info move pass visits 20 winrate 2500 prior 0 lcb 0 order 1 pv pass pvVisits 20"
    )


def test_variations_tell_their_visits_behind_them():
    line = kata_line(found(FIRST), 9, True, ReportOptions(pv_visits=True, pv_edge_visits=True))
    assert line.endswith(" pv D4 pass C3 pvVisits 100 40 3 pvEdgeVisits 100 40 3")


def test_root_and_owners_follow_the_moves():
    asked = ReportOptions(max_moves=1, root=True, ownership=True)
    line = kata_line(found(FIRST, SECOND, owners=OWNED), 9, True, asked)
    moves, _, owners = line.partition(" ownership ")
    assert moves.endswith(
        "pv D4 pass C3 rootInfo visits 130 utility 0.123457 winrate 0.561728 scoreMean 1.25 scoreStdev 12.7792"
        " scoreLead 1.25 scoreSelfplay 1.25 weight 130 rawStWrError -1 rawStScoreError -1 rawVarTimeLeft -1"
    )
    assert owners.split()[:2] == ["-1", "-0.975"] and len(owners.split()) == 81
    white = kata_line(found(FIRST, owners=OWNED), 9, False, ReportOptions(ownership=True))
    assert white.split()[-81] == "1", "White's view"


def test_the_deviation_of_the_score_follows_from_who_owns_what_in_the_search_or_else_in_the_network():
    """q5Go shows a score only where its deviation is told too."""
    for analysis in (
        found(FIRST, owners=OWNED),
        Analysis(report_of(FIRST), NOTHING._replace(ownership_black=OWNED)),
        Analysis(report_of(FIRST, owners=OWNED), NOTHING._replace(ownership_black=np.ones(81))),
    ):
        assert " scoreMean 1.5 scoreStdev 12.7792 scoreLead 1.5 " in kata_line(analysis, 9, True, ReportOptions())
    assert "scoreStdev" not in kata_line(found(FIRST), 9, True, ReportOptions()), "nothing says it"
    without_score = replace(FIRST, score_stm=None)
    assert "score" not in kata_line(found(without_score, owners=OWNED), 9, True, ReportOptions())


def test_no_result_is_told_where_it_is_asked_for():
    assert " noResultValue 0 prior " in kata_line(found(FIRST), 9, True, ReportOptions(no_result=True))


def test_cgos_gets_the_movers_view_in_json():
    owners = np.array([-1.0, -0.01, 0.0, 0.25, 1.0])
    said = json.loads(cgos_line(found(FIRST, SECOND, owners=owners), 9, False, ReportOptions(max_moves=1)))
    assert said == {
        "winrate": 0.5617, "visits": 130, "score": 1.25, "ownership": "+ffXA",
        "moves": [{"move": "D4", "winrate": 0.625, "visits": 100, "score": 1.5, "prior": 0.2185, "pv": "D4 pass C3"}],
    }  # fmt: skip
    black = json.loads(cgos_line(found(replace(FIRST, score_stm=None), owners=owners), 9, True, ReportOptions()))
    assert black["ownership"] == "Affn+" and "score" not in black["moves"][0]
    assert "ownership" not in json.loads(cgos_line(found(FIRST), 9, True, ReportOptions()))


def test_owners_of_moves_stand_behind_their_variations_and_deviations_at_the_end():
    owners, spread = np.array([0.5, -1.0]), np.array([0.25, 0.0])
    move = replace(FIRST, ownership_black=owners, ownership_stdev=spread)
    report = Analysis(replace(report_of(move), ownership_black=owners, ownership_stdev=spread), NOTHING)
    every = ReportOptions(
        ownership=True, ownership_stdev=True, moves_ownership=True, moves_ownership_stdev=True, max_moves=1
    )
    assert kata_line(report, 9, False, every).partition(" pv ")[2] == (
        "D4 pass C3 movesOwnership -0.5 1 movesOwnershipStdev 0.25 0 ownership -0.5 1 ownershipStdev 0.25 0"
    )
    assert "wnership" not in kata_line(report, 9, False, ReportOptions())
    unknown = found(FIRST, owners=owners)
    assert kata_line(unknown, 9, True, every).partition(" pv ")[2] == "D4 pass C3 ownership 0.5 -1"


def test_leads_are_left_out_where_nothing_estimates_them():
    first = MoveReport(D4, 100, 0.2, 0.25, 0.1, None, [D4], [100])
    line = kata_line(found(first, score=None), 9, True, ReportOptions(root=True))
    assert "score" not in line and "Score" not in line.replace("rawStScoreError", "")


def test_without_a_move_nothing_is_said_at_all():
    """As KataGo: clients know a report by its first word."""
    for line in (kata_line, lz_line, cgos_line):
        assert line(found(), 9, True, ReportOptions(root=True, ownership=True)) == ""


def test_before_any_visit_the_likeliest_moves_are_shown():
    moves = [MoveReport(point_at(0, i % 9, 9), 0, 0.1, 0.1, -1.0, 0.0, [D4], [0]) for i in range(81)]
    assert lz_line(found(*moves), 9, True, ReportOptions()).count("info move") == LIKELIEST
    assert lz_line(found(*moves), 9, True, ReportOptions(min_moves=30)).count("info move") == 30
    assert lz_line(found(*moves), 9, True, ReportOptions(min_moves=30, max_moves=2)).count("info move") == 2


def test_captions_speak_of_the_side_to_move():
    assert caption(report_of(FIRST), True) == "Black to move: win rate 56.2%, lead +1.2, 130 visits"
    assert caption(report_of(FIRST, score=None), False) == "White to move: win rate 56.2%, 130 visits"


def test_summary():
    assert lz_summary(report_of(FIRST, SECOND), 9).split("\n") == [
        "  D4 ->     100 (V: 62.50%) (LCB: 55.00%) (N: 21.85%) PV: D4 pass C3",
        "pass ->      20 (V: 25.00%) (LCB: 0.00%) (N: 0.00%) PV: pass",
        "",
        "130 visits, 150 nodes, 120 playouts, 60 n/s",
    ]
