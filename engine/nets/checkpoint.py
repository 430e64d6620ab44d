"""Our own network file: safetensors, with a JSON header that says what the tensors are.

The header lives under the key ``keima`` of the safetensors metadata: ``format`` (1), ``architecture``, ``shape``
(the architecture's parameters), ``encoder``, ``sizes`` and ``training`` (a free record: data, steps, accuracy).
Nothing in a file is ever executed or unpickled.
"""

import json
import struct
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from engine.nets.network import NetworkSpec
from engine.nets.resnet import ResNet, ResNetShape

FORMAT = 1
ARCHITECTURE = "keima-resnet"
MAX_HEADER_BYTES = 1 << 20


def save_network(path: Path, model: ResNet, spec: NetworkSpec, training: dict[str, Any]) -> None:
    """Write a network, atomically: a reader sees the old file or the new one."""
    header = {
        "format": FORMAT,
        "architecture": ARCHITECTURE,
        "shape": asdict(model.shape),
        "encoder": spec.encoder,
        "sizes": [spec.min_size, spec.max_size],
        "training": training,
    }
    tensors = {name: tensor.detach().float().cpu().contiguous() for name, tensor in model.state_dict().items()}
    part = path.with_suffix(path.suffix + ".part")
    save_file(tensors, part, metadata={"keima": json.dumps(header)})
    part.replace(path)


def read_header(path: Path) -> dict[str, Any]:
    """The JSON header of a network file, without reading its tensors.

    Raises:
        ValueError: the file is no network of ours; one line naming the file and what was expected.
    """
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 2 <= length <= MAX_HEADER_BYTES:
                raise ValueError(f"{path}: not a safetensors file (header of {length} bytes)")
            text = file.read(length)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        header = json.loads(json.loads(text)["__metadata__"]["keima"])
        if header["format"] != FORMAT or header["architecture"] != ARCHITECTURE:
            raise ValueError(
                f"{path}: format {header['format']} of architecture {header['architecture']!r}, "
                f"expected format {FORMAT} of {ARCHITECTURE!r}"
            )
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: no Keima network header (metadata key 'keima' missing or damaged)") from error
    return header


def load_model(path: Path) -> tuple[ResNet, NetworkSpec, dict[str, Any]]:
    """Read a network file on the CPU.

    Returns:
        the model, its spec and its training record.
    Raises:
        ValueError: damaged, truncated or foreign file; one line naming the file and what was expected.
    """
    header = read_header(path)
    try:
        model = ResNet(ResNetShape(**header["shape"]))
        spec = NetworkSpec(
            name=path.stem,
            encoder=header["encoder"],
            min_size=header["sizes"][0],
            max_size=header["sizes"][1],
            has_score=True,
            has_ownership=True,
        )
    except (KeyError, TypeError, IndexError, RuntimeError) as error:
        raise ValueError(f"{path}: header does not describe a {ARCHITECTURE} ({error})") from error
    try:
        tensors = load_file(path)
        model.load_state_dict(tensors)
    except (SafetensorError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise ValueError(f"{path}: tensors are damaged, truncated or do not fit the header ({reason})") from error
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise ValueError(f"{path}: holds weights that are not finite numbers")
    return model, spec, header["training"]
