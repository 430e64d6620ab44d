"""A game by the page's requests: moves, the engine's answers, undo, passes, the count, handicap, variations."""

import socket

import pytest

from engine.config import PlayOptions
from gtp.web.connections import listen
from tests.gtp.web.served import Tab, ready, serving


def against_engine(tab, **settings):
    """Begin a game against the engine."""
    tab.post("new", **{"color": "black", "size": 9, **settings})


def board_of(tab):
    """The rows of the board."""
    size = tab.state["size"]
    return [tab.state["board"][row * size : (row + 1) * size] for row in range(size)]


def test_the_engine_answers_a_move(tab):
    against_engine(tab)
    tab.play("E5")
    assert tab.state["number"] == 2 and tab.state["board"].count("w") == 1
    assert [color for _, color, _ in tab.state["path"]] == ["b", "w"]
    assert tab.state["toMove"] == "black" and tab.state["said"].startswith("Move 2: White ")


def test_the_engine_begins_if_it_has_black(tab):
    against_engine(tab, color="white")
    state = tab.wait(lambda state: state["number"] == 1)
    assert state["players"]["black"]["engine"] and not state["players"]["white"]["engine"]


@pytest.mark.parametrize(
    "moves, point, said",
    [
        ("D4", "D4", "D4 is occupied"),
        ("B1 A1", "pass", ""),
        ("A2 J9 B1 J8", "", ""),
        ("C3 D3 B2 E2 C1 D1 D2 C2", "D2", "ko: D2 cannot be retaken now"),
        ("A2 J9 B1", "A1", "suicide: one stone without a liberty at A1"),
    ],
)
def test_a_wrong_move_says_why(tab, moves, point, said):
    tab.play(*moves.split())
    if said:
        before = tab.state["board"]
        assert tab.refused("play", point=tab.index(point)) == said
        assert tab.state["board"] == before


def test_superko_says_why(tab):
    tab.post("new", size=2, rules="tromp-taylor", color="both")
    tab.play("A1", "B1", "B2")
    assert tab.refused("play", point=tab.index("A1")) == "A1 is occupied"
    tab.post("new", size=2, rules="chinese-ogs", color="both")
    tab.play("A1", "B2", "A2", "B1", "A1")
    tab.play("A2")
    assert "superko" in tab.refused("play", point=tab.index("A1"))


def test_captures_and_their_announcement(tab):
    tab.play("A2", "A1", "B1")
    assert tab.state["captures"] == {"black": 1, "white": 0}
    assert tab.state["said"] == "Move 3: Black B1, one stone taken"


def test_undo_takes_both_moves_back_and_keeps_them(tab):
    against_engine(tab)
    tab.play("E5")
    tab.post("play", point=tab.state["board"].index("."))
    tab.wait(lambda state: state["number"] == 4)
    first = tab.state["path"]
    tab.post("undo")
    assert tab.state["number"] == 2 and tab.state["toMove"] == "black" and not tab.state["atEnd"]
    assert tab.state["path"] == first
    tab.post("play", point=tab.state["board"].rindex("."))
    tab.wait(lambda state: state["number"] == 4)
    assert tab.state["atEnd"] and tab.state["path"] != first
    tab.post("goto", node=first[1][0])
    assert len(tab.state["branches"]) == 2


def test_what_a_player_does_while_the_engine_thinks(tmp_path):
    """Its search ends, and its move is not played."""
    with serving(tmp_path, play=PlayOptions(seconds=3600.0, early_stop=False)) as (_, port):
        tab = Tab(port).enter()
        tab.wait(ready)
        for action in ("undo", "resign", "new"):
            against_engine(tab)
            tab.post("play", point=40)
            tab.wait(lambda state: state["engine"]["state"] == "thinking")
            assert tab.refused("play", point=0) == "it is Keima's turn"
            tab.post(action)
            tab.wait(ready)
            assert tab.state["board"].count("w") == 0 and tab.state["number"] == (1 if action == "resign" else 0)
        # A move in another line: the engine thinks about it.
        against_engine(tab)
        tab.post("play", point=40)
        tab.post("goto", node=0)
        tab.post("play", point=41)
        tab.wait(lambda state: state["engine"]["state"] == "thinking" and len(state["path"]) == 1)
        tab.post("undo")


def test_there_may_be_nothing_to_undo(tab):
    assert tab.refused("undo") == "there is no move to take back"


def test_a_click_in_an_old_tab_is_refused(tab):
    other = Tab(tab.port, tab.cookie)
    other.get("/api/state")
    other.state = other.get("/api/state")
    tab.play("E5")
    assert other.refused("play", 409, point=0) == "the game has changed since, perhaps in another tab"
    assert other.state["number"] == 1


def test_a_click_is_not_refused_after_other_changes(tab):
    rev = tab.state["rev"]
    tab.post("hint", on=False)
    assert tab.state["rev"] > rev
    tab.post("play", point=0, rev=rev)


def test_two_passes_begin_the_count_and_dead_stones_can_be_corrected(tab):
    black, white = (f"{column}{row}" for column in "E" for row in range(1, 10)), (f"F{row}" for row in range(1, 10))
    for pair in zip(black, white, strict=True):
        tab.play(*pair)
    tab.play("B2", "C3", "pass", "pass")
    state = tab.wait(lambda state: state["count"] is not None)
    assert state["phase"] == "scoring" and state["dead"] == [tab.index("C3")]
    assert state["count"]["black"] == 45.0 and state["count"]["white"] == 36 + 7.5
    assert state["owners"][0] == 1 and state["owners"][8] == -1
    tab.post("dead", point=tab.index("B2"))
    assert set(tab.state["dead"]) == {tab.index("B2"), tab.index("C3")}
    tab.post("dead", point=tab.index("B2"))
    tab.post("accept")
    assert tab.state["phase"] == "over" and tab.state["result"] == "B+1.5"
    assert tab.refused("resign") == "the game is over"


