"""Atomic writing of files, locks on folders, and reading of arrays within limits on their unpacked size."""

import errno
import hashlib
import io
import lzma
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from filelock import FileLock, Timeout

from engine.system import one_line

MAX_RATIO, FREE_BYTES = 128, 16 << 20
"""A file may unpack to this many times its size, and to 16 MiB in any case; a larger one is taken for a zip bomb. Games
and labels compress to a third, but positions of one game, each with all moves before it, to a hundredth if games have
700 moves."""
XZ_MEMORY = 128 << 20
"""Memory limit of xz's decompressor, in bytes; the strongest preset needs 65 MiB"""
CHUNK = 1 << 18
Known = Mapping[str, tuple[str, tuple[int | None, ...]]]
"""Known arrays of a file: name -> dtype and shape, None being any length"""


@contextmanager
def alone_in(folder: Path, part: str = "") -> Iterator[None]:
    """Lock a folder, created if missing, for this process, so that no other process writes there.

    Args:
        part: name of a part of the folder that has its own lock.
    Raises:
        ValueError: another process has the lock, or the path is a file; one line.
    """
    if folder.is_file():
        raise ValueError(f"{folder}: already there, expected a new or empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"keima{part}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"{folder}: the folder is locked by another process") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def written_whole(path: Path, is_shared: bool = False) -> Iterator[Path]:
    """Write a file atomically: yields a temporary path in its folder, which is renamed at the end of the block.

    The data are on the disk before the renaming, so that after a power failure the file is the old or the new one. If
    the block fails, the old file stays and the temporary one is deleted. Symbolic links are followed. The file keeps
    its permissions. A special file, such as a pipe, gets the bytes instead.

    Args:
        is_shared: whether several processes may write this file at once; each then has its own temporary file.
    Raises:
        OSError: the file cannot be written; the message names it.
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
        # Errors of writing do not name the file, those of renaming name the temporary one.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def _new_permissions(path: Path) -> int:
    """Permission bits of new files, taken from an empty file that is created at ``path``.

    Reading the umask instead would change it for a moment, for all threads.
    """
    path.unlink(missing_ok=True)
    path.touch()
    return path.stat().st_mode & 0o777


def synced(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk.

    Raises:
        OSError: the file cannot be written; errors of folders, which some systems do not support, are ignored.
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
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_packed_arrays(path: Path, known: Known) -> dict[str, np.ndarray]:
    """The known arrays of an ``.npz`` inside ``.xz``; arguments, limits and errors as for :func:`read_arrays`."""
    try:
        packed = path.read_bytes()
        return _arrays(io.BytesIO(_unpacked(packed, _limit(len(packed)))), known, _limit(len(packed)))
    except Exception as error:  # Damaged bytes make lzma, zipfile and numpy raise a dozen kinds.
        raise ValueError(one_line(error)) from error


def read_arrays(path: Path, known: Known) -> dict[str, np.ndarray]:
    """The known arrays of an ``.npz``; other arrays are not unpacked.

    Raises:
        ValueError: the file cannot be read, is damaged or unpacks to more than the limit, or an array has another
            dtype or shape. The message is one line and does not name the file.
    """
    try:
        with path.open("rb") as file:
            return _arrays(file, known, _limit(path.stat().st_size))
    except Exception as error:  # Damaged bytes make lzma, zipfile and numpy raise a dozen kinds.
        raise ValueError(one_line(error)) from error


def _limit(packed: int) -> int:
    """Maximum unpacked size, in bytes, of a file of ``packed`` bytes."""
    return max(FREE_BYTES, MAX_RATIO * packed)


def _unpacked(packed: bytes, limit: int) -> bytearray:
    """The content of an ``.xz``.

    Raises:
        ValueError: the content is larger than the limit, or data follow it.
        EOFError, LZMAError: the data are damaged.
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
        raise ValueError("more data after its end")
    return held


def _arrays(file: IO[bytes], known: Known, limit: int) -> dict[str, np.ndarray]:
    """The known arrays of an open ``.npz``, in C order; raises as :func:`read_arrays` does, and numpy's errors."""
    with zipfile.ZipFile(file) as archive:
        members = [(one.filename.removesuffix(".npy"), one) for one in archive.infolist()]
    wanted = [(name, one) for name, one in members if name in known]
    if sum(one.file_size for _, one in wanted) > limit:
        raise ValueError(f"more than {limit:,} bytes once unpacked")
    for name, one in wanted:
        if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name}: unsupported compression")
    if len(dict(wanted)) < len(wanted):
        raise ValueError("two arrays of one name")
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        found = {name: np.asarray(arrays[name], order="C") for name, _ in wanted}
    for name, array in found.items():
        dtype, shape = np.dtype(known[name][0]).newbyteorder("<"), known[name][1]
        if array.dtype != dtype:
            raise ValueError(f"{name} holds {array.dtype.str}, expected {dtype.str}")
        expected = tuple(side if fixed is None else fixed for side, fixed in zip(array.shape, shape, strict=False))
        if array.ndim != len(shape) or expected != array.shape:
            sides = " x ".join("any" if side is None else str(side) for side in shape) or "a single number"
            raise ValueError(f"{name} has shape {array.shape}, expected {sides}")
    return found
