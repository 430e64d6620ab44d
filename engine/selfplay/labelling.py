"""``keima data label``: a network's outputs for positions of recorded and self-played games, to shards of labels.

    OUT/labels.json                manifest: options, network, and the shards so far
    OUT/labels-00000.npz.xz, ...   shards (:mod:`engine.records.labels`)
    OUT/journal.bin                labelled positions that are in no shard yet (:mod:`engine.system.run_folder`)
    OUT/games/                     shards converted from other game files, if any

An executor labels games (:mod:`engine.selfplay.label_job`). Threads of this process return every position as soon as it
is evaluated, and stop at the wanted number; other executors return whole games. A game is a function of its number, so
a run that was stopped or killed resumes, in the middle of games too. Start at :meth:`Labelling.run`.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np

from engine.records.labels import RECORDED, SELF_PLAYED, write_labels
from engine.selfplay.label_job import Kind, LabelOptions, LabelWorker, tasks_of
from engine.selfplay.label_rows import pack_rows, to_labels, unpack_rows
from engine.selfplay.plan import check_player
from engine.selfplay.recorded import RecordedGames
from engine.system.executor import Done, Execution, LocalExecutor, Opened
from engine.system.files import sha256_of
from engine.system.run_folder import Block, RunFolder, refuse_foreign
from engine.train.teacher import Teacher

MANIFEST = "labels.json"
GAMES = "games"
FORMAT = "keima labels 4"


class Labelling:
    """A labelling run in its folder; must be closed."""

    def __init__(self, teacher: Teacher, options: LabelOptions, files: list[Path], network: dict[str, str], out: Path):
        """Begin a run, or resume the folder's.

        Args:
            files: shards of recorded games.
            network: identity of the teacher, for the manifest.
        Raises:
            ValueError: the folder contains something else, or the network cannot label these positions; one line.
        """
        _check(teacher, options, files)
        self._teacher, self._options = teacher, options
        self._kinds = list(options.kinds())
        self._recorded = RecordedGames(files, options.seed, options.every)
        if not (out / MANIFEST).exists():
            check_out(out)
        # Files of the same names may contain other games.
        digest = hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()
        asked = {
            "format": FORMAT, "network": network, "games": digest,
            "options": options.record() | {"files": [path.name for path in files]},
        }  # fmt: skip
        self._folder = RunFolder(
            out, "labels", asked, {"positions": {}}, lambda body: unpack_rows(body, options.moves), is_mixed=True
        )
        self.counts = {kind: self._folder.manifest["positions"].get(str(kind), 0) for kind in self._kinds}
        """labelled positions by kind"""
        self.begun: dict[int, tuple[int, ...]] = {}
        """moves (policy indices) already played in interrupted self-play games, by task"""
        self._ready = 0
        """number of positions of finished games that are in no shard"""
        for size, rows in self._rows().items():
            self._resume(size, rows)
        self._unbegun = [self._numbers(place) for place in range(len(self._kinds))]
        self._expected: dict[int, dict[int, int]] = {}
        """by kind index and task, the number of further positions expected from each game in progress"""
        self._played = {kind: (1, kind.size**2) for kind in self._kinds}
        """number of finished games and of their positions, whose ratio predicts the length of further games; at first
        one game with as many positions as the board has points"""
        self._exhausted: set[int] = set()
        """indices of the kinds without further games"""
        self._wanted, self._is_streamed = 0, True
        self._ended = threading.Event()
        """set at the end of labelling"""
        self._packer = ThreadPoolExecutor(1)
        self._packing: Future[None] | None = None

    def close(self) -> None:
        """Close the files."""
        self._packer.shutdown()
        self._folder.close()

    def stop(self) -> None:
        """Stop the run soon; labelled positions are kept. Threads: any."""
        self._ended.set()

    @property
    def positions(self) -> int:
        """Positions labelled so far."""
        return sum(self.counts.values())

    @property
    def is_exhausted(self) -> bool:
        """Whether no kind has further games to label, nor games in progress."""
        return len(self._exhausted) == len(self._kinds) and not any(self._expected.values())

    def run(
        self, positions: int, at_once: int, threads: int, report: Callable[[], None], every_s: float = 1.0,
        execution: Execution | None = None,
    ) -> None:  # fmt: skip
        """Label until the folder has ``positions`` positions in all, and write all of them into shards.

        Args:
            at_once: positions in a batch of recorded games, and self-play games of each thread and board size.
            threads: number of threads, each with a batch in flight; 0 = enough to keep the teacher busy.
            report: called every ``every_s`` seconds in the caller's thread.
            execution: executor and job that label instead, and finish every game they begin; None = threads of this
                process.
        Raises:
            RuntimeError, ValueError, OSError: the network, a source or the disk failed.
        """
        worker = LabelWorker(self._teacher, self._options, self._recorded, self.begun, at_once, threads)
        executor, job, files = execution or Execution(LocalExecutor(), Opened(worker), {})
        self._wanted, self._is_streamed = positions, execution is None
        while not (self._ended.is_set() or self.is_exhausted or self.positions >= positions):
            self._expected = {place: {} for place in range(len(self._kinds))}
            executor.work(job, files, iter(self._draw, None), self._take, self._ended, report, every_s)
        if self._packing is not None:
            self._packing.result()
        if self.positions >= positions or self.is_exhausted:
            self._cut(everything=True)
        report()

    def _rows(self) -> dict[int, np.ndarray]:
        """The rows that are in no shard yet, by board size. Threads: the caller holds the lock, or is alone."""
        found = {}
        for size in sorted({size for size, _ in self._folder.held}):
            rows = np.concatenate([rows for of, rows in self._folder.held if of == size])
            found[size] = rows[~self._folder.in_shards.has(self._tasks(size, rows))]
        return found

    def _tasks(self, size: int, rows: np.ndarray) -> np.ndarray:
        """int64[R]: the task of each row."""
        kinds = [Kind(source, size) for source in (RECORDED, SELF_PLAYED)]
        indices = np.array([self._kinds.index(kind) if kind in self._kinds else -1 for kind in kinds])
        return tasks_of(indices[rows["source"]], rows["number"], len(self._kinds))

    def _resume(self, size: int, rows: np.ndarray) -> None:
        """Count the journal's rows of one board size, and note the moves of interrupted games."""
        tasks = self._tasks(size, rows)
        is_done = self._folder.done.has(tasks)
        self._ready += int(is_done.sum())
        for source in np.unique(rows["source"]).tolist():
            self.counts[Kind(source, size)] += int((rows["source"] == source).sum())
        for task in np.unique(tasks[~is_done]).tolist():
            of_game = rows[tasks == task]
            self.begun[task] = tuple(of_game["move"][np.argsort(of_game["ply"])].tolist())

    def _numbers(self, kind: int) -> Iterator[int]:
        """Numbers of the unfinished games of a kind, in order."""
        return (number for number in count() if tasks_of(kind, number, len(self._kinds)) not in self._folder.done)

    def _draw(self) -> int | None:
        """The next task: a game of the kind furthest below its share; None = no further game is needed or left."""
        shares = list(self._options.kinds().values())
        with self._folder.lock:
            while not self._ended.is_set():
                found = [self.counts[kind] + sum(self._expected[n].values()) for n, kind in enumerate(self._kinds)]
                open_kinds = [kind for kind in range(len(self._kinds)) if kind not in self._exhausted]
                # If positions arrive one by one, the run ends at the wanted number, in the middle of games.
                if not open_kinds or (not self._is_streamed and sum(found) >= self._wanted):
                    return None
                kind = min(open_kinds, key=lambda kind: found[kind] / shares[kind])
                number = next(self._unbegun[kind])
                task = tasks_of(kind, number, len(self._kinds))
                if expected := self._positions_of(self._kinds[kind], number, task):
                    self._expected[kind][task] = expected
                    return task
                self._exhausted.add(kind)
        return None

    def _positions_of(self, kind: Kind, number: int, task: int) -> int:
        """Expected number of positions that a game will add; 0 = the shards have no further game."""
        if kind.source == RECORDED:
            taken = self._recorded.take(kind.size, number)
            return 0 if taken is None else len(taken.plies)
        games, positions = self._played[kind]
        return max(1, positions // games - len(self.begun.get(task, ())))

    def _take(self, done: Done) -> None:
        """Keep rows of one kind, some of which finish their games; write a shard when there are enough rows for one."""
        tasks, body = done
        with self._folder.lock:
            held = self._folder.append(tasks, body)
            if held is None:
                return
            size, rows = held
            kind = Kind(int(rows["source"][0]), size)
            expected, of_rows = self._expected[self._kinds.index(kind)], self._tasks(size, rows)
            for task, n_rows in zip(*np.unique(of_rows, return_counts=True), strict=True):
                expected[int(task)] = max(0, expected.get(int(task), 0) - int(n_rows))
            for task in tasks:
                expected.pop(task, None)
            self.counts[kind] += len(rows)
            if kind.source == RECORDED:
                self._ready += len(rows)
            else:
                last_plies = rows["ply"][np.isin(of_rows, tasks)]
                games, positions = self._played[kind]
                found = int(last_plies.sum(dtype=np.int64)) + len(last_plies)
                self._played[kind] = games + len(last_plies), positions + found
                self._ready += found
            if self._is_streamed and self.positions >= self._wanted:
                self._ended.set()
            is_due = self._ready >= self._options.positions_per_shard
        if is_due and (self._packing is None or self._packing.done()):
            if self._packing is not None:
                self._packing.result()
            # In a thread, while labelling continues: packing takes a core for half a minute.
            self._packing = self._packer.submit(self._cut)

    def _cut(self, everything: bool = False) -> None:
        """Write the positions of finished games, or of unfinished ones too (``everything``), as a shard."""
        folder = self._folder
        with folder.lock:
            rows = self._rows()
            tasks = {size: self._tasks(size, of_size) for size, of_size in rows.items()}
            is_in = {size: folder.done.has(of_size) | everything for size, of_size in tasks.items()}
        chosen = {size: of_size[is_in[size]] for size, of_size in rows.items() if is_in[size].any()}
        if not chosen:
            return
        labels = to_labels(chosen, self._options.rules_of, self._recorded.moves_of)
        kept = folder.manifest["positions"]
        for kind in self._kinds:
            found = chosen[kind.size]["source"] == kind.source if kind.size in chosen else np.zeros(0)
            kept[str(kind)] = kept.get(str(kind), 0) + int(found.sum())
        folder.add_shard(
            lambda path: write_labels(path, labels), {"positions": len(labels.game)},
            np.unique(np.concatenate([tasks[size][is_in[size]] for size in chosen])), self._blocks_left,
        )  # fmt: skip
        with folder.lock:
            self._ready -= len(labels.game)

    def _blocks_left(self) -> list[Block]:
        """The rows that are in no shard yet, as blocks for the journal. Threads: the caller holds the folder's lock."""
        found = []
        for size, rows in self._rows().items():
            tasks = np.unique(self._tasks(size, rows))
            if len(rows):
                found.append(Block(tasks[self._folder.done.has(tasks)], pack_rows(size, rows)))
        return found


def _check(teacher: Teacher, options: LabelOptions, files: list[Path]) -> None:
    """Check that the teacher can label the positions of the options.

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
    check_player(spec, sizes, options.distribution)
    for size in sizes:
        if size * size < options.moves:
            raise ValueError(f"a board of {size}x{size} has fewer points than the {options.moves} moves of a label")


def check_out(out: Path) -> None:
    """Refuse a path that is a file, or a folder with anything but a labelling run.

    Raises:
        ValueError: one line.
    """
    # A run that was killed while it converted games leaves a partial folder.
    refuse_foreign(out, MANIFEST, "labels", also=(GAMES,))
