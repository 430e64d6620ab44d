"""The JSON engine with a network made of hashes: answers, their keys and views, queue, ends and reports."""

import random
from dataclasses import replace

import pytest

from engine.go.game import Game
from engine.insight import analyses
from engine.insight.analyses import positions_at_once
from engine.nets import notices
from engine.nets.fakes import HashNetwork
from engine.search import tuning
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from gtp.json.engine import ACTIONS
from tests.gtp.json_talk import ANSWER_S, QUERY, Talk

_MOVE_KEYS = """
edgeVisits edgeWeight lcb move order playSelectionValue prior pv scoreLead scoreMean scoreSelfplay scoreStdev
 utility utilityLcb visits weight winrate
"""
_ROOT_KEYS = """
currentPlayer rawLead rawNoResultProb rawScoreSelfplay rawScoreSelfplayStdev rawStScoreError rawStWrError
 rawVarTimeLeft rawWinrate scoreLead scoreSelfplay scoreStdev utility visits weight winrate
"""
MOVE_KEYS, ROOT_KEYS = _MOVE_KEYS.split(), _ROOT_KEYS.split()
FLIPPED = ("winrate", "scoreLead", "utility", "rawWinrate", "rawLead")


@pytest.fixture
def talk():
    made = Talk()
    yield made
    made.gate.opened.set()
    made.engine.close()
    made.server.close()


def test_an_answer_has_katagos_keys(talk):
    found = talk.ask()
    assert sorted(found) == ["id", "isDuringSearch", "moveInfos", "rootInfo", "turnNumber"]
    assert (found["id"], found["isDuringSearch"], found["turnNumber"]) == ("q", False, 1)
    assert all(sorted(move) == MOVE_KEYS for move in found["moveInfos"])
    assert sorted(found["rootInfo"]) == ROOT_KEYS
    assert [move["order"] for move in found["moveInfos"]] == list(range(len(found["moveInfos"])))
    assert found["rootInfo"]["visits"] == 30 == 1 + sum(move["visits"] for move in found["moveInfos"])
    assert found["rootInfo"]["currentPlayer"] == "W"
    values = [move["playSelectionValue"] for move in found["moveInfos"]]
    assert values == sorted(values, reverse=True)


def test_more_is_answered_where_it_is_asked_for(talk):
    wanted = ("Ownership", "OwnershipStdev", "MovesOwnership", "MovesOwnershipStdev", "Policy", "PVVisits")
    every = {f"include{name}": True for name in (*wanted, "NoResultValue")}
    found = talk.ask(**every)
    assert {"ownership", "ownershipStdev", "policy"} < set(found)
    more = {"ownership", "ownershipStdev", "pvVisits", "pvEdgeVisits", "noResultValue"}
    assert all(set(move) == set(MOVE_KEYS) | more for move in found["moveInfos"])
    assert len(found["ownership"]) == 25 and len(found["policy"]) == 26
    first, second, *_ = found["moveInfos"]
    assert first["ownership"] != second["ownership"] != found["ownership"], "each is a mean of its own"
    assert max(found["ownershipStdev"]) > 0.0 and first["ownershipStdev"] != found["ownershipStdev"]
    assert found["policy"][12] == -1.0, "C3 is taken"
    assert sum(value for value in found["policy"] if value >= 0) == pytest.approx(1.0)
    assert [len(move["pv"]) for move in found["moveInfos"]] == [len(move["pvVisits"]) for move in found["moveInfos"]]


def test_one_visit_is_the_root_alone(talk):
    found = talk.ask(maxVisits=1)
    assert found["moveInfos"] == [] and found["rootInfo"]["visits"] == 1


def test_variations_are_cut_after_the_first_move_and_so_many(talk):
    found = talk.ask(maxVisits=100, analysisPVLen=1)
    assert max(len(move["pv"]) for move in found["moveInfos"]) == 2


