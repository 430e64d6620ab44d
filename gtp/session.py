"""A running GTP process: standard input and output, interruption, and how it ends. It knows no Go.

Three threads share the work, so that nothing that takes long keeps another from its task:

* the *input* thread reads lines into a queue and notices what ends a running command: ``# interrupt``, and for a
  command that goes on until then any line and the end of input;
* the *command* thread answers them one after the other;
* the main thread waits for the end and receives signals.

Exit status: 0 after ``quit`` and at a plain end of input; 1 when input ended inside a command, when the output is no
longer read and when the program could not start; 128 + the signal's number after SIGINT and SIGTERM.
"""

import contextlib
import io
import os
import queue
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from gtp.protocol import Registry, failure, parse

MAX_LINE = 1 << 16
"""Bytes of a line; what follows is thrown away and the command refused."""
MAX_WAITING = 1024
"""Lines read ahead; a client that sends more than that has to wait."""
READ_SIZE = 1 << 16
QUIT = re.compile(rb"\s*([0-9]+\s+)?quit\s*(#.*)?")
INTERRUPT = b"# interrupt"
"""GoGui's comment line that asks for the end of the running command."""
WATCH_S = 0.2
"""How often the main thread wakes and looks whether the output is still read."""
HURRY_S = 0.25
"""A quit or the end of input that comes this long after the running command was not sent in one go with it, as scripts
do: a person or a GUI wants to end, and the command is cut short."""
REFUSAL_S = 1.0
"""How long a program that cannot start takes to refuse the commands it has read."""
STATUS_FAILED = 1
ENDED = "the session ended before the engine was ready"
UNREAD = "the client no longer reads the replies"
IN, OUT = "<", ">"
LineLog = Callable[[str, str], None]
"""Keeps a text that came in (``IN``) or went out (``OUT``)"""


class Program(Protocol):
    """What a session drives besides the registry's commands."""

    quitting: bool
    """set by a command: the session ends with its answer"""
    sigint_interrupts: bool
    """set by a command: SIGINT ends the running command, no longer the session"""

    @property
    def is_loading(self) -> bool:
        """Whether commands wait for a program that has not started yet. Threads: any."""

    def interrupt(self) -> None:
        """End the running command soon; it is answered all the same. Threads: any."""

    def resume(self, read_s: float) -> None:
        """Forget an interruption: the next command is a new one, which was read at this ``time.perf_counter``."""

    def refuse(self, reason: str) -> None:
        """The program could not start: commands that need it fail with this reason."""


class _Patient(io.FileIO):
    """A file whose reader may go away: closing standard error must not end the game."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _patient(descriptor: int) -> io.TextIOWrapper:
    """A stream of text to a descriptor whose reader may go away."""
    raw = io.BufferedWriter(_Patient(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(raw, errors="backslashreplace", line_buffering=True)


class Output:
    """The process's real standard output, kept for replies alone."""

    def __init__(self) -> None:
        """Take the descriptor aside and let descriptor 1 lead to standard error from now on.

        Whatever prints later, from a stray ``print`` to a C library's warning, cannot reach the client. Descriptors
        closed by the parent are opened on the null device first, so that no file of ours takes their numbers.
        """
        while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(spare)
        self._file = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        # Each with its own number: Python edits lines only where descriptors 0 and 1 are those of its streams.
        sys.stdout, sys.stderr = map(_patient, (1, 2))

    def write(self, text: str) -> None:
        """Send a reply at once. Threads: the command thread.

        Raises:
            OSError: the client has closed the other end.
        """
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        while data:
            written = self._file.write(data)
            if written is None:  # non-blocking, and full
                select.select([], [self._file], [])
            else:
                data = data[written:]

    def is_read(self) -> bool:
        """Whether the client still holds the other end; True where the system cannot tell. Threads: main."""
        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._file.fileno(), 0)
        return not any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def read_input() -> bytes:
    """What comes next on standard input, empty at its end. Threads: the one that reads it."""
    while True:
        try:
            return os.read(0, READ_SIZE)
        except BlockingIOError:
            # Some clients leave their pipes non-blocking, which holds for both ends.
            select.select([0], [], [])
        except OSError:
            return b""


