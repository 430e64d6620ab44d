"""Concurrent analyses of positions in one process: a search for each, one inference server for all.

Each thread of an :class:`Analyses` takes the job of the highest priority, searches its position from an empty tree, and
reports the results. A search of few visits has few leaves in flight; the server merges the leaves of all searches into
batches, which are full while many positions wait. While few positions wait, each search gets more threads and memory.
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

from engine.config import HumanOptions, SearchOptions
from engine.go.board import META_SIZE
from engine.go.game import Game
from engine.go.position import Position
from engine.go.rules import RULE_KOMI_X2
from engine.inference.server import InferenceServer, NetworkFailed
from engine.insight.raw_outputs import NOTHING, PositionOutput, PositionQuery, score_stdev
from engine.nets.notices import say_once
from engine.play.backend import show_board, warn_of_komi
from engine.play.factory import Parts, fitting, ownership_tables, parts_with
from engine.play.human import EXPLORED_MIB, HumanNetwork, HumanOutput
from engine.play.score import root_ending
from engine.search.endings import RootEnding
from engine.search.move_filter import EVERY_MOVE, MoveFilter
from engine.search.report import Report, Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tuning import FREE_MIB, resolved, tree_bytes, working_bytes

MOST_WARM_UP = 19
MOST_PARTS = 64
"""Maximum number of cached :class:`Parts`, one per set of options; some clients send new options with every query"""
LEAST_MIB = 16
"""Minimum memory of each concurrent search; if memory does not suffice, fewer searches run at once"""
RAW_S = 0.5
"""Longest wait for the network's raw outputs once a job is ended early, and before each report during a search"""
PATIENCE_S = 30.0
"""Longest wait for the network's raw outputs after a search"""
SEARCH_ALONE = HumanOptions()
"""No exploration of human moves"""
AT_ONCE = {"cpu": 16, "gpu": 64}
"""Default number of concurrent searches, by kind of device; each search has only a leaf or two in flight"""


class Analysis(NamedTuple):
    """The results of a search, and the networks' raw outputs for the searched position."""

    report: Report
    raw: PositionOutput
    human: HumanOutput | None = None
    """of the human network beside the main one, for the human profile that was asked for"""
    explored: Report | None = None
    """of the search of human moves (:mod:`engine.play.human`); None = there was none, or it has not ended"""

    @property
    def ownership_black(self) -> np.ndarray | None:
        """The search's ownership, else the network's; None = unknown."""
        return self.raw.ownership_black if self.report.ownership_black is None else self.report.ownership_black

    def score_stdev(self) -> float | None:
        """Standard deviation of the final score in points; None = ownership is unknown."""
        return score_stdev(self.ownership_black)


@dataclass(frozen=True)
class Task:
    """A position to analyse, with options and limits."""

    position: Position
    options: SearchOptions
    """``human_profile`` is that of the human network if there is one beside the main network"""
    visits: int
    seconds: float = 0.0
    """0 = no limit"""
    moves: MoveFilter = EVERY_MOVE
    ownership: bool = False
    """whether reports include ownership, of the position and of each move"""
    interval_s: float = math.inf
    """seconds between reports during the search"""
    first_s: float = math.inf
    """seconds until the first report during the search; 0 = ``interval_s``, infinite = no reports during the search"""
    human: HumanOptions = SEARCH_ALONE
    """of which the exploration of human moves has an effect"""

    def limits(self, begin: float, end: float, interrupt: threading.Event) -> SearchLimits:
        """The limits of a search that gets the visits and the time from one share of them to another."""
        visits = max(1, round(self.visits * end) - round(self.visits * begin))
        return SearchLimits(visits, self.seconds * (end - begin), interrupt=interrupt)


class Job:
    """A task submitted to :class:`Analyses`. Threads: any may read."""

    def __init__(self, task: Task, priority: int, on_report: Callable[[Analysis | None, bool], None],
                 on_failure: Callable[[str], None]) -> None:  # fmt: skip
        """Make a job that waits to be searched.

        Args:
            priority: the job of the highest priority is searched first; among equals the oldest.
            on_report: called with an analysis and True during the search, and once with the last analysis and False.
                The last analysis is None if the job was ended before its search had a visit.
            on_failure: called with one line in place of the last ``on_report``: the network failed before the first
                visit, or the analysis raised an exception.
        """
        self.task, self.priority, self.on_report, self.on_failure = task, priority, on_report, on_failure
        self.ended = threading.Event()
        """set to end the job with the results so far"""
        self.search: Search | None = None
        """the search of this job while it runs, else None"""
        self.is_taken = False


