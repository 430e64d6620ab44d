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

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.nets.architectures.registry import architecture_of, new_model, new_spec
from engine.nets.files.header import FORMAT, read_header
from engine.nets.network import Model, NetworkSpec
from engine.system.files import sha256_of, written_whole


def save_network(path: Path, model: Model, spec: NetworkSpec, training: dict[str, Any]) -> None:
    """Write a network of any registered architecture, atomically: a reader sees the old file or the new one.

    Raises:
        ValueError: the model is of no registered architecture.
    """
    header = {
        "format": FORMAT,
        "architecture": architecture_of(model),
        "shape": asdict(model.shape),
        "encoder": spec.encoder,
        "sizes": list(spec.sizes),
        "training": training,
    }
    write_tensors(path, {name: tensor.float() for name, tensor in model.state_dict().items()}, header)


def refuse_existing(target: Path) -> None:
    """Refuse to overwrite an existing file.

    Raises:
        ValueError: the file exists; one line.
    """
    if target.exists():
        raise ValueError(f"{target}: exists already, expected a new name")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors, of any device, and a JSON header into a safetensors file, atomically.

    Raises:
        OSError: the file cannot be written.
    """
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with written_whole(path) as part:
        try:
            save_file(held, part, metadata={"keima": json.dumps(header)})
        except SafetensorError as error:
            raise OSError(error) from error


def load_model(path: Path) -> tuple[Model, NetworkSpec, dict[str, Any]]:
    """Read a network file on the CPU.

    Returns:
        the model in float32, its spec and its training record.
    Raises:
        ValueError: damaged, truncated or foreign file; one line naming the file and what was expected.
    """
    header = read_header(path)
    try:
        model = new_model(header["architecture"], header["shape"], device="meta")
        low, high = header["sizes"]
        spec = new_spec(model, path.stem, str(header["encoder"]), (low, high))
        training = header["training"]
    except KeyError as error:
        raise ValueError(f"{path}: its header lacks {error}") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: its header describes no network ({error})") from error
    try:
        tensors = load_file(path)
        outline = model.state_dict()
        # Copies of the file's tensors replace the outline's: to allocate those, torch would import a library for
        # symbolic algebra, half a second of every start.
        copies = {name: one.to(outline.get(name, one).dtype, copy=True) for name, one in tensors.items()}
        model.load_state_dict(copies, assign=True)
    except (SafetensorError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise ValueError(f"{path}: tensors are damaged, truncated or do not fit the header ({reason})") from error
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise ValueError(f"{path}: holds weights that are not finite numbers")
    return model, spec, training


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
    model, spec, training = load_model(first)
    other, other_spec, _ = load_model(second)
    for what, one, two in (
        ("architecture", architecture_of(model), architecture_of(other)),
        ("shape", model.shape, other.shape),
        ("input", spec.encoder, other_spec.encoder),
        ("boards", spec.sizes, other_spec.sizes),
    ):
        if one != two:
            raise ValueError(f"{second}: its {what}, {two}, is not that of {first}, {one}")
    weights, others = model.state_dict(), other.state_dict()
    with torch.no_grad():
        for name, tensor in weights.items():
            if tensor.is_floating_point():
                tensor.lerp_(others[name], share)
    record = dict(training) if isinstance(training, dict) else {"record": training}
    # Metrics of the first network do not hold for the mean.
    record.pop("figures", None)
    joined = {"name": second.stem, "sha256": sha256_of(second), "share": share}
    save_network(target, model, spec, record | {"averaged_with": joined})
