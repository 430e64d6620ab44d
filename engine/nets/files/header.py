"""The kind of a network file, recognised by its first bytes, not by its name; needs no torch.

Three kinds are supported:

- Keima's: safetensors with a JSON header (:mod:`engine.nets.files.checkpoint`);
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
"""Version of the format of Keima's network files"""
LEELA_ZERO_VERSIONS = (1, 2)
MAX_HEADER_BYTES = 1 << 20
START_BYTES = 1024
GZIP = b"\x1f\x8b"
ARCHIVES = {b"PK\x03\x04": "a zip archive", b"7z\xbc\xaf\x27\x1c": "a 7z archive", b"Rar!": "a RAR archive"}
"""Descriptions of archives by their first bytes, for messages"""
LEELA_ZERO_START = re.compile(rb"(\d{1,9})\s*?\n[ \t]*(?:[-+.\deE]+[ \t]+){8}")
"""Beginning of Leela Zero's files: the version, and at least eight numbers on the next line"""
KATAGO_START = re.compile(rb"(?!\d+\s)([!-~]{1,256})[ \t\r]*\n\s*(\d{1,4})\s+\d{1,4}\s+\d{1,4}\s")
"""Beginning of KataGo's files: name, version, numbers of planes and of global values"""


class Header(NamedTuple):
    """Format, version and name of a network file."""

    format: str
    """``KEIMA``, ``KATAGO`` or ``LEELA_ZERO``"""
    version: int
    """version of the format; for KataGo the model version"""
    network: str
    """name of the architecture (Keima's files) or of the network (KataGo's); empty for Leela Zero's"""


def recognise(path: Path) -> Header:
    """The kind of a network file, from its beginning alone.

    Raises:
        ValueError: the file cannot be read, or is of no supported kind; one line naming the file and what was expected.
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
    """The encoder and board sizes of a network, as shown by the beginning of its file or assumed for its kind."""

    encoder: str
    sizes: tuple[int, int]
    """smallest and largest board"""


def expected_input(path: NetworkPath | None) -> ExpectedInput | None:
    """The encoder and board sizes to expect of a network, so that kernels are compiled before the whole file is read.

    Returns:
        None if ``path`` is None or the file is not a sound network file.
    Raises:
        ValueError: :data:`EXPECTED_INPUTS` lacks this kind of file.
    """
    if path is None:
        return None
    # A pair of networks uses the value network's encoder.
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
        if len(words) > KATAGO_OPTIONS[-1] and int(words[1]) >= KATAGO_OPTIONS_FROM:
            expected = expected._replace(encoder=katago_encoder(*(words[slot] == b"1" for slot in KATAGO_OPTIONS)))
    return expected


def katago_encoder(is_human: bool, as_if_suicide: bool, without_atari: bool) -> str:
    """The name of the encoder of a KataGo network with V7 inputs.

    Args:
        is_human: a human SL network, with inputs for a human profile.
        as_if_suicide: trained on pass-alive areas as if suicide were legal, whatever the rules.
        without_atari: trained on games counted without territory beside a chain in atari.
    """
    return KATAGO_ENCODER + "-human" * is_human + "-suicide" * as_if_suicide + "-atari" * without_atari


KATAGO_ENCODER = "katago-v7"
PROFILE_VALUES = 192
"""Number of additional global inputs of KataGo's human SL networks, which describe a human profile"""
KATAGO_OPTIONS_FROM, KATAGO_OPTIONS = 15, (11, 12, 13)
"""First model version whose files state the arguments of :func:`katago_encoder`; positions of the arguments among the
file's words"""
EXPECTED_INPUTS = {KATAGO: ExpectedInput(KATAGO_ENCODER, (2, 19)), LEELA_ZERO: ExpectedInput("leela-18", (19, 19))}
"""Default inputs by kind of file, for the kinds of file that do not name an encoder at their beginning"""


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file for reading; one that begins like gzip is decompressed.

    Raises:
        ValueError: the file cannot be read, on opening or later in the ``with`` block; one line.
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
    """The JSON header of one of Keima's network files, without reading the tensors.

    Raises:
        ValueError: the file is not one of Keima's networks; one line naming the file and what was expected.
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
