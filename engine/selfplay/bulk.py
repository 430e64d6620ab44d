"""``keima data play``: bulk games of one or two policy networks, without search, to shards of games.

    OUT/games.json                manifest: options, networks, and the shards so far
    OUT/games-00000.npz.xz, ...   shards (:mod:`engine.records.games`); ``number`` is the game's number in the run
    OUT/journal.bin               finished games that are in no shard yet (:mod:`engine.system.run_folder`)

A game is a function of the run's seed and the game's number, so a run that was stopped or killed resumes and loses only
the games in play. Several batches of games (:mod:`engine.selfplay.games`) play at once, each on a thread of its own.
Process k of N that torchrun started plays every N-th game and has files of its own in the same folder,
``games-kofN.json`` and so on; together they play the games of one process. Start at :meth:`BulkPlay.run`.
"""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.features.encoder import sample_inputs
from engine.go.geometry import BLACK
from engine.inference.server import InferenceServer
from engine.nets.on_device import load_network
from engine.records.games import ENDINGS, GAMES, RESIGNED, Games, read_games, select, write_games
from engine.records.schema import join
from engine.selfplay.games import batches_for
from engine.selfplay.plan import Plan, check_player
from engine.selfplay.table import NEVER
from engine.system.executor import Done, Execution, Files, LocalExecutor, Opened
from engine.system.run_folder import RunFolder, refuse_foreign
from engine.train.ranks import Ranks

MANIFEST, JOURNAL = "games.json", "journal.bin"
COUNT_OF = re.compile(r"games(-\d+of(?P<count>\d+))?\.json")
"""Matches the name of any process's manifest; ``count`` is the number of processes, None = one"""


