"""The registry of architectures, by their names in files and options.

A new architecture is an entry in ``ARCHITECTURES``: a :class:`engine.nets.network.Shape`, and the
:class:`engine.nets.network.PlainNetwork` that is made from it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from engine.nets.architectures.alphago import AlphaGoPolicy, AlphaGoValue, PolicyShape, ValueShape
from engine.nets.architectures.alphago_zero import ElfNet, ZeroNet, ZeroShape
from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.layers import MAX_PARAMETERS, Counted, Weights
from engine.nets.network import HEADS, MAX_SIZE, MIN_SIZE, NetworkSpec, PlainNetwork, Shape

ANY_SIZE = (7, 19)
"""Default smallest and largest board of a network whose shape does not fix the board size"""


class Architecture(NamedTuple):
    """One entry of the registry: an architecture's classes, default encoder and heads."""

    shape: type[Shape]
    network: Callable[[Any, Weights], PlainNetwork]
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


def architecture_of(network: Any) -> str:
    """The name under which the class of a network, or of its torch module, is registered.

    Raises:
        ValueError: the class is not registered.
    """
    # The first base of a torch module's class is torch's, the next one the network's own class.
    kind = type(network) if isinstance(network, PlainNetwork) and len(type(network).__bases__) == 1 else None
    kind = kind or type(network).__bases__[-1]
    for name, architecture in ARCHITECTURES.items():
        if kind is architecture.network:
            return name
    raise ValueError(f"{type(network).__name__} is no registered architecture, expected {', '.join(ARCHITECTURES)}")


def make(architecture: str, shape: Any, weights: Weights) -> PlainNetwork:
    """A network of an architecture.

    Args:
        shape: fields of the architecture's shape; those with a default may be omitted.
    Raises:
        ValueError: unknown architecture, or a shape that has wrong fields or needs too much memory (checked before
            allocation), or weights of another shape; one line.
    """
    entry = _entry(architecture)
    checked, counted = entry.shape.read(shape), Counted()
    entry.network(checked, counted)
    if counted.count > MAX_PARAMETERS:
        raise ValueError(f"{counted.count:,} parameters, expected at most {MAX_PARAMETERS:,}")
    return entry.network(checked, weights)


def new_spec(network: Any, name: str, encoder: str | None = None, sizes: tuple[int, int] | None = None) -> NetworkSpec:
    """The spec of a network, or of its torch module.

    Args:
        encoder: None = the architecture's default.
        sizes: smallest and largest board; None = the size that the shape fixes, else ``ANY_SIZE``.
    Raises:
        ValueError: invalid sizes, or other sizes than the shape fixes; one line.
    """
    entry = _entry(architecture_of(network))
    fixed = getattr(network.shape, "size", None)
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
