"""Every command against the real process, as clients send them."""

import os
import re

import pytest

FAILS = {
    "boardsize": "? syntax error: expected boardsize SIZE [HEIGHT]",
    "boardsize x": "? syntax error: 'x' is not a whole number",
    "boardsize 9.0": "? syntax error: '9.0' is not a whole number",
    "boardsize 26": "? unacceptable size: 26, expected 2 to 25",
    "boardsize 1": "? unacceptable size: 1, expected 2 to 25",
    "boardsize -9": "? unacceptable size: -9, expected 2 to 25",
    "boardsize 9 13": "? unacceptable size: 9x13 is not square",
    "komi": "? syntax error: expected komi POINTS",
    "komi seven": "? syntax error: 'seven' is not a number",
    "komi nan": "? syntax error: 'nan' is not a number",
    "komi 6.3": "? syntax error: komi is 6.3, expected whole or half points between -1000 and 1000",
    "komi 1e10": "? syntax error: '1e10' is not a number",
    "play": "? syntax error: expected play COLOR VERTEX",
    "play b": "? syntax error: expected play COLOR VERTEX",
    "play b D4 E5": "? syntax error: expected play COLOR VERTEX",
    "play b Z99": "? invalid color or coordinate: 'Z99' is not a vertex of a 9x9 board",
    "play b I5": "? invalid color or coordinate: 'I5' is not a vertex: columns skip I",
    "play b A0": "? invalid color or coordinate: 'A0' is not a vertex of a 9x9 board",
    "play b K1": "? invalid color or coordinate: 'K1' is not a vertex of a 9x9 board",
    "play green D4": "? invalid color or coordinate: 'green' is not a color, expected b or w",
    "play b resign": "? invalid color or coordinate: 'resign' is not a vertex of a 9x9 board",
    "genmove": "? syntax error: expected genmove COLOR",
    "genmove x": "? invalid color or coordinate: 'x' is not a color, expected b or w",
    "undo": "? cannot undo",
    "fixed_handicap 1": "? invalid number of stones",
    "fixed_handicap 10": "? invalid number of stones",
    "place_free_handicap 0": "? invalid number of stones",
    "place_free_handicap 81": "? invalid number of stones",
    "set_free_handicap": "? bad vertex list",
    "set_free_handicap D4": "? bad vertex list",
    "set_free_handicap D4 D4": "? bad vertex list",
    "set_free_handicap D4 pass": "? bad vertex list",
    "time_settings 1 2": "? syntax error: expected time_settings MAIN_TIME PERIOD STONES",
    "time_settings a b c": "? syntax error: 'a' is not a number",
    "kgs-time_settings": "? syntax error: expected kgs-time_settings KIND [NUMBERS...]",
    "kgs-time_settings fischer 10 1": "? syntax error: 'fischer' is not a kind of clock, expected one of none, "
    "absolute, byoyomi, canadian",
    "kgs-time_settings byoyomi 10 1": "? syntax error: expected byoyomi MAIN PERIOD PERIODS",
    "kata-time_settings egg 3": "? syntax error: 'egg' is not a kind of clock, expected one of none, absolute, "
    "byoyomi, canadian, fischer, fischer-capped",
    "kata-time_settings none 5": "? syntax error: expected none",
    "kata-time_settings fischer 10 nan": "? syntax error: 'nan' is not a number",
    "kata-time_settings fischer inf 1": "? syntax error: 'inf' is not a number",
    "kata-time_settings fischer-capped 10 1": "? syntax error: expected fischer-capped MAIN INCREMENT LIMIT MOVE",
    "kata-time_settings canadian 10 1 2.5": "? syntax error: '2.5' is not a whole number",
    "time_settings 99999999999 0 0": "? syntax error: '99999999999' is not a number",
    "time_left b": "? syntax error: expected time_left COLOR TIME [STONES]",
    "kgs-genmove_cleanup": "? syntax error: expected kgs-genmove_cleanup COLOR",
    "final_status_list": "? syntax error: expected final_status_list STATUS",
    "final_status_list sleeping": "? syntax error: 'sleeping' is no status, expected one of alive, dead, seki",
    "loadsgf": "? syntax error: expected loadsgf FILE [MOVE...]",
    "loadsgf /nowhere.sgf": "? cannot load file: /nowhere.sgf is not a file",
    "loadsgf /": "? cannot load file: / is not a file",
    "kata-set-rules": "? syntax error: expected kata-set-rules NAME or kata-set-rules {FLAGS}",
    "kata-set-rules egyptian": "? no rules are called 'egyptian', expected one of tromp-taylor, chinese, chinese-ogs, "
    "japanese, korean, aga, aga-button, new-zealand, goe, stone-scoring, ancient-territory",
    "kata-set-rule ko": "? syntax error: expected kata-set-rule FLAG VALUE",
    "kata-set-rule ko never": "? rules: ko is 'never', expected one of simple, positional, situational",
    "kata-raw-nn": "? syntax error: expected kata-raw-nn [COLOR] SYMMETRY [OPTIMISM], a symmetry from 0 to 7 or all, "
    "an optimism from 0 to 1",
    "kata-raw-nn 9": "? syntax error: expected kata-raw-nn [COLOR] SYMMETRY [OPTIMISM], a symmetry from 0 to 7 or all, "
    "an optimism from 0 to 1",
    "kata-raw-nn 0": "? there is no network to ask",
    "kgs-rules": "? syntax error: expected kgs-rules RULES",
    "known_command": "? syntax error: expected known_command COMMAND",
    "help nothing": "? unknown command",
    "GENMOVE b": "? unknown command, did you mean genmove?",
    "showbord": "? unknown command, did you mean showboard?",
    "help finalscore": "? unknown command, did you mean final_score?",
}


