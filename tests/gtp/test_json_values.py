"""What of a query is refused, in which words and in which order; and what is taken."""

import json

import pytest

from engine.config import SearchOptions
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, from_vertex, point_at
from engine.go.position import META_N_MOVES, META_TO_MOVE
from engine.go.rules import rules_named
from gtp.json.query import KOMI, NO_RULES, RESTRICTIONS, SIZES, SQUARE, read_query
from gtp.json.settings import LEAST_SECONDS, Settings, override, read_config, read_pairs, unknown
from gtp.json.values import VERTEX_PAIRS, FieldError, parse_line, parse_rules, to_line, vertex

GOOD = {"id": "q", "moves": [["b", "C3"], ["w", "D4"]], "rules": "tromp-taylor", "boardXSize": 9, "boardYSize": 9}
DEFAULTS = Settings(SearchOptions())
PLAYER = 'Must be "b" or "w"'
COUNT = "Must be an integer from 1 to 2^50"
AVOID = {"player": "b", "moves": ["C3"], "untilDepth": 1}


def read(warnings=None, **changes):
    """The query of these fields; those that are None are left out."""
    values = {key: value for key, value in (GOOD | changes).items() if value is not None}
    told = [] if warnings is None else warnings
    return read_query(values, DEFAULTS, lambda field, text: told.append((field, text)), lambda settings: None)


REFUSED = [
    ({"boardXSize": None}, "boardXSize", SIZES),
    ({"boardYSize": None}, "boardYSize", SIZES),
    ({"boardXSize": 1}, "boardXSize", SIZES),
    ({"boardXSize": 29, "boardYSize": 29}, "boardXSize", SIZES),
    ({"boardXSize": 9.0}, "boardXSize", SIZES),
    ({"boardXSize": True}, "boardXSize", SIZES),
    ({"boardYSize": 13}, "boardYSize", SQUARE),
    ({"moves": None}, "moves", "Must specify an array of [player,location] pairs"),
    ({"moves": "C3"}, "moves", VERTEX_PAIRS),
    ({"moves": [["b"]]}, "moves", VERTEX_PAIRS),
    ({"moves": [["b", 3]]}, "moves", VERTEX_PAIRS),
    ({"moves": [["x", "C3"]]}, "moves", "Could not parse player: x"),
    ({"moves": [["b", "K3"]]}, "moves", "Could not parse board location: K3"),
    ({"moves": [["b", "C10"]]}, "moves", "Could not parse board location: C10"),
    ({"moves": [["b", "I3"]]}, "moves", "Could not parse board location: I3"),
    ({"moves": [["b", "(9,0)"]]}, "moves", "Could not parse board location: (9,0)"),
    ({"initialStones": [["b", "pass"]]}, "initialStones", "Could not parse board location: pass"),
    ({"initialPlayer": "green"}, "initialPlayer", PLAYER),
    ({"analyzeTurns": 1}, "analyzeTurns", "Must specify an array of integers indicating turns to analyze"),
    ({"analyzeTurns": [3]}, "analyzeTurns", "Invalid turn number: 3"),
    ({"analyzeTurns": [-1]}, "analyzeTurns", "Invalid turn number: -1"),
    ({"analyzeTurns": [10**400]}, "analyzeTurns", "Invalid turn number: 10000000000000000000"),
    ({"moves": [["b", "pass"], ["w", "pass"]] * 1500, "analyzeTurns": [*range(1667)] * 2}, "analyzeTurns",
     "1667 turns of a game of 3000 moves, at most 1666 at once"),
    ({"priorities": [10**400], "analyzeTurns": [0]}, "priorities", f"Invalid priority: {10**400}"),
    ({"priorities": [1]}, "priorities", "Can only specify when also specifying analyzeTurns"),
    ({"priorities": [1], "analyzeTurns": [0, 1]}, "priorities", "Must be of matching length to analyzeTurns"),
    ({"priorities": [1 << 62], "analyzeTurns": [0]}, "priorities", f"Invalid priority: {1 << 62}"),
    ({"priorities": "x"}, "priorities", "Must specify an array of integers indicating priorities"),
    ({"rules": None}, "rules", NO_RULES),
    ({"rules": 3}, "rules", NO_RULES),
    ({"rules": "nonsense"}, "rules", "Could not parse rules: nonsense"),
    ({"rules": {"ko": "NEVER"}}, "rules", 'Could not parse rules: {"ko":"NEVER"}'),
    ({"komi": "7"}, "komi", KOMI),
    ({"komi": 7.3}, "komi", KOMI),
    ({"komi": 400.5}, "komi", KOMI),
    ({"whiteHandicapBonus": 0}, "whiteHandicapBonus", "Must be a string"),
    ({"overrideSettings": []}, "overrideSettings", "Must be an object"),
    ({"maxVisits": 0}, "maxVisits", COUNT),
    ({"maxVisits": 2.0}, "maxVisits", COUNT),
    ({"analysisPVLen": 1001}, "analysisPVLen", "Must be an integer from 1 to 1000"),
    ({"rootFpuReductionMax": 2.1}, "rootFpuReductionMax", "Must be a number from 0.0 to 2.0"),
    ({"rootPolicyTemperature": 0}, "rootPolicyTemperature", "Must be a number from 0.01 to 100.0"),
    ({"includeOwnership": 1}, "includeOwnership", "Must be a boolean"),
    ({"includePVVisits": "true"}, "includePVVisits", "Must be a boolean"),
    ({"reportDuringSearchEvery": 0}, "reportDuringSearchEvery", "Must be number of seconds from 0.001 to 1000000.0"),
    ({"priority": 1, "priorities": [1], "analyzeTurns": [0]}, "priority",
     "Cannot specify both priority and priorities"),
    ({"priority": 1 << 62}, "priority", "Must be a number between -2^62 and 2^62"),
    ({"allowMoves": [], "avoidMoves": []}, "allowMoves", "Cannot specify both allowMoves and avoidMoves"),
    ({"avoidMoves": {}}, "avoidMoves", RESTRICTIONS),
    ({"avoidMoves": [{"moves": ["C3"], "untilDepth": 1}]}, "avoidMoves", RESTRICTIONS),
    ({"avoidMoves": [AVOID | {"untilDepth": 0}]}, "untilDepth", "Must be a positive integer"),
    ({"avoidMoves": [AVOID | {"player": "x"}]}, "player", PLAYER),
    ({"avoidMoves": [AVOID | {"moves": "C3"}]}, "moves", "Must be an array of GTP board vertices"),
    ({"allowMoves": [AVOID] * 3}, "allowMoves", "Currently allowMoves only allows at most one entry per player"),
    ({"allowMoves": [AVOID] * 2}, "allowMoves", "Cannot specify allowMoves more than once for the same player"),
    ({"moves": [["b", "C3"], ["w", "C3"]]}, "moves", "Illegal move 1: C3"),
    ({"moves": [["w", "A2"], ["w", "B1"], ["b", "A1"]]}, "moves", "Illegal move 2: A1"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "field", "text"), REFUSED, ids=[f"{one[1]}-{n}" for n, one in enumerate(REFUSED)])
