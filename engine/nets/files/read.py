"""Network files of any supported kind: reading, description, conversion."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.nets.architectures.registry import architecture_of
from engine.nets.files.checkpoint import load_plain, refuse_existing, save_network
from engine.nets.files.header import KATAGO, KEIMA, LEELA_ZERO, recognise
from engine.nets.files.leela_zero import load_leela, save_leela
from engine.nets.forward import CountingForward
from engine.nets.layers import named_arrays
from engine.nets.network import NetworkSpec, PlainNetwork
from engine.system.files import sha256_of
from weights import NetworkPath, files_of


def read_network(path: Path) -> tuple[PlainNetwork, NetworkSpec, dict[str, Any]]:
    """Read a network file of any supported kind.

    Returns:
        the network, its spec and its training record.
    Raises:
        ValueError: unknown kind, damaged or truncated; one line naming the file and what was expected.
    """
    kind = recognise(path).format
    if kind == KATAGO:
        from engine.nets.katago.model import load_katago

        return load_katago(path)
    return load_leela(path) if kind == LEELA_ZERO else load_plain(path)


ONNX = ".onnx"
"""Ending of the names of ONNX files"""
ENCODERS = ("alphago-48", "alphago-49")
"""Encoders of policy and value network; the second has one plane more than the first"""
POLICY_PLANES = 48


def read_networks(path: NetworkPath) -> tuple[list[PlainNetwork], NetworkSpec, list[dict[str, Any]]]:
    """Read a network file, or the files of AlphaGo's policy network and value network.

    Returns:
        the networks, the spec of the network or of the pair, and their training records.
    Raises:
        ValueError: as for :func:`read_network` and :func:`pair_spec`.
    """
    read = [read_network(one) for one in files_of(path)]
    networks, specs, records = (list(parts) for parts in zip(*read, strict=True))
    return networks, specs[0] if len(specs) == 1 else pair_spec(*specs), records


def pair_spec(first: NetworkSpec, second: NetworkSpec) -> NetworkSpec:
    """The joint spec of AlphaGo's policy network and value network.

    Raises:
        ValueError: they are not a policy and a value network of AlphaGo's planes for the same boards; one line.
    """
    name = f"{first.name}+{second.name}"
    if (first.encoder, second.encoder) != ENCODERS or "policy" not in first.heads or "value" not in second.heads:
        raise ValueError(
            f"{name}: encoders {first.encoder} and {second.encoder}, expected a policy network of {ENCODERS[0]} and a "
            f"value network of {ENCODERS[1]}"
        )
    low, high = max(first.min_size, second.min_size), min(first.max_size, second.max_size)
    if low > high:
        raise ValueError(
            f"{name}: boards of {first.min_size} to {first.max_size} and of {second.min_size} to {second.max_size}, "
            "expected the same"
        )
    return NetworkSpec(name, second.encoder, low, high)


def convert(network_path: NetworkPath, target: Path) -> None:
    """Convert a network from Keima's format to Leela Zero's, from Leela Zero's to Keima's, or from any to ONNX.

    Args:
        network_path: a file or, for ONNX, the files of AlphaGo's policy network and value network.
        target: file name ending in ``.safetensors`` (Keima's), ``.txt`` or, compressed, ``.gz`` (Leela Zero's), or
            ``.onnx`` (:mod:`engine.nets.files.onnx`).
    Raises:
        ValueError: unsupported conversion, unreadable source, or existing target; one line.
        OSError: the target cannot be written.
    """
    if target.suffix == ONNX:
        from engine.nets.files.onnx import save_onnx

        refuse_existing(target)
        save_onnx(target, *read_networks(network_path)[:2])
        return
    source, *others = files_of(network_path)
    if others:
        raise ValueError(f"{target}: expected a name ending in {ONNX} from several networks")
    header = recognise(source)
    endings = {KEIMA: (".txt", ".gz", ONNX), LEELA_ZERO: (".safetensors", ONNX)}.get(header.format, (ONNX,))
    if target.suffix not in endings:
        raise ValueError(
            f"{target}: expected a name ending in {' or '.join(endings)} from a network of {header.format}"
        )
    refuse_existing(target)
    network, spec, _ = read_network(source)
    if header.format == KEIMA:
        save_leela(target, network, spec)
        return
    origin = {"format": f"{LEELA_ZERO}, version {header.version}", "file": source.name, "sha256": sha256_of(source)}
    save_network(target, network, spec, {"converted": origin})


STATISTICS = (".mean", ".variance")
"""Ends of the names of arrays that are statistics of batch normalisation, not parameters"""
LARGEST = 19
"""Largest board size for which multiply-adds are counted"""


def describe(path: Path) -> dict[str, Any]:
    """The description of a network file, with the cost of an evaluation.

    Returns:
        dict that JSON can hold: ``name``, ``file``, ``bytes``, ``format``, ``version``, ``architecture``, ``shape``,
        ``parameters``, ``board`` and ``multiply_adds`` (convolutions and matrix products of a position on that board),
        ``encoder``, ``planes``, ``globals``, ``heads``, ``sizes`` and ``training``.
    Raises:
        ValueError: as for :func:`read_network`.
    """
    header = recognise(path)
    network, spec, record = read_network(path)
    training = dict(record) if isinstance(record, dict) else {"record": record}
    parameters = sum(values.size for name, values in named_arrays(network) if not name.endswith(STATISTICS))
    shape, board = network.shape, min(LARGEST, spec.max_size)
    return {
        "name": spec.name,
        "file": str(path),
        "bytes": path.stat().st_size,
        "format": header.format,
        "version": header.version,
        # Parameters of some files are folded when read; their record has the file's number.
        "architecture": training.pop("architecture", "") or architecture_of(network),
        "shape": asdict(shape),
        "parameters": training.pop("parameters", parameters),
        "encoder": spec.encoder,
        "planes": shape.planes,
        "globals": shape.globals,
        "heads": list(spec.heads),
        "sizes": list(spec.sizes),
        "board": board,
        "multiply_adds": multiply_adds(network, board),
        "training": training,
    }


def multiply_adds(network: PlainNetwork, size: int) -> int:
    """Multiplications, each with an addition, of one position's convolutions and matrix products on a board of ``size``
    x ``size``."""
    forward = CountingForward(size)
    network.describe(forward)
    return forward.count
