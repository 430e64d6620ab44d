"""Pondering: a thread that searches in the opponent's time until the next command needs the tree.

Pondering is an ordinary search of the position after our move. After the opponent's answer the search keeps its subtree
(:meth:`engine.search.search.Search.set_position`), so no move has to be predicted.
"""

import threading

from engine.go.position import META_N_MOVES, Position, with_capacity
from engine.inference.server import NetworkFailed
from engine.nets.notices import say_once
from engine.search.search import Search
from engine.search.stoppers import SearchLimits

STOP_AGAIN_S = 0.002
"""Interval at which a stop is repeated, since a search ignores stops before its run begins"""


class Ponder:
    """Pondering with one search. Threads: one caller, which leaves the search alone from :meth:`start` to
    :meth:`stop`."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def start(self, position: Position, visits: int, seconds: float) -> None:
        """Start to ponder; returns at once.

        Args:
            position: copied here, since the game continues.
            visits: limit on the root's visits; 0 = none.
            seconds: time limit.
        """
        self.stop()
        self._stopping.clear()
        copied = with_capacity(position, int(position.meta[META_N_MOVES]))
        thread = threading.Thread(target=self._run, args=(copied, visits, seconds), name="ponder", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # Without a thread the move, which has been played, must still be answered.
            say_once(f"no pondering: {error}")
            return
        self._thread = thread

    def _run(self, position: Position, visits: int, seconds: float) -> None:
        """Body of the thread: advance the tree to the new root, then search.

        The caller's thread does neither, so that the answer to the client is not delayed.
        """
        self._search.set_position(position)
        if not self._stopping.is_set():
            try:
                self._search.run(SearchLimits(visits, seconds))
            except NetworkFailed as error:
                say_once(str(error))

    def stop(self) -> None:
        """Stop pondering, if there is any, and wait for its end, some milliseconds; the tree is kept."""
        if self._thread is None:
            return
        self._stopping.set()
        while self._thread.is_alive():
            self._search.stop()
            self._thread.join(STOP_AGAIN_S)
        self._thread = None