BOARDSIZE = "Begin a game on an empty board of this size, with the same komi and rules."


@pytest.mark.parametrize(("command", "reply"), FAILS.items())
def test_what_cannot_be_done_is_said_in_gtps_words(ask, command, reply):
    assert ask(command) == reply


def test_the_list_is_the_registry(ask):
    names = ask("list_commands")[2:].split("\n")
    assert len(names) == len(set(names))
    assert {"protocol_version", "name", "version", "known_command", "list_commands", "quit", "boardsize"} <= set(names)
    assert {"clear_board", "komi", "play", "genmove", "undo", "showboard", "reg_genmove", "cputime"} <= set(names)
    for name in names:
        assert ask(f"known_command {name}") == "= true"
        assert ask(f"help {name}").startswith(f"= {name}")
    assert ask("known_command nothing") == "= false"


def test_help_is_grouped_by_what_commands_are_for(ask):
    """A hundred lines in a row helped little."""
    lines = ask("help")[2:].split("\n")
    explained = [line.split(":")[0].split()[0] for line in lines if line.startswith("  ")]
    assert explained == ask("list_commands")[2:].split("\n")
    headings = [line for line in lines if not line.startswith("  ")]
    assert "The game clock" in headings and len(set(headings)) == len(headings) > 5
    heading = "The game on the board: size, handicap, komi, rules and game records"
    assert lines.index(heading) < lines.index("  boardsize SIZE [HEIGHT]: " + BOARDSIZE)
    assert ask("help boardsize").split("\n")[0] == f"= boardsize SIZE [HEIGHT]: {BOARDSIZE}"
    assert ask("help undo") == "= undo: Undo the last move."


def test_administration(ask):
    assert ask("protocol_version") == "= 2"
    assert re.fullmatch(r"= \d+\.\d+\.\d+", ask("version"))
    assert re.fullmatch(r"= \d+\.\d{3}", ask("cputime"))


def test_a_board_in_text(ask):
    for move in ("b D4", "WHITE e5", "Black PASS", "w d5"):
        assert ask(f"play {move}") == "="
    rows = ask("showboard").split("\n")
    assert rows[0] == "= "
    assert rows[1].split() == list("ABCDEFGHJ")
    assert rows[6].split() == ["5", ".", ".", ".(O)O", ".", ".", ".", ".", "5"]
    assert rows[7].split() == ["4", ".", ".", ".", "X", ".", ".", ".", ".", ".", "4"]


