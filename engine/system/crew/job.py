"""What is to be done, wherever it is done: pieces of work that have numbers, and a worker that does them.

A piece of work is a function of its number, a game for instance: done twice it comes to the same, and counts once. A
:class:`Job` is pickled and sent to where it is done, with the files that it needs; there it opens a :class:`Worker`.
What the worker yields comes back as bytes. Start at :meth:`Crew.work`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class Crew(Protocol):
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


class Away(NamedTuple):
    """Who works in place of this process, on what, and what is sent to them."""

    crew: Crew
    job: Job
    files: Files
