"""Self-play by search in bulk: games that a network plays against itself, to shards of rows.

    OUT/rows.json                  what is played, the shards so far, and which games they hold
    OUT/rows-00000.npz.xz, ...     shards (:mod:`engine.records.search_rows`)
    OUT/journal.bin                finished games that are in no shard yet (:mod:`engine.system.run_folder`)

The network may change from one call of :meth:`SearchPlay.play` to the next: rows say which it was. What a network plays
is a function of the options and the game's number, so a run that was stopped in any way resumes and loses only the
games that were in play. Shards may be deleted, the oldest first, once :meth:`SearchPlay.forget` has taken them off the
list; their games stay noted as played.
"""

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.on_device import load_network
from engine.records.schema import join
from engine.records.search_rows import SEARCH_ROWS, write_search_rows
from engine.selfplay.games import batches_for
from engine.selfplay.search_games import Origin, SelfPlay, fitted
from engine.selfplay.search_options import SearchPlayOptions
from engine.system.executor import Done, Execution, Files, LocalExecutor, Opened
from engine.system.run_folder import RunFolder, refuse_foreign

MANIFEST, JOURNAL = "rows.json", "journal.bin"
FORMAT = "keima self-play rows 2"
FIXED = ("size", "rules", "seed")
"""Options that a folder keeps; others may change when it is opened again: visits grow, resignation is calibrated"""
CACHE_MIB = 64
NETWORK_FILE = "network.safetensors"
"""What the executor calls the file of the network that plays"""


