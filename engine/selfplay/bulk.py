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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.config.declaration import Checked, option
from engine.features.encoder import ENCODERS
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE
from engine.inference.server import InferenceServer
from engine.nets.network import NetworkSpec
from engine.records.games import ENDINGS, MAX_MOVES, RESIGNED, Games, read_games, select, write_games
from engine.selfplay.game_journal import GameJournal
from engine.selfplay.many_games import Finished, Group, Setups
from engine.selfplay.run_folder import open_manifest, write_manifest
from engine.selfplay.table import NEVER, Conduct
from engine.selfplay.variety import Variety, unit_of
from engine.system.crew.threads import SharedNumbers, work_in_threads
from engine.train.ranks import Ranks

MANIFEST, JOURNAL = "games.json", "journal.bin"
FORMAT = "keima games"
COUNT_OF = re.compile(r"games(-\d+of(?P<count>\d+))?\.json")
"""The manifests of all processes"""
LIMIT_BOARDS = 2
"""Moves a point after which a game is broken off, unless the options say: rules without superko allow endless ones"""
PASSES = ("last", "free")
DEAD_STONES = ("alive", "removed")
RESIGNATION = 1
"""Stream of random numbers: which games are played out"""


def move_limit(size: int) -> int:
    """The limit of games where the options set none."""
    return min(LIMIT_BOARDS * size**2, MAX_MOVES)


@dataclass(frozen=True)
class PlayOptions(Checked):
    """How games in bulk are played; a run goes on only with the options that it began with."""

    variety: Variety
    size: int = option(19, "of the board", low=MIN_SIZE, high=MAX_SIZE)
    passes: str = option(
        PASSES[0], "last: a pass only where nothing is left to play but own eyes; free: as the network wishes",
        choices=PASSES,
    )  # fmt: skip
    free_moves: int = option(0, "moves at the start of a game that may be any, however improbable", low=0)
    least_share: float = option(
        0.0, "after those, moves less probable than this share of the likeliest are not played", low=0.0, high=1.0
    )
    resign: float = option(0.0, "win rate below which a move is hopeless; 0 = games are played out", low=0.0, high=0.5)
    resign_count: int = option(3, "hopeless moves of a colour in a row after which it resigns", low=1)
    played_out: float = option(
        0.1, "share of the games that go on after one side would have resigned, to count wrong ones", low=0.0, high=1.0
    )
    dead_stones: str = option(
        DEAD_STONES[0], "when games are counted, alive: as they stand; removed: without those that rollouts find dead",
        choices=DEAD_STONES,
    )  # fmt: skip
    limit: int = option(0, "moves after which a game is broken off, counted and marked; 0 = twice the points", low=0)
    games_per_shard: int = option(10000, "in all shards but the last", low=1)
    seed: int = option(1, "of all that is drawn", low=0)

    def conduct(self) -> Conduct:
        """The same as the kernels read it."""
        return Conduct(
            limit=min(self.limit, MAX_MOVES) if self.limit else move_limit(self.size),
            is_pass_last=self.passes == "last",
            free_moves=self.free_moves,
            least_share=self.least_share,
            resign_below=2.0 * self.resign - 1.0 if self.resign > 0.0 else -2.0,
            resign_count=self.resign_count,
            are_dead_removed=self.dead_stones == "removed",
        )

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        rest = {name: value for name, value in vars(self).items() if name != "variety"}
        if self.dead_stones == DEAD_STONES[0]:
            del rest["dead_stones"]  # Folders go on that were begun before there was a choice.
        return rest | self.variety.record()


def players_of(numbers: np.ndarray, n_networks: int) -> np.ndarray:
    """int64[K, 2, 2]: who plays; of two networks the first has Black in even games.

    Args:
        numbers: int64[K].
    """
    players = np.zeros((len(numbers), 2, 2), np.int64)
    if n_networks == 2:
        players[:] = np.stack([numbers % 2, 1 - numbers % 2], axis=1)[:, None]
    return players


def setups_of(options: PlayOptions, numbers: np.ndarray, n_networks: int) -> Setups:
    """How the games of some numbers (int64[K]) begin."""
    rules, temperatures = options.variety.draw(options.seed, numbers, options.size)
    return Setups(
        rules=rules,
        temperatures=temperatures,
        players=players_of(numbers, n_networks),
        switches=np.full(len(numbers), NEVER, np.int64),
        quits=(unit_of(options.seed, numbers, RESIGNATION) >= options.played_out).astype(np.int64),
    )


