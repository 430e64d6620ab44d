"""``keima data play``: games of one or two policies in bulk, without search, to shards of games.

    OUT/games.json                what is being played, by which networks, and the shards so far
    OUT/games-00000.npz.xz, ...   shards (:mod:`engine.records.games`); ``number`` says which game of the run each is
    OUT/journal.bin               finished games that are in no shard yet (:mod:`engine.selfplay.game_journal`)

A game is a function of the run's seed and the game's number, so a run that was stopped in any way goes on where it was
and loses the games that were in play. Several groups of games (:mod:`engine.selfplay.many_games`) play at once, each on
a thread of its own. Of N processes that torchrun started the k-th plays every N-th game and has files of its own in the
same folder, ``games-kofN.json`` and so on; all games together are those of one process. Start at :meth:`BulkPlay.run`.
"""

import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.go.geometry import BLACK
from engine.inference.server import InferenceServer
from engine.records.games import ENDINGS, RESIGNED, Games, read_games, select, write_games
from engine.selfplay.bulk_job import BulkWorker
from engine.selfplay.game_journal import GameJournal, unpacked_games
from engine.selfplay.numbers import Numbers
from engine.selfplay.plan import Plan, check_player
from engine.selfplay.run_folder import open_manifest, refuse_foreign, write_manifest
from engine.selfplay.table import NEVER
from engine.system.crew import Away, Done, Here, Opened
from engine.train.ranks import Ranks

