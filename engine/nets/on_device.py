"""From a file to a network ready to evaluate."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engine.nets.compute.adapter import TorchNetwork, exact_output
from engine.nets.compute.precision import excess
from engine.nets.compute.winograd_tiles import tile_side
from engine.nets.files.read import read_network
from engine.nets.network import Model, Network, NetworkSpec
from engine.nets.notices import say_once
from engine.nets.pair import AlphaGoPair
from engine.system import one_line
from weights import NetworkPath, files_of

EXPECTED = "auto, cpu, mps, cuda or cuda:N"
Samples = Callable[[str, int], tuple[np.ndarray, np.ndarray]]
"""From an encoder's name and a board size to planes and globals of a few positions"""


def choose_device(device: str = "auto", threads: int = 0) -> torch.device:
    """The torch device for ``auto`` (CUDA if there is one, else the CPU) or for a name torch knows.

    Args:
        threads: CPU threads of torch from now on; 0 = as they are.
    Raises:
        ValueError: no such device here.
    """
    # A thread that has not computed yet takes the number that any thread has set last; evaluators set one. To ask is to
    # settle it for this thread.
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
    """The devices that play: those named, with commas between several GPUs, or the best there is for ``auto``.

    ``auto`` is the first CUDA device, else Apple's GPU, else the CPU.

    Raises:
        ValueError: one of them is not here, named twice, or the CPU beside a GPU, which would wait for it.
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
    """Read a network file and put it on a device.

    Args:
        path: a file, or AlphaGo's two: policy network and value network, which then play as one.
        device: as for :func:`choose_device`.
        samples: where given, these positions are also evaluated by the reference
            (:func:`engine.nets.compute.adapter.exact_output`). A network that differs too much in 16 bits runs in 32,
            and one that a device computes wrongly runs on the CPU, each with a line on standard error.
        reduced: as of :class:`engine.nets.compute.adapter.TorchNetwork`.
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
    """The network in as few bits as it bears, by the fastest way that computes it correctly.

    Args:
        model: on the CPU in float32.
        samples: positions to compare on (:func:`load_network`); None = it is not compared.
        reduced: as of :class:`engine.nets.compute.adapter.TorchNetwork`.
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
    # What goes wrong in float32 goes wrong in every position: one is enough for each kind of tiles.
    compared = [largest] if not network.is_plain else []
    if network.is_written:
        compared += [torch_samples(samples, spec.encoder, size) for size in _of_other_tiles(spec)]
    wrong = next(filter(None, (_excess(network, model, *(part[-1:] for part in one)) for one in compared)), "")
    if not wrong:
        return network
    if device.type != "cpu":
        say_once(f"network {spec.name} runs on the CPU: {device} computes it wrongly, {wrong}")
        return checked(model, spec, torch.device("cpu"), samples)
    say_once(f"network {spec.name} runs slowly: our own kernels compute it wrongly here, {wrong}")
    return TorchNetwork(model, spec, device, reduced=False, written=False)


def torch_samples(samples: Samples, encoder: str, size: int) -> tuple[Tensor, Tensor]:
    """Planes and globals as torch has them."""
    planes, globals_ = samples(encoder, size)
    return torch.from_numpy(planes), torch.from_numpy(globals_)


def _of_other_tiles(spec: NetworkSpec) -> list[int]:
    """The largest board whose tiles have another size than those of the largest one, if the network plays it."""
    sizes = range(spec.max_size, spec.min_size - 1, -1)
    return [size for size in sizes if tile_side(size) != tile_side(spec.max_size)][:1]


def _excess(network: TorchNetwork, model: Model, planes: Tensor, globals_: Tensor) -> str:
    """How a network on its device differs from the model computed the plain way; empty where it is close enough."""
    rough = network.evaluate(planes.to(network.device), globals_.to(network.device)).each(Tensor.cpu)
    return excess(exact_output(model, planes, globals_), rough)
