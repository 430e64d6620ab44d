"""Options of labelling, the numbers of games as tasks, and the serialisable labelling job for an executor.

A task is a game: one that the network plays, or the sampled positions of a recorded one (:func:`tasks_of`). Rows are
returned as soon as they are evaluated, and the last row of a task finishes it; an interrupted game continues after the
moves that were played.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from engine.config.declaration import Checked, option
from engine.nets.on_device import load_network
from engine.records.labels import RECORDED, SELF_PLAYED
from engine.records.schema import join
from engine.selfplay.game_distribution import GameDistribution, Shares
from engine.selfplay.games import batches_for
from engine.selfplay.label_rows import IN_RECORD, new_rows, pack_rows
from engine.selfplay.labelled_games import LabelledGames
from engine.selfplay.recorded import RecordedGames, Taken
from engine.system.executor import Done, Files
from engine.train.teacher import Teacher

SOURCES = ("recorded", "self-played")


class Kind(NamedTuple):
    """A kind of positions: their source and board size."""

    source: int
    size: int

    def __str__(self) -> str:
        return f"{self.size}x{self.size} {SOURCES[self.source]}"


@dataclass(frozen=True)
class LabelOptions(Checked):
    """Options of a labelling run, which resumes only with the same options."""

    recorded: Shares[int]
    """board sizes of positions from recorded games, and their shares"""
    self_play: Shares[int]
    """board sizes of positions from self-played games, and their shares"""
    distribution: GameDistribution
    every: int = option(12, "label every N-th position of a recorded game", low=1)
    moves: int = option(12, "number of most probable moves in a label", low=1, high=64)
    positions_per_shard: int = option(80000, "positions per shard", low=1)
    seed: int = option(1, "random seed", low=0)

    def record(self) -> dict[str, Any]:
        """The options for manifests."""
        shares = {name: {str(size): share for size, share in getattr(self, name)} for name in ("recorded", "self_play")}
        rest = {name: getattr(self, name) for name in ("every", "moves", "positions_per_shard", "seed")}
        return shares | self.distribution.record() | rest

    def kinds(self) -> dict[Kind, float]:
        """The kinds of positions to label, and their shares."""
        recorded = {Kind(RECORDED, size): share for size, share in self.recorded}
        return recorded | {Kind(SELF_PLAYED, size): share for size, share in self.self_play}

    def rules_of(self, size: int, numbers: np.ndarray) -> np.ndarray:
        """int64[K, RULE_FIELDS]: the rules of games on one board size, drawn by their numbers."""
        return self.distribution.draw(self.seed, numbers, size)[0]


Places = TypeVar("Places", int, np.ndarray)
RUN = 1024
"""Number of consecutive tasks that are games of one kind, so that finished tasks compress to few ranges"""


def tasks_of(kind: Places, numbers: Places, n_kinds: int) -> Places:
    """Task numbers of games of one kind.

    Args:
        kind: index of the kind.
        numbers: the games' numbers within their kind.
        n_kinds: number of kinds in the run.
    """
    return (numbers // RUN * n_kinds + kind) * RUN + numbers % RUN


def game_of(task: int, n_kinds: int) -> tuple[int, int]:
    """Kind index and game number of a task: the inverse of :func:`tasks_of`."""
    return task // RUN % n_kinds, task // (RUN * n_kinds) * RUN + task % RUN


class LabelWorker:
    """Labels games. See :class:`engine.system.executor.Worker`."""

    def __init__(
        self, teacher: Teacher, options: LabelOptions, recorded: RecordedGames, begun: Mapping[int, Sequence[int]],
        at_once: int, threads: int = 0,
    ) -> None:  # fmt: skip
        """Prepare labelling; the caller closes the teacher.

        Args:
            begun: moves (policy indices) already played in interrupted self-play games, by task.
            at_once: positions in a batch of recorded games, and self-play games of each thread and board size.
            threads: number of threads, each with a batch in flight; 0 = enough to keep the teacher busy.
        """
        self.threads = threads or batches_for(teacher.server)
        self.teacher, self.options, self.recorded, self.at_once = teacher, options, recorded, at_once
        self._begun = begun

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`; yields packed rows of the kind furthest below its share.

        Raises:
            RuntimeError: the network failed.
            ValueError: a game is not in the shards.
        """
        shares = self.options.kinds()
        work = [(_Recorded if source == RECORDED else _Playing)(self, size) for source, size in shares]
        labelled = np.zeros(len(work))
        while not stopped.is_set():
            wanted = work[int(np.argmin(labelled))]
            # Tasks arrive in any order of kinds: those of other kinds wait, up to a further batch of each.
            while wanted.room > 0 and all(one.room > -self.at_once for one in work):
                task = next(numbers, None)
                if task is None:
                    break
                kind, number = game_of(task, len(work))
                work[kind].add(number, self._begun.get(task, ()))
            kind = int(np.argmin([count if one.held else np.inf for one, count in zip(work, labelled, strict=True)]))
            if not work[kind].held:
                return
            ended, rows = work[kind].step()
            labelled[kind] += len(rows) / list(shares.values())[kind]
            yield tasks_of(np.full(len(ended), kind), ended, len(work)).tolist(), pack_rows(work[kind].size, rows)


