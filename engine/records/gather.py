"""Parallel reading of many game files: worker processes turn batches of documents into games and counts, in order.

The calling process reads the disk and unpacks archives; the workers parse, check, filter and fingerprint
(:func:`read_batch`), which costs ten times as much. Only a few batches are in flight at a time, so memory stays
bounded; the results do not depend on the number of workers.
"""

import functools
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.go.sgf import read_sgf_games
from engine.records.archive import Document, documents
from engine.records.duplicates import fingerprints
from engine.records.filters import Filters
from engine.records.games import Games, read_games, select
from engine.records.replay import check_game
from engine.records.schema import join
from engine.records.sgf_records import row_of, to_games

BATCH_FILES = 256
BATCH_BYTES = 1 << 20
JOINED_ROWS = 10000
MAX_BROKEN = 10000
"""Number of unreadable games in one file after which the rest of the file is skipped"""
QUEUE = 3
"""Number of batches queued or in work for each worker process"""


class DocumentBatch(NamedTuple):
    """Documents of one source, the task of a worker; ``source`` is the index of the source."""

    source: int
    documents: list[Document]


class Gathered(NamedTuple):
    """The games and counts from one :class:`DocumentBatch`."""

    source: int
    files: int
    found: int
    """number of games found, the unreadable ones included"""
    problems: list[tuple[str, str]]
    """name and reason of each unreadable file or game"""
    removed: dict[str, int]
    """by filter, the number of games that it removed"""
    games: Games | None
    """the games that passed all filters; None = no game passed"""
    keys: np.ndarray
    """uint64[G, 3]: :func:`engine.records.duplicates.fingerprints` of ``games``"""
    bytes_read: int
    """bytes read from disk"""


def gather(sources: Sequence[Path], filters: Filters, beginning: int, workers: int) -> Iterator[Gathered]:
    """Read, check, filter and fingerprint all games of some sources, batch by batch.

    Args:
        beginning: number of moves in the third fingerprint.
        workers: number of worker processes; 1 = read in the calling process.
    Raises:
        ValueError: a source does not exist.
        BrokenProcessPool: a worker was killed, for example when memory ran out.
    """
    read = functools.partial(read_batch, filters=filters, beginning=beginning)
    yield from _mapped(read, _batches(sources), workers)


def _batches(sources: Sequence[Path]) -> Iterator[DocumentBatch]:
    """All documents of the sources in batches, each of one source; a packed shard is the last of its batch."""
    for source, path in enumerate(sources):
        waiting: list[Document] = []
        size = 0
        for document in documents(path):
            waiting.append(document)
            size += len(document.data)
            if len(waiting) == BATCH_FILES or size >= BATCH_BYTES or document.is_shard:
                yield DocumentBatch(source, waiting)
                waiting, size = [], 0
        if waiting:
            yield DocumentBatch(source, waiting)


def _mapped(function: Callable, items: Iterable, workers: int) -> Iterator:
    """Results of a function in the order of the items, from ``workers`` processes; 1 = from the calling process."""
    if workers == 1:
        yield from map(function, items)
        return
    # Spawned: the fork of a process with threads (progress bars, numerical libraries) may hang.
    with ProcessPoolExecutor(workers, get_context("spawn"), _leave_interrupts) as pool:
        waiting: deque = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > QUEUE * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _leave_interrupts() -> None:
    """Ignore Ctrl-C in a worker: it reaches every process of the terminal, and the parent process stops the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def read_batch(batch: DocumentBatch, filters: Filters, beginning: int) -> Gathered:
    """Read, check, filter and fingerprint the games of a batch; ``beginning`` is as for :func:`gather`."""
    problems: list[tuple[str, str]] = []
    found, parts = 0, []
    rows: list[dict[str, Any]] = []
    files = [document for document in batch.documents if document.data or document.is_shard or document.problem]
    for document in files:
        try:
            if document.problem:
                problems.append((document.name, document.problem))
            elif document.is_shard:
                games = read_games(Path(document.name))
                found += len(games.size)
                parts.append(_possible(document.name, games, problems))
            else:
                found += _read_document(document, rows, parts, problems)
        except Exception as error:
            # A bug in our parser must not end hours of work: the file is listed among the problems.
            problems.append((document.name, f"{type(error).__name__}: {error}"))
    if rows:
        parts.append(to_games(rows))
    removed: dict[str, int] = {}
    kept, keys = None, np.zeros((0, 3), np.uint64)
    if parts:
        games = join(parts)
        keep, removed = filters.apply(games)
        if keep.any():
            kept = select(games, keep)
            keys = fingerprints(kept, beginning)
    bytes_read = sum(document.bytes_read for document in batch.documents)
    return Gathered(batch.source, len(files), found, problems, removed, kept, keys, bytes_read)


def _read_document(document: Document, rows: list[dict], parts: list[Games], problems: list[tuple[str, str]]) -> int:
    """Append each game of an SGF file to ``rows``, or its error to ``problems``; returns the number of games.

    Every ``JOINED_ROWS`` rows are joined into one of ``parts``, since a row takes twenty times as much memory.
    """
    number, broken = 0, 0
    for number, game in enumerate(read_sgf_games(document.data), 1):
        try:
            if isinstance(game, ValueError):
                raise game
            rows.append(row_of(game))
        except ValueError as error:
            name = document.name if number == 1 else f"{document.name}, game {number}"
            problems.append((name, str(error)))
            broken += 1
        if len(rows) == JOINED_ROWS:
            parts.append(to_games(rows))
            rows.clear()
        if broken == MAX_BROKEN:
            problems.append((document.name, f"{broken} games of this file cannot be read: the rest is skipped"))
            break
    return number


def _possible(name: str, games: Games, problems: list[tuple[str, str]]) -> Games:
    """The games of a shard that have moves and can be replayed; append every other game to the problems."""
    keep = np.zeros(len(games.size), bool)
    for game, size in enumerate(games.size.tolist()):
        moves = games.moves[games.offsets[game] : games.offsets[game + 1]]
        stones = games.setup[games.setup_offsets[game] : games.setup_offsets[game + 1]]
        try:
            if not len(moves):
                raise ValueError("no moves")
            check_game(size, stones, int(games.first[game]), moves)
            keep[game] = True
        except ValueError as error:
            problems.append((f"{name}, game {game + 1}", str(error)))
    return select(games, keep)
