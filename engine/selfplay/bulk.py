"""``keima data play``: games of one or two policies in bulk, without search, to shards of games.

    OUT/games.json                what is played, by which networks, and the shards so far
    OUT/games-00000.npz.xz, ...   shards (:mod:`engine.records.games`); ``number`` says which game of the run each is
    OUT/journal.bin               finished games that are in no shard yet (:mod:`engine.system.run_folder`)

A game is a function of the run's seed and the game's number, so a run that was stopped in any way resumes and loses
only the games that were in play. Several groups of games (:mod:`engine.selfplay.games`) play at once, each on a
thread of its own. Of N processes that torchrun started the k-th plays every N-th game and has files of its own in the
same folder, ``games-kofN.json`` and so on; all games together are those of one process. Start at :meth:`BulkPlay.run`.
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
"""The manifests of all processes"""


class BulkWorker:
    """Plays games of a plan with the networks of some servers. See :class:`engine.system.executor.Worker`."""

    def __init__(self, servers: Sequence[InferenceServer], plan: Plan, at_once: int, groups: int = 0) -> None:
        """Take the servers, which the caller closes.

        Args:
            servers: of the networks that play: one against itself, or two.
            at_once: games of a group.
            groups: groups that play at once; 0 = the number that keeps a server busy.
        """
        self.threads = groups or batches_for(servers[0])
        self._servers, self._plan, self._at_once = servers, plan, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`: the games that the plan keeps, packed.

        Raises:
            RuntimeError: a network failed.
        """
        for games in self._plan.play(self._servers, self._at_once, numbers, stopped):
            if len(games.size):
                yield games.number.tolist(), GAMES.pack(games)


@dataclass(frozen=True)
class BulkJob:
    """Games in bulk, wherever they are played. See :class:`engine.system.executor.Job`."""

    plan: Plan
    networks: tuple[tuple[str, ...], ...]
    """of each network that plays its file, or both of its files, as the executor's files are named"""
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> BulkWorker:
        """A worker with networks of its own, on the GPU of this process if it has one."""
        servers = []
        for names in self.networks:
            network = load_network(tuple(files[name] for name in names), "auto", sample_inputs)
            servers.append(stack.enter_context(InferenceServer(network, threads=cores, max_batch=self.at_once)))
        return BulkWorker(servers, self.plan, self.at_once)


