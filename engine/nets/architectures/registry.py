"""The registry of architectures, by their names in files and options.

A new architecture is an entry in ``ARCHITECTURES``: a :class:`engine.nets.network.Shape`, and the
:class:`engine.nets.network.Model` that is made from it.
"""

from typing import Any, NamedTuple

import torch

from engine.nets.architectures.alphago import AlphaGoPolicy, AlphaGoValue, PolicyShape, ValueShape
from engine.nets.architectures.alphago_zero import ElfNet, ZeroNet, ZeroShape
from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.network import HEADS, MAX_SIZE, MIN_SIZE, Model, NetworkSpec, Shape

MAX_PARAMETERS = 1 << 28
"""Maximum number of parameters: 1 GiB as float32, several times the largest published Go network"""
ANY_SIZE = (7, 19)
"""Default smallest and largest board of a network whose shape does not fix the board size"""


class Architecture(NamedTuple):
    """One entry of the registry: an architecture's shape and model classes, default encoder and heads."""

    shape: type[Shape]
    module: type[Model]
    encoder: str
    """the default encoder; a shape with another number of planes needs another encoder"""
    heads: tuple[str, ...]
    """fields of :class:`engine.nets.network.Heads` that are not None, in their order"""
    trained_by: str = ""
    """the command of ``keima train`` that trains such networks; empty = none, files come from other programs"""


ARCHITECTURES = {
    "keima-resnet": Architecture(ResNetShape, ResNet, "keima-2", tuple(HEADS), "dual"),
    "alphago-policy": Architecture(PolicyShape, AlphaGoPolicy, "alphago-48", ("policy",), "policy"),
    "alphago-value": Architecture(ValueShape, AlphaGoValue, "alphago-49", ("value",), "value"),
    "alphago-zero": Architecture(ZeroShape, ZeroNet, "zero-17", ("policy", "value"), "dual"),
    "elf-opengo": Architecture(ZeroShape, ElfNet, "leela-18", ("policy", "value")),
}


def architecture_of(model: Model) -> str:
    """The name under which a model's class is registered.

    Raises:
        ValueError: the class is not registered.
    """
    for name, architecture in ARCHITECTURES.items():
        if type(model) is architecture.module:
            return name
    raise ValueError(f"{type(model).__name__} is no registered architecture, expected {', '.join(ARCHITECTURES)}")


def new_model(architecture: str, shape: dict[str, Any], device: str = "cpu") -> Model:
    """A network with random weights.

    Args:
        shape: fields of the architecture's shape; those with a default may be omitted.
        device: of the weights; ``meta`` = no memory is allocated.
    Raises:
        ValueError: unknown architecture, or a shape that has wrong fields or needs too much memory (checked before
            allocation); one line.
    """
    entry = _entry(architecture)
    checked = entry.shape.read(shape)
    with torch.device("meta"):
        outline = entry.module(checked)
    count = sum(value.numel() for value in outline.state_dict().values())
    if count > MAX_PARAMETERS:
        raise ValueError(f"{count:,} parameters, expected at most {MAX_PARAMETERS:,}")
    if device == "meta":
        return outline
    with torch.device(device):
        return entry.module(checked)


def new_spec(model: Model, name: str, encoder: str | None = None, sizes: tuple[int, int] | None = None) -> NetworkSpec:
    """The spec of a model.

    Args:
        encoder: None = the architecture's default.
        sizes: smallest and largest board; None = the size that the shape fixes, else ``ANY_SIZE``.
    Raises:
        ValueError: invalid sizes, or other sizes than the shape fixes; one line.
    """
    entry = _entry(architecture_of(model))
    fixed = getattr(model.shape, "size", None)
    low, high = sizes or (ANY_SIZE if fixed is None else (fixed, fixed))
    if not all(isinstance(size, int) for size in (low, high)) or not MIN_SIZE <= low <= high <= MAX_SIZE:
        raise ValueError(f"board sizes {low!r} to {high!r}, expected two from {MIN_SIZE} to {MAX_SIZE}")
    if fixed is not None and (low, high) != (fixed, fixed):
        raise ValueError(f"board sizes {low} to {high}, expected {fixed} alone, which the shape fixes")
    return NetworkSpec(name, encoder or entry.encoder, low, high, entry.heads)


def _entry(architecture: Any) -> Architecture:
    """The registry's entry for an architecture's name.

    Raises:
        ValueError: unknown name; one line that lists the names.
    """
    if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
        raise ValueError(f"unknown architecture {str(architecture)[:40]!r}, expected {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[architecture]