class Analyses:
    """A pool of threads that search, and the queue of their jobs.

    Threads: one thread calls ``submit``, ``end``, ``finish`` and ``close``.
    """

    def __init__(
        self, parts: Parts, server: InferenceServer | None, at_once: int, human: HumanNetwork | None = None
    ) -> None:
        """Start the threads.

        Args:
            parts: as loaded; each search uses them with its task's options (:func:`parts_with`).
            server: inference server of all searches, made with ``shared=True``; None = no network.
            at_once: number of concurrent searches, at most :func:`positions_at_once`.
            human: human network beside the main one; None = none.
        """
        self._loaded, self._server, self._at_once, self._human = parts, server, at_once, human
        self.parts_of = lru_cache(MOST_PARTS)(self._parts_with)
        """by options: the loaded parts with these options (:func:`parts_with`), cached"""
        self._queue: list[tuple[int, int, Job]] = []
        self._numbers = itertools.count()
        self._running: list[Job] = []
        self._changed = threading.Condition()
        self._is_closing = False
        self._options = resolved(parts.options, server)
        self._sizes_seen: set[int] = set()
        self._preparing = threading.Lock()
        self._threads = [threading.Thread(target=self._run, name=f"analysis-{n}", daemon=True) for n in range(at_once)]
        for thread in self._threads:
            thread.start()

    def warm_up(self, size: int, visits: int) -> None:
        """Analyse an empty board and wait for the end, so that kernels are compiled and the network is warm."""
        done = threading.Event()
        position = Game(min(size, MOST_WARM_UP)).position
        task = Task(position, self._loaded.options, visits)
        self.submit([Job(task, 0, lambda found, is_during_search: done.set(), lambda reason: done.set())])
        done.wait()

    def submit(self, jobs: list[Job]) -> None:
        """Queue jobs; returns at once."""
        with self._changed:
            for job in jobs:
                heapq.heappush(self._queue, (-job.priority, next(self._numbers), job))
            self._changed.notify(len(jobs))

    def end(self, jobs: list[Job]) -> None:
        """End jobs early: waiting jobs report None before this returns, running jobs soon report what they have."""
        with self._changed:
            waiting = [job for job in jobs if not (job.is_taken or job.ended.is_set())]
            for job in jobs:
                job.ended.set()
                if job.search is not None:
                    job.search.stop()
        for job in waiting:
            job.on_report(None, False)

    def finish(self) -> None:
        """Wait until all jobs have ended, and stop the threads; no job may be submitted afterwards."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """End all jobs early, and stop the threads."""
        with self._changed:
            jobs = [job for _, _, job in self._queue] + self._running
        self.end(jobs)
        self.finish()

    def forget(self) -> None:
        """Clear the caches of the networks' outputs."""
        for server in (self._server, self._human.server if self._human else None):
            if server is not None:
                server.forget()

    def _parts_with(self, options: SearchOptions) -> Parts:
        """See ``parts_of``; raises ``ValueError`` for options that a network does not allow."""
        if self._human is not None:
            self._human.check_profile(options.human_profile)
            options = replace(options, human_profile="")
        return parts_with(self._loaded, options)

    def _run(self) -> None:
        """Main loop of a thread: analyse one job after another until :meth:`finish` or :meth:`close`."""
        while (taken := self._take()) is not None:
            job, active = taken
            try:
                self._analyse(job, active)
            except Exception as error:
                if not isinstance(error, NetworkFailed):
                    traceback.print_exc(file=sys.stderr)
                job.on_failure(f"{type(error).__name__}: {' '.join(str(error).split())}")
            finally:
                with self._changed:
                    job.search = None
                    self._running.remove(job)
                    self._share_memory()

    def _take(self) -> tuple[Job, int] | None:
        """Wait for the next job; returns this job and the number of jobs that share the machine, itself included.

        Returns None once :meth:`finish` or :meth:`close` was called and no job is left.
        """
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
        """Search a job's position, and report the results."""
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
            ending = root_ending(search, position, partial(ownership_tables, parts))
            watcher = Watcher(
                partial(_report_during, job, query, ending), task.interval_s, task.first_s, ownership=task.ownership
            )
            human = self._human_output(job)
            share = 1.0 - task.human.human_explore if human is not None else 1.0
            limits = task.limits(0.0, share, job.ended)
            try:
                report = search.run(limits, task.moves, watcher, wide_root_noise=task.options.wide_root_noise,
                                    ending=ending)  # fmt: skip
                if search.is_full and report.visits < limits.visits:
                    say_once("searches end early, for their share of --memory is full; increase it")
            except NetworkFailed as error:
                say_once(str(error))
                report = search.report()
                if not report.visits:
                    job.on_failure(str(error))
                    return
            explored = self._explore(job, parts, server, human, share) if human is not None and share < 1.0 else None
            found = _analysis(report, _raw_output(job, query), ending)._replace(human=human, explored=explored)
            job.on_report(found if report.visits else None, False)
        finally:
            search.close()
            if query is not None:
                query.cancel()

    def _human_output(self, job: Job) -> HumanOutput | None:
        """The human network's output for a job's position; None if there is no network, or it is asked for nothing."""
        task, human = job.task, self._human
        if human is None or (human.knows_profiles and not task.options.human_profile):
            return None
        deadline_s = time.perf_counter() + PATIENCE_S
        try:
            return human.output(task.position, task.options.human_profile, deadline_s, job.ended)
        except NetworkFailed as error:
            say_once(f"human network: {error}")
            return None

    def _explore(
        self, job: Job, parts: Parts, server: InferenceServer | None, human: HumanOutput, begin: float
    ) -> Report | None:
        """Search human moves with a job's visits and time from the share ``begin`` on; None if it was ended."""
        if server is None or job.ended.is_set():
            return None
        search = Search(_for_one(parts.options, server, self._at_once), server, parts.encoder, parts.patterns)
        search.limit_memory(EXPLORED_MIB << 20)
        search.set_position(job.task.position)
        with self._changed:
            main, job.search = job.search, search
        try:
            limits = job.task.limits(begin, 1.0, job.ended)
            return search.run(limits, job.task.moves, policy=human.root_policy(job.task.human))
        except NetworkFailed as error:
            say_once(str(error))
            return None
        finally:
            with self._changed:
                job.search = main
            search.close()

    def _share_memory(self) -> None:
        """Divide the memory of trees anew among the running searches. The caller holds the lock."""
        searches = [job.search for job in self._running if job.search is not None]
        whole = tree_bytes(self._options, self._server)
        parts = shares([search.memory_bytes for search in searches], whole, self._at_once)
        for search, part in zip(searches, parts, strict=True):
            search.limit_memory(part)

    def _prepare(self, server: InferenceServer | None, size: int) -> None:
        """Warm the network up for a board size, once for each size."""
        with self._preparing:
            if server is not None and size not in self._sizes_seen:
                self._sizes_seen.add(size)
                show_board(server, size)


