"""Pictures of a network's hidden layers for one position: what each channel sees."""

import base64
import functools
from typing import Any

import numpy as np

from engine.features.encoder import ENCODERS, inputs
from engine.go.board import META_SIZE
from engine.go.position import Position
from engine.insight.raw_outputs import raw_network
from engine.nets.trace import Trace
from weights import NetworkPath

ZERO, STEPS = 128, 127
"""Byte of a picture that stands for 0, and the number of bytes on each side of it"""


def layers(path: NetworkPath | None, position: Position, layer: str | None = None) -> dict[str, Any]:
    """One layer's channels as pictures, for JSON.

    Args:
        path: the network's file, or the files of AlphaGo's policy network and value network; None = no network.
        layer: one of the names in the result; None or empty = the first, which is the input.
    Returns:
        ``layers``: names in the order of computation; ``layer``: the name of this one; ``channels``: C; ``size``: N;
        ``picture``: base64 of uint8[C, N, N], the channels in their order in the file, each row by row from the top;
        ``scale``: the values of bytes 1 and 255, symmetric about 0, which is byte 128; ``about``: this in words.
        Values are from the view of the side to move. Without a network for this board size: ``layers``, which is empty,
        and ``missing``, the reason.
    Raises:
        ValueError: no such layer, or the network cannot be read; one line.
    Threads: any.
    """
    if path is None:
        return {"layers": [], "missing": "no network plays here"}
    network, size = raw_network(path), int(position.board.meta[META_SIZE])
    if not network.spec.plays(size):
        return {"layers": [], "missing": f"{network.spec.said}, not {size}"}
    planes, globals_ = inputs(ENCODERS[network.spec.encoder], [position])
    found = _traced(path, size, planes.tobytes(), globals_.tobytes()).layers
    name = layer or next(iter(found))
    if name not in found:
        known = ", ".join(found)
        raise ValueError(f"no layer {name[:40]!r} in network {network.spec.name}, expected one of {known}")
    values = np.nan_to_num(found[name][0])
    largest, picture = picture_of(values)
    return {
        "layers": list(found),
        "layer": name,
        "channels": len(values),
        "size": size,
        "picture": base64.b64encode(picture.tobytes()).decode("ascii"),
        "scale": [-largest, largest],
        "about": f"network {network.spec.name}, layer {name}: {len(values)} channels, values from {-largest:.3g} to "
        f"{largest:.3g}",
    }


def picture_of(values: np.ndarray) -> tuple[float, np.ndarray]:
    """A layer's largest absolute value (1 if all are 0), in 4 digits, and its picture, uint8 of the values' shape."""
    largest = float(np.abs(values).max())
    largest = float(f"{largest:.4g}") if largest > 0.0 else 1.0
    steps = np.round(values * (STEPS / largest)).clip(-STEPS, STEPS)
    return largest, (ZERO + steps).astype(np.uint8)


@functools.lru_cache(maxsize=1)
def _traced(path: NetworkPath, size: int, planes: bytes, globals_: bytes) -> Trace:
    """The trace of a network for one position; the last one is kept, since its layers are looked at one by one."""
    given = (np.frombuffer(values, np.float32).copy() for values in (planes, globals_))
    return raw_network(path).trace(next(given).reshape(1, -1, size, size), next(given).reshape(1, -1))
