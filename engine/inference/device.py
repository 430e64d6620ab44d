"""A device of the inference server: its network, what its evaluators are doing, and how long that takes."""

import threading
import time
from dataclasses import dataclass, field

from engine.nets.network import Network

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
            if self.network.merges:
                usual_s = max(usual_s, pace.seconds_per_call)
            taken_s = now_s - since_s
            busy_s.append(0.0 if not positions else usual_s - taken_s if taken_s < usual_s else taken_s)
        return busy_s


def _mean(old: float, new: float) -> float:
    """A running mean with one more measurement."""
    return MEMORY * old + (1.0 - MEMORY) * new if old else new