def test_a_wrong_field_is_refused_in_katagos_words(changes, field, text):
    with pytest.raises(FieldError) as caught:
        read(**changes)
    assert (caught.value.field, str(caught.value)) == (field, text)


IN_ORDER = [
    {"boardXSize": 0}, {"initialStones": 0}, {"moves": 0}, {"initialPlayer": 0}, {"analyzeTurns": 0},
    {"priorities": 0}, {"rules": 0}, {"komi": "x"}, {"whiteHandicapBonus": 0}, {"overrideSettings": 0},
    {"maxVisits": 0}, {"analysisPVLen": 0}, {"rootFpuReductionMax": -1}, {"rootPolicyTemperature": 0},
    {"includeMovesOwnership": 0}, {"includeMovesOwnershipStdev": 0}, {"includeOwnership": 0},
    {"includeOwnershipStdev": 0}, {"includePolicy": 0}, {"includePVVisits": 0}, {"includeNoResultValue": 0},
    {"reportDuringSearchEvery": 0}, {"firstReportDuringSearchAfter": 0}, {"priority": "x"}, {"avoidMoves": 0},
]  # fmt: skip


def test_the_first_wrong_field_answers_in_katagos_order():
    for n, one in enumerate(IN_ORDER):
        wrong = {key: value for later in IN_ORDER[n:] for key, value in later.items()}
        if n > IN_ORDER.index({"priorities": 0}) - 1 and n < IN_ORDER.index({"priority": "x"}):
            wrong.pop("priority")
        with pytest.raises(FieldError) as caught:
            read(**wrong)
        assert caught.value.field == next(iter(one))


