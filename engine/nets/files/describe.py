"""A description of a network file, for people and for programs."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.nets.architectures.registry import architecture_of
from engine.nets.compute.speed import forward_flops
from engine.nets.files.header import recognise
from engine.nets.files.read import read_network

LARGEST = 19
"""Board on which work is counted, where the network plays it"""


def describe(path: Path) -> dict[str, Any]:
    """The description of a network file, and what evaluating the network costs.

    Returns:
        dict that JSON can hold: ``name``, ``file``, ``bytes``, ``format``, ``version``, ``architecture``, ``shape``,
        ``parameters``, ``board`` and ``multiply_adds`` (a position on that board; convolutions and matrix products),
        ``encoder``, ``planes``, ``globals``, ``heads``, ``sizes`` and ``training``.
    Raises:
        ValueError: as for :func:`engine.nets.files.read.read_network`.
    """
    header = recognise(path)
    model, spec, record = read_network(path)
    training = dict(record) if isinstance(record, dict) else {"record": record}
    shape, board = model.shape, min(LARGEST, spec.max_size)
    return {
        "name": spec.name,
        "file": str(path),
        "bytes": path.stat().st_size,
        "format": header.format,
        "version": header.version,
        # Some files are read into a model with some parameters folded away; their record has the file's number.
        "architecture": training.pop("architecture", "") or architecture_of(model),
        "shape": asdict(shape),
        "parameters": training.pop("parameters", sum(value.numel() for value in model.parameters())),
        "encoder": spec.encoder,
        "planes": shape.planes,
        "globals": shape.globals,
        "heads": [head for head in ("policy", "value", "score", "ownership") if getattr(spec, f"has_{head}")],
        "sizes": list(spec.sizes),
        "board": board,
        "multiply_adds": forward_flops(model, board) // 2,
        "training": training,
    }