class LineReader:
    """Cuts a stream of bytes into lines of bounded length. Threads: the input thread."""

    def __init__(self, most_bytes: int = MAX_LINE) -> None:
        self._most_bytes = most_bytes
        self.rest = bytearray()
        """the line begun but not ended"""

    def feed(self, data: bytes) -> list[bytes]:
        """Complete lines, without their ends; of one that is too long one byte more than the most."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._append(end)
            lines.append(bytes(self.rest))
            self.rest.clear()
        self._append(rest)
        return lines

    def _append(self, data: bytes) -> None:
        self.rest += data[: self._most_bytes + 1 - len(self.rest)]


class _Signalled(Exception):
    """A signal has arrived in the main thread."""


class Session:
    """One conversation. Create it, then call :meth:`run` in the main thread; the process ends with its result."""

    def __init__(
        self, registry: Registry, program: Program, output: Output, log: LineLog | None = None,
        read: Callable[[], bytes] = read_input,
    ) -> None:  # fmt: skip
        """Nothing is read yet.

        Args:
            read: gives what comes in, in pieces of any length, and nothing at the end; called in the input thread.
            log: told of every line that comes in, in the input thread, and of every piece of a reply that goes out, in
                the command thread.
        """
        self._registry = registry
        self._program = program
        self._output = output
        self._read = read
        self._log: LineLog = log or (lambda sign, text: None)
        self._lines: queue.Queue[tuple[bytes, float] | None] = queue.Queue(MAX_WAITING)
        """lines, and when they were read; None = the end of input"""
        self._reader = LineReader()
        self._ended = threading.Event()
        self._status = 0
        self._failure = ""
        self._lock = threading.Lock()
        """guards what follows"""
        self._n_read = 0
        """lines so far; the end of input counts as one"""
        self._read_s = 0.0
        """when the latest of them was put into the queue"""
        self._n_begun = 0
        self._begun_s = 0.0
        """when the latest command began"""
        self._n_interrupted = 0
        """lines up to this one are to be answered without delay"""
        self._is_open_ended = False
        """the latest command goes on until the next line"""

    def run(self) -> int:
        """Converse until the end; returns the exit status."""
        try:
            self._await_signals()
            for target in (self._read_all, self._answer_all):
                threading.Thread(target=target, name=f"gtp{target.__name__}", daemon=True).start()
            while self._watch():
                self._note(True)
        except _Signalled as signalled:
            self.end(128 + signalled.args[0])
        self._program.interrupt()
        return self._status

    def _watch(self) -> bool:
        """Wait for the end, or for a SIGINT that is to end the running command alone: True."""
        try:
            self._await_signals()
            # In slices, since on Windows a signal does not end an untimed wait.
            while not self._ended.wait(WATCH_S):
                if not self._output.is_read():
                    self.end(STATUS_FAILED, UNREAD)
        except _Signalled as signalled:
            if signalled.args[0] != signal.SIGINT or not self._program.sigint_interrupts:
                raise
            return True
        return False

    def _await_signals(self) -> None:
        """Let SIGINT and SIGTERM leave the main thread's wait."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: object) -> None:
        """Leave the main thread's wait, once: setting an event here could wait for a lock this very thread holds."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if number == signal.SIGTERM or not self._program.sigint_interrupts:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Signalled(number)

    def end(self, status: int, message: str = "") -> None:
        """End at once; the first call decides the status. Threads: any."""
        with self._lock:
            if self._ended.is_set():
                return
            self._status = status
            if message:
                with contextlib.suppress(OSError):
                    print(f"keima: {message}", file=sys.stderr, flush=True)
            self._ended.set()

    def fail(self, message: str) -> None:
        """End because the program could not start; commands read by now are refused first. Threads: any."""
        self._failure = message
        self._program.refuse(message)
        deadline = time.monotonic() + REFUSAL_S
        while self._lines.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.01)
        self.end(STATUS_FAILED, message)

    def _read_all(self) -> None:
        """The input thread."""
        while data := self._read():
            self._take_all(self._reader.feed(data))
        if self._reader.rest:
            # As KataGo and GNU Go do: who types a command for a pipe may leave the last newline out.
            self._take_all([bytes(self._reader.rest)])
        self._hurry()
        self._note(False)
        self._lines.put(None)

    def _take_all(self, lines: list[bytes]) -> None:
        """Note some lines in the log, then take each."""
        for line in lines:
            self._log(IN, line.decode("utf-8", "backslashreplace"))
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        """Queue a line, or act on it now if it is an interruption."""
        interrupts = line.strip() == INTERRUPT
        if QUIT.fullmatch(line):
            self._hurry()
        self._note(interrupts)
        if not interrupts:
            self._lines.put((line, time.perf_counter()))
            with self._lock:
                # Not before: where the queue is full, its wait is no pause of the client's.
                self._read_s = time.monotonic()

    def _note(self, interrupts: bool) -> None:
        """A line has arrived, or the end of input."""
        with self._lock:
            if interrupts:
                self._n_interrupted = self._n_read
            else:
                self._n_read += 1
            if interrupts or self._is_open_ended:
                self._program.interrupt()

    def _hurry(self) -> None:
        """The end is asked for: end the running command, and what waits behind it, unless all was sent in one go.

        A program that is still being loaded is not waited for either.
        """
        with self._lock:
            since_s = self._read_s if self._program.is_loading else max(self._read_s, self._begun_s)
            if time.monotonic() <= since_s + HURRY_S:
                return
            if self._program.is_loading:
                self._program.refuse(ENDED)
            else:
                self._n_interrupted = self._n_read
                self._program.interrupt()

    def _answer_all(self) -> None:
        """The command thread."""
        try:
            while not self._program.quitting and (read := self._lines.get()) is not None:
                self._answer(*read)
                self._lines.task_done()
            if self._failure:
                self.end(STATUS_FAILED, self._failure)
            self.end(0)
        except OSError:
            self.end(STATUS_FAILED, UNREAD)
        except BaseException as error:
            self.end(STATUS_FAILED, f"internal error: {type(error).__name__}: {error}")

    def _answer(self, line: bytes, read_s: float) -> None:
        """Answer one line, without delay if it was interrupted before its turn."""
        text = _decode(line)
        with self._lock:
            self._n_begun += 1
            self._begun_s = time.monotonic()
            self._program.resume(read_s)
            self._is_open_ended = self._registry.is_open_ended(text)
            if self._n_begun <= self._n_interrupted or (self._is_open_ended and self._n_begun < self._n_read):
                self._program.interrupt()
        if len(line) > MAX_LINE and b"#" not in line:
            request = parse(text)
            reply = failure(request.id, f"syntax error: a line longer than {MAX_LINE} bytes") if request else None
        else:
            reply = self._registry.answer(self._program, text, self._write)
        if reply is not None:
            self._write(reply)

    def _write(self, text: str) -> None:
        """Send a piece of a reply."""
        self._log(OUT, text)
        self._output.write(text)


def _decode(line: bytes | bytearray) -> str:
    """Text of a line. Bytes that are no UTF-8 survive, so file names of any encoding do."""
    return line.decode("utf-8", "surrogateescape")