class _Recorded:
    """Collects recorded games of one board size into a batch, and labels it."""

    def __init__(self, worker: LabelWorker, size: int) -> None:
        self.size, self._worker = size, worker
        self.held: dict[int, Taken] = {}
        """games in the batch, by number"""
        self.room = worker.at_once
        """positions for which the batch has room; a game that exceeds it is added whole"""

    def add(self, number: int, _: Sequence[int]) -> None:
        """Add the sampled positions of a game to the batch.

        Raises:
            ValueError: the game is not in the shards.
        """
        taken = self._worker.recorded.take(self.size, number)
        if taken is None:
            raise ValueError(f"there is no recorded game {number} of {self.size}x{self.size} in the shards")
        self.held[number] = taken
        self.room -= len(taken.plies)

    def step(self) -> tuple[np.ndarray, np.ndarray]:
        """Label the batch and empty it; returns the numbers of its games, int64[K], and the rows of their positions."""
        worker, options = self._worker, self._worker.options
        ended, games = np.array(list(self.held)), join([taken.game for taken in self.held.values()])
        plies = [taken.plies for taken in self.held.values()]
        which, joined = np.repeat(np.arange(len(ended)), list(map(len, plies))), np.concatenate(plies)
        rules, symmetries = options.rules_of(self.size, ended[which]), np.zeros(len(which), np.int64)
        outputs = worker.teacher.targets(games, which, joined, rules, symmetries)
        self.held, self.room = {}, worker.at_once
        return ended, new_rows(self.size, options.moves, RECORDED, ended[which], joined, IN_RECORD, outputs)


class _Playing:
    """Plays games of one board size, and labels their positions."""

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
        """Number of free slots minus number of waiting games."""
        return self._games.free - len(self._waiting)

    def add(self, number: int, moves: Sequence[int]) -> None:
        """Add a game to the waiting ones, with the moves (policy indices) already played in it."""
        self._waiting.append((number, moves))
        self.held += 1

    def step(self) -> tuple[np.ndarray, np.ndarray]:
        """Play a move in each game; returns the numbers of games that it ended, int64[K], and a row for each move."""
        free = self._games.free
        self._games.begin(self._waiting[:free])
        self._waiting = self._waiting[free:]
        done = self._games.step()
        ended = done.numbers[done.ended]
        self.held -= len(ended)
        return ended, new_rows(self.size, self._moves, SELF_PLAYED, done.numbers, done.plies, done.moves, done.outputs)


@dataclass(frozen=True)
class LabelJob:
    """Serialisable labelling job. See :class:`engine.system.executor.Job`."""

    options: LabelOptions
    network: tuple[str, ...]
    """names, among the executor's files, of the network's one or two files"""
    shards: tuple[str, ...]
    """names, among the executor's files, of the shards of recorded games"""
    begun: Mapping[int, Sequence[int]]
    """moves (policy indices) already played in interrupted self-play games, by task"""
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> LabelWorker:
        """A worker that loads the network, onto the GPU of this process if it has one."""
        teacher = Teacher(load_network(tuple(files[name] for name in self.network), "auto"), cores, self.at_once)
        stack.callback(teacher.close)
        recorded = RecordedGames([files[name] for name in self.shards], self.options.seed, self.options.every)
        return LabelWorker(teacher, self.options, recorded, self.begun, self.at_once)
