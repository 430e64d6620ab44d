"""KataGo's network files: a stream of checked words and weights, and the layers that it holds.

A file is text with words separated by white space. A block of weights is text too, or ``@BIN@`` and little-endian
float32. Both kinds may be compressed by gzip; the file's name does not matter. Every number is checked before memory is
allocated for it.

Batch normalisation is read as scale and shift of each channel. After a convolution or a matrix it is folded into the
weights; before a block's first layer it becomes a :class:`engine.nets.layers.Norm`.

Source: the public description of the format, ``cpp/neuralnet/desc.cpp`` of KataGo 1.17.
"""

import re
import zlib
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.nets.layers import IDENTITY, MAX_PARAMETERS, MISH, RELU, SILU, Convolution, Linear, Norm

CHUNK = 1 << 18
"""Number of bytes unpacked at a time"""
MAX_WORD = 256
MAX_RATIO, FREE_BYTES = 16, 1 << 26
"""Largest ratio of decompressed to compressed size, and the decompressed size up to which the ratio is not checked.
Binary weights hardly compress, text to a third; a larger ratio is a decompression bomb."""
BINARY = b"@BIN@"
SIGN, WORD = re.compile(rb"\S"), re.compile(rb"\S{1,%d}" % (MAX_WORD + 1))


class Stream:
    """One file, read sequentially.

    Every error is a ValueError of one line: file, byte (of the decompressed content), layer, field, found and expected
    content.
    """

    def __init__(self, path: Path, file: BufferedIOBase):
        """Read from an open file, whose ``read`` returns decompressed content."""
        self.path = path
        self.layer = ""
        """name of the current layer, for messages"""
        self._file = file
        self._limit = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)
        self._unpacked = 0
        self._held = b""
        self._at = 0
        self._ended = False
        self.parameters = 0
        """weights read so far"""

    def wrong(self, field: str, found: object, expected: object) -> ValueError:
        """The error for unexpected content; the caller raises it."""
        byte = self._unpacked - len(self._held) + self._at
        place = f"{self.layer}: {field}" if self.layer else field
        shown = "".join(sign if sign.isprintable() else "?" for sign in str(found)[:60])
        return ValueError(f"{self.path}: byte {byte}, {place}: {shown}, expected {expected}")

    def word(self, field: str) -> str:
        """The next word, in ASCII."""
        self._skip_space()
        while not (found := WORD.match(self._held, self._at)) or found.end() == len(self._held):
            if not self._fill():
                break
        if not found:
            raise self.wrong(field, "the file ends", "a word")
        if len(found[0]) > MAX_WORD or not found[0].isascii():
            raise self.wrong(field, "no text", f"a word of at most {MAX_WORD} ASCII characters")
        self._at += len(found[0])
        return found[0].decode("ascii")

    def name(self) -> str:
        """Read the name of the next layer or part, which later messages include."""
        self.layer = ""
        self.layer = self.word("name of a layer")
        return self.layer

    def integer(self, field: str, low: int, high: int) -> int:
        """The next word as an integer within limits."""
        word = self.word(field)
        expected = str(low) if low == high else f"a whole number from {low} to {high}"
        try:
            number = int(word)
        except ValueError as error:
            raise self.wrong(field, repr(word[:40]), expected) from error
        if not low <= number <= high:
            raise self.wrong(field, word[:40], expected)
        return number

    def positive(self, field: str, high: float) -> float:
        """The next word as a number above 0 and up to a limit."""
        word = self.word(field)
        try:
            number = float(word)
        except ValueError:
            number = 0.0
        if not 0.0 < number <= high:
            raise self.wrong(field, repr(word[:40]), f"a number above 0, at most {high:g}")
        return number

    def weights(self, *shape: int) -> np.ndarray:
        """The next block of weights, float32 of a shape that the caller has checked."""
        count = int(np.prod(shape))
        self.parameters += count
        if self.parameters > MAX_PARAMETERS:
            raise self.wrong("weights", f"{self.parameters:,} so far", f"at most {MAX_PARAMETERS:,} in a network")
        self._skip_space()
        while len(self._held) - self._at < len(BINARY) and self._fill():
            pass
        is_binary = self._held.startswith(BINARY, self._at)
        values = self._binary(count) if is_binary else self._text(count)
        if not np.isfinite(values).all():
            raise self.wrong("weights", "a number that is not finite", "finite ones")
        return values.reshape(shape)

    def check_end(self) -> None:
        """Raise an error if the file has further content; reading to the end also checks gzip's checksum."""
        self.layer = ""
        self._skip_space()
        if self._at < len(self._held):
            raise self.wrong("after the last layer", "more data", "the end of the file")

    def _binary(self, count: int) -> np.ndarray:
        """The next block of weights in binary form, float32[count]."""
        self._at += len(BINARY)
        found = bytearray()
        while len(found) < 4 * count:
            if self._at == len(self._held) and not self._fill():
                raise self.wrong("weights", f"the file ends after {len(found) // 4:,}", f"{count:,}")
            part = self._held[self._at : self._at + 4 * count - len(found)]
            found += part
            self._at += len(part)
        return np.frombuffer(found, "<f4").astype(np.float32, copy=False)

    def _text(self, count: int) -> np.ndarray:
        """The next block of weights in text form, float32[count]."""
        parts, missing = [], count
        while missing:
            words = self._held[self._at :].split(None, missing)
            is_cut = bool(words) and not self._held[-1:].isspace() and not self._ended
            rest = len(words.pop()) if is_cut or len(words) > missing else 0
            try:
                parts.append(np.array([float(word) for word in words], np.float32))
            except ValueError as error:
                raise self.wrong("weights", "no number", f"{count:,} numbers, or {BINARY.decode()}") from error
            self._at = len(self._held) - rest
            missing -= len(words)
            if missing and self._ended:
                raise self.wrong("weights", f"the file ends after {count - missing:,}", f"{count:,}")
            if missing and not words and rest > MAX_WORD:
                raise self.wrong("weights", "no number", f"{count:,} numbers, or {BINARY.decode()}")
            if missing:
                self._fill()
        return np.concatenate(parts)

    def _skip_space(self) -> None:
        """Skip white space."""
        while not (found := SIGN.search(self._held, self._at)):
            self._at = len(self._held)
            if not self._fill():
                return
        self._at = found.start()

    def _fill(self) -> bool:
        """Read a further chunk; returns False at the end of the file."""
        try:
            more = self._file.read(CHUNK)
        except (OSError, EOFError, zlib.error) as error:
            raise self.wrong("content", error, "a whole, undamaged file") from error
        self._held = self._held[self._at :] + more
        self._at = 0
        self._unpacked += len(more)
        self._ended = not more
        if self._unpacked > self._limit:
            raise self.wrong("content", f"more than {self._limit:,} bytes once unpacked", "a network")
        return bool(more)