def test_nothing_is_warned_of_before_all_fields_are_right():
    told = []
    with pytest.raises(FieldError):
        read(told, boardxsize=3, avoidMoves=0)
    assert told == []
    read(told, zz=1, boardxsize=3)
    assert [field for field, _ in told] == ["boardxsize", "zz"]


def test_the_last_turn_is_analysed_or_those_that_are_named_in_order_and_once():
    assert [turn.number for turn in read().turns] == [2]
    turns = read(analyzeTurns=[2, 0, 2, 1.9], priorities=[5, 6, 7, 8]).turns
    assert [(turn.number, turn.priority) for turn in turns] == [(0, 6), (1, 8), (2, 7)]
    assert [int(turn.position.meta[META_N_MOVES]) for turn in turns] == [0, 1, 2]


def test_moves_are_played_as_they_are_given():
    position = read(moves=[["B", "c3"], ["black", "(0,0)"], ["WHITE", "Pass"], ["w", "J1"]]).turns[0].position
    stones = {name: int(position.board.color[from_vertex(name, 9)]) for name in ("C3", "A9", "J1", "E5")}
    assert stones == {"C3": BLACK, "A9": BLACK, "J1": WHITE, "E5": EMPTY}
    assert position.meta[META_TO_MOVE] == BLACK


def test_suicide_of_two_stones_is_taken_under_all_rules():
    moves = [["w", "A3"], ["w", "B2"], ["w", "B1"], ["b", "A2"], ["w", "J9"], ["b", "A1"]]
    board = read(moves=moves, rules="japanese").turns[0].position.board
    assert board.color[from_vertex("A1", 9)] == board.color[from_vertex("A2", 9)] == EMPTY


def test_stones_are_laid_one_by_one_with_captures():
    stones = [["b", "A1"], ["w", "A2"], ["w", "B1"], ["b", "J9"], ["w", "J9"]]
    position = read(initialStones=stones, moves=[]).turns[0].position
    found = {name: int(position.board.color[from_vertex(name, 9)]) for name in ("A1", "A2", "J9")}
    assert found == {"A1": EMPTY, "A2": WHITE, "J9": WHITE}


def test_a_stone_laid_over_another_where_it_has_no_liberty_leaves_the_point_empty():
    stones = [["b", "A2"], ["b", "B1"], ["b", "A1"], ["w", "A1"]]
    board = read(initialStones=stones, moves=[]).turns[0].position.board
    found = [int(board.color[from_vertex(name, 9)]) for name in ("A1", "A2", "B1")]
    assert found == [EMPTY, BLACK, BLACK]


@pytest.mark.parametrize(
    ("changes", "color"),
    [
        ({"moves": []}, BLACK),
        ({"moves": [], "initialStones": [["b", "C3"], ["b", "G7"]]}, WHITE),
        ({"moves": [], "initialStones": [["b", "C3"], ["w", "G7"]]}, BLACK),
        ({"moves": [], "initialPlayer": "W"}, WHITE),
        ({"moves": [["w", "C3"]], "initialPlayer": "b"}, BLACK),
    ],
)
def test_who_is_to_move(changes, color):
    assert read(**changes).turns[0].position.meta[META_TO_MOVE] == color


def test_settings_of_a_query_hold_for_it_alone():
    told = []
    wide = {"maxVisits": "10", "wideRootNoise": 0.04, "maxTime": 8.0, "reportAnalysisWinratesAs": "BLACK", "typo": 1}
    query = read(told, overrideSettings=wide)
    assert (query.settings.visits, query.settings.seconds, query.wanted.perspective) == (10, 8.0, "b")
    assert told == [("overrideSettings", "Unknown config params: typo")]
    assert read(overrideSettings=wide, maxVisits=3).settings.visits == 3, "the field beats the setting"
    assert read().settings == DEFAULTS


def test_playouts_are_a_limit_beside_that_of_visits():
    settings = read(overrideSettings={"maxPlayouts": 5}, maxVisits=9).settings
    assert (settings.visits, settings.playouts) == (9, 5)
    assert read(overrideSettings={"maxPlayouts": 10**6}).settings.visits == DEFAULTS.visits


