"""From a file to a network ready to evaluate."""

from pathlib import Path

import torch

from engine.nets.adapter import TorchNetwork
from engine.nets.checkpoint import load_model
from engine.nets.network import Network
from engine.nets.pair import AlphaGoPair


def choose_device(device: str = "auto", threads: int = 0) -> torch.device:
    """The torch device for ``auto`` (CUDA if there is one, else the CPU) or for a name torch knows.

    Args:
        threads: CPU threads of torch from now on; 0 = as they are.
    Raises:
        ValueError: no such device here.
    """
    if threads:
        torch.set_num_threads(threads)
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"device {device!r} cannot be used here ({reason}); expected auto, cpu or cuda") from error
    return chosen


def load_network(path: Path | tuple[Path, Path], device: str = "auto") -> Network:
    """Read a network file and put it on a device.

    Args:
        path: a file, or AlphaGo's two: policy network and value network, which then play as one.
    Raises:
        ValueError: one line that names the file or the device and what was expected.
    """
    if isinstance(path, tuple):
        policy, value = path
        return AlphaGoPair(load_network(policy, device), load_network(value, device))
    model, spec, _ = load_model(Path(path))
    return TorchNetwork(model, spec, choose_device(device))
