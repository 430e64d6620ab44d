"""Game files from single files, folders and archives, read one after another.

Nothing is unpacked to disk, and one file is in memory at a time, so archives may be of any size. An unreadable file
yields a :class:`Document` with a ``problem``; only a missing path is an error.
"""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from engine.system import one_line
from engine.system.files import CHUNK, XZ_MEMORY

GAME_FILE = ".sgf"
SHARD_FILE = ".npz.xz"
TAR_FILES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
OTHER_ARCHIVES = (".rar", ".7z", ".lzh", ".lha", ".arj")
XZ = b"\xfd7zXZ\x00"
Member = tuple[str, Callable[[], Any], int]
"""A member of an archive: its name, a function that opens it, its unpacked size in bytes"""
MAX_FILE_BYTES = 64 << 20
"""Maximum unpacked size of a file of games"""
MAX_INNER_ARCHIVE_BYTES = 1 << 30
"""Maximum size of an archive inside another archive; the inner archive is held in memory"""
MAX_RATIO = 64
"""Maximum ratio of an inner archive's size to that of the file on disk that contains it, if the inner archive is larger
than ``MAX_FILE_BYTES``: a higher ratio is taken for an archive bomb. Games compress to a fifth of
their size; the padding of tar files compresses further."""
MAX_DEPTH = 3
"""Maximum depth of archives inside one another"""
CORRUPT = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
)
"""Exceptions that the standard library raises for damaged, encrypted and otherwise unreadable archives"""


