"""GoGui: positions set up, sequences, rules, and pictures whose replies have the types it can read."""

import re
import shlex
import time

import pytest

from engine.go.geometry import BLACK
from gtp.commands import COMMANDS
from gtp.commands.gogui import ANALYZE_COMMANDS
from gtp.gogui import live_graphics
from gtp.host import Host
from tests.gtp.process import Engine

SIZE = 9
VERTEX = "[A-HJ][1-9]"
GRAPHICS = {
    "COLOR": rf"(#[0-9a-f]{{6}}|green|red) {VERTEX}",
    "LABEL": rf"{VERTEX} \d{{1,3}}( {VERTEX} \d{{1,3}})*",
    "TRIANGLE": rf"{VERTEX}( {VERTEX})*",
    "SQUARE": rf"{VERTEX}( {VERTEX})*",
    "VAR": rf"[bw] ({VERTEX}|pass)( [bw] ({VERTEX}|pass))*",
    "TEXT": r"\S.*",
}
"""Graphics commands -> their arguments, as GoGui's manual has them"""
FAILS = {
    "gogui-setup b": "? syntax error: expected pairs of color and vertex",
    "gogui-setup b D4 w D4": "? setup: a point is named twice",
    "gogui-setup b pass": "? setup: a point is not on the board",
    "gogui-setup w A1 b A2 b B1": "? setup: a chain has no liberty",
    "gogui-setup_player x": "? invalid color or coordinate: 'x' is not a color, expected b or w",
    "gogui-play_sequence b D4 w": "? syntax error: expected pairs of color and vertex",
    "gogui-play_sequence b D4 w D4": "? illegal move",
    "keima-policy x": "? invalid color or coordinate: 'x' is not a color, expected b or w",
}


@pytest.fixture(scope="module")
def process():
    with Engine("--seconds", "0.25", "--no-early-stop", "--seed", "3") as engine:
        yield engine


@pytest.fixture
def ask(process):
    """Ask the engine, which begins each test on an empty 9x9 board."""
    for command in ("boardsize 9", "clear_board"):
        assert process.ask(command) == "="
    return process.ask


def rows(reply: str) -> list[list[str]]:
    """A board of words as GoGui splits it."""
    lines = reply.removeprefix("= ").split("\n")
    return [shlex.split(line) for line in lines if line.strip()]


def check_graphic(text: str) -> None:
    """Fail unless all lines are graphics commands."""
    for line in text.removeprefix("= ").split("\n"):
        name, _, arguments = line.partition(" ")
        assert re.fullmatch(GRAPHICS[name], arguments), line


@pytest.mark.parametrize(("command", "reply"), FAILS.items())
def test_what_cannot_be_done_changes_nothing(ask, command, reply):
    empty = ask("gogui-rules_board")
    assert ask(command) == reply
    assert ask("gogui-rules_board") == empty
    assert ask("undo") == "? cannot undo"


def test_a_position_is_set_up_and_whose_turn_it_is(ask):
    assert ask("gogui-setup b D4 w E5 b D5") == "="
    assert ask("gogui-rules_side_to_move") == "= black"
    assert ask("gogui-setup_player W") == "="
    assert ask("gogui-rules_side_to_move") == "= white"
    board = rows(ask("gogui-rules_board"))
    assert [board[4][3], board[4][4], board[5][3]] == ["X", "O", "X"]
    assert sum(word != "." for row in board for word in row) == 3
    assert ask("undo") == "? cannot undo"
    assert ask("gogui-setup b A1") == "? board not empty"
    assert re.fullmatch(f"= {VERTEX}", ask("genmove w"))
    assert ask("gogui-setup_player w") == "? the game has begun"


def test_naming_the_player_whose_turn_it_is_keeps_the_handicap(ask):
    assert ask("kata-set-rules aga") == "="
    ask("fixed_handicap 3")
    before = ask("printsgf")
    assert "HA[3]" in before
    assert ask("gogui-setup_player w") == "="
    assert ask("printsgf") == before
    assert ask("kata-set-rules chinese") == "="


def test_a_sequence_is_played_wholly(ask):
    assert ask("gogui-play_sequence") == "="
    assert ask("gogui-play_sequence b D4 W e5 b PASS w C3") == "="
    assert [ask("undo") for _ in range(5)] == ["="] * 4 + ["? cannot undo"]