def test_a_position_takes_the_place_of_a_game(ask):
    ask("play b E5")
    ask("play w A1")
    assert ask("set_position b D4 W e5 b C3") == "="
    assert ask("showboard").count("X") == 3 and ask("showboard").count("O") == 2  # one each in the line of prisoners
    assert ask("undo") == "? cannot undo"
    assert ask("gogui-rules_side_to_move") == "= black"
    shown = ask("showboard")
    for stones, message in {
        "b D4 w D4": "? setup: a point is named twice",
        "b A1 w A2 w B1": "? setup: a chain has no liberty",
        "b pass": "? setup: a point is not on the board",
        "b": "? syntax error: expected pairs of color and vertex",
        "green D4": "? invalid color or coordinate: 'green' is not a color, expected b or w",
        "b Z9": "? invalid color or coordinate: 'Z9' is not a vertex of a 9x9 board",
    }.items():
        assert ask(f"set_position {stones}") == message
    assert ask("showboard") == shown
    assert ask("set_position") == "="
    assert ask("fixed_handicap 4").startswith("= "), "the board is empty"


def test_komi_outlives_boards(ask):
    assert ask("komi 6.50") == "="
    for command in ("clear_board", "boardsize 13", "boardsize 13", "clear_board"):
        assert ask(command) == "="
        assert ask("get_komi") == "= 6.5"
    assert ask("komi -0.5") == "="
    assert ask("get_komi") == "= -0.5"


def test_rules_by_name_by_flag_and_as_json(ask):
    chinese = ask("kata-get-rules")
    assert chinese.startswith('= {"friendlyPassOk":true,"hasButton":false,"ko":"SIMPLE","scoring":"AREA"')
    assert ask("kata-set-rule suicide true") == "="
    assert '"suicide":true' in ask("kata-get-rules")
    assert ask('kata-set-rules {"ko": "SITUATIONAL", "scoring": "TERRITORY", "tax": "ALL"}') == "="
    assert '"ko":"SITUATIONAL","scoring":"TERRITORY","suicide":true,"tax":"ALL"' in ask("kata-get-rules")
    for name in ("japanese", "chinese", "aga", "new_zealand"):
        assert ask(f"kgs-rules {name}") == "="
    assert '"ko":"SITUATIONAL","scoring":"AREA","suicide":true' in ask("kata-get-rules")
    assert ask("kata-set-rules chinese") == "="
    assert ask("kata-get-rules") == chinese


def test_rules_change_in_the_middle_of_a_game_and_its_moves_stay(ask):
    for move in ("b D4", "w E5"):
        ask(f"play {move}")
    board = ask("showboard")
    assert ask("kata-set-rules japanese") == "="
    assert ask("showboard") == board
    assert [ask("undo") for _ in range(3)] == ["=", "=", "? cannot undo"]


def test_a_refused_size_leaves_the_game_as_it_is(ask):
    ask("play b D4")
    assert ask("boardsize 26").startswith("? unacceptable size")
    assert ask("play w D4") == "? illegal move"


def test_moves_of_one_colour_in_a_row(ask):
    for _ in range(3):
        assert re.fullmatch("= [A-J][1-9]", ask("genmove b"))
    assert re.fullmatch("= [A-J][1-9]", ask("genmove w"))
    assert ask("showboard").count("X") == 4  # one of them in the line of prisoners


def test_play_goes_on_after_two_passes(ask):
    ask("play b E5")
    ask("play w pass")
    ask("play b pass")
    assert re.fullmatch("= [A-J][1-9]", ask("genmove w"))
    assert ask("undo") == "="
    assert ask("undo") == "="
    assert re.fullmatch("= [A-J][1-9]", ask("genmove b"))


def test_undo_to_the_beginning(ask):
    for vertex in ("D4", "E5", "pass"):
        ask(f"play b {vertex}")
    assert [ask("undo") for _ in range(4)] == ["=", "=", "=", "? cannot undo"]


def test_a_move_shown_is_not_played(ask):
    empty = ask("showboard")
    assert re.fullmatch("= [A-J][1-9]", ask("reg_genmove b"))
    assert ask("showboard") == empty