@pytest.mark.parametrize(("hidden", "like_stones"), [("true", True), ("false", False)])
def test_the_moves_before_a_position_are_hidden_from_katagos_networks(hidden, like_stones):
    talk = Talk(HashNetwork("katago-v7"))
    asked = {"maxVisits": 9, "overrideSettings": {"ignorePreRootHistory": hidden}}
    moved = talk.ask(**asked)
    laid = talk.ask(moves=[], initialStones=[["b", "C3"]], initialPlayer="w", **asked)
    assert (moved["rootInfo"]["rawWinrate"] == laid["rootInfo"]["rawWinrate"]) is like_stones
    talk.all()
    talk.server.close()


@pytest.mark.parametrize("moves", [[], [["b", "C3"]]], ids=["black", "white"])
def test_numbers_are_those_of_the_side_that_is_asked_for(talk, moves):
    views = {
        view: talk.ask(moves=moves, includeOwnership=True, overrideSettings={"reportAnalysisWinratesAs": view})
        for view in ("BLACK", "WHITE", "SIDETOMOVE")
    }
    assert views["SIDETOMOVE"] == views["WHITE" if moves else "BLACK"]
    black, white = views["BLACK"], views["WHITE"]
    for key in FLIPPED:
        sum_of_both = 1.0 if "inrate" in key else 0.0
        assert black["rootInfo"][key] + white["rootInfo"][key] == pytest.approx(sum_of_both, abs=1e-8)
    for one, other in zip(black["moveInfos"], white["moveInfos"], strict=True):
        assert one["lcb"] + other["lcb"] == pytest.approx(1.0), "a bound below for one is one above for the other"
        assert (one["scoreStdev"], one["prior"], one["weight"]) == (
            other["scoreStdev"], other["prior"], other["weight"],
        )  # fmt: skip
    assert [a + b for a, b in zip(black["ownership"], white["ownership"], strict=True)] == [0.0] * 25
    mover = white if moves else black
    assert all(move["lcb"] <= move["winrate"] for move in mover["moveInfos"])


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("nonsense", "could not parse input line as json request: nonsense"),
        ("[1, 2]", "Request line was valid json but was not an object, ignoring: [1,2]"),
        ('{"moves":[]}', 'Request must have a string "id" field'),
        ('{"id":3}', 'Request must have a string "id" field'),
        ('{"id":"a","action":"dance"}', ACTIONS),
    ],
)
def test_lines_without_an_id_are_answered_without_one(talk, line, error):
    talk.engine.take("")
    talk.engine.take("  \n")
    talk.engine.take(line)
    found = talk.lines(1)[0]
    assert list(found) == ["error"] and found["error"].endswith(error)


def test_a_wrong_field_is_named(talk):
    talk.send(**QUERY | {"komi": "x"})
    assert talk.lines(1) == [
        {"error": "Must be a integer or half-integer from -400.0 to 400.0", "field": "komi", "id": "q"}
    ]
    assert talk.all() == talk.lines(1), "nothing was analysed"


def test_no_turn_is_analysed_where_a_move_is_illegal(talk):
    talk.send(**QUERY | {"moves": [["b", "C3"], ["w", "C3"]], "analyzeTurns": [0, 1, 2]})
    assert talk.all() == [{"error": "Illegal move 1: C3", "field": "moves", "id": "q"}]


def test_warnings_come_first_and_the_query_goes_on(talk):
    talk.send(**QUERY | {"boardxsize": 3, "overrideSettings": {"typo": 1}})
    first, second, third = talk.all()
    assert first == {"field": "overrideSettings", "id": "q", "warning": "Unknown config params: typo"}
    assert second["field"] == "boardxsize" and second["warning"].startswith("Unexpected or unused field, do you have")
    assert third["rootInfo"]["visits"] == 30


