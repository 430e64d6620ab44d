"""The real process: how it starts, is interrupted, takes bad input and ends."""

import os
import random
import re
import subprocess
import sys

import pytest

from gtp.session import MAX_LINE, LineReader
from tests.gtp.process import ANSWER_S, ROOT, Engine, loading_for_ever, start

REPLY = re.compile(r"[=?][0-9]*( .*)?")
"""First line of a reply"""


def assert_gtp(output: str) -> int:
    """Whether an output is replies and nothing else; returns their number."""
    assert output == "" or output.endswith("\n\n")
    replies = output.split("\n\n")[:-1]
    for reply in replies:
        assert REPLY.fullmatch(reply.split("\n")[0]), reply
    return len(replies)


WHILE_LOADING = (
    ("boardsize 9", "="),
    ("rectangular_boardsize 9 9", "="),
    ("boardsize 26", "? unacceptable size: 26, expected 2 to 25"),
    ("query_boardsize", "= 9"),
    ("clear_board", "="),
    ("komi 7", "="),
    ("komi 7.3", "? syntax error: komi is 7.3, expected whole or half points between -1000 and 1000"),
    ("get_komi", "= 7"),
    ("kata-set-rules japanese", "="),
    ("kata-set-rule ko POSITIONAL", "="),
    ("kgs-rules chinese", "="),
    ("time_settings 0 0 0", "="),
    ("kata-time_settings none", "="),
    ("time_left b 0 0", "="),
    ("fixed_handicap 2", "= C3 G7"),
    ("clear_board", "="),
    ("place_free_handicap 4", "= C3 G7 C7 G3"),
    ("clear_board", "="),
    ("set_free_handicap C3 G3", "="),
    ("set_position b E5 w D5", "="),
    ("gogui-title", "= Keima"),
    ("gogui-rules_side_to_move", "= black"),
    ("clear_board", "="),
    ("gogui-setup b E5 w D5", "="),
    ("gogui-setup_player w", "="),
    ("gogui-play_sequence w C3 b C4", "="),
    ("play w E5", "? illegal move"),
    ("play w G7", "="),
    ("undo", "="),
    ("gg-undo 2", "="),
    ("gg-undo", "? cannot undo"),
)
"""Changes of the game that need no board, and their replies"""


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_cut_at_newlines_wherever_the_chunks_end(size):
    data = b"name\r\n\n5 version\n" + b"x" * 20 + b"\nrest"
    reader = LineReader()
    lines = [line for i in range(0, len(data), size) for line in reader.feed(data[i : i + size])]
    assert lines == [b"name\r", b"", b"5 version", b"x" * 20]
    assert reader.rest == b"rest"


def test_a_long_line_takes_bounded_memory():
    reader = LineReader()
    for _ in range(40):
        assert reader.feed(b"x" * MAX_LINE) == []
    assert len(reader.rest) == MAX_LINE + 1
    first, second = reader.feed(b"\nname\n")
    assert (len(first), second) == (MAX_LINE + 1, b"name")


@pytest.mark.parametrize("library", ["numba", "numpy", "torch"])
def test_who_are_you_and_the_game_are_answered_before_anything_heavy_is_there(tmp_path, library):
    """Clients gave engines up that were silent while a library was being imported, or kernels compiled."""
    with Engine(**loading_for_ever(tmp_path, library)) as engine:
        assert engine.ask("name") == "= Keima"
        assert engine.ask("list_commands").startswith("= protocol_version\n")
        assert engine.ask("known_command genmove") == "= true"
        for command, reply in WHILE_LOADING:
            assert (command, engine.ask(command)) == (command, reply)
        engine.send("kata-analyze b 10\n")
        engine.send("version\n")
        assert engine.reply() == "=" and engine.reply().startswith("= ")


def test_pipelined_commands_are_answered_in_order_while_loading_and_nothing_else_is_said():
    """Numba tells of every kernel it loads, and Python of every warning."""
    asked = (
        "1 name\n2 boardsize 7\r\n\n# comment\n3 genmove b\n4 version\nnonsense\n5 protocol_version\n"
        "6 showboard\n7 final_score\n8 final_status_list alive\n9 printsgf\n"
    )
    process = start("--visits", "4", PYTHONWARNINGS="always", NUMBA_DEBUG_CACHE="1")
    output, errors = (said.decode() for said in process.communicate(asked.encode(), ANSWER_S))
    begin = r"=1 Keima\n\n=2\n\n=3 [A-G][1-7]\n\n=4 [0-9.]+\n\n\? unknown command\n\n=5 2\n\n=6 "
    assert re.match(begin, output), output
    assert assert_gtp(output) == 10 and "data loaded from" in errors
    assert process.returncode == 0


def test_a_search_is_interrupted_and_still_answered(engine):
    for command in ("kata-set-param visits 0", "kata-set-param seconds 600"):
        assert engine.ask(command) == "="
    engine.search()
    engine.send("# interrupt\n")
    assert re.fullmatch("play [A-J][1-9]", engine.reply().split("\n")[-1])
    # Sent in one piece, the interruption comes before the search has begun.
    engine.send("genmove w\nname\n# interrupt\n")
    assert re.fullmatch("= [A-J][1-9]", engine.reply())
    assert engine.reply() == "= Keima"


def test_an_interruption_of_nothing_is_forgotten(engine):
    """The next search takes its visits; interrupted before it began, it would have one."""
    engine.send("# interrupt\n")
    *_, last, _ = engine.ask("lz-genmove_analyze b 60000").split("\n")
    assert sum(int(visits) for visits in re.findall(r" visits (\d+)", last)) >= 4


