"""Loading networks onto devices, and comparing their outputs with a reference.

The reference is the plain float32 forward pass on the CPU (:func:`engine.nets.compute.adapter.exact_output`). Devices
differ from it by folded normalisation, Winograd's convolutions, the order of sums, and fewer bits.
"""

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.nets.compute.adapter import TorchNetwork, exact_output
from engine.nets.compute.precision import differences, excess, in_units
from engine.nets.compute.winograd import tile_side
from engine.nets.files.read import read_network
from engine.nets.network import HEADS, Model, NetOutput, Network, NetworkSpec
from engine.nets.notices import say_once
from engine.system import one_line
from weights import NetworkPath, files_of


def found_devices() -> dict[str, str]:
    """The available devices by name, each with a description."""
    arithmetic = torch.backends.cpu.get_cpu_capability()
    found = {"cpu": f"{platform.processor() or platform.machine()} ({arithmetic}), {os.cpu_count()} cores"}
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        found[f"cuda:{index}"] = f"{card.name}, {card.total_memory >> 20} MiB"
    if torch.backends.mps.is_available():
        found["mps"] = "Apple's GPU"
    return found


ENCODERS = ("alphago-48", "alphago-49")
"""Encoders of policy and value network; the second has one plane more than the first"""
POLICY_PLANES = 48


def pair_spec(first: NetworkSpec, second: NetworkSpec) -> NetworkSpec:
    """The joint spec of AlphaGo's policy network and value network.

    Raises:
        ValueError: they are not a policy and a value network of AlphaGo's planes for the same boards; one line.
    """
    name = f"{first.name}+{second.name}"
    if (first.encoder, second.encoder) != ENCODERS or "policy" not in first.heads or "value" not in second.heads:
        raise ValueError(
            f"{name}: encoders {first.encoder} and {second.encoder}, expected a policy network of {ENCODERS[0]} and a "
            f"value network of {ENCODERS[1]}"
        )
    low, high = max(first.min_size, second.min_size), min(first.max_size, second.max_size)
    if low > high:
        raise ValueError(
            f"{name}: boards of {first.min_size} to {first.max_size} and of {second.min_size} to {second.max_size}, "
            "expected the same"
        )
    return NetworkSpec(name, second.encoder, low, high)