def test_a_line_that_cannot_be_acted_upon_is_answered_and_the_next_one_too(talk):
    depths = range(900, 1000)
    for depth in depths:
        nested = "[" * depth + "]" * depth
        talk.engine.take(f'{{"id":"deep","action":"query_version","x":{nested}}}')
        talk.engine.take(nested)
    found = talk.lines(2 * len(depths))
    assert all("version" in line or "error" in line for line in found)
    inner = [line for line in found if line.get("error", "").startswith("internal error: RecursionError: ")]
    assert any(line.get("id") == "deep" for line in inner)
    assert talk.ask()["rootInfo"]["visits"] == 30


def test_actions_give_the_request_back(talk):
    talk.send(id="v", action="query_version", more=[1])
    talk.send(id="m", action="query_models")
    talk.send(id="c", action="clear_cache")
    talk.send(id="t", action="terminate", terminateId="unknown")
    talk.send(id="a", action="terminate_all", turnNumbers=[3])
    talk.send(id="x", action="terminate")
    talk.send(id="y", action="terminate_all", turnNumbers="x")
    version, models, cache, end, all_, wrong, turns = talk.lines(7)
    assert version["version"].count(".") == 2 and version["more"] == [1] and version["git_hash"].startswith("keima-")
    assert models == {"action": "query_models", "id": "m", "models": [{"name": "hash"}]}
    assert cache == {"action": "clear_cache", "id": "c"}
    assert end == {"action": "terminate", "id": "t", "terminateId": "unknown"}
    assert all_["turnNumbers"] == [3]
    assert (wrong["field"], turns["field"]) == ("terminateId", "turnNumbers")


def test_the_cache_may_be_cleared_in_the_middle_of_searches(talk):
    talk.send(**QUERY | {"maxVisits": 10**9, "reportDuringSearchEvery": 0.01, "analyzeTurns": [0, 1]})
    for count in range(3, 30, 3):
        talk.lines(count)
        talk.send(id="c", action="clear_cache")
    talk.send(id="t", action="terminate_all")
    finals = [line for line in talk.all() if line.get("isDuringSearch") is False]
    assert [line["rootInfo"]["visits"] > 1 for line in finals] == [True, True]


def test_what_is_terminated_in_the_queue_has_no_results(talk):
    talk.ask()
    talk.hold()
    for name in "abcd":
        talk.send(**QUERY | {"id": name, "moves": [["b", "A1"]], "maxVisits": 1000})
    assert talk.gate.asked.wait(ANSWER_S)
    talk.send(id="t", action="terminate", terminateId="d")
    assert talk.lines(3)[1:] == [
        {"id": "d", "isDuringSearch": False, "noResults": True, "turnNumber": 1},
        {"action": "terminate", "id": "t", "terminateId": "d"},
    ]
    talk.send(id="t", action="terminate", terminateId="d")
    assert talk.lines(4)[3]["id"] == "t", "once is enough"


def test_a_search_that_is_terminated_answers_as_it_stands(talk):
    talk.send(**QUERY | {"maxVisits": 10**9, "reportDuringSearchEvery": 0.01, "analyzeTurns": [0, 1]})
    count = 2
    while {line["turnNumber"] for line in talk.lines(count)} != {0, 1}:
        count += 1
    before = {line["turnNumber"]: line["rootInfo"]["visits"] for line in talk.lines(count)}
    talk.send(id="t", action="terminate", terminateId="q", turnNumbers=[0])
    talk.send(id="u", action="terminate_all")
    found = talk.all()
    finals = {line["turnNumber"]: line for line in found if line.get("isDuringSearch") is False}
    assert finals.keys() == {0, 1}
    assert all(line["rootInfo"]["visits"] >= before[turn] > 0 for turn, line in finals.items())
    assert {"t", "u"} < {line["id"] for line in found}


def test_reports_come_during_the_search(talk):
    talk.send(**QUERY | {"maxVisits": 10**9, "reportDuringSearchEvery": 0.01, "includePolicy": True})
    first, second, *_ = talk.lines(4)
    assert first["isDuringSearch"] and first["moveInfos"] and len(first["policy"]) == 26
    assert second["rootInfo"]["visits"] >= first["rootInfo"]["visits"]
    talk.send(id="t", action="terminate_all")
    last = [line for line in talk.all() if line["id"] == "q"]
    assert [line["isDuringSearch"] for line in last] == [True] * (len(last) - 1) + [False]


