"""The network file: safetensors, with a JSON header that describes the network.

The header lies under the key ``keima`` of the safetensors metadata: ``format`` (1), ``architecture`` (a name in
:mod:`engine.nets.architectures.registry`), ``shape`` (the architecture's parameters), ``encoder``, ``sizes`` (smallest
and largest board) and ``training`` (any record: data, steps, accuracy). Nothing in a file is ever executed or
unpickled, and no memory is taken before the header has been found sound.

:func:`average` averages the weights of two networks. If training of one continued from the other, or of both from a
third, the mean is often stronger than either, and forgets less than the last training alone (Wortsman et al. 2022,
"Model soups"). It is useless for networks trained independently.

Source: the format of safetensors, https://github.com/huggingface/safetensors (README, "Format").
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from engine.nets.architectures.registry import architecture_of, make, new_spec
from engine.nets.files.header import FORMAT, read_header
from engine.nets.layers import Misfit, Stored, named_arrays
from engine.nets.network import NetworkSpec, PlainNetwork
from engine.system.files import sha256_of, written_whole


def arrays_of(network: Any) -> dict[str, np.ndarray]:
    """The arrays of a network, or of its torch module in float32, by name."""
    if isinstance(network, PlainNetwork) and not hasattr(network, "state_dict"):
        return dict(named_arrays(network))
    return {name: values.detach().float().cpu().numpy() for name, values in network.state_dict().items()}


def save_network(path: Path, network: Any, spec: NetworkSpec, training: dict[str, Any]) -> None:
    """Write a network, or its torch module, atomically: a reader sees the old file or the new one.

    Raises:
        ValueError: the network is of no registered architecture.
    """
    header = {
        "format": FORMAT,
        "architecture": architecture_of(network),
        "shape": asdict(network.shape),
        "encoder": spec.encoder,
        "sizes": list(spec.sizes),
        "training": training,
    }
    write_arrays(path, arrays_of(network), header)


def refuse_existing(target: Path) -> None:
    """Refuse to overwrite an existing file.

    Raises:
        ValueError: the file exists; one line.
    """
    if target.exists():
        raise ValueError(f"{target}: exists already, expected a new name")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write arrays and a JSON header into a safetensors file, atomically.

    Raises:
        OSError: the file cannot be written.
    """
    held = {name: np.asarray(values, order="C") for name, values in arrays.items()}
    with written_whole(path) as part:
        try:
            save_file(held, part, metadata={"keima": json.dumps(header)})
        except SafetensorError as error:
            raise OSError(error) from error


def load_plain(path: Path) -> tuple[PlainNetwork, NetworkSpec, dict[str, Any]]:
    """Read a network file.

    Returns:
        the network, its spec and its training record.
    Raises:
        ValueError: damaged, truncated or foreign file; one line naming the file and what was expected.
    """
    header = read_header(path)
    try:
        weights = Stored(_loaded(path))
        network = make(header["architecture"], header["shape"], weights)
        if weights.arrays:
            raise Misfit(f"unknown {', '.join(weights.arrays)}")
        low, high = header["sizes"]
        spec = new_spec(network, path.stem, str(header["encoder"]), (low, high))
        training = header["training"]
    except (Misfit, SafetensorError, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise ValueError(f"{path}: tensors are damaged, truncated or do not fit the header ({reason})") from error
    except KeyError as error:
        raise ValueError(f"{path}: its header lacks {error}") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: its header describes no network ({error})") from error
    if not all(np.isfinite(values).all() for _, values in named_arrays(network)):
        raise ValueError(f"{path}: holds weights that are not finite numbers")
    return network, spec, training


def _loaded(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file.

    Raises:
        Misfit: numpy has not the type of one, such as bfloat16.
    """
    try:
        return load_file(path)
    except TypeError as error:
        raise Misfit(f"{error}, expected float32") from error


def average(first: Path, second: Path, target: Path, share: float = 0.5) -> None:
    """Write the mean of the weights of two of Keima's networks, including statistics of batch normalisation.

    Args:
        share: weight of the second network in the mean, between 0 and 1.
    Raises:
        ValueError: a file cannot be read, the networks differ in architecture, shape, input or boards, or
            the target exists; one line.
        OSError: the target cannot be written.
    """
    refuse_existing(target)
    network, spec, training = load_plain(first)
    other, other_spec, _ = load_plain(second)
    for what, one, two in (
        ("architecture", architecture_of(network), architecture_of(other)),
        ("shape", network.shape, other.shape),
        ("input", spec.encoder, other_spec.encoder),
        ("boards", spec.sizes, other_spec.sizes),
    ):
        if one != two:
            raise ValueError(f"{second}: its {what}, {two}, is not that of {first}, {one}")
    others = dict(named_arrays(other))
    means = {name: values + np.float32(share) * (others[name] - values) for name, values in named_arrays(network)}
    record = dict(training) if isinstance(training, dict) else {"record": training}
    # Metrics of the first network do not hold for the mean.
    record.pop("figures", None)
    joined = {"name": second.stem, "sha256": sha256_of(second), "share": share}
    mean = make(architecture_of(network), asdict(network.shape), Stored(means))
    save_network(target, mean, spec, record | {"averaged_with": joined})
