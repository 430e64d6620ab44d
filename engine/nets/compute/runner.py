"""Runners: they move the inputs of one batch to a network's device and its outputs back to numpy.

Each evaluator thread has one runner. That of CUDA is in :mod:`engine.nets.compute.cuda`.
"""

import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from engine.nets.network import NetArrays, Network

_MPS_LOCK = threading.Lock()
"""torch has one queue for Apple's GPU, which two threads must not use at once."""


class Runner(Protocol):
    """Evaluates batches with a network, for one thread."""

    def run(self, planes: Sequence[np.ndarray], globals_: Sequence[np.ndarray]) -> NetArrays:
        """Evaluate the positions of several callers as one batch.

        Args:
            planes: float32[B_i, C, N, N], one for each caller.
            globals_: float32[B_i, G], one for each caller.
        Returns:
            the outputs for all positions in order; valid until the next call.
        Raises:
            ValueError: as for :meth:`engine.nets.network.Network.evaluate`.
            RuntimeError: the device failed or is out of memory (:func:`is_out_of_memory`).
        Threads: the runner's own.
        """
        ...

    def prepare(self, size: int, planes: int, globals_: int, most: int) -> int:
        """Allocate memory and compile for batches of up to ``most`` positions, so that no later :meth:`run` has to.

        Args:
            size, planes, globals_: N, C and G of the batches.
        Returns:
            int: ``most``, lowered to what fits the device's memory.
        Raises:
            ValueError, RuntimeError: as for :meth:`run`.
        """
        ...


class PlainRunner:
    """The :class:`Runner` for the CPU, for Apple's GPU and for fake networks."""

    def __init__(self, network: Network):
        self._network = network
        self._lock: AbstractContextManager[Any] = _MPS_LOCK if network.device == "mps" else nullcontext()

    def run(self, planes: Sequence[np.ndarray], globals_: Sequence[np.ndarray]) -> NetArrays:
        """See :meth:`Runner.run`."""
        with self._lock:
            return self._network.evaluate(_joined(planes), _joined(globals_))

    def prepare(self, size: int, planes: int, globals_: int, most: int) -> int:
        """See :meth:`Runner.prepare`; the server asks for it only on devices that batch requests."""
        self.run([np.zeros((1, planes, size, size), np.float32)], [np.zeros((1, globals_), np.float32)])
        return most


def new_runner(network: Network) -> Runner:
    """The runner for a network's device, for the calling thread."""
    if network.device.startswith("cuda"):
        from engine.nets.compute.cuda import CudaRunner

        return CudaRunner(network)
    # One thread for each evaluator: torch's own would compete with the other evaluators. Another thread may be in the
    # middle of the import.
    limit: Any = getattr(sys.modules.get("torch"), "set_num_threads", None)
    if limit is not None and not network.batches_requests:
        limit(1)
    return PlainRunner(network)


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error means that memory ran out, so that a smaller batch may fit; only CUDA has a class for it."""
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower()


def release_memory() -> None:
    """Release torch's unused GPU memory; no effect without a GPU."""
    if "engine.nets.compute.cuda" in sys.modules:
        from engine.nets.compute import cuda

        cuda.release_memory()


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The concatenation of some arrays."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
