"""Whether a network's outputs are the same however they are computed: on the CPU or a GPU, in 32 bits or 16.

The reference is the plain float32 forward pass on the CPU (:func:`engine.nets.compute.adapter.exact_output`), from
which a device's way departs by folded normalisation, Winograd's convolutions, other orders of sums, and fewer bits.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from engine.nets.compute.adapter import TorchNetwork, exact_output
from engine.nets.compute.precision import MAX_POLICY_ERROR, MAX_WIN_RATE_ERROR, differences, in_units
from engine.nets.network import Model, NetworkSpec
from engine.nets.on_device import Samples, checked, torch_samples

SMALL = 9
"""A board size that is compared besides the largest"""
LIMITS_32 = {"win rate": 0.002, "policy": 0.002, "score": 0.05, "ownership": 0.01}
"""In float32, which GPUs may multiply with 11 significant bits (TensorFloat-32)"""
LIMITS_16 = {"win rate": MAX_WIN_RATE_ERROR, "policy": MAX_POLICY_ERROR, "score": 1.0, "ownership": 0.1}


class Check(NamedTuple):
    """One way to compute, compared with the reference."""

    device: str
    dtype: str
    plays: bool
    """whether this is how the engine plays on the device"""
    errors: dict[str, float]
    """largest differences: of the win rate, of a move's probability, of the score in points, of ownership (-1 to 1)"""
    limits: dict[str, float]

    @property
    def is_close(self) -> bool:
        """Whether no difference is beyond its limit."""
        return all(error <= self.limits[head] for head, error in self.errors.items())


def verify(model: Model, spec: NetworkSpec, devices: Sequence[torch.device], samples: Samples) -> Iterator[Check]:
    """Compare every way to compute a network, on every device in 32 and in 16 bits.

    Args:
        model: on the CPU.
        samples: gives the positions.
    Raises:
        RuntimeError: a device failed.
    """
    inputs = [torch_samples(samples, spec.encoder, size) for size in board_sizes(spec)]
    exact = [exact_output(model, *tensors) for tensors in inputs]
    for device in devices:
        playing = checked(model, spec, device, samples)
        for reduced in (False, True):
            network = TorchNetwork(model, spec, device, reduced)
            found = [network.evaluate(*(part.to(device) for part in tensors)).each(Tensor.cpu) for tensors in inputs]
            parts = [differences(one, other) for one, other in zip(exact, found, strict=True)]
            errors = {head: max(part[head] for part in parts) for head in parts[0]}
            limits, dtype = LIMITS_16 if reduced else LIMITS_32, str(network.dtype).removeprefix("torch.")
            plays = (playing.device, playing.dtype) == (device, network.dtype)
            yield Check(str(device), dtype, plays, errors, limits)


def board_sizes(spec: NetworkSpec) -> list[int]:
    """The board sizes that are compared: the largest, and a small one if the network plays it."""
    return sorted({spec.max_size, max(spec.min_size, min(SMALL, spec.max_size))})


def symmetry_spread(model: Model, spec: NetworkSpec, samples: Samples) -> dict[str, float]:
    """How much a network's outputs depend on the symmetry that a position is shown under.

    Args:
        model: on the CPU in float32.
        samples: gives the positions, of the largest board.
    Returns:
        dict: the standard deviation over the eight symmetries, of ``win rate`` and ``score`` (points) as far as the
        network has them, on average over the positions.
    """
    planes, globals_ = torch_samples(samples, spec.encoder, spec.max_size)
    views = [in_units(exact_output(model, shown, globals_)) for shown in _symmetries(planes)]
    return {
        head: float(torch.stack([view[head] for view in views]).std(dim=0, correction=0).mean())
        for head in ("win rate", "score")
        if head in views[0]
    }


def _symmetries(planes: Tensor) -> Iterator[Tensor]:
    """The planes [B, C, N, N] of some positions under each of the eight symmetries."""
    for one in (planes, planes.transpose(2, 3)):
        for axes in ((), (2,), (3,), (2, 3)):
            yield one.flip(axes).contiguous()
