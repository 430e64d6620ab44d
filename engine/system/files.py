"""Files written whole or not at all, folders held by one process, arrays unpacked no further than sound ones are."""

import errno
import hashlib
import io
import lzma
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from engine.system import one_line

MAX_RATIO, FREE_BYTES = 128, 16 << 20
"""A file that unpacks to more than this many times its size is a bomb. Records shrink to a third, labels too, but the
positions of one game, each with all moves before it, to a hundredth where games are of 700 moves. A small file may be
unpacked to 16 MiB anyway."""
XZ_MEMORY = 128 << 20
"""Most memory that unpacking may ask for; the strongest preset of xz needs 65 MiB."""
CHUNK = 1 << 18
MAGIC = b"\x93NUMPY\x01\x00"
MAX_HEADER_BYTES = 1 << 12
HEADER = re.compile(
    rb"\{'descr': '([<>|=][A-Za-z]\d{1,4})', 'fortran_order': (True|False), 'shape': \(((?:\d{1,12},? ?){0,4})\), \}\s*"
)
"""An array's dtype, order and shape, as numpy writes them"""
Known = Mapping[str, tuple[str, tuple[int | None, ...]]]
"""What arrays a file may hold: by name the dtype and the shape, None being any length"""


@contextmanager
def alone_in(folder: Path, part: str = "") -> Iterator[None]:
    """Hold a folder, made if need be, for one process at a time: two would append to the same files.

    Args:
        part: of the folder, where several processes share it out.
    Raises:
        ValueError: another process is at work there, or it is no folder; one line.
    """
    if folder.is_file():
        raise ValueError(f"{folder}: already there, expected a new or empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"keima{part}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"{folder}: another process is at work here") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def written_whole(path: Path, is_shared: bool = False) -> Iterator[Path]:
    """A path beside the one wanted, which is renamed to it at the end: no reader meets half a file.

    What was written is on the disk before it takes the name, so that after a power failure the file is the old one or
    the new one. If the block fails, the old one stays and the part is deleted. A link stays one: the file that it leads
    to is written. A file keeps its permissions; what is no file, such as a pipe, gets the bytes and stays what it is.

    Args:
        is_shared: several processes may write this file at once; each then has a part of its own.
    Raises:
        OSError: it cannot be written; the message names the file.
    """
    target = Path(os.path.realpath(path))
    takes_bytes = target.exists() and not (target.is_file() or target.is_dir())
    if takes_bytes:
        handle, name = tempfile.mkstemp(suffix=f"-{target.name}")
        os.close(handle)
        part = Path(name)
    else:
        part = target.with_name(f".{target.name}.{os.getpid()}.partial" if is_shared else f"{target.name}.partial")
    try:
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        permissions = None if target.is_file() or takes_bytes else _new_permissions(part)
        yield part
        if takes_bytes:
            with part.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            return
        if target.is_file():
            shutil.copymode(target, part)
        elif permissions is not None:
            part.chmod(permissions)
        synced(part)
        part.replace(target)
        synced(target.parent)
    except OSError as error:
        # What writing raises does not name the file, and renaming names the part.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def _new_permissions(path: Path) -> int:
    """Permission bits of a file made now, which is left there, empty: to ask for the umask is to change it for all
    threads."""
    path.unlink(missing_ok=True)
    path.touch()
    return path.stat().st_mode & 0o777


