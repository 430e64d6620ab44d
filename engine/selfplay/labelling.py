"""``keima data label``: positions of recorded and self-played games, evaluated by a network, to shards of labels.

    OUT/labels.json                what is being made, of what, and the shards so far
    OUT/labels-00000.npz.xz, ...   shards (:mod:`engine.records.labels`)
    OUT/journal-19.bin, ...        labelled positions that are in no shard yet (:mod:`engine.selfplay.journal`)
    OUT/games/                     shards made of other sources of games, if there were any

Every position is on disk as soon as it is evaluated, and a game is a function of its number, so a run that was stopped
in any way resumes where it was. Threads label batches of one board size and one source, always of the kind that lacks
most of its share; the network's evaluations fill all cores meanwhile. Start at :meth:`Labelling.run`.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.config.declaration import Checked, option
from engine.records.labels import RECORDED, SELF_PLAYED, write_labels
from engine.selfplay.journal import IN_RECORD, Journal, game_keys, keys_of, to_shard
from engine.selfplay.labelled_games import LabelledGames, has_ended
from engine.selfplay.plan import check_player
from engine.selfplay.recorded import RecordedGames
from engine.selfplay.run_folder import open_manifest, write_manifest
from engine.selfplay.variety import Shares, Variety
from engine.system.crew.threads import work_in_threads
from engine.train.teacher import Teacher

MANIFEST = "labels.json"
GAMES = "games"
FORMAT = "keima labels 3"
SOURCES = ("recorded", "self-played")


@dataclass(frozen=True)
class LabelOptions(Checked):
    """What is labelled; a run resumes only with the options it began with."""

    recorded: Shares[int]
    """board sizes of positions of recorded games"""
    self_play: Shares[int]
    """board sizes of positions of self-played games"""
    variety: Variety
    every: int = option(12, "take one position in this many of a recorded game", low=1)
    moves: int = option(12, "most probable moves kept of a position", low=1, high=64)
    positions_per_shard: int = option(80000, "in all shards but the last", low=1)
    seed: int = option(1, "of all that is drawn", low=0)

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        named = {"recorded": self.recorded, "self_play": self.self_play}
        shares = {name: {str(what): share for what, share in given} for name, given in named.items()}
        shares |= self.variety.record()
        rest = {name: getattr(self, name) for name in ("every", "moves", "positions_per_shard", "seed")}
        return shares | rest


class Kind(NamedTuple):
    """Positions of one source and board size."""

    source: int
    size: int

    def __str__(self) -> str:
        return f"{self.size}x{self.size} {SOURCES[self.source]}"


class Labelling:
    """One folder of labels in the making; close it at the end."""

    def __init__(self, teacher: Teacher, options: LabelOptions, files: list[Path], network: dict[str, str], out: Path):
        """Open the folder, or begin one.

        Args:
            files: shards of games.
            network: what the labels shall say of the teacher.
        Raises:
            ValueError: the folder holds something else, or the network cannot label what is asked for.
        """
        _check(teacher, options, files)
        self._teacher, self._options, self._out = teacher, options, out
        self._shares = {Kind(RECORDED, size): share for size, share in options.recorded}
        self._shares |= {Kind(SELF_PLAYED, size): share for size, share in options.self_play}
        self._recorded = RecordedGames(files, options.seed, options.every)
        self._lock = threading.Lock()
        """guards what follows"""
        if not (out / MANIFEST).exists():
            check_out(out)
        asked = {"format": FORMAT, "network": network}
        asked["options"] = options.record() | {"files": [path.name for path in files]}
        self._manifest = open_manifest(out / MANIFEST, asked, {"positions": {}, "next": {}, "shards": []})
        self.counts = {kind: self._manifest["positions"].get(str(kind), 0) for kind in self._shares}
        """positions labelled, those under way included"""
        self._next = {kind: self._manifest["next"].get(str(kind), 0) for kind in self._shares}
        self._finished = 0
        """positions of finished games in no shard yet"""
        self._is_cutting = False
        self._exhausted: set[Kind] = set()
        self._unfinished: dict[int, list[tuple[int, list[int]]]] = {}
        """self-played games by size that are not in play: number and moves"""
        self._live: set[tuple[int, int]] = set()
        """size and number of the self-played games that are not over"""
        self._stopped = threading.Event()
        self._journals: dict[int, Journal] = {}
        for size in sorted({kind.size for kind in self._shares}):
            self._resume(size)

    def close(self) -> None:
        """Close the files."""
        for journal in self._journals.values():
            journal.close()

    def stop(self) -> None:
        """End the run soon; what is labelled stays. Threads: any."""
        self._stopped.set()

    @property
    def positions(self) -> int:
        """Positions labelled so far."""
        return sum(self.counts.values())

    @property
    def is_exhausted(self) -> bool:
        """Whether the games given hold no more positions, and nothing else is asked for."""
        return len(self._exhausted) == len(self._shares)

    def run(self, positions: int, at_once: int, threads: int, report: Callable[[], None], every_s: float = 1.0) -> None:
        """Label until the folder holds this number of positions.

        Args:
            positions: in the whole folder; then all that is labelled goes into shards.
            at_once: positions a batch, and games of a thread and size.
            threads: batches under way at once.
            report: called now and then in the caller's thread.
        Raises:
            RuntimeError, ValueError, OSError: the network, a source or the disk failed.
        """
        work_in_threads(partial(self._work, positions, at_once), threads, self._stopped, report, every_s)
        if self.positions >= positions or self.is_exhausted:
            self._cut(everything=True)
        report()

    def _resume(self, size: int) -> None:
        """Open a size's journal and find out what is left to do for it."""
        journal = self._journals[size] = Journal(self._out, size, self._options.moves)
        rows = journal.rows()
        if len(rows) and self._manifest["shards"]:
            # A process that was killed between writing a shard and shortening the journals has its games in both.
            written = keys_of(self._out / self._manifest["shards"][-1]["file"], size)
            rows = rows[~np.isin(game_keys(rows), written)]
            journal.keep(rows)
        for source in (RECORDED, SELF_PLAYED):
            kind, of_source = Kind(source, size), rows[rows["source"] == source]
            if kind in self._shares and len(of_source):
                self._next[kind] = max(self._next[kind], int(of_source["number"].max()) + 1)
                self.counts[kind] += len(of_source)
        played = rows[rows["source"] == SELF_PLAYED]
        open_games = []
        for number in np.unique(played["number"]).tolist():
            of_game = played[played["number"] == number]
            moves = of_game["move"][np.argsort(of_game["ply"])]
            if not has_ended(moves, size):
                open_games.append((number, moves.tolist()))
        self._unfinished[size] = open_games
        self._live |= {(size, number) for number, _ in open_games}
        self._finished += len(rows) - sum(len(moves) for _, moves in open_games)

    def _work(self, positions: int, at_once: int) -> None:
        """One thread: label batches of the kind that lacks most, until there are enough."""
        games: dict[int, LabelledGames] = {}
        while (kind := self._reserve(positions, at_once)) is not None:
            if kind.source == RECORDED:
                self._enter(kind, self._label_recorded(kind, at_once), None, at_once)
            else:
                self._enter(kind, *self._label_self_played(kind, games, at_once), at_once)

    def _reserve(self, positions: int, at_once: int) -> Kind | None:
        """The kind of the next batch, which is counted as labelled from now on; None = the run ends."""
        with self._lock:
            if self._stopped.is_set() or self.positions >= positions:
                return None
            open_kinds = [kind for kind in self._shares if kind not in self._exhausted]
            if not open_kinds:
                return None
            kind = min(open_kinds, key=lambda kind: self.counts[kind] / self._shares[kind])
            self.counts[kind] += at_once
            return kind

    def _label_recorded(self, kind: Kind, at_once: int) -> np.ndarray:
        """Rows of the next recorded games; none if there are no more."""
        with self._lock:
            taken = self._recorded.take(kind.size, self._next[kind], at_once)
            if taken is None:
                self._exhausted.add(kind)
                return np.zeros(0)
            self._next[kind] = int(taken.numbers[-1]) + 1
        rules = self._rules_of(kind.size, taken.numbers)
        outputs = self._teacher.targets(
            taken.games, taken.rows, taken.plies, rules, np.zeros(len(taken.rows), np.int64)
        )
        return self._journals[kind.size].new_rows(RECORDED, taken.numbers, taken.plies, IN_RECORD, outputs)

    def _label_self_played(
        self, kind: Kind, games: dict[int, LabelledGames], at_once: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """One move in each game of this thread and a size: rows, and which games have ended."""
        size = kind.size
        if size not in games:
            games[size] = LabelledGames(self._teacher.server, size, at_once, self._options.variety, self._options.seed)
        with self._lock:
            begun, free = self._unfinished[size], games[size].free
            wanted, self._unfinished[size] = begun[:free], begun[free:]
            fresh = range(self._next[kind], self._next[kind] + free - len(wanted))
            self._next[kind] = fresh.stop
            self._live |= {(size, number) for number in fresh}
        games[size].begin([*wanted, *((number, []) for number in fresh)])
        done = games[size].step()
        rows = self._journals[size].new_rows(SELF_PLAYED, done.numbers, done.plies, done.moves, done.outputs)
        return rows, done.ended

    def _rules_of(self, size: int, numbers: np.ndarray) -> np.ndarray:
        """int64[K, RULE_FIELDS]: the rules of games."""
        return self._options.variety.draw(self._options.seed, numbers, size)[0]

    def _enter(self, kind: Kind, rows: np.ndarray, ended: np.ndarray | None, reserved: int) -> None:
        """Keep what was labelled; write a shard when there is enough for one.

        Args:
            ended: bool[B], which self-played games have ended; None = rows of recorded games.
            reserved: the positions that :meth:`_reserve` counted.
        """
        with self._lock:
            self.counts[kind] += len(rows) - reserved
            if not len(rows):
                return
            self._journals[kind.size].append(rows)
            if ended is None:
                self._finished += len(rows)
            else:
                over = rows[ended]
                self._live -= {(kind.size, number) for number in over["number"].tolist()}
                self._finished += int(over["ply"].sum(dtype=np.int64)) + len(over)
            is_due = self._finished >= self._options.positions_per_shard and not self._is_cutting
            self._is_cutting |= is_due
        if is_due:
            self._cut()

    def _cut(self, everything: bool = False) -> None:
        """Write the positions of all finished games, or of all, as a shard."""
        with self._lock:
            chosen = {size: self._ready(size, everything) for size in self._journals}
            count = sum(map(len, chosen.values()))
        if count:
            # The other threads go on meanwhile: packing takes a core for half a minute.
            shard = to_shard(chosen, self._rules_of, self._recorded.moves_of)
            name = f"labels-{len(self._manifest['shards']):05}.npz.xz"
            write_labels(self._out / name, *shard)
            with self._lock:
                self._note_shard(name, chosen)
                for size, rows in chosen.items():
                    left = self._journals[size].rows()
                    self._journals[size].keep(left[~np.isin(game_keys(left), game_keys(rows))])
                self._finished -= count
        self._is_cutting = False

    def _note_shard(self, name: str, chosen: dict[int, np.ndarray]) -> None:
        """Enter a shard into the manifest. The lock is held."""
        manifest, positions = self._manifest, self._manifest["positions"]
        for kind in self._shares:
            count = int((chosen[kind.size]["source"] == kind.source).sum())
            positions[str(kind)] = positions.get(str(kind), 0) + count
        manifest["shards"].append({"file": name, "positions": sum(map(len, chosen.values()))})
        manifest["next"] = {str(kind): number for kind, number in self._next.items()}
        write_manifest(self._out / MANIFEST, manifest)

    def _ready(self, size: int, everything: bool) -> np.ndarray:
        """The rows of a journal that can go into a shard. The lock is held."""
        rows = self._journals[size].rows()
        if everything:
            return rows
        live = np.array([number for of, number in self._live if of == size], np.int64)
        return rows[(rows["source"] == RECORDED) | ~np.isin(rows["number"], live)]


def _check(teacher: Teacher, options: LabelOptions, files: list[Path]) -> None:
    """Refuse what cannot be labelled.

    Raises:
        ValueError: one line.
    """
    spec = teacher.spec
    if not (spec.has_policy and spec.has_value):
        raise ValueError(f"network {spec.name} has no {'value' if spec.has_policy else 'policy'}, labels need both")
    if not options.recorded and not options.self_play:
        raise ValueError("nothing to label: neither recorded nor self-played positions are asked for")
    if options.recorded and not files:
        raise ValueError("positions of recorded games are asked for, but no games were given")
    sizes = [size for size, _ in (*options.recorded, *options.self_play)]
    check_player(spec, sizes, options.variety)
    for size in sizes:
        if size * size < options.moves:
            raise ValueError(f"a board of {size}x{size} has fewer points than the {options.moves} moves to keep")


def check_out(out: Path) -> None:
    """Refuse a place where no labels can be made: a file, or a folder of something else.

    Raises:
        ValueError: one line.
    """
    # A run that was killed while it packed games leaves a partial folder of theirs, of a name of its own.
    is_free = not out.exists() or (out.is_dir() and all(GAMES in item.name for item in out.iterdir()))
    if not (is_free or (out / MANIFEST).exists()):
        raise ValueError(f"{out}: already there, expected a new or empty folder, or one of labels")
