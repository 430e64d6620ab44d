"""Commands of other engines that people and tools use: GNU Go's, Leela Zero's, Sabaki's."""

import re

import pytest

from engine.config import PlayOptions
from gtp.commands import COMMANDS
from gtp.host import Host

FAILS = {
    "is_legal b": "? syntax error: expected is_legal COLOR VERTEX",
    "is_legal b Z9": "? invalid color or coordinate: 'Z9' is not a vertex of a 9x9 board",
    "all_legal": "? syntax error: expected all_legal COLOR",
    "captures red": "? invalid color or coordinate: 'red' is not a color, expected b or w",
    "rectangular_boardsize 9 13": "? unacceptable size: 9x13 is not square",
    "rectangular_boardsize 9": "? syntax error: expected rectangular_boardsize WIDTH HEIGHT",
    "rectangular_boardsize 30 30": "? unacceptable size: 30, expected 2 to 25",
    "gg-undo": "? cannot undo",
    "gg-undo -1": "? syntax error: -1 moves, expected 0 or more",
    "gg-undo x": "? syntax error: 'x' is not a whole number",
    "restricted_genmove": "? syntax error: expected restricted_genmove COLOR [VERTICES...]",
    "restricted_genmove b Z1": "? invalid color or coordinate: 'Z1' is not a vertex of a 9x9 board",
    "kata-benchmark": "? syntax error: expected kata-benchmark VISITS",
    "kata-benchmark 0": "? syntax error: 0 visits, expected 1 or more",
    "kata-benchmark many": "? syntax error: 'many' is not a whole number",
    "heatmap 8": "? syntax error: expected heatmap [SYMMETRY], a symmetry from 0 to 7, average or all",
}


@pytest.mark.parametrize(("command", "reply"), FAILS.items())
def test_what_cannot_be_done_is_said(ask, command, reply):
    assert ask(command) == reply


def test_legal_moves(ask):
    for move in ("b A2", "b B1", "w D4", "w E3", "w F4", "w E5", "b D5", "b E4"):
        ask(f"play {move}")
    assert [ask("is_legal w A1"), ask("is_legal b A1"), ask("is_legal w D4")] == ["= 0", "= 1", "= 0"]
    assert ask("is_legal w pass") == "= 1"
    legal = ask("all_legal w").split()[1:]
    assert len(set(legal)) == len(legal)
    assert "A1" not in legal and "pass" not in legal
    assert {vertex for vertex in legal if ask(f"is_legal w {vertex}") == "= 1"} == set(legal)


def test_a_choice_among_some_moves(ask):
    ask("play b A2")
    ask("play b B1")
    assert ask("restricted_genmove w J9") == "= J9"
    assert ask("restricted_genmove b D4 G6") in ("= D4", "= G6")
    assert ask("restricted_genmove w A1 B1") == "= pass"
    assert ask("restricted_genmove w pass") == "= pass"
    assert ask("restricted_genmove w") == "= pass"
    assert ask("is_legal w J9") == "= 1"


def test_captured_stones(ask):
    for move in ("b A2", "w A1", "b B1"):
        ask(f"play {move}")
    assert [ask("captures b"), ask("captures w")] == ["= 1", "= 0"]


def test_board_sizes(ask):
    assert ask("query_boardsize") == "= 9"
    assert ask("rectangular_boardsize 13 13") == "="
    assert ask("query_boardsize") == "= 13"


def test_several_moves_are_taken_back_or_none(ask):
    for vertex in ("D4", "E5", "pass", "C3"):
        ask(f"play b {vertex}")
    assert ask("gg-undo 5") == "? cannot undo"
    assert ask("gg-undo 3") == "="
    assert ask("is_legal w D4") == "= 0"
    assert [ask("gg-undo 0"), ask("gg-undo"), ask("gg-undo")] == ["=", "=", "? cannot undo"]


def test_a_named_move_into_an_own_eye_is_a_move(ask):
    for vertex in ("A2", "B1", "B2"):
        ask(f"play b {vertex}")
    assert ask("restricted_genmove b A1") == "= A1"
    assert ask("restricted_genmove b A1 E5") == "= E5"
    assert ask("restricted_genmove b A1 pass") == "= pass"
    assert ask("restricted_genmove w A1") == "= pass"


