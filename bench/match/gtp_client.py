"""A GTP client: an engine as a child process that answers commands, with an exception for each kind of failure.

Start at :meth:`GtpClient.ask`. Two threads read the engine's outputs, so a caller can wait with a limit; a caller waits
in short steps, so Ctrl-C works on every platform. Commands carry ids, which answers must repeat. Memory is bounded: of
standard error the last lines are kept, for messages; standard output that is not read blocks the engine, as with any
pipe; an answer longer than a limit is an error.

Source: GTP version 2, draft 2 (Farneback), sections 2.1 to 2.7.
"""

import contextlib
import itertools
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
STDERR_LINES = 50
MAX_LINE_BYTES = 1 << 20
"""Longest line of an engine's output that is read as one line; longer ones are split"""
UNREAD_LINES = 64
"""Maximum number of unread lines of standard output in the queue"""
MAX_ANSWER_MIB = 4
SHOWN_CHARACTERS = 500
"""Length at which a text of an engine is cut in messages and records"""
POLL_S = 0.1
QUIT_S = 3.0
START_S = 600.0
"""Longest wait for an engine's first answers, for which it may have to compile kernels"""
CONTROL = dict.fromkeys((*range(32), 127)) | {ord("\t"): " "}
"""Table for ``str.translate`` by GTP 2, section 2.1: control characters are dropped, a tab becomes a space"""


class EngineError(Exception):
    """The engine failed and accepts no more commands."""


class EngineDied(EngineError):
    """The engine's process ended, or could not be started."""


class EngineTimeout(EngineError):
    """The engine did not answer within the limit."""


class EngineGarbled(EngineError):
    """The engine's answer has a wrong id or is too long."""


class EngineRefused(Exception):
    """The engine answered ``?`` and accepts further commands. The exception's text is the engine's error message."""


