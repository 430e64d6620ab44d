"""Pondering as a client sees it: which commands end it, and a process that ponders answers and ends like any other."""

import re
import signal
import sys
from dataclasses import replace

import pytest

from engine.config import PlayOptions
from engine.go.geometry import BLACK
from gtp.commands import COMMANDS
from gtp.host import Host
from tests.gtp.process import ANSWER_S, Engine
from tests.playing import is_pondering, ponder_to_the_end

MOVE = re.compile("= [A-J][1-9]")
PONDERING = PlayOptions(visits=8, seconds=0.0, ponder=True, ponder_visits=10**9)


@pytest.fixture
def player(make_player):
    return make_player(PONDERING)


@pytest.fixture
def host(player):
    """What commands act on, with a player that ponders without an end on the move behind its own."""
    found = Host(COMMANDS)
    found.provide(player)
    assert MOVE.fullmatch(answer(found, "genmove b"))
    assert is_pondering()
    return found


def answer(host, line):
    """One reply without its empty line."""
    return COMMANDS.answer(host, line)[:-2]


LOOKS = ("showboard", "get_komi", "time_left b 100 0", "name", "printsgf", "cputime", "list_commands", "help genmove")


@pytest.mark.parametrize("command", LOOKS)
def test_what_only_looks_at_the_game_leaves_it_running(host, player, command):
    assert answer(host, command).startswith("=")
    assert is_pondering()


@pytest.mark.parametrize("command", ["stop", "komi 6.5", "play w pass", "undo", "clear_board", "final_score"])
def test_what_changes_the_game_or_asks_for_it_ends_it(host, player, command):
    assert answer(host, command).startswith("=")
    assert not is_pondering()


def test_it_goes_on_after_the_next_move(host, player):
    assert answer(host, "play w pass") == "="
    assert MOVE.fullmatch(answer(host, "genmove b"))
    assert is_pondering()


SEARCHES = ("kata-search", "kata-search_cancellable", "kata-search_analyze", "kata-search_analyze_cancellable")


@pytest.mark.parametrize("command", SEARCHES)
def test_it_begins_when_a_move_that_was_said_is_played(make_player, command):
    player, host = make_player(PONDERING), Host(COMMANDS)
    host.provide(player)
    answer(host, "time_settings 600 0 0")
    move = answer(host, f"{command} b").split()[-1]
    before, is_early = player.clock.budget(BLACK, 0, 81), is_pondering()
    assert answer(host, f"play b {move}") == "="
    assert is_pondering() and not is_early
    assert player.clock.budget(BLACK, 0, 81).soft_s < before.soft_s


@pytest.mark.parametrize(
    "between",
    ["play b {other}", "play w {move}", "komi 5.5\nplay b {move}", "reg_genmove b\nundo", "clear_board\nplay b {move}"],
)
def test_it_does_not_when_another_is_played_or_the_game_changed(make_player, between):
    player, host = make_player(PONDERING), Host(COMMANDS)
    host.provide(player)
    move = answer(host, "kata-search b").split()[-1]
    for line in between.format(move=move, other="A1" if move != "A1" else "A2").split("\n"):
        answer(host, line)
    assert not is_pondering()


def test_the_next_move_begins_with_what_was_found(make_player):
    player = make_player(replace(PONDERING, ponder_visits=200))
    host = Host(COMMANDS)
    host.provide(player)
    answer(host, "genmove b")
    ponder_to_the_end()
    answer(host, "genmove w")
    assert player.last_genmove_report.visits == 200 and player.last_genmove_report.playouts_this_run == 0


@pytest.fixture
def pondering():
    """A process of its own that ponders on its first move without an end."""
    with Engine("--visits", "8", "--ponder", "--ponder-visits", "1000000000", "--threads", "1") as started:
        started.ready()
        assert MOVE.fullmatch(started.ask("genmove b"))
        yield started


def test_a_whole_conversation_has_one_answer_a_command(engine):
    for command in ("kata-set-param ponder true", "kata-set-param ponder-visits 1000000000"):
        assert engine.ask(command) == "="
    commands = "1 genmove b\n2 play w pass\n3 genmove b\n4 undo\n5 final_score\n6 genmove w\n7 showboard\n8 genmove b\n"
    engine.send(commands)
    replies = [engine.reply() for _ in range(8)]
    assert [re.match(r"=(\d)", reply)[1] for reply in replies] == list("12345678")
    engine.send("# interrupt\n9 genmove w\n")
    assert engine.reply().startswith("=9 ")
    assert engine.ask("kata-set-param ponder-visits 0") == "="
    assert "Traceback" not in b"".join(engine.errors).decode()


@pytest.mark.parametrize("way", ["quit", "eof", "sigterm"])
def test_every_end_ends_it(pondering, way):
    if way == "sigterm" and sys.platform == "win32":
        pytest.skip("POSIX signals")
    if way == "quit":
        assert pondering.ask("quit") == "="
    elif way == "eof":
        pondering.process.stdin.close()
    else:
        pondering.process.send_signal(signal.SIGTERM)
    assert pondering.process.wait(ANSWER_S) == (128 + signal.SIGTERM if way == "sigterm" else 0)