def test_the_rules_of_the_game(ask):
    assert ask("gogui-rules_game_id") == "= Go"
    assert ask("gogui-play_sequence b A2 w A1 b B1 w D4") == "="
    assert ask("gogui-rules_captured_count") == "= 1 0"
    legal = ask("gogui-rules_legal_moves").split()[1:]
    assert len(legal) == 81 - 3 + 1
    assert "A1" in legal and "D4" not in legal and legal[-1] == "pass"
    assert ask("gogui-rules_final_result").startswith("= ")
    assert ask("gogui-play_sequence b pass w pass") == "="
    assert ask("gogui-rules_legal_moves") == "="


def test_what_gogui_must_not_be_offered(ask):
    """It would throw away an open game of another size."""
    assert ask("known_command gogui-rules_board_size") == "= false"


def test_the_result_as_a_sentence(ask):
    assert ask("gogui-play_sequence b E5 b pass w pass") == "="
    assert re.fullmatch(r"= (Black|White) wins by \d+(\.5)? points\.", ask("gogui-rules_final_result"))


def test_every_command_of_the_menu_is_answered(ask):
    assert ask("gogui-analyze_commands") == f"= {ANALYZE_COMMANDS}"
    ask("gogui-play_sequence b E5 w C3 b C4")
    for line in ANALYZE_COMMANDS.split("\n"):
        kind, label, command = line.split("/")
        assert kind in ("gfx", "pspairs", "varc", "dboard", "sboard", "string", "hstring", "param", "plist", "none")
        assert label
        if command.split()[0] not in ("kata-raw-nn", "keima-values", "keima-q"):  # There is no network here.
            assert ask(command.replace("%c", "w").replace("%s", "chinese")).startswith("=")


def test_rules_are_chosen_from_lists(ask):
    """Lines of GoGui's dialog: the kind of a parameter with all its values, its name, and the value in force."""

    def chosen():
        """Parameter -> its value; each is one of its list."""
        found = re.findall(r"^\[list/(.*)\] (\w+) (\S+)$", ask("keima-rules").removeprefix("= "), re.MULTILINE)
        assert all(value in values.split("/") for values, _, value in found)
        return {name: (value, values.split("/")) for values, name, value in found}

    rules, names = chosen()["rules"]
    assert rules == "chinese" and {"japanese", "aga", "tromp-taylor"} < set(names) and len(names) == len(set(names))
    assert chosen()["ko"] == ("simple", ["simple", "positional", "situational"])
    assert ask("keima-rules rules japanese") == "="
    assert [chosen()[name][0] for name in ("rules", "scoring", "suicide")] == ["japanese", "territory", "false"]
    assert ask("keima-rules suicide true") == ask("keima-rules rules custom") == "="
    assert [chosen()[name][0] for name in ("rules", "scoring", "suicide")] == ["custom", "territory", "true"]
    assert ask("keima-rules rules chess").startswith("? no rules are called 'chess', expected one of ")
    assert ask("keima-rules speed 3").startswith("? rules have no 'speed', expected one of ")
    assert ask("keima-rules rules") == "? syntax error: expected keima-rules [KEY VALUE]"
    assert ask("keima-rules rules chinese") == "="


def test_interruption_and_title(ask):
    assert ask("gogui-interrupt") == "="
    assert ask("gogui-title") == "= Keima"


def test_policies_as_graphics(ask):
    ask("gogui-play_sequence b E5 w E4")
    for command in ("keima-policy", "keima-policy w", "keima-rollout_policy", "keima-rollout_policy b"):
        reply = ask(command)
        check_graphic(reply)
        assert 40 <= sum(map(int, re.findall(rf"{VERTEX} (\d+)", reply))) <= 101


def test_values_after_moves_as_graphics():
    with Engine("--visits", "40", "--weights", "small") as engine:
        engine.ask("gogui-play_sequence b E5 w E4")
        for command in ("keima-values", "keima-q w"):
            reply = engine.ask(command)
            check_graphic(reply)
            side = "White" if command.endswith("w") else "Black"
            assert re.search(rf"^LABEL {VERTEX} \d+ .*\nTEXT {side} to move: .*, in percent \(", reply, re.MULTILINE)
        assert engine.ask("keima-q_rollouts") == "? no rollouts in this search: --rollout-weight 0.5 adds them"


