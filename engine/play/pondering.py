"""Searching in the opponent's time: a thread that works on the tree until the next command needs it.

Pondering is a search like any other, on the position after our move. Whichever answer the opponent chooses, the
search keeps the subtree behind it (:meth:`engine.search.search.Search.set_position`), so nothing has to be guessed.
"""

import threading

from engine.go.position import META_N_MOVES, Position, with_capacity
from engine.inference.server import NetworkFailed
from engine.nets.notices import say_once
from engine.search.search import Search
from engine.search.stoppers import SearchLimits

STOP_AGAIN_S = 0.002
"""How often a search that is being stopped is told so: it forgets what it was told before it began."""


class Ponder:
    """One search's pondering. Threads: one caller; the search is its own between :meth:`start` and :meth:`stop`."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def start(self, position: Position, visits: int, seconds: float) -> None:
        """Begin; returns at once.

        Args:
            position: copied here, since the game goes on.
            visits: end at this number of visits of the root; 0 = no limit.
            seconds: end after this time.
        """
        self.stop()
        self._stopping.clear()
        copied = with_capacity(position, int(position.meta[META_N_MOVES]))
        thread = threading.Thread(target=self._run, args=(copied, visits, seconds), name="ponder", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # The move before it has been played, and must be answered.
            say_once(f"no pondering: {error}")
            return
        self._thread = thread

    def _run(self, position: Position, visits: int, seconds: float) -> None:
        """The thread. Moving the tree to the new root belongs here: it would delay the answer of our own move."""
        self._search.set_position(position)
        if not self._stopping.is_set():
            try:
                self._search.run(SearchLimits(visits, seconds))
            except NetworkFailed as error:
                say_once(str(error))

    def stop(self) -> None:
        """End and wait for the end, some milliseconds; the tree stays. Without pondering nothing happens."""
        if self._thread is None:
            return
        self._stopping.set()
        while self._thread.is_alive():
            self._search.stop()
            self._thread.join(STOP_AGAIN_S)
        self._thread = None
