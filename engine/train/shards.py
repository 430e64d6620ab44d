"""Data parallelism on the CPU: threads of this process compute the gradients of a batch's shards.

Each thread uses a single thread of torch. Torch's own threads synchronise in every layer and spin meanwhile: next to
any other computation a step took ten times the CPU time. Our Winograd convolutions, which CPUs without bfloat16 use in
training (:mod:`engine.nets.compute.winograd_learning`), are single-threaded anyway. Losses are sums over a batch, so
the sum of the shards' gradients is that of the batch; batch normalisation would use statistics of a shard, so networks
with it have one shard.
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
"""Number of torch's threads up to which one thread with Winograd convolutions is faster, for an undivided batch"""


class Shards:
    """Computes a network's gradients on its device. Threads: one caller."""

    def __init__(self, model: nn.Module, device: torch.device, is_shared: bool = False) -> None:
        """Choose the fastest method for the network and device with at most torch's number of threads.

        Args:
            model: on the device.
            is_shared: several processes average their gradients in the backward pass, which needs an undivided batch.
        """
        self._device, self._parameters = device, list(model.parameters())
        threads, is_whole = torch.get_num_threads(), is_shared or _has_statistics(model)
        self.by_winograd = learns_by_winograd(device, model) and not (is_whole and threads > FEW)
        self.count = threads if device.type == "cpu" and not is_whole else 1
        self.is_apart = self.by_winograd or self.count > 1
        """whether each thread uses a single thread of torch"""
        self.model = with_learning_winograd(model) if self.by_winograd else model
        """the module to call; it shares the parameters"""
        self._pool = ThreadPoolExecutor(self.count, "shard", torch.set_num_threads, (1,)) if self.count > 1 else None

    @property
    def memory_format(self) -> torch.memory_format:
        """Memory format of weights and planes."""
        return torch.channels_last if self.by_winograd else training_format(self._device)

    @property
    def description(self) -> str:
        """The method in words, for the log of a run."""
        bits = "bfloat16" if learns_in_bfloat16(self._device) else "float32"
        if self._device.type != "cpu":
            return f"training in {bits} on {self._device}"
        method = " by Winograd convolutions" if self.by_winograd else ""
        threads = self.count if self.is_apart else torch.get_num_threads()
        parts = ", each a part of the batch" if self.count > 1 else ""
        return f"training in {bits}{method} with {threads} thread{'s' * (threads > 1)}{parts}"

    def parts(self, count: int) -> list[slice]:
        """The shards of a batch of ``count`` positions, none empty."""
        shards = max(1, min(self.count, count))
        edges = [count * k // shards for k in range(shards + 1)]
        return [slice(start, end) for start, end in pairwise(edges)]

    def backward(self, losses: Sequence[Callable[[], tuple[Tensor, R]]]) -> list[R]:
        """Add the gradient of the sum of the shards' losses to the parameters' gradients, always in this order.

        Args:
            losses: of the shards; each is called once, in any thread, and returns its loss and a further result.
        Returns:
            the further results, in order.
        """
        if self._pool is None or len(losses) == 1:
            return [self._here(one) for one in losses]
        found = list(self._pool.map(self._gradients, losses))
        for gradients, _ in found:
            for value, gradient in zip(self._parameters, gradients, strict=True):
                if gradient is not None:
                    value.grad = gradient if value.grad is None else value.grad.add_(gradient)
        return [result for _, result in found]

    def _here(self, loss: Callable[[], tuple[Tensor, R]]) -> R:
        """The backward pass of a loss in the calling thread; returns the further result."""
        with one_torch_thread(self.is_apart):
            total, result = loss()
            total.backward()
        return result

    def _gradients(self, loss: Callable[[], tuple[Tensor, R]]) -> tuple[Sequence[Tensor | None], R]:
        """The gradients of a loss (None = the loss does not depend on the parameter) and the further result."""
        total, result = loss()
        return torch.autograd.grad(total, self._parameters, allow_unused=True), result


def _has_statistics(model: nn.Module) -> bool:
    """Whether a network keeps statistics of its batches, as batch normalisation does."""
    return any(True for _ in model.buffers())
