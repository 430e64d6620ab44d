"""The kind of a network file, recognised by how it begins, whatever its name; needs no torch.

Three kinds are known:

- Keima's: safetensors with a JSON header of ours (:mod:`engine.nets.files.checkpoint`);
- KataGo's, text or binary: lines with the network's name, its version and the numbers of its inputs;
- Leela Zero's: a line with the version, then lines of numbers (:mod:`engine.nets.files.leela_zero`).

The latter two may be compressed by gzip.
"""

import gzip
import json
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

from weights import NetworkPath, files_of

KEIMA, KATAGO, LEELA_ZERO = "Keima", "KataGo", "Leela Zero"
EXPECTED = "a network of Keima (.safetensors), KataGo (.bin.gz, .txt.gz) or Leela Zero (.txt, .gz)"
FORMAT = 1
"""Version of our own files"""
LEELA_ZERO_VERSIONS = (1, 2)
MAX_HEADER_BYTES = 1 << 20
START_BYTES = 1024
GZIP = b"\x1f\x8b"
ARCHIVES = {b"PK\x03\x04": "a zip archive", b"7z\xbc\xaf\x27\x1c": "a 7z archive", b"Rar!": "a RAR archive"}
"""By their first bytes"""
LEELA_ZERO_START = re.compile(rb"(\d{1,9})\s*?\n[ \t]*(?:[-+.\deE]+[ \t]+){8}")
"""The version, and numbers on the line behind it"""
KATAGO_START = re.compile(rb"(?!\d+\s)([!-~]{1,256})[ \t\r]*\n\s*(\d{1,4})\s+\d{1,4}\s+\d{1,4}\s")
"""Name, version, planes and global values"""


class Header(NamedTuple):
    """How a file introduces itself."""

    format: str
    """``KEIMA``, ``KATAGO`` or ``LEELA_ZERO``"""
    version: int
    """of the format"""
    network: str
    """the architecture or the name that the file gives its network; may be empty"""


def recognise(path: Path) -> Header:
    """Which kind of network a file holds; it may be damaged further on.

    Raises:
        ValueError: it cannot be read, or holds none of these kinds; one line naming the file and what was expected.
    """
    with opened(path) as file:
        start = file.read(START_BYTES)
    if found := LEELA_ZERO_START.match(start):
        if int(found[1]) not in LEELA_ZERO_VERSIONS:
            raise ValueError(f"{path}: version {int(found[1])} of {LEELA_ZERO}'s format, expected 1 or 2")
        return Header(LEELA_ZERO, int(found[1]), "")
    if found := KATAGO_START.match(start):
        return Header(KATAGO, int(found[2]), found[1].decode("ascii"))
    if start[8:9] == b"{" and 2 <= struct.unpack("<Q", start[:8])[0] <= MAX_HEADER_BYTES:
        header = read_header(path)
        return Header(KEIMA, header["format"], str(header.get("architecture", ""))[:40])
    kind = next((kind for sign, kind in ARCHIVES.items() if start.startswith(sign)), "of no kind we know")
    raise ValueError(f"{path}: {kind if start else 'empty'}, expected {EXPECTED}")


class ExpectedInput(NamedTuple):
    """The input of a network, as far as the beginning of its file shows it."""

    encoder: str
    sizes: tuple[int, int]
    """smallest and largest board"""


def expected_input(path: NetworkPath | None) -> ExpectedInput | None:
    """The input that the network of a file needs: a guess, to prepare for it before the file is read.

    Returns:
        None where there is no network, or the file is none.
    Raises:
        ValueError: :data:`EXPECTED_INPUTS` lacks this kind of file.
    """
    if path is None:
        return None
    # Of two networks the value network's encoder is both's.
    file = files_of(path)[-1]
    try:
        kind = recognise(file).format
        if kind == KEIMA:
            header = read_header(file)
            low, high = header["sizes"]
            return ExpectedInput(str(header["encoder"]), (int(low), int(high)))
    except (ValueError, KeyError, TypeError):
        return None
    if kind not in EXPECTED_INPUTS:
        raise ValueError(f"{file}: networks of {kind} have no entry in EXPECTED_INPUTS")
    expected = EXPECTED_INPUTS[kind]
    if kind == KATAGO:
        with opened(file) as opened_file:
            words = opened_file.read(START_BYTES).split()
        if len(words) > KATAGO_ATARI and int(words[1]) >= KATAGO_OPTIONS_FROM:
            suicide, atari = (words[slot] == b"1" for slot in (KATAGO_SUICIDE, KATAGO_ATARI))
            expected = expected._replace(encoder=katago_encoder(suicide, atari))
    return expected


def katago_encoder(as_if_suicide: bool, without_atari: bool) -> str:
    """The encoder of a network of KataGo's: V7 inputs.

    Args:
        as_if_suicide: shown pass-alive areas as if suicide were legal, whatever the rules.
        without_atari: games counted without territory beside a chain in atari.
    """
    return KATAGO_ENCODER + "-suicide" * as_if_suicide + "-atari" * without_atari


KATAGO_ENCODER = "katago-v7"
KATAGO_OPTIONS_FROM, KATAGO_SUICIDE, KATAGO_ATARI = 15, 12, 13
"""The model version from which on, and the words of a file in which, it says what :func:`katago_encoder` asks"""
EXPECTED_INPUTS = {KATAGO: ExpectedInput(KATAGO_ENCODER, (2, 19)), LEELA_ZERO: ExpectedInput("leela-18", (19, 19))}
"""Of every kind of file whose beginning does not name its encoder"""


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """A file to read from, decompressed on the way if it begins as gzip does.

    Raises:
        ValueError: it cannot be read, now or later in the block; one line.
    """
    try:
        with path.open("rb") as file:
            is_packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            yield gzip.GzipFile(fileobj=file) if is_packed else file
    except EOFError as error:
        raise ValueError(f"{path}: truncated, expected more of its gzip archive") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: damaged, expected a sound gzip archive ({error})") from error
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from error


def read_header(path: Path) -> dict[str, Any]:
    """The JSON header of a network file of ours, without reading its tensors.

    Raises:
        ValueError: the file is no network of ours; one line naming the file and what was expected.
    """
    with opened(path) as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= MAX_HEADER_BYTES:
            raise ValueError(f"{path}: not a safetensors file (header of {length} bytes)")
        text = file.read(length)
    try:
        header = json.loads(json.loads(text)["__metadata__"]["keima"])
        version = header["format"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: no Keima network header (metadata key 'keima' missing or damaged)") from error
    if version != FORMAT:
        raise ValueError(f"{path}: a network file of format {str(version)[:40]}, expected format {FORMAT}")
    return header
