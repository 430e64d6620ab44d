"""Folders of runs that resume: what a run began with, which pieces of work are done, and in which file each lies.

    OUT/NAME.json                  manifest: what the run must resume with, its shards, the pieces of work in them
    OUT/NAME-00000.npz.xz, ...     shards
    OUT/journal.bin                what is done and in no shard yet, in blocks

However the process ends, only running work is lost: what is done goes to the journal at once, and the manifest is
written between a shard and the emptying of the journal. Work whose results people read has a file of JSON lines in
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
"""Of a block: how many pieces of work it finishes, and its body's length and checksum, their numbers included"""


class NumberSet:
    """A set of whole numbers from 0 that only grows; a byte of memory for each up to the largest."""

    def __init__(self, ranges: Sequence[Sequence[int]] = ()) -> None:
        """Numbers given as ranges: first and last of each."""
        self._is_in, self._count = np.zeros(0, bool), 0
        for first, last in ranges:
            self.add(np.arange(first, last + 1))

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: int) -> bool:
        return number < len(self._is_in) and bool(self._is_in[number])

    def has(self, numbers: np.ndarray | Sequence[int]) -> np.ndarray:
        """bool[K]: which of these are in the set."""
        given = np.asarray(numbers, np.int64)
        if len(given) and (largest := int(given.max())) >= len(self._is_in):
            self._is_in = np.concatenate([self._is_in, np.zeros(largest + 1, bool)])
        return self._is_in[given]

    def add(self, numbers: np.ndarray | Sequence[int]) -> None:
        """Put numbers in, some of which may be there."""
        new = np.unique(np.asarray(numbers, np.int64)[~self.has(numbers)])
        self._is_in[new] = True
        self._count += len(new)

    def missing(self, count: int) -> np.ndarray:
        """int64: the numbers below ``count`` that are not in the set."""
        return np.flatnonzero(~self.has(np.arange(count)))

    def numbers(self) -> np.ndarray:
        """int64: the set in order."""
        return np.flatnonzero(self._is_in)

    def ranges(self) -> list[list[int]]:
        """The set as ranges; a million numbers take 10 ms."""
        edges = np.flatnonzero(np.diff(self._is_in, prepend=False, append=False))
        return [[first, after - 1] for first, after in edges.reshape(-1, 2).tolist()]


class Block(NamedTuple):
    """What a journal holds of finished work."""

    numbers: np.ndarray
    """int64: the pieces of work that are done with it"""
    body: bytes


def read_blocks(path: Path) -> list[Block]:
    """The blocks of a journal before the first that is damaged; another process may be writing it."""
    content, at, found = path.read_bytes() if path.exists() else b"", 0, []
    while at + HEADER.itemsize <= len(content):
        header = np.frombuffer(content, HEADER, 1, at)[0]
        at += HEADER.itemsize
        body = content[at : at + int(header["bytes"])]
        # Zeros, which some file systems leave at the end when power fails, are the header of nothing.
        if not header["bytes"] or len(body) < header["bytes"] or zlib.crc32(body) != header["checksum"]:
            break
        split = 8 * int(header["numbers"])
        found.append(Block(np.frombuffer(body[:split], "<i8"), body[split:]))
        at += len(body)
    return found


def _as_bytes(block: Block) -> bytes:
    """A block as a journal holds it."""
    body = np.asarray(block.numbers, "<i8").tobytes() + block.body
    return np.array([(len(block.numbers), len(body), zlib.crc32(body))], HEADER).tobytes() + body