class SearchWorker:
    """Plays games by search with the network of a server. See :class:`engine.system.executor.Worker`."""

    def __init__(self, server: InferenceServer, options: SearchPlayOptions, origin: Origin, at_once: int) -> None:
        """Take the server, which the caller closes.

        Args:
            origin: what rows say of the network.
            at_once: games of a group.
        """
        self.threads = batches_for(server)
        self._server, self._options, self._origin, self._at_once = server, options, origin, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`: rows, packed.

        Raises:
            RuntimeError: the network failed.
        """
        for rows in SelfPlay(self._server, self._options, self._at_once, self._origin, stopped).play(numbers):
            yield rows.games.number.tolist(), SEARCH_ROWS.pack(rows)


@dataclass(frozen=True)
class SearchJob:
    """Self-play by search, wherever it is played. See :class:`engine.system.executor.Job`."""

    options: SearchPlayOptions
    origin: Origin
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> SearchWorker:
        """A worker with a network of its own, on the GPU of this process if it has one."""
        network = load_network(files[NETWORK_FILE], "auto", sample_inputs)
        server = stack.enter_context(InferenceServer(network, CACHE_MIB, threads=cores, max_batch=self.at_once))
        return SearchWorker(server, self.options, self.origin, self.at_once)


def played_here(server: InferenceServer, options: SearchPlayOptions, origin: Origin, at_once: int) -> Execution:
    """Self-play by threads of this process alone.

    Raises:
        ValueError: the network cannot play so; one line.
    """
    fitted(server, options)
    return Execution(LocalExecutor(), Opened(SearchWorker(server, options, origin, at_once)), {})


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
    """Numbers from an iterator; its length is the number expected to be left: executors deal few in small chunks."""

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
        self._options, self._rows_per_shard = options, rows_per_shard
        self._rows_a_game = 0.0
        """of the latest games, where a call has had ``MANY``"""
        refuse_foreign(out, MANIFEST, "self-play rows")
        asked = {"format": FORMAT, "options": {name: getattr(options, name) for name in FIXED}}
        self._folder = RunFolder(out, "rows", asked, {"forgotten": 0}, SEARCH_ROWS.unpack)
        self._stopped = threading.Event()

    @property
    def shards(self) -> list[dict[str, Any]]:
        """The shards, oldest first: "file", "games", "rows", and of the networks "first_step" and "last_step"."""
        return list(self._folder.manifest["shards"])

    @property
    def games(self) -> int:
        """Games finished so far."""
        return len(self._folder.done)

    @property
    def rows(self) -> int:
        """Rows in the shards on the list and in the journal."""
        with self._folder.lock:
            return sum(shard["rows"] for shard in self.shards) + sum(len(one.game) for one in self._folder.held)

    @property
    def all_rows(self) -> int:
        """Rows of all games finished so far, those of forgotten shards included."""
        with self._folder.lock:
            return self.rows + int(self._folder.manifest["forgotten"])

    def stop(self) -> None:
        """Stop play soon; finished games stay. Threads: any."""
        self._stopped.set()

    def close(self) -> None:
        """Close the files."""
        self._folder.close()

    def missing(self, games: int) -> list[int]:
        """The numbers below ``games`` that were not played to their end yet."""
        return list(self._folder.done.missing(games).tolist())

    def play(self, execution: Execution, games: int, report: Callable[[], None], every_s: float = 1.0) -> None:
        """Play until the games 0 to ``games`` - 1 are there, or :meth:`stop` is called.

        Args:
            execution: who plays (:func:`played_here` is this process).
            report: called now and then in the caller's thread.
        Raises:
            ValueError: the network cannot play so; one line.
            RuntimeError, OSError: the network or the disk failed.
        """
        self._play(execution, iter(self.missing(games)), report, every_s)

    def _play(self, execution: Execution, wanted: Iterator[int], report: Callable[[], None], every_s: float) -> None:
        """:meth:`play` of some games."""
        execution.executor.work(execution.job, execution.files, wanted, self._enter, self._stopped, report, every_s)

    def play_rows(
        self, execution: Execution, rows: int, report: Callable[[], None], every_s: float = 1.0,
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
        self._play(execution, _Numbers(self._wanted(call, left, enough), left), report, every_s)
        left()

    def _wanted(self, call: _Call, left: Callable[[], float], enough: threading.Event | None) -> Iterator[int]:
        """The games that a call begins, as long as there are some ``left``; other arguments as of :meth:`play_rows`."""
        # Each is asked about before it is begun, so that those of this call are not among the finished yet.
        unplayed = (number for number in itertools.count() if number not in self._folder.done)
        while left() > 0.0 and not (enough is not None and enough.is_set()):
            call.begun += 1
            with self._folder.lock:
                number = next(unplayed)
            yield number

    def _left(self, rows: int, call: _Call) -> float:
        """Games that a call has still to begin; what the latest games say of their rows is noted."""
        with self._folder.lock:
            games, found = self.games, self.all_rows
        finished = games - call.games_before
        if finished >= MANY:
            self._rows_a_game = (found - call.rows_before) / finished
        first = found / games if found else self._options.full_share * self._options.size**2
        return (rows - found) / (self._rows_a_game or first) - (call.begun - finished)

    def _enter(self, done: Done) -> None:
        """Keep games that ended; write a shard when there are enough for one."""
        with self._folder.lock:
            self._folder.append(*done)
            if sum(len(one.game) for one in self._folder.held) >= self._rows_per_shard:
                self.cut()

    def cut(self) -> None:
        """Write the rows of the journal as a shard, however few. Threads: any."""
        with self._folder.lock:
            if not self._folder.held:
                return
            rows = join(self._folder.held)
            facts = {
                "games": len(rows.games.size), "rows": len(rows.game),
                "first_step": int(rows.step.min()), "last_step": int(rows.step.max()),
            }  # fmt: skip
            self._folder.add_shard(lambda path: write_search_rows(path, rows), facts)

    def forget(self, count: int) -> list[Path]:
        """Take the oldest shards off the list; returns their files, which may be deleted then. Threads: any."""
        with self._folder.lock:
            gone, manifest = self.shards[:count], self._folder.manifest
            manifest["shards"] = self.shards[count:]
            manifest["forgotten"] += sum(shard["rows"] for shard in gone)
            self._folder.save()
        return [self._folder.out / shard["file"] for shard in gone]
