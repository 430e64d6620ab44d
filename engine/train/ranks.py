"""Data-parallel training by processes of torchrun: the rank of this process, and collective operations.

Each process sees its own part of every batch, and DistributedDataParallel averages the gradients, so N processes
with batch B take the same steps as one process with batch N * B; only batch normalisation (AlphaGo Zero's network)
uses the statistics of each part separately. Without torchrun there is one process, and collective operations do
nothing.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, distributed, nn

from engine.config.declaration import core_count


@dataclass(frozen=True)
class Ranks:
    """The rank of this process among all that train together, and their collective operations."""

    rank: int = 0
    count: int = 1
    local: int = 0
    """rank on this machine, which is the index of its GPU"""

    @property
    def is_first(self) -> bool:
        """Whether this process writes files, validates and prints."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The module to call in a training step: the model, or its DistributedDataParallel wrapper."""
        return model if self.count == 1 else nn.parallel.DistributedDataParallel(model)

    def most(self, number: int, device: torch.device) -> int:
        """The maximum of ``number`` over all processes; all processes must call this, so it is also a barrier."""
        if self.count == 1:
            return number
        held = torch.tensor(float(number), device=device)
        distributed.all_reduce(held, distributed.ReduceOp.MAX)
        return int(held.item())

    def of_first(self, number: int, device: torch.device) -> int:
        """The ``number`` that the first process gives; all processes must call this."""
        if self.count == 1:
            return number
        held = torch.tensor(number, device=device)
        distributed.broadcast(held, 0)
        return int(held.item())

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors of one dtype and device by their sums over all processes; all processes must call this."""
        if self.count == 1:
            return
        flat = torch.cat([one.reshape(-1) for one in tensors])
        distributed.all_reduce(flat)
        for one, summed in zip(tensors, flat.split([one.numel() for one in tensors]), strict=True):
            one.copy_(summed.view_as(one))

    def total(self, numbers: Sequence[float], device: torch.device) -> list[float]:
        """Each of ``numbers`` summed over all processes; all processes must call this."""
        if self.count == 1:
            # MPS has no float64.
            return list(map(float, numbers))
        held = torch.tensor(numbers, dtype=torch.float64, device=device)
        self.add([held])
        return list(map(float, held.tolist()))

    def by_first(self, write: Callable[[], None], device: torch.device, message: str) -> None:
        """Let the first process write files; all processes must call this, and all others wait for the first.

        Args:
            write: writes the files; called in the first process.
            message: message of the ValueError that all other processes raise if the first fails.
        Raises:
            ValueError, OSError: the first process failed; raised in all processes.
        """
        failed: ValueError | OSError | None = None
        if self.is_first:
            try:
                write()
            except (ValueError, OSError) as error:
                failed = error
        if self.most(failed is not None, device):
            raise failed or ValueError(message)

    def part(self, numbers: np.ndarray) -> np.ndarray:
        """This process's part of an array; parts differ in length by 1 at most."""
        return np.array_split(numbers, self.count)[self.rank]

    def leave(self, has_failed: bool = False) -> None:
        """Leave the process group; after a failure return at once, and let the other processes fail too."""
        if self.count > 1 and not has_failed:
            distributed.destroy_process_group()


def own_cores() -> int:
    """Number of CPU cores for this process: an equal share if several processes train on this machine."""
    return max(1, core_count() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def find_ranks(device: torch.device) -> tuple[Ranks, torch.device]:
    """Rank and device of this process from torchrun's environment; does not join the process group.

    Raises:
        ValueError: this machine has fewer GPUs than processes, or environment variables are missing.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Ranks(), device
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if missing := [name for name in names if name not in os.environ]:
        raise ValueError(f"WORLD_SIZE is set, but not {' and '.join(missing)}: start processes with torchrun")
    ranks = Ranks(*(int(os.environ[name]) for name in names))
    if device.type == "cuda":
        if ranks.local >= torch.cuda.device_count():
            raise ValueError(f"this machine has {torch.cuda.device_count()} GPUs, expected one for each process")
        device = torch.device("cuda", ranks.local)
        torch.cuda.set_device(device)
    return ranks, device


def join_ranks(device: torch.device) -> tuple[Ranks, torch.device]:
    """Do :func:`find_ranks`, and join the process group.

    Raises:
        ValueError: as for :func:`find_ranks`.
    """
    ranks, device = find_ranks(device)
    if ranks.count > 1:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return ranks, device
