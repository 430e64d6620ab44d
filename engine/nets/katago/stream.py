"""A KataGo network file as a stream of words, numbers and blocks of weights, each checked before memory is taken.

A file is text, its words separated by white space. A block of weights is either such text too, or ``@BIN@`` and
little-endian float32. Either may be compressed with gzip. Content decides, not the file's name.
"""

import re
import zlib
from io import BufferedIOBase
from pathlib import Path

import numpy as np

from engine.nets.architectures.registry import MAX_PARAMETERS

CHUNK = 1 << 18
"""Bytes unpacked at a time"""
MAX_WORD = 256
MAX_RATIO, FREE_BYTES = 16, 1 << 26
"""Weights hardly shrink, as text to a third: a file that unpacks to more than this many times its size is a bomb. A
small one may be unpacked to 64 MiB anyway."""
BINARY = b"@BIN@"
SIGN, WORD = re.compile(rb"\S"), re.compile(rb"\S{1,%d}" % (MAX_WORD + 1))


class Stream:
    """One file, read once from its beginning to its end.

    Everything that is wrong raises a ValueError of one line: file, byte (of the unpacked content), layer, field, what
    was found and what was expected.
    """

    def __init__(self, path: Path, file: BufferedIOBase):
        """Begin to read a file that is open, and unpacks itself where it is compressed."""
        self.path = path
        self.layer = ""
        """name of the layer that is being read, for messages"""
        self._file = file
        self._limit = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)
        self._unpacked = 0
        self._held = b""
        self._at = 0
        self._ended = False
        self.parameters = 0
        """weights read so far"""

    def wrong(self, field: str, found: object, expected: object) -> ValueError:
        """The error for something that is not as it should be."""
        byte = self._unpacked - len(self._held) + self._at
        place = f"{self.layer}: {field}" if self.layer else field
        shown = "".join(sign if sign.isprintable() else "?" for sign in str(found)[:60])
        return ValueError(f"{self.path}: byte {byte}, {place}: {shown}, expected {expected}")

    def word(self, field: str) -> str:
        """The next word, of ASCII characters."""
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
        """The name of the next layer or part, which messages then name."""
        self.layer = ""
        self.layer = self.word("name of a layer")
        return self.layer

    def integer(self, field: str, low: int, high: int) -> int:
        """The next word as a whole number within limits."""
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
        """The next block of weights, float32 of a shape that the caller has found sound."""
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

    def finish(self) -> None:
        """See that nothing but white space is left; where the file is packed, its checksum is compared as well."""
        self.layer = ""
        self._skip_space()
        if self._at < len(self._held):
            raise self.wrong("after the last layer", "more data", "the end of the file")

    def _binary(self, count: int) -> np.ndarray:
        """A block of float32."""
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
        """A block of numbers as words."""
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
        """Go on to the next sign that is no white space, or to the end."""
        while not (found := SIGN.search(self._held, self._at)):
            self._at = len(self._held)
            if not self._fill():
                return
        self._at = found.start()

    def _fill(self) -> bool:
        """Unpack a little more; False at the end of the file."""
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