MANIFEST, JOURNAL = "games.json", "journal.bin"
COUNT_OF = re.compile(r"games(-\d+of(?P<count>\d+))?\.json")
"""The manifests of all processes"""


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
            check_player(server.spec, [plan.options.size], plan.options.variety)
            if plan.options.resign > 0.0 and "value" not in server.spec.heads:
                raise ValueError(f"network {server.spec.name} has no value to resign by")
        self._servers, self._plan, self._options, self._out = servers, plan, plan.options, out
        self._ranks = ranks or Ranks()
        asked = plan.record() | {"networks": networks}
        begun = {"shards": [], "endings": {}, "played_out": 0, "wrongly_resigned": 0}
        _check_folder(out, self._ranks.count)
        self._manifest_path = out / self._own(MANIFEST)
        self._manifest = open_manifest(self._manifest_path, asked, begun)
        self._journal = GameJournal(out / self._own(JOURNAL), plan.options.size)
        self._lock = threading.Lock()
        """guards the journal, the manifest and what follows"""
        self._done, self._positions = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """numbers of the games in shards, and how many positions they give"""
        self._finished = Numbers([])
        """numbers of these games and of those in the journal"""
        self._resume()
        self._stopped = threading.Event()

    def _own(self, name: str) -> str:
        """A file's name as this process has it."""
        part = f"-{self._ranks.rank}of{self._ranks.count}." if self._ranks.count > 1 else "."
        return name.replace(".", part, 1)

    @property
    def games(self) -> int:
        """Games finished so far."""
        return len(self._done) + self._journal.count

    def positions(self, games: int = NEVER) -> int:
        """Positions that the games numbered below ``games`` give that were finished so far."""
        if games == NEVER:
            return self._n_positions
        with self._lock:
            numbers, positions = self._there()
        return int(positions[numbers < games].sum())

    @property
    def is_stopped(self) -> bool:
        """Whether the run was ended from outside."""
        return self._stopped.is_set()

    @property
    def facts(self) -> dict[str, Any]:
        """Of the games in shards: how they ended, how many went on where one side had reason to resign, and in how
        many of these that side did not lose."""
        return {name: self._manifest[name] for name in ("endings", "played_out", "wrongly_resigned")}

    def close(self) -> None:
        """Close the files."""
        self._journal.close()

    def stop(self) -> None:
        """End the run soon; finished games stay. Threads: any."""
        self._stopped.set()

    def _resume(self) -> None:
        """Find out which games are there."""
        for shard in self._manifest["shards"]:
            self._put_down(read_games(self._out / shard["file"]))
        held = self._journal.held()
        if held is not None and np.isin(held[0].number, self._done).any():
            # A process that was killed between writing a shard and emptying the journal has its games in both.
            left = np.flatnonzero(~np.isin(held[0].number, self._done))
            self._journal.clear()
            self._journal.append(select(held[0], left), held[1][left])
        numbers, positions = self._there()
        self._finished.add(numbers)
        # A running total: a progress bar asks for it twice a second.
        self._n_positions = int(positions.sum())

    def run(
        self, games: int, at_once: int, groups: int, report: Callable[[], None], every_s: float = 1.0,
        away: Away | None = None,
    ) -> None:  # fmt: skip
        """Play until the folder holds this process's part of the games 0 to ``games`` - 1; then all are in shards.

        Args:
            at_once: games of a group.
            groups: groups that play at once.
            report: called now and then in the caller's thread.
            away: who plays instead of this process.
        Raises:
            RuntimeError, OSError: a network or the disk failed.
        """
        self._play(games, at_once, groups, report, every_s, away)
        if not self._stopped.is_set() or not len(self.missing(games)):
            self._cut()
        report()

    def _play(
        self, games: int, at_once: int, groups: int, report: Callable[[], None], every_s: float, away: Away | None
    ) -> None:
        """:meth:`run` without the last shard; the games that are in none wait in the journal."""
        here = Away(Here(), Opened(BulkWorker(self._servers, self._plan, at_once, groups)), {})
        crew, job, files = away or here
        for attempt in range(self._plan.attempts):
            missing = self.missing(games)
            if not len(missing) or self._stopped.is_set():
                break
            # An array knows how many it has left: a crew shares few games out in smaller pieces.
            numbers = iter(missing * self._plan.attempts + attempt)
            crew.work(job, files, numbers, self._enter, self._stopped, report, every_s)

    def run_positions(
        self, positions: int, at_once: int, groups: int, report: Callable[[], None], every_s: float = 1.0,
        away: Away | None = None,
    ) -> None:  # fmt: skip
        """:meth:`run` until the games give a number of positions: how many they are follows from what each gives.

        The first games are the fewest that could give N positions; the mean of theirs says how many are wanted.
        Each process looks after its part of the positions.
        """
        positions = self.part_of(positions)
        games = -(-positions // self._plan.most_positions)
        while True:
            self._play(games, at_once, groups, report, every_s, away)
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
        numbers, is_missing = self._there()[0], np.arange(games) % self._ranks.count == self._ranks.rank
        is_missing[numbers[numbers < games]] = False
        return np.flatnonzero(is_missing)

    def _there(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and positions of all finished games, both int64."""
        held = self._journal.held()
        if held is None:
            return self._done, self._positions
        numbers = np.concatenate([self._done, held[0].number])
        return numbers, np.concatenate([self._positions, self._plan.positions(held[0])])

    def _put_down(self, games: Games) -> None:
        """Note that games are in a shard."""
        self._done = np.concatenate([self._done, games.number])
        self._positions = np.concatenate([self._positions, self._plan.positions(games)])

    def _enter(self, done: Done) -> None:
        """Keep games that ended; write a shard when there are enough for one."""
        games, resigner = unpacked_games(done[1], len(done[0]), self._options.size)
        with self._lock:
            # Ray repeats what an actor did that died.
            new = np.flatnonzero(~self._finished.has(games.number))
            if not len(new):
                return
            self._finished.add(games.number)
            entered = select(games, new)
            self._n_positions += int(self._plan.positions(entered).sum())
            self._journal.append(entered, resigner[new])
            if self._journal.count >= self._options.games_per_shard:
                self._cut()

    def _cut(self) -> None:
        """Write the games of the journal as a shard. The lock is held, or nothing else runs."""
        held = self._journal.held()
        if held is None:
            return
        games, resigner = held
        name = self._own(f"games-{len(self._manifest['shards']):05}.npz.xz")
        write_games(self._out / name, games)
        self._manifest["shards"].append({"file": name, "games": len(games.size)})
        self._count(games, resigner)
        write_manifest(self._manifest_path, self._manifest)
        self._put_down(games)
        self._journal.clear()

    def _count(self, games: Games, resigner: np.ndarray) -> None:
        """Enter how games ended into the manifest."""
        endings = self._manifest["endings"]
        for code in np.unique(games.ending).tolist():
            endings[ENDINGS[code]] = endings.get(ENDINGS[code], 0) + int((games.ending == code).sum())
        went_on = (resigner != 0) & (games.ending != RESIGNED)
        has_lost = np.where(resigner == BLACK, -1, 1) == games.result
        self._manifest["played_out"] += int(went_on.sum())
        self._manifest["wrongly_resigned"] += int((went_on & ~has_lost).sum())


def _check_folder(out: Path, processes: int) -> None:
    """Refuse a folder of something else, or of games that were shared out otherwise."""
    found = [COUNT_OF.fullmatch(path.name) for path in out.iterdir()] if out.is_dir() else []
    begun_by = {int(match["count"] or 1) for match in found if match}
    if not begun_by:
        refuse_foreign(out, MANIFEST, "games", also=(".json.partial",))
    elif begun_by != {processes}:
        raise ValueError(f"{out}: begun by {max(begun_by)} processes that share the games, not by {processes}")
