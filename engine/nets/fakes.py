"""Networks without weights, for tests and measurements: they wear the real interface and cost next to nothing."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from engine.nets.network import HEADS, NetOutput, NetworkSpec

MASK_BITS = 20


class UniformNetwork:
    """Knows nothing: equal logits, value 0, score 0, ownership 0."""

    def __init__(self, encoder: str, min_size: int = 2, max_size: int = 25):
        self.spec = NetworkSpec("uniform", encoder, min_size, max_size, tuple(HEADS))
        self.device, self.batches_requests = torch.device("cpu"), False

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        count, size = planes.shape[0], planes.shape[2]
        value = torch.zeros(count)
        return NetOutput(torch.zeros(count, size * size + 1), value, value, torch.zeros(count, size, size))


class SerialNetwork(UniformNetwork):
    """Takes its time as a GPU does: one batch after another, as long for any up to a limit. Moves are alike to it, and
    values a hash of the first plane.

    A call that comes while the device is busy begins when the call before it ends, to the clock and not to the moment
    a thread wakes; so callers who keep a second batch waiting get all the device has, and ``idle_s`` stays 0.
    """

    def __init__(
        self, encoder: str, batch_s: float = 0.002, rows: int = 64,
        clock: Callable[[], float] = time.perf_counter, sleep: Callable[[float], None] = time.sleep,
    ):  # fmt: skip
        """A device that has not begun yet.

        Args:
            batch_s: seconds for a batch of up to ``rows`` positions; a larger one takes a multiple.
            clock, sleep: other ways to read and to pass time, for tests.
        """
        super().__init__(encoder)
        self.batches_requests = True
        self.batch_s, self.rows = batch_s, rows
        self.calls = self.positions = 0
        self.idle_s = 0.0
        """time between the first call and the latest in which there was nothing to do"""
        self._clock, self._sleep = clock, sleep
        self._free_at = 0.0
        self._lock = threading.Lock()

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`. Threads: any number; they queue up."""
        output = super().evaluate(planes, globals_)
        words = planes[:, 0].reshape(len(planes), -1).to(torch.int64)
        digest = _mix((words * (_mix(torch.arange(words.shape[1])) | 1)).sum(dim=1))
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
    """Outputs that look random but are a function of the input alone, in exact integer arithmetic.

    Any change of an input value changes every output; batch size and order change nothing. Outputs are not
    symmetric: a board under another symmetry is another board.
    """

    def __init__(self, encoder: str, min_size: int = 2, max_size: int = 25, seed: int = 1):
        super().__init__(encoder, min_size, max_size)
        self.spec = replace(self.spec, name="hash")
        self._seed = seed

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        count, size = planes.shape[0], planes.shape[2]
        inputs = torch.cat([planes.reshape(count, -1), globals_], dim=1)
        words = (inputs * 1024.0).to(torch.int64)
        places = _mix(torch.arange(words.shape[1]) + self._seed)
        digest = _mix((words * (places | 1)).sum(dim=1) + self._seed)
        outputs = 2 * size * size + 3
        units = _unit(_mix(digest[:, None] + torch.arange(outputs)))
        points = size * size
        return NetOutput(
            policy=3.0 * units[:, : points + 1],
            value=0.9 * units[:, points + 1],
            score=10.0 * units[:, points + 2],
            ownership=units[:, points + 3 :].reshape(count, size, size),
        )


def _mix(words: Tensor) -> Tensor:
    """Scramble int64 words (xor-shift and multiply, wrapping around)."""
    words = (words ^ ((words >> 29) & 0x7FFFFFFFF)) * -0x40A7B892E31B1A47
    words = (words ^ ((words >> 32) & 0xFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return words ^ ((words >> 32) & 0xFFFFFFFF)


def _unit(words: Tensor) -> Tensor:
    """float32 from -1 to 1 from the low bits of words."""
    return (words & ((1 << MASK_BITS) - 1)).to(torch.float32) / (1 << (MASK_BITS - 1)) - 1.0
