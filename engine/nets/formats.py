"""From a network file of any kind that we know to a model."""

from pathlib import Path
from typing import Any

from torch import nn

from engine.nets.checkpoint import load_model
from engine.nets.header import KATAGO, LEELA_ZERO, recognise
from engine.nets.leela import load_leela
from engine.nets.network import NetworkSpec


def read_network(path: Path) -> tuple[nn.Module, NetworkSpec, dict[str, Any]]:
    """Read a network file on the CPU, whichever kind it is.

    Returns:
        the model, its spec and its training record.
    Raises:
        ValueError: foreign, damaged or truncated; one line naming the file and what was expected.
    """
    kind = recognise(path).format
    if kind == KATAGO:
        from engine.nets.katago.load import load_katago

        return load_katago(path)
    return load_leela(path) if kind == LEELA_ZERO else load_model(path)