def test_what_a_client_plays_is_accepted(ask):
    """Suicide of several stones and repetition may be legal under the client's rules; that of one is under none."""
    for move in ("b A2", "b B2", "b C1", "w A1", "w B1", "b B1"):
        assert ask(f"play {move}") == "="
    assert ask("play w A1") == ask("play w B1") == "? illegal move"


def test_handicap(ask):
    assert set(ask("fixed_handicap 4").split()) == {"=", "C3", "C7", "G3", "G7"}
    assert ask("fixed_handicap 4") == "? board not empty"
    assert re.fullmatch("= [A-J][1-9]", ask("genmove w"))
    ask("clear_board")
    points = ask("place_free_handicap 12").split()[1:]
    assert len(set(points)) == 12
    ask("clear_board")
    assert ask("set_free_handicap A1 j9 E5") == "="
    assert ask("play w A1") == "? illegal move"
    assert ask("undo") == "? cannot undo"


def test_clocks(ask):
    assert ask("time_settings 1 0 0") == "="
    assert re.fullmatch("= [A-J][1-9]", ask("genmove b"))
    for odd in ("b -5 0", "w 0 0", "b 600", "black 30 -1", "WHITE 10.5 3"):
        assert ask(f"time_left {odd}") == "="
    assert re.fullmatch("= [A-J][1-9]", ask("genmove w"))
    assert ask("time_settings 0 0 0") == "="


@pytest.mark.parametrize(
    "command",
    [
        "kata-time_settings none",
        "kata-time_settings absolute 2147483647",
        "kata-time_settings byoyomi 0.5 0.25 3",
        "kata-time_settings byoyomi -5 1 0",
        "kata-time_settings canadian 0 0.5 2",
        "kata-time_settings canadian 1 5 0",
        "kata-time_settings fischer 0 0.3",
        "kata-time_settings fischer -1 0",
        "kata-time_settings fischer-capped 60 0.2 120 0.3",
        "kata-time_settings fischer-capped 60 10 20 -1",
        "kgs-time_settings none",
        "kgs-time_settings absolute 1",
        "kgs-time_settings byoyomi 1 1 5",
        "kgs-time_settings canadian 1 30 25",
    ],
)
def test_clocks_of_every_kind(ask, command):
    assert ask(command) == "="
    assert re.fullmatch("= [A-J][1-9]", ask("genmove b"))
    for told in ("b 0.25 3", "w 1 0"):
        assert ask(f"time_left {told}") == "="
        assert re.fullmatch("= [A-J][1-9]", ask(f"genmove {told[0]}"))
    assert ask("kata-list_time_settings") == "= none absolute byoyomi canadian fischer fischer-capped"


def test_the_end_of_a_game(ask):
    for row in range(1, 10):
        for column, color in (("C", "b"), ("E", "w"), ("D", "b"), ("F", "w")):
            ask(f"play {color} {column}{row}")
    ask("play w B5")
    # 36 points to 45
    assert ask("final_score") == "= W+16.5"
    assert ask("final_status_list dead") == "= B5"
    alive = ask("final_status_list alive").split("\n")
    assert [len(chain.replace("= ", "").split()) for chain in alive] == [18, 18]
    assert ask("final_status_list seki") == "="
    assert [ask("genmove b"), ask("genmove w")] == ["= pass", "= pass"]
    assert ask("final_score") == "= W+16.5"
    assert ask("kgs-game_over") == "="


def test_a_clean_up_takes_dead_stones_off_and_passes(ask):
    """As KGS asks for it when the players disagree."""
    for row in range(1, 10):
        for column, color in (("C", "b"), ("E", "w"), ("D", "b"), ("F", "w")):
            ask(f"play {color} {column}{row}")
    for move in ("w A1", "b pass", "w pass"):
        ask(f"play {move}")
    answers = []
    while "= pass" not in answers and len(answers) < 9:
        answers.append(ask("kgs-genmove_cleanup b"))
        ask("play w pass")
    assert answers[-1] == "= pass"
    assert ask("final_status_list dead") == "="