def synced(path: Path) -> None:
    """See to it that a file, or the names in a folder, outlive a power failure.

    Raises:
        OSError: the file cannot be written; of folders not every system lets itself be asked.
    """
    is_folder = path.is_dir()
    try:
        file = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    except OSError:
        if not is_folder:
            raise


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_packed_arrays(path: Path, known: Known) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` inside ``.xz``; arguments, limits and errors as of :func:`read_arrays`."""
    try:
        packed = path.read_bytes()
        return _arrays(io.BytesIO(_unpacked(packed, _limit(len(packed)))), known, _limit(len(packed)))
    except DAMAGED as error:
        raise ValueError(one_line(error)) from error


def read_arrays(path: Path, known: Known) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` that are known; no memory is taken for others.

    Raises:
        ValueError: the file cannot be read, is damaged, unpacks to more than sound ones do, or an array is of another
            dtype or shape. The message is one line and does not name the file.
    """
    try:
        with path.open("rb") as file:
            return _arrays(file, known, _limit(path.stat().st_size))
    except DAMAGED as error:
        raise ValueError(one_line(error)) from error


DAMAGED = (
    OSError, EOFError, ValueError, LookupError, RuntimeError, MemoryError, zipfile.BadZipFile, lzma.LZMAError,
    zlib.error,
)  # fmt: skip
"""What unpacking may raise; RuntimeError for a flipped "encrypted" bit."""


def _limit(packed: int) -> int:
    """The most bytes that a file of a size may unpack to."""
    return max(FREE_BYTES, MAX_RATIO * packed)


def _unpacked(packed: bytes, limit: int) -> bytearray:
    """The content of an ``.xz``.

    Raises:
        ValueError: it is larger than the limit, or something follows it.
        EOFError, LZMAError: it is damaged.
    """
    held = bytearray()
    with memoryview(packed) as rest:
        unpacker, at = lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY), 0
        while not unpacker.eof:
            piece = rest[at : at + CHUNK] if unpacker.needs_input else b""
            if unpacker.needs_input and not piece:
                raise EOFError("it ends too early")
            at += len(piece)
            held += unpacker.decompress(piece, CHUNK)
            if len(held) > limit:
                raise ValueError(f"more than {limit:,} bytes once unpacked")
    if unpacker.unused_data or at < len(packed):
        raise ValueError("more data behind its end")
    return held


def _arrays(file: io.BufferedIOBase, known: Known, limit: int) -> dict[str, np.ndarray]:
    """The known arrays of an open ``.npz``; errors are those of ``DAMAGED``."""
    found: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(file) as archive:
        members = [(member.filename.removesuffix(".npy"), member) for member in archive.infolist()]
        wanted = [(name, member) for name, member in members if name in known]
        if sum(member.file_size for _, member in wanted) > limit:
            raise ValueError(f"more than {limit:,} bytes once unpacked")
        for name, member in wanted:
            if name in found or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} is there twice, or packed in another way than expected")
            with archive.open(member) as content:
                found[name] = _array(name, content.read(), *known[name])
    return found


def _array(name: str, content: bytes, dtype: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """One array of a file: ``.npy``, version 1."""
    start = len(MAGIC) + 2
    length = int.from_bytes(content[len(MAGIC) : start], "little")
    header = HEADER.fullmatch(content, start, start + length) if length <= MAX_HEADER_BYTES else None
    if not content.startswith(MAGIC) or header is None:
        raise ValueError(f"{name} has no sound header")
    kind, sides = header[1].decode(), tuple(int(side) for side in header[3].decode().replace(",", " ").split())
    if kind[1] not in "biuf":
        raise ValueError(f"{name} holds no numbers")
    if kind != (expected := np.dtype(dtype).newbyteorder("<").str):
        raise ValueError(f"{name} holds {kind}, expected {expected}")
    if len(sides) != len(shape) or any(side not in (None, found) for side, found in zip(shape, sides, strict=True)):
        wanted = " x ".join("any" if side is None else str(side) for side in shape) or "a single number"
        raise ValueError(f"{name} has shape {sides}, expected {wanted}")
    values = np.frombuffer(content, kind, offset=start + length)
    if len(values) != int(np.prod(sides, dtype=object)):
        raise ValueError(f"{name} holds {len(values)} numbers, expected shape {sides}")
    return values.reshape(sides, order="F" if header[2] == b"True" else "C").copy("C")
