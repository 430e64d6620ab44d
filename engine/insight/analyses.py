"""Many positions analysed side by side in one process: a search each, and one inference server for all.

Each thread of an :class:`Analyses` takes the most urgent job, searches its position from an empty tree, and says what
it found. A search of few visits has few leaves in flight; those of all searches are merged into one queue, so that
batches are full where many positions wait, and where few wait each search gets more threads and more of the memory.
"""

import heapq
import itertools
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from engine.config import SearchOptions
from engine.go.board import META_SIZE
from engine.go.game import Game
from engine.go.position import Position
from engine.go.rules import RULE_KOMI_X2
from engine.inference.server import InferenceServer, NetworkFailed
from engine.insight.raw_outputs import NOTHING, PositionOutput, PositionQuery, score_stdev
from engine.nets.notices import say_once
from engine.play.backend import show_board, warn_of_komi
from engine.play.factory import Parts, fitting, ownership_tables, parts_with
from engine.play.score import root_ending
from engine.search.endings import RootEnding
from engine.search.move_filter import EVERY_MOVE, MoveFilter
from engine.search.report import Report, Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tuning import FREE_MIB, resolved, tree_bytes, working_bytes

MOST_WARM_UP = 19
MOST_PARTS = 64
"""Sets of options whose parts are kept; clients that try settings out send ever new ones"""
LEAST_MIB = 16
"""Memory for each of the positions that are searched at once; where there is less, they are fewer"""
RAW_S = 0.5
"""How long the raw outputs are waited for where a job is cut short, and by a report of a search that goes on"""
PATIENCE_S = 30.0
"""How long they are waited for at the end of a search, to which the network has answered"""
AT_ONCE = {"cpu": 16, "gpu": 64}
"""Positions at once where nothing else is wanted: a search of few visits has a leaf or two in flight"""


class Analysis(NamedTuple):
    """What is known of a position."""

    report: Report
    raw: PositionOutput

    @property
    def ownership_black(self) -> np.ndarray | None:
        """The search's ownership, or the network's; None = neither is known."""
        return self.raw.ownership_black if self.report.ownership_black is None else self.report.ownership_black

    def score_stdev(self) -> float | None:
        """How far the final score may lie from the lead; None where ownership is not known."""
        return score_stdev(self.ownership_black)


@dataclass(frozen=True)
class Task:
    """A position, and how it is to be analysed."""

    position: Position
    options: SearchOptions
    visits: int
    seconds: float = 0.0
    """0 = no limit"""
    moves: MoveFilter = EVERY_MOVE
    every_prior: bool = False
    """reports hold all moves, those too that have no visit"""
    ownership: bool = False
    """reports say who owns what, for each move too"""
    interval_s: float = math.inf
    """between reports during the search"""
    first_s: float = math.inf
    """until the first of them; infinite = there are none"""


class Job:
    """A task on its way. Threads: any may read."""

    def __init__(self, task: Task, priority: int, tell: Callable[[Analysis | None, bool], None],
                 fail: Callable[[str], None]) -> None:  # fmt: skip
        """Made by those who :meth:`Analyses.submit` it.

        Args:
            priority: larger ones first; among equals the older.
            tell: given what was found and whether the search goes on; once, at the end, it does not. None = the job
                was ended before anything was found.
            fail: given one line, in place of the last ``tell``: the network failed before anything was found.
        """
        self.task, self.priority, self.tell, self.fail = task, priority, tell, fail
        self.ended = threading.Event()
        """set when the job is to end as it stands"""
        self.search: Search | None = None
        """while it runs"""
        self.is_taken = False


