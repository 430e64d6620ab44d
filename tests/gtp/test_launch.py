"""How clients and people start the program: by its installed name, from anywhere, with little or something broken."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.nets.files.header import expected_input
from engine.play import ahead
from gtp.startup import compiling_ahead
from tests.gtp.process import ANSWER_S, ROOT, Engine, start
from weights import find_network

PROGRAM = Path(sys.executable).parent / ("keima.exe" if sys.platform == "win32" else "keima")
installed = pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links and terminals of POSIX")


def launched(program, folder, text=b"name\nquit\n"):
    """What the program says when a client starts it in a folder, with next to nothing in its environment."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "KEIMA_CONFIG", "KEIMA_CACHE") if name in os.environ}
    command = [str(program), "gtp", "--weights", "none"]
    done = subprocess.run(
        command, cwd=folder, env={**kept, "PATH": ""}, input=text, capture_output=True, timeout=ANSWER_S
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@installed
def test_the_program_starts_from_any_folder_and_without_a_search_path(tmp_path):
    """Clients did not find Python programs, which need an interpreter, a path to it and arguments."""
    assert launched(PROGRAM, tmp_path) == b"= Keima\n\n=\n\n"


@installed
@POSIX
def test_the_program_starts_by_a_link_in_a_folder_with_a_space(tmp_path):
    """Paths with a space, and links in folders of programs, broke start scripts."""
    folder = tmp_path / "my programs"
    folder.mkdir()
    link = folder / "go engine"
    link.symlink_to(PROGRAM)
    assert launched(link, tmp_path) == b"= Keima\n\n=\n\n"


@POSIX
@pytest.mark.parametrize("command", ["gtp", "analysis", "doctor"])
def test_a_folder_that_is_gone_is_one_line(tmp_path, command):
    folder = tmp_path / "gone"
    folder.mkdir()
    code = f"import os; os.rmdir({str(folder)!r}); from gtp.cli import main; main()"
    words, pythonpath = [sys.executable, "-c", code, command], {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=os.environ | pythonpath, capture_output=True, timeout=ANSWER_S)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == ("Error: the working folder no longer exists; change to another and start again\n")


@POSIX
def test_at_a_terminal_a_hint_tells_what_to_do():
    """People who started an engine by hand saw nothing, and took it for dead."""
    master, slave = os.openpty()
    command = [sys.executable, "-m", "gtp.cli", "gtp", "--weights", "none"]
    pipes = {"stdin": slave, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=ROOT, **pipes)
    os.close(slave)
    os.write(master, b"name\nquit\n")
    output, errors = process.communicate(timeout=ANSWER_S)
    os.close(master)
    assert output == b"= Keima\n\n=\n\n"
    assert re.fullmatch(r"Keima \S+ speaks GTP\. Type .*\nTo play in a GUI .* gtp\n", errors.decode())


def test_a_broken_library_is_one_readable_line(tmp_path):
    """Engines died with a number, or of what a library lacked, and their clients swallowed the reason."""
    folder = tmp_path / "safetensors"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise OSError('libsafetensors: cannot open')\n")
    process = start(PYTHONPATH=str(tmp_path))
    output, errors = process.communicate(b"name\n7 genmove b\n", ANSWER_S)
    assert re.fullmatch(r"= Keima\n\n\?7 [^\n]*OSError: libsafetensors: cannot open[^\n]*\n\n", output.decode())
    assert process.returncode == 1
    assert errors.decode() == "keima: OSError: libsafetensors: cannot open\n"


def test_another_network_compiles_nothing_anew_and_standard_output_holds_replies_only(network):
    """People who changed the network waited minutes again while kernels were built for it.

    One line of a library on standard output, and clients end the game; here Numba tells of every kernel it loads.
    """
    assert network("boardsize 9") == "="
    # What the first engine compiles in the background, for the end of a game, may take longer than its answer.
    ahead.compile_kernels(expected_input(find_network("default")).encoder)
    with Engine("--weights", "small", "--visits", "8", "--search-summary", NUMBA_DEBUG_CACHE="1") as engine:
        assert engine.ask("1 boardsize 9") == "=1"
        assert re.fullmatch("=2 [A-J][1-9]", engine.ask("2 genmove b"))
        engine.send("3 kata-analyze w 10\n")
        assert engine.process.stdout.readline() == b"=3\n"
        assert engine.process.stdout.readline().startswith(b"info ")
        engine.send("4 name\n")
        status, output, errors = engine.end()
    assert re.fullmatch(r"(info [^\n]*\n)*\n=4 Keima\n\n", output)
    assert (status, "data loaded from" in errors) == (0, True)
    assert not re.search("compil|data saved to", errors)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes")
def test_names_that_are_no_text_are_printed_in_escapes(tmp_path):
    """The manifest could not be written and tables not printed where standard output is strict, as in most locales."""
    folder = tmp_path / os.fsdecode(b"in\xff")
    folder.mkdir()
    (folder / "a.sgf").write_bytes(b"(;SZ[9]KM[7]RE[B+R];B[cc];W[gg];B[cg];W[gc];B[ee])")
    words = ["--out", tmp_path / "out", "--min-moves", "1", "--size", "9", "--validation-share", "0", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "gtp.cli", "data", "build", folder, *words, "--test-share", "0", "--workers", "1"],
        cwd=ROOT, capture_output=True, check=False, env=os.environ | {"PYTHONIOENCODING": "utf-8:strict"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)["sources"][0]["path"]
    assert os.fsencode(shown) == os.fsencode(folder)
    assert json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))["sources"][0]["path"] == shown