def test_a_first_report_alone_comes_once(talk):
    talk.send(**QUERY | {"maxVisits": 10**9, "firstReportDuringSearchAfter": 0.01})
    talk.lines(1)
    talk.send(id="t", action="terminate_all")
    assert [line.get("isDuringSearch") for line in talk.all() if line["id"] == "q"] == [True, False]


def test_the_more_urgent_is_first_and_the_older_among_equals():
    talk = Talk(at_once=1)
    talk.ask()
    talk.hold()
    talk.send(**QUERY | {"id": "running", "moves": [["b", "A1"]]})
    assert talk.gate.asked.wait(ANSWER_S)
    talk.send(**QUERY | {"id": "low", "priority": -5})
    talk.send(**QUERY | {"id": "old", "analyzeTurns": [1, 0], "priorities": [3, 3]})
    talk.send(**QUERY | {"id": "new", "priority": 3})
    talk.send(**QUERY | {"id": "high", "priority": 2**61})
    talk.gate.opened.set()
    found = [(line["id"], line["turnNumber"]) for line in talk.all()[1:]]
    assert found == [("running", 1), ("high", 1), ("old", 0), ("old", 1), ("new", 1), ("low", 1)]
    talk.server.close()


def test_moves_may_be_left_out(talk):
    allowed = [{"player": "W", "moves": ["A1", "B2"], "untilDepth": 1}]
    found = talk.ask(allowMoves=allowed, maxVisits=100, includePolicy=True)
    assert {move["move"] for move in found["moveInfos"]} == {"A1", "B2"}
    assert min(value for index, value in enumerate(found["policy"]) if index != 12) > 0.0
    avoided = [{"player": "w", "moves": ["A1", "pass"], "untilDepth": 1}]
    assert not {"A1", "pass"} & {move["move"] for move in talk.ask(avoidMoves=avoided)["moveInfos"]}


def test_each_turn_is_searched_from_an_empty_tree(talk):
    first = talk.ask()
    assert talk.ask(id="again")["moveInfos"] == first["moveInfos"]


def test_all_that_waits_is_answered_at_the_end_of_input(talk):
    talk.send(**QUERY | {"moves": [["b", "C3"], ["w", "C4"], ["b", "B2"]], "analyzeTurns": [3, 1, 2, 0]})
    assert sorted(line["turnNumber"] for line in talk.all()) == [0, 1, 2, 3]


def test_nothing_is_said_after_a_quick_end(talk):
    talk.ask()
    talk.hold()
    talk.send(**QUERY | {"analyzeTurns": [0, 1]})
    talk.gate.opened.set()
    talk.engine.close()
    assert len(talk.lines(1)) == 1


def test_boards_that_the_network_does_not_play_are_analysed_without_it():
    talk = Talk(HashNetwork("keima-1", min_size=7))
    found = talk.ask(includeOwnership=True, includePolicy=True)
    assert found["rootInfo"]["visits"] == 30 and talk.server.evaluations == 0
    assert len(found["ownership"]) == 25 and found["policy"][12] == -1.0 < max(found["policy"])
    talk.engine.close()
    talk.server.close()


def test_a_network_that_fails_is_an_error_of_the_query(talk):
    talk.ask()
    talk.gate.broken = True
    talk.send(**QUERY | {"id": "bad", "moves": []})
    found = talk.lines(2)[1]
    assert found["id"] == "bad" and "out of order" in found["error"]
    talk.gate.broken = False
    assert talk.ask(id="good", moves=[["b", "A1"]])["id"] == "good"


def test_a_fault_of_ours_leaves_its_trace_on_standard_error(talk, monkeypatch, capsys):
    monkeypatch.setattr("engine.insight.analyses._for_one", lambda *_: [][0])
    talk.send(**QUERY)
    assert talk.lines(1)[0]["error"].startswith("IndexError: ")
    assert "Traceback" in capsys.readouterr().err


