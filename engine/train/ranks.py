"""Several processes that train one network together, started by torchrun: who this one is, and what they agree on.

Each process sees its own part of every batch, and DistributedDataParallel averages their gradients, so N processes
with batch B take the steps of one with batch N * B; only batch normalisation (AlphaGo Zero's network) still sees each
part by itself. Without torchrun there is one process and nothing to agree on.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, distributed, nn

from engine.config.declaration import core_count


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    count: int = 1
    local: int = 0
    """its number on this machine: which GPU is its own"""

    @property
    def is_first(self) -> bool:
        """Whether this process writes files, validates and talks."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The module to call in a training step: the model itself, or one that averages gradients."""
        return model if self.count == 1 else nn.parallel.DistributedDataParallel(model)

    def most(self, number: int, device: torch.device) -> int:
        """The largest number of all processes; all must call, so it is also where they wait for each other."""
        if self.count == 1:
            return number
        held = torch.tensor(float(number), device=device)
        distributed.all_reduce(held, distributed.ReduceOp.MAX)
        return int(held.item())

    def of_first(self, number: int, device: torch.device) -> int:
        """The first process's number; all must call."""
        if self.count == 1:
            return number
        held = torch.tensor(number, device=device)
        distributed.broadcast(held, 0)
        return int(held.item())

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors of one kind by their sums over all processes; all must call."""
        if self.count == 1:
            return
        flat = torch.cat([one.reshape(-1) for one in tensors])
        distributed.all_reduce(flat)
        for one, summed in zip(tensors, flat.split([one.numel() for one in tensors]), strict=True):
            one.copy_(summed.view_as(one))

    def total(self, numbers: Sequence[float], device: torch.device) -> list[float]:
        """Numbers, each summed over all processes; all must call."""
        if self.count == 1:
            # Apple's GPUs know no float64.
            return list(map(float, numbers))
        held = torch.tensor(numbers, dtype=torch.float64, device=device)
        self.add([held])
        return list(map(float, held.tolist()))

    def part(self, numbers: np.ndarray) -> np.ndarray:
        """This process's part of an array, as equal as may be."""
        return np.array_split(numbers, self.count)[self.rank]

    def leave(self, has_failed: bool = False) -> None:
        """End the collaboration; a process that has failed does not wait for the others, which then fail too."""
        if self.count > 1 and not has_failed:
            distributed.destroy_process_group()


def own_cores() -> int:
    """Processors for this process, where several train on one machine."""
    return max(1, core_count() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def find_ranks(device: torch.device) -> tuple[Ranks, torch.device]:
    """Who we are among the processes that torchrun started, if it did, and our own device; nothing is agreed on yet.

    Raises:
        ValueError: fewer GPUs on this machine than processes, or the launcher does not say which of them this is.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Ranks(), device
    said = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if unsaid := [name for name in said if name not in os.environ]:
        raise ValueError(f"WORLD_SIZE is set, but not {' and '.join(unsaid)}: start processes with torchrun")
    ranks = Ranks(*(int(os.environ[name]) for name in said))
    if device.type == "cuda":
        if ranks.local >= torch.cuda.device_count():
            raise ValueError(f"this machine has {torch.cuda.device_count()} GPUs, too few for a process each")
        device = torch.device("cuda", ranks.local)
        torch.cuda.set_device(device)
    return ranks, device


def join_ranks(device: torch.device) -> tuple[Ranks, torch.device]:
    """:func:`find_ranks`, and join these processes, so that they can agree.

    Raises:
        ValueError: as :func:`find_ranks`.
    """
    ranks, device = find_ranks(device)
    if ranks.count > 1:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return ranks, device