class RunFolder(Generic[Held]):
    """One folder in the making; close it at the end. Threads: any, for what is here; fields under ``lock``."""

    def __init__(
        self, out: Path, name: str, asked: dict[str, Any], begun: dict[str, Any],
        read: Callable[[bytes], Held], part: str = "",
    ) -> None:  # fmt: skip
        """Open the folder, or begin one.

        Args:
            name: of manifest and shards.
            asked, begun: as for :func:`open_manifest`.
            read: what a block holds, from its body.
            part: in the names of all files, where several processes share a folder.
        Raises:
            ValueError: the folder holds something else; one line.
        """
        self.out, self._name, self._part, self._read = out, name, part, read
        self.lock = threading.RLock()
        self.manifest = open_manifest(self._path("json"), asked, {"shards": [], "next": 0, "numbers": []} | begun)
        self.in_shards, self.done = NumberSet(self.manifest["numbers"]), NumberSet(self.manifest["numbers"])
        """numbers of the pieces of work in shards, and of those done"""
        journal = out / f"journal{part}.bin"
        blocks = read_blocks(journal)
        # A kill between manifest and journal leaves the same work in both.
        self.held = [read(block.body) for block in blocks if not self.in_shards.has(block.numbers).any()]
        """what the blocks of the journal hold"""
        for block in blocks:
            self.done.add(block.numbers)
        self._journal = journal.open("ab")
        # A kill leaves at most part of a block at the end.
        self._journal.truncate(sum(len(_as_bytes(block)) for block in blocks))

    def _path(self, end: str) -> Path:
        return self.out / f"{self._name}{self._part}.{end}"

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def append(self, numbers: np.ndarray | Sequence[int], body: bytes) -> Held | None:
        """Keep a block of finished work; returns what it holds, None where its pieces are done already.

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
        """Write what is held as a shard.

        Args:
            write: writes the shard's file, the lock not being held.
            facts: what the manifest says of the shard.
            numbers: of the pieces of work in it; None = of all in the journal.
            left: what the journal keeps; called once the shard is written.
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
        """Write the manifest. The lock is held, or nothing else runs."""
        write_manifest(self._path("json"), self.manifest)


def refuse_foreign(out: Path, manifest: str, what: str, also: Sequence[str] = ()) -> None:
    """Refuse a folder of something else; locks and a killed first start's part of a manifest may be there.

    Args:
        manifest: name of the file that says that the folder is one of these.
        what: is in such a folder, in words.
        also: parts of the names of what may be there before the manifest is.
    Raises:
        ValueError: something else is there; one line.
    """

    def is_nothing(name: str) -> bool:
        is_part = name.removeprefix(".").startswith(manifest) and name.endswith(".partial")
        return is_part or name.endswith(".lock") or any(part in name for part in also)

    if not out.exists() or (out / manifest).exists():
        return
    if not (out.is_dir() and all(is_nothing(one.name) for one in out.iterdir())):
        raise ValueError(f"{out}: already there, expected a new or empty folder, or one of {what}")


def open_manifest(
    path: Path, asked: dict[str, Any], begun: dict[str, Any] | None = None, is_begun: bool = True
) -> dict[str, Any]:
    """The manifest of a folder, a new one if there is none.

    Args:
        path: of the file; its folder is made where it is missing.
        asked: what must be the same each time; JSON values, of which those inside others are compared one by one.
        begun: what a new run has besides, and a run that resumes has of its own; None = the file holds nothing else.
        is_begun: whether any work is done; until then what is asked replaces what is in the file.
    Raises:
        ValueError: it was begun with something else, or is no such file; one line.
        OSError: it cannot be read or written.
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
        raise ValueError(f"{path}: not the record of such a folder") from error
    now = dict(_leaves(json.loads(json.dumps(asked)).items()))
    changed = [key for key in {**now, **then} if then.get(key) != now.get(key)]
    if changed and not is_begun:
        write_manifest(path, asked | (begun or {}))
        return asked | (begun or {})
    if changed:
        said = ", ".join(f"{key} {then.get(key)}, not {now.get(key)}" for key in changed)
        raise ValueError(f"{path.parent}: begun with {said}; choose another folder")
    if missing := (begun or {}).keys() - manifest.keys():
        raise ValueError(f"{path}: not the record of such a folder, it lacks {', '.join(sorted(missing))}")
    return manifest


def _leaves(items: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Values inside values under one name each, as ``time.main_s``; options under their own."""
    for key, value in items:
        if isinstance(value, dict):
            yield from _leaves(value.items(), "" if key == "options" else f"{prefix}{key}.")
        else:
            yield prefix + key, value


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, whole or not at all; processes that share a folder may begin it at once."""
    with written_whole(path, is_shared=True) as partial:
        partial.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read_lines(path: Path, read: Callable[[bytes], Line], what: str) -> list[Line]:
    """What the whole lines of a file hold, a last one that a kill cut short left out; nothing where there is no file.

    Args:
        read: makes something of a line; raises ValueError, TypeError, KeyError or RecursionError where it is damaged.
        what: a line holds, in words: ``result of a match``.
    Raises:
        ValueError: a line is damaged; one line naming it.
        OSError: the file cannot be read.
    """
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1] if path.exists() else (), 1):
        try:
            found.append(read(line))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path}: line {number} is no {what}") from error
    return found


def add_line(path: Path, line: str) -> None:
    """Write one more line, which is on the disk when this returns; what a kill left of the last one goes.

    Raises:
        OSError: it cannot be written.
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