class BulkWorker:
    """Plays the games of a plan. See :class:`engine.system.executor.Worker`."""

    def __init__(self, servers: Sequence[InferenceServer], plan: Plan, at_once: int, groups: int = 0) -> None:
        """Prepare play; the caller closes the servers.

        Args:
            servers: that of one network, which plays itself, or those of two networks.
            at_once: batch size, in games.
            groups: number of batches that play concurrently, each in a thread; 0 = enough to keep a server busy.
        """
        self.threads = groups or batches_for(servers[0])
        self._servers, self._plan, self._at_once = servers, plan, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`; yields packed records of the games that the plan keeps.

        Raises:
            RuntimeError: a network failed.
        """
        for games in self._plan.play(self._servers, self._at_once, numbers, stopped):
            if len(games.size):
                yield games.number.tolist(), GAMES.pack(games)


@dataclass(frozen=True)
class BulkJob:
    """Serialisable job of bulk games. See :class:`engine.system.executor.Job`."""

    plan: Plan
    networks: tuple[tuple[str, ...], ...]
    """names, among the executor's files, of each network's one or two files"""
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> BulkWorker:
        """A worker that loads the networks, onto the GPU of this process if it has one."""
        servers = []
        for names in self.networks:
            network = load_network(tuple(files[name] for name in names), "auto", sample_inputs)
            servers.append(stack.enter_context(InferenceServer(network, threads=cores, max_batch=self.at_once)))
        return BulkWorker(servers, self.plan, self.at_once)


class BulkPlay:
    """A run of bulk games in its folder; must be closed."""

    def __init__(
        self, servers: Sequence[InferenceServer], plan: Plan, networks: list[dict[str, str]], out: Path,
        ranks: Ranks | None = None,
    ) -> None:  # fmt: skip
        """Begin a run, or resume the folder's.

        Args:
            servers: that of one network, which plays itself, or those of two networks.
            networks: name and sha256 of each network, for the manifest.
            ranks: the processes that share the games; None = this one plays all.
        Raises:
            ValueError: the folder contains something else, or a network does not support the options; one line.
        """
        for server in servers:
            check_player(server.spec, [plan.options.size], plan.options.distribution)
            if plan.options.resign > 0.0 and "value" not in server.spec.heads:
                raise ValueError(f"network {server.spec.name} has no value head, which resigning needs")
        self._servers, self._plan, self._options = servers, plan, plan.options
        self._ranks = ranks or Ranks()
        _check_folder(out, self._ranks.count)
        self._folder = RunFolder(
            out, "games", plan.record() | {"networks": networks},
            {"endings": {}, "played_out": 0, "wrongly_resigned": 0}, GAMES.unpack,
            f"-{self._ranks.rank}of{self._ranks.count}" if self._ranks.count > 1 else "",
        )  # fmt: skip
        self._positions = np.zeros(0, np.int64)
        """number of positions of each finished game, by the game's number"""
        for games in [*(read_games(out / shard["file"]) for shard in self._manifest["shards"]), *self._folder.held]:
            self._note(games)
        self._stopped = threading.Event()

    @property
    def _manifest(self) -> dict[str, Any]:
        return self._folder.manifest

    @property
    def games(self) -> int:
        """Games finished so far."""
        return len(self._folder.done)

    def positions(self, games: int = NEVER) -> int:
        """Number of positions of the finished games with numbers below ``games``."""
        with self._folder.lock:
            return int(self._positions[:games].sum())

    @property
    def is_stopped(self) -> bool:
        """Whether :meth:`stop` was called."""
        return self._stopped.is_set()

    @property
    def facts(self) -> dict[str, Any]:
        """Statistics of the games in shards: number of games by ending ("endings"); number played out although a colour
        would have resigned ("played_out"); number of the latter that this colour did not lose ("wrongly_resigned").
        """
        return {name: self._manifest[name] for name in ("endings", "played_out", "wrongly_resigned")}

    def close(self) -> None:
        """Close the files."""
        self._folder.close()

    def stop(self) -> None:
        """Stop the run soon; finished games are kept. Threads: any."""
        self._stopped.set()

    def run(
        self, games: int, at_once: int, groups: int, report: Callable[[], None], every_s: float = 1.0,
        execution: Execution | None = None,
    ) -> None:  # fmt: skip
        """Play this process's part of the games 0 to ``games`` - 1, and write all of them into shards.

        Args:
            at_once: batch size, in games.
            groups: number of batches that play concurrently, each in a thread.
            report: called every ``every_s`` seconds in the caller's thread.
            execution: executor and job that play the games; None = threads of this process.
        Raises:
            RuntimeError, OSError: a network or the disk failed.
        """
        self._play(games, self._execution(at_once, groups, execution), report, every_s)
        if not self._stopped.is_set() or not len(self.missing(games)):
            self._cut()
        report()

    def _execution(self, at_once: int, groups: int, execution: Execution | None) -> Execution:
        """The given executor and job, or threads of this process."""
        worker = BulkWorker(self._servers, self._plan, at_once, groups)
        return execution or Execution(LocalExecutor(), Opened(worker), {})

    def _play(self, games: int, execution: Execution, report: Callable[[], None], every_s: float) -> None:
        """Play as :meth:`run` does, but leave the last games, which do not fill a shard, in the journal."""
        executor, job, files = execution
        for attempt in range(self._plan.attempts):
            missing = self.missing(games)
            if not len(missing) or self._stopped.is_set():
                break
            # The iterator of an array has a length hint, by which executors deal out the last games in small chunks.
            numbers = iter(missing * self._plan.attempts + attempt)
            executor.work(job, files, numbers, self._enter, self._stopped, report, every_s)

    def run_positions(
        self, positions: int, at_once: int, groups: int, report: Callable[[], None], every_s: float = 1.0,
        execution: Execution | None = None,
    ) -> None:  # fmt: skip
        """Play until the games of all processes have ``positions`` positions, and write all games into shards.

        It begins with the minimum number of games that may suffice; then the mean number of positions per game predicts
        how many more are needed. Other arguments and errors as for :meth:`run`.
        """
        positions, execution = self.part_of(positions), self._execution(at_once, groups, execution)
        games = -(-positions // self._plan.most_positions)
        while True:
            self._play(games, execution, report, every_s)
            found = self.positions(games)
            if found >= positions or self._stopped.is_set():
                break
            # Without any position this process may have had no game yet.
            games += -(-(positions - found) * games // found) if found else self._ranks.count
        if found >= positions:
            self._cut()
        report()

    def part_of(self, count: int) -> int:
        """This process's share of a number of games or positions."""
        return len(range(self._ranks.rank, count, self._ranks.count))

    def missing(self, games: int) -> np.ndarray:
        """int64: numbers below ``games`` of this process's unfinished games."""
        missing = self._folder.done.missing(games)
        return missing[missing % self._ranks.count == self._ranks.rank]

    def _note(self, games: Games) -> None:
        """Record the number of positions of finished games."""
        if len(games.number) and (largest := int(games.number.max())) >= len(self._positions):
            self._positions = np.concatenate([self._positions, np.zeros(largest + 1, np.int64)])
        # Positions that searches reached share the number of their game.
        np.add.at(self._positions, games.number, self._plan.positions(games))

    def _enter(self, done: Done) -> None:
        """Keep finished games; write a shard when there are enough for one."""
        with self._folder.lock:
            games = self._folder.append(*done)
            if games is None:
                return
            self._note(games)
            if sum(len(held.size) for held in self._folder.held) >= self._options.games_per_shard:
                self._cut()

    def _cut(self) -> None:
        """Write the games of the journal as a shard. Threads: the caller holds the folder's lock, or no other
        thread runs."""
        if not self._folder.held:
            return
        games = join(self._folder.held)
        games = select(games, np.argsort(games.number, kind="stable"))
        endings = self._manifest["endings"]
        for code in np.unique(games.ending).tolist():
            endings[ENDINGS[code]] = endings.get(ENDINGS[code], 0) + int((games.ending == code).sum())
        is_played_out = (games.resigner != 0) & (games.ending != RESIGNED)
        has_lost = np.where(games.resigner == BLACK, -1, 1) == games.result
        self._manifest["played_out"] += int(is_played_out.sum())
        self._manifest["wrongly_resigned"] += int((is_played_out & ~has_lost).sum())
        self._folder.add_shard(lambda path: write_games(path, games), {"games": len(games.size)})


def _check_folder(out: Path, processes: int) -> None:
    """Refuse a folder that contains anything but bulk games, or that another number of processes began."""
    found = [COUNT_OF.fullmatch(path.name) for path in out.iterdir()] if out.is_dir() else []
    begun_by = {int(match["count"] or 1) for match in found if match}
    if not begun_by:
        refuse_foreign(out, MANIFEST, "games", also=(".json.",))
    elif begun_by != {processes}:
        raise ValueError(f"{out}: begun by {max(begun_by)} processes, expected the same number, not {processes}")
