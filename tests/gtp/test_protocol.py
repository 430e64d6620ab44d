"""The text layer: lines, ids, replies, and the registry that checks arguments by the functions themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtp.protocol import (
    MAX_ID,
    MAX_MESSAGE,
    CommandError,
    Registry,
    clean,
    failure,
    integer,
    number,
    parse,
    success,
    switch,
)


@pytest.mark.parametrize(
    ("line", "cleaned"),
    [
        ("name", "name"),
        ("  name  ", "name"),
        ("play\tb\tD4", "play b D4"),
        ("name\r\n", "name"),
        ("na\x07me\x00\x1b", "name"),
        ("na\x7fme", "name"),
        ("name # who?", "name"),
        ("#name", ""),
        ("# interrupt", ""),
        ("\r", ""),
        ("", ""),
    ],
)
def test_clean_drops_control_characters_and_comments(line, cleaned):
    assert clean(line) == cleaned


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        ("name", ("", "name", [])),
        ("5 name", ("5", "name", [])),
        ("  007   name  ", ("007", "name", [])),
        ("0 quit", ("0", "quit", [])),
        (f"{MAX_ID} name", (str(MAX_ID), "name", [])),
        (f"{MAX_ID + 1} name", ("", str(MAX_ID + 1), ["name"])),
        ("9" * 5000 + " name", ("", "9" * 5000, ["name"])),
        ("-1 name", ("", "-1", ["name"])),
        ("+1 name", ("", "+1", ["name"])),
        ("1.0 name", ("", "1.0", ["name"])),
        ("٣ name", ("", "٣", ["name"])),
        ("5", ("5", "", [])),
        ("5name", ("", "5name", [])),
        ("1 2 name", ("1", "2", ["name"])),
        ("play b D4\r", ("", "play", ["b", "D4"])),
        ("3 play  white\tpass # thanks", ("3", "play", ["white", "pass"])),
        ("loadsgf a\u00a0b.sgf", ("", "loadsgf", ["a\u00a0b.sgf"])),
    ],
)
def test_parse_splits_id_name_and_arguments(line, request_):
    assert parse(line) == request_


@pytest.mark.parametrize("line", ["", " ", "\t", "\r", "#", "# 5 name", "  # comment", "\x00\x01"])
def test_lines_without_a_command_are_none(line):
    assert parse(line) is None


@pytest.mark.parametrize(
    ("id_", "text", "reply"),
    [
        ("", "", "=\n\n"),
        ("7", "", "=7\n\n"),
        ("", "Keima", "= Keima\n\n"),
        ("12", "D4", "=12 D4\n\n"),
        ("", "a\nb\n", "= a\nb\n\n"),
        ("", "a\n\n \nb", "= a\nb\n\n"),
        ("", "\n   A B\n 1 . .\n", "= \n   A B\n 1 . .\n\n"),
        ("", "tab\there\x00\r", "= tab here\n\n"),
    ],
)
def test_success(id_, text, reply):
    assert success(id_, text) == reply


def test_failure_is_one_short_line():
    assert failure("", "unknown command") == "? unknown command\n\n"
    assert failure("3", "a\nb\tc\r\n") == "?3 a b c\n\n"
    assert failure("", "") == "? failed\n\n"
    assert len(failure("", "x" * 10**6)) == MAX_MESSAGE + len("? \n\n")


@given(st.text(), st.sampled_from(["", "0", "2147483647"]))
def test_a_reply_ends_at_its_empty_line_and_nowhere_else(text, id_):
    for reply in (success(id_, text), failure(id_, text)):
        assert reply[0] in "=?"
        assert reply.endswith("\n\n")
        assert "\n\n" not in reply[:-2]
        assert reply[1 : 1 + len(id_)] == id_


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("19", 19), ("-3", -3), ("+7", 7)])
def test_integer(text, value):
    assert integer(text) == value


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e3", "0x10", "1_0", "٣", "--1", "9" * 5000])
def test_integer_refuses(text):
    with pytest.raises(CommandError, match=r"^syntax error"):
        integer(text)


@pytest.mark.parametrize(("text", "value"), [
    ("6.5", 6.5), ("6.50", 6.5), ("-7", -7.0), (".5", 0.5), ("0", 0.0), ("2.123456789012", 2.123456789012),
    ("12.3000000000001", 12.3000000000001), ("1e-05", 1e-5), ("1E3", 1000.0),
])  # fmt: skip
def test_number(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    "text", ["", ".", "nan", "inf", "-inf", "1e10", "1e400", "1e", "9" * 50, "7,5", "1_0", "0x1p3", "٣.٥"]
)
def test_number_refuses(text):
    with pytest.raises(CommandError, match=r"^syntax error"):
        number(text)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("FALSE", False)])
def test_switch(text, value):
    assert switch("ponder", text) is value


@pytest.mark.parametrize("text", ["", "yes", "1", "truee"])
def test_switch_refuses(text):
    with pytest.raises(CommandError, match=rf"^syntax error: ponder is '{text}', expected true or false$"):
        switch("ponder", text)


@pytest.fixture
def registry() -> Registry:
    commands = Registry()

    @commands.command("echo")
    def echo(host, *word):
        """Say it again."""
        return " ".join(word)

    @commands.command("pair")
    def pair(host, first, second="none"):
        """Say one or two things."""
        return f"{first} {second}"

    @commands.command("break")
    def break_(host, kind):
        """Fail."""
        raise {"command": CommandError, "value": ValueError, "bug": ZeroDivisionError}[kind]("illegal move")

    @commands.command("host")
    def host_(host):
        """Return the host."""
        host.append(1)

    return commands


@pytest.fixture
def telling(registry) -> Registry:
    """Commands that write while they run."""

    @registry.command("count", open_ended=True)
    def count(host, upto, *, reply):
        """Count, and fail beyond nine."""
        if not upto.isdigit():
            raise CommandError("no number")
        reply.begin()
        for counted in range(int(upto)):
            if counted == 9:
                raise ValueError("too many")
            reply.line(f"{counted}\n\x1b")

    @registry.command("choose")
    def choose(host, *, reply):
        """Say something, then the answer."""
        reply.line("thinking")
        return "play D4"

    return registry


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("count 3", "=\n0\n1\n2\n\n"),
        ("12 count 1", "=12\n0\n\n"),
        ("count 0", "=\n\n"),
        ("7 count x", "?7 no number\n\n"),
        ("count", "? syntax error: expected count UPTO\n\n"),
        ("3 choose", "=3\nthinking\nplay D4\n\n"),
    ],
)
def test_a_reply_may_be_written_while_its_command_runs(telling, line, reply):
    assert telling.answer(None, line) == reply
    written = []
    rest = telling.answer(None, line, written.append)
    assert "".join([*written, rest]) == reply
    assert reply.startswith("?") or all(text.endswith("\n") for text in written)


def test_a_failure_in_the_middle_of_a_reply_ends_it(telling, capsys):
    assert telling.answer(None, "5 count 10") == "=5\n" + "".join(f"{number}\n" for number in range(9)) + "\n"
    assert capsys.readouterr().err == "count: too many\n"


def test_writing_to_nobody_ends_the_command(telling):
    def write(_):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        telling.answer(None, "count 5", write)


def test_commands_that_the_next_line_ends_are_known(telling):
    assert telling.is_open_ended("5 count 3 # up")
    for line in ("choose", "5 choose", "nothing", "", "# count", "5"):
        assert not telling.is_open_ended(line)
    assert telling["count"].usage == "count UPTO"


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("echo", "=\n\n"),
        ("1 echo a  b", "=1 a b\n\n"),
        ("pair x", "= x none\n\n"),
        ("pair x y", "= x y\n\n"),
        ("pair", "? syntax error: expected pair FIRST [SECOND]\n\n"),
        ("4 pair x y z", "?4 syntax error: expected pair FIRST [SECOND]\n\n"),
        ("Echo", "? unknown command, did you mean echo?\n\n"),
        ("3 ecoh", "?3 unknown command, did you mean echo?\n\n"),
        ("x" * 70000, "? unknown command\n\n"),
        ("8 nothing", "?8 unknown command\n\n"),
        ("-1 echo", "? unknown command\n\n"),
        ("6", "?6 syntax error: an id without a command\n\n"),
        ("break command", "? illegal move\n\n"),
        ("2 break value", "?2 illegal move\n\n"),
        ("# echo", None),
    ],
)
def test_answer(registry, line, reply):
    assert registry.answer(None, line) == reply


def test_a_bug_is_answered_and_reported_on_standard_error(registry, capsys):
    assert registry.answer(None, "9 break bug") == "?9 internal error: ZeroDivisionError: illegal move\n\n"
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    assert captured.out == ""


def test_the_host_reaches_the_command(registry):
    host = []
    registry.answer(host, "host")
    assert host == [1]


def test_usage_comes_from_the_function(registry):
    assert [command.usage for command in registry] == ["echo [WORD...]", "pair FIRST [SECOND]", "break KIND", "host"]
    assert registry["pair"].summary == "Say one or two things."
    assert "echo" in registry
    assert "name" not in registry


def test_families_join_in_order_and_clash(registry):
    other = Registry()
    other.command("name")(lambda host: "x")
    assert [command.name for command in Registry(other, registry)][:2] == ["name", "echo"]
    with pytest.raises(ValueError, match="'name' is registered twice"):
        Registry(other, other)


@given(st.text())
def test_any_line_gets_one_reply_or_none(line):
    reply = Registry().answer(None, line)
    assert reply is None or (reply.startswith("?") and reply.endswith("\n\n"))
