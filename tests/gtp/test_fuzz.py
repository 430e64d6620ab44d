"""The fuzzer against the real process, briefly; ``python -m bench.reliability fuzz`` does it at length."""

import sys

import pytest

from bench.reliability import fuzz
from bench.reliability.fuzz import LARGEST_ID, Fuzzer, lines, reply_to
from gtp.session import MAX_LINE

LEAST_SPEED = 100.0
"""Lines a second"""


@pytest.mark.parametrize(
    ("line", "due"),
    [
        (b"", None),
        (b" \t\r", None),
        (b"# interrupt", None),
        (b"\x00\x1b", None),
        (b"\xef\xbb\xbf# interrupt", None),
        (b"name", (b"", b"name")),
        (b" 12\tname # why", (b"12", b"name")),
        (b"12name", (b"", b"12name")),
        (b"12", (b"12", b"")),
        (b"%d x" % LARGEST_ID, (b"%d" % LARGEST_ID, b"x")),
        (b"%d x" % (LARGEST_ID + 1), (b"", b"%d" % (LARGEST_ID + 1))),
        (b"q\x01uit", (b"", b"quit")),
        (b" " * (MAX_LINE + 1) + b"name", None),
    ],
)
def test_which_lines_a_reply_is_due_to(line, due):
    assert reply_to(line) == due


def test_the_same_seed_sends_the_same_lines_of_all_kinds():
    some = list(lines(3, 3000))
    assert some == list(lines(3, 3000)) != list(lines(4, 3000))
    assert not any(b"\n" in line or b"/" in line for line in some)
    assert max(map(len, some)) > MAX_LINE
    assert sum(reply_to(line) is None for line in some) > 50
    assert sum(b"genmove" in line for line in some) > 200


@pytest.mark.parametrize(("engine", "count"), [("policy", 2000), ("rollouts", 300), ("network", 300)])
def test_lines_get_their_replies_and_nothing_else(engine, count):
    fuzzer = Fuzzer(11, count, engine)
    fuzzer.run()
    assert fuzzer.faults == [] and fuzzer.sent == count and fuzzer.replies > 0.75 * count


@pytest.mark.slow
def test_a_hundred_thousand_lines_do_too():
    fuzzer = Fuzzer(seed=1, count=100_000)
    fuzzer.run()
    assert fuzzer.faults == [] and fuzzer.sent / fuzzer.seconds > LEAST_SPEED


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('= Keima', end='\\n\\n')", "1 replies missing"),
        ("print('hello', end='\\n\\n')", "not a GTP reply"),
        ("print('=8 Keima', end='\\n\\n')", "expected id '5'"),
        ("print('=5', end='\\n\\n'); print('= more', end='\\n\\n')", "a reply without a command"),
        ("print('=5 \\x1b[0m', end='\\n\\n')", "control characters"),
        ("print('?5 internal error: x', end='\\n\\n')", "an internal error"),
        ("print('=5 Kei')", "an incomplete reply"),
        ("print('=5', end='\\n\\n'); raise ValueError", "exit status 1"),
    ],
)
def test_what_a_process_may_not_do_is_found(monkeypatch, code, message):
    """A process that misbehaves takes the engine's place."""
    program = (sys.executable, "-c", f"import sys; sys.stdin.read()\n{code}")
    sent = [b"name", b"name"] if message == "1 replies missing" else [b"5 name"]
    monkeypatch.setattr(fuzz, "lines", lambda seed, count: iter(sent))
    monkeypatch.setattr(fuzz, "command_line", lambda engine, weights: program)
    monkeypatch.setattr(fuzz, "WARM_UP", ())
    fuzzer = Fuzzer(seed=1, count=1)
    fuzzer.run()
    (fault,) = fuzzer.faults
    assert message in fault


def test_a_process_that_falls_silent_is_killed(monkeypatch):
    monkeypatch.setattr(fuzz, "SILENCE_S", 1.0)
    monkeypatch.setattr(fuzz, "WARM_UP", ())
    program = (sys.executable, "-c", "import time; time.sleep(600)")
    monkeypatch.setattr(fuzz, "command_line", lambda engine, weights: program)
    fuzzer = Fuzzer(seed=1, count=5)
    fuzzer.run()
    assert fuzzer.faults[0] == "no reply for 1 s" and "5 replies missing" in fuzzer.faults[1]