def test_a_network_for_one_komi_says_so_of_games_with_another(capsys):
    talk = Talk(HashNetwork("leela-18"))
    talk.ask(komi=7.5)
    assert "komi" not in capsys.readouterr().err
    talk.ask(komi=0.5)
    assert "knows komi 7.5 alone: at 0.5 its win rates are those of another game" in capsys.readouterr().err
    talk.engine.close()
    talk.server.close()


def test_visits_and_playouts_both_limit_a_search(talk):
    for visits, playouts, found in ((30, 10, 10), (10, 30, 10)):
        asked = {"maxVisits": visits, "overrideSettings": {"maxPlayouts": playouts}}
        assert talk.ask(**asked)["rootInfo"]["visits"] == found


def test_searches_that_end_for_want_of_memory_say_so(monkeypatch, capsys):
    notices.say.cache_clear()
    monkeypatch.setattr(tuning, "CACHE_SHARE", 0.98)
    one = Talk()
    try:
        found = one.ask(boardXSize=19, boardYSize=19, maxVisits=50_000)
    finally:
        one.engine.close()
        one.server.close()
    assert 0 < found["rootInfo"]["visits"] < 10_000
    assert "searches end early, for their share of --memory is full" in capsys.readouterr().err


def test_trees_that_grow_side_by_side_take_no_more_than_there_is():
    rng = random.Random(1)
    for _ in range(300):
        at_once, whole = rng.randint(1, 20), rng.randint(10_000, 100_000)
        taken: list[int] = []
        for _ in range(40):
            if len(taken) == at_once or (taken and rng.random() < 0.3):
                taken.pop(rng.randrange(len(taken)))
            else:
                taken.append(0)
            parts = analyses.shares(taken, whole, at_once)
            assert sum(parts) <= whole
            assert all(part >= max(one, whole // (2 * at_once)) for part, one in zip(parts, taken, strict=True))
            taken = [rng.choice((one, rng.randint(one, part), part)) for one, part in zip(taken, parts, strict=True)]
    assert analyses.shares([0], 1000, 1) == [1000] and analyses.shares([0, 0], 1000, 2) == [500, 500]
    assert analyses.shares([700, 0], 1000, 2) == [700, 300]


def test_a_search_is_held_to_its_part_from_then_on(talk):
    first = Search(talk.parts.options, talk.server, talk.parts.encoder)
    first.set_position(Game(19).position)
    first.limit_memory(1 << 20)
    report = first.run(SearchLimits(visits=50_000))
    assert first.is_full and first.memory_bytes <= 1 << 20 and report.visits < 5_000
    first.limit_memory(2 << 20)
    assert first.run(SearchLimits(visits=50_000)).visits > report.visits
    assert first.memory_bytes <= 2 << 20
    first.close()


def test_each_search_has_a_seed_of_its_own_where_none_is_given(talk, monkeypatch):
    seeds, search = [], analyses.Search
    monkeypatch.setattr(analyses, "Search", lambda options, *rest: seeds.append(options.seed) or search(options, *rest))
    for seed in (0, 7):
        made = analyses.Analyses(talk.parts._replace(options=replace(talk.parts.options, seed=seed)), talk.server, 1)
        made.warm_up(5, 3), made.warm_up(5, 3)
        made.close()
    assert 0 not in seeds and seeds[0] != seeds[1] and seeds[2:] == [7, 7]


def test_no_more_positions_are_searched_at_once_than_memory_has_room_for(talk, capsys):
    notices.say.cache_clear()
    parts = talk.parts
    assert (positions_at_once(parts), positions_at_once(parts, 3)) == (4, 3)
    assert not capsys.readouterr().err
    assert positions_at_once(parts, 9) == 4
    assert "4 positions are searched at once, not 9: --memory 64 allows no more" in capsys.readouterr().err
