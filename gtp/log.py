"""A conversation on file: every line in and out with the time, and what this process says on standard error.

Lines look like this, ``<`` came in, ``>`` went out, ``!`` is standard error and ``-`` the log's own::

    2026-11-21 20:15:03.120 < genmove b
    2026-11-21 20:15:06.124 > = D4

Files are appended to. A log must never cost a game: when it cannot be written, one line on standard error says so, and
lines are lost until it can be.
"""

import contextlib
import io
import os
import shlex
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import TextIO

from engine import __version__
from gtp.protocol import CONTROL

ERROR, OWN = "!", "-"
"""Signs beside :data:`gtp.session.IN` and ``OUT``"""
MAX_WAITING = 1 << 16
"""Characters of a line of standard error that has not ended"""


class Log:
    """A log file. Threads: any."""

    def __init__(self, path: Path) -> None:
        """Open a file, and make it if there is none.

        Raises:
            ValueError: it cannot be written; one clear line.
        """
        self._path = path
        self._lock = threading.Lock()
        self._is_well = True
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise ValueError(f"log file {path}: cannot be written ({error.strerror or error})") from error

    def note(self, sign: str, text: str) -> None:
        """Write the lines of a text; empty ones at its end are left out."""
        time = datetime.now().isoformat(" ", "milliseconds")
        lines = (f"{time} {sign} {CONTROL.sub('', line)}".rstrip() for line in text.rstrip().split("\n"))
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        try:
            with self._lock:
                self._file.write(data)
        except OSError as error:
            if self._is_well:
                self._is_well = False
                # Not by way of sys.stderr, which leads back here.
                complaint = f"keima: log file {self._path}: cannot be written ({error.strerror or error})"
                with contextlib.suppress(OSError):
                    print(complaint, file=sys.__stderr__, flush=True)
        else:
            self._is_well = True


def start_log(path: Path) -> Log:
    """Open the log of this process, and keep in it what is printed to standard error from now on.

    Call it when :class:`gtp.session.Output` has been made: a file opened earlier might be given the number of a
    standard descriptor that is closed.

    Raises:
        ValueError: as for :class:`Log`.
    """
    log = Log(path)
    sys.stdout, sys.stderr = LoggedStream(sys.stdout, log), LoggedStream(sys.stderr, log)
    log.note(OWN, f"Keima {__version__}, process {os.getpid()}: {shlex.join(sys.argv[1:])}")
    return log


class LoggedStream(io.TextIOBase):
    """Stands for standard error and keeps a copy of its lines in a log. Threads: any; lines of two may mix."""

    def __init__(self, stream: TextIO, log: Log) -> None:
        self._stream = stream
        self._log = log
        self._waiting = ""
        """of a line that has not ended"""

    def write(self, text: str) -> int:
        """To both."""
        *lines, rest = (self._waiting + text).split("\n")
        self._waiting = rest[-MAX_WAITING:]
        for line in lines:
            self._log.note(ERROR, line)
        return self._stream.write(text)

    def flush(self) -> None:
        """Of the stream; the log keeps nothing back."""
        self._stream.flush()

    def fileno(self) -> int:
        """The stream's."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether people read the stream."""
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed calls writable what is read-only in io
        """The stream's."""
        return self._stream.encoding
