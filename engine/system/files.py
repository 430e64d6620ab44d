"""Files written whole or not at all, folders held by one process, arrays unpacked no further than sound ones are."""

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
"""A file that unpacks to more than this many times its size is a bomb. Records shrink to a third, labels too, but the
positions of one game, each with all moves before it, to a hundredth where games are of 700 moves. A small file may be
unpacked to 16 MiB anyway."""
XZ_MEMORY = 128 << 20
"""Most memory that unpacking may ask for; the strongest preset of xz needs 65 MiB."""
CHUNK = 1 << 18
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
    except Exception as error:  # Damaged bytes make lzma, zipfile and numpy raise a dozen kinds.
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
    except Exception as error:  # Damaged bytes make lzma, zipfile and numpy raise a dozen kinds.
        raise ValueError(one_line(error)) from error


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


def _arrays(file: IO[bytes], known: Known, limit: int) -> dict[str, np.ndarray]:
    """The known arrays of an open ``.npz``, in C order; errors as of :func:`read_arrays`, and those of numpy."""
    with zipfile.ZipFile(file) as archive:
        members = [(one.filename.removesuffix(".npy"), one) for one in archive.infolist()]
    wanted = [(name, one) for name, one in members if name in known]
    if sum(one.file_size for _, one in wanted) > limit:
        raise ValueError(f"more than {limit:,} bytes once unpacked")
    for name, one in wanted:
        if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is packed in another way than expected")
    if len(dict(wanted)) < len(wanted):
        raise ValueError("an array is there twice")
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