def positions_at_once(parts: Parts, wanted: int = 0) -> int:
    """Number of positions to search concurrently, limited by the memory.

    Args:
        wanted: 0 = the device's default; a larger number than the memory allows is reduced with a notice.
    """
    network = parts.networks[0] if parts.networks else None
    options = resolved(parts.options, network)
    beside = working_bytes(replace(options, threads=1), network, parts.encoder)
    most = max(1, min(options.memory // LEAST_MIB, (max(FREE_MIB, options.memory) << 20) // beside))
    if wanted > most:
        say_once(f"{most} positions are searched at once, not {wanted}: --memory {options.memory} allows no more")
    return min(most, wanted or AT_ONCE["gpu" if network is not None and network.batches_requests else "cpu"])


def shares(taken: Sequence[int], whole: int, at_once: int) -> list[int]:
    """Memory limits of the running searches' trees, in bytes: equal shares, but at least what each tree already uses.

    For each search that may still begin, half of an equal share is kept free.

    Args:
        taken: bytes that the tree of each running search uses.
        whole: bytes for all trees.
        at_once: maximum number of concurrent searches.
    """
    left, count = whole - (at_once - len(taken)) * (whole // (2 * at_once)), len(taken)
    for one in sorted(taken, reverse=True):
        if one * count <= left:
            break
        left, count = left - one, count - 1
    return [max(one, left // max(count, 1)) for one in taken]


def _for_one(options: SearchOptions, server: InferenceServer | None, active: int) -> SearchOptions:
    """Options of one of ``active`` searches: an equal share of the threads, and a random seed if they name none."""
    threads = max(1, resolved(options, server).threads // active)
    return replace(options, threads=threads).seeded()


def _report_during(job: Job, query: PositionQuery | None, ending: RootEnding, report: Report) -> None:
    """Pass a report of the running search and the raw outputs so far on to the job, unless the job was ended."""
    if not job.ended.is_set():
        raw = NOTHING if query is None else query.outputs_within(RAW_S)
        job.on_report(_analysis(report, raw, ending), True)


def _analysis(report: Report, raw: PositionOutput, ending: RootEnding) -> Analysis:
    """Join a report and raw outputs; near the game's end the report is corrected by the final score."""
    return Analysis(ending.applied(report) if ending.matters(lambda: raw.ownership_black) else report, raw)


def _raw_output(job: Job, query: PositionQuery | None) -> PositionOutput:
    """Wait for the raw outputs; returns :data:`NOTHING` if the network fails or takes too long.

    The wait is ``PATIENCE_S``, but ``RAW_S`` once the job is ended.
    """
    if query is None:
        return NOTHING
    try:
        return query.outputs_unless(job.ended, time.perf_counter() + PATIENCE_S, RAW_S)
    except NetworkFailed as error:
        say_once(str(error))
        return NOTHING
