"""Leela Zero's network files: text, plain or compressed by gzip, one array a line.

The first line is the version: 1, or 2 if the value is Black's (ELF OpenGo's networks). Then follow, as floating-point
numbers separated by spaces,

- four lines for each 3x3 convolution of the tower (the stem, then two a block): weights [out, in, 3, 3], biases,
  means and variances of the following normalisation, which has neither scale nor shift;
- the policy head: four lines for a 1x1 convolution to 2 channels, weights [362, 722] and biases to moves, pass last;
- the value head: four lines for a 1x1 convolution to 1 channel, weights [256, 361] and biases, weights [1, 256] and
  bias.

The architecture is AlphaGo Zero's, the input "leela-18". Leela Zero counts rows from the bottom of the board, Keima
from the top, so rows are flipped in reading and writing. A file is read line by line, and each line is limited by the
shape of the network so far, so that neither a long line nor a small archive takes more memory than the largest network.

Source: Leela Zero's README, "Weights format", and its ``Network.cpp`` (0.17).
"""

import gzip
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

import numpy as np

from engine.nets.architectures.alphago_zero import POLICY_FILTERS, ZeroNet
from engine.nets.architectures.registry import architecture_of, make, new_spec
from engine.nets.files.checkpoint import arrays_of
from engine.nets.files.header import opened
from engine.nets.layers import EPSILON, MAX_PARAMETERS, Stored
from engine.nets.network import NetworkSpec, PlainNetwork
from engine.system.files import written_whole

SIZE = 19
POINTS = SIZE * SIZE
PLANES = 18
VALUE_HIDDEN = 256
MAX_CHANNELS, MAX_BLOCKS = 2048, 256
ARCHITECTURES = {1: "alphago-zero", 2: "elf-opengo"}
"""Architectures by version of the format"""
ENCODER = "leela-18"
PIECE_BYTES = 1 << 20
PIECE_NUMBERS = 1 << 16
NUMBER_BYTES, SPARE_BYTES = 32, 1 << 10
"""Upper limits, in bytes, for a number with its space, and for blanks at the end of a line"""
PLANES_OF = {"zero-17": 17, ENCODER: PLANES}
"""Number of input planes by encoder, for the encoders of networks that can be written"""
FROM_ZERO = (*range(0, 16, 2), *range(1, 16, 2), 16)
"""Indices of the planes of "zero-17" in the order of "leela-18", which has one plane more"""
FLIPPED = np.arange(POINTS).reshape(SIZE, SIZE)[::-1].reshape(-1)
"""Indices of the points after the order of rows is reversed; the permutation is its own inverse"""
FLIPPED_MOVES = np.append(FLIPPED, POINTS)


def load_leela(path: Path) -> tuple[PlainNetwork, NetworkSpec, dict[str, Any]]:
    """Read one of Leela Zero's networks.

    Returns:
        the network, its spec, and an empty training record.
    Raises:
        ValueError: damaged, truncated or foreign file; one line naming the file, the line and what was expected.
    """
    with opened(path) as file:
        lines = _Lines(path, file)
        version = lines.version()
        state, blocks = _read_tower(lines)
        state |= _read_heads(lines, len(state["stem.mean"]))
        lines.end()
    shape = {"planes": PLANES, "blocks": blocks, "channels": len(state["stem.mean"]), "value_hidden": VALUE_HIDDEN}
    network = make(ARCHITECTURES[version], shape, Stored(state))
    name = path.name.removesuffix(".gz").removesuffix(".txt")
    return network, new_spec(network, name, ENCODER), {}


def save_leela(path: Path, network: Any, spec: NetworkSpec) -> None:
    """Write a network of AlphaGo Zero's form, or its torch module, as a Leela Zero file, atomically.

    The file is compressed if its name ends in ``.gz``.

    The scale of a normalisation is folded into the convolution's weights, its shift into the bias, so weights read back
    may differ in their last bits. Leela Zero plays all networks under its own rules: area scoring with komi 7.5,
    positional superko.

    Raises:
        ValueError: the format cannot represent the network.
    """
    arrays = _lines_of(_checked_form(network, spec))
    version = next(version for version, name in ARCHITECTURES.items() if name == architecture_of(network))
    with (
        written_whole(path) as part,
        part.open("wb") as file,
        _packed(file) if path.suffix == ".gz" else nullcontext(file) as out,
    ):
        out.write(f"{version}".encode())
        for array in arrays:
            out.write(b"\n")
            for start in range(0, array.size, PIECE_NUMBERS):
                numbers = array.reshape(-1)[start : start + PIECE_NUMBERS].tolist()
                # Nine digits represent every float32 exactly.
                out.write(("%.9g " * len(numbers) % tuple(numbers)).encode())
        out.write(b"\n")