class GtpClient:
    """A GTP engine as a child process.

    Threads: one caller at a time; any thread may call ``kill`` and set ``stopped``.
    """

    def __init__(self, command: str | Sequence[str], folder: Path | None = None, **variables: str) -> None:
        """Start the engine.

        Args:
            command: a command line as for a shell, or its words.
            folder: working directory of the engine; None = this process's.
            variables: environment variables, added to those of this process.
        Raises:
            EngineDied: no such program.
            ValueError: the command line is empty or has an open quotation.
        """
        self.command = command if isinstance(command, str) else shlex.join(command)
        self.broken = False
        """whether an EngineError was raised, after which the engine accepts no commands"""
        self.last_answer_s = 0.0
        """seconds from the latest command to its answer"""
        self.stray_lines = 0
        """number of lines on standard output outside answers"""
        self.stopped = threading.Event()
        """event that any thread may set; the engine is then killed during the current or next wait for an answer"""
        self._ids = itertools.count(1)
        self._lines: queue.Queue[str] = queue.Queue(UNREAD_LINES)
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._commands: frozenset[str] | None = None
        self._asked = ""
        """the latest command, without its id"""
        self._killed = False
        try:
            # In its own process group the engine does not get the terminal's Ctrl-C; the match ends its engines.
            self._process = subprocess.Popen(
                argument_words(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=os.environ | variables,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                start_new_session=sys.platform != "win32",
            )
        except OSError as error:
            raise EngineDied(f"cannot start {self.command!r}: {error.strerror or error}") from error
        self._readers = [
            threading.Thread(target=self._read_stdout, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def ask(self, command: str, limit_s: float) -> str:
        """Send one command and wait for its answer.

        Args:
            command: one line, without an id.
            limit_s: longest wait in seconds.
        Returns:
            str: the text after ``=``, several lines joined by newlines.
        Raises:
            EngineRefused: the engine answered ``?``.
            EngineDied, EngineTimeout, EngineGarbled: the engine failed and accepts no more commands.
        """
        number = next(self._ids)
        start = time.perf_counter()
        try:
            self._write(f"{number} {command}", command)
            lines = self._read_answer(start + limit_s)
            self.last_answer_s = time.perf_counter() - start
            return _parse_answer(lines, number, command)
        except EngineError:
            self.broken = True
            raise

    def send(self, line: str) -> None:
        """Send a line without an id; the caller reads the answer by :meth:`read_line`.

        Raises:
            EngineDied: the engine has ended.
        """
        self._write(line, line)

    def read_line(self, limit_s: float) -> str:
        """The engine's next line of standard output; an empty line ends an answer.

        Raises:
            EngineDied: the engine has ended.
            EngineTimeout: no line within the limit.
        """
        return self._next_line(time.perf_counter() + limit_s)

    def lists(self, command: str, limit_s: float) -> bool:
        """Whether ``list_commands``, asked once, has the command; False if the engine refuses ``list_commands``."""
        if self._commands is None:
            listed = ""
            with contextlib.suppress(EngineRefused):
                listed = self.ask("list_commands", limit_s)
            self._commands = frozenset(listed.split())
        return command in self._commands

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and accepts commands."""
        return not self.broken and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def said(self) -> str:
        """The last lines of the engine's standard error."""
        return "\n".join(self._stderr)

    def close(self) -> None:
        """End the engine: ``quit``, then kill. Never raises; may be called twice."""
        if not self.broken:
            with contextlib.suppress(EngineError, EngineRefused):
                self.ask("quit", QUIT_S)
        self._close_input()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(QUIT_S)
        self.kill()

    def kill(self) -> None:
        """Kill the engine and its child processes. Never raises; may be called twice."""
        if not self._killed:
            # Only once: afterwards another process may have this process id.
            self._killed = True
            _kill_group(self._process)
            self._close_input()
        for reader in self._readers:
            reader.join(QUIT_S)

    def _close_input(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def __enter__(self) -> "GtpClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, line: str, command: str) -> None:
        """Send a line; ``command`` names it in error messages.

        Raises:
            EngineDied: the engine has ended. If it ends just after the line, only the wait for its answer raises this.
        """
        self._asked = command
        pipe = self._process.stdin
        assert pipe is not None  # as it was started
        try:
            pipe.write(f"{line}\n".encode())
            pipe.flush()
        except (OSError, ValueError) as error:
            raise EngineDied(self._death()) from error

    def _read_answer(self, deadline: float) -> list[str]:
        """Lines of the next answer, up to its blank line; lines before its ``=`` or ``?`` are counted as stray."""
        lines: list[str] = []
        characters = 0
        while (line := self._next_line(deadline)) or not lines:
            if lines or line[:1] in ("=", "?"):
                lines.append(line)
                characters += len(line)
                if characters > MAX_ANSWER_MIB << 20:
                    raise EngineGarbled(f"answer to {self._asked!r} is longer than {MAX_ANSWER_MIB} MiB")
            elif line:
                self.stray_lines += 1
        return lines

    def _next_line(self, deadline: float) -> str:
        """The next line of standard output; ``deadline`` is a time of the performance counter."""
        while True:
            if self.stopped.is_set():
                self.kill()
                raise EngineDied("stopped")
            has_ended = not self._readers[0].is_alive()  # before the queue: its last line may come in between
            try:
                line = self._lines.get(timeout=min(POLL_S, max(deadline - time.perf_counter(), 0.001)))
            except queue.Empty:
                if has_ended:
                    raise EngineDied(self._death()) from None
                if time.perf_counter() >= deadline:
                    raise EngineTimeout(f"no answer to {self._asked!r} in time") from None
                continue
            return line

    def _death(self) -> str:
        """Error message for an engine that has ended: exit status, last command and last line of standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(QUIT_S)
        self._readers[1].join(POLL_S)
        status = self._process.returncode
        ended = "closed its output" if status is None else f"ended with status {status}"
        said = f"; last words: {self._stderr[-1]}" if self._stderr else ""
        return f"engine {ended} at {self._asked!r}{said}"

    def _read_stdout(self, pipe: IO[bytes]) -> None:
        """Thread: put lines of standard output into the queue, waiting while it is full; drop lines after a kill."""
        with pipe, contextlib.suppress(OSError, ValueError):
            for raw in iter(lambda: pipe.readline(MAX_LINE_BYTES), b""):
                line = raw.decode("utf-8", "replace").translate(CONTROL).rstrip()
                while not self._killed:
                    with contextlib.suppress(queue.Full):
                        self._lines.put(line, timeout=POLL_S)
                        break

    def _read_stderr(self, pipe: IO[bytes]) -> None:
        """Thread: keep the last lines of the engine's standard error."""
        with pipe, contextlib.suppress(OSError, ValueError):
            for raw in iter(lambda: pipe.readline(MAX_LINE_BYTES), b""):
                text = raw.decode("utf-8", "replace").strip()
                if text:
                    self._stderr.append(shortened(text))


def shortened(text: str) -> str:
    """Text of an engine for a message or a record, cut at :data:`SHOWN_CHARACTERS`."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def _parse_answer(lines: list[str], number: int, command: str) -> str:
    """Text of an answer, given as its lines.

    Raises:
        EngineRefused: the answer begins with ``?``.
        EngineGarbled: its id is not ``number``.
    """
    head, _, text = lines[0].partition(" ")
    if head[1:] not in ("", str(number)):
        raise EngineGarbled(f"answer to {command!r} carries id {head[1:]!r}, expected {number}")
    answer = "\n".join([text.strip(), *lines[1:]]).strip()
    if head[0] == "?":
        raise EngineRefused(answer or "no reason given")
    return answer


def argument_words(command: str | Sequence[str]) -> str | list[str]:
    """A command line as Popen's argument: a list of words; on Windows the line itself, since Windows splits it.

    Raises:
        ValueError: the command line is empty or has an open quotation.
    """
    if not command or not any(word.strip() for word in command):
        raise ValueError("empty command line, expected an engine")
    if not isinstance(command, str):
        return list(command)
    return command if sys.platform == "win32" else shlex.split(command)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and, on POSIX, its process group; then wait for its end."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            # The group exists as long as a child of the engine lives.
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(QUIT_S)
