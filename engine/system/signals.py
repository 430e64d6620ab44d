"""Ctrl-C as a request to stop at the next good moment."""

import signal
from collections.abc import Callable


class StopOnSignal:
    """Within its block SIGINT and SIGTERM only set ``asked``; a second one interrupts as usual."""

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        """Prepare to be asked.

        Args:
            stop: called at the first signal.
        """
        self.asked, self._stop = False, stop

    def __enter__(self) -> "StopOnSignal":
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._stop()