@pytest.mark.parametrize(
    ("given", "noise"),
    [
        ({"rootDirichletNoiseWeight": "0.3"}, 0.0),
        ({"rootNoiseEnabled": "true"}, 0.25),
        ({"rootNoiseEnabled": "true", "rootDirichletNoiseWeight": "0.3"}, 0.3),
        ({"rootNoiseEnabled": "false", "rootDirichletNoiseWeight": "0.3"}, 0.0),
    ],
)
def test_noise_is_added_where_it_is_switched_on(given, noise):
    assert override(DEFAULTS, given).search.root_noise == noise


def test_what_is_left_to_the_engine_stays_as_it_is():
    """It was read as false."""
    hidden = override(DEFAULTS, {"ignorePreRootHistory": "true"})
    assert override(hidden, {"ignorePreRootHistory": "auto", "useLcbForSelection": "AUTO"}) == hidden
    assert override(DEFAULTS, {"maxTime": "0"}).seconds == LEAST_SECONDS, "KataGo's shortest, and no lack of a limit"


def test_noise_may_be_switched_on_and_weighed_in_different_places():
    weighed = override(DEFAULTS, {"rootDirichletNoiseWeight": "0.3"})
    assert override(weighed, {"rootNoiseEnabled": "true"}).search.root_noise == 0.3
    noisy = override(DEFAULTS, {"rootNoiseEnabled": "true"})
    assert override(noisy, {"rootDirichletNoiseWeight": "0.1"}).search.root_noise == 0.1
    assert override(noisy, {"rootNoiseEnabled": "false"}).search.root_noise == 0.0


def test_what_clients_set_is_known():
    sent = [
        "reportAnalysisWinratesAs", "wideRootNoise", "maxTime", "ignorePreRootHistory", "antiMirror", "humanSLProfile",
        "humanSLRootExploreProbWeightless", "rootNumSymmetriesToSample", "playoutDoublingAdvantage",
        "playoutDoublingAdvantagePla", "numSearchThreadsPerAnalysisThread", "conservativePass",
        "alwaysComputePassAliveUnderSuicideRules", "excludeTerritoryAdjacentToAtari",
    ]  # fmt: skip
    assert unknown([*sent, "sldjfslkjf"]) == ["sldjfslkjf"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"maxVisits": "many"}, "Could not parse 'many' as int64_t for key 'maxVisits'"),
        ({"maxVisits": "0"}, "Key 'maxVisits' must be in the range 1 to 1125899906842624"),
        ({"wideRootNoise": "6"}, "Key 'wideRootNoise' must be in the range 0 to 5"),
        ({"maxTime": "nan"}, "Key 'maxTime' is nan"),
        ({"maxVisits": "1" + "0" * 400}, "Key 'maxVisits' must be in the range 1 to 1125899906842624"),
        ({"useGraphSearch": "maybe"}, "Could not parse 'maybe' as bool for key 'useGraphSearch'"),
        ({"useEvalCache": "true"}, "Cannot change useEvalCache after initialization"),
        ({"humanSLProfile": "rank_5x"}, "unknown human profile 'rank_5x', expected rank_9d to rank_20k"),
        ({"humanSLOppExploreProbWeightful": "0.1"}, "Key 'humanSLOppExploreProbWeightful' must be 0: human moves are"),
        (
            {"humanSLRootExploreProbWeightless": "1.5"},
            "Key 'humanSLRootExploreProbWeightless' must be in the range 0 to",
        ),
    ],
)
def test_a_setting_that_cannot_be_is_refused(given, text):
    with pytest.raises(ValueError, match=text.replace("(", r"\(")):
        override(DEFAULTS, given)


def test_settings_of_human_networks():
    found = override(DEFAULTS, {"humanSLProfile": "preaz_5k", "humanSLRootExploreProbWeightless": "0.5"})
    assert (found.search.human_profile, found.human.human_explore) == ("preaz_5k", 0.5)
    assert (found.human.human_c_puct, found.human.human_c_permanent) == (1.0, 0.0)
    found = override(found, {"humanSLCpuctPermanent": "2", "humanSLCpuctExploration": "0.5", "humanSLProfile": "_"})
    assert (found.human.human_c_puct, found.human.human_c_permanent) == (0.5, 2.0)
    assert (found.search.human_profile, found.human.human_explore) == ("", 0.5)
    assert override(DEFAULTS, {"humanSLRootExploreProbWeightless": "1"}).human.human_explore == 0.95
    assert override(DEFAULTS, {"humanSLPlaExploreProbWeightful": "0"}) == DEFAULTS


def test_no_exploration_is_none_and_not_left_to_the_engine():
    assert 0.0 < override(DEFAULTS, {"cpuctExploration": "0"}).search.c_puct < 1e-3


