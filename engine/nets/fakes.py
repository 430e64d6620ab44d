"""Fake networks without weights, for tests and measurements, behind the real interface."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.nets.network import HEADS, NetArrays, NetworkSpec

MASK_BITS = 20


class UniformNetwork:
    """A fake network with constant outputs: equal logits, value 0, score 0, ownership 0."""

    def __init__(self, encoder: str, min_size: int = 2, max_size: int = 25):
        self.spec = NetworkSpec("uniform", encoder, min_size, max_size, tuple(HEADS))
        self.device, self.batches_requests = "cpu", False

    def evaluate(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        count, size = planes.shape[0], planes.shape[2]
        shapes = (size * size + 1,), (), (), (size, size)
        return NetArrays(*(np.zeros((count, *shape), np.float32) for shape in shapes))


class SerialNetwork(UniformNetwork):
    """A simulated GPU: batches run one after another, each in constant time up to a batch size. Logits are equal,
    values a hash of the first plane.

    A call during another call starts when that call ends by the clock, not when its thread wakes. So with a second
    batch always queued the device is never idle, and ``idle_s`` stays 0.
    """

    def __init__(
        self, encoder: str, batch_s: float = 0.002, rows: int = 64,
        clock: Callable[[], float] = time.perf_counter, sleep: Callable[[float], None] = time.sleep,
    ):  # fmt: skip
        """Make an idle device.

        Args:
            batch_s: seconds for a batch of up to ``rows`` positions; a larger batch takes a multiple of it.
            clock, sleep: replacements of the clock, for tests.
        """
        super().__init__(encoder)
        self.batches_requests = True
        self.batch_s, self.rows = batch_s, rows
        self.calls = self.positions = 0
        self.idle_s = 0.0
        """idle time between the first call and the latest"""
        self._clock, self._sleep = clock, sleep
        self._free_at = 0.0
        self._lock = threading.Lock()

    def evaluate(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """See :meth:`engine.nets.network.Network.evaluate`. Threads: any number; they queue up."""
        output = super().evaluate(planes, globals_)
        words = planes[:, 0].reshape(len(planes), -1).astype(np.int64)
        digest = _mix((words * (_mix(np.arange(words.shape[1])) | 1)).sum(axis=1))
        output = output._replace(value=_unit(digest))
        with self._lock:
            start = max(self._clock(), self._free_at)
            if self.calls:
                self.idle_s += start - self._free_at
            self.calls += 1
            self.positions += len(planes)
            end = self._free_at = start + self.batch_s * -(-len(planes) // self.rows)
        self._sleep(max(0.0, end - self._clock()))
        return output


class HashNetwork(UniformNetwork):
    """A fake network with pseudo-random outputs: a hash of the input in integer arithmetic, the same on every machine.

    Any change of an input value changes every output; batch size and order change none. Outputs are not equivariant
    under the board's symmetries.
    """

    def __init__(self, encoder: str, min_size: int = 2, max_size: int = 25, seed: int = 1):
        super().__init__(encoder, min_size, max_size)
        self.spec = replace(self.spec, name="hash")
        self._seed = seed

    def evaluate(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        count, size = planes.shape[0], planes.shape[2]
        inputs = np.concatenate([planes.reshape(count, -1), globals_], axis=1)
        words = (inputs * np.float32(1024.0)).astype(np.int64)
        places = _mix(np.arange(words.shape[1]) + self._seed)
        digest = _mix((words * (places | 1)).sum(axis=1) + self._seed)
        outputs = 2 * size * size + 3
        units = _unit(_mix(digest[:, None] + np.arange(outputs)))
        points = size * size
        return NetArrays(
            policy=np.float32(3.0) * units[:, : points + 1],
            value=np.float32(0.9) * units[:, points + 1],
            score=np.float32(10.0) * units[:, points + 2],
            ownership=units[:, points + 3 :].reshape(count, size, size),
        )


def _mix(words: np.ndarray) -> np.ndarray:
    """Scramble int64 words (xor-shift and multiply, wrapping around)."""
    with np.errstate(over="ignore"):
        words = (words ^ ((words >> 29) & 0x7FFFFFFFF)) * np.int64(-0x40A7B892E31B1A47)
        words = (words ^ ((words >> 32) & 0xFFFFFFFF)) * np.int64(-0x6B2FB644ECCEEE15)
    return words ^ ((words >> 32) & 0xFFFFFFFF)


def _unit(words: np.ndarray) -> np.ndarray:
    """float32 from -1 to 1 from the low bits of words."""
    return (words & ((1 << MASK_BITS) - 1)).astype(np.float32) / np.float32(1 << (MASK_BITS - 1)) - np.float32(1.0)
