"""Bulk self-play by search, to shards of rows.

    OUT/rows.json                  manifest: options, and the shards and games so far
    OUT/rows-00000.npz.xz, ...     shards (:mod:`engine.records.search_rows`)
    OUT/journal.bin                finished games that are in no shard yet (:mod:`engine.system.run_folder`)

The network may change between calls of :meth:`SearchPlay.play_rows`; rows record its identity. A game is a function of
the network, the options and its number, so a run that was stopped or killed resumes and loses only the games in play.
Shards may be deleted, the oldest first, after :meth:`SearchPlay.forget`; their games remain finished.
"""

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
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
"""Options that must not change when a folder is resumed, unlike visits or the calibrated resignation threshold"""
CACHE_MIB = 64
NETWORK_FILE = "network.safetensors"
"""Name of the network's file for the executor"""


class SearchWorker:
    """Plays self-play games by search. See :class:`engine.system.executor.Worker`."""

    def __init__(self, server: InferenceServer, options: SearchPlayOptions, origin: Origin, at_once: int) -> None:
        """Prepare play; the caller closes the server.

        Args:
            origin: identity of the playing network, which rows record.
            at_once: batch size, in games.
        """
        self.threads = batches_for(server)
        self._server, self._options, self._origin, self._at_once = server, options, origin, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`; yields packed training rows.

        Raises:
            RuntimeError: the network failed.
        """
        for rows in SelfPlay(self._server, self._options, self._at_once, self._origin, stopped).play(numbers):
            yield rows.games.number.tolist(), SEARCH_ROWS.pack(rows)


@dataclass(frozen=True)
class SearchJob:
    """Serialisable job of self-play by search. See :class:`engine.system.executor.Job`."""

    options: SearchPlayOptions
    origin: Origin
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> SearchWorker:
        """A worker that loads the network, onto the GPU of this process if it has one."""
        network = load_network(files[NETWORK_FILE], "auto", sample_inputs)
        server = stack.enter_context(InferenceServer(network, CACHE_MIB, threads=cores, max_batch=self.at_once))
        return SearchWorker(server, self.options, self.origin, self.at_once)


def played_here(server: InferenceServer, options: SearchPlayOptions, origin: Origin, at_once: int) -> Execution:
    """The execution of self-play by threads of this process.

    Raises:
        ValueError: the network does not support the options; one line.
    """
    fitted(server, options)
    return Execution(LocalExecutor(), Opened(SearchWorker(server, options, origin, at_once)), {})


MANY = 32
"""Number of finished games from which their mean number of rows predicts that of further games"""


class _GamesForRows(Iterator[int]):
    """Iterator over the numbers of games that a call of :meth:`SearchPlay.play_rows` begins; arguments as there."""

    def __init__(self, play: "SearchPlay", rows: int, enough: threading.Event | None) -> None:
        self._play, self._rows, self._enough = play, rows, enough
        self._games_before, self._rows_before, self._begun = play.games, play.all_rows, 0
        self._numbers = self._wanted()

    def __next__(self) -> int:
        return next(self._numbers)

    def __length_hint__(self) -> int:
        """Expected number of further games, by which executors deal out the last games in small chunks."""
        return max(0, math.ceil(self.left()))

    def _wanted(self) -> Iterator[int]:
        done, lock = self._play.folder.done, self._play.folder.lock
        # Lazily, so that a number is checked against the finished games when it is drawn.
        unplayed = (number for number in itertools.count() if number not in done)
        while self.left() > 0.0 and not (self._enough is not None and self._enough.is_set()):
            self._begun += 1
            with lock:
                number = next(unplayed)
            yield number

    def left(self) -> float:
        """Expected number of games still to begin; also updates the mean number of rows per game."""
        play = self._play
        with play.folder.lock:
            games, found = play.games, play.all_rows
        finished = games - self._games_before
        if finished >= MANY:
            play.rows_a_game = (found - self._rows_before) / finished
        first = found / games if found else play.options.full_share * play.options.size**2
        return (self._rows - found) / (play.rows_a_game or first) - (self._begun - finished)


class SearchPlay:
    """A run of self-play by search in its folder; must be closed."""

    def __init__(self, out: Path, options: SearchPlayOptions, rows_per_shard: int = 10_000) -> None:
        """Begin a run, or resume the folder's.

        Args:
            rows_per_shard: rows after which a shard is written.
        Raises:
            ValueError: the folder contains something else; one line.
        """
        self.options, self._rows_per_shard = options, rows_per_shard
        self.rows_a_game = 0.0
        """mean number of rows per game in the latest call that finished ``MANY`` games; 0 = none yet"""
        refuse_foreign(out, MANIFEST, "self-play rows")
        asked = {"format": FORMAT, "options": {name: getattr(options, name) for name in FIXED}}
        self.folder = RunFolder(out, "rows", asked, {"forgotten": 0}, SEARCH_ROWS.unpack)
        self._stopped = threading.Event()

    @property
    def shards(self) -> list[dict[str, Any]]:
        """The shards, oldest first: "file", "games", "rows"; "first_step" and "last_step", the minimum and maximum
        training steps of the networks that played."""
        return list(self.folder.manifest["shards"])

    @property
    def games(self) -> int:
        """Games finished so far."""
        return len(self.folder.done)

    @property
    def rows(self) -> int:
        """Number of rows in the shards of the manifest and in the journal."""
        with self.folder.lock:
            return sum(shard["rows"] for shard in self.shards) + sum(len(one.game) for one in self.folder.held)

    @property
    def all_rows(self) -> int:
        """Number of rows of all games finished so far, including those in forgotten shards."""
        with self.folder.lock:
            return self.rows + int(self.folder.manifest["forgotten"])

    def stop(self) -> None:
        """Stop play soon; finished games are kept. Threads: any."""
        self._stopped.set()

    def close(self) -> None:
        """Close the files."""
        self.folder.close()

    def play(self, execution: Execution, games: int, report: Callable[[], None], every_s: float = 1.0) -> None:
        """Play until the games 0 to ``games`` - 1 are finished, or :meth:`stop` is called.

        Args:
            execution: executor and job, or :func:`played_here`.
            report: called every ``every_s`` seconds in the caller's thread.
        Raises:
            ValueError: the network does not support the options; one line.
            RuntimeError, OSError: the network or the disk failed.
        """
        self._play(execution, iter(self.folder.done.missing(games).tolist()), report, every_s)

    def _play(self, execution: Execution, wanted: Iterator[int], report: Callable[[], None], every_s: float) -> None:
        execution.executor.work(execution.job, execution.files, wanted, self._enter, self._stopped, report, every_s)

    def play_rows(
        self, execution: Execution, rows: int, report: Callable[[], None], enough: threading.Event | None = None
    ) -> None:
        """Play until there are ``rows`` rows in all, forgotten ones included, or :meth:`stop` is called.

        Unplayed games are begun, lowest numbers first, while the games in play are not expected to give enough rows;
        every game begun is finished. The expected number of rows per game is the mean over the games that this call has
        finished, once these are ``MANY``; until then the mean of the latest call that finished ``MANY``; without such a
        call the mean over all games; before the first row ``full_share`` of the board's points.

        Arguments and errors as for :meth:`play`.

        Args:
            report: called every second in the caller's thread.
            enough: once it is set, no further games are begun.
        """
        numbers = _GamesForRows(self, rows, enough)
        self._play(execution, numbers, report, 1.0)
        numbers.left()

    def _enter(self, done: Done) -> None:
        """Keep finished games; write a shard when there are enough rows for one."""
        with self.folder.lock:
            self.folder.append(*done)
            if sum(len(one.game) for one in self.folder.held) >= self._rows_per_shard:
                self.cut()

    def cut(self) -> None:
        """Write the rows of the journal as a shard. Threads: any."""
        with self.folder.lock:
            if not self.folder.held:
                return
            rows = join(self.folder.held)
            facts = {
                "games": len(rows.games.size), "rows": len(rows.game),
                "first_step": int(rows.step.min()), "last_step": int(rows.step.max()),
            }  # fmt: skip
            self.folder.add_shard(lambda path: write_search_rows(path, rows), facts)

    def forget(self, count: int) -> list[Path]:
        """Remove the oldest shards from the manifest; returns their files, which may then be deleted. Threads: any."""
        with self.folder.lock:
            oldest, manifest = self.shards[:count], self.folder.manifest
            manifest["shards"] = self.shards[count:]
            manifest["forgotten"] += sum(shard["rows"] for shard in oldest)
            self.folder.save()
        return [self.folder.out / shard["file"] for shard in oldest]