def test_handicap_stones_sent_as_moves_count_as_such(ask):
    ask("kata-set-rules chinese")
    black, white = ([f"{color} {column}{row}" for row in range(1, 10) for column in columns]
                    for color, columns in (("b", "CD"), ("w", "EF")))  # fmt: skip
    alternating = [move for pair in zip(white, black[2:], strict=False) for move in pair]
    for move in (*black[:2], *alternating, *white[16:]):
        ask(f"play {move}")
    assert ask("final_score") == "= W+18.5"
    # One colour after the other sets a position up.
    ask("clear_board")
    for move in (*black, *white):
        ask(f"play {move}")
    assert ask("final_score") == "= W+16.5"


def test_records_go_out_and_in(ask, tmp_path):
    for move in ("b E5", "w C3", "b G7", "w pass", "b C7"):
        ask(f"play {move}")
    ask("komi 5.5")
    shown = ask("showboard")
    text = ask("printsgf")
    assert text.startswith("= (;") and "\n" not in text and ask("printsgf -") == text
    file = tmp_path / "a game.sgf"
    assert ask(f"printsgf {file}") == "="
    ask("boardsize 13")
    assert ask(f"loadsgf {file}") == "="
    assert ask("showboard") == shown
    assert ask("get_komi") == "= 5.5"
    assert ask(f"loadsgf {file} 3") == "="
    assert ask("play b G7") == "="
    assert ask("play b C3") == "? illegal move"
    assert ask(f"loadsgf {file} 0") == "="
    assert ask("undo") == "? cannot undo"


def test_a_record_takes_the_place_of_another_whole(ask, tmp_path):
    """A full disk in the middle of writing costs nothing of the old one."""
    file, link = tmp_path / "a.sgf", tmp_path / "old.sgf"
    file.write_text("the record of before")
    os.link(file, link)
    assert ask(f"printsgf {file}") == "="
    assert file.read_text().startswith("(;") and link.read_text() == "the record of before"


def test_a_record_without_rules_is_read_under_those_in_force_named_or_not(ask, tmp_path):
    assert ask("kata-set-rule suicide true") == "="
    rules = ask("kata-get-rules")
    assert ask(f"printsgf {tmp_path / 'a.sgf'}") == "="
    assert ask(f"loadsgf {tmp_path / 'a.sgf'}") == "="
    assert ask("kata-get-rules") == rules


def test_a_record_that_is_none_changes_nothing(ask, tmp_path):
    ask("play b E5")
    for name, data in {"junk": b"\x00\xff(((", "chess": b"(;GM[3]SZ[8])", "wide": b"(;GM[1]SZ[19:9])"}.items():
        (tmp_path / name).write_bytes(data)
        reply = ask(f"loadsgf {tmp_path / name}")
        assert reply.startswith("? cannot load file: ")
        assert "\n" not in reply
    assert ask("play w E5") == "? illegal move"
    assert ask(f"printsgf {tmp_path}").startswith("? cannot write file: ")


def test_the_networks_own_words_have_katagos_layout(network):
    for command in ("boardsize 7", "play b D4"):
        assert network(command) == "="
    lines = network("kata-raw-nn w 0").split("\n")
    assert lines[0] == "= symmetry 0"
    names = [line.split()[0] for line in lines[1:10]]
    assert names == [
        "whiteWin", "whiteLoss", "noResult", "whiteLead", "whiteScoreSelfplay", "whiteScoreSelfplaySq",
        "varTimeLeft", "shorttermWinlossError", "shorttermScoreError",
    ]  # fmt: skip
    assert (lines[10], lines[19]) == ("policy", "whiteOwnership")
    policy = [line.split() for line in lines[11:18]]
    assert all(len(row) == 7 for row in policy) and policy[3][3] == "NAN"
    assert sum(word == "NAN" for row in policy for word in row) == 1
    assert re.fullmatch(r"policyPass \d\.\d{6}", lines[18])
    assert [len(line.split()) for line in lines[20:]] == [7] * 7
    assert network("kata-raw-nn all").count("symmetry") == 8