class AlphaGoPair:
    """AlphaGo's policy network and value network behind one Network interface."""

    def __init__(self, policy: Network, value: Network):
        """Join two networks on one device.

        Raises:
            ValueError: as for :func:`pair_spec`.
        """
        self.spec = pair_spec(policy.spec, value.spec)
        self.device, self.batches_requests = policy.device, policy.batches_requests
        self._policy, self._value = policy, value

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`; planes are those of the value network's encoder."""
        policy = self._policy.evaluate(planes[:, :POLICY_PLANES], globals_).policy
        return NetOutput(policy, self._value.evaluate(planes, globals_).value)


EXPECTED = "auto, cpu, mps, cuda or cuda:N"
Samples = Callable[[str, int], tuple[np.ndarray, np.ndarray]]
"""Function from an encoder's name and a board size to planes and globals of some positions"""


def choose_device(device: str = "auto", threads: int = 0) -> torch.device:
    """The torch device for ``auto`` (CUDA if available, else the CPU) or for torch's name of a device.

    Args:
        threads: sets the number of torch's CPU threads; 0 = unchanged.
    Raises:
        ValueError: no such device here.
    """
    # A thread that has not computed yet would take the number last set by any thread, such as an evaluator's 1.
    torch.set_num_threads(threads or torch.get_num_threads())
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"unknown device {device!r}, expected {EXPECTED}") from error
    try:
        torch.zeros(1, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {device!r} cannot be used here ({one_line(error)}), expected {EXPECTED}") from error
    return chosen


def choose_devices(device: str = "auto") -> list[torch.device]:
    """The devices named by an option: one, or several GPUs separated by commas.

    ``auto`` is the first CUDA device, else Apple's GPU, else the CPU.

    Raises:
        ValueError: a device is not available or named twice, or the CPU is named beside a GPU, which would wait for it.
    """
    if device == "auto" and torch.backends.mps.is_available() and not torch.cuda.is_available():
        device = "mps"
    chosen = [choose_device(name.strip()) for name in device.split(",")]
    # Plain "cuda" is the first one.
    chosen = [torch.device("cuda", 0) if one == torch.device("cuda") else one for one in chosen]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"device {device!r} names one twice, expected each once")
    if len(chosen) > 1 and any(one.type == "cpu" for one in chosen):
        raise ValueError(f"device {device!r} has the CPU beside others, expected the CPU alone or several GPUs")
    return chosen


def load_network(
    path: NetworkPath, device: str | torch.device = "auto", samples: Samples | None = None, reduced: bool | None = None
) -> Network:
    """Read a network file and load it onto a device.

    Args:
        path: a file, or the files of AlphaGo's policy network and value network, which are joined.
        device: as for :func:`choose_device`.
        samples: positions for a comparison with the reference
            (:func:`engine.nets.compute.adapter.exact_output`). A network that differs too much in 16 bits runs in 32,
            and one that a device computes wrongly runs on the CPU, each with a line on standard error.
        reduced: as for :class:`engine.nets.compute.adapter.TorchNetwork`.
    Raises:
        ValueError: one line that names the file or the device and what was expected.
    """
    files = files_of(path)
    if len(files) > 1:
        first, second = (load_network(one, device, samples, reduced) for one in files)
        if first.device != second.device:
            # One of them is computed wrongly there; the two are evaluated together.
            first, second = (load_network(one, "cpu", samples, reduced) for one in files)
        return AlphaGoPair(first, second)
    model, spec, _ = read_network(files[0])
    chosen = device if isinstance(device, torch.device) else choose_device(device)
    return checked(model, spec, chosen, samples, reduced)


def checked(
    model: Model, spec: NetworkSpec, device: torch.device, samples: Samples | None, reduced: bool | None = None
) -> TorchNetwork:
    """The network on a device, in 16 bits if they are faster and precise enough; on the CPU if only that is correct.

    Args:
        model: on the CPU in float32.
        samples: positions to compare on (:func:`load_network`); None = no comparison.
        reduced: as for :class:`engine.nets.compute.adapter.TorchNetwork`.
    """
    network = TorchNetwork(model, spec, device, reduced)
    if samples is None or network.is_plain:
        return network
    largest = torch_samples(samples, spec.encoder, spec.max_size)
    if network.dtype != torch.float32:
        wrong = _excess(network, model, *largest)
        if not wrong:
            return network
        say_once(f"network {spec.name} runs in float32: in {str(network.dtype).removeprefix('torch.')} {wrong}")
        network = TorchNetwork(model, spec, device, reduced=False)
    # Errors in float32 show in every position: one is enough for each Winograd tile size.
    compared = [largest] if not network.is_plain else []
    if network.is_compiled:
        compared += [torch_samples(samples, spec.encoder, size) for size in _of_other_tiles(spec)]
    wrong = next(filter(None, (_excess(network, model, *(part[-1:] for part in one)) for one in compared)), "")
    if not wrong:
        return network
    if device.type != "cpu":
        say_once(f"network {spec.name} runs on the CPU: {device} computes it wrongly, {wrong}")
        return checked(model, spec, torch.device("cpu"), samples)
    say_once(f"network {spec.name} runs slowly: our own kernels compute it wrongly here, {wrong}")
    return TorchNetwork(model, spec, device, reduced=False, compiled=False)


def torch_samples(samples: Samples, encoder: str, size: int) -> tuple[Tensor, Tensor]:
    """Planes and globals of sample positions, as tensors."""
    planes, globals_ = samples(encoder, size)
    return torch.from_numpy(planes), torch.from_numpy(globals_)


def _of_other_tiles(spec: NetworkSpec) -> list[int]:
    """The largest board size with another Winograd tile size than ``max_size``, in a list; empty if there is none."""
    sizes = range(spec.max_size, spec.min_size - 1, -1)
    return [size for size in sizes if tile_side(size) != tile_side(spec.max_size)][:1]


def _excess(network: TorchNetwork, model: Model, planes: Tensor, globals_: Tensor) -> str:
    """Text for the differences between a network on its device and the reference; empty if it is close enough."""
    rough = network.evaluate(planes.to(network.device), globals_.to(network.device)).each(Tensor.cpu)
    return excess(exact_output(model, planes, globals_), rough)


SMALL = 9
"""Board size on which outputs are compared, besides the largest"""


class Check(NamedTuple):
    """The comparison of one device and dtype with the reference."""

    device: str
    dtype: str
    plays: bool
    """whether the engine plays with this dtype on the device"""
    errors: dict[str, float]
    """largest differences by unit: win rate, policy (probability), score (points), ownership (-1 to 1)"""
    limits: dict[str, float]

    @property
    def is_close(self) -> bool:
        """Whether all differences are within their limits."""
        return all(error <= self.limits[head] for head, error in self.errors.items())


def verify(model: Model, spec: NetworkSpec, devices: Sequence[torch.device], samples: Samples) -> Iterator[Check]:
    """Compare a network on every device, in 32 and in 16 bits, with the reference.

    Args:
        model: on the CPU.
        samples: the positions.
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
            limits = {head.unit: head.limit_16 if reduced else head.limit_32 for head in HEADS.values()}
            dtype = str(network.dtype).removeprefix("torch.")
            plays = (playing.device, playing.dtype) == (device, network.dtype)
            yield Check(str(device), dtype, plays, errors, limits)


def board_sizes(spec: NetworkSpec) -> list[int]:
    """The board sizes to compare: the largest, and a small one if the network plays it."""
    return sorted({spec.max_size, max(spec.min_size, min(SMALL, spec.max_size))})


def symmetry_spread(model: Model, spec: NetworkSpec, samples: Samples) -> dict[str, float]:
    """Standard deviation of a network's outputs over the eight symmetries, averaged over positions.

    Args:
        model: on the CPU in float32.
        samples: the positions, on the largest board.
    Returns:
        dict: ``win rate`` and ``score`` (points), if the network has the heads.
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
