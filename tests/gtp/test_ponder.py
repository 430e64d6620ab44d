"""Pondering in the real process: it works while nobody asks, and nobody notices but by its moves."""

import re
import signal
import sys
import time

import pytest

from tests.gtp.process import ANSWER_S, Engine

MOVE = re.compile("= [A-J][1-9]")


def cpu_s(engine):
    return float(engine.ask("cputime")[2:])


@pytest.fixture
def engine():
    with Engine("--seconds", "0.1", "--ponder", "--threads", "1") as started:
        started.ready()
        yield started


def test_it_works_between_our_move_and_the_opponents(engine):
    assert MOVE.fullmatch(engine.ask("genmove b"))
    before_s = cpu_s(engine)
    time.sleep(0.5)
    assert cpu_s(engine) > before_s + 0.1
    # What only looks at the game does not end it, nor does the clock.
    for command in ("showboard", "get_komi", "time_left b 100 0", "name", "printsgf"):
        assert engine.ask(command).startswith("=")
    before_s = cpu_s(engine)
    time.sleep(0.5)
    assert cpu_s(engine) > before_s + 0.1
    assert engine.ask("komi 6.5") == "="
    before_s = cpu_s(engine)
    time.sleep(0.5)
    assert cpu_s(engine) < before_s + 0.1


def test_stop_ends_it(engine):
    assert MOVE.fullmatch(engine.ask("genmove b"))
    assert engine.ask("stop") == "="
    before_s = cpu_s(engine)
    time.sleep(0.5)
    assert cpu_s(engine) < before_s + 0.1


def test_a_whole_conversation_has_one_answer_a_command(engine):
    commands = "1 genmove b\n2 play w pass\n3 genmove b\n4 undo\n5 final_score\n6 genmove w\n7 showboard\n8 genmove b\n"
    engine.send(commands)
    replies = [engine.reply() for _ in range(8)]
    assert [re.match(r"=(\d)", reply)[1] for reply in replies] == list("12345678")
    engine.send("# interrupt\n9 genmove w\n")
    assert engine.reply().startswith("=9 ")
    status, rest, errors = engine.end()
    assert (status, rest, "Traceback" in errors) == (0, "", False)


@pytest.mark.parametrize("way", ["quit", "eof", "sigterm"])
def test_every_end_ends_it_at_once(engine, way):
    if way == "sigterm" and sys.platform == "win32":
        pytest.skip("POSIX signals")
    assert MOVE.fullmatch(engine.ask("genmove b"))
    time.sleep(0.2)
    begin = time.perf_counter()
    if way == "quit":
        assert engine.ask("quit") == "="
    elif way == "eof":
        engine.process.stdin.close()
    else:
        engine.process.send_signal(signal.SIGTERM)
    assert engine.process.wait(ANSWER_S) == (128 + signal.SIGTERM if way == "sigterm" else 0)
    assert time.perf_counter() - begin < 1.0
