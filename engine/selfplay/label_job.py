"""Labelling as numbered work for a crew: what travels to where games are labelled, and what comes back.

A piece of work is a game: one that the network plays, or the positions taken of a recorded one
(:func:`engine.selfplay.label_options.game_of`). It comes back whole, as rows of a journal.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.nets.on_device import load_network
from engine.records.labels import RECORDED, SELF_PLAYED
from engine.selfplay.journal import IN_RECORD, new_rows
from engine.selfplay.label_options import Kind, LabelOptions, game_of
from engine.selfplay.labelled_games import LabelledGames
from engine.selfplay.many_games import groups_for
from engine.selfplay.recorded import RecordedGames, Taken
from engine.system.crew import Done, Files
from engine.train.teacher import Teacher


def recorded_rows(teacher: Teacher, options: LabelOptions, size: int, taken: Taken) -> np.ndarray:
    """Positions of recorded games, evaluated: rows of a journal.

    Raises:
        RuntimeError: the network failed.
    """
    rules, symmetries = options.rules_of(size, taken.numbers), np.zeros(len(taken.rows), np.int64)
    outputs = teacher.targets(taken.games, taken.rows, taken.plies, rules, symmetries)
    return new_rows(size, options.moves, RECORDED, taken.numbers, taken.plies, IN_RECORD, outputs)


def played_rows(games: LabelledGames, moves: int) -> tuple[np.ndarray, np.ndarray]:
    """A move in each game: rows of a journal, and bool[B], which games have ended.

    Raises:
        RuntimeError: the network failed.
    """
    done = games.step()
    return new_rows(games.size, moves, SELF_PLAYED, done.numbers, done.plies, done.moves, done.outputs), done.ended


class LabelWorker:
    """Labels whole games. See :class:`engine.system.crew.Worker`."""

    def __init__(
        self, teacher: Teacher, options: LabelOptions, shards: Sequence[Path], begun: Mapping[int, Sequence[int]],
        at_once: int,
    ) -> None:  # fmt: skip
        """Take the teacher, which the caller closes.

        Args:
            shards: of recorded games.
            begun: the moves so far (policy indices) of games that were broken off, by pieces of work.
            at_once: positions of recorded games a batch, and games of self-play of a thread and size.
        """
        self.threads = groups_for(teacher.server)
        self._teacher, self._options, self._begun, self._at_once = teacher, options, begun, at_once
        self._recorded = RecordedGames(shards, options.seed, options.every)
        self._kinds = list(options.kinds())

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.crew.Worker.do`: rows of a journal, of games of one kind.

        Raises:
            RuntimeError: the network failed.
        """
        recorded = {kind: list[int]() for kind in self._kinds if kind.source == RECORDED}
        playing = {kind: _Playing(self._new_games(kind.size)) for kind in self._kinds if kind.source == SELF_PLAYED}
        for piece in numbers:
            kind, number = game_of(piece, self._kinds)
            if kind.source == RECORDED:
                recorded[kind].append(number)
                # Every game has a position at least.
                if len(recorded[kind]) >= self._at_once:
                    yield from self._label_recorded(kind, recorded[kind], stopped)
                    recorded[kind] = []
            else:
                games = playing[kind]
                games.begin(number, self._begun.get(piece, ()))
                while games.is_full and not stopped.is_set():
                    yield from self._step(kind, games)
            if stopped.is_set():
                return
        for kind, waiting in recorded.items():
            yield from self._label_recorded(kind, waiting, stopped)
        for kind, games in playing.items():
            while games.held and not stopped.is_set():
                yield from self._step(kind, games)

    def _new_games(self, size: int) -> LabelledGames:
        """Seats for games of self-play."""
        options = self._options
        return LabelledGames(self._teacher.server, size, self._at_once, options.variety, options.seed)

    def _label_recorded(self, kind: Kind, numbers: list[int], stopped: threading.Event) -> Iterator[Done]:
        """Games by batches; those whose numbers follow on each other share one."""
        while numbers and not stopped.is_set():
            run = next((k for k in range(1, len(numbers)) if numbers[k] != numbers[0] + k), len(numbers))
            taken = self._recorded.take(kind.size, numbers[0], self._at_once, run)
            if taken is None:
                raise ValueError(f"there is no game {numbers[0]} of {kind} in the shards")
            done, numbers = np.unique(taken.numbers), numbers[len(np.unique(taken.numbers)) :]
            yield self._done(kind, done.tolist(), recorded_rows(self._teacher, self._options, kind.size, taken))

    def _step(self, kind: Kind, games: "_Playing") -> Iterator[Done]:
        """A move in each game; those that end with it."""
        for number, rows in games.step(self._options.moves):
            yield self._done(kind, [number], rows)

    def _done(self, kind: Kind, numbers: list[int], rows: np.ndarray) -> Done:
        place = self._kinds.index(kind)
        return [number * len(self._kinds) + place for number in numbers], rows.tobytes()


@dataclass
class _Playing:
    """Games of self-play of one size, and their rows so far."""

    games: LabelledGames
    held: dict[int, list[np.ndarray]] = field(default_factory=dict)
    """by the game's number"""

    @property
    def is_full(self) -> bool:
        return not self.games.free

    def begin(self, number: int, moves: Sequence[int]) -> None:
        """Begin a game, or go on with one."""
        self.games.begin([(number, moves)])
        self.held[number] = []

    def step(self, moves: int) -> Iterator[tuple[int, np.ndarray]]:
        """A move in each game; number and rows of those that end with it.

        Args:
            moves: that are kept of a policy.
        """
        rows, ended = played_rows(self.games, moves)
        for k, number in enumerate(rows["number"].tolist()):
            self.held[number].append(rows[k : k + 1])
            if ended[k]:
                yield number, np.concatenate(self.held.pop(number))


@dataclass(frozen=True)
class LabelJob:
    """Labelling, wherever it is done. See :class:`engine.system.crew.Job`."""

    options: LabelOptions
    network: tuple[str, ...]
    """the network's file, or both of its files, as the crew's files are named"""
    shards: tuple[str, ...]
    """those of recorded games"""
    begun: Mapping[int, Sequence[int]]
    """see :class:`LabelWorker`"""
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> LabelWorker:
        """A worker with a network of its own, on the GPU of this process if it has one."""
        paths = tuple(files[name] for name in self.network)
        teacher = Teacher(load_network(paths, "auto"), cores, self.at_once)
        stack.callback(teacher.close)
        return LabelWorker(teacher, self.options, [files[name] for name in self.shards], self.begun, self.at_once)