@pytest.mark.skipif(sys.platform == "win32", reason="a broken pipe cannot be seen before the next reply")
def test_a_vanished_client_ends_the_process():
    with Engine("--seconds", "600") as engine:
        engine.ready()
        engine.send("genmove b\n")
        engine.process.stdin.close()
        engine.process.stdout.close()
        assert engine.process.wait(ANSWER_S) == 1


@pytest.mark.parametrize(
    ("text", "status", "replies", "message"),
    [
        (b"", 0, 0, ""),
        (b"quit\n", 0, 1, ""),
        (b"name\n", 0, 1, ""),
        (b"name\nquit\nversion\n", 0, 2, ""),
        (b"name\n# bye", 0, 1, ""),
        (b"name\n  \t\r", 0, 1, ""),
        (b"name\nversion", 0, 2, ""),
        (b"name\nvers", 0, 2, ""),
        (b"quit", 0, 1, ""),
        (b"\xef\xbb\xbfname\n", 0, 1, ""),
        (b"name\nquit\nvers", 0, 2, ""),
    ],
)
def test_the_end_of_input(text, status, replies, message):
    process = start()
    output, errors = process.communicate(text, ANSWER_S)
    assert process.returncode == status
    assert assert_gtp(output.decode()) == replies
    assert errors.decode() == (f"keima: {message}\n" if message else "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize(("closed", "status"), [("<&-", 0), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0)])
def test_closed_descriptors_do_no_harm(closed, status):
    command = f"{sys.executable} -m gtp.cli gtp --weights none {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, input=b"name\nquit\n", capture_output=True, timeout=ANSWER_S)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert_gtp(done.stdout.decode())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weights", "nothing"], "unknown network 'nothing'"),
        (["--rules", "chess"], "no rules are called 'chess'"),
        (["--komi", "6.3"], "komi is 6.3"),
        (["--size", "26"], "size is 26, expected 2 to 25"),
        (["--visits", "-1"], "visits is -1, expected 0 to 1000000000"),
        (["--visits", "many"], 'visits is "many", expected a whole number'),
        (["--name", " "], 'name is " ", expected a line of text'),
        (["--name", "Keima\n\n= D4"], "name is "),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_clear_line(options, message):
    process = start(*options)
    output, errors = process.communicate(b"name\nboardsize 9\n", ANSWER_S)
    assert process.returncode != 0
    assert message in errors.decode()
    assert "Traceback" not in errors.decode()
    assert_gtp(output.decode())


@pytest.mark.parametrize("options", [["--rules", "chess"], ["--komi", "6.3"], ["--size", "1"]])
def test_a_wrong_setting_is_told_even_if_nobody_asks_anything(options):
    process = start(*options)
    output, errors = process.communicate(b"", ANSWER_S)
    assert (process.returncode != 0, output) == (True, b"")
    assert errors.decode().count("Error: ") == 1


def test_commands_that_wait_for_a_failed_start_are_refused():
    process = start("--weights", str(ROOT / "pyproject.toml"))
    output, errors = process.communicate(b"name\n7 boardsize 9\nversion\n", ANSWER_S)
    assert output.startswith(b"= Keima\n\n?7 ") and b"of no kind we know" in output
    assert assert_gtp(output.decode()) == 3
    assert process.returncode != 0 and b"of no kind we know" in errors and b"Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
@pytest.mark.parametrize(
    ("command", "asked", "answers"),
    [
        (("gtp", "--weights", "none"), b"list_commands\n" * 40 + b"quit\n", 41),
        (("analysis", "--weights", "none"), b'{"id": "1", "action": "query_version"}\n' * 2000, 2000),
    ],
    ids=["gtp", "analysis"],
)
def test_a_client_may_leave_its_pipes_non_blocking(command, asked, answers):
    """As programs on Node.js do: nothing to read is not the end of the input, a full pipe is not a closed one."""
    (stdin, write), (read, stdout) = os.pipe(), os.pipe()
    for end in (stdin, stdout):
        os.set_blocking(end, False)
    process = subprocess.Popen([sys.executable, "-m", "gtp.cli", *command], cwd=ROOT, stdin=stdin, stdout=stdout)
    for end in (stdin, stdout):
        os.close(end)
    with os.fdopen(write, "wb") as to, os.fdopen(read, "rb") as answered:
        first = asked.index(b"\n") + 1
        to.write(asked[:first])
        to.flush()
        began = answered.readline()
        to.write(asked[first:])
        to.close()
        found = began + answered.read()
    assert process.wait(ANSWER_S) == 0
    assert found.count(b"\n\n" if command[0] == "gtp" else b"\n") == answers


def test_junk_is_answered_and_survived():
    noise = random.Random(1)
    junk = bytes(noise.randrange(256) for _ in range(100_000))
    long_lines = b"x" * 300_000 + b"\n5 " + b"y" * 70_000 + b"\n# " + b"z" * 70_000 + b"\n"
    process = start()
    output, errors = process.communicate(junk + b"\n" + long_lines + b"name\n", ANSWER_S)
    text = output.decode()
    assert_gtp(text)
    assert text.endswith(
        f"? syntax error: a line longer than {MAX_LINE} bytes\n\n"
        f"?5 syntax error: a line longer than {MAX_LINE} bytes\n\n= Keima\n\n"
    )
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.slow
def test_compiling_shows_progress_on_standard_error_alone(tmp_path):
    process = start("--visits", "4", PYTHONWARNINGS="always", KEIMA_CACHE=os.fspath(tmp_path))
    output, errors = process.communicate(b"boardsize 7\ngenmove b\nfinal_score\nquit\n", ANSWER_S)
    assert assert_gtp(output.decode()) == 4
    assert "compiling kernels (once) " in errors.decode()
