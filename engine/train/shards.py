"""The gradient of a batch in shards: on processors, threads of this process compute a part each.

Each does so with a single one of torch's threads. Torch's own threads wait for each other in every layer, and spin
meanwhile: beside anything else that computes a step took ten times the processor's time. Our own convolutions, which
processors without bfloat16 learn by (:mod:`engine.nets.compute.winograd_learning`), take one thread each anyway. Losses
are sums over a batch, so the sum of the shards' gradients is that of the whole; only batch normalisation would see each
shard by itself, so its networks have one.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Tensor, nn

from engine.nets.compute.precision import learns_in_bfloat16, training_format
from engine.nets.compute.winograd_learning import learns_by_winograd, one_torch_thread, with_learning_winograd

R = TypeVar("R")
FEW = 4
"""Torch's threads that one thread with our convolutions is faster than, where a batch is not to be cut"""


class Shards:
    """How a network's gradients are computed on its device. Threads: one caller."""

    def __init__(self, model: nn.Module, device: torch.device, is_shared: bool = False) -> None:
        """Choose the fast way for a network, a device and the number of torch's threads, which are the most it takes.

        Args:
            model: its parameters are on the device.
            is_shared: several processes average their gradients on the way back, which takes the whole batch at once.
        """
        self._device, self._parameters = device, list(model.parameters())
        threads, is_whole = torch.get_num_threads(), is_shared or _has_statistics(model)
        self.by_winograd = learns_by_winograd(device, model) and not (is_whole and threads > FEW)
        self.count = threads if device.type == "cpu" and not is_whole else 1
        self.is_apart = self.by_winograd or self.count > 1
        """whether each thread computes for itself"""
        self.model = with_learning_winograd(model) if self.by_winograd else model
        """the module to call, on the same parameters"""
        self._pool = ThreadPoolExecutor(self.count, "shard", torch.set_num_threads, (1,)) if self.count > 1 else None

    @property
    def memory_format(self) -> torch.memory_format:
        """How weights and planes lie in memory."""
        return torch.channels_last if self.by_winograd else training_format(self._device)

    @property
    def said(self) -> str:
        """The way in words, for the log of a run."""
        bits = "bfloat16" if learns_in_bfloat16(self._device) else "float32"
        if self._device.type != "cpu":
            return f"learning in {bits} on {self._device}"
        way = " by Winograd's convolutions" if self.by_winograd else ""
        threads = self.count if self.is_apart else torch.get_num_threads()
        cut = ", each a part of the batch" if self.count > 1 else ""
        return f"learning in {bits}{way} with {threads} thread{'s' * (threads > 1)}{cut}"

    def parts(self, count: int) -> list[slice]:
        """The shards of a batch of ``count``, none of them empty."""
        shards = max(1, min(self.count, count))
        edges = [count * k // shards for k in range(shards + 1)]
        return [slice(start, end) for start, end in pairwise(edges)]

    def backward(self, losses: Sequence[Callable[[], tuple[Tensor, R]]]) -> list[R]:
        """Add the gradient of the sum of some losses to the parameters'.

        Args:
            losses: of the shards; each is called once, in any thread, and returns with its loss what is wanted of it.
        Returns:
            what was wanted, in order. The sum is always taken in this order.
        """
        if self._pool is None or len(losses) == 1:
            return [self._here(one) for one in losses]
        found = list(self._pool.map(self._gradients, losses))
        for gradients, _ in found:
            for value, gradient in zip(self._parameters, gradients, strict=True):
                if gradient is not None:
                    value.grad = gradient if value.grad is None else value.grad.add_(gradient)
        return [wanted for _, wanted in found]

    def _here(self, loss: Callable[[], tuple[Tensor, R]]) -> R:
        """Let a loss go back in this thread."""
        with one_torch_thread(self.is_apart):
            total, wanted = loss()
            total.backward()
        return wanted

    def _gradients(self, loss: Callable[[], tuple[Tensor, R]]) -> tuple[Sequence[Tensor | None], R]:
        """The gradients of a loss by the parameters; None = it has no part in it."""
        total, wanted = loss()
        return torch.autograd.grad(total, self._parameters, allow_unused=True), wanted


def _has_statistics(model: nn.Module) -> bool:
    """Whether a network keeps something of its batches, as batch normalisation does."""
    return any(True for _ in model.buffers())
