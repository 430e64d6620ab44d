"""Whether a network says the same whichever way it is computed: on the CPU or a GPU, in 32 bits or 16.

The yardstick is the plain float32 forward pass on the CPU (:func:`engine.nets.compute.adapter.exact_output`), from
which a device's way departs by folded normalisation, Winograd's convolutions, other orders of sums, and fewer bits.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from engine.nets.compute.adapter import TorchNetwork, exact_output
from engine.nets.compute.precision import MAX_POLICY_ERROR, MAX_WIN_RATE_ERROR, likes_bfloat16
from engine.nets.network import NetOutput, NetworkSpec
from engine.nets.on_device import Samples

SMALL = 9
"""A board that is looked at besides the largest"""
LIMITS_32 = {"win rate": 0.002, "policy": 0.002, "score": 0.05, "ownership": 0.01}
"""In float32, which GPUs may multiply with 11 significant bits (TensorFloat-32)"""
LIMITS_16 = {"win rate": MAX_WIN_RATE_ERROR, "policy": MAX_POLICY_ERROR, "score": 1.0, "ownership": 0.1}


class Check(NamedTuple):
    """One way to compute, held against the yardstick."""

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


def verify(model: nn.Module, spec: NetworkSpec, devices: Sequence[torch.device], samples: Samples) -> Iterator[Check]:
    """Compare every way to compute a network, on every device in 32 and in 16 bits.

    Args:
        model: on the CPU.
        samples: gives the positions.
    Raises:
        RuntimeError: a device failed.
    """
    inputs = [tuple(map(torch.from_numpy, samples(spec.encoder, size))) for size in board_sizes(spec)]
    exact = [exact_output(model, *tensors) for tensors in inputs]
    for device in devices:
        for reduced in (False, True):
            network = TorchNetwork(model, spec, device, reduced)
            found = [_on_cpu(network.evaluate(*(tensor.to(device) for tensor in tensors))) for tensors in inputs]
            parts = [differences(one, other) for one, other in zip(exact, found, strict=True)]
            errors = {head: max(part[head] for part in parts) for head in parts[0]}
            limits, dtype = LIMITS_16 if reduced else LIMITS_32, str(network.dtype).removeprefix("torch.")
            yield Check(str(device), dtype, reduced == likes_bfloat16(device), errors, limits)


def board_sizes(spec: NetworkSpec) -> list[int]:
    """The boards that are looked at: the largest, and a small one if the network plays it."""
    return sorted({spec.max_size, max(spec.min_size, min(SMALL, spec.max_size))})


def differences(exact: NetOutput, rough: NetOutput) -> dict[str, float]:
    """Largest difference of each head that is there, as in :class:`Check`; NaN counts as infinite."""
    other = _views(rough)
    return {
        head: float((one - other[head]).abs().nan_to_num(nan=torch.inf).max()) for head, one in _views(exact).items()
    }


def symmetry_spread(model: nn.Module, spec: NetworkSpec, samples: Samples) -> dict[str, float]:
    """How far a network's opinions of the eight views of one position lie apart, on average over some positions.

    Returns:
        dict: the standard deviation over the views, of win rate and score, for the heads that are there.
    """
    planes, globals_ = map(torch.from_numpy, samples(spec.encoder, spec.max_size))
    views = [_views(exact_output(model, turned, globals_)) for turned in _turned(planes)]
    return {
        head: float(torch.stack([view[head] for view in views]).std(dim=0, correction=0).mean())
        for head in ("win rate", "score")
        if head in views[0]
    }


def _turned(planes: Tensor) -> Iterator[Tensor]:
    """The planes of the eight symmetries of some positions."""
    for one in (planes, planes.transpose(2, 3)):
        for axes in ((), (2,), (3,), (2, 3)):
            yield one.flip(axes).contiguous()


def _views(output: NetOutput) -> dict[str, Tensor]:
    """The heads that are there, on the scales of :class:`Check`."""
    views = {
        "win rate": None if output.value is None else (1 + output.value) / 2,
        "policy": None if output.policy is None else output.policy.softmax(1),
        "score": output.score,
        "ownership": output.ownership,
    }
    return {head: view for head, view in views.items() if view is not None}


def _on_cpu(output: NetOutput) -> NetOutput:
    """The same on the CPU."""
    return NetOutput(*(None if head is None else head.cpu() for head in output))