def test_without_a_network_values_are_those_of_rollouts(ask):
    ask("gogui-play_sequence b E5 w E4")
    assert ask("keima-values") == "? no network plays this board: values come from rollouts alone"
    reply = ask("keima-q_rollouts")
    check_graphic(reply)
    assert reply.endswith("TEXT Black to move: mean result of the rollouts below each move, in percent (learnt "
                          "patterns, weight 1 in the search)")  # fmt: skip


def test_a_search_as_graphics_scores_and_line(ask):
    ask("gogui-play_sequence b E5 w E4")
    reply = ask("keima-search w")
    check_graphic(reply)
    assert re.search(r"TEXT White to move: win rate \d+\.\d%, lead [+-]\d+\.\d, \d+ visits$", reply)
    assert re.fullmatch(rf"=( {VERTEX} [+-](\d\.\d|\d{{2,3}}))+", ask("keima-scores"))
    assert re.fullmatch(rf"=( ({VERTEX}|pass))+", ask("keima-pv"))
    assert [ask("undo"), ask("undo"), ask("undo")] == ["=", "=", "? cannot undo"]


def test_ownership_and_liberties_as_boards(ask):
    ask("gogui-play_sequence b A1 w B1 b B2 w J9")
    ownership = rows(ask("keima-ownership"))
    assert [len(row) for row in ownership] == [SIZE] * SIZE
    assert all(-1 <= float(word) <= 1 for row in ownership for word in row)
    board = rows(ask("keima-liberties"))
    assert [len(row) for row in board] == [SIZE] * SIZE
    assert {word for row in board for word in row} == {"", "1", "2", "3"}
    assert [board[8][:2], board[7][:2], board[0][8]] == [["1", "1"], ["", "3"], "2"]


def test_ladders_as_marks(ask):
    ask("gogui-setup b C2 b C3 b D1 b E2 w D2 w D3")
    says = "TEXT {} to move: {} moves capture in a ladder, {} escape from one"
    assert ask("keima-ladders") == f"= TRIANGLE D4\n{says.format('Black', 1, 0)}"
    ask("play b D4")
    assert ask("keima-ladders") == f"= {says.format('White', 0, 0)}"
    assert ask("gg-undo 1") == "="
    ask("gogui-play_sequence w F7 b D4")
    assert ask("keima-ladders w") == f"= SQUARE E3\n{says.format('White', 0, 1)}"


@pytest.mark.parametrize(
    ("commands", "is_drawn"),
    [
        ([], False),
        (["gogui-analyze_commands"], True),
        (["kata-set-param live-graphics true"], True),
        (["kata-set-param live-graphics false", "gogui-analyze_commands"], False),
        (["gogui-analyze_commands", "kata-set-param live-graphics false"], False),
    ],
)
def test_a_user_decides_on_live_graphics_and_gogui_only_where_no_user_has(make_player, commands, is_drawn):
    """GoGui's introduction switched them on although the user had switched them off."""
    host = Host(COMMANDS)
    host.provide(make_player())
    for command in commands:
        assert COMMANDS.answer(host, command).startswith("=")
    with live_graphics(host, BLACK) as watcher:
        assert (watcher is not None) == is_drawn
    assert COMMANDS.answer(host, "kata-get-param live-graphics") == f"= {str(is_drawn).lower()}\n\n"


def test_live_graphics_of_a_search(process, ask):
    del process.errors[:]

    def drawn():
        """What has come on standard error, cut into drawings."""
        return [drawing for drawing in b"".join(process.errors).decode().split("gogui-gfx:") if drawing]

    assert ask("kata-set-param seconds 600") == "="
    ask("gogui-analyze_commands")
    for command, answer in (("genmove b", f"= {VERTEX}"), ("keima-pv", "= .*")):
        process.send(command + "\n")
        while drawn()[-1:] in ([], [" CLEAR\n"]):
            time.sleep(0.01)
        process.send("# interrupt\n")
        assert re.fullmatch(answer, process.reply(), re.S)
        while drawn()[-1] != " CLEAR\n":
            time.sleep(0.01)
    assert ask("kata-set-param seconds 0.25") == "="
    drawings = drawn()
    assert drawings.count(" CLEAR\n") == 2 and drawings[-1] == " CLEAR\n"
    assert len(drawings) >= 4
    for drawing in drawings:
        if drawing != " CLEAR\n":
            assert drawing.startswith("\n") and drawing.endswith("\n\n")
            check_graphic(drawing.strip("\n"))
