"""``keima data label``: positions of recorded and self-played games, evaluated by a network, to shards of labels.

    OUT/labels.json                what is made, of what, and the shards so far
    OUT/labels-00000.npz.xz, ...   shards (:mod:`engine.records.labels`)
    OUT/journal.bin                labelled positions that are in no shard yet (:mod:`engine.system.run_folder`)
    OUT/games/                     shards made of other sources of games, if there were any

An executor labels games (:mod:`engine.selfplay.label_job`). Threads of this process send every position as soon as it
is evaluated, and stop when there are enough; other executors send whole games. A game is a function of its number, so a
run that was stopped in any way resumes, in the midst of a game too. Start at :meth:`Labelling.run`.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np

from engine.records.labels import RECORDED, SELF_PLAYED, write_labels
from engine.selfplay.label_job import LabelWorker
from engine.selfplay.label_options import Kind, LabelOptions, pieces_of
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
        self._teacher, self._options = teacher, options
        self._kinds = list(options.kinds())
        self._recorded = RecordedGames(files, options.seed, options.every)
        if not (out / MANIFEST).exists():
            check_out(out)
        # Names alone do not tell games apart.
        digest = hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()
        asked = {
            "format": FORMAT, "network": network, "games": digest,
            "options": options.record() | {"files": [path.name for path in files]},
        }  # fmt: skip
        self._folder = RunFolder(out, "labels", asked, {"positions": {}}, lambda body: unpack_rows(body, options.moves))
        self.counts = {kind: self._folder.manifest["positions"].get(str(kind), 0) for kind in self._kinds}
        """positions labelled"""
        self.begun: dict[int, tuple[int, ...]] = {}
        """the moves so far (policy indices) of interrupted games of self-play, by pieces of work"""
        self._ready = 0
        """positions of finished games in no shard"""
        for size, rows in self._rows().items():
            self._resume(size, rows)
        self._unbegun = [self._numbers(place) for place in range(len(self._kinds))]
        self._expected: dict[int, dict[int, int]] = {}
        """by place of the kind, of the games under way the positions that are still to come"""
        self._played = {kind: (1, kind.size**2) for kind in self._kinds}
        """finished games and their positions, to expect further ones by; one that fills the board to begin with"""
        self._exhausted: set[int] = set()
        """places of the kinds of which all games are begun"""
        self._wanted, self._is_streamed = 0, True
        self._ended = threading.Event()
        """nothing further is labelled"""
        self._packer = ThreadPoolExecutor(1)
        self._packing: Future[None] | None = None

    def close(self) -> None:
        """Close the files."""
        self._packer.shutdown()
        self._folder.close()

    def stop(self) -> None:
        """Stop the run soon; what is labelled stays. Threads: any."""
        self._ended.set()

    @property
    def positions(self) -> int:
        """Positions labelled so far."""
        return sum(self.counts.values())

    @property
    def is_exhausted(self) -> bool:
        """Whether the games given hold no more positions, and nothing else is asked for."""
        return len(self._exhausted) == len(self._kinds) and not any(self._expected.values())

    def run(
        self, positions: int, at_once: int, threads: int, report: Callable[[], None], every_s: float = 1.0,
        execution: Execution | None = None,
    ) -> None:  # fmt: skip
        """Label until the folder holds this number of positions.

        Args:
            positions: in the whole folder; then all that is labelled goes into shards.
            at_once: positions a batch, and games of a thread and size.
            threads: batches under way at once.
            report: called now and then in the caller's thread.
            execution: who labels instead of this process; all games that are begun are played to their ends then.
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
        """The rows in no shard, by board size. The lock is held, or nothing else runs."""
        found = {}
        for size in sorted({size for size, _ in self._folder.held}):
            rows = np.concatenate([rows for of, rows in self._folder.held if of == size])
            found[size] = rows[~self._folder.in_shards.has(self._pieces(size, rows))]
        return found

    def _pieces(self, size: int, rows: np.ndarray) -> np.ndarray:
        """int64[R]: the piece of work that each row is of."""
        kinds = [Kind(source, size) for source in (RECORDED, SELF_PLAYED)]
        places = np.array([self._kinds.index(kind) if kind in self._kinds else -1 for kind in kinds])
        return pieces_of(places[rows["source"]], rows["number"], len(self._kinds))

    def _resume(self, size: int, rows: np.ndarray) -> None:
        """Count the rows of a journal, and find the games that were interrupted."""
        pieces = self._pieces(size, rows)
        is_done = self._folder.done.has(pieces)
        self._ready += int(is_done.sum())
        for source in np.unique(rows["source"]).tolist():
            self.counts[Kind(source, size)] += int((rows["source"] == source).sum())
        for piece in np.unique(pieces[~is_done]).tolist():
            of_game = rows[pieces == piece]
            self.begun[piece] = tuple(of_game["move"][np.argsort(of_game["ply"])].tolist())

    def _numbers(self, place: int) -> Iterator[int]:
        """Games of a kind that are not done, each once, in order."""
        return (number for number in count() if pieces_of(place, number, len(self._kinds)) not in self._folder.done)

    def _draw(self) -> int | None:
        """The next piece of work, a game of the kind that lacks most of its share; None = those begun will do."""
        with self._folder.lock:
            while not self._ended.is_set():
                found = [self.counts[kind] + sum(self._expected[n].values()) for n, kind in enumerate(self._kinds)]
                places = [place for place in range(len(self._kinds)) if place not in self._exhausted]
                # Where positions arrive one by one, the run ends by their number, whatever is under way then.
                if not places or (not self._is_streamed and sum(found) >= self._wanted):
                    return None
                shares = list(self._options.kinds().values())
                place = min(places, key=lambda place: found[place] / shares[place])
                number = next(self._unbegun[place])
                piece = pieces_of(place, number, len(self._kinds))
                if expected := self._positions_of(self._kinds[place], number, piece):
                    self._expected[place][piece] = expected
                    return piece
                self._exhausted.add(place)
        return None

    def _positions_of(self, kind: Kind, number: int, piece: int) -> int:
        """How many positions are expected of a game; 0 = the shards hold no more."""
        if kind.source == RECORDED:
            taken = self._recorded.take(kind.size, number)
            return 0 if taken is None else len(taken.plies)
        games, positions = self._played[kind]
        return max(1, positions // games - len(self.begun.get(piece, ())))

    def _take(self, done: Done) -> None:
        """Keep rows of one kind, some of which finish their games; write a shard when there is enough for one."""
        pieces, body = done
        with self._folder.lock:
            held = self._folder.append(pieces, body)
            if held is None:
                return
            size, rows = held
            kind = Kind(int(rows["source"][0]), size)
            expected = self._expected[self._kinds.index(kind)]
            for piece, came in zip(*np.unique(self._pieces(size, rows), return_counts=True), strict=True):
                expected[int(piece)] = max(0, expected.get(int(piece), 0) - int(came))
            for piece in pieces:
                expected.pop(piece, None)
            self.counts[kind] += len(rows)
            if kind.source == RECORDED:
                self._ready += len(rows)
            else:
                last_plies = rows["ply"][np.isin(self._pieces(size, rows), pieces)]
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
            # Labelling continues meanwhile: packing takes a core for half a minute.
            self._packing = self._packer.submit(self._cut)

    def _cut(self, everything: bool = False) -> None:
        """Write the positions of all finished games, or of all, as a shard."""
        folder = self._folder
        with folder.lock:
            rows = self._rows()
            pieces = {size: self._pieces(size, of_size) for size, of_size in rows.items()}
            is_in = {size: folder.done.has(of_size) | everything for size, of_size in pieces.items()}
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
            np.unique(np.concatenate([pieces[size][is_in[size]] for size in chosen])), self._blocks_left,
        )  # fmt: skip
        with folder.lock:
            self._ready -= len(labels.game)

    def _blocks_left(self) -> list[Block]:
        """The rows in no shard as blocks of a journal. The lock is held."""
        found = []
        for size, rows in self._rows().items():
            pieces = np.unique(self._pieces(size, rows))
            if len(rows):
                found.append(Block(pieces[self._folder.done.has(pieces)], pack_rows(size, rows)))
        return found


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
    check_player(spec, sizes, options.distribution)
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
