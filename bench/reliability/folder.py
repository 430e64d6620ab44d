"""The folder of a campaign: a file of JSON lines a part, one line a finished case, and how a campaign resumes.

``campaign.json`` holds what must not change between runs, ``PART.jsonl`` a :class:`Record` a line. A case whose line
was cut short is run again. Of two lines of the same case the later one counts.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from engine.system.run_folder import add_line, open_manifest, read_lines


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
            open_manifest(path / "campaign.json", settings)

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
            found = read_lines(path, _read, "finished case of a campaign") if path else []
            self._records[part] = {record.case: record for record in found}
        return self._records[part]

    def add(self, part: str, record: Record) -> None:
        """Keep a finished case; it is on the disk when this returns.

        Raises:
            OSError: it cannot be written.
        """
        self.records(part)[record.case] = record
        if self._path is not None:
            add_line(self._path / f"{part}.jsonl", json.dumps(asdict(record)))


def _read(line: bytes) -> Record:
    """The record of a line; raises ValueError or TypeError where it is none."""
    return Record(**json.loads(line))
