"""Folders of runs that resume: manifest, shards and a journal of finished items.

    OUT/NAME.json                  manifest: settings that must not change, shards, numbers of the items in them
    OUT/NAME-00000.npz.xz, ...     shards
    OUT/journal.bin                finished items that are in no shard yet, in blocks

However the process ends, only unfinished items are lost: finished ones go to the journal at once, and the manifest is
written after a shard and before the journal is emptied. Runs with human-readable results have a file of JSON lines in
place of journal and shards (:func:`add_line`). Start at :class:`RunFolder`.
"""

import json
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from engine.system.files import written_whole

Held = TypeVar("Held")
Line = TypeVar("Line")

HEADER = np.dtype([("numbers", "<u4"), ("bytes", "<u4"), ("checksum", "<u4")])
"""Header of a block: number of items, then length and checksum of the rest, which is the items' numbers and the body"""


class NumberSet:
    """A growing set of whole numbers from 0, as a mask of one byte for each number up to the largest."""

    def __init__(self, ranges: Sequence[Sequence[int]] = ()) -> None:
        """Make the set of the numbers in some ranges.

        Args:
            ranges: first and last number of each range.
        """
        self._is_in, self._count = np.zeros(0, bool), 0
        for first, last in ranges:
            self.add(np.arange(first, last + 1))

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: int) -> bool:
        return number < len(self._is_in) and bool(self._is_in[number])

    def has(self, numbers: np.ndarray | Sequence[int]) -> np.ndarray:
        """bool[K]: whether each of K numbers is in the set."""
        given = np.asarray(numbers, np.int64)
        if len(given) and (largest := int(given.max())) >= len(self._is_in):
            self._is_in = np.concatenate([self._is_in, np.zeros(largest + 1, bool)])
        return self._is_in[given]

    def add(self, numbers: np.ndarray | Sequence[int]) -> None:
        """Add numbers; those in the set already change nothing."""
        new = np.unique(np.asarray(numbers, np.int64)[~self.has(numbers)])
        self._is_in[new] = True
        self._count += len(new)

    def missing(self, count: int) -> np.ndarray:
        """int64[K]: the numbers below ``count`` that are not in the set, in ascending order."""
        return np.flatnonzero(~self.has(np.arange(count)))

    def numbers(self) -> np.ndarray:
        """int64[K]: the set in ascending order."""
        return np.flatnonzero(self._is_in)

    def ranges(self) -> list[list[int]]:
        """The set as ranges, first and last number of each; a million numbers take 10 ms."""
        edges = np.flatnonzero(np.diff(self._is_in, prepend=False, append=False))
        return [[first, after - 1] for first, after in edges.reshape(-1, 2).tolist()]


class Block(NamedTuple):
    """A record of finished items in a journal."""

    numbers: np.ndarray
    """int64[K]: numbers of the finished items"""
    body: bytes


def read_blocks(path: Path) -> list[Block]:
    """The blocks of a journal up to the first damaged one; another process may be writing the journal."""
    content, at, found = path.read_bytes() if path.exists() else b"", 0, []
    while at + HEADER.itemsize <= len(content):
        header = np.frombuffer(content, HEADER, 1, at)[0]
        at += HEADER.itemsize
        body = content[at : at + int(header["bytes"])]
        # Some file systems leave zeros at the end after a power failure: a header of length 0.
        if not header["bytes"] or len(body) < header["bytes"] or zlib.crc32(body) != header["checksum"]:
            break
        split = 8 * int(header["numbers"])
        found.append(Block(np.frombuffer(body[:split], "<i8"), body[split:]))
        at += len(body)
    return found


def _as_bytes(block: Block) -> bytes:
    """A block in the format of the journal."""
    body = np.asarray(block.numbers, "<i8").tobytes() + block.body
    return np.array([(len(block.numbers), len(body), zlib.crc32(body))], HEADER).tobytes() + body


