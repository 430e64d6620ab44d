"""The end of the real process, whatever it is doing: asked for, by signal, or because the client has gone."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from engine.nets.files.header import expected_input
from engine.play import ahead
from engine.system import jit
from gtp import session
from gtp.session import QUIT
from tests.gtp.process import ANSWER_S, Engine, loading_for_ever, start
from weights import find_network

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and pipes")
HURRY_S = 2 * session.HURRY_S
"""A command that has run for so long is cut short when the end is asked for."""


@pytest.fixture
def searching():
    """An engine in the middle of a search of ten minutes, which keeps a log."""
    with Engine("--seconds", "600") as engine:
        engine.ready()
        engine.search()
        time.sleep(HURRY_S)
        yield engine


def ask_to_end(engine, end):
    """Send a line that asks for the end, or close the input where there is none."""
    engine.send(end)
    if not end:
        engine.process.stdin.close()


def assert_ends(engine, status):
    """The process ends, which by itself it would not: searches here take ten minutes, and loading for ever."""
    found = engine.process.wait(ANSWER_S)
    assert found == status, b"".join(engine.errors).decode()


@pytest.mark.parametrize("line", ["quit", "  7 quit\r", "12\tquit ", "quit # now"])
def test_these_lines_ask_for_the_end(line):
    assert QUIT.fullmatch(line.encode())
    assert not QUIT.fullmatch(b"play b " + line.encode()) and not QUIT.fullmatch(b"e" + line.encode())


@pytest.mark.parametrize("end", ["7 quit\r\n", ""])
def test_asked_to_end_a_search_and_what_waits_behind_it_are_cut_short_and_answered(searching, end):
    """A client that had asked for the name meanwhile waited for the whole search."""
    searching.send("name\ngenmove b\n")
    time.sleep(HURRY_S)
    ask_to_end(searching, end)
    assert_ends(searching, 0)
    output = searching.process.stdout.read().decode()
    assert re.fullmatch(r"(info [^\n]*\n)*play [A-J][1-9]\n\n= Keima\n\n= [A-J][1-9]\n\n(=7\n\n)?", output)


@POSIX
def test_nobody_reads_a_searching_engine_any_more(searching):
    """Its input stays open, as when only the reading half of a client has died."""
    searching.process.stdout.close()
    assert_ends(searching, 1)


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_player_is_being_loaded(tmp_path, number):
    with Engine(**loading_for_ever(tmp_path)) as engine:
        assert engine.ask("name") == "= Keima"
        engine.send("genmove b\n")
        engine.process.send_signal(number)
        assert_ends(engine, 128 + number)


def test_asked_to_end_while_the_player_is_being_loaded(tmp_path):
    with Engine(**loading_for_ever(tmp_path)) as engine:
        engine.send("name\nquit\n")
        assert (engine.reply(), engine.reply()) == ("= Keima", "=")
        assert_ends(engine, 0)


def test_what_a_script_sends_in_one_go_is_answered_in_full():
    """The quit behind a genmove is no reason to hurry, nor is the end of input."""
    process = start("--visits", "40", "--no-early-stop", "--temperature", "0")
    output, _ = process.communicate(b"boardsize 9\ngenmove b\ngenmove w\nquit\n", ANSWER_S)
    assert re.fullmatch(rb"=\n\n= [A-J][1-9]\n\n= [A-J][1-9]\n\n=\n\n", output)


@pytest.mark.parametrize("last", ["quit\n", ""])
@pytest.mark.parametrize("command", ["genmove b", "kata-analyze 10", "lz-genmove_analyze b"])
def test_nobody_waits_for_a_player_that_is_not_wanted_any_more(tmp_path, last, command):
    """A client that changes its mind during the first start need not wait for the compiler."""
    log = tmp_path / "log"
    with Engine("--log-file", str(log), **loading_for_ever(tmp_path)) as engine:
        engine.send(f"boardsize 9\nkomi 7\n{command}\n")
        assert (engine.reply(), engine.reply()) == ("=", "=")
        while command not in log.read_text():  # Noted when it is read.
            time.sleep(0.01)
        time.sleep(HURRY_S)
        ask_to_end(engine, last)
        assert_ends(engine, 0)


@POSIX
def test_nobody_reads_standard_error_any_more():
    """What the search has to say there is lost; the game is not."""
    process = start("--visits", "8", "--search-summary")
    process.stderr.close()
    process.stderr = None
    output, _ = process.communicate(b"genmove b\nname\nplay b Z9\nquit\n", ANSWER_S)
    assert re.fullmatch(rb"= [A-J][1-9]\n\n= Keima\n\n\? [^\n]+\n\n=\n\n", output)
    assert process.returncode == 0


@POSIX
def test_a_torn_kernel_cache_is_mended(tmp_path):
    """A machine that lost its power while kernels were saved must not stay silent for ever."""
    ahead.compile_kernels(expected_input(find_network("default")).encoder)
    copy = tmp_path / jit.FOLDER.name
    shutil.copytree(jit.FOLDER, copy)
    index, data = next(copy.rglob("*.clear-*.nbi")), next(copy.rglob("*.select-*.nbc"))
    index.write_bytes(b"")
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2 // 4096 * 4096] + b"\0")
    for said in (f"kernel cache {copy}: damaged files of select, compiled again", ""):
        with Engine("--visits", "4", KEIMA_CACHE=str(tmp_path)) as engine:
            assert re.fullmatch("= [A-J][1-9]", engine.ask("genmove b"))
            engine.send("quit\n")
            engine.process.wait(ANSWER_S)
        errors = b"".join(engine.errors).decode()
        assert said in errors and errors.count("compiled again") == 2 * bool(said)
        assert ("compil" in errors) == bool(said)


@POSIX
def test_a_client_may_interrupt_by_signal():
    """As GoGui does with engines that tell it their process; without that the same signal ends us."""
    with Engine("--seconds", "600") as engine:
        engine.ready()
        assert engine.ask("gogui-sigint") == f"= {engine.process.pid}"
        for _ in range(2):
            engine.search()
            engine.process.send_signal(signal.SIGINT)
            assert re.fullmatch("play [A-J][1-9]", engine.reply().split("\n")[-1])
        engine.process.send_signal(signal.SIGINT)  # Nothing runs: nothing happens.
        time.sleep(0.2)
        assert engine.ask("name") == "= Keima"
        engine.process.send_signal(signal.SIGTERM)
        assert_ends(engine, 128 + signal.SIGTERM)


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_search_and_files_are_whole(tmp_path, number):
    log, sgf = tmp_path / "log", tmp_path / "game.sgf"
    with Engine("--seconds", "600", "--log-file", str(log)) as engine:
        for command in ("boardsize 9", "play b E5", f"printsgf {sgf}"):
            assert engine.ask(command) == "="
        engine.search("w")
        engine.process.send_signal(number)
        assert_ends(engine, 128 + number)
        _, output, errors = engine.end()
    assert ("play" in output, "Traceback" in errors) == (False, False)
    assert sgf.read_text().endswith(")\n") and ";B[ee]" in sgf.read_text()
    assert log.read_text().splitlines()[-1].endswith(f"ended with status {128 + number}")
    assert any(line.endswith("< lz-genmove_analyze w 60000") for line in log.read_text().splitlines())


@POSIX
def test_the_first_reader_of_a_pipe_may_leave():
    read, write = os.pipe()
    process = start(stdout=write)
    os.close(write)
    os.close(read)
    process.stdin.write(b"name\n")
    process.stdin.flush()
    assert process.wait(ANSWER_S) == 1
    assert "the client no longer reads the replies" in process.stderr.read().decode()
    for pipe in (process.stdin, process.stderr):
        pipe.close()


def test_parameters_can_be_the_first_question():
    """The player is still being loaded then; both imported Numba at once, and the command failed or they deadlocked."""
    command = [sys.executable, "-P", "-m", "gtp.cli", "gtp", "--config", "none", "--weights", "small"]
    done = subprocess.run(command, input=b"kata-get-params\nquit\n", capture_output=True, timeout=120)
    assert done.stdout.startswith(b'= {"'), done.stdout[:300]
