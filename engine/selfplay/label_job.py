"""Labelling as numbered work for an executor: what is sent to where games are labelled, and what comes back.

A piece of work is a game: one that the network plays, or the positions taken of a recorded one
(:func:`engine.selfplay.label_options.pieces_of`). Rows come back as soon as they are evaluated, a piece of work is done
with the last of its rows; a game that was interrupted resumes after its moves so far.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from engine.nets.on_device import load_network
from engine.records.labels import RECORDED, SELF_PLAYED
from engine.records.schema import join
from engine.selfplay.games import batches_for
from engine.selfplay.label_options import LabelOptions, game_of, pieces_of
from engine.selfplay.label_rows import IN_RECORD, new_rows, pack_rows
from engine.selfplay.labelled_games import LabelledGames
from engine.selfplay.recorded import RecordedGames, Taken
from engine.system.executor import Done, Files
from engine.train.teacher import Teacher


class LabelWorker:
    """Labels games. See :class:`engine.system.executor.Worker`."""

    def __init__(
        self, teacher: Teacher, options: LabelOptions, recorded: RecordedGames, begun: Mapping[int, Sequence[int]],
        at_once: int, threads: int = 0,
    ) -> None:  # fmt: skip
        """Take the teacher, which the caller closes.

        Args:
            begun: the moves so far (policy indices) of interrupted games of self-play, by pieces of work.
            at_once: positions of recorded games a batch, and games of self-play of a thread and size.
            threads: batches under way at once; 0 = the number that keeps the teacher busy.
        """
        self.threads = threads or batches_for(teacher.server)
        self.teacher, self.options, self.recorded, self.at_once = teacher, options, recorded, at_once
        self._begun = begun

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`: rows of one kind, always of the one that lacks most.

        Raises:
            RuntimeError: the network failed.
            ValueError: the shards lack a game.
        """
        shares = self.options.kinds()
        work = [(_Recorded if kind.source == RECORDED else _Playing)(self, kind.size) for kind in shares]
        labelled = np.zeros(len(work))
        while not stopped.is_set():
            wanted = work[int(np.argmin(labelled))]
            # Pieces come in no order of kinds: those of others wait, up to a further batch of each.
            while wanted.room > 0 and all(one.room > -self.at_once for one in work):
                piece = next(numbers, None)
                if piece is None:
                    break
                place, number = game_of(piece, len(work))
                work[place].add(number, self._begun.get(piece, ()))
            place = int(np.argmin([count if one.held else np.inf for one, count in zip(work, labelled, strict=True)]))
            if not work[place].held:
                return
            ended, rows = work[place].step()
            labelled[place] += len(rows) / list(shares.values())[place]
            yield pieces_of(np.full(len(ended), place), ended, len(work)).tolist(), pack_rows(work[place].size, rows)


class _Recorded:
    """Recorded games of one size that wait to be labelled."""

    def __init__(self, worker: LabelWorker, size: int) -> None:
        self.size, self._worker = size, worker
        self.held: dict[int, Taken] = {}
        """by the games' numbers"""
        self.room = worker.at_once
        """positions that the next batch may still take, each game whole"""

    def add(self, number: int, _: Sequence[int]) -> None:
        """Take a game.

        Raises:
            ValueError: the shards lack it.
        """
        taken = self._worker.recorded.take(self.size, number)
        if taken is None:
            raise ValueError(f"there is no recorded game {number} of {self.size}x{self.size} in the shards")
        self.held[number] = taken
        self.room -= len(taken.plies)

    def step(self) -> tuple[np.ndarray, np.ndarray]:
        """Label what waits: int64[K], the games that are done with it, and rows."""
        worker, options = self._worker, self._worker.options
        ended, games = np.array(list(self.held)), join([taken.game for taken in self.held.values()])
        plies = [taken.plies for taken in self.held.values()]
        which, joined = np.repeat(np.arange(len(ended)), list(map(len, plies))), np.concatenate(plies)
        rules, symmetries = options.rules_of(self.size, ended[which]), np.zeros(len(which), np.int64)
        outputs = worker.teacher.targets(games, which, joined, rules, symmetries)
        self.held, self.room = {}, worker.at_once
        return ended, new_rows(self.size, options.moves, RECORDED, ended[which], joined, IN_RECORD, outputs)


class _Playing:
    """Games of self-play of one size."""

    def __init__(self, worker: LabelWorker, size: int) -> None:
        self.size, self._moves = size, worker.options.moves
        self._games = LabelledGames(
            worker.teacher.server, size, worker.at_once, worker.options.distribution, worker.options.seed
        )
        self._waiting: list[tuple[int, Sequence[int]]] = []
        self.held = 0
        """games in play or waiting"""

    @property
    def room(self) -> int:
        """Games that may still begin."""
        return self._games.free - len(self._waiting)

    def add(self, number: int, moves: Sequence[int]) -> None:
        """Take a game that has had some moves."""
        self._waiting.append((number, moves))
        self.held += 1

    def step(self) -> tuple[np.ndarray, np.ndarray]:
        """A move in each game: int64[K], those that end with it, and rows."""
        free = self._games.free
        self._games.begin(self._waiting[:free])
        self._waiting = self._waiting[free:]
        done = self._games.step()
        ended = done.numbers[done.ended]
        self.held -= len(ended)
        return ended, new_rows(self.size, self._moves, SELF_PLAYED, done.numbers, done.plies, done.moves, done.outputs)


@dataclass(frozen=True)
class LabelJob:
    """Labelling, wherever it is done. See :class:`engine.system.executor.Job`."""

    options: LabelOptions
    network: tuple[str, ...]
    """the network's file, or both of its files, as the executor's files are named"""
    shards: tuple[str, ...]
    """those of recorded games"""
    begun: Mapping[int, Sequence[int]]
    """see :class:`LabelWorker`"""
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> LabelWorker:
        """A worker with a network of its own, on the GPU of this process if it has one."""
        teacher = Teacher(load_network(tuple(files[name] for name in self.network), "auto"), cores, self.at_once)
        stack.callback(teacher.close)
        recorded = RecordedGames([files[name] for name in self.shards], self.options.seed, self.options.every)
        return LabelWorker(teacher, self.options, recorded, self.begun, self.at_once)
