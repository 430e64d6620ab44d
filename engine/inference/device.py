"""A device of the inference server: its network, what its evaluators are doing, how long that takes, and its batches.

A batch is cut to what the device's memory holds, evaluated, and its outputs handed to the requests."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.inference.slots import Request
from engine.nets.compute.runner import Runner, is_out_of_memory, release_memory
from engine.nets.network import NetOutput, Network

MEMORY = 0.8
"""Share of the old mean in the running means of times"""


@dataclass
class Pace:
    """Recent times of calls of the network, as running means; 0 before the first one."""

    seconds_per_position: float = 0.0
    """that one evaluator takes"""
    seconds_per_call: float = 0.0

    def note(self, positions: int, seconds: float) -> None:
        """Count one call."""
        self.seconds_per_position = _mean(self.seconds_per_position, seconds / positions)
        self.seconds_per_call = _mean(self.seconds_per_call, seconds)


@dataclass
class Device:
    """A network where it runs; everything is guarded by the server's lock."""

    network: Network
    max_batch: int
    """falls when memory runs out"""
    evaluators: int
    """threads that call the network"""
    prepared: list[int]
    """board sizes that each evaluator is ready for, of those that the server has been warmed up for"""
    is_exact: bool = False
    """its network has been loaded in 32 bits, since 16 were too few"""
    is_second: bool = False
    """its network has been loaded again once"""
    is_retired: bool = False
    repairing: threading.Lock = field(default_factory=threading.Lock)
    """held while a failure is dealt with"""

    def __post_init__(self) -> None:
        self.running = [0] * self.evaluators
        """positions that each evaluator has in flight"""
        self.since_s = [0.0] * self.evaluators
        """when each one's latest call began"""

    def begin(self, index: int, positions: int) -> None:
        """An evaluator takes a batch."""
        self.running[index], self.since_s[index] = positions, time.perf_counter()

    def begun_s(self) -> list[float]:
        """When the calls began that run now."""
        return [begun_s for count, begun_s in zip(self.running, self.since_s, strict=True) if count]

    def busy_s(self, pace: Pace) -> list[float]:
        """Expected seconds until each evaluator is idle; one that is late is expected to take as long again."""
        now_s, busy_s = time.perf_counter(), []
        for positions, since_s in zip(self.running, self.since_s, strict=True):
            usual_s = positions * pace.seconds_per_position
            if self.network.batches_requests:
                usual_s = max(usual_s, pace.seconds_per_call)
            taken_s = now_s - since_s
            busy_s.append(0.0 if not positions else usual_s - taken_s if taken_s < usual_s else taken_s)
        return busy_s


def _mean(old: float, new: float) -> float:
    """A running mean with one more measurement."""
    return MEMORY * old + (1.0 - MEMORY) * new if old else new


class NotFinite(RuntimeError):
    """A network's outputs are NaN or infinite."""


class Piece(NamedTuple):
    """Slots of a request that travel in the same batch: rows ``start`` to ``stop``."""

    request: Request
    start: int
    stop: int


def positions_of(pieces: Sequence[Piece]) -> int:
    """Positions in some pieces together."""
    return sum(piece.stop - piece.start for piece in pieces)


def cut(pieces: Sequence[Piece], limit: int) -> list[list[Piece]]:
    """The same positions in the same order, in batches of ``limit``; only the last may be smaller."""
    batches: list[list[Piece]] = []
    room = 0
    for request, begin, end in pieces:
        start = begin
        while start < end:
            if room == 0:
                batches.append([])
                room = limit
            stop = min(end, start + room)
            batches[-1].append(Piece(request, start, stop))
            room -= stop - start
            start = stop
    return batches


def evaluate(runner: Runner, requests: Sequence[Request], limit: int, idle: Callable[[], None]) -> int:
    """Evaluate requests, in smaller batches where the device's memory refuses larger ones.

    Args:
        runner: the calling thread's own.
        limit: most positions in a batch.
        idle: called once, as soon as the device has nothing more to do for these requests.
    Returns:
        the limit, lowered to what the memory held.
    Raises:
        Exception: the network refused or failed; outputs may have been written in part.
    """
    waiting = cut([Piece(request, 0, request.count) for request in requests], limit)
    while waiting:
        batch = waiting.pop(0)
        output = _try(runner, batch)
        if output is None:
            limit = positions_of(batch) // 2
            waiting[:0] = cut(batch, limit)
            continue
        if not waiting:
            idle()
        spread(output, batch)
    return limit


def _try(runner: Runner, batch: Sequence[Piece]) -> NetOutput | None:
    """One call of the network; None if the device lacks the memory for this number of positions."""
    try:
        planes, globals_ = (
            [piece.request.tensors[name][piece.start : piece.stop] for piece in batch] for name in ("planes", "globals")
        )
        return runner.run(planes, globals_)
    except RuntimeError as error:
        if positions_of(batch) == 1 or not is_out_of_memory(error):
            raise
    release_memory()
    return None


def spread(output: NetOutput, batch: Sequence[Piece]) -> None:
    """Copy outputs, on the CPU and in the order of the batch, into the requests they belong to.

    Raises:
        NotFinite: they are no finite numbers.
    """
    for name, head in output._asdict().items():
        start = 0
        for request, begin, end in batch:
            if head is not None:
                request.tensors[name][begin:end].copy_(head[start : start + end - begin])
            start += end - begin
            # A sum is finite only if all its terms are; one pass without a temporary array.
            if head is not None and not abs(float(request.tensors[name][begin:end].sum())) < float("inf"):
                raise NotFinite(f"its outputs ({name}) are NaN or infinite")
