"""A device of the inference server: its network, the load of its evaluators, and the evaluation of batches."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.inference.slots import Request
from engine.nets.compute.runner import Runner, is_out_of_memory, release_memory
from engine.nets.network import NetOutput, Network

MEMORY = 0.8
"""Weight of the old mean in the running means of times"""


@dataclass
class Pace:
    """Running means of the times of network calls; 0 before the first call."""

    seconds_per_position: float = 0.0
    """time of one evaluator for one position"""
    seconds_per_call: float = 0.0

    def note(self, positions: int, seconds: float) -> None:
        """Include one call in the means."""
        self.seconds_per_position = _mean(self.seconds_per_position, seconds / positions)
        self.seconds_per_call = _mean(self.seconds_per_call, seconds)


@dataclass
class Device:
    """A network on one device and its evaluators; the server's lock guards every field."""

    network: Network
    max_batch: int
    """lowered when memory runs out"""
    evaluators: int
    """threads that call the network"""
    prepared: list[int]
    """number of the server's warm-up board sizes for which each evaluator is prepared"""
    is_exact: bool = False
    """its network was reloaded in 32 bits, after NaN or infinite outputs in 16"""
    is_second: bool = False
    """its network was reloaded after a failure"""
    is_retired: bool = False
    repairing: threading.Lock = field(default_factory=threading.Lock)
    """held while a failure is handled"""

    def __post_init__(self) -> None:
        self.running = [0] * self.evaluators
        """positions in flight of each evaluator"""
        self.since_s = [0.0] * self.evaluators
        """``time.perf_counter`` at the start of each evaluator's latest call"""

    def begin(self, index: int, positions: int) -> None:
        """Record that an evaluator starts a batch."""
        self.running[index], self.since_s[index] = positions, time.perf_counter()

    def begun_s(self) -> list[float]:
        """``time.perf_counter`` at the start of each running call."""
        return [begun_s for count, begun_s in zip(self.running, self.since_s, strict=True) if count]

    def busy_s(self, pace: Pace) -> list[float]:
        """Expected seconds until each evaluator is idle; a late call is expected to take as long again."""
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


class Rows(NamedTuple):
    """Slots ``start`` to ``stop`` of a request, which are evaluated in one batch."""

    request: Request
    start: int
    stop: int


def split(slots: Sequence[Rows], limit: int) -> list[list[Rows]]:
    """The same slots in the same order, in batches of ``limit`` positions; only the last may be smaller."""
    batches: list[list[Rows]] = []
    room = 0
    for request, begin, end in slots:
        start = begin
        while start < end:
            if room == 0:
                batches.append([])
                room = limit
            stop = min(end, start + room)
            batches[-1].append(Rows(request, start, stop))
            room -= stop - start
            start = stop
    return batches


def evaluate_requests(runner: Runner, requests: Sequence[Request], limit: int, idle: Callable[[], None]) -> int:
    """Evaluate requests, in smaller batches if the device runs out of memory.

    Args:
        runner: the calling thread's own.
        limit: most positions in a batch.
        idle: called once, as soon as the device has finished the last batch.
    Returns:
        the limit, lowered if the device ran out of memory.
    Raises:
        Exception: the network refused or failed; outputs may have been written in part.
    """
    waiting = split([Rows(request, 0, request.count) for request in requests], limit)
    while waiting:
        batch = waiting.pop(0)
        inputs = (
            [rows.request.tensors[name][rows.start : rows.stop] for rows in batch] for name in ("planes", "globals")
        )
        count = sum(rows.stop - rows.start for rows in batch)
        try:
            output = runner.run(*inputs)
        except RuntimeError as error:
            if count == 1 or not is_out_of_memory(error):
                raise
            output = None
        if output is None:
            # Outside of the handler, whose traceback keeps the failed call's tensors alive.
            release_memory()
            limit = count // 2
            waiting[:0] = split(batch, limit)
            continue
        if not waiting:
            idle()
        copy_outputs(output, batch)
    return limit


def copy_outputs(output: NetOutput, batch: Sequence[Rows]) -> None:
    """Copy a batch's outputs, on the CPU, into the slots of its requests.

    Raises:
        NotFinite: an output is NaN or infinite.
    """
    for name, head in output._asdict().items():
        start = 0
        for request, begin, end in batch:
            if head is not None:
                request.tensors[name][begin:end].copy_(head[start : start + end - begin])
            start += end - begin
            # A sum is finite only if all terms are; one pass without a temporary array.
            if head is not None and not abs(float(request.tensors[name][begin:end].sum())) < float("inf"):
                raise NotFinite(f"its outputs ({name}) are NaN or infinite")
