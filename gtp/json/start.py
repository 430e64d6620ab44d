"""From settings and a network to an engine that answers: what is loaded, compiled and tried before the first line."""

import os
import queue
import sys
import threading
from typing import TYPE_CHECKING

from gtp.analysing import load_analysing
from gtp.json.settings import Settings
from gtp.models import described
from gtp.session import OUT, LineLog, Output
from weights import NetworkPath

if TYPE_CHECKING:
    from gtp.json.engine import JsonEngine

STATUS_UNREAD = 1
MOST_UNREAD = 1 << 26
"""Characters that wait for a client; with more no queries are taken, and reports during a search are left out."""


def load_engine(settings: Settings, network: NetworkPath | None, device: str, at_once: int,
                sender: "Sender") -> "JsonEngine":  # fmt: skip
    """Load what analyses; arguments and errors as of :func:`gtp.analysing.load_analysing`."""
    loaded = load_analysing(settings.search, network, device, at_once)
    from gtp.json.engine import JsonEngine

    return JsonEngine(loaded.analyses, settings, sender, described(network, loaded.server), sender.is_full)


class Sender:
    """Writes lines to a client; without one that reads them the process ends.

    A thread of its own writes: a client may send all its queries before it reads an answer, so reading them must not
    wait for the answers to be read, up to ``MOST_UNREAD``.
    """

    def __init__(self, output: Output, log: LineLog | None = None) -> None:
        """Start the thread.

        Args:
            log: told of every line, in that thread.
        """
        self._output, self._log = output, log
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """to be written; None = the end"""
        self._n_unread, self._changed = 0, threading.Condition()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    def __call__(self, text: str) -> None:
        """Send a line; returns at once. Threads: any."""
        self._count(len(text))
        self._lines.put(text)

    def is_full(self) -> bool:
        """Whether more waits than should. Threads: any."""
        return self._n_unread > MOST_UNREAD

    def await_room(self) -> None:
        """Wait until the client has read enough. Threads: any."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_full())

    def _count(self, characters: int) -> None:
        """More characters wait, or fewer."""
        with self._changed:
            self._n_unread += characters
            self._changed.notify_all()

    def finish(self, timeout_s: float | None = None) -> None:
        """Wait until all is written, at most so long; nothing may be sent any more."""
        self._lines.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        """The thread."""
        while (text := self._lines.get()) is not None:
            if self._log is not None:
                self._log(OUT, text)
            try:
                self._output.write(text)
            except OSError:
                print("keima: the answers are no longer read", file=sys.stderr, flush=True)
                os._exit(STATUS_UNREAD)
            self._count(-len(text))