def _packed(file: IO[bytes]) -> gzip.GzipFile:
    """A gzip writer that stores no name and time, so that equal contents give equal files."""
    return gzip.GzipFile("", "wb", compresslevel=4, fileobj=file, mtime=0)


class _Lines:
    """The lines of one of Leela Zero's files, read as arrays with checks."""

    def __init__(self, path: Path, file: BufferedIOBase):
        self._path = path
        self._file = file
        self._number = 0
        self._total = 0

    def error(self, what: str) -> ValueError:
        """An error whose message names the file and the line read last."""
        return ValueError(f"{self._path}: line {self._number}: {what}")

    def version(self) -> int:
        """The version of the format, from the first line."""
        self._number = 1
        text = self._file.readline(NUMBER_BYTES)
        if text.strip() not in (b"1", b"2"):
            raise self.error(f"{_shown(text)}, expected version 1 or 2 of Leela Zero's format")
        return int(text)

    def take(self, what: str, count: int) -> np.ndarray:
        """The next line, float32[count]; ``what`` describes it in messages."""
        numbers = self.take_up_to(what, count)
        if len(numbers) < count:
            raise self.error(f"{len(numbers):,} numbers, expected {count:,}: {what}")
        return numbers

    def take_up_to(self, what: str, most: int) -> np.ndarray:
        """The next line, float32[1 to ``most``]."""
        self._number += 1
        limit = SPARE_BYTES + NUMBER_BYTES * most
        text = self._file.readline(limit)
        if not text.strip() and len(text) < limit:
            raise self.error(f"no numbers, the file may be truncated; expected {what}")
        if len(text) == limit or len(numbers := self._parsed(text)) > most:
            raise self.error(f"more numbers than {most:,}: {what}")
        self._total += len(numbers)
        if self._total > MAX_PARAMETERS:
            raise self.error(f"more than {MAX_PARAMETERS:,} parameters so far, expected no more")
        return numbers

    def _parsed(self, text: bytes) -> np.ndarray:
        """A line's numbers as float32, all finite."""
        try:
            with warnings.catch_warnings():
                # Only later versions of numpy raise an error.
                warnings.simplefilter("error", DeprecationWarning)
                numbers = np.fromstring(text, np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            wrong = next(filter(_is_no_number, text.split()), b"")
            raise self.error(f"{_shown(wrong)}, expected a number") from None
        if not np.isfinite(numbers).all():
            wrong = text.split()[int(np.argmin(np.isfinite(numbers)))]
            raise self.error(f"{_shown(wrong)}, expected a finite number")
        return numbers

    def end(self) -> None:
        """Raise an error if the file has further content."""
        self._number += 1
        rest = self._file.read(PIECE_BYTES)
        if more := rest.lstrip():
            raise self.error(f"{_shown(more)}, expected the end of the file, for the network is complete")
        if len(rest) == PIECE_BYTES:
            raise self.error(f"more than {PIECE_BYTES:,} blanks, expected the end of the file")


def _is_no_number(word: bytes) -> bool:
    """Whether a word does not parse as a number."""
    try:
        float(word)
    except ValueError:
        return True
    return False


def _shown(word: bytes) -> str:
    """The first 20 characters of a word, quoted for a message."""
    return repr(word[:20].decode("ascii", "replace"))


def _read_tower(lines: _Lines) -> tuple[dict[str, np.ndarray], int]:
    """Parameters by name up to the policy head's convolution, whose size ends the tower; and the number of blocks."""
    weight = lines.take_up_to("weights of the first convolution", MAX_CHANNELS * PLANES * 9)
    channels, odd = divmod(len(weight), PLANES * 9)
    if odd:
        raise lines.error(f"{len(weight):,} numbers, expected a multiple of {PLANES * 9}: {PLANES} planes, 3x3")
    state = _read_norm(lines, "stem", weight, (channels, PLANES, 3, 3))
    inner, outer = channels * channels * 9, POLICY_FILTERS * channels
    for block in range(MAX_BLOCKS):
        weight = lines.take_up_to("weights of the next block or of the policy head", inner)
        if len(weight) == outer:
            return state | _read_norm(lines, "policy_local", weight, (POLICY_FILTERS, channels, 1, 1)), block
        if len(weight) != inner:
            raise lines.error(f"{len(weight):,} numbers, expected {inner:,} (a block) or {outer:,} (the policy head)")
        state |= _read_norm(lines, f"blocks.{block}.first", weight, (channels, channels, 3, 3))
        weight = lines.take("weights of a block's second convolution", inner)
        state |= _read_norm(lines, f"blocks.{block}.second", weight, (channels, channels, 3, 3))
    raise lines.error(f"more blocks than {MAX_BLOCKS - 1}")


def _read_heads(lines: _Lines, channels: int) -> dict[str, np.ndarray]:
    """Parameters by name of all layers after the policy head's convolution."""
    weight = lines.take("weights of the policy on boards of 19x19", (POINTS + 1) * POLICY_FILTERS * POINTS)
    weight = weight.reshape(POINTS + 1, POLICY_FILTERS, POINTS)[FLIPPED_MOVES][:, :, FLIPPED]
    state = {
        "policy_out.weight": weight.reshape(POINTS + 1, POLICY_FILTERS * POINTS),
        "policy_out.bias": lines.take("biases of the policy", POINTS + 1)[FLIPPED_MOVES],
    }
    weight = lines.take("weights of the value head's convolution", channels)
    state |= _read_norm(lines, "value_local", weight, (1, channels, 1, 1))
    weight = lines.take("weights of the value head's hidden layer", VALUE_HIDDEN * POINTS)
    return state | {
        "value_hidden.weight": weight.reshape(VALUE_HIDDEN, POINTS)[:, FLIPPED],
        "value_hidden.bias": lines.take("biases of the value head's hidden layer", VALUE_HIDDEN),
        "value_out.weight": lines.take("weights of the value", VALUE_HIDDEN).reshape(1, VALUE_HIDDEN),
        "value_out.bias": lines.take("bias of the value", 1),
    }


def _read_norm(lines: _Lines, name: str, weight: np.ndarray, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Parameters by name of a convolution with the given weights and of its normalisation, read from the next lines."""
    outputs = shape[0]
    bias, mean, variance = (
        lines.take(f"{what} of a convolution with {outputs} outputs", outputs)
        for what in ("biases", "means", "variances")
    )
    if variance.min() < 0:
        raise lines.error(f"{variance.min():g}, expected variances, which are not negative")
    return {
        f"{name}.conv.weight": weight.reshape(shape)[:, :, ::-1].copy(),
        f"{name}.scale": np.ones(outputs, np.float32),
        f"{name}.shift": np.zeros(outputs, np.float32),
        f"{name}.mean": mean - bias,
        f"{name}.variance": variance,
    }


def _checked_form(model: Any, spec: NetworkSpec) -> ZeroNet:
    """The network, if the format can represent it.

    Raises:
        ValueError: the format cannot represent the model.
    """
    if not isinstance(model, ZeroNet) or spec.encoder not in PLANES_OF:
        known = " or ".join(PLANES_OF)
        wrong = f"a {type(model).__name__} on {spec.encoder}, expected one of AlphaGo Zero's form on {known}"
    elif model.shape.planes != PLANES_OF[spec.encoder]:
        wrong = f"reads {model.shape.planes} planes, expected {PLANES_OF[spec.encoder]}"
    elif model.shape.size != SIZE:
        wrong = f"plays boards of {model.shape.size}x{model.shape.size}, expected 19x19"
    elif model.shape.value_hidden > VALUE_HIDDEN:
        wrong = f"its value head has {model.shape.value_hidden} hidden units, expected at most {VALUE_HIDDEN}"
    else:
        return model
    raise ValueError(f"network {spec.name} cannot be written for Leela Zero: {wrong}")


def _lines_of(model: ZeroNet) -> Iterator[np.ndarray]:
    """A model's arrays in the order of the format, one a line; float64, so that they are rounded once."""
    state = {name: values.astype(np.float64) for name, values in arrays_of(model).items()}
    if model.shape.planes < PLANES:
        weight = state["stem.conv.weight"]
        state["stem.conv.weight"] = np.pad(weight[:, FROM_ZERO], ((0, 0), (0, 1), (0, 0), (0, 0)))
    spare = VALUE_HIDDEN - model.shape.value_hidden
    norms = ["stem", *(f"blocks.{i}.{part}" for i in range(model.shape.blocks) for part in ("first", "second"))]
    for name in norms:
        yield from _norm_lines(state, name)
    yield from _norm_lines(state, "policy_local")
    weight = state["policy_out.weight"].reshape(POINTS + 1, POLICY_FILTERS, POINTS)
    yield weight[FLIPPED_MOVES][:, :, FLIPPED]
    yield state["policy_out.bias"][FLIPPED_MOVES]
    yield from _norm_lines(state, "value_local")
    # Missing hidden units are padded with zeros.
    yield np.pad(state["value_hidden.weight"][:, FLIPPED], ((0, spare), (0, 0)))
    yield np.pad(state["value_hidden.bias"], (0, spare))
    yield np.pad(state["value_out.weight"][0], (0, spare))
    yield state["value_out.bias"]


def _norm_lines(state: dict[str, np.ndarray], name: str) -> Iterator[np.ndarray]:
    """The four lines of a convolution and its normalisation: weights, biases, means and variances."""
    scale, shift, mean, variance = (state[f"{name}.{part}"] for part in ("scale", "shift", "mean", "variance"))
    yield state[f"{name}.conv.weight"][:, :, ::-1] * scale[:, None, None, None]
    yield shift * np.sqrt(variance + EPSILON)
    yield mean * scale
    yield variance
