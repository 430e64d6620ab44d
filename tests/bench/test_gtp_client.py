"""The GTP client with engines that work, violate GTP, or crash."""

import sys
import time
from pathlib import Path

import pytest

from bench.match.gtp_client import EngineDied, EngineGarbled, EngineRefused, EngineTimeout, GtpClient
from bench.process_memory import PeakMemory

ENGINE = Path(__file__).parents[1] / "data" / "gtp_engine.py"
LIMIT_S = 60.0


def script(text: str) -> list[str]:
    """Command of an engine that is a few lines of Python."""
    return [sys.executable, "-c", text]


ECHO = """
import sys
for line in sys.stdin:
    number, *words = line.split()
    if words == ["fail"]:
        print(f"?{number} no such thing\\n", flush=True)
    elif words == ["die"]:
        print("out of memory", file=sys.stderr)
        sys.exit(7)
    elif words == ["rant"]:
        sys.exit("x" * 100000)
    elif words == ["sleep"]:
        import time
        time.sleep(600)
    elif words == ["noise"]:
        print(f"loading\\n\\n={number}\\tquiet\\x07 now\\r\\n\\r", flush=True)
    elif words == ["lines"]:
        print(f"={number} one\\n  two\\nthree\\n", flush=True)
    elif words == ["bare"]:
        print("= no id\\n", flush=True)
    elif words == ["other"]:
        print("=77 D4\\n", flush=True)
    elif words == ["list_commands"]:
        print(f"={number} genmove\\ntime_left\\n", flush=True)
    elif words == ["flood"]:
        sys.stderr.write("x" * 1000000 + "\\nlast\\n")
        print(f"={number}\\n", flush=True)
    else:
        print(f"={number} {' '.join(words)}\\n", flush=True)
        if words == ["quit"]:
            break
"""


ENDLESS = """
import os, sys
number, place, head, lines = sys.stdin.readline().split()
if place == "later":
    print(f"={number}\\n", flush=True)
try:
    for _ in range(int(lines)):
        os.write(2 if place == "stderr" else 1, head.encode() + b" " + b"x" * 1000000 + b"\\n")
except OSError:
    pass
"""
"""Asked ``PLACE HEAD LINES``, it writes lines of a megabyte that begin with HEAD, and no answer, or before it."""


@pytest.fixture
def echo():
    with GtpClient(script(ECHO)) as client:
        yield client


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("hello there", "hello there"),
        ("lines", "one\n  two\nthree"),
        ("bare", "no id"),
        ("flood", ""),
    ],
)
def test_answers(echo, command, answer):
    assert echo.ask(command, LIMIT_S) == answer
    assert echo.ask("next", LIMIT_S) == "next"
    assert 0 < echo.last_answer_s < LIMIT_S


def test_output_before_an_answer_is_counted_and_control_characters_are_dropped(echo):
    assert echo.ask("noise", LIMIT_S) == "quiet now"
    assert echo.stray_lines == 1


def test_a_refusal_leaves_the_engine_usable(echo):
    with pytest.raises(EngineRefused, match="no such thing"):
        echo.ask("fail", LIMIT_S)
    assert echo.ask("on", LIMIT_S) == "on"
    assert echo.is_alive


def test_death_tells_status_and_last_words(echo):
    with pytest.raises(EngineDied, match=r"status 7 at 'die'; last words: out of memory"):
        echo.ask("die", LIMIT_S)
    assert echo.broken
    with pytest.raises(EngineDied):
        echo.ask("more", LIMIT_S)


def test_no_answer_in_time(echo):
    start = time.perf_counter()
    with pytest.raises(EngineTimeout, match="'sleep'"):
        echo.ask("sleep", 0.3)
    assert time.perf_counter() - start >= 0.3
    echo.close()
    assert not echo.is_alive


@pytest.fixture
def endless():
    with GtpClient(script(ENDLESS)) as client:
        yield client
        client.kill()
        assert not any(reader.is_alive() for reader in client._readers)


@pytest.fixture
def peak_mib():
    """What tells the most memory that has been taken since."""
    return PeakMemory().grown_mib


def test_an_answer_without_end_is_no_answer(endless):
    with pytest.raises(EngineGarbled, match="answer to 'stdout = 999999' is longer than 4 MiB"):
        endless.ask("stdout = 999999", LIMIT_S)
    assert endless.broken


@pytest.mark.parametrize("place", ["stdout", "stderr"])
def test_an_engine_that_says_much_instead_of_an_answer_takes_bounded_memory(endless, peak_mib, place):
    with pytest.raises(EngineDied, match="ended with status 0"):
        endless.ask(f"{place} thinking 300", LIMIT_S)
    assert peak_mib() < 150


def test_what_is_not_read_waits_in_bounded_memory_and_is_not_lost(endless, peak_mib):
    assert endless.ask("later thinking 300", LIMIT_S) == ""
    for _ in range(300):
        while (line := endless.read_line(LIMIT_S)) == "":
            pass
        assert line.startswith("thinking x")
    assert peak_mib() < 150


def test_last_words_are_few(echo):
    with pytest.raises(EngineDied, match="last words: x") as caught:
        echo.ask("rant", LIMIT_S)
    assert len(str(caught.value)) < 1000


def test_an_answer_with_another_id_is_no_answer(echo):
    with pytest.raises(EngineGarbled, match="'77'"):
        echo.ask("other", LIMIT_S)


def test_listed_commands(echo):
    assert echo.lists("time_left", LIMIT_S)
    assert not echo.lists("time", LIMIT_S)


def test_an_engine_that_knows_no_list_of_commands_lists_none():
    """A match ended in a traceback."""
    with GtpClient(script(ECHO.replace('"list_commands"', '"-"').replace('"fail"', '"list_commands"'))) as client:
        assert not client.lists("kata-set-rules", LIMIT_S)
        assert client.ask("on", LIMIT_S) == "on"


def test_close_twice(echo):
    echo.close()
    echo.close()
    assert not echo.is_alive


def test_kill_takes_the_children_along():
    if sys.platform == "win32":
        pytest.skip("process groups are a POSIX thing")
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ECHO!r}])"
    client = GtpClient(script(child))
    assert client.ask("on", LIMIT_S) == "on", "the child's child answers"
    client.kill()
    assert not any(reader.is_alive() for reader in client._readers)


def test_a_missing_program_is_named():
    with pytest.raises(EngineDied, match="no-such-engine"):
        GtpClient("no-such-engine --gtp")


@pytest.mark.parametrize("command", ["", "   ", []])
def test_an_empty_command_line_is_refused(command):
    with pytest.raises(ValueError, match="empty command line"):
        GtpClient(command)


def test_words_may_be_quoted():
    if sys.platform == "win32":
        pytest.skip("Windows splits command lines itself")
    with GtpClient(f"'{sys.executable}' '{ENGINE}' --seed 3") as client:
        assert client.ask("name", LIMIT_S) == "Random"


@pytest.mark.clients
def test_gnu_go_answers(gnugo):
    with GtpClient([gnugo, "--mode", "gtp"]) as client:
        assert client.ask("name", LIMIT_S) == "GNU Go"
        assert client.lists("genmove", LIMIT_S)
        with pytest.raises(EngineRefused, match="unacceptable size"):
            client.ask("boardsize 99", LIMIT_S)
