"""Working memory of kernels: it is taken once a thread and used again by every call."""

import threading

import numpy as np


class _Memory(threading.local):
    """Arrays of a thread by name. They grow to the most that was ever asked for and stay as long as the thread."""

    def __init__(self) -> None:
        self._held: dict[str, np.ndarray] = {}

    def of(self, name: str, count: int) -> np.ndarray:
        """float32[at least count], holding anything; all of one name lie in the same place."""
        if name not in self._held or len(self._held[name]) < count:
            self._held[name] = np.empty(count, np.float32)
        return self._held[name]


MEMORY = _Memory()
