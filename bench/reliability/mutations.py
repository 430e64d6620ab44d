"""Random damage to files and lines: bytes changed, cut, repeated and moved, absurd numbers, also in compressed data."""

import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable
from random import Random

GZIP, XZ, ZIP = b"\x1f\x8b", b"\xfd7zXZ\x00", b"PK\x03\x04"
INSIDE = 0.7
"""Share of mutations of a compressed file that damage its content and leave its checksums valid"""
START = 2048
"""Number of bytes at the start of a file in which half of the damage lies, since most of the structure is there"""
BOMB = 96 << 20
NUMBER = re.compile(rb"\d+")
ABSURD = (b"0", b"-1", b"1", b"255", b"256", b"65536", b"2147483648", b"-9223372036854775809", b"1" * 40, b"1e400",
          b"nan", b"inf", b"0.5", b"", b"[" * 40, b'"', b"null")  # fmt: skip

SIGNS = (b'"', b",", b":", b"[", b"]", b"{", b"}", b"\\", b"\\u", b"\\ud800", b"-", b"1e999", b"\x00", b"\x80",
         b"null", b"\xc3\x28", b"\t", b"\r", b"\x0b", b"//", b"nan", b"\xef\xbb\xbf")  # fmt: skip


def mutated(content: bytes, random: Random) -> bytes:
    """Content of a file with random damage."""
    if random.random() < INSIDE:
        if content.startswith(GZIP):
            return gzip.compress(mutated(gzip.decompress(content), random), 1, mtime=0)
        if content.startswith(XZ):
            return lzma.compress(mutated(lzma.decompress(content), random), preset=0)
        if content.startswith(ZIP):
            return _zip(content, random)
    if random.random() < 0.01:
        return content + random.choice((b"\0", b" ", b"(;", b"1 ")) * (BOMB // 2)
    return changed(content, random, (1, 1, 1, 2, 3, 8, 40))


def changed(content: bytes, random: Random, times: tuple[int, ...] = (1, 1, 2, 5)) -> bytes:
    """Content with random changes; their number is drawn from ``times``."""
    for _ in range(random.choice(times)):
        content = random.choice(CHANGES)(content, random)
    return content


def _zip(content: bytes, random: Random) -> bytes:
    """An archive with one member damaged, missing or duplicated."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(file, "w") as damaged:
        names = archive.namelist()
        chosen, what = random.choice(names), random.random()
        for name in names:
            data = archive.read(name)
            kind = archive.getinfo(name).compress_type
            if name == chosen and what < 0.9:
                data = mutated(data, random)
            if name != chosen or what < 0.95:
                damaged.writestr(zipfile.ZipInfo(name), data, kind)
            if name == chosen and what > 0.98:
                damaged.writestr(zipfile.ZipInfo(f"more-{name}"), data, kind)
    return file.getvalue()


def _place(content: bytes, random: Random) -> int:
    """A random offset, half of the time among the first START bytes."""
    return random.randrange(min(len(content), START) if random.random() < 0.5 else len(content)) if content else 0


def _slice(content: bytes, random: Random, most: int) -> tuple[int, int]:
    """Start and end of a random piece of 1, 4, 64 or ``most`` bytes, cut off at the end of the content."""
    start = _place(content, random)
    return start, min(len(content), start + random.choice((1, 4, 64, most)))


def _bit(content: bytes, random: Random) -> bytes:
    """Content with one bit flipped."""
    at = _place(content, random)
    return content[:at] + bytes(byte ^ 1 << random.randrange(8) for byte in content[at : at + 1]) + content[at + 1 :]


def _noise(content: bytes, random: Random) -> bytes:
    """Content with a piece overwritten by random bytes, zero bits or one bits."""
    start, end = _slice(content, random, 1024)
    fill = random.choice((random.randbytes(end - start), bytes(end - start), b"\xff" * (end - start)))
    return content[:start] + fill + content[end:]


def _cut(content: bytes, random: Random) -> bytes:
    """Content with the end cut off."""
    return content[: _place(content, random)]


def _without(content: bytes, random: Random) -> bytes:
    """Content with a piece removed."""
    start, end = _slice(content, random, 4096)
    return content[:start] + content[end:]


def _inserted(content: bytes, random: Random) -> bytes:
    """Content with random bytes, or a character with a meaning in JSON or SGF, inserted."""
    at = _place(content, random)
    fresh = random.choice((random.randbytes(random.choice((1, 8, 500))), random.choice(SIGNS)))
    return content[:at] + fresh + content[at:]


def _repeated(content: bytes, random: Random) -> bytes:
    """Content with a piece repeated in place, 1, 2 or 100 times."""
    start, end = _slice(content, random, 1024)
    return content[:end] + content[start:end] * random.choice((1, 2, 100)) + content[end:]


def _moved(content: bytes, random: Random) -> bytes:
    """Content with a piece overwritten by another piece of it."""
    (start, end), at = _slice(content, random, 256), _place(content, random)
    return content[:at] + content[start:end] + content[at + end - start :]


def _number(content: bytes, random: Random) -> bytes:
    """Content with a decimal number replaced by an absurd one, or by a random number of the same length."""
    at = _place(content, random)
    found = NUMBER.search(content, at) or NUMBER.search(content)
    if found is None:
        return content
    digits = b"%d" % random.randrange(10 ** min(len(found[0]), 18))
    fresh = random.choice((digits.rjust(len(found[0]), b"9"), random.choice(ABSURD)))
    return content[: found.start()] + fresh + content[found.end() :]


CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _bit, _noise, _cut, _without, _inserted, _repeated, _moved, _number, _number,
)  # fmt: skip
