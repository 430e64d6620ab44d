"""The crew of a Ray cluster: an actor for each of its GPUs, or for each processor where it has none.

Job and files go to Ray's object store once and to the actors by reference. An actor gets numbers in chunks, few at a
time, and the next ones when what it has done was taken: however fast the actors are, no more than a few chunks of each
are in memory. Ray starts an actor that died anew, here or on another machine, and repeats its chunks. What actors
print goes to Ray's log files, not to standard output.
"""

import re
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import ray

from engine.system.crew.job import Done, Files, Job, Worker

LOCAL = "local"
"""In place of an address: Ray is started on this machine, and ended with the process"""
HOST_PORT = re.compile(r"([\w.-]+):(\d{1,5})")
KNOCK_S = 10.0
WAITING = 1
"""Chunks that wait at an actor besides those that it does"""


class _Actor:
    """What runs in an actor's process."""

    def __init__(self, cores: int) -> None:
        self._cores, self._changing = cores, threading.Condition()
        self._name, self._doing, self._stack = "", 0, ExitStack()
        self._worker: Worker | None = None

    def do(self, name: str, sent: list[Any], numbers: list[int]) -> list[Done]:
        """Do a chunk of a job; another job's worker is closed once it does nothing any more.

        Args:
            sent: a reference to the job and its files' contents, in a list so that Ray does not fetch it each time.
        """
        with self._changing:
            self._changing.wait_for(lambda: self._name == name or not self._doing)
            if self._name != name or self._worker is None:
                self._stack.close()
                self._worker = self._opened(*ray.get(sent[0]))
                self._name = name
            worker = self._worker
            self._doing += 1
        try:
            return list(worker.do(iter(numbers), threading.Event()))
        finally:
            with self._changing:
                self._doing -= 1
                self._changing.notify_all()

    def _opened(self, job: Job, contents: dict[str, bytes]) -> Worker:
        """The worker of a job, its files in a folder of their own."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="keima-")))
        files = {}
        for name, content in contents.items():
            files[name] = folder / name
            files[name].write_bytes(content)
        return job.open(self._stack, files, self._cores)


class OnRay:
    """Actors of a Ray cluster. See :class:`engine.system.crew.job.Crew`; close it at the end."""

    def __init__(self, address: str, actors: int = 0, chunk: int = 64, threads: int = 2) -> None:
        """Join a cluster and start actors.

        Args:
            address: of the cluster, as ``ray start`` tells it, or :data:`LOCAL`.
            actors: 0 = as many as the cluster has room for.
            chunk: pieces of work that an actor gets at once.
            threads: chunks that an actor does side by side: while one of them ends, the others keep it busy.
        Raises:
            ValueError: no cluster there, or one without processors; one line.
        """
        where = {} if address == LOCAL else {"address": address}
        try:
            _knock(address)
            ray.init(**where, include_dashboard=False, log_to_driver=False, configure_logging=False)  # type: ignore[arg-type]
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            raise ValueError(f"no Ray at {address} ({' '.join(str(error).split())[:200]})") from error
        have = ray.cluster_resources()
        processors, gpus = int(have.get("CPU", 0)), int(have.get("GPU", 0))
        if not processors:
            self.close()
            raise ValueError(f"the Ray cluster at {address} offers no processors")
        cores = max(1, processors // gpus) if gpus else 1
        remote: Any = ray.remote
        kind = remote(
            num_cpus=cores, num_gpus=min(1, gpus), max_restarts=-1, max_task_retries=-1, max_concurrency=threads
        )(_Actor)  # fmt: skip
        self._actors: list[Any] = [kind.remote(cores) for _ in range(actors or gpus or processors)]
        self._chunk, self._ahead, self._jobs = chunk, threads + WAITING, 0

    @property
    def count(self) -> int:
        """Actors."""
        return len(self._actors)

    def close(self) -> None:
        """End the actors, and Ray where it was started here."""
        ray.shutdown()

    def work(
        self, job: Job, files: Files, numbers: Iterator[int], take: Callable[[Done], None], stopped: threading.Event,
        report: Callable[[], None], every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """See :meth:`engine.system.crew.job.Crew.work`."""
        self._jobs += 1
        name = f"job {self._jobs}"
        sent = [ray.put((job, {key: path.read_bytes() for key, path in files.items()}))]
        doing: dict[Any, int] = {}

        def begin(actor: int) -> None:
            if chunk := list(islice(numbers, self._chunk)):
                doing[self._actors[actor].do.remote(name, sent, chunk)] = actor

        for actor in [*range(self.count)] * self._ahead:
            begin(actor)
        while doing and not stopped.is_set():
            ready, _ = ray.wait(list(doing), timeout=every_s)
            for reference in ready:
                for done in _result(reference):
                    take(done)
                begin(doing.pop(reference))
            report()
        for reference in doing:
            ray.cancel(reference)


def _knock(address: str) -> None:
    """See that something listens at HOST:PORT; Ray itself would wait for minutes, and end the process then.

    Raises:
        OSError: nothing does.
    """
    if match := HOST_PORT.fullmatch(address):
        socket.create_connection((match[1], int(match[2])), KNOCK_S).close()


def _result(reference: Any) -> list[Done]:
    """What an actor has done.

    Raises:
        Exception: what the job failed with.
    """
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause or error from None
