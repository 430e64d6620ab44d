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
from gtp.session import LineReader, Output

IN, OUT, ERROR, OWN = "<", ">", "!", "-"
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


class LoggedOutput(Output):
    """Standard output, with a copy of the replies in a log."""

    def __init__(self, path: Path) -> None:
        """Open the log, and let everything else that is printed go to standard error and there.

        Raises:
            ValueError: as for :class:`Log`.
        """
        super().__init__()  # First, or the file might be given the number of a standard descriptor that is closed.
        self.log = Log(path)
        sys.stdout = sys.stderr = LoggedStream(sys.stderr, self.log)
        self.log.note(OWN, f"Keima {__version__}, process {os.getpid()}: {shlex.join(sys.argv[1:])}")

    def write(self, text: str) -> None:
        """See :meth:`gtp.session.Output.write`."""
        self.log.note(OUT, text)
        super().write(text)

    def note_end(self, status: int) -> None:
        """Write the last line."""
        self.log.note(OWN, f"process {os.getpid()} ended with status {status}")


class LoggedReader(LineReader):
    """Input lines, with a copy of them in a log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def feed(self, data: bytes) -> list[bytes]:
        """See :meth:`gtp.session.LineReader.feed`."""
        lines = super().feed(data)
        for line in lines:
            self._log.note(IN, line.decode("utf-8", "backslashreplace"))
        return lines


class LoggedStream(io.TextIOBase):
    """Stands for standard error and keeps a copy of its lines in a log."""

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
    def encoding(self) -> str:
        """The stream's."""
        return self._stream.encoding