def test_an_estimate_begins_like_a_result_and_has_bounds(ask):
    ask("play b E5")
    form = r"= ([BW])\+(\d+\.\d) \(upper bound: (-?\d+\.\d), lower: (-?\d+\.\d)\)"
    color, points, upper, lower = re.fullmatch(form, ask("estimate_score")).groups()
    white = float(points) * (1 if color == "W" else -1)
    assert float(lower) <= white <= float(upper)
    assert ask("final_score") == f"= {color}+{points}", "on an unfinished board this is the same estimate"


def test_the_estimate_of_a_finished_game_is_its_score(ask):
    for row in range(1, 10):
        for column, color in (("E", "w"), ("C", "b"), ("D", "b"), ("F", "w")):
            ask(f"play {color} {column}{row}")
    assert ask("final_score") == "= W+16.5"
    assert ask("estimate_score") == "= W+16.5 (upper bound: 16.5, lower: 16.5)"


def test_a_heatmap_without_a_network_is_the_patterns(ask):
    ask("play b E5")
    rows = ask("heatmap").split("\n")[1:]
    assert [len(row.split()) for row in rows[:9]] == [9] * 9
    assert 990 <= sum(int(word) for row in rows[:9] for word in row.split()) <= 1010
    assert rows[9:] == ["pass: 0"]


def test_a_heatmap_of_a_network_has_its_win_rate(network):
    for command in ("boardsize 7", "play b D4"):
        assert network(command) == "="
    for symmetry in ("", " 3", " average"):
        *rows, passing, rate = network(f"heatmap{symmetry}").split("\n")[1:]
        assert [len(row.split()) for row in rows] == [7] * 7
        assert re.fullmatch(r"pass: \d+", passing) and re.fullmatch(r"winrate: 0\.\d{6}", rate)
    assert network("heatmap all").count("winrate") == 8
    assert network("gogui-title").startswith("= Keima with default")
    assert re.fullmatch(r"= [BW]\+\d+\.\d \(.*\)", network("estimate_score"))


def test_speed_is_measured_on_positions_of_this_size(ask):
    for command in ("boardsize 7", "play b D4"):
        assert ask(command) == "="
    shown = ask("showboard")
    begin, head, *lines, total = ask("kata-benchmark 3").split("\n")
    assert [begin, head] == ["=", "7x7, no network, 3 visits for each of 10 positions"]
    speed = r"(\d+) visits in \d+\.\d\d s, \d+ visits/s, 0 evaluations, 0 evaluations/s"
    found = [re.fullmatch(rf"{number}/10, (\d+) moves played: {speed}", line).groups()
             for number, line in enumerate(lines, 1)]  # fmt: skip
    assert found == [(str(moves), "3") for moves in range(10)]
    assert re.fullmatch(f"together: {speed}", total)[1] == "30"
    assert ask("showboard") == shown


def test_chat_is_answered_though_it_is_not_listed(ask):
    """Newer versions of kgsGtp break down where it is."""
    assert "kgs-chat" not in ask("list_commands").split() and "kgs-chat" not in ask("help").split()
    assert re.fullmatch("= [A-J][1-9]", ask("genmove b"))
    said = ask("kgs-chat private someone what do you think?")
    form = r"= I am Keima \S+, a Go engine without a network\. My win rate was \d+\.\d% at my last move, \d+ visits\."
    assert re.fullmatch(form, said)
    assert ask("kgs-chat private") == "? syntax error: expected kgs-chat KIND NAME [WORDS...]"


def test_what_was_thought_is_forgotten(make_player, tiny_network):
    """The tree, and what the network has answered."""
    player = make_player(PlayOptions(visits=8, seconds=0.0), network=tiny_network)
    host = Host(COMMANDS)
    host.provide(player)

    def effort(*before):
        """Playouts and evaluations that a move takes after some commands."""
        for command in before:
            assert COMMANDS.answer(host, command) == "=\n\n"
        assert re.fullmatch("= [A-J][1-9]\n\n", COMMANDS.answer(host, "reg_genmove b"))
        return player.last_genmove_report.playouts_this_run, player.last_genmove_report.evaluations

    assert effort() == (8, 8)
    assert effort() == (0, 0), "the tree is kept"
    assert effort("komi 6.5") == (8, 8)
    assert effort("komi 7.5") == (8, 0), "the network's answers are"
    assert effort("clear_cache") == (8, 8)
