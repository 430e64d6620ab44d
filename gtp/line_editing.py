"""Lines that a person types: editing and history, by Python's ``readline`` where there is one.

Programs never meet this: it takes a terminal for input and for standard error, where what is typed is shown.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gtp.session import QUIT

ERRORS = "surrogateescape"
"""Bytes that are no text come out as they went in"""
MOST_LINES = 1000
"""Of history that are kept"""


class LineEditor:
    """Reads lines from the terminal; :meth:`close` it before the process ends, or the terminal shows nothing typed."""

    def __init__(self, history: Path | None) -> None:
        """Nothing is read yet.

        Args:
            history: file that keeps what was typed for the next time; None = nothing is kept.
        Raises:
            ImportError: this Python has no ``readline``, or no terminals, as on Windows, which edits lines itself.
        """
        import readline
        import termios

        self._readline, self._history = readline, history
        modes = termios.tcgetattr(0)
        self._restore: Callable[[], None] = lambda: termios.tcsetattr(0, termios.TCSADRAIN, modes)
        self._is_ending = False
        # Lines that are pasted are commands, not text to be edited.
        readline.parse_and_bind("set enable-bracketed-paste off")
        readline.set_history_length(MOST_LINES)
        if history is not None:
            with suppress(OSError):
                readline.read_history_file(history)
        self._n_old = readline.get_current_history_length()
        sys.stdin.reconfigure(errors=ERRORS)  # type: ignore[union-attr]  # it is the real one

    def read(self) -> bytes:
        """A line with its end, or nothing at the end of input. Threads: the input thread."""
        if self._is_ending:
            return b""
        try:
            line = input().encode(sys.stdin.encoding, ERRORS)
        except (EOFError, OSError):
            return b""
        # Another line would change the terminal's modes while the process ends.
        self._is_ending = QUIT.fullmatch(line) is not None
        return line + b"\n"

    def close(self) -> None:
        """Give the terminal back as it was, and keep the history. Threads: main."""
        with suppress(OSError):
            self._restore()
        if self._readline.get_line_buffer() and not self._is_ending:
            # What was typed and not sent stays; the shell's next line begins below it.
            print(file=sys.stderr, flush=True)
        if self._history is None:
            return
        with suppress(OSError):
            self._history.parent.mkdir(parents=True, exist_ok=True)
            self._history.touch(mode=0o600)
            # Added, since another session may have written meanwhile; what is beyond the most is dropped.
            if hasattr(self._readline, "append_history_file"):
                added = self._readline.get_current_history_length() - self._n_old
                self._readline.append_history_file(max(0, added), self._history)
            else:  # As on macOS, with libedit in place of readline.
                self._readline.write_history_file(self._history)


def line_editor(history: Path | None) -> LineEditor | None:
    """What reads a person's lines; None where a program talks to us, or the terminal or Python cannot edit."""
    is_person = sys.stdin is not None and os.isatty(0) and os.isatty(2)
    if not is_person or os.environ.get("TERM", "dumb") == "dumb":
        return None
    with suppress(ImportError, OSError):
        return LineEditor(history)
    return None
