"""Self-play by search in bulk: games that a network plays against itself, to shards of rows.

    OUT/rows.json                  what is being played, the shards so far, and which games they hold
    OUT/rows-00000.npz.xz, ...     shards (:mod:`engine.records.search_rows`)
    OUT/journal.bin                finished games that are in no shard yet

The network may change from one call of :meth:`SearchPlay.play` to the next: rows say which it was. What a network plays
is a function of the options and the game's number, so a run that was stopped in any way goes on where it was and loses
the games that were in play. Shards may be deleted, the oldest first, once :meth:`SearchPlay.forget` has taken them off
the list; their games stay noted as played.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from engine.inference.server import InferenceServer
from engine.records.search_rows import SearchRows, join_rows, packed, unpacked, write_search_rows
from engine.selfplay.game_journal import BlockFile
from engine.selfplay.run_folder import open_manifest, write_manifest
from engine.selfplay.search_games import Origin, SearchGroup, check_network
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.threads import groups_for
from engine.system.crew.threads import SharedNumbers, work_in_threads

MANIFEST, JOURNAL = "rows.json", "journal.bin"
FORMAT = "keima self-play rows"
FIXED = ("size", "rules", "seed")
"""Options that a folder keeps; others may change when it is opened again: visits grow, resignation is calibrated"""


def ranges_of(numbers: np.ndarray) -> list[list[int]]:
    """Whole numbers as ranges: the first and the last of each."""
    numbers = np.unique(numbers)
    if not len(numbers):
        return []
    ends = np.flatnonzero(np.diff(numbers) > 1)
    return [[int(a), int(b)] for a, b in zip(numbers[[0, *(ends + 1)]], numbers[[*ends, -1]], strict=True)]


def numbers_of(ranges: list[list[int]]) -> np.ndarray:
    """int64: the numbers of :func:`ranges_of`."""
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(a, b + 1) for a, b in ranges)])


class SearchPlay:
    """One folder of rows in the making; close it at the end."""

    def __init__(self, out: Path, options: SearchPlayOptions, rows_per_shard: int = 10_000) -> None:
        """Open the folder, or begin one.

        Args:
            rows_per_shard: a shard is written when there are so many rows.
        Raises:
            ValueError: the folder holds something else; one line.
        """
        self._out, self._options, self._rows_per_shard = out, options, rows_per_shard
        if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).exists():
            raise ValueError(f"{out}: already there, expected a new or empty folder, or one of self-play rows")
        asked = {"format": FORMAT, "options": {name: getattr(options, name) for name in FIXED}}
        self._manifest = open_manifest(out / MANIFEST, asked, {"shards": [], "next": 0, "numbers": []})
        self._lock = threading.Lock()
        """guards the journal, the manifest and what follows"""
        self._stopped = threading.Event()
        self._journal = BlockFile(out / JOURNAL)
        self._held = [unpacked(body) for _, body in self._journal.blocks]
        self._done = set(numbers_of(self._manifest["numbers"]).tolist())
        """games in shards, those that were forgotten included"""
        if self._done.intersection(self._held_numbers()):
            # A process that was killed between writing a shard and emptying the journal has its games in both.
            self._held = []
            self._journal.clear()

    @property
    def shards(self) -> list[dict[str, Any]]:
        """The shards, oldest first: "file", "games", "rows", and of the networks "first_step" and "last_step"."""
        return list(self._manifest["shards"])

    @property
    def games(self) -> int:
        """Games finished so far."""
        return len(self._done) + len(self._held_numbers())

    @property
    def rows(self) -> int:
        """Rows in the shards on the list and in the journal."""
        return sum(shard["rows"] for shard in self._manifest["shards"]) + sum(len(one.game) for one in self._held)

    @property
    def all_rows(self) -> int:
        """Rows of all games finished so far, those of forgotten shards included."""
        return self.rows + int(self._manifest.get("forgotten", 0))

    def _held_numbers(self) -> list[int]:
        return [number for one in self._held for number in one.games.number.tolist()]

    def stop(self) -> None:
        """End play soon; finished games stay. Threads: any."""
        self._stopped.set()

    def close(self) -> None:
        """Close the files."""
        self._journal.close()

    def missing(self, games: int) -> list[int]:
        """The numbers below ``games`` that were not played to their end yet."""
        there = self._done.union(self._held_numbers())
        return [number for number in range(games) if number not in there]

    def play(
        self, server: InferenceServer, origin: Origin, games: int, at_once: int, report: Callable[[], None],
        every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """Play until the games 0 to ``games`` - 1 are there, or :meth:`stop` is called.

        Args:
            at_once: games of a group.
            report: called now and then in the caller's thread.
        Raises:
            ValueError: the network cannot play so; one line.
            RuntimeError, OSError: the network or the disk failed.
        """
        self._play(server, origin, iter(self.missing(games)), at_once, report, every_s)

    def _play(
        self, server: InferenceServer, origin: Origin, wanted: Iterator[int], at_once: int, report: Callable[[], None],
        every_s: float,
    ) -> None:  # fmt: skip
        """:meth:`play` of some games."""
        check_network(server, self._options)
        numbers = SharedNumbers(wanted)

        def work() -> None:
            group = SearchGroup(server, self._options, at_once, origin, self._stopped)
            for rows in group.play(numbers):
                with self._lock:
                    self._enter(rows)

        work_in_threads(work, groups_for(server), self._stopped, report, every_s)

    def play_rows(
        self, server: InferenceServer, origin: Origin, rows: int, at_once: int, report: Callable[[], None],
        every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """Play until there are so many rows in all, forgotten ones included, or :meth:`stop` is called.

        Games are begun as long as those in play will hardly do, by the rows that games have had so far; all of them are
        played to their ends. They are those with the lowest numbers that were not played yet. Arguments and errors as
        of :meth:`play`.
        """
        there = self._done.union(self._held_numbers())
        unplayed, before = (number for number in itertools.count() if number not in there), self.games

        def wanted() -> Iterator[int]:
            for begun, number in enumerate(unplayed):
                with self._lock:
                    games, found = self.games, self.all_rows
                expected = (begun - (games - before)) * found / games if games else 0.0
                if found + expected >= rows:
                    return
                yield number

        self._play(server, origin, wanted(), at_once, report, every_s)

    def _enter(self, rows: SearchRows) -> None:
        """Keep games that ended; write a shard when there are enough for one. The lock is held."""
        self._journal.append(len(rows.games.size), packed(rows))
        self._held.append(rows)
        if sum(len(one.game) for one in self._held) >= self._rows_per_shard:
            self._cut()

    def cut(self) -> None:
        """Write the rows of the journal as a shard, however few. Threads: any."""
        with self._lock:
            self._cut()

    def _cut(self) -> None:
        """:meth:`cut`, the lock being held."""
        if not self._held:
            return
        rows, index = join_rows(self._held), self._manifest["next"]
        name = f"rows-{index:05}.npz.xz"
        write_search_rows(self._out / name, rows)
        self._done.update(self._held_numbers())
        shard = {
            "file": name, "games": len(rows.games.size), "rows": len(rows.game),
            "first_step": int(rows.step.min()), "last_step": int(rows.step.max()),
        }  # fmt: skip
        self._manifest |= {
            "shards": [*self._manifest["shards"], shard],
            "next": index + 1,
            "numbers": ranges_of(np.fromiter(self._done, np.int64)),
        }
        write_manifest(self._out / MANIFEST, self._manifest)
        self._journal.clear()
        self._held = []

    def forget(self, count: int) -> list[Path]:
        """Take the oldest shards off the list; returns their files, which may be deleted then. Threads: any."""
        with self._lock:
            gone = self._manifest["shards"][:count]
            self._manifest["shards"] = self._manifest["shards"][count:]
            self._manifest["forgotten"] = self._manifest.get("forgotten", 0) + sum(shard["rows"] for shard in gone)
            write_manifest(self._out / MANIFEST, self._manifest)
        return [self._out / shard["file"] for shard in gone]
