"""``--log-file``: what it keeps, and that its troubles are its own."""

import io
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gtp.log import ERROR, Log, LoggedStream
from tests.gtp.process import ROOT, start

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ([<>!-])(?: (.*))?")


def lines_of(path: Path) -> list[tuple[str, str]]:
    """Signs and texts of a log; every line must have a time."""
    return [(found[1], found[2] or "") for line in path.read_text().splitlines() if (found := LINE.fullmatch(line))]


def talk(path: Path | str, commands: bytes = b"1 name\n\nnonsense\nhelp name\r\nquit\n"):
    process = start("--log-file", str(path))
    output, errors = process.communicate(commands, timeout=60)
    return process.returncode, output, errors.decode()


def test_every_line_in_and_out_is_kept_with_its_time(tmp_path):
    path = tmp_path / "a b.log"
    status, output, _ = talk(path)
    lines = lines_of(path)
    assert len(lines) == len(path.read_text().splitlines())
    assert [text for sign, text in lines if sign == "<"] == ["1 name", "", "nonsense", "help name", "quit"]
    replies = [text for sign, text in lines if sign == ">"]
    assert replies == [line.rstrip() for line in output.decode().split("\n") if line]
    assert lines[0][1].startswith("Keima ") and lines[-1][1].endswith(f"ended with status {status}")


def test_a_log_is_added_to_and_holds_standard_error(tmp_path):
    path = tmp_path / "log"
    path.write_text("from before\n")
    assert talk(path, b"vers")[0] == 0
    assert path.read_text().startswith("from before\n")
    assert {("<", "vers"), (">", "? unknown command, did you mean version?")} <= set(lines_of(path))


def test_bytes_that_are_no_text_and_control_characters_do_no_harm(tmp_path):
    path = tmp_path / "log"
    assert talk(path, b"\xff\x00\x1b[2Jname\nname\nquit\n")[1].endswith(b"= Keima\n\n=\n\n")
    assert ("<", "\\xff[2Jname") in lines_of(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_a_full_disk_costs_the_log_and_is_told_once():
    status, output, errors = talk("/dev/full")
    assert (status, output.count(b"\n\n")) == (0, 4)
    assert errors.count("cannot be written") == 1 and "/dev/full" in errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_a_full_disk_that_nobody_can_be_told_of_costs_nothing_either(monkeypatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "__stderr__", full)
        log = Log(Path("/dev/full"))
        for _ in range(3):
            log.note(ERROR, "x")
        with suppress(OSError):
            full.close()


def test_a_log_that_cannot_be_opened_ends_the_start_with_one_line(tmp_path):
    status, output, errors = talk(tmp_path)
    assert (status, output) == (1, b"")
    assert errors.startswith(f"Error: log file {tmp_path}: cannot be written (") and errors.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell's descriptors")
def test_a_log_never_takes_the_number_of_a_closed_descriptor(tmp_path):
    path = tmp_path / "log"
    command = f"{sys.executable} -m gtp.cli gtp --weights none --log-file {path} 2>&-"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, input=b"name\nquit\n", capture_output=True, timeout=60)
    assert done.stdout == b"= Keima\n\n=\n\n"
    assert len(lines_of(path)) == len(path.read_text().splitlines()) == 6


def test_standard_error_is_kept_by_whole_lines(tmp_path):
    log, stream = Log(tmp_path / "log"), io.StringIO()
    logged = LoggedStream(stream, log)
    print("one", "two", sep="\n", file=logged, flush=True)
    print("thr", end="", file=logged)
    assert [text for _, text in lines_of(tmp_path / "log")] == ["one", "two"]
    print("ee", file=logged)
    assert lines_of(tmp_path / "log")[2:] == [(ERROR, "three")]
    assert stream.getvalue() == "one\ntwo\nthree\n"
    assert not logged.isatty()
