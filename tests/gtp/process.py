"""The real process over pipes: what the tests of this folder drive."""

import os
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 300.0
"""Long enough to compile all kernels on a slow machine"""


def start(*options: str, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.Popen:
    """``keima gtp`` with these options, without a network unless they name one."""
    command = [sys.executable, "-m", "gtp.cli", "gtp", "--weights", "none", "--size", "9", *options]
    pipes = {"stdin": subprocess.PIPE, "stdout": stdout, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, **pipes)


def loading_for_ever(folder: Path, library: str = "torch") -> dict[str, str]:
    """What to add to the environment of a process that is loading its player until it ends: a library never comes."""
    (folder / library).mkdir()
    (folder / library / "__init__.py").write_text("import time\nwhile True:\n    time.sleep(0.01)\n")
    return {"PYTHONPATH": str(folder)}


def line_of(engine: "Engine") -> str:
    """The next line of an engine's output, as a rule in the middle of a reply."""
    return engine.process.stdout.readline().decode()[:-1]


class Engine:
    """A started engine and a conversation with it; use as a context manager."""

    def __init__(self, *options: str, **environment: str) -> None:
        self.process = start(*options, **environment)
        self.errors: list[bytes] = []
        # Read all the time, or a full pipe would stop the engine.
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    def _read_errors(self) -> None:
        self.errors.extend(self.process.stderr)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def send(self, text: str | bytes) -> None:
        """Write to the engine's input."""
        self.process.stdin.write(text.encode() if isinstance(text, str) else text)
        self.process.stdin.flush()

    def reply(self) -> str:
        """The next reply, without its empty line; fails when the engine takes too long or ends."""
        watchdog = threading.Timer(ANSWER_S, self.process.kill)
        watchdog.start()
        lines = []
        while line := self.process.stdout.readline():
            if line == b"\n":
                break
            lines.append(line)
        watchdog.cancel()
        assert line, f"no reply; standard error: {b''.join(self.errors).decode()}"
        return b"".join(lines).decode()[:-1]

    def ask(self, command: str) -> str:
        """Send one command and wait for its reply."""
        self.send(command + "\n")
        return self.reply()

    def search(self, color: str = "b") -> None:
        """Ask for a move, and wait until its search has something to tell; the next report is ten minutes away."""
        self.send(f"lz-genmove_analyze {color} 60000\n")
        assert line_of(self) == "="
        assert line_of(self).startswith("info ")

    def ready(self, size: int = 9) -> None:
        """Begin a game on a board of this size and wait until the player has been loaded."""
        assert self.ask(f"boardsize {size}") == "="
        assert self.ask("clear_cache") == "="

    def end(self) -> tuple[int, str, str]:
        """Close the input and wait for the end: exit status, the rest of the output, standard error."""
        self.process.stdin.close()
        rest = self.process.stdout.read().decode()
        status = self.process.wait(ANSWER_S)
        self._reader.join()
        return status, rest, b"".join(self.errors).decode()
