"""Executors of numbered items of work: threads of this process, or actors of a Ray cluster.

An item, such as a game, is a function of its number: repeated, it has the same result, which counts once. A
:class:`Job` is pickled and sent to an executor with its files. There it opens a :class:`Worker`, whose results come
back as bytes. Start at :meth:`Executor.work`.
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
"""Numbers of items that were finished together, and their common result"""
Files = Mapping[str, Path]
"""Name -> path of the files that a job needs"""


class Worker(Protocol):
    """Does items of a job in one process."""

    threads: int
    """number of threads that should call :meth:`do` concurrently"""

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """Do the items of ``numbers``; yield results, in any order. Drop unfinished items once ``stopped`` is set."""


class Job(Protocol):
    """A picklable description of work on numbered items."""

    def open(self, stack: ExitStack, files: Files, cores: int) -> Worker:
        """Make a worker in this process.

        Args:
            stack: closes the worker's resources.
            files: the job's files.
            cores: number of processors that the worker may use; 0 = all.
        """


@dataclass(frozen=True)
class Opened:
    """A job whose worker exists already, and which only this process can run. See :class:`Job`."""

    worker: Worker

    def open(self, stack: ExitStack, files: Files, cores: int) -> Worker:
        """Return the existing worker."""
        return self.worker


class Executor(Protocol):
    """Runs jobs by one or more workers."""

    def work(
        self, job: Job, files: Files, numbers: Iterator[int], take: Callable[[Done], None], stopped: threading.Event,
        report: Callable[[], None], every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """Do items of a job until the numbers are exhausted or ``stopped`` is set.

        Args:
            files: files that the job needs.
            numbers: numbers of the items; drawn when items are started, by one thread at a time.
            take: called with each result, one call at a time; after a worker's death a number may come twice.
            report: called every ``every_s`` seconds in the caller's thread.
        Raises:
            Exception: raised by the job or by ``take``.
        """


class Execution(NamedTuple):
    """A job with its files, and the executor to run it with instead of this process."""

    executor: Executor
    job: Job
    files: Files


def work_in_threads(
    work: Callable[[], None], threads: int, stopped: threading.Event, report: Callable[[], None], every_s: float
) -> None:
    """Call ``work`` in several threads at the same time, and wait until all calls return.

    Args:
        stopped: set if a thread or ``report`` raises, so that the other threads end.
        report: called every ``every_s`` seconds in the caller's thread.
    Raises:
        Exception: the first one raised by a thread or by ``report``.
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
    """An iterator over numbers that several threads may share."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers, self._lock = numbers, threading.Lock()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            return int(next(self._numbers))


class LocalExecutor:
    """Runs jobs by threads of this process. See :class:`engine.system.executor.Executor`."""

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
    """Context in which SIGINT and SIGTERM set ``asked``; a second signal raises KeyboardInterrupt."""

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        """Prepare the context; signals are handled as before until it is entered.

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
