"""The executor of a Ray cluster: an actor for each of its GPUs, or for each processor where it has none.

Job and files go to Ray's object store once and to the actors by reference. An actor gets numbers in chunks, few at a
time, and the next ones when what it has done was taken: however fast the actors are, no more than a few chunks of each
are in memory. Ray starts an actor that died anew, here or on another machine, and repeats its chunks; where it finds no
room for it, the other actors do them when there is nothing else to do. What actors print goes to Ray's log files, not
to standard output.
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
"""Ray's word in place of an address: it is started on this machine, and ended with the process"""
NICENESS = "RAY_worker_niceness"
"""Ray's setting for its workers, 15 by default: beside other work of the machine they would get next to nothing"""
HOST_PORT = re.compile(r"([\w.-]+):(\d{1,5})")
KNOCK_S = 10.0
PULSE, SILENT_S = "pulse", 20.0
"""How long an actor may take to say that it is there, however much it works: a new process takes seconds to start"""


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
                # If opening fails, no later chunk may find the closed worker.
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
        """Say that the actor is there, in a thread of its own."""

    def _opened(self, job: Job, contents: dict[str, bytes]) -> Worker:
        """The worker of a job, its files in a folder of their own."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="keima-")))
        files = {}
        for name, content in contents.items():
            files[name] = folder / name
            files[name].write_bytes(content)
        return job.open(self._stack, files, self._cores)


class Place(NamedTuple):
    """What Ray sets aside for each actor."""

    processors: float
    gpus: float
    cores: int
    """processors that the actor may use, those set aside rounded up to one"""


def places(machines: Sequence[Mapping[str, float]], actors: int = 0) -> tuple[int, Place]:
    """How many actors there are to be, and the place of each: a GPU, or a processor where no machine has GPUs.

    Where more are asked for than that, several share one; each machine has room for its part of them.

    Args:
        machines: what each offers, by Ray's names: ``CPU``, ``GPU``.
        actors: 0 = one a GPU or processor.
    Raises:
        ValueError: they offer no processors.
    """
    processors, gpus = (sum(int(one.get(kind, 0)) for one in machines) for kind in ("CPU", "GPU"))
    if not processors:
        raise ValueError("no processors")
    with_gpus = [one for one in machines if one.get("GPU", 0) >= 1]
    # A machine without GPUs may be the larger one: only those where actors go tell how many processors are theirs.
    whole = min((int(one.get("CPU", 0)) // int(one["GPU"]) for one in with_gpus), default=1)
    each = -(-actors // (gpus or processors)) or 1
    return actors or gpus or processors, Place(_share(whole, each), _share(min(1, gpus), each), max(1, whole // each))


def _share(whole: int, each: int) -> float:
    """A part of some processors or GPUs as Ray counts them: whole ones, or ten-thousandths of one."""
    return whole // each or whole * 10_000 // each / 10_000


class _Pulse:
    """Whether an actor answers: one that died is started anew, but only where there is room for it."""

    def __init__(self, actor: Any) -> None:
        self._actor, self._since_s = actor, 0.0
        self._asked: Any = None

    def is_silent(self) -> bool:
        """Whether it was asked :data:`SILENT_S` ago and has not answered yet; to be called now and then."""
        now_s = time.monotonic()
        if self._asked is None:
            self._asked, self._since_s = self._actor.pulse.remote(), now_s
        if ray.wait([self._asked], timeout=0)[0]:
            self._asked = None
            return False
        return now_s - self._since_s > SILENT_S


class OnRay:
    """Actors of a Ray cluster. See :class:`engine.system.executor.Executor`; close it at the end."""

    def __init__(self, address: str, actors: int = 0, chunk: int = 64, at_once: int = 2, waiting: int = 1) -> None:
        """Join a cluster and start actors.

        Args:
            address: of the cluster, as ``ray start`` tells it, or :data:`LOCAL`.
            actors: 0 = one for each GPU of the cluster, or for each processor.
            chunk: the most pieces of work that an actor gets at once; fewer where there are not so many for all.
            at_once: chunks that an actor does side by side: while one of them ends, the others keep it busy.
            waiting: chunks that wait at an actor besides those that it does.
        Raises:
            ValueError: no cluster there, or one without processors; one line.
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
        # Drawn from by several threads: jobs of one name would be one to the actors.
        self._jobs = count_up(1)

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
        """See :meth:`engine.system.executor.Executor.work`."""
        sent = [ray.put((job, {key: path.read_bytes() for key, path in files.items()}))]
        # Of a known number every actor gets an equal part, in as many chunks as it works on at once.
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
    """The chunks of a job that actors have."""

    def __init__(self, actors: list[Any], name: str, sent: list[Any], numbers: Iterator[int], chunk: int) -> None:
        self._actors, self._name, self._sent, self._numbers, self._chunk = actors, name, sent, numbers, chunk
        self.left: dict[int, list[int]] = {}
        """chunks that nobody has done yet, by their first number"""
        self._doing: dict[Any, tuple[int, int]] = {}
        """by reference: actor and chunk; the same chunk may be at two actors"""
        self._pulses = [_Pulse(actor) for actor in actors]
        self._idle: set[int] = set()

    def begin(self, actor: int) -> None:
        """Give an actor the next chunk, if there is one."""
        if chunk := [int(number) for number in islice(self._numbers, self._chunk)]:
            self.left[chunk[0]] = chunk
            self._give(actor, chunk[0])
        else:
            self._idle.add(actor)

    def wait(self, seconds: float) -> Iterator[Done]:
        """Wait for a chunk that is done, no longer than this; its actor begins the next one."""
        ready, _ = ray.wait(list(self._doing), timeout=seconds)
        for reference in ready:
            actor, chunk = self._doing.pop(reference)
            if self.left.pop(chunk, None):
                yield from _result(reference)
            self.begin(actor)
        if not ready and self._idle:
            self._repeat()

    def cancel(self) -> None:
        """Do not begin what waits."""
        for reference in self._doing:
            ray.cancel(reference)

    def _give(self, actor: int, chunk: int) -> None:
        self._idle.discard(actor)
        self._doing[self._actors[actor].do.remote(self._name, self._sent, self.left[chunk])] = actor, chunk

    def _repeat(self) -> None:
        """Let idle actors do what silent ones were to do; those may have died with no room for them anywhere."""
        silent = {actor for actor in {actor for actor, _ in self._doing.values()} if self._pulses[actor].is_silent()}
        if silent:
            at_work = {chunk for actor, chunk in self._doing.values() if actor not in silent}
            waiting = [chunk for chunk in self.left if chunk not in at_work]
            free = [actor for actor in self._idle if actor not in silent and not self._pulses[actor].is_silent()]
            for actor, chunk in zip(free, waiting, strict=False):
                self._give(actor, chunk)


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
        RuntimeError: the cluster failed; one line.
    """
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause or error from None
    except ray.exceptions.RayError as error:
        raise RuntimeError(f"Ray: {one_line(error)}") from error
