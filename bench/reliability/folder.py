"""The folder of a campaign: a file of JSON lines a part, one line a finished case, and how a campaign resumes.

``campaign.json`` holds what must not change between runs, ``PART.jsonl`` a :class:`Record` a line. A line is on the
disk before the next case begins, so that whatever ends the process, only running cases are lost. A last line cut short
is dropped and its case run again. Of two lines of the same case the later one counts.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout


@dataclass(frozen=True)
class Record:
    """How a case ended: a line of ``PART.jsonl``."""

    case: str
    amount: int
    """in the part's unit"""
    seconds: float
    faults: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    ended: str = ""
    """UTC, ISO 8601"""


class CampaignFolder:
    """Finished cases, on disk or, without a path, in memory only. Threads: one at a time.

    Several processes may use one folder at once, each for other parts.
    """

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        """Open a folder, new or from an earlier run of the same campaign.

        Args:
            settings: all that must not change between runs; JSON values.
        Raises:
            ValueError: the folder holds another campaign; one line.
            OSError: it cannot be made or read.
        """
        self._path = path
        self._records: dict[str, dict[str, Record]] = {}
        self._locks: list[FileLock] = []
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
            _check_settings(path / "campaign.json", settings)

    @property
    def is_kept(self) -> bool:
        """Whether records outlive this process."""
        return self._path is not None

    def claim(self, part: str) -> None:
        """Keep other processes from running a part in this folder as long as this one lives.

        Raises:
            ValueError: another runs it; one line.
        """
        if self._path is None:
            return
        lock = FileLock(self._path / f"{part}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise ValueError(f"{self._path}: another process runs part {part} there") from error
        self._locks.append(lock)

    def records(self, part: str) -> dict[str, Record]:
        """The finished cases of a part by name.

        Raises:
            ValueError: a line is no record; one line naming it.
            OSError: the file cannot be read.
        """
        if part not in self._records:
            path = self._path and self._path / f"{part}.jsonl"
            self._records[part] = _read(path) if path and path.exists() else {}
        return self._records[part]

    def add(self, part: str, record: Record) -> None:
        """Keep a finished case; it is on the disk when this returns.

        Raises:
            OSError: it cannot be written.
        """
        self.records(part)[record.case] = record
        if self._path is None:
            return
        with (self._path / f"{part}.jsonl").open("ab+") as file:
            _drop_torn_line(file.fileno())
            file.write(json.dumps(asdict(record)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _drop_torn_line(descriptor: int) -> None:
    """Cut a file after its last newline."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        whole = os.pread(descriptor, size, 0).rfind(b"\n") + 1
        os.ftruncate(descriptor, whole)


def _read(path: Path) -> dict[str, Record]:
    """All whole lines of a file."""
    found = {}
    for number, line in enumerate(path.read_bytes().rpartition(b"\n")[0].splitlines(), 1):
        try:
            record = Record(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: line {number} is no finished case of a campaign") from error
        found[record.case] = record
    return found


def _check_settings(path: Path, settings: dict[str, Any]) -> None:
    """Write the settings of a new campaign; compare those of an old one."""
    if not path.exists():
        path.write_text(json.dumps(settings) + "\n", encoding="utf-8")
        return
    try:
        before = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not the settings of a campaign") from error
    changed = [key for key in {**before, **settings} if before.get(key) != settings.get(key)]
    if changed:
        what = ", ".join(f"{key} was {before.get(key)!r} and is {settings.get(key)!r}" for key in changed)
        raise ValueError(f"{path.parent} holds a campaign with other settings: {what}; choose another folder")
