"""The executor of a Ray cluster: one actor for each GPU, or for each processor if there are no GPUs.

Job and files are put into Ray's object store once and passed to actors by reference. An actor gets a few chunks of
numbers, and the next chunk when a result was taken, so that only a few results of each actor are in memory. Ray
restarts a dead actor, on any machine, and repeats its chunks; if there is no room for it, idle actors repeat them at
the end. Output of actors goes to Ray's log files, not to standard output.
"""

import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count as count_up
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import Any, NamedTuple

import ray

from engine.system import one_line
from engine.system.executor import Done, Files, Job, Worker

LOCAL = "local"
"""Ray's address for a cluster that is started on this machine and ends with this process"""
NICENESS = "RAY_worker_niceness"
"""Environment variable of Ray for its workers' niceness; at the default of 15, other work would starve the workers"""
HOST_PORT = re.compile(r"([\w.-]+):(\d{1,5})")
KNOCK_S = 10.0
PULSE, SILENT_S = "pulse", 20.0
"""Ray's concurrency group for pulses, and the seconds allowed for an answer: a new process takes some to start"""


class _Actor:
    """The Ray actor: runs in its own process."""

    def __init__(self, cores: int) -> None:
        self._cores, self._changing = cores, threading.Condition()
        self._name, self._doing, self._stack = "", 0, ExitStack()
        self._worker: Worker | None = None

    def do(self, name: str, sent: list[Any], numbers: list[int]) -> list[Done]:
        """Do a chunk of a job. The worker of another job is closed first, once it is idle.

        Args:
            name: name of the job.
            sent: a reference to the job and its files' contents, in a list so that Ray does not fetch it each time.
        """
        with self._changing:
            self._changing.wait_for(lambda: self._name == name or not self._doing)
            if self._name != name or self._worker is None:
                # No worker, if opening the new one fails.
                self._name, self._worker = "", None
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

    @ray.method(concurrency_group=PULSE)
    def pulse(self) -> None:
        """Return at once, in a separate thread, to show that the actor lives."""

    def _opened(self, job: Job, contents: dict[str, bytes]) -> Worker:
        """Write a job's files to a temporary folder, and open its worker."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="keima-")))
        files = {}
        for name, content in contents.items():
            files[name] = folder / name
            files[name].write_bytes(content)
        return job.open(self._stack, files, self._cores)


class Place(NamedTuple):
    """Resources of each actor."""

    processors: float
    gpus: float
    cores: int
    """whole processors that the actor may use, at least one"""


def places(machines: Sequence[Mapping[str, float]], actors: int = 0) -> tuple[int, Place]:
    """Number of actors and the resources of each: a GPU with its share of processors, or a processor without GPUs.

    If more actors are asked for, several share one GPU or processor.

    Args:
        machines: resources of each machine by Ray's names: ``CPU``, ``GPU``.
        actors: number of actors; 0 = one a GPU or processor.
    Raises:
        ValueError: the machines have no processors.
    """
    processors, gpus = (sum(int(one.get(kind, 0)) for one in machines) for kind in ("CPU", "GPU"))
    if not processors:
        raise ValueError("no processors")
    with_gpus = [one for one in machines if one.get("GPU", 0) >= 1]
    # Processors of machines without GPUs do not count, since no actor runs there.
    whole = min((int(one.get("CPU", 0)) // int(one["GPU"]) for one in with_gpus), default=1)
    each = -(-actors // (gpus or processors)) or 1
    return actors or gpus or processors, Place(_share(whole, each), _share(min(1, gpus), each), max(1, whole // each))


def _share(whole: int, each: int) -> float:
    """An actor's share of ``whole`` processors or GPUs among ``each`` actors: a whole number, else ten-thousandths."""
    return whole // each or whole * 10_000 // each / 10_000


class _Pulse:
    """Checks whether an actor answers. Ray restarts a dead actor only if there is room for it."""

    def __init__(self, actor: Any) -> None:
        self._actor, self._since_s = actor, 0.0
        self._asked: Any = None

    def is_silent(self) -> bool:
        """Whether a pulse has had no answer for :data:`SILENT_S`; call it repeatedly."""
        now_s = time.monotonic()
        if self._asked is None:
            self._asked, self._since_s = self._actor.pulse.remote(), now_s
        if ray.wait([self._asked], timeout=0)[0]:
            self._asked = None
            return False
        return now_s - self._since_s > SILENT_S


