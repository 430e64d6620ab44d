"""From an evaluator thread to a network: inputs gathered from several callers, outputs brought back to the CPU.

An evaluator thread has one runner, which keeps what belongs to that thread alone. On CUDA that is a stream with its
staging memory and its graphs (:mod:`engine.nets.compute.cuda`), so batches of two threads overlap.
"""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor

from engine.nets.compute.cuda import CudaRunner
from engine.nets.network import NetOutput, Network

_MPS_LOCK = threading.Lock()
"""torch has one queue for Apple's GPU, which two threads must not fill at once."""


class Runner(Protocol):
    """Calls a network for one thread."""

    def run(self, planes: Sequence[Tensor], globals_: Sequence[Tensor]) -> NetOutput:
        """Evaluate the positions of several callers as one batch.

        Args:
            planes: float32[B_i, C, N, N] on the CPU, one a caller.
            globals_: float32[B_i, G], likewise.
        Returns:
            NetOutput on the CPU for all of them in order; valid until the next call.
        Raises:
            ValueError: as for :meth:`engine.nets.network.Network.evaluate`.
            RuntimeError: the device failed, or has no memory left (:func:`is_out_of_memory`).
        Threads: the runner's own.
        """
        ...

    def prepare(self, size: int, planes: int, globals_: int, most: int) -> int:
        """Do once what batches of up to ``most`` positions need, so that none of them has to wait for it.

        Args:
            size, planes, globals_: of the boards to come.
        Returns:
            int: ``most``, lowered to what the device's memory holds.
        Raises:
            ValueError, RuntimeError: as for :meth:`run`.
        """
        ...


class PlainRunner:
    """For the CPU, for Apple's GPU and for fakes."""

    def __init__(self, network: Network):
        self._network = network
        self._lock: AbstractContextManager[Any] = _MPS_LOCK if network.device.type == "mps" else nullcontext()

    def run(self, planes: Sequence[Tensor], globals_: Sequence[Tensor]) -> NetOutput:
        """See :class:`Runner`."""
        with self._lock:
            inputs = (_joined(parts).to(self._network.device) for parts in (planes, globals_))
            return self._network.evaluate(*inputs).each(Tensor.cpu)

    def prepare(self, size: int, planes: int, globals_: int, most: int) -> int:
        """See :class:`Runner`: at its first call for a board size a network is traced, or written as a program."""
        self.run([torch.zeros(1, planes, size, size)], [torch.zeros(1, globals_)])
        return most


def new_runner(network: Network) -> Runner:
    """The runner that suits a network's device."""
    return CudaRunner(network) if network.device.type == "cuda" else PlainRunner(network)


def is_out_of_memory(error: Exception) -> bool:
    """Whether a smaller batch may help; only CUDA has a class of its own for it."""
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error).lower()


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """One tensor of several."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