@POSIX
def test_an_interruption_of_make_gtp_is_no_error(tmp_path, interruptible):
    """make said "Error 130" of a game that was ended by Ctrl-C. Here a stand-in for the program waits for that."""
    if shutil.which("make") is None:
        pytest.skip("needs the program make")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "keima"
    program.write_text("#!/bin/sh\ntrap 'exit 130' INT\necho ready\nwhile :; do sleep 0.01; done\n")
    program.chmod(0o755)
    stamp = tmp_path / "installed-play"
    command = ["make", "-o", str(stamp), f"VENV={tmp_path}", "gtp"]
    stamp.touch()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Else a make that runs these tests would have its child say which folder it enters.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, env=environment, **pipes)
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGINT)
    assert b"rror" not in process.communicate(timeout=ANSWER_S)[1]


@POSIX
def test_a_failure_of_make_gtp_stays_one(tmp_path):
    """What is wrong with a setting must not look like success."""
    if shutil.which("make") is None:
        pytest.skip("needs the program make")
    (tmp_path / "bin").mkdir()
    program, stamp = tmp_path / "bin" / "keima", tmp_path / "installed-play"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    stamp.touch()
    done = subprocess.run(["make", "-o", str(stamp), f"VENV={tmp_path}", "gtp"], cwd=ROOT, capture_output=True)
    assert done.returncode != 0


def test_a_start_that_compiles_only_kernels_of_a_games_end_says_nothing(monkeypatch, capfd):
    """An earlier session ended before helpers had compiled them; this one was announced as half a minute or more."""
    monkeypatch.setattr(ahead, "missing", lambda encoder, of=ahead.LATER: sorted({*of} & {*ahead.LATER}))
    monkeypatch.setattr(ahead, "start_helpers", lambda encoder, needed: ["a helper"])
    with compiling_ahead("keima-2") as found:
        pass
    assert found.helpers == ["a helper"] and capfd.readouterr().err == ""


def test_helpers_compile_the_kernels_of_help_next_for_the_page(monkeypatch):
    """The first hint of a fresh installation compiled kernels for 45 seconds."""
    waited = []
    monkeypatch.setattr(ahead, "missing", lambda encoder, of=(): [*of] or ["all"])
    monkeypatch.setattr(ahead, "start_helpers", lambda encoder, needed: waited.append(needed) or [])
    monkeypatch.setattr(ahead, "compile_kernels", lambda encoder, names: waited.append(names))
    for for_page in (False, True):
        with compiling_ahead("keima-2", lambda done, total: None, for_page) as found:
            found.compile_first()
    page = ahead.FIRST + ahead.PAGE
    assert waited == [ahead.FIRST, ahead.FIRST, page, ahead.FIRST]