class OnRay:
    """Runs jobs by actors of a Ray cluster; close it at the end. See :class:`engine.system.executor.Executor`."""

    def __init__(self, address: str, actors: int = 0, chunk: int = 64, at_once: int = 2, waiting: int = 1) -> None:
        """Join a cluster and start actors.

        Args:
            address: address of the cluster, as printed by ``ray start``, or :data:`LOCAL`.
            actors: number of actors; 0 = one for each GPU of the cluster, or for each processor.
            chunk: maximum number of items in a chunk; chunks are smaller if there are not enough items for all actors.
            at_once: chunks that an actor does concurrently, so that it is busy while one of them ends.
            waiting: further chunks that are queued at an actor.
        Raises:
            ValueError: no cluster at the address, or one without processors; one line.
        """
        if address == LOCAL:
            os.environ.setdefault(NICENESS, "0")
        try:
            _knock(address)
            ray.init(address, include_dashboard=False, log_to_driver=False, configure_logging=False)
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            raise ValueError(f"no Ray at {address} ({one_line(error)})") from error
        try:
            count, place = places([node["Resources"] for node in ray.nodes() if node["Alive"]], actors)
        except ValueError as error:
            self.close()
            raise ValueError(f"the Ray cluster at {address} offers {error}") from error
        remote: Any = ray.remote
        kind = remote(
            num_cpus=place.processors, num_gpus=place.gpus, max_restarts=-1, max_task_retries=-1,
            max_concurrency=at_once, concurrency_groups={PULSE: 1},
        )(_Actor)  # fmt: skip
        self._actors: list[Any] = [kind.remote(place.cores) for _ in range(count)]
        self._chunk, self._at_once, self._ahead = chunk, at_once, at_once + waiting
        # Unique names of jobs, also if several threads call work.
        self._jobs = count_up(1)

    @property
    def count(self) -> int:
        """Number of actors."""
        return len(self._actors)

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        ray.shutdown()

    def work(
        self, job: Job, files: Files, numbers: Iterator[int], take: Callable[[Done], None], stopped: threading.Event,
        report: Callable[[], None], every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """See :meth:`engine.system.executor.Executor.work`."""
        sent = [ray.put((job, {key: path.read_bytes() for key, path in files.items()}))]
        # If the number of items is known, each actor gets an equal share, in ``at_once`` chunks.
        known = length_hint(numbers)
        chunk = min(self._chunk, -(-known // (self.count * self._at_once))) if known else self._chunk
        dealt = _Dealt(self._actors, f"job {next(self._jobs)}", sent, numbers, chunk)
        try:
            for actor in [*range(self.count)] * self._ahead:
                dealt.begin(actor)
            while dealt.left and not stopped.is_set():
                for done in dealt.wait(every_s):
                    take(done)
                report()
        finally:
            dealt.cancel()


class _Dealt:
    """Deals the chunks of one job to the actors, and collects their results."""

    def __init__(self, actors: list[Any], name: str, sent: list[Any], numbers: Iterator[int], chunk: int) -> None:
        self._actors, self._name, self._sent, self._numbers, self._chunk = actors, name, sent, numbers, chunk
        self.left: dict[int, list[int]] = {}
        """unfinished chunks, by their first number"""
        self._doing: dict[Any, tuple[int, int]] = {}
        """Ray's reference -> actor and first number of the chunk; a chunk may be at two actors"""
        self._pulses = [_Pulse(actor) for actor in actors]
        self._idle: set[int] = set()

    def begin(self, actor: int) -> None:
        """Give an actor the next chunk, or mark it idle if there is none."""
        if chunk := [int(number) for number in islice(self._numbers, self._chunk)]:
            self.left[chunk[0]] = chunk
            self._give(actor, chunk[0])
        else:
            self._idle.add(actor)

    def wait(self, seconds: float) -> Iterator[Done]:
        """Wait at most ``seconds`` for finished chunks; yield their results, and give their actors the next chunks."""
        ready, _ = ray.wait(list(self._doing), timeout=seconds)
        for reference in ready:
            actor, chunk = self._doing.pop(reference)
            if self.left.pop(chunk, None):
                yield from _result(reference)
            self.begin(actor)
        if not ready and self._idle:
            self._repeat()

    def cancel(self) -> None:
        """Cancel the queued chunks."""
        for reference in self._doing:
            ray.cancel(reference)

    def _give(self, actor: int, chunk: int) -> None:
        self._idle.discard(actor)
        self._doing[self._actors[actor].do.remote(self._name, self._sent, self.left[chunk])] = actor, chunk

    def _repeat(self) -> None:
        """Give chunks of silent actors, which may be dead without room for a restart, to idle actors."""
        silent = {actor for actor in {actor for actor, _ in self._doing.values()} if self._pulses[actor].is_silent()}
        if silent:
            at_work = {chunk for actor, chunk in self._doing.values() if actor not in silent}
            waiting = [chunk for chunk in self.left if chunk not in at_work]
            free = [actor for actor in self._idle if actor not in silent and not self._pulses[actor].is_silent()]
            for actor, chunk in zip(free, waiting, strict=False):
                self._give(actor, chunk)


def _knock(address: str) -> None:
    """Check that a server listens at HOST:PORT; Ray itself would wait for minutes, then end this process.

    Raises:
        OSError: no server listens.
    """
    if match := HOST_PORT.fullmatch(address):
        socket.create_connection((match[1], int(match[2])), KNOCK_S).close()


def _result(reference: Any) -> list[Done]:
    """The results of a finished chunk, by its reference.

    Raises:
        Exception: raised by the job.
        RuntimeError: the cluster failed; one line.
    """
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause or error from None
    except ray.exceptions.RayError as error:
        raise RuntimeError(f"Ray: {one_line(error)}") from error
