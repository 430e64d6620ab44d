"""Numbered work done by many: threads of this process, or actors of a Ray cluster.

A piece of work is a function of its number, such as a game: repeated, it has the same result, and counts once. A
:class:`Job` is pickled and sent to an executor with the files that it needs; there it opens a :class:`Worker`, whose
results come back as bytes. Start at :meth:`Executor.work`.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

Done = tuple[Sequence[int], bytes]
"""Numbers of pieces of work that are done, and what they came to"""
Files = Mapping[str, Path]
"""Files by the names that a job knows them by"""


class Worker(Protocol):
    """Does pieces of work in one process."""

    threads: int
    """threads that may call :meth:`do` at once and keep it busy"""

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """Do some pieces of work, in any order; what was begun when ``stopped`` is set is lost."""


class Job(Protocol):
    """How pieces of work are done; it can be pickled."""

    def open(self, stack: ExitStack, files: Files, cores: int) -> Worker:
        """A worker in this process.

        Args:
            stack: closes what the worker needs.
            files: the job's own, by name.
            cores: processors that it may take; 0 = all of this process.
        """


@dataclass(frozen=True)
class Opened:
    """A job of this process alone, whose worker is ready. See :class:`Job`."""

    worker: Worker

    def open(self, stack: ExitStack, files: Files, cores: int) -> Worker:
        """The worker."""
        return self.worker


class Executor(Protocol):
    """Workers, wherever they are."""

    def work(
        self, job: Job, files: Files, numbers: Iterator[int], take: Callable[[Done], None], stopped: threading.Event,
        report: Callable[[], None], every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """Have pieces of work done until there are no more numbers, or ``stopped`` is set.

        Args:
            files: that the job needs.
            numbers: of the pieces; drawn by one thread at a time, as work is begun.
            take: gets what was done, one call at a time; where workers may die, a number may come twice.
            report: called now and then in the caller's thread.
        Raises:
            Exception: what the job or ``take`` failed with.
        """


class Execution(NamedTuple):
    """Who works in place of this process, on what, and what is sent to them."""

    executor: Executor
    job: Job
    files: Files


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
    with ThreadPoolExecutor(threads) as pool:
        working = {pool.submit(work) for _ in range(threads)}
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


class LocalExecutor:
    """Threads of this process. See :class:`engine.system.executor.Executor`."""

    def work(
        self, job: Job, files: Files, numbers: Iterator[int], take: Callable[[Done], None], stopped: threading.Event,
        report: Callable[[], None], every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """See :meth:`engine.system.executor.Executor.work`."""
        taking, shared = threading.Lock(), SharedNumbers(numbers)
        with ExitStack() as stack:
            worker = job.open(stack, files, 0)

            def work() -> None:
                for done in worker.do(shared, stopped):
                    with taking:
                        take(done)

            work_in_threads(work, worker.threads, stopped, report, every_s)


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
