"""Whether a kernel is being compiled, for the page: the first search with help compiles some, once for a machine."""

import threading
from collections.abc import Callable
from typing import Any

from numba.core import event

KIND = "numba:compile"
LATE_S = 1.0
"""Time without a compilation after which compilation has ended, since one kernel follows another"""


class Compiling(event.Listener):
    """Tells when this process begins to compile kernels and when it has ended. Threads: any that compile."""

    def __init__(self, tell: Callable[[bool], None]) -> None:
        """Begin to listen.

        Args:
            tell: called with True and False in turn.
        """
        self._tell, self._lock = tell, threading.Lock()
        self._depth, self._is_told = 0, False
        self._timer: threading.Timer | None = None
        event.register(KIND, self)

    def on_start(self, _: Any) -> None:
        """See Numba's ``Listener``: a compilation, perhaps within another, begins."""
        with self._lock:
            self._depth += 1
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if not self._is_told:
                self._is_told = True
                self._tell(True)

    def on_end(self, _: Any) -> None:
        """See Numba's ``Listener``: a compilation ends."""
        with self._lock:
            self._depth = max(0, self._depth - 1)  # a compilation begun before registration has an end alone
            if self._depth == 0:
                self._timer = threading.Timer(LATE_S, self._end)
                self._timer.daemon = True
                self._timer.start()

    def _end(self) -> None:
        with self._lock:
            if self._depth == 0 and self._is_told:
                self._is_told = False
                self._tell(False)

    def close(self) -> None:
        """Listen no more."""
        event.unregister(KIND, self)