class Analyses:
    """Searches side by side. Threads: one submits, ends and closes."""

    def __init__(self, parts: Parts, server: InferenceServer | None, at_once: int) -> None:
        """Start the threads.

        Args:
            parts: as loaded; those of each task's options are derived from them.
            server: evaluates for all searches, made with ``shared``; None = there is no network.
            at_once: positions that are searched side by side, as many as :func:`positions_at_once` allows.
        """
        self._loaded, self._server, self._at_once = parts, server, at_once
        self.parts_of = lru_cache(MOST_PARTS)(partial(parts_with, parts))
        """what searches with some options are made of; arguments and errors as of :func:`parts_with`"""
        self._queue: list[tuple[int, int, Job]] = []
        self._numbers = itertools.count()
        self._running: list[Job] = []
        self._changed = threading.Condition()
        self._is_closing = False
        whole = resolved(parts.options, server)
        self._tree_bytes = tree_bytes(whole, server is not None)
        """memory of all trees"""
        self._sizes_seen: set[int] = set()
        self._preparing = threading.Lock()
        self._threads = [threading.Thread(target=self._run, name=f"analysis-{n}", daemon=True) for n in range(at_once)]
        for thread in self._threads:
            thread.start()

    def warm_up(self, size: int, visits: int) -> None:
        """Analyse an empty board and wait for it, so that everything has been used once."""
        done = threading.Event()
        position = Game(min(size, MOST_WARM_UP)).position
        task = Task(position, self._loaded.options, visits)
        self.submit([Job(task, 0, lambda found, goes_on: done.set(), lambda reason: done.set())])
        done.wait()

    def submit(self, jobs: list[Job]) -> None:
        """Queue jobs; returns at once."""
        with self._changed:
            for job in jobs:
                heapq.heappush(self._queue, (-job.priority, next(self._numbers), job))
            self._changed.notify(len(jobs))

    def end(self, jobs: list[Job]) -> None:
        """End jobs as they stand: those that have not begun report here, the others report what they found."""
        with self._changed:
            waiting = [job for job in jobs if not (job.is_taken or job.ended.is_set())]
            for job in jobs:
                job.ended.set()
                if job.search is not None:
                    job.search.stop()
        for job in waiting:
            job.tell(None, False)

    def finish(self) -> None:
        """Wait until all jobs are done; no more may be submitted."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """End all jobs, and the threads."""
        with self._changed:
            jobs = [job for _, _, job in self._queue] + self._running
        self.end(jobs)
        self.finish()

    def forget(self) -> None:
        """Drop what is cached of the network's outputs."""
        if self._server is not None:
            self._server.forget()

    def _run(self) -> None:
        """A thread: one job after the other."""
        while (taken := self._take()) is not None:
            job, active = taken
            try:
                self._analyse(job, active)
            except Exception as error:
                if not isinstance(error, NetworkFailed):
                    traceback.print_exc(file=sys.stderr)
                job.fail(f"{type(error).__name__}: {' '.join(str(error).split())}")
            finally:
                with self._changed:
                    job.search = None
                    self._running.remove(job)
                    self._share_memory()

    def _take(self) -> tuple[Job, int] | None:
        """The next job, and how many there are to share the machine with, itself included; None = the end."""
        with self._changed:
            while True:
                while self._queue:
                    job = heapq.heappop(self._queue)[2]
                    if not job.ended.is_set():
                        job.is_taken = True
                        self._running.append(job)
                        return job, min(self._at_once, len(self._running) + len(self._queue))
                if self._is_closing:
                    return None
                self._changed.wait()

    def _analyse(self, job: Job, active: int) -> None:
        """Search a job's position, and say what was found."""
        task, size = job.task, int(job.task.position.board.meta[META_SIZE])
        parts = fitting(self.parts_of(task.options), size)
        server = self._server if parts.networks else None
        if server is not None:
            warn_of_komi(server.spec, task.position.rules[RULE_KOMI_X2] / 2)
        self._prepare(server, size)
        query = PositionQuery(server, parts.encoder, task.position) if server and parts.encoder else None
        search = Search(_for_one(parts.options, server, active), server, parts.encoder, parts.patterns,
                        partial(ownership_tables, parts))  # fmt: skip
        try:
            position = search.set_position(task.position)
            with self._changed:
                job.search = search
                self._share_memory()
            fewest = size * size + 1 if task.every_prior else 0
            ending = root_ending(search, position, partial(ownership_tables, parts))
            watcher = Watcher(partial(_tell, job, query, ending), task.interval_s, task.first_s, fewest, task.ownership)
            limits = SearchLimits(task.visits, task.seconds, interrupt=job.ended)
            try:
                report = search.run(limits, task.moves, watcher, wide_root_noise=task.options.wide_root_noise,
                                    ending=ending)  # fmt: skip
                if search.is_full and report.visits < task.visits:
                    say_once("searches end early, their share of --memory taken: it may be larger")
            except NetworkFailed as error:
                say_once(str(error))
                report = search.report(fewest_moves=fewest)
                if not report.visits:
                    job.fail(str(error))
                    return
            job.tell(_analysis(report, _raw_output(job, query), ending) if report.visits else None, False)
        finally:
            search.close()
            if query is not None:
                query.abandon()

    def _share_memory(self) -> None:
        """Give each search that runs its part of the memory: there are more or fewer of them now. The lock is held."""
        searches = [job.search for job in self._running if job.search is not None]
        parts = shares([search.memory_bytes for search in searches], self._tree_bytes, self._at_once)
        for search, part in zip(searches, parts, strict=True):
            search.limit_memory(part)

    def _prepare(self, server: InferenceServer | None, size: int) -> None:
        """Let the network see its first board of a size."""
        with self._preparing:
            if server is not None and size not in self._sizes_seen:
                self._sizes_seen.add(size)
                show_board(server, size)