class Plan:
    """What a run plays and keeps: games between one network or two, all of them."""

    attempts = 1
    """games that may be played for each one wanted"""

    def __init__(self, options: PlayOptions, n_networks: int) -> None:
        self.options, self._n_networks = options, n_networks

    def record(self) -> dict[str, Any]:
        """For the manifest: what a run must go on with."""
        return {"format": FORMAT, "options": self.options.record()}

    def set_up(self, numbers: np.ndarray) -> Setups:
        """How the games of some numbers (int64[K]) begin. Game n is attempt ``n % attempts`` of what is wanted."""
        return setups_of(self.options, numbers, self._n_networks)

    def kept(self, finished: Finished) -> tuple[Games, np.ndarray]:
        """What is kept of games that ended, numbered by what was wanted, and their resigners."""
        return finished.games, finished.resigner


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
            if plan.options.resign > 0.0 and not server.spec.has_value:
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
        self._done, self._lengths = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """numbers of the games in shards, and their moves"""
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
        """Positions, each before a move, in the games numbered below ``games`` that were finished so far."""
        with self._lock:
            numbers, lengths = self._there()
        return int(lengths[numbers < games].sum())

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

    def run(self, games: int, at_once: int, groups: int, report: Callable[[], None], every_s: float = 1.0) -> None:
        """Play until the folder holds this process's part of the games 0 to ``games`` - 1; then all are in shards.

        Args:
            at_once: games of a group.
            groups: groups that play at once.
            report: called now and then in the caller's thread.
        Raises:
            RuntimeError, OSError: a network or the disk failed.
        """
        for attempt in range(self._plan.attempts):
            missing = self.missing(games)
            if not len(missing) or self._stopped.is_set():
                break
            numbers = SharedNumbers(map(int, missing * self._plan.attempts + attempt))
            work_in_threads(partial(self._work, numbers, at_once), groups, self._stopped, report, every_s)
        if not self._stopped.is_set() or not len(self.missing(games)):
            self._cut()
        report()

    def run_positions(
        self, positions: int, at_once: int, groups: int, report: Callable[[], None], every_s: float = 1.0
    ) -> None:
        """:meth:`run` until the games hold a number of positions: how many they are follows from their lengths.

        The first games are the fewest that could hold N positions; the mean of their lengths says how many are wanted.
        Each process looks after its part of the positions.
        """
        positions = self.part_of(positions)
        games = -(-positions // self._options.conduct().limit)
        while True:
            self.run(games, at_once, groups, report, every_s)
            found = self.positions(games)
            if found >= positions or self._stopped.is_set():
                break
            games += -(-(positions - found) * games // found)

    def part_of(self, count: int) -> int:
        """How many of a number of games or positions are this process's."""
        return len(range(self._ranks.rank, count, self._ranks.count))

    def missing(self, games: int) -> np.ndarray:
        """int64: the numbers below ``games`` that this process is to play and the folder does not hold."""
        numbers, is_missing = self._there()[0], np.arange(games) % self._ranks.count == self._ranks.rank
        is_missing[numbers[numbers < games]] = False
        return np.flatnonzero(is_missing)

    def _there(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and lengths of all finished games, both int64."""
        held = self._journal.held()
        if held is None:
            return self._done, self._lengths
        numbers = np.concatenate([self._done, held[0].number])
        return numbers, np.concatenate([self._lengths, np.diff(held[0].offsets)])

    def _put_down(self, games: Games) -> None:
        """Note that games are in a shard."""
        self._done = np.concatenate([self._done, games.number])
        self._lengths = np.concatenate([self._lengths, np.diff(games.offsets)])

    def _work(self, numbers: Iterator[int], at_once: int) -> None:
        """One thread: a group of games until there are no more numbers."""
        options, plan = self._options, self._plan
        group = Group(self._servers, options.size, at_once, options.conduct(), options.seed, plan.set_up, self._stopped)
        for finished in group.play(numbers):
            self._enter(finished)

    def _enter(self, finished: Finished) -> None:
        """Keep games that ended; write a shard when there are enough for one."""
        games, resigner = self._plan.kept(finished)
        if not len(games.size):
            return
        with self._lock:
            self._journal.append(games, resigner)
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
    if not out.is_dir() or not any(out.iterdir()):
        return
    found = [COUNT_OF.fullmatch(path.name) for path in out.iterdir()]
    begun_by = {int(match["count"] or 1) for match in found if match}
    if not begun_by:
        raise ValueError(f"{out}: already there, expected a new or empty folder, or one of games")
    if begun_by != {processes}:
        raise ValueError(f"{out}: begun by {max(begun_by)} processes that share the games, not by {processes}")


def check_player(spec: NetworkSpec, sizes: Sequence[int], variety: Variety) -> None:
    """Refuse games that a network cannot play.

    Raises:
        ValueError: one line.
    """
    if not spec.has_policy:
        raise ValueError(f"network {spec.name} has no policy to play by")
    spec.check_sizes(np.array(sizes, np.int64))
    known = ENCODERS[spec.encoder].komi
    if known is not None and any((komi.low, komi.high) != (known, known) for komi, _ in variety.komi):
        raise ValueError(f"network {spec.name} knows no komi but {known:g}: ask for that one alone")
