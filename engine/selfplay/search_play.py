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
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.records.search_rows import join_rows, unpacked, write_search_rows
from engine.selfplay.game_journal import BlockFile
from engine.selfplay.numbers import Numbers
from engine.selfplay.run_folder import open_manifest, refuse_foreign, write_manifest
from engine.selfplay.search_options import SearchPlayOptions
from engine.system.crew import Away, Done

MANIFEST, JOURNAL = "rows.json", "journal.bin"
FORMAT = "keima self-play rows"
FIXED = ("size", "rules", "seed")
"""Options that a folder keeps; others may change when it is opened again: visits grow, resignation is calibrated"""

MANY = 32
"""Games that say how many rows others of the same network will have"""


@dataclass
class _Call:
    """One call of :meth:`SearchPlay.play_rows`."""

    games_before: int
    """finished when it began"""
    rows_before: int
    begun: int = 0
    """games that it has begun"""


class _Numbers(Iterator[int]):
    """Numbers from an iterator, with how many are expected to be left as their length: crews share few out finely."""

    def __init__(self, numbers: Iterator[int], left: Callable[[], float]) -> None:
        self._numbers, self._left = numbers, left

    def __next__(self) -> int:
        return next(self._numbers)

    def __length_hint__(self) -> int:
        return max(0, math.ceil(self._left()))


class SearchPlay:
    """One folder of rows in the making; close it at the end."""

    def __init__(self, out: Path, options: SearchPlayOptions, rows_per_shard: int = 10_000) -> None:
        """Open the folder, or begin one.

        Args:
            rows_per_shard: a shard is written when it has this number of rows.
        Raises:
            ValueError: the folder holds something else; one line.
        """
        self._out, self._options, self._rows_per_shard = out, options, rows_per_shard
        self._rows_a_game = 0.0
        """of the latest games, where a call has had ``MANY``"""
        refuse_foreign(out, MANIFEST, "self-play rows")
        asked = {"format": FORMAT, "options": {name: getattr(options, name) for name in FIXED}}
        self._manifest = open_manifest(out / MANIFEST, asked, {"shards": [], "next": 0, "numbers": []})
        self._lock = threading.Lock()
        """guards the journal, the manifest and what follows"""
        self._stopped = threading.Event()
        self._journal = BlockFile(out / JOURNAL)
        self._held = [unpacked(body) for _, body in self._journal.blocks]
        self._done = Numbers(self._manifest["numbers"])
        """games that were finished, those of forgotten shards included"""
        held = [number for one in self._held for number in one.games.number.tolist()]
        if any(number in self._done for number in held):
            # A process that was killed between writing a shard and emptying the journal has its games in both.
            self._held, held = [], []
            self._journal.clear()
        self._done.add(held)

    @property
    def shards(self) -> list[dict[str, Any]]:
        """The shards, oldest first: "file", "games", "rows", and of the networks "first_step" and "last_step"."""
        return list(self._manifest["shards"])

    @property
    def games(self) -> int:
        """Games finished so far."""
        return len(self._done)

    @property
    def rows(self) -> int:
        """Rows in the shards on the list and in the journal."""
        return sum(shard["rows"] for shard in self._manifest["shards"]) + sum(len(one.game) for one in self._held)

    @property
    def all_rows(self) -> int:
        """Rows of all games finished so far, those of forgotten shards included."""
        return self.rows + int(self._manifest.get("forgotten", 0))

    def stop(self) -> None:
        """End play soon; finished games stay. Threads: any."""
        self._stopped.set()

    def close(self) -> None:
        """Close the files."""
        self._journal.close()

    def missing(self, games: int) -> list[int]:
        """The numbers below ``games`` that were not played to their end yet."""
        return [number for number in range(games) if number not in self._done]

    def play(self, away: Away, games: int, report: Callable[[], None], every_s: float = 1.0) -> None:
        """Play until the games 0 to ``games`` - 1 are there, or :meth:`stop` is called.

        Args:
            away: who plays (:func:`engine.selfplay.search_job.played_here` is this process).
            report: called now and then in the caller's thread.
        Raises:
            ValueError: the network cannot play so; one line.
            RuntimeError, OSError: the network or the disk failed.
        """
        self._play(away, iter(self.missing(games)), report, every_s)

    def _play(self, away: Away, wanted: Iterator[int], report: Callable[[], None], every_s: float) -> None:
        """:meth:`play` of some games."""
        away.crew.work(away.job, away.files, wanted, self._enter, self._stopped, report, every_s)

    def play_rows(
        self, away: Away, rows: int, report: Callable[[], None], every_s: float = 1.0,
        enough: threading.Event | None = None,
    ) -> None:  # fmt: skip
        """Play until there are ``rows`` rows in all, forgotten ones included, or :meth:`stop` is called.

        Games are begun as long as those in play will hardly do, by the rows that the latest games have had: those of
        this call, those of the call before until ``MANY`` of it have ended, those of all games where there was none,
        and those of a move for each point before any game with rows has ended. All of them are played to their ends.
        They are those with the lowest numbers that were not played yet. Other arguments, and errors, as of
        :meth:`play`.

        Args:
            enough: once it is set no further games are begun, however many rows there are.
        """
        call = _Call(self.games, self.all_rows)
        left = partial(self._left, rows, call)
        self._play(away, _Numbers(self._wanted(call, left, enough), left), report, every_s)
        left()

    def _wanted(self, call: _Call, left: Callable[[], float], enough: threading.Event | None) -> Iterator[int]:
        """The games that a call begins, as long as there are some ``left``; other arguments as of :meth:`play_rows`."""
        # Each is asked about before it is begun, so that those of this call are not among the finished yet.
        unplayed = (number for number in itertools.count() if number not in self._done)
        while left() > 0.0 and not (enough is not None and enough.is_set()):
            call.begun += 1
            with self._lock:
                number = next(unplayed)
            yield number

    def _left(self, rows: int, call: _Call) -> float:
        """Games that a call has still to begin; what the latest games say of their rows is noted."""
        with self._lock:
            games, found = self.games, self.all_rows
        finished = games - call.games_before
        if finished >= MANY:
            self._rows_a_game = (found - call.rows_before) / finished
        first = found / games if found else self._options.full_share * self._options.size**2
        return (rows - found) / (self._rows_a_game or first) - (call.begun - finished)

    def _enter(self, done: Done) -> None:
        """Keep games that ended; write a shard when there are enough for one."""
        numbers, body = done
        with self._lock:
            # Ray repeats the whole of a chunk that an actor was at when it died.
            if any(number in self._done for number in numbers):
                return
            self._done.add(numbers)
            self._journal.append(len(numbers), body)
            self._held.append(unpacked(body))
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
        shard = {
            "file": name, "games": len(rows.games.size), "rows": len(rows.game),
            "first_step": int(rows.step.min()), "last_step": int(rows.step.max()),
        }  # fmt: skip
        self._manifest |= {
            "shards": [*self._manifest["shards"], shard],
            "next": index + 1,
            "numbers": self._done.ranges(),
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