def test_settings_that_mean_the_same_here_change_the_search():
    found = override(DEFAULTS, {"cpuctExploration": "1.5", "wideRootNoise": "0.3", "useLcbForSelection": "false"})
    search = found.search
    assert (search.c_puct, search.wide_root_noise, search.move_choice) == (1.5, 0.3, "visits")


@pytest.mark.parametrize(
    ("given", "like", "komi"),
    [
        ("Chinese", "chinese", 7.5),
        ("chinese_kgs", "chinese-ogs", 7.5),
        ("New Zealand", "new-zealand", 7.0),
        ("nz", "new-zealand", 7.0),
        ("japanese", "japanese", 6.5),
        ("aga-button", "aga-button", 7.0),
        ({"ko": "POSITIONAL", "score": "AREA", "suicide": True}, "tromp-taylor", 7.5),
        ({"scoring": "TERRITORY", "ko": "SIMPLE", "suicide": False, "komi": 5.5}, "japanese", 5.5),
        ("koPOSITIONALscoreAREAtaxNONEsui1komi6", "tromp-taylor", 6.0),
        ("koSIMPLEscoringTERRITORY taxSEKI sui0", "japanese", 6.5),
        ("koSIMPLEscoreAREAtaxNONEsui0whbNfpok1", "chinese", 7.5),
        ("button1sui0koSITUATIONALwhbN-1fpok1", "aga-button", 7.0),
        ("korean", "korean", 6.5),
        ("chinesekgs", "chinese-ogs", 7.5),
        ("stonescoring", "stone-scoring", 7.5),
        ("Goe", "goe", 7.5),
        ("ing", "goe", 7.5),
    ],
)
def test_rules_as_clients_write_them(given, like, komi):
    assert parse_rules(given) == (rules_named(like), komi)


@pytest.mark.parametrize(
    "given",
    ["", " ", "koSPIGHTscoreAREA", "japanesekomi5.5", {"komi": 7.3}, {"komi": "x"}, {"odd": 1}, {"ko": []}, "{"],
)
def test_other_rules_are_refused(given):
    with pytest.raises(FieldError, match="Could not parse rules: "):
        parse_rules(given)


def test_vertices_in_lower_case_and_from_the_top_left():
    assert vertex("moves", "(3,15)", 19, True) == point_at(15, 3, 19)
    assert vertex("moves", " q16 ", 19, True) == point_at(3, 15, 19)
    assert vertex("moves", "pss", 19, True) == PASS


def test_passes_may_be_left_out():
    moves = read(avoidMoves=[{"player": "b", "moves": ["pass", "A1"], "untilDepth": 1}]).moves
    assert not moves.allows(BLACK, PASS) and moves.allows(BLACK, from_vertex("C4", 9))


@pytest.mark.parametrize("line", ["{", '{"id":NaN}', "[" * 100_000, '{"a":1e400}', '{"a":1}}', "'x'"])
def test_what_is_no_json_is_told(line):
    with pytest.raises(ValueError):
        parse_line(line)


def test_a_byte_order_mark_before_json_is_passed_over():
    assert parse_line('\ufeff{"id":"a"}') == {"id": "a"}


def test_lines_are_compact_and_their_keys_in_order():
    line = to_line({"b": [1, 2.5], "a": {"d": "ä", "c": True}, "B": 9.0})
    assert line == '{"B":9.0,"a":{"c":true,"d":"ä"},"b":[1,2.5]}'
    assert json.loads(line)["a"]["d"] == "ä"


def test_config_files_are_katagos(tmp_path):
    (tmp_path / "more.cfg").write_text("maxTime = 3 # s\n")
    (tmp_path / "a.cfg").write_text('# one\nlogDir = "logs"   # two\nmaxVisits=500\n\n@include more.cfg\n')
    assert read_config(tmp_path / "a.cfg") == {"logDir": "logs", "maxVisits": "500", "maxTime": "3"}
    assert read_pairs("a=1, b = x,") == {"a": "1", "b": "x"}
    (tmp_path / "b.cfg").write_text("maxVisits 500\n")
    with pytest.raises(ValueError, match=r"b\.cfg, line 1: 'maxVisits 500', expected key = value"):
        read_config(tmp_path / "b.cfg")
    with pytest.raises(ValueError, match="cannot be read"):
        read_config(tmp_path / "none.cfg")
