"""A running GTP process: standard input and output, interruption, and exit. This module knows no Go.

Three threads, so that a long command blocks neither input nor signals:

* the *input* thread reads lines into a queue and stops the running command at ``# interrupt``, an open-ended command at
  any line and at the end of input;
* the *command* thread answers the queued lines in order;
* the main thread waits for the end and receives signals.

Exit status: 0 after ``quit`` and at the end of input; 1 when the client no longer reads the replies and when the
program could not start; 128 + the signal's number after SIGINT and SIGTERM.
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
"""Maximum length of a line, in bytes; a longer line is cut, and refused unless a comment begins before the cut"""
MAX_WAITING = 1024
"""Maximum number of lines that wait behind the running command; at this number reading blocks"""
READ_SIZE = 1 << 16
QUIT = re.compile(rb"\s*([0-9]+\s+)?quit\s*(#.*)?")
INTERRUPT = b"# interrupt"
"""GoGui's comment line that interrupts the running command"""
WATCH_S = 0.2
"""Interval, in seconds, at which the main thread checks that the client still reads the output"""
HURRY_S = 0.25
"""A quit or the end of input that comes later than this, in seconds, after the last command interrupts the running
command: a person or a GUI wants to end. A script sends all at once, and its commands are completed."""
REFUSAL_S = 1.0
"""Maximum time, in seconds, in which a program that could not start refuses the commands read so far"""
STATUS_FAILED = 1
ENDED = "the session ended before the engine was ready"
UNREAD = "the client no longer reads the replies"
IN, OUT = "<", ">"
LineLog = Callable[[str, str], None]
"""Function that logs a text; called with its direction, ``IN`` or ``OUT``, and the text"""


class Program(Protocol):
    """Interface of the program whose commands a session runs."""

    quitting: bool
    """set by a command after whose answer the session ends"""
    sigint_interrupts: bool
    """set by a command after which SIGINT stops the running command instead of the session"""

    @property
    def is_loading(self) -> bool:
        """Whether the program is being loaded. Threads: any."""

    def interrupt(self) -> None:
        """Stop the running command soon; the command still gets its answer. Threads: any."""

    def resume(self, read_s: float) -> None:
        """Clear an interruption before the next command runs.

        Args:
            read_s: ``time.perf_counter`` at which this command was read.
        """

    def refuse(self, reason: str) -> None:
        """Let commands that need the program fail with ``reason``, since it could not start."""


class _Patient(io.FileIO):
    """A file for standard error that ignores write errors: if it is closed, the game must go on."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _patient(descriptor: int) -> io.TextIOWrapper:
    """Make a text stream to a file descriptor; the stream ignores write errors."""
    raw = io.BufferedWriter(_Patient(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(raw, errors="backslashreplace", line_buffering=True)


class Output:
    """The process's real standard output, reserved for replies."""

    def __init__(self) -> None:
        """Keep a duplicate of descriptor 1 for replies, and redirect descriptor 1 to standard error.

        So no stray ``print`` and no C library's warning reaches the client. Standard descriptors that the parent
        process closed are opened on the null device first, so that no other file gets their numbers.
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
        """Whether the client holds its end of the output open; True if the system cannot tell. Threads: main."""
        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._file.fileno(), 0)
        return not any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def read_input() -> bytes:
    """The next bytes of standard input, empty at its end. Threads: the input thread."""
    while True:
        try:
            return os.read(0, READ_SIZE)
        except BlockingIOError:
            # Some clients make their end of the pipe non-blocking, which changes both ends.
            select.select([0], [], [])
        except OSError:
            return b""


class LineReader:
    """Cuts a stream of bytes into lines of bounded length. Threads: the input thread."""

    def __init__(self, most_bytes: int = MAX_LINE) -> None:
        self._most_bytes = most_bytes
        self.rest = bytearray()
        """the unfinished last line"""

    def feed(self, data: bytes) -> list[bytes]:
        """Take data and return the lines that it completes, without newlines.

        A line above the limit is cut to one byte more than the limit.
        """
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
    """Raised in the main thread by the handler of a signal; its argument is the signal's number."""


