"""Data parallelism on the CPU: threads of this process compute the gradients of a batch's shards.

Each of these threads uses a single thread of torch. Torch's own threads synchronise in every layer and spin while they
wait: while anything else computed, a step took ten times the CPU time. Our Winograd convolutions, which CPUs without
bfloat16 use in training (:mod:`engine.nets.compute.winograd_learning`), are single-threaded anyway. A shard's loss is
its share of the batch's mean, so the sum of the shards' gradients is the batch's gradient; batch normalisation would
use statistics of a shard, so for networks with batch normalisation the whole batch is a single shard.
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
"""For a batch in one shard, one thread with Winograd convolutions is faster than torch with up to ``FEW`` threads"""


class Shards:
    """Computes a network's gradients on its device, on a CPU by shards of the batch in threads. Threads: one caller."""

    def __init__(self, model: nn.Module, device: torch.device, is_shared: bool = False) -> None:
        """Choose the fastest method for the network and device, with at most torch's number of threads.

        Args:
            model: the network, already on ``device``.
            is_shared: several processes average gradients in the backward pass; the batch is then one shard.
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
        """Torch memory format in which weights and planes must be."""
        return torch.channels_last if self.by_winograd else training_format(self._device)

    @property
    def description(self) -> str:
        """The chosen method of training in words, for the log of a run."""
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
        """Add the gradients of the shards' losses to the parameters' gradients, in the order of the shards.

        Args:
            losses: for each shard, a function that returns its loss and any further result; called once, in any
                thread.
        Returns:
            the further results, in the order of ``losses``.
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
        """Run a loss and its backward pass in the calling thread; returns the loss's further result."""
        with one_torch_thread(self.is_apart):
            total, result = loss()
            total.backward()
        return result

    def _gradients(self, loss: Callable[[], tuple[Tensor, R]]) -> tuple[Sequence[Tensor | None], R]:
        """A loss's gradient by each parameter (None = no dependence on the parameter), and its further result."""
        total, result = loss()
        return torch.autograd.grad(total, self._parameters, allow_unused=True), result


def _has_statistics(model: nn.Module) -> bool:
    """Whether a network has buffers, which hold statistics of batches in batch normalisation."""
    return any(True for _ in model.buffers())
