"""A device of the inference server: its network, the load of its evaluators, and the evaluation of batches."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.inference.slots import Request
from engine.nets.compute.runner import Runner, is_out_of_memory, release_memory
from engine.nets.network import NetArrays, Network

OLD_WEIGHT = 0.8
"""Weight of the old mean in the running means of :class:`Pace`; a new measurement has the rest"""


@dataclass
class Pace:
    """Running means of the times of network calls; 0 before the first call."""

    seconds_per_position: float = 0.0
    """time of a call divided by its positions"""
    seconds_per_call: float = 0.0
    """time of a call, whatever its batch size"""

    def note(self, positions: int, seconds: float) -> None:
        """Update the means with one call of this many positions that took this many seconds."""
        self.seconds_per_position = _mean(self.seconds_per_position, seconds / positions)
        self.seconds_per_call = _mean(self.seconds_per_call, seconds)


@dataclass
class Device:
    """A network on one device and its evaluators.

    Threads: ``repairing`` guards ``network``, ``is_exact`` and ``is_second``; the server's lock guards other fields.
    """

    network: Network
    max_batch: int
    """maximum number of positions in a batch; lowered when memory runs out"""
    evaluators: int
    """number of threads that call the network"""
    prepared: list[int]
    """for each evaluator, how many of the server's warm-up shapes, in their order, it has prepared for"""
    is_exact: bool = False
    """the network was reloaded in 32 bits after NaN or infinite outputs"""
    is_second: bool = False
    """the network was reloaded after another failure; the next such failure retires the device"""
    is_retired: bool = False
    """the device failed for good: its evaluators end"""
    repairing: threading.Lock = field(default_factory=threading.Lock)
    """held while a failure of the device is handled"""

    def __post_init__(self) -> None:
        self.running = [0] * self.evaluators
        """positions in the running batch of each evaluator; 0 = idle"""
        self.since_s = [0.0] * self.evaluators
        """``time.perf_counter`` at the start of each evaluator's latest call"""

    def begin(self, index: int, positions: int) -> None:
        """Record that evaluator number ``index`` starts a batch of this many positions."""
        self.running[index], self.since_s[index] = positions, time.perf_counter()

    def begun_s(self) -> list[float]:
        """``time.perf_counter`` at the start of each running call."""
        return [begun_s for count, begun_s in zip(self.running, self.since_s, strict=True) if count]

    def busy_s(self, pace: Pace) -> list[float]:
        """Expected seconds until each evaluator is idle; an overdue call is expected to last twice its time so far."""
        now_s, busy_s = time.perf_counter(), []
        for positions, since_s in zip(self.running, self.since_s, strict=True):
            usual_s = positions * pace.seconds_per_position
            if self.network.batches_requests:
                usual_s = max(usual_s, pace.seconds_per_call)
            taken_s = now_s - since_s
            busy_s.append(0.0 if not positions else usual_s - taken_s if taken_s < usual_s else taken_s)
        return busy_s


def _mean(old: float, new: float) -> float:
    """A running mean updated with one measurement, which replaces a mean of 0 (none yet)."""
    return OLD_WEIGHT * old + (1.0 - OLD_WEIGHT) * new if old else new


class NotFinite(RuntimeError):
    """Raised when a network's outputs are NaN or infinite."""


class Rows(NamedTuple):
    """Slots ``start`` to ``stop - 1`` of a request, evaluated together in one batch."""

    request: Request
    start: int
    stop: int


def split(slots: Sequence[Rows], limit: int) -> list[list[Rows]]:
    """Divide slots, in their order, into batches of ``limit`` positions; only the last batch may be smaller."""
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
        runner: used by the calling thread alone.
        limit: maximum number of positions in a batch.
        idle: called once, when the device has finished the last batch and before its outputs are copied.
    Returns:
        the limit, lowered if the device ran out of memory.
    Raises:
        Exception: the network refused the inputs or failed; some outputs may have been written.
    """
    waiting = split([Rows(request, 0, request.count) for request in requests], limit)
    while waiting:
        batch = waiting.pop(0)
        inputs = (
            [rows.request.arrays[name][rows.start : rows.stop] for rows in batch] for name in ("planes", "globals")
        )
        count = sum(rows.stop - rows.start for rows in batch)
        try:
            output = runner.run(*inputs)
        except RuntimeError as error:
            if count == 1 or not is_out_of_memory(error):
                raise
            output = None
        if output is None:
            # Not in the except block: there the traceback keeps the failed call's memory alive.
            release_memory()
            limit = count // 2
            waiting[:0] = split(batch, limit)
            continue
        if not waiting:
            idle()
        copy_outputs(output, batch)
    return limit


def copy_outputs(output: NetArrays, batch: Sequence[Rows]) -> None:
    """Copy a batch's outputs into the slots of its requests.

    Raises:
        NotFinite: an output is NaN or infinite.
    """
    for name, head in output._asdict().items():
        start = 0
        for request, begin, end in batch:
            if head is not None:
                request.arrays[name][begin:end] = head[start : start + end - begin]
            start += end - begin
            # A sum is finite only if all terms are; one pass without a temporary array.
            with np.errstate(all="ignore"):
                is_finite = head is None or np.isfinite(request.arrays[name][begin:end].sum())
            if not is_finite:
                raise NotFinite(f"its outputs ({name}) are NaN or infinite")