class Session:
    """One conversation with a GTP client; :meth:`run`, called in the main thread, returns the exit status."""

    def __init__(
        self, registry: Registry, program: Program, output: Output, log: LineLog | None = None,
        read: Callable[[], bytes] = read_input,
    ) -> None:  # fmt: skip
        """Make a session that has read nothing yet.

        Args:
            read: returns the next bytes of input, none at its end; called in the input thread.
            log: called with every line of input in the input thread, and with every piece of a reply in the command
                thread.
        """
        self._registry = registry
        self._program = program
        self._output = output
        self._read = read
        self._log: LineLog = log or (lambda sign, text: None)
        self._lines: queue.Queue[tuple[bytes, float] | None] = queue.Queue(MAX_WAITING)
        """lines and the times when they were read; None = the end of input"""
        self._reader = LineReader()
        self._ended = threading.Event()
        self._status = 0
        self._failure = ""
        self._lock = threading.Lock()
        """guards the fields below"""
        self._n_read = 0
        """number of lines read; the end of input counts as one"""
        self._read_s = 0.0
        """when the latest line was queued"""
        self._n_begun = 0
        """number of lines taken by the command thread"""
        self._begun_s = 0.0
        """when the latest command began"""
        self._n_interrupted = 0
        """number of lines read before the latest interruption, which stops all their commands"""
        self._is_open_ended = False
        """the latest command is open-ended"""

    def run(self) -> int:
        """Answer commands until the end; returns the exit status."""
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
        """Wait until the session ends; return True earlier if a SIGINT is to interrupt only the running command."""
        try:
            self._await_signals()
            # In slices, since a signal does not end an untimed wait on Windows.
            while not self._ended.wait(WATCH_S):
                if not self._output.is_read():
                    self.end(STATUS_FAILED, UNREAD)
        except _Signalled as signalled:
            if signalled.args[0] != signal.SIGINT or not self._program.sigint_interrupts:
                raise
            return True
        return False

    def _await_signals(self) -> None:
        """Install the handler by which SIGINT and SIGTERM end the main thread's wait."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: object) -> None:
        """End the main thread's wait once, by an exception: setting an event could deadlock on this thread's lock."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if number == signal.SIGTERM or not self._program.sigint_interrupts:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Signalled(number)

    def end(self, status: int, message: str = "") -> None:
        """End the session at once; only the first call sets the exit status and prints its message. Threads: any."""
        with self._lock:
            if self._ended.is_set():
                return
            self._status = status
            if message:
                with contextlib.suppress(OSError):
                    print(f"keima: {message}", file=sys.stderr, flush=True)
            self._ended.set()

    def fail(self, message: str) -> None:
        """Refuse the commands read so far and end the session, since the program could not start. Threads: any."""
        self._failure = message
        self._program.refuse(message)
        deadline = time.monotonic() + REFUSAL_S
        while self._lines.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.01)
        self.end(STATUS_FAILED, message)

    def _read_all(self) -> None:
        """Read and queue lines until the end of input. Threads: the input thread."""
        while data := self._read():
            self._take_all(self._reader.feed(data))
        if self._reader.rest:
            # As KataGo and GNU Go do, since input from a shell's pipe may lack the last newline.
            self._take_all([bytes(self._reader.rest)])
        self._hurry()
        self._note(False)
        self._lines.put(None)

    def _take_all(self, lines: list[bytes]) -> None:
        """Log lines, then queue each or let it interrupt."""
        for line in lines:
            self._log(IN, line.decode("utf-8", "backslashreplace"))
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        """Queue a line, or interrupt the running command at once if the line is ``# interrupt``."""
        interrupts = line.strip() == INTERRUPT
        if QUIT.fullmatch(line):
            self._hurry()
        self._note(interrupts)
        if not interrupts:
            self._lines.put((line, time.perf_counter()))
            with self._lock:
                # After the put, which blocks while the queue is full: that time is not the client's.
                self._read_s = time.monotonic()

    def _note(self, interrupts: bool) -> None:
        """Note a line or the end of input, and interrupt the running command if it is open-ended.

        Args:
            interrupts: the line is ``# interrupt``, or a SIGINT stands for it: interrupt every command read so far.
        """
        with self._lock:
            if interrupts:
                self._n_interrupted = self._n_read
            else:
                self._n_read += 1
            if interrupts or self._is_open_ended:
                self._program.interrupt()

    def _hurry(self) -> None:
        """Interrupt running and queued commands before a quit or the end of input, unless all came at once.

        While the program is being loaded, let it refuse these commands instead.
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
        """Answer the queued lines until a quit or the end of input. Threads: the command thread."""
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
        """Answer one line; a command that was interrupted while it was queued stops at once."""
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
        """Log and send a piece of a reply."""
        self._log(OUT, text)
        self._output.write(text)


def _decode(line: bytes | bytearray) -> str:
    """Text of a line. Bytes that are not UTF-8 are kept as surrogates, for file names in any encoding."""
    return line.decode("utf-8", "surrogateescape")