class BulkPlay:
    """One folder of games in the making; close it at the end."""

    def __init__(
        self, servers: Sequence[InferenceServer], plan: Plan, networks: list[dict[str, str]], out: Path,
        ranks: Ranks | None = None,
    ) -> None:  # fmt: skip
        """Open the folder, or begin one.

        Args:
            servers: of the networks that play: one against itself, or two.
            networks: what the games shall say of them: name and sha256.
            ranks: the processes that share the games; None = this one plays all.
        Raises:
            ValueError: the folder holds something else, or a network cannot play so; one line.
        """
        for server in servers:
            check_player(server.spec, [plan.options.size], plan.options.distribution)
            if plan.options.resign > 0.0 and "value" not in server.spec.heads:
                raise ValueError(f"network {server.spec.name} has no value to resign by")
        self._servers, self._plan, self._options = servers, plan, plan.options
        self._ranks = ranks or Ranks()
        _check_folder(out, self._ranks.count)
        self._folder = RunFolder(
            out, "games", plan.record() | {"networks": networks},
            {"endings": {}, "played_out": 0, "wrongly_resigned": 0}, GAMES.unpack,
            f"-{self._ranks.rank}of{self._ranks.count}" if self._ranks.count > 1 else "",
        )  # fmt: skip
        self._positions = np.zeros(0, np.int64)
        """positions that each finished game gives, by its number"""
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
        """Positions of the finished games with numbers below ``games``."""
        with self._folder.lock:
            return int(self._positions[:games].sum())

    @property
    def is_stopped(self) -> bool:
        """Whether the run was stopped from outside."""
        return self._stopped.is_set()

    @property
    def facts(self) -> dict[str, Any]:
        """Of the games in shards: how they ended, how many went on where one side had reason to resign, and in how
        many of these that side did not lose."""
        return {name: self._manifest[name] for name in ("endings", "played_out", "wrongly_resigned")}

    def close(self) -> None:
        """Close the files."""
        self._folder.close()

    def stop(self) -> None:
        """Stop the run soon; finished games stay. Threads: any."""
        self._stopped.set()

    def run(
        self, games: int, at_once: int, groups: int, report: Callable[[], None], every_s: float = 1.0,
        execution: Execution | None = None,
    ) -> None:  # fmt: skip
        """Play until the folder holds this process's part of the games 0 to ``games`` - 1; then all are in shards.

        Args:
            at_once: games of a group.
            groups: groups that play at once.
            report: called now and then in the caller's thread.
            execution: who plays instead of this process.
        Raises:
            RuntimeError, OSError: a network or the disk failed.
        """
        self._play(games, at_once, groups, report, every_s, execution)
        if not self._stopped.is_set() or not len(self.missing(games)):
            self._cut()
        report()

    def _play(
        self,
        games: int,
        at_once: int,
        groups: int,
        report: Callable[[], None],
        every_s: float,
        execution: Execution | None,
    ) -> None:
        """:meth:`run` without the last shard; the games that are in none wait in the journal."""
        here = Execution(LocalExecutor(), Opened(BulkWorker(self._servers, self._plan, at_once, groups)), {})
        executor, job, files = execution or here
        for attempt in range(self._plan.attempts):
            missing = self.missing(games)
            if not len(missing) or self._stopped.is_set():
                break
            # An array knows how many it has left: an executor shares few games out in smaller pieces.
            numbers = iter(missing * self._plan.attempts + attempt)
            executor.work(job, files, numbers, self._enter, self._stopped, report, every_s)

    def run_positions(
        self, positions: int, at_once: int, groups: int, report: Callable[[], None], every_s: float = 1.0,
        execution: Execution | None = None,
    ) -> None:  # fmt: skip
        """:meth:`run` until the games give a number of positions: how many they are follows from what each gives.

        The first games are the fewest that could give N positions; the mean of theirs says how many are wanted.
        Each process looks after its part of the positions.
        """
        positions = self.part_of(positions)
        games = -(-positions // self._plan.most_positions)
        while True:
            self._play(games, at_once, groups, report, every_s, execution)
            found = self.positions(games)
            if found >= positions or self._stopped.is_set():
                break
            # Of so few games this process may have had none.
            games += -(-(positions - found) * games // found) if found else self._ranks.count
        if found >= positions:
            self._cut()
        report()

    def part_of(self, count: int) -> int:
        """How many of a number of games or positions are this process's."""
        return len(range(self._ranks.rank, count, self._ranks.count))

    def missing(self, games: int) -> np.ndarray:
        """int64: the numbers below ``games`` that this process is to play and the folder does not hold."""
        missing = self._folder.done.missing(games)
        return missing[missing % self._ranks.count == self._ranks.rank]

    def _note(self, games: Games) -> None:
        """Enter how many positions games give."""
        if len(games.number) and (largest := int(games.number.max())) >= len(self._positions):
            self._positions = np.concatenate([self._positions, np.zeros(largest + 1, np.int64)])
        # Positions that searches reached share the number of their game.
        np.add.at(self._positions, games.number, self._plan.positions(games))

    def _enter(self, done: Done) -> None:
        """Keep games that ended; write a shard when there are enough for one."""
        with self._folder.lock:
            games = self._folder.append(*done)
            if games is None:
                return
            self._note(games)
            if sum(len(held.size) for held in self._folder.held) >= self._options.games_per_shard:
                self._cut()

    def _cut(self) -> None:
        """Write the games of the journal as a shard. The lock is held, or nothing else runs."""
        if not self._folder.held:
            return
        games = join(self._folder.held)
        games = select(games, np.argsort(games.number, kind="stable"))
        endings = self._manifest["endings"]
        for code in np.unique(games.ending).tolist():
            endings[ENDINGS[code]] = endings.get(ENDINGS[code], 0) + int((games.ending == code).sum())
        went_on = (games.resigner != 0) & (games.ending != RESIGNED)
        has_lost = np.where(games.resigner == BLACK, -1, 1) == games.result
        self._manifest["played_out"] += int(went_on.sum())
        self._manifest["wrongly_resigned"] += int((went_on & ~has_lost).sum())
        self._folder.add_shard(lambda path: write_games(path, games), {"games": len(games.size)})


def _check_folder(out: Path, processes: int) -> None:
    """Refuse a folder of something else, or of games that were shared out otherwise."""
    found = [COUNT_OF.fullmatch(path.name) for path in out.iterdir()] if out.is_dir() else []
    begun_by = {int(match["count"] or 1) for match in found if match}
    if not begun_by:
        refuse_foreign(out, MANIFEST, "games", also=(".json.",))
    elif begun_by != {processes}:
        raise ValueError(f"{out}: begun by {max(begun_by)} processes that share the games, not by {processes}")
