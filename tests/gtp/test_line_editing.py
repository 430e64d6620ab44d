"""A person at a terminal: lines can be edited and are kept for the next time, and the terminal is left as it was."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from engine.system import jit
from tests.conftest import ROOT
from tests.gtp.process import ANSWER_S

pytest.importorskip("readline", reason="this Python edits no lines")
pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
LEFT, RIGHT, UP, INTERRUPT, END = "\x1b[D", "\x1b[C", "\x1b[A", "\x03", "\x04"


class Typist:
    """Someone who types at ``keima gtp`` in a terminal of its own; use as a context manager."""

    def __init__(self, folder, *options):
        command = [sys.executable, "-m", "gtp.cli", "gtp", "--weights", "none", "--size", "9", *options]
        own = {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder), "TERM": "xterm"}
        # Without it the home is one without kernels: a search would compile them all.
        environment = os.environ | own | {jit.CACHE_VARIABLE: str(jit.cache_root())}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.execve(sys.executable, command, environment)
        self.shown = ""
        self._seen = 0
        self.wait_for(" gtp\r\n")
        self.modes = self.modes_now()
        while self.modes_now() == self.modes:  # Until it reads keys, not lines.
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.terminal)

    def modes_now(self):
        return termios.tcgetattr(self.terminal)

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def wait_for(self, text):
        """Read on until this is shown; fails when it does not come."""
        watchdog = threading.Timer(ANSWER_S, os.kill, (self.pid, signal.SIGKILL))
        watchdog.start()
        try:
            while text not in self.shown[self._seen :]:
                self.shown += os.read(self.terminal, 1 << 16).decode()
        except OSError:
            pytest.fail(f"{text!r} is not shown in {self.shown!r}")
        finally:
            watchdog.cancel()
        self._seen = self.shown.index(text, self._seen) + len(text)

    def ended(self):
        """Its exit status; the terminal must be as it was found."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert self.modes_now() == self.modes
        return status


def test_what_is_typed_can_be_edited_and_comes_back_the_next_time(tmp_path):
    """Arrow keys were sent to the engine as letters."""
    with Typist(tmp_path) as typist:
        typist.type(f"nme{LEFT}{LEFT}a\r")
        typist.wait_for("= Keima\r\n\r\n")
        typist.type(f"{UP}x{LEFT}{RIGHT}\x7f\r")
        typist.wait_for("= Keima\r\n\r\n")
        typist.type("quit\r")
        typist.wait_for("=\r\n\r\n")
        assert typist.ended() == 0
    with Typist(tmp_path) as typist:
        typist.type(f"{UP}{UP}\r")
        typist.wait_for("= Keima\r\n\r\n")
        typist.type(END)
        assert typist.ended() == 0
    (history,) = tmp_path.rglob("keima/history")
    assert history.read_text().split() == ["name", "quit", "name"]


def test_an_interruption_leaves_the_terminal_as_it_was(tmp_path, interruptible):
    with Typist(tmp_path) as typist:
        typist.type("half")
        typist.wait_for("half")
        typist.type(INTERRUPT)
        assert typist.ended() == 128 + signal.SIGINT


def test_a_search_is_ended_by_what_is_typed_meanwhile(tmp_path):
    with Typist(tmp_path) as typist:
        typist.type("kata-analyze b 10\r")
        typist.wait_for("=\r\n")
        typist.type("name\r")
        typist.wait_for("= Keima\r\n\r\n")
        typist.type("quit\r")
        assert typist.ended() == 0


def test_a_log_keeps_what_is_typed(tmp_path):
    with Typist(tmp_path, "--log-file", str(tmp_path / "log")) as typist:
        typist.type(f"nme{LEFT}{LEFT}a\r")
        typist.wait_for("= Keima\r\n\r\n")
        typist.type("quit\r")
        assert typist.ended() == 0
    assert any(line.endswith(" < name") for line in (tmp_path / "log").read_text().splitlines())


def test_programs_meet_none_of_it(tmp_path):
    """Their bytes come as they are: no editing, no history."""
    code = (
        "import sys; from gtp.cli import main; import gtp.cli.gtp as play, os\n"
        "old = play.converse\n"
        "def converse(*arguments):\n"
        "    status = old(*arguments)\n"
        "    print(sorted({'readline', 'termios'} & set(sys.modules)), file=sys.stderr)\n"
        "    return status\n"
        "play.converse = converse\n"
        "sys.argv = ['keima', 'gtp', '--weights', 'none']; main()"
    )
    environment = os.environ | {"XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, input=b"\x1b[Aname\n\x01name\tx\r\nquit\n",
        capture_output=True, timeout=ANSWER_S,
    )  # fmt: skip
    assert done.stdout.count(b"\n\n") == 3 and done.stdout.endswith(b"=\n\n")
    assert done.stderr.decode().splitlines()[-1] == "[]" and not list(tmp_path.rglob("history"))
