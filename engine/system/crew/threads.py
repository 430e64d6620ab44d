"""Threads that do one kind of work until there is no more of it, while their caller reports."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait


def work_in_threads(
    work: Callable[[], None], threads: int, stopped: threading.Event, report: Callable[[], None], every_s: float
) -> None:
    """Let some threads work to their end.

    Args:
        stopped: set where a thread or the report fails; the others are to end then.
        report: called now and then in the caller's thread.
    Raises:
        Exception: what the first of them failed with.
    """
    with ThreadPoolExecutor(threads) as executor:
        working = {executor.submit(work) for _ in range(threads)}
        try:
            while working:
                done, working = wait(working, every_s, FIRST_EXCEPTION)
                for thread in done:
                    thread.result()
                report()
        except BaseException:
            stopped.set()
            raise


class SharedNumbers:
    """An iterator that several threads draw from."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers, self._lock = numbers, threading.Lock()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            return int(next(self._numbers))