def positions_at_once(parts: Parts, wanted: int = 0) -> int:
    """How many positions to analyse side by side: no more than memory allows.

    Args:
        wanted: 0 = as many as suit the device; where more are wanted than there may be, a line says so.
    """
    network = parts.networks[0] if parts.networks else None
    options = resolved(parts.options, network)
    beside = working_bytes(replace(options, threads=1), network, parts.encoder)
    most = max(1, min(options.memory // LEAST_MIB, (max(FREE_MIB, options.memory) << 20) // beside))
    if wanted > most:
        say_once(f"{most} positions are searched at once, not {wanted}: --memory {options.memory} allows no more")
    return min(most, wanted or AT_ONCE["gpu" if network is not None and network.batches_requests else "cpu"])


def shares(taken: Sequence[int], whole: int, at_once: int) -> list[int]:
    """What each of some trees may take: even parts, but what one has taken already it keeps. In all no more than there
    is, of which half is kept for the searches that may yet begin.

    Args:
        taken: bytes, of each tree.
        whole: bytes.
        at_once: most trees there will be.
    """
    left, count = whole - (at_once - len(taken)) * (whole // (2 * at_once)), len(taken)
    for one in sorted(taken, reverse=True):
        if one * count <= left:
            break
        left, count = left - one, count - 1
    return [max(one, left // max(count, 1)) for one in taken]


def _for_one(options: SearchOptions, server: InferenceServer | None, active: int) -> SearchOptions:
    """The options of one search of ``active``: its part of the threads, and a seed of its own if none is given."""
    threads = max(1, resolved(options, server).threads // active)
    return replace(options, threads=threads).seeded()


def _tell(job: Job, query: PositionQuery | None, ending: RootEnding, report: Report) -> None:
    """A report during the search."""
    if not job.ended.is_set():
        raw = NOTHING if query is None else query.outputs_within(RAW_S)
        job.tell(_analysis(report, raw, ending), True)


def _analysis(report: Report, raw: PositionOutput, ending: RootEnding) -> Analysis:
    """What was found, with the count of the position where the game is at its end."""
    return Analysis(ending.applied(report) if ending.matters(lambda: raw.ownership_black) else report, raw)


def _raw_output(job: Job, query: PositionQuery | None) -> PositionOutput:
    """The raw outputs, where they come; a job that is cut short does not wait for them for long, none for ever."""
    if query is None:
        return NOTHING
    try:
        return query.outputs_unless(job.ended, time.perf_counter() + PATIENCE_S, RAW_S)
    except NetworkFailed as error:
        say_once(str(error))
        return NOTHING
