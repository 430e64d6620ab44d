"""Line editing and history at a terminal, by Python's ``readline``.

Only where standard input and standard error are terminals, so never for programs; typed lines are echoed to standard
error.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gtp.session import QUIT

ERRORS = "surrogateescape"
"""Error handler of decoding and encoding, which keeps bytes that are not valid"""
MOST_LINES = 1000
"""Maximum number of lines in the history file"""


class LineEditor:
    """Reads lines typed at the terminal. A process that ends without :meth:`close` leaves the terminal without echo."""

    def __init__(self, history: Path | None) -> None:
        """Prepare the terminal and load the history.

        Args:
            history: file that keeps typed lines; None = they are not kept.
        Raises:
            ImportError: Python without ``readline`` or ``termios``, as on Windows, whose console edits lines itself.
        """
        import readline
        import termios

        self._readline, self._history = readline, history
        modes = termios.tcgetattr(0)
        self._restore: Callable[[], None] = lambda: termios.tcsetattr(0, termios.TCSADRAIN, modes)
        self._is_ending = False
        # Pasted lines are commands, not text to edit.
        readline.parse_and_bind("set enable-bracketed-paste off")
        readline.set_history_length(MOST_LINES)
        if history is not None:
            with suppress(OSError):
                readline.read_history_file(history)
        self._n_old = readline.get_current_history_length()
        sys.stdin.reconfigure(errors=ERRORS)  # type: ignore[union-attr]  # it is the real one

    def read(self) -> bytes:
        """A line with its newline; empty at the end of input. Threads: the input thread."""
        if self._is_ending:
            return b""
        try:
            line = input().encode(sys.stdin.encoding, ERRORS)
        except (EOFError, OSError):
            return b""
        # Reading another line would change the terminal's modes while the process ends.
        self._is_ending = QUIT.fullmatch(line) is not None
        return line + b"\n"

    def close(self) -> None:
        """Restore the terminal's modes and save the history. Threads: main."""
        with suppress(OSError):
            self._restore()
        if self._readline.get_line_buffer() and not self._is_ending:
            # A typed line that was not sent stays; the shell's prompt begins below it.
            print(file=sys.stderr, flush=True)
        if self._history is None:
            return
        with suppress(OSError):
            self._history.parent.mkdir(parents=True, exist_ok=True)
            self._history.touch(mode=0o600)
            # Append, since another session may have written meanwhile.
            if hasattr(self._readline, "append_history_file"):
                added = self._readline.get_current_history_length() - self._n_old
                self._readline.append_history_file(max(0, added), self._history)
            else:  # macOS, with libedit in place of readline
                self._readline.write_history_file(self._history)


def line_editor(history: Path | None) -> LineEditor | None:
    """A line editor for a person at a terminal; None for a program, or where the terminal or Python cannot edit."""
    is_person = sys.stdin is not None and os.isatty(0) and os.isatty(2)
    if not is_person or os.environ.get("TERM", "dumb") == "dumb":
        return None
    with suppress(ImportError, OSError):
        return LineEditor(history)
    return None
