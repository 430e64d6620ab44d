"""The crew of one process: its threads."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from engine.system.crew.job import Done, Files, Job
from engine.system.crew.threads import SharedNumbers, work_in_threads


class Here:
    """Threads of this process. See :class:`engine.system.crew.job.Crew`."""

    def work(
        self, job: Job, files: Files, numbers: Iterator[int], take: Callable[[Done], None], stopped: threading.Event,
        report: Callable[[], None], every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """See :meth:`engine.system.crew.job.Crew.work`."""
        taking, shared = threading.Lock(), SharedNumbers(numbers)
        with ExitStack() as stack:
            worker = job.open(stack, files, 0)

            def work() -> None:
                for done in worker.do(shared, stopped):
                    with taking:
                        take(done)

            work_in_threads(work, worker.threads, stopped, report, every_s)
