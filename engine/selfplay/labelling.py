"""``keima data label``: positions of recorded and self-played games, evaluated by a network, to shards of labels.

    OUT/labels.json                what is being made, of what, and the shards so far
    OUT/labels-00000.npz.xz, ...   shards (:mod:`engine.records.labels`)
    OUT/journal-19.bin, ...        labelled positions that are in no shard yet (:mod:`engine.selfplay.journal`)
    OUT/games/                     shards made of other sources of games, if there were any

Every position is on disk as soon as it is evaluated, and a game is a function of its number, so a run that was stopped
in any way resumes where it was. Threads label batches of one board size and one source, always of the kind that lacks
most of its share; the network's evaluations fill all cores meanwhile. Others may do it in place of this process
(:mod:`engine.selfplay.label_job`), whole games at a time. Start at :meth:`Labelling.run`.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from engine.records.labels import RECORDED, SELF_PLAYED, write_labels
from engine.selfplay.journal import Journal, game_keys, keys_of, row_type, to_shard
from engine.selfplay.label_job import played_rows, recorded_rows
from engine.selfplay.label_options import Kind, LabelOptions, game_of
from engine.selfplay.labelled_games import LabelledGames, has_ended
from engine.selfplay.numbers import numbers_of, ranges_of
from engine.selfplay.plan import check_player
from engine.selfplay.recorded import RecordedGames
from engine.selfplay.run_folder import open_manifest, refuse_foreign, write_manifest
from engine.system.crew import Away, Done, work_in_threads
from engine.system.files import sha256_of
from engine.train.teacher import Teacher

MANIFEST = "labels.json"
GAMES = "games"
FORMAT = "keima labels 3"


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
        self._shares = options.kinds()
        self._kinds = list(self._shares)
        self._recorded = RecordedGames(files, options.seed, options.every)
        self._lock = threading.Lock()
        """guards what follows"""
        if not (out / MANIFEST).exists():
            check_out(out)
        asked = {"format": FORMAT, "network": network}
        asked["options"] = options.record() | {"files": [path.name for path in files]}
        self._manifest = open_manifest(out / MANIFEST, asked, {"positions": {}, "next": {}, "shards": []})
        # Names alone do not tell games apart. Folders of before this was kept take what they are given first.
        digests = [sha256_of(path) for path in files]
        if "games" not in self._manifest:
            self._manifest["games"] = digests
            write_manifest(out / MANIFEST, self._manifest)
        elif self._manifest["games"] != digests:
            raise ValueError(f"{out}: begun with other games in files of these names")
        self.counts = {kind: self._manifest["positions"].get(str(kind), 0) for kind in self._shares}
        """positions labelled, those under way included"""
        self._next = {kind: self._manifest["next"].get(str(kind), 0) for kind in self._shares}
        self._undone: dict[Kind, set[int]] = {}
        """numbers of recorded games that were begun and are in no shard"""
        self._left: dict[Kind, list[int]] = {}
        """those of them that are in no journal either: a process was killed before their rows had come"""
        self._away: dict[int, int] = {}
        """pieces of work that others do: how many positions are expected of them, counted as labelled"""
        self._played = {kind: (1, kind.size**2) for kind in self._shares}
        """finished games and their positions, to expect further ones by; one that fills the board to begin with"""
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
        """Positions labelled so far, without those that others have under way."""
        return sum(self.counts.values()) - sum(self._away.values())

    @property
    def is_exhausted(self) -> bool:
        """Whether the games given hold no more positions, and nothing else is asked for."""
        return len(self._exhausted) == len(self._shares)

    def run(
        self, positions: int, at_once: int, threads: int, report: Callable[[], None], every_s: float = 1.0,
        away: Away | None = None,
    ) -> None:  # fmt: skip
        """Label until the folder holds this number of positions.

        Args:
            positions: in the whole folder; then all that is labelled goes into shards.
            at_once: positions a batch, and games of a thread and size.
            threads: batches under way at once.
            report: called now and then in the caller's thread.
            away: who labels instead of this process; all games that are begun are played to their ends then.
        Raises:
            RuntimeError, ValueError, OSError: the network, a source or the disk failed.
        """
        if away is None:
            work_in_threads(partial(self._work, positions, at_once), threads, self._stopped, report, every_s)
        while away and not (self._stopped.is_set() or self.is_exhausted or self.positions >= positions):
            pieces = self._pieces(positions)
            away.crew.work(away.job, away.files, pieces, self._take, self._stopped, report, every_s)
        if self.positions >= positions or self.is_exhausted:
            self._cut(everything=True)
        report()

    def begun(self) -> dict[int, tuple[int, ...]]:
        """The moves so far (policy indices) of games of self-play that were broken off, by pieces of work."""
        return {
            self._piece(Kind(SELF_PLAYED, size), number): tuple(moves)
            for size, games in self._unfinished.items() for number, moves in games
        }  # fmt: skip

    def _piece(self, kind: Kind, number: int) -> int:
        """A game as a piece of work. See :func:`game_of`."""
        return number * len(self._kinds) + self._kinds.index(kind)

    def _pieces(self, positions: int) -> Iterator[int]:
        """Games for others to label, as long as those that they have will not do."""
        while (kind := self._reserve(positions, 0)) is not None:
            with self._lock:
                number, expected = self._next_game(kind)
                if not expected:
                    self._exhausted.add(kind)
                    continue
                self.counts[kind] += expected
                self._away[self._piece(kind, number)] = expected
            yield self._piece(kind, number)

    def _next_game(self, kind: Kind) -> tuple[int, int]:
        """The number of a game to begin or to go on with, and how many positions are expected of it; 0 = no more."""
        size = kind.size
        if kind.source == RECORDED:
            number = self._left[kind].pop(0) if self._left[kind] else self._next[kind]
            taken = self._recorded.take(size, number, 1, 1)
            if taken is not None:
                self._begin(kind, number + 1)
            return number, 0 if taken is None else len(taken.rows)
        games, mean = self._played[kind]
        if self._unfinished[size]:
            number, moves = self._unfinished[size].pop(0)
            return number, max(1, mean // games - len(moves))
        number, self._next[kind] = self._next[kind], self._next[kind] + 1
        self._live.add((size, number))
        return number, mean // games

    def _begin(self, kind: Kind, end: int) -> None:
        """Note that the recorded games below a number have been begun. The lock is held."""
        self._undone[kind] |= set(range(self._next[kind], end))
        self._next[kind] = max(self._next[kind], end)

    def _take(self, done: Done) -> None:
        """Enter games of one kind that others labelled, each once."""
        pieces, body = done
        kind = game_of(pieces[0], self._kinds)[0]
        rows = np.frombuffer(body, row_type(kind.size, self._options.moves))
        with self._lock:
            if self._away.keys().isdisjoint(pieces):
                return
            reserved = sum(self._away.pop(piece) for piece in pieces)
        is_last = np.append(rows["number"][1:] != rows["number"][:-1], True)
        self._enter(kind, rows, is_last if kind.source == SELF_PLAYED else None, reserved)

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
        if (kind := Kind(RECORDED, size)) in self._shares:
            numbers = rows["number"][rows["source"] == RECORDED]
            first = self._manifest["next"].get(str(kind), 0)
            kept = set(numbers_of(self._manifest.get("undone", {}).get(str(kind), [])).tolist())
            self._undone[kind] = kept | set(range(first, self._next[kind]))
            self._left[kind] = sorted(self._undone[kind].difference(numbers.tolist()))
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
            if self._stopped.is_set() or sum(self.counts.values()) >= positions:
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
            left = self._left[kind]
            first, games = (left.pop(0), 1) if left else (self._next[kind], None)
            taken = self._recorded.take(kind.size, first, at_once, games)
            if taken is None:
                self._exhausted.add(kind)
                return np.zeros(0)
            self._begin(kind, int(taken.numbers[-1]) + 1)
        return recorded_rows(self._teacher, self._options, kind.size, taken)

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
        return played_rows(games[size], self._options.moves)

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
                positions = int(over["ply"].sum(dtype=np.int64)) + len(over)
                self._finished += positions
                games, before = self._played[kind]
                self._played[kind] = games + len(over), before + positions
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
            shard = to_shard(chosen, self._options.rules_of, self._recorded.moves_of)
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
            numbers = chosen[kind.size]["number"][chosen[kind.size]["source"] == kind.source]
            positions[str(kind)] = positions.get(str(kind), 0) + len(numbers)
            if kind.source == RECORDED:
                self._undone[kind].difference_update(numbers.tolist())
        manifest["shards"].append({"file": name, "positions": sum(map(len, chosen.values()))})
        manifest["next"] = {str(kind): number for kind, number in self._next.items()}
        manifest["undone"] = {
            str(kind): ranges_of(np.fromiter(numbers, np.int64)) for kind, numbers in self._undone.items()
        }  # fmt: skip
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
    for head in {"policy", "value"} - set(spec.heads):
        raise ValueError(f"network {spec.name} has no {head}, labels need both policy and value")
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
    refuse_foreign(out, MANIFEST, "labels", also=(GAMES,))
