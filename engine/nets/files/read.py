"""From a network file of any known kind to a model, and from one kind of file to another."""

from pathlib import Path
from typing import Any

from engine.nets.files.checkpoint import load_model, refuse_existing, save_network
from engine.nets.files.header import KATAGO, KEIMA, LEELA_ZERO, recognise
from engine.nets.files.leela_zero import load_leela, save_leela
from engine.nets.network import Model, NetworkSpec
from engine.system.files import sha256_of


def read_network(path: Path) -> tuple[Model, NetworkSpec, dict[str, Any]]:
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


def convert(source: Path, target: Path) -> None:
    """Write one of our networks as Leela Zero's, or one of Leela Zero's as ours.

    Args:
        target: a name ending in ``.safetensors`` is ours; in ``.txt`` or, compressed, ``.gz`` Leela Zero's.
    Raises:
        ValueError: no such conversion, or files that cannot be read or must not be overwritten; one line.
        OSError: the target cannot be written.
    """
    header = recognise(source)
    endings = {KEIMA: (".txt", ".gz"), LEELA_ZERO: (".safetensors",)}.get(header.format)
    if endings is None:
        raise ValueError(f"{source}: a network of {header.format}, expected one of {KEIMA} or of {LEELA_ZERO}")
    if target.suffix not in endings:
        raise ValueError(
            f"{target}: expected a name ending in {' or '.join(endings)} from a network of {header.format}"
        )
    refuse_existing(target)
    model, spec, _ = read_network(source)
    if header.format == KEIMA:
        save_leela(target, model, spec)
        return
    origin = {"format": f"{LEELA_ZERO}, version {header.version}", "file": source.name, "sha256": sha256_of(source)}
    save_network(target, model, spec, {"converted": origin})