MAX_CHANNELS = 1 << 14
MAX_SIZE = 19
"""Largest board of KataGo's buffers, and of the tables of angles and profiles"""
MAX_DIAMETER = 37
"""Maximum height and width of a convolution: enough to reach from one corner of a 19x19 board to the opposite one"""
ACTIVATIONS = {
    "ACTIVATION_IDENTITY": IDENTITY,
    "ACTIVATION_RELU": RELU,
    "ACTIVATION_MISH": MISH,
    "ACTIVATION_SILU": SILU,
}
FIRST_WITH_ACTIVATIONS = 11
"""First model version whose files name activations; earlier ones always use ReLU"""


class Scaling(NamedTuple):
    """Batch normalisation with its statistics included: ``x * scale + shift`` for each channel."""

    scale: np.ndarray
    """float64[C]"""
    shift: np.ndarray
    """float64[C]"""


class LayerReader:
    """Reads layers from a stream and checks their shapes against the preceding layers.

    All methods raise ValueError as :class:`Stream` does.
    """

    def __init__(self, stream: Stream, version: int):
        """Read from a stream the layers of a model of this version."""
        self.stream = stream
        self.version = version
        self.statistics = 0
        """numbers read so far that are statistics of batch normalisation, not parameters"""

    def channels(self, field: str, expected: int | None = None) -> int:
        """Read a number of channels; ``expected`` None = any number is allowed."""
        return self.stream.integer(field, expected or 1, expected or MAX_CHANNELS)

    def zeros(self, what: str, count: int) -> None:
        """Read ``count`` options reserved by the format, which must be 0."""
        for index in range(count):
            self.stream.integer(f"{what} option {index + 1} of {count} unknown ones", 0, 0)

    def convolution(self, inputs: int, outputs: int | None = None) -> Convolution:
        """Read a convolution of odd height and width, without bias."""
        stream = self.stream
        stream.name()
        height, width = (stream.integer(f"{side} of a convolution", 1, MAX_DIAMETER) for side in ("height", "width"))
        if height % 2 == 0 or width % 2 == 0:
            raise stream.wrong("convolution", f"{height}x{width}", "odd height and width")
        channels = self.channels("input channels", inputs), self.channels("output channels", outputs)
        dilation_y, dilation_x = (stream.integer(f"dilation in {axis}", 1, MAX_DIAMETER) for axis in "yx")
        weight = stream.weights(height, width, *channels)
        return Convolution(np.ascontiguousarray(weight.transpose(3, 2, 0, 1)), dilation=(dilation_y, dilation_x))

    def scaling(self, channels: int) -> Scaling:
        """Read batch normalisation."""
        stream = self.stream
        stream.name()
        self.channels("channels", channels)
        epsilon = stream.positive("epsilon", 1.0)
        has_scale, has_shift = (stream.integer(f"whether there is a {part}", 0, 1) for part in ("scale", "shift"))
        self.statistics += 2 * channels
        mean, variance = (stream.weights(channels).astype(np.float64) for _ in range(2))
        if variance.min() < 0.0:
            raise stream.wrong("variance", variance.min(), "none below 0")
        scale = stream.weights(channels) if has_scale else np.ones(channels)
        shift = stream.weights(channels) if has_shift else np.zeros(channels)
        factor = scale / np.sqrt(variance + epsilon)
        return Scaling(factor, shift - factor * mean)

    def activation(self) -> int:
        """Read an activation function."""
        self.stream.name()
        if self.version < FIRST_WITH_ACTIVATIONS:
            return RELU
        kind = self.stream.word("activation")
        if kind not in ACTIVATIONS:
            raise self.stream.wrong("activation", kind, f"one of {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[kind]

    def matrix(self, inputs: int, outputs: int | None = None) -> np.ndarray:
        """Read the matrix of a linear layer, float32[outputs, inputs]."""
        self.stream.name()
        channels = self.channels("input channels", inputs), self.channels("output channels", outputs)
        return np.ascontiguousarray(self.stream.weights(*channels).T)

    def vector(self, channels: int) -> np.ndarray:
        """Read a bias, float32[channels]."""
        self.stream.name()
        return self.stream.weights(self.channels("channels", channels))


def _as_float32(values: np.ndarray) -> np.ndarray:
    """Contiguous float32; values out of range become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, np.float32)


def normalised(layer: Convolution, after: Scaling) -> Convolution:
    """A convolution with the normalisation ``after`` it folded into weights and bias."""
    weight = _as_float32(layer.weight * after.scale[:, None, None, None])
    return Convolution(weight, _as_float32(after.shift), layer.dilation)


def linear(weight: np.ndarray, bias: np.ndarray | None = None, is_float32: bool = False) -> Linear:
    """A linear layer of a matrix[outputs, inputs] and a bias."""
    return Linear(_as_float32(weight), None if bias is None else _as_float32(bias), is_float32)


def norm(scaling: Scaling, activation: int) -> Norm:
    """Scale and shift of each channel, then an activation; a scale of ones is omitted."""
    scale = _as_float32(scaling.scale) if (scaling.scale != 1.0).any() else None
    return Norm(activation, scale, _as_float32(scaling.shift))