class RunFolder(Generic[Held]):
    """The folder of a run; close it at the end. Threads: any may call its methods; hold ``lock`` to read its fields."""

    def __init__(
        self, out: Path, name: str, asked: dict[str, Any], begun: dict[str, Any],
        read: Callable[[bytes], Held], part: str = "", is_mixed: bool = False,
    ) -> None:  # fmt: skip
        """Open a folder, or create it.

        Args:
            name: beginning of the file names of manifest and shards.
            asked, begun: as for :func:`open_manifest`.
            read: parses the body of a block.
            part: suffix of all file names, if several processes share a folder.
            is_mixed: a block may hold parts of unfinished items too; the caller then drops what is in shards from
                ``held``.
        Raises:
            ValueError: the folder has another run or other files; one line.
        """
        self.out, self._name, self._part, self._read = out, name, part, read
        self.lock = threading.RLock()
        self.manifest = open_manifest(self._path("json"), asked, {"shards": [], "next": 0, "numbers": []} | begun)
        self.in_shards, self.done = NumberSet(self.manifest["numbers"]), NumberSet(self.manifest["numbers"])
        """numbers of the items in shards, and of all finished items"""
        journal = out / f"journal{part}.bin"
        blocks = read_blocks(journal)
        # A kill after the manifest was written leaves the same items in shard and journal.
        left = (block for block in blocks if is_mixed or not self.in_shards.has(block.numbers).any())
        self.held = [read(block.body) for block in left]
        """the parsed blocks of the journal"""
        for block in blocks:
            self.done.add(block.numbers)
        self._journal = journal.open("ab")
        # A kill leaves at most an incomplete block at the end.
        self._journal.truncate(sum(len(_as_bytes(block)) for block in blocks))

    def _path(self, end: str) -> Path:
        return self.out / f"{self._name}{self._part}.{end}"

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def append(self, numbers: np.ndarray | Sequence[int], body: bytes) -> Held | None:
        """Append a block of finished items; returns the parsed block, or None if any item was finished before.

        Raises:
            OSError: the disk is full.
        """
        with self.lock:
            if self.done.has(numbers).any():
                return None
            self._journal.write(_as_bytes(Block(np.asarray(numbers), body)))
            self._journal.flush()
            self.done.add(numbers)
            self.held.append(self._read(body))
            return self.held[-1]

    def add_shard(
        self, write: Callable[[Path], None], facts: dict[str, Any], numbers: np.ndarray | None = None,
        left: Callable[[], Sequence[Block]] = lambda: (),
    ) -> None:  # fmt: skip
        """Write a shard, and remove its items from the journal.

        Args:
            write: writes the shard's file; called without the lock.
            facts: fields of the shard's entry in the manifest.
            numbers: numbers of the items in the shard; None = all finished items.
            left: returns the blocks that stay in the journal; called after the shard is written.
        Raises:
            OSError: the disk is full.
        """
        file = self.out / f"{self._name}-{self.manifest['next']:05}{self._part}.npz.xz"
        write(file)
        with self.lock:
            finished = self.done.numbers() if numbers is None else numbers
            self.in_shards.add(finished)
            self.done.add(finished)
            self.manifest["shards"] = [*self.manifest["shards"], {"file": file.name, **facts}]
            self.manifest |= {"next": self.manifest["next"] + 1, "numbers": self.in_shards.ranges()}
            self.save()
            blocks = left()
            self.held = [self._read(block.body) for block in blocks]
            self._journal.close()
            path = Path(self._journal.name)
            with written_whole(path) as partial:
                partial.write_bytes(b"".join(map(_as_bytes, blocks)))
            self._journal = path.open("ab")

    def save(self) -> None:
        """Write the manifest. Threads: the caller holds ``lock``, or no other thread uses the folder."""
        write_manifest(self._path("json"), self.manifest)


def refuse_foreign(out: Path, manifest: str, what: str, also: Sequence[str] = ()) -> None:
    """Refuse a folder with other files and without a manifest; locks and temporary files of a manifest are allowed.

    Args:
        manifest: name of the manifest, by which a run's folder is recognised.
        what: the program or data of such folders, for the message.
        also: parts of the names of further files that are allowed.
    Raises:
        ValueError: other files are there; one line.
    """

    def is_allowed(name: str) -> bool:
        is_part = name.removeprefix(".").startswith(manifest) and name.endswith(".partial")
        return is_part or name.endswith(".lock") or any(part in name for part in also)

    if not out.exists() or (out / manifest).exists():
        return
    if not (out.is_dir() and all(is_allowed(one.name) for one in out.iterdir())):
        raise ValueError(f"{out}: already there, expected a new or empty folder, or one of {what}")


def open_manifest(
    path: Path, asked: dict[str, Any], begun: dict[str, Any] | None = None, is_begun: bool = True
) -> dict[str, Any]:
    """Read the manifest of a run, or write a new one.

    Args:
        path: path of the manifest; its folder is created if it is missing.
        asked: settings that must not change; JSON values, compared leaf by leaf.
        begun: initial values of further fields, which a run changes; None = there are no further fields.
        is_begun: whether any item is finished; if not, changed settings replace those in the file.
    Raises:
        ValueError: the settings have changed, or the file is not a manifest; one line.
        OSError: the file cannot be read or written.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_manifest(path, asked | (begun or {}))
        return asked | (begun or {})
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        before = manifest if begun is None else {name: manifest[name] for name in asked if name in manifest}
        then = dict(_leaves(before.items()))
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: not a manifest of this command") from error
    now = dict(_leaves(json.loads(json.dumps(asked)).items()))
    changed = [key for key in {**now, **then} if then.get(key) != now.get(key)]
    if changed and not is_begun:
        write_manifest(path, asked | (begun or {}))
        return asked | (begun or {})
    if changed:
        said = ", ".join(f"{key} {then.get(key)}, not {now.get(key)}" for key in changed)
        raise ValueError(f"{path.parent}: begun with {said}; choose another folder")
    if missing := (begun or {}).keys() - manifest.keys():
        raise ValueError(f"{path}: not a manifest of this command, it lacks {', '.join(sorted(missing))}")
    return manifest


def _leaves(items: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested dictionaries by dotted names, such as ``time.main_s``; ``options.`` is left out."""
    for key, value in items:
        if isinstance(value, dict):
            yield from _leaves(value.items(), "" if key == "options" else f"{prefix}{key}.")
        else:
            yield prefix + key, value


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest atomically; several processes that share a folder may do so at once."""
    with written_whole(path, is_shared=True) as partial:
        partial.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read_lines(path: Path, read: Callable[[bytes], Line], what: str) -> list[Line]:
    """Parse the lines of a file except an incomplete last one; an empty list if the file does not exist.

    Args:
        read: parses a line; raises ValueError, TypeError, KeyError or RecursionError if it is damaged.
        what: name of a line's content for the message, such as ``result of a match``.
    Raises:
        ValueError: a line is damaged; one line naming it.
        OSError: the file cannot be read.
    """
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1] if path.exists() else (), 1):
        try:
            found.append(read(line))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path}: line {number} is not a {what}") from error
    return found


def add_line(path: Path, line: str) -> None:
    """Append a line, which is on the disk when this returns; an incomplete last line is removed first.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if file.read() not in (b"", b"\n"):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