class _XzFile(io.RawIOBase):
    """Unpacks an open ``.xz`` in bounded memory; :class:`lzma.LZMAFile` may take up to 4 GiB."""

    def __init__(self, file: BinaryIO):
        self._file, self._unpacker, self._rest = file, self._new(), b""

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack into ``buffer``; returns the number of bytes, 0 at the end.

        Raises:
            EOFError, LZMAError: the file is damaged, or needs too much memory.
        """
        found = b""
        while not found:
            if self._unpacker.eof:
                # A file may have several streams, with zeros between them.
                self._rest = (self._unpacker.unused_data or self._file.read(CHUNK)).lstrip(b"\0")
                while not self._rest and (more := self._file.read(CHUNK)):
                    self._rest = more.lstrip(b"\0")
                if not self._rest:
                    return 0
                self._unpacker = self._new()
            elif self._unpacker.needs_input:
                self._rest = self._file.read(CHUNK)
                if not self._rest:
                    raise EOFError("it ends too early")
            found, self._rest = self._unpacker.decompress(self._rest, len(buffer)), b""
        buffer[: len(found)] = found
        return len(found)


def _unpacking_xz(file: BinaryIO) -> BinaryIO:
    """A reader of the unpacked content of an open ``.xz``."""
    return io.BufferedReader(_XzFile(file))


PACKED: dict[str, Callable[[Any], Any]] = {".sgf.gz": gzip.open, ".sgf.bz2": bz2.open, ".sgf.xz": _unpacking_xz}


class Document(NamedTuple):
    """One game file or packed shard, or the reason why it cannot be read."""

    name: str
    """path; inside an archive, as if the archive were a folder"""
    data: bytes = b""
    """contents; empty for a packed shard, which is read from its path"""
    is_shard: bool = False
    problem: str = ""
    """the reason why the file cannot be read; empty = none"""
    bytes_read: int = 0
    """bytes read from disk since the previous document, for progress"""


def disk_bytes(path: Path) -> int:
    """Total size on disk of the files at a path, hidden ones excluded, for the progress of :func:`documents`."""
    return path.stat().st_size if path.is_file() else sum(_size_of(file) for file in _files(path))


def documents(path: Path) -> Iterator[Document]:
    """Read the game files and shards at a path, in an order that depends on names alone.

    Args:
        path: a file, an archive (zip, tar, compressed tar), a packed shard, or a folder of these; folders are read
            recursively, and files of other kinds in folders and archives are skipped.
    Raises:
        ValueError: there is no such path.
    """
    if path.is_dir():
        for file in _files(path):
            yield from _documents_of_file(file, is_named=False)
    elif path.exists():
        yield from _documents_of_file(path, is_named=True)
    else:
        raise ValueError(f"{path}: no such file or folder")


def holds_records(folder: Path) -> bool:
    """Whether a folder contains game files or archives, at any depth; packed shards do not count."""
    return any(_is_wanted(file.name.casefold()) for file in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder except hidden ones, sorted within each folder."""
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        yield from (Path(top) / name for name in sorted(names) if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, like ``._x.sgf`` and ``__MACOSX`` in archives made on macOS."""
    return name.startswith("__MACOSX") or (name.startswith(".") and name.strip(".") != "")


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _documents_of_file(path: Path, is_named: bool) -> Iterator[Document]:
    """Documents of one file on disk.

    Args:
        is_named: the user named this file: read it as SGF if its suffix is unknown, rather than skip it.
    """
    name, size = path.name.casefold(), _size_of(path)
    if path.exists() and not path.is_file():
        # Reading a pipe may block forever.
        yield Document(str(path), problem="not a regular file")
        return
    if name.endswith(SHARD_FILE):
        yield Document(str(path), is_shard=True, bytes_read=size)
        return
    if name.endswith(OTHER_ARCHIVES) or not (is_named or _is_wanted(name)):
        yield Document(str(path), problem=_unknown_archive(name), bytes_read=size)
        return
    at = 0
    try:
        with path.open("rb") as file:
            limit = min(MAX_INNER_ARCHIVE_BYTES, max(MAX_FILE_BYTES, MAX_RATIO * size))
            for document in _documents_in(str(path), file, 0, limit):
                now = file.tell()
                yield document._replace(bytes_read=now - at)
                at = now
    except CORRUPT as error:
        yield Document(str(path), problem=one_line(error))
    yield Document(str(path), bytes_read=size - at)


def _is_wanted(name: str) -> bool:
    return name.endswith((GAME_FILE, *PACKED, ".zip", *TAR_FILES))


def _unknown_archive(name: str) -> str:
    """The problem to report for a skipped file: that its kind of archive cannot be read; empty for other files."""
    return "this kind of archive cannot be read; unpack it first" if name.endswith(OTHER_ARCHIVES) else ""


def _documents_in(name: str, file: BinaryIO, depth: int, limit: int) -> Iterator[Document]:
    """Documents of an open file: the file itself, or the members of an archive.

    Args:
        depth: number of archives that contain the file.
        limit: maximum size in bytes of an archive inside this file.
    """
    kind = name.casefold()
    if kind.endswith((".zip", *TAR_FILES)):
        if depth == MAX_DEPTH:
            yield Document(name, problem=f"archives inside one another more than {MAX_DEPTH} deep")
            return
        for member, opened, size in (_zip_members if kind.endswith(".zip") else _tar_members)(file):
            if not any(_is_hidden(part) for part in member.split("/")):
                yield from _member(f"{name}/{member}", opened, size, depth + 1, limit)
    else:
        packed = next((opened for end, opened in PACKED.items() if kind.endswith(end)), None)
        yield _whole(name, packed(file) if packed else file)


def _member(name: str, opened: Callable[[], Any], size: int, depth: int, limit: int) -> Iterator[Document]:
    """Documents of a member of an archive; arguments as of :data:`Member` and :func:`_documents_in`."""
    kind = name.casefold()
    if not _is_wanted(kind):
        if problem := _unknown_archive(kind):
            yield Document(name, problem=problem)
        return
    try:
        with opened() as file:
            if kind.endswith((GAME_FILE, *PACKED)):
                yield from _documents_in(name, file, depth, limit)
            elif size > limit:
                yield Document(name, problem=f"an archive of {size} bytes inside another; unpack it first")
            else:
                yield from _documents_in(name, io.BytesIO(file.read(limit)), depth, limit)
    except CORRUPT as error:
        yield Document(name, problem=one_line(error))


def _zip_members(file: BinaryIO) -> Iterator[Member]:
    """Every file of a zip archive as a :data:`Member`."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                yield member.filename, partial(archive.open, member), member.file_size


def _tar_members(file: BinaryIO) -> Iterator[Member]:
    """Every file of a tar archive, compressed or not, as a :data:`Member`; open it before taking the next."""
    start = file.read(len(XZ))
    file.seek(-len(start), io.SEEK_CUR)
    if start == XZ:
        file = _unpacking_xz(file)
    with tarfile.open(fileobj=file, mode="r|*") as archive:
        for member in archive:
            if member.isfile():
                yield member.name, partial(archive.extractfile, member), member.size
            # Otherwise the archive keeps every member's header until it is closed.
            archive.members.clear()  # type: ignore[attr-defined]  # the type stubs leave it out


def _whole(name: str, file: BinaryIO) -> Document:
    """Read an open file of games as one document, with a problem if it is empty or too large."""
    data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        return Document(name, problem=f"more than {MAX_FILE_BYTES >> 20} MiB")
    return Document(name, data, problem="" if data else "an empty file")