def test_prisoners_count_under_japanese_rules(tab):
    tab.post("new", size=9, rules="japanese", komi=6.5, color="both")
    for row in range(1, 10):
        tab.play(f"E{row}", f"F{row}")
    tab.play("B2", "C3", "pass", "pass")
    state = tab.wait(lambda state: state["count"] is not None)
    assert state["dead"] == [tab.index("C3")]
    # 36 points less the stone at B2, one of them with the dead stone, which counts again as a prisoner.
    assert state["count"]["black"] == 36.0 and state["count"]["white"] == 27 + 6.5
    assert "prisoners" in state["count"]["text"] and state["count"]["text"].endswith("Black wins by 2.5")


def test_all_stones_are_alive_under_strict_rules(tab):
    tab.post("new", size=5, rules="tromp-taylor", komi=0.5, color="both")
    tab.play("C3", "pass", "pass")
    assert tab.state["phase"] == "scoring" and tab.state["count"]["black"] == 25.0
    assert "alive" in tab.refused("dead", point=tab.index("C3"))


def test_play_continues_before_the_passes(tab):
    tab.play("C3", "D4", "pass", "pass")
    tab.wait(lambda state: state["count"] is not None)
    assert tab.refused("play", point=0).startswith("both players have passed")
    tab.post("continue")
    assert tab.state["phase"] == "play" and tab.state["number"] == 2 and tab.state["toMove"] == "black"
    tab.play("E5")


def test_resigning(tab):
    against_engine(tab)
    tab.post("resign")
    assert tab.state["result"] == "W+R" and tab.state["said"] == "The game is over: White wins by resignation"
    tab.post("continue")
    assert tab.state["phase"] == "play" and tab.state["result"] is None


def test_fixed_handicap(tab):
    against_engine(tab, handicap=4)
    state = tab.wait(lambda state: state["number"] == 1)
    assert state["board"].count("b") == 4 and state["handicap"] == 4


def test_placed_handicap(tab):
    tab.post("new", color="both", handicap=3, handicapStones="placed")
    assert tab.state["placing"] == 3 and tab.state["toMove"] == "black"
    tab.play("C3", "D3")
    assert tab.state["said"] == "Place stone 3 of 3"
    tab.post("undo")
    assert tab.state["placing"] == 2 and tab.state["board"].count("b") == 1
    assert "empty" in tab.refused("play", point=tab.index("C3"))
    tab.play("G7", "E5")
    assert tab.state["placing"] == 0 and tab.state["toMove"] == "white" and tab.state["handicap"] == 3


@pytest.mark.parametrize(
    "body, said",
    [
        ({"size": 26}, "size is 26, expected 2 to 25"),
        ({"size": "9"}, "size is '9', expected a whole number"),
        ({"komi": 0.3}, "komi is 0.3"),
        ({"rules": "mine"}, "no rules are called 'mine'"),
        ({"handicap": 1}, "handicap is 1, expected 0 or 2 to 9"),
        ({"color": "red"}, "color is 'red', expected one of"),
        ({"level": "9p"}, "level is '9p', expected one of 20k"),
        ({"clock": 3}, "clock is 3, expected an object"),
        ({"clock": {"byoSeconds": 5, "incSeconds": 5}}, "clock has byoSeconds and incSeconds"),
    ],
)
def test_wrong_settings_are_refused(tab, body, said):
    assert said in tab.refused("new", **body)


def test_boards_that_the_network_does_not_play(tab):
    against_engine(tab, size=3)
    tab.play("B2")
    assert tab.state["number"] == 2


def test_a_level_that_the_board_does_not_have_is_told(tab):
    tab.post("new", size=9, color="both", level="10k")
    assert tab.state["level"] == "max" and tab.state["warning"].startswith("there is no level 10k on this board")


def test_unknown_actions(tab):
    assert "no action 'fly'" in tab.refused("fly")


def test_the_clock_of_the_side_to_move_runs(tab):
    tab.post("new", color="both", clock={"mainSeconds": 600, "byoSeconds": 30, "byoPeriods": 3})
    assert tab.state["clock"]["black"]["running"] and not tab.state["clock"]["white"]["running"]
    tab.play("C3")
    assert tab.state["clock"]["white"]["running"] and tab.state["clock"]["white"]["seconds"] <= 600
    tab.play("pass", "pass")
    assert not any(one["running"] for one in tab.state["clock"].values())


def test_a_flag_falls(tab):
    tab.post("new", color="both", clock={"mainSeconds": 0.05})
    state = tab.wait(lambda state: state["phase"] == "over")
    assert state["result"] == "W+T" and state["said"] == "The game is over: White wins on time"


def test_the_engine_plays_itself_to_the_end(tab):
    tab.post("new", size=3, color="none", rules="chinese", komi=0.5)
    state = tab.wait(lambda state: state["phase"] == "over")
    assert state["result"] and board_of(tab)


def test_small_packets_are_sent_at_once():
    """Asyncio does so for sockets that name their protocol; Nagle's algorithm made each answer 40 ms later."""
    with listen("127.0.0.1", 0) as heard:
        assert heard.proto == socket.IPPROTO_TCP
