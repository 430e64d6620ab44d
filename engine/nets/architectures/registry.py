"""The architectures: what the header of a file may name, and what training may be asked for.

Adding one is an entry in ``ARCHITECTURES``: a :class:`engine.nets.network.Shape`, and the
:class:`engine.nets.network.Model` that is made from it.
"""

from typing import Any, NamedTuple

import torch

from engine.nets.architectures.alphago import AlphaGoPolicy, AlphaGoValue, PolicyShape, ValueShape
from engine.nets.architectures.alphago_zero import ElfNet, ZeroNet, ZeroShape
from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.network import HEADS, MAX_SIZE, MIN_SIZE, Model, NetworkSpec, Shape

MAX_PARAMETERS = 1 << 28
"""1 GiB as float32, several times the largest network that is published for Go"""
ANY_SIZE = (7, 19)
"""Smallest and largest board of a network whose shape fixes none, unless it was trained for others"""


class Architecture(NamedTuple):
    """One entry of the registry."""

    shape: type[Shape]
    module: type[Model]
    encoder: str
    """the one it is meant for; a shape with other planes goes with another"""
    heads: tuple[str, ...]
    """fields of :class:`engine.nets.network.Heads` that are not None, in its order"""
    trained_by: str = ""
    """the command of ``keima train`` that offers it; empty = none does, its files come from other programs"""


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
        ValueError: it is not.
    """
    for name, architecture in ARCHITECTURES.items():
        if type(model) is architecture.module:
            return name
    raise ValueError(f"{type(model).__name__} is no registered architecture, expected {', '.join(ARCHITECTURES)}")


def new_model(architecture: str, shape: dict[str, Any], device: str = "cpu") -> Model:
    """A network of random weights.

    Args:
        shape: fields of the architecture's shape; those with a default may be left out.
        device: where the weights are; ``meta`` = nowhere yet.
    Raises:
        ValueError: unknown architecture, or a shape that has wrong fields or needs too much memory, before any is
            taken; one line.
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
    """What a model needs and offers.

    Args:
        encoder: None = the one the architecture is meant for.
        sizes: smallest and largest board; None = as the shape says, else ``ANY_SIZE``.
    Raises:
        ValueError: sizes that are none, or not the shape's; one line.
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
    """The registry's entry, or an error of one line that lists them."""
    if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
        raise ValueError(f"unknown architecture {str(architecture)[:40]!r}, expected {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[architecture]
