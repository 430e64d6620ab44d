"""The log file of a conversation: every line in and out with its time, and standard error.

A line begins with its time and a sign: ``<`` input, ``>`` output, ``!`` standard error, ``-`` the log's own::

    2026-11-21 20:15:03.120 < genmove b
    2026-11-21 20:15:06.124 > = D4

The file is appended to. A failing log must not cost a game: a write error is printed to standard error once, and lines
are lost until writing works again.
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
"""Marks of standard error and of the log's own lines; :data:`gtp.session.IN` and ``OUT`` mark input and output"""
MAX_WAITING = 1 << 16
"""Maximum number of characters kept of an unfinished line of standard error; the last ones are kept"""


class Log:
    """A log file. Threads: any."""

    def __init__(self, path: Path) -> None:
        """Open or create a file.

        Raises:
            ValueError: the file cannot be written; one line.
        """
        self._path = path
        self._lock = threading.Lock()
        self._is_well = True
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise ValueError(f"log file {path}: cannot be written ({error.strerror or error})") from error

    def note(self, sign: str, text: str) -> None:
        """Write each line of a text with the time and a sign; empty lines at the end of the text are left out."""
        time = datetime.now().isoformat(" ", "milliseconds")
        lines = (f"{time} {sign} {CONTROL.sub('', line)}".rstrip() for line in text.rstrip().split("\n"))
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        try:
            with self._lock:
                self._file.write(data)
        except OSError as error:
            if self._is_well:
                self._is_well = False
                # Not to sys.stderr, which leads back here.
                complaint = f"keima: log file {self._path}: cannot be written ({error.strerror or error})"
                with contextlib.suppress(OSError):
                    print(complaint, file=sys.__stderr__, flush=True)
        else:
            self._is_well = True


def start_log(path: Path) -> Log:
    """Open the log of this process and copy standard error to it from now on.

    Call it after the :class:`gtp.session.Output` is made: a file opened earlier might get the number of a closed
    standard descriptor.

    Raises:
        ValueError: as for :class:`Log`.
    """
    log = Log(path)
    sys.stdout, sys.stderr = LoggedStream(sys.stdout, log), LoggedStream(sys.stderr, log)
    log.note(OWN, f"Keima {__version__}, process {os.getpid()}: {shlex.join(sys.argv[1:])}")
    return log


class LoggedStream(io.TextIOBase):
    """A stream to standard error that also writes its lines to a log. Threads: any; lines of two threads may mix."""

    def __init__(self, stream: TextIO, log: Log) -> None:
        self._stream = stream
        self._log = log
        self._waiting = ""
        """an unfinished line"""

    def write(self, text: str) -> int:
        """Write to the stream and the log."""
        *lines, rest = (self._waiting + text).split("\n")
        self._waiting = rest[-MAX_WAITING:]
        for line in lines:
            self._log.note(ERROR, line)
        return self._stream.write(text)

    def flush(self) -> None:
        """Flush the stream; the log is unbuffered."""
        self._stream.flush()

    def fileno(self) -> int:
        """The stream's descriptor."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # writable in typeshed, read-only in io
        """The stream's encoding."""
        return self._stream.encoding
